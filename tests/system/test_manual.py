"""The manual as HTML, which `make html` makes, and its figures."""
import html.parser
import os
import re
import xml.etree.ElementTree as ET

import base
from answer import eq

PAGES = ['index.html', 'oncectl.1.html', 'oncewrap-handler.7.html',
         'oncewrap.8.html', 'oncewrap.conf.5.html']
# Elements without an end tag (HTML, section 13.1.2).
VOID = {'meta', 'link', 'br', 'hr', 'img', 'input', 'wbr'}
SVG = '{http://www.w3.org/2000/svg}'


class Page(html.parser.HTMLParser):
    """The ids and links of a page; wrong holds what is not well-formed."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.wrong, self.open = [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.wrong.append('not closed: %s' % self.open)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if 'id' in attrs:
            self.ids.append(attrs['id'])
        for name in ('href', 'src'):
            if name in attrs:
                self.links.append(attrs[name])
        self.ids_named = attrs.get('aria-labelledby', '').split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append('%s at %s closes nothing' %
                              (tag, self.getpos()))


def make(t, source=base.TOP, status=0):
    """Runs src/manual/html; (folder, what it complained of)."""
    base.need('mandoc')
    out = t.path('html')
    run = t.run([os.path.join(base.TOP, 'src', 'manual', 'html'), source, out,
                 '1.2.3'])
    eq(run.returncode, status, run.stderr)
    return out, run.stderr.decode()


def pages(out):
    found = {}
    for name in PAGES:
        with open(os.path.join(out, name)) as f:
            found[name] = Page(f.read())
    return found


def test_every_page_is_well_formed(t):
    out, complaints = make(t)
    eq(complaints, '')
    eq(sorted(os.listdir(out)),
       sorted(PAGES + ['life.svg', 'manual.css', 'place.svg']))
    for name, page in pages(out).items():
        eq(page.wrong, [], name)
        twice = sorted({i for i in page.ids if page.ids.count(i) > 1})
        eq(twice, [], name)


def test_every_link_resolves(t):
    out, _ = make(t)
    found = pages(out)
    checked = 0
    for name, page in found.items():
        for link in page.links:
            if re.match('(https?|mailto):', link):
                continue
            file, _, fragment = link.partition('#')
            assert os.path.exists(os.path.join(out, file or name)), \
                '%s: %s' % (name, link)
            if fragment:
                assert fragment in found[file or name].ids, \
                    '%s: %s' % (name, link)
            checked += 1
    assert checked > 300, checked
    # Each page is reached from each other one.
    for name, page in found.items():
        eq([other for other in PAGES if other not in page.links], [], name)


def test_figures_say_what_they_show(t):
    out, _ = make(t)
    for name in ('life.svg', 'place.svg'):
        root = ET.parse(os.path.join(out, name)).getroot()
        parts = {e.get('id'): e for e in root.iter() if e.get('id')}
        title, desc = [parts[i] for i in
                       root.get('aria-labelledby').split()]
        eq((root.get('role'), title.tag, desc.tag),
           ('img', SVG + 'title', SVG + 'desc'), name)
        assert len(desc.text) > 300, desc.text


def states_and_changes():
    """The names of states, and (from, to) of each change, of record.[ch]."""
    def read(name):
        with open(os.path.join(base.TOP, 'src', 'rules', name)) as f:
            return f.read()
    names = dict(re.findall(r'X\((RECORD_\w+), "(\w+)"\)', read('record.h')))
    table = read('record.c').partition('changes[] = {')[2]
    table = table.partition('\n};')[0]
    changes = [(names[a], names[b]) for a, b in
               re.findall(r'\{ (RECORD_\w+), (RECORD_\w+),', table)]
    assert len(names) >= 8 and len(changes) >= 21, (names, changes)
    return set(names.values()) - {'none'}, changes


def test_figure_of_a_life_has_each_state_and_change(t):
    out, _ = make(t)
    states, changes = states_and_changes()
    root = ET.parse(os.path.join(out, 'life.svg')).getroot()
    eq({e.text for e in root.iter(SVG + 'text')
        if e.get('class') == 'f-name'}, states)
    arrows = [e for e in root.iter(SVG + 'path')
              if e.get('class') == 'f-arrow']
    eq(len(arrows), len([c for c in changes if c[1] != 'none']))
    desc = root.find(SVG + 'desc').text
    for a, b in changes:
        if a == 'none':
            assert b in desc.partition('.')[0], (b, desc)
        elif b != 'none':
            clause = desc.partition(' %s: ' % a)[2].partition('.')[0]
            assert b in clause, (a, b, clause)


def sources(t, file, old, new):
    """A copy of what the manual is made from, with a change in one file."""
    top = t.path('source')
    wanted = ['README.md'] + ['src/' + p[:-5] for p in PAGES[1:]] + \
        ['src/rules/' + f for f in ('record.c', 'record.h', 'decide.c')]
    for name in wanted:
        with open(os.path.join(base.TOP, name)) as f:
            text = f.read()
        if name == file:
            assert old in text, '%s has no %r' % (name, old)
            text = text.replace(old, new)
        t.write('source/' + name, text)
    if not os.path.exists(top + '/src/manual'):
        os.symlink(os.path.join(base.TOP, 'src', 'manual'),
                   top + '/src/manual')
    return top


def test_figure_of_a_life_is_refused_where_the_table_has_changed(t):
    for file, old, new, complaint in (
            ('record.c', '{ RECORD_UNKNOWN, RECORD_DEAD_LETTER,',
             '{ RECORD_UNKNOWN, RECORD_EXPIRED,',
             'no arrow is drawn for unknown expired'),
            ('record.c', '\t{ RECORD_PENDING, RECORD_COMPLETED, BY_RULE },\n',
             '', 'does not allow: pending completed'),
            ('record.h', 'X(RECORD_EXPIRED, "expired")',
             'X(RECORD_EXPIRED, "expired") \\\n\tX(RECORD_LOST, "lost")',
             '9 states'),
            ('decide.c', 'return DECIDE_UNKNOWN', 'return DECIDE_CROWDED',
             'what does a retry of unknown get?')):
        _, said = make(t, sources(t, 'src/rules/' + file, old, new), 1)
        assert complaint in said, said


def test_make_html_and_its_installation(t):
    make_ = base.need('make')
    base.need('mandoc')
    root = t.path('root')
    env = dict(os.environ, MAKEFLAGS='')
    run = t.run([make_, '-C', base.BUILDDIR, 'install-html',
                 'DESTDIR=' + root, 'htmldir=/doc'], env=env)
    eq(run.returncode, 0, run.stderr)
    eq(sorted(os.listdir(root + '/doc')),
       sorted(PAGES + ['life.svg', 'manual.css', 'place.svg']))


# --- the manual pages ---

def source(*names):
    with open(os.path.join(base.TOP, *names)) as f:
        return f.read()


def test_states_are_those_of_the_manual_pages(t):
    states, _ = states_and_changes()
    table = source('src', 'oncewrap.8').partition('.Ss States of a key')[2]
    eq(set(re.findall(r'^\.It ([a-z_]+) Ta', table.partition('.El')[0], re.M)),
       states)
    words = source('src', 'oncectl.1').partition('A state is one of')[2]
    eq(set(re.findall(r'[a-z]+_?[a-z]+', words.partition('.It')[0])) -
       {'and'}, states)


def options():
    """{(place, option): (kind, arguments)} of the table in conf_option.c."""
    text = source('src', 'conf', 'conf_option.c')
    found = {}
    for place, rows in re.findall(
            r'(server|route|effect)_options\[\] = \{(.*?)\n\};', text, re.S):
        for row in re.findall(r'^\t\{ (.*?)(?:\},$|\Z)', rows, re.S | re.M):
            row = ' '.join(row.split())
            name = re.match(r'[SRE]\((\w+)\)|P\(\w+, \w+, (\w+)\)|'
                            r'(?:ARGV|HANDLER)\("(\w+)"', row)
            kind = re.search(r', (NUMBER|TIME|SIZE)\((.*?)\)(?:,|$| )', row)
            found[place, next(filter(None, name.groups()))] = \
                kind.groups() if kind else (None, '')
    # Those that describe a program are in routes and in effects.
    program = re.search(r'#define PROGRAM\(.*?\n\n', text, re.S).group()
    for row in re.findall(r'\{ P\(.*?\}', program, re.S):
        row = ' '.join(row.replace('\\', '').split())
        name = re.match(r'\{ P\(\w+, \w+, (\w+)\)', row).group(1)
        kind = re.search(r', (NUMBER|TIME|SIZE)\((.*?)\)(?:,|$| )', row)
        found['route', name] = kind.groups() if kind else (None, '')
    return found


def bound(kind, text):
    """A bound as the page writes it, from C: "1ms", "1024G", "10000"."""
    value = eval(re.sub(     # pylint: disable=eval-used
        r'[A-Z_]+', lambda m: str(UNITS.get(m.group()) or int(re.search(
            r'#define %s\s+(\d+)' % m.group(),
            source('src', 'base', 'limit.h')).group(1))), text))
    units = {'TIME': (('d', 86400000), ('s', 1000), ('ms', 1)),
             'NUMBER': (('', 1),),
             'SIZE': (('G', 1024**3), ('M', 1024**2), ('K', 1024), ('', 1))}
    for unit, size in units[kind]:
        # An upper bound of sizes is never written in T.
        if value % size == 0 and value >= size:
            return '%d%s' % (value // size, unit)
    return '0'


UNITS = {'DAY': 86400000, 'KIB': 1024, 'MIB': 1024**2, 'GIB': 1024**3}


def entries():
    """{(place, option): text} of the page; options may share a text."""
    found, place, names, text = {}, None, [], []
    for line in source('src', 'oncewrap.conf.5').split('\n'):
        section = re.match(r'\.S[hs] (\S+)', line)
        item = re.match(r'\.It Cm ([a-z_]+) No =', line)
        if (section or item) and text:
            for name in names:
                found.setdefault((place, name), '')
                found[place, name] += '\n'.join(text)
            names, text = [], []
        if line.startswith('.Sh '):
            place = section.group(1).lower()
        elif item and place in ('server', 'route', 'effect'):
            names.append(item.group(1))
        elif names and not section:
            text.append(line)
    return found


def test_each_option_has_its_range(t):
    text, wrong, checked = entries(), [], 0
    for (place, name), (kind, arguments) in options().items():
        if kind is None:
            continue
        low, high = [bound(kind, a) for a in arguments.split(', ')]
        if '%s to %s' % (low, high) not in \
                ' '.join(text[place, name].split()):
            wrong.append('%s: %s to %s' % (name, low, high))
        checked += 1
    eq(wrong, [])
    assert checked > 30, checked


# What an example needs beside it to be accepted.
WITH = {'protocol': 'handler = /bin/true\n',
        'max_request_age': 'request_timestamp = Date\n',
        'request_timestamp': 'max_request_age = 1h\n'}


def test_the_whole_example_is_accepted(t):
    text = source('src', 'oncewrap.conf.5').partition('.Sh EXAMPLES')[2]
    conf = text.partition('.Bd -literal\n')[2].partition('.Ed')[0]
    assert conf.startswith('[server]') and '[route ' in conf, conf
    path = t.write('example.conf', conf)
    run = t.run([base.ONCEWRAP, '-t', '-f', path])
    eq(run.returncode, 0, run.stderr)


def test_each_option_has_an_example_that_is_accepted(t):
    text, wanted = entries(), options()
    assert len(wanted) > 70, len(wanted)
    for place, name in wanted:
        found = re.findall(r'^\.Ql (%s = .*?) [.,]$' % name,
                           text[place, name], re.M)
        assert found, '%s has no example' % name
        for line in found:
            conf = '[server]\nlog = stderr\n'
            if name == 'async':
                conf += 'status_path = /jobs\n'
            if place == 'server':
                conf = conf if name != 'log' else '[server]\n'
                conf += line + '\n'
            elif place == 'route':
                conf += '[route /x]\n%s%s\n' % (WITH.get(name, ''), line)
            else:
                conf += '[effect x]\n' + line + '\n'
                if name != 'program':
                    conf += 'program = /bin/true\n'
            path = t.write('example.conf', conf)
            run = t.run([base.ONCEWRAP, '-t', '-f', path])
            eq(run.returncode, 0, conf + run.stderr.decode())


def test_diagnostics_are_as_printed(t):
    text = source('src', 'oncewrap.conf.5').partition('.Sh DIAGNOSTICS')[2]
    text = text.partition('.Bd -literal\n')[2].partition('.Ed')[0]
    wanted = re.sub('\n +', ' ', text).strip().split('\n')
    got = []
    for line, bad in ((3, 'workers = 0'), (4, '[route /x]\ntimeout = 30'),
                      (5, '[route /x]\ntimout = 30s'), (6, 'timeout = 30s'),
                      (8, '[route /x]\nasync = always'),
                      (9, '[route /pay]\n\n\n\n\n[route /pay]'),
                      (9, 'link = ' + 5000 * 'a')):
        above = line - 2 - bad.count('\n')
        t.write('oncewrap.conf', '[server]\n' + above * '\n' + bad + '\n')
        run = t.run([base.ONCEWRAP, '-t', '-f', 'oncewrap.conf'], cwd=t.dir)
        eq(run.returncode, 1, bad)
        got.append(run.stderr.decode().strip())
    eq(got, wanted)
