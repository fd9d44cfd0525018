"""Pages of the operator in place of ours: problem_pages."""
import os
import re

import base
from answer import eq, first
from test_pages import Page, BROWSER
from test_world import SERVER, check

PAGES = os.path.join(base.EXAMPLES, 'problem-pages')
LANGUAGES = ('de', 'es', 'fr')


def start(t, files, **more):
    os.mkdir(t.path('pages'))
    for name, text in files.items():
        t.write('pages/' + name, text)
    return t.once(handler=t.sh('status 201'), defaults={'key': 'required'},
                  server={'problem_pages': t.path('pages'), **more})


def ask(once, language=None, key=None, **kw):
    """A problem as a page: without a key key-missing, else key-reused."""
    fields = dict(BROWSER, **(
        {'Accept-Language': language} if language is not None else {}))
    if key:
        first(once.post(key, 'a'), 201)
    return once.post(key, 'b' if key else '', headers=fields, **kw)


def logged(once, begin, part):
    return any(part in line for line in once.log_lines(begin))


def is_ours(answer, code):
    eq(Page(answer).facts['Code'], code)
    eq(answer.get('Content-Language'), None, answer)


def test_a_page_is_found_by_code_and_language(t):
    once = start(t, {'key-missing.html': 'plain', 'key-missing.de.html': 'de',
                     'key-missing.pt-br.html': 'br', 'any.fr.html': 'any fr',
                     'any.html': 'any'})
    for language, text, said in (
            (None, b'plain', None), ('', b'plain', None), ('*', b'plain', None),
            ('de', b'de', 'de'), ('de-AT', b'de', 'de'),
            ('pt-BR, de;q=0.5', b'br', 'pt-br'), ('pt, de;q=0.5', b'de', 'de'),
            ('fr', b'plain', None), ('en-US,en;q=0.9,de;q=0.8', b'plain', None),
            ('fr;q=0.9, de;q=0.1', b'de', 'de'), ('de;q=0', b'plain', None)):
        answer = ask(once, language)
        eq((answer.status, answer.body, answer.get('Content-Language')),
           (400, text, said), language)
        eq(answer.get('Vary'), 'Accept, Accept-Language', answer)
        eq(answer.get('Content-Type'), 'text/html; charset=utf-8', answer)
        eq(answer.get('Cache-Control'), 'no-store', answer)
        assert "default-src 'none'" in answer.get('Content-Security-Policy')
    # Another code has no file of its own.
    eq(ask(once, 'fr', key='k').body, b'any fr')
    eq(ask(once, 'de', key='l').body, b'any')
    # Programs get JSON as before.
    eq(once.post(headers={'Accept-Language': 'de'}).code, 'key-missing')


def test_values_are_filled_in_and_no_markup(t):
    once = start(t, {'key-reused.html': '<p title="@key@">@title@|@detail@|'
                     '@instance@|@retry_after@|@other@|me@example.org'})
    key = '"<b>\'&@title@"'
    first(once.post(key, 'a'), 201)
    answer = once.post(key, 'b', headers=BROWSER)
    match = re.fullmatch(
        r'<p title="&lt;b&gt;&#39;&amp;@title@">(.*)\|(.*)\|(.*)\|\|'
        r'@other@\|me@example\.org', answer.body.decode())
    assert match, answer
    assert 'sent before' in match[1] and 'open the form again' in match[2]
    assert logged(once, 'instance=' + match[3], 'code=key-reused')


def test_a_change_of_a_page_needs_no_reload(t):
    once = start(t, {})
    is_ours(ask(once), 'key-missing')
    t.write('pages/any.html', 'new')
    eq(ask(once).body, b'new')
    os.remove(t.path('pages/any.html'))
    is_ours(ask(once), 'key-missing')
    os.rmdir(t.path('pages'))
    is_ours(ask(once), 'key-missing')
    assert logged(once, 'event=problem-page', 'No such file')


def test_what_is_no_page_is_not_sent(t):
    """Neither a link, nor a folder, a pipe without a writer, a device or a
    long file; and none of them delays the answer."""
    once = start(t, {'secret': 'secret', 'key-invalid.html': 'x' * 65536})
    name = t.path('pages/key-missing.html')

    def refused(why):
        answer = ask(once)
        is_ours(answer, 'key-missing')
        assert b'secret' not in answer.body, answer
        assert logged(once, 'event=problem-page', why), why
    os.symlink('secret', name)
    refused('symbolic link')
    os.remove(name)
    os.symlink('/dev/zero', name)
    refused('symbolic link')
    os.remove(name)
    os.mkfifo(name)
    refused('no regular file')
    os.remove(name)
    os.mkdir(name)
    refused('no regular file')
    os.rmdir(name)
    t.write('pages/key-missing.html', 'x' * 65537)
    refused('longer than 64K')
    # The next file counts; 64K are allowed.
    t.write('pages/any.html', 'any')
    eq(ask(once).body, b'any')
    eq(len(once.post('a,b', headers=BROWSER).body), 65536)


def test_no_request_chooses_a_file(t):
    once = start(t, {'any.html': 'any', 'any.de.html': 'de'})
    t.write('outside.html', 'secret')
    for language in ('../outside', '/../../outside', 'de/../../outside',
                     '..', '.', 'de.html', '%2e%2e/outside', 'x' * 9000,
                     ','.join('a%d' % i for i in range(2000)), 'de;q=0.5;q=1',
                     '\u00e9', '*-de', 'de-' * 500):
        answer = ask(once, language)
        eq((answer.status, answer.body), (400, b'any'), language[:40])


def test_a_page_that_grows_without_end_is_ours(t):
    once = start(t, {'any.html': '@key@' * 13000})
    key = '"%s"' % ("'" * 250)
    first(once.post(key, 'a'), 201)
    is_ours(once.post(key, 'b', headers=BROWSER), 'key-reused')


def test_head_has_no_page(t):
    once = start(t, {'any.html': 'any'}, status_path='/jobs')
    answer = once.request('HEAD', '/jobs/x', headers=BROWSER)
    eq((answer.status, answer.body), (404, b''), answer)
    eq(once.request('GET', '/jobs/x', headers=BROWSER).body, b'any')


def test_the_stripe_dialect_has_the_same_pages(t):
    once = start(t, {'key-reused.html': 'page'}, dialect='stripe')
    answer = ask(once, key='k')
    eq((answer.status, answer.body), (400, b'page'), answer)


def test_examples_are_pages_in_their_languages(t):
    names = sorted(os.listdir(PAGES))
    eq(len(names), 9)
    once = t.once(handler=t.sh('exit 1'), defaults={'key': 'required'},
                  server={'problem_pages': PAGES})
    for name in names:
        stem, language, _ = name.split('.')
        with open(os.path.join(PAGES, name), encoding='utf-8') as f:
            text = f.read()
        assert '<html lang="%s">' % language in text, name
        assert 'script' not in text and '@instance@' in text, name
    for n, language in enumerate(LANGUAGES):
        key = 'k%d' % n
        once.post(key)
        for answer, stem in ((ask(once, language + ',en;q=0.5'), 'any'),
                             (once.post(key, headers=dict(BROWSER, **{
                                 'Accept-Language': language})),
                              'outcome-unknown')):
            with open(os.path.join(PAGES, '%s.%s.html' % (stem, language)),
                      'rb') as f:
                before, after = f.read().split(b'@instance@')
            assert answer.body.startswith(before), answer
            assert answer.body.endswith(after), answer
            eq(answer.get('Content-Language'), language, answer)
            Page(answer)
    is_ours(ask(once, 'en'), 'key-missing')


def test_check_names_a_folder_that_is_not_there(t):
    text = SERVER + 'problem_pages = %(dir)s/pages\n'
    (line, option, why), = check(t, text)
    eq((line, option, why.split(': ')[:2]),
       (4, 'problem_pages', ['D/pages', 'there is no such folder']))
    os.mkdir(t.path('pages'))
    eq(check(t, text), [])
