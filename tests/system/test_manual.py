"""The manual pages against the program: states, options, diagnostics."""
import os
import re

import base
from answer import eq


def source(*names):
    with open(os.path.join(base.TOP, *names)) as f:
        return f.read()


def states():
    """The names of states, of record.h."""
    names = dict(re.findall(r'X\((RECORD_\w+), "(\w+)"\)',
                            source('src', 'rules', 'record.h')))
    assert len(names) >= 8, names
    return set(names.values()) - {'none'}


def test_states_are_those_of_the_manual_pages(t):
    table = source('src', 'oncewrap.8').partition('.Ss States of a key')[2]
    eq(set(re.findall(r'^\.It ([a-z_]+) Ta', table.partition('.El')[0], re.M)),
       states())
    words = source('src', 'oncectl.1').partition('A state is one of')[2]
    eq(set(re.findall(r'[a-z]+_?[a-z]+', words.partition('.It')[0])) -
       {'and'}, states())


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
