"""Requests that are not guarded: as under fcgiwrap."""
import os
import re

import base
import fcgi
import servers
from answer import eq, first, problem
from once import parallel


def script(t, name='cgi-bin/script', body=None):
    return t.sh(body or 'status 201 Made; echo "$SCRIPT_FILENAME|$SCRIPT_NAME'
                '|$PATH_INFO|$PATH_TRANSLATED"', name=name)


def ask(once, filename, key=None, method='GET', **params):
    params = dict({'SCRIPT_FILENAME': filename}, **params)
    return once.request(method, path=params.pop('path', '/script'), key=key,
                        params=params)


# --- streaming ---

def test_first_bytes_arrive_before_the_handler_ends(t):
    gate = t.gate()
    once = t.once(handler=t.sh('status 200; echo one; gate gate; echo two'))
    conn = once.begin(method='GET')
    start = conn.first_bytes(len('Status: 200\r\n'))
    gate.wait()
    while b'one\n' not in start:
        start += conn.first_bytes()
    assert b'two' not in start, start
    gate.open()
    answer = conn.answer(read=start)
    eq(answer.body, b'one\ntwo\n')


def test_large_output_streams_without_a_limit(t):
    once = t.once(handler=t.sh('status 200; exec dd if=/dev/zero bs=1M '
                               'count=40 2>/dev/null'),
                  defaults={'max_response': '1K'})
    answer = once.get()
    eq((answer.status, len(answer.body)), (200, 40 << 20))


def test_output_is_passed_on_as_it_is(t):
    output = (b'Status: 299 Odd\r\nX-A: 1\r\nX-A: 1\r\nSet-Cookie: a\r\n'
              b'Connection: x\r\nDate: y\r\n\r\n\0\xff\r\n')
    t.write('output', output)
    once = t.once(handler=t.sh('cat "$D/output"'))
    eq(once.get().raw, output)


def test_no_fields_are_added(t):
    once = t.once(handler=t.sh('status 200'))
    for answer in (once.get(), once.post(), once.request('PUT', key='k')):
        eq(answer.fields, [('Content-Type', 'text/plain')], answer)


def test_reader_that_goes_away_ends_the_wait_not_the_worker(t):
    gate = t.gate()
    once = t.once(handler=t.sh('status 200; gate gate; '
                               'dd if=/dev/zero bs=1M count=20 2>/dev/null; '
                               'echo > $D/ended'), server={'workers': '1'})
    conn = once.begin(method='GET')
    gate.wait()
    conn.close()
    gate.open()
    t.wait_file('ended')
    gate.open()
    eq(once.get().status, 200)


def test_a_slow_reader_loses_nothing(t):
    once = t.once(handler=t.program('large.py'), server={'workers': '2'},
                  defaults={'directory': t.dir})
    conns = [once.begin(method='GET', query=str(5 << 20)) for _ in range(2)]
    eq([len(c.answer().body) for c in conns], [5 << 20] * 2)


# --- how it ends ---

def plain(answer, status):
    """A few words, and no problem document."""
    eq((answer.status, answer.get('Content-Type')), (status, 'text/plain'),
       answer)
    assert answer.body.startswith(b'%d ' % status), answer


def test_handler_that_is_missing(t):
    once = t.once(handler=t.path('missing'))
    plain(once.get(), 404)
    # With a key it is a problem, which says whether to try again.
    problem(once.post('k'), 'handler-not-started')


def test_403_and_404_are_for_the_program_alone(t):
    """A step that fails for another reason is no answer about it."""
    base.need_root()
    t.sh('status 200', name='ok')
    t.write('plain', '#!/bin/sh\n', 0o644)
    os.mkdir(t.path('closed'), 0o700)
    os.chmod(t.dir, 0o755)
    routes = {
        '/none': ({'handler': t.path('none')}, 404),
        '/nowhere': ({'handler': t.path('no', 'none')}, 404),
        '/plain': ({'handler': t.path('plain')}, 403),
        '/folder': ({'handler': t.path('closed')}, 403),
        '/gone': ({'directory': t.path('gone')}, 502),
        '/file': ({'directory': t.path('plain')}, 502),
        '/closed': ({'directory': t.path('closed'), 'user': 'nobody'}, 502)}
    once = t.once(handler=t.path('ok'),
                  routes={path: route for path, (route, _) in routes.items()})
    for path, (_, status) in routes.items():
        answer = once.get(path)
        eq(answer.status, status, (path, answer))
    for line in once.log_lines('event=handler-not-started'):
        assert re.search(r' why="..', line), line
    (line,) = once.log_lines('event=handler-not-started .*path=/closed')
    assert ('why="%s: the program\'s user may not enter it, mode 0700"'
            % t.path('closed')) in line, line


def test_nothing_written(t):
    once = t.once(handler=t.sh('exit 0'))
    plain(once.get(), 502)


def test_killed_before_its_first_byte(t):
    once = t.once(handler=t.sh('kill -9 $$'))
    plain(once.get(), 502)


def test_killed_in_mid_output_is_not_a_clean_end(t):
    once = t.once(handler=t.sh('status 200; echo part; kill -9 $$'))
    answer = once.get()
    eq((answer.status, answer.body, answer.app_status),
       (200, b'part\n', None), answer)
    assert answer.broken, str(answer)
    eq(once.get().status, 200)


def test_exit_status_is_the_application_status(t):
    once = t.once(handler=t.sh('status 200; exit 3'))
    answer = once.get()
    eq((answer.status, answer.app_status), (200, 3), answer)


def test_timeout_before_the_first_byte(t):
    t.gate()
    once = t.once(handler=t.sh('gate gate'), defaults={'timeout': '200ms'})
    plain(once.get(), 504)


# --- which program ---

def test_script_filename(t):
    once = t.once()
    path = script(t)
    first(ask(once, path), 201, ('%s|/script||\n' % path).encode())


def test_script_filename_holds_path_info(t):
    once = t.once()
    path = script(t)
    for info in ('/a', '/a/b', '/a/b/', '/', '/script'):
        answer = ask(once, path + info, path='/script' + info)
        first(answer, 201)
        eq(answer.body.decode().split('|')[:3], [path, '/script', info])


def test_path_info_split_off_by_the_server_is_kept(t):
    once = t.once()
    path = script(t)
    answer = ask(once, path, PATH_INFO='/a/b')
    eq(answer.body.decode().split('|')[:3], [path, '/script', '/a/b'])


def test_document_root_and_script_name(t):
    once = t.once()
    path = script(t)
    answer = once.get(path='/cgi-bin/script/x', params={
        'DOCUMENT_ROOT': t.dir})
    first(answer, 201)
    eq(answer.body.decode().split('|')[:3], [path, '/cgi-bin/script', '/x'])


def test_prefix_of_apaches_proxy_is_removed(t):
    once = t.once()
    path = script(t)
    for prefix in ('proxy:fcgi://localhost', 'proxy:fcgi://127.0.0.1:9000',
                   'proxy:fcgi://localhost/', '/'):
        answer = ask(once, prefix + path)
        first(answer, 201)
        answer = ask(once, prefix + path + '/info', path='/script/info')
        eq(answer.body.decode().split('|')[2], '/info', answer)


def test_script_that_is_missing(t):
    once = t.once()
    os.mkdir(t.path('cgi-bin'))
    for name, status in (('cgi-bin/missing', 404), ('cgi-bin', 403),
                         ('cgi-bin/', 403), ('no/such/x', 404)):
        plain(ask(once, t.path(name)), status)


def test_script_without_x_bit(t):
    once = t.once()
    plain(ask(once, t.write('plain', 'text', 0o644)), 403)


def test_no_script_named_at_all(t):
    once = t.once()
    plain(once.get(), 404)


def test_guarded_script(t):
    once = t.once(defaults={'key': 'required'})
    path = script(t, body='ledger; status 201')
    problem(ask(once, path, method='POST'), 'key-missing')
    first(ask(once, path, 'k', 'POST'), 201)
    answer = ask(once, path, 'k', 'POST')
    eq(answer.replayed, 'true', answer)
    eq(len(t.ledger()), 1)


def test_identity_is_the_same_however_path_info_is_split(t):
    once = t.once()
    path = script(t, body='ledger; status 201')
    first(ask(once, path, 'k', 'POST', PATH_INFO='/a'), 201)
    answer = ask(once, path + '/a', 'k', 'POST', path='/script/a')
    eq(answer.replayed, 'true', answer)
    eq([r['path'] for r in once.ls()], ['/script/a'])


# --- side by side ---

SCRIPTS = {
    'plain': 'status 200; echo text',
    'no_status': "printf 'Content-Type: a/b\\r\\n\\r\\nbody'",
    'lf_only': "printf 'Content-Type: a/b\\n\\nbody'",
    'repeats': "printf 'Set-Cookie: a\\r\\nSet-Cookie: b\\r\\n"
               "Content-Type: a/b\\r\\n\\r\\n'",
    'redirect': "printf 'Location: http://a/\\r\\n\\r\\n'",
    'local_redirect': "printf 'Location: /a\\r\\n\\r\\n'",
    'echo': "status 200; cat",
    'environment': "status 200; env | grep -E '^(REQUEST|SCRIPT|PATH|"
                   "QUERY|CONTENT|HTTP|REMOTE|SERVER|GATEWAY)_' | sort",
    'binary': "status 200; printf '\\000\\377\\r\\n'",
    'exit_3': 'status 200; echo text; exit 3',
    'large': 'status 200; head -c 1000000 /dev/zero',
    'status_404': 'status 404 Not Here; echo nothing',
}


def make_same(name):
    def same(t):
        # fcgiwrap answers 502 if a script leaves its body unread.
        script = SCRIPTS[name] if name == 'echo' else \
            'cat > /dev/null; ' + SCRIPTS[name]
        path = t.sh(script, name='script')
        once = t.once()
        wrap = servers.fcgiwrap(t)
        for method, body in (('GET', b''), ('POST', b'some=body'),
                             ('PUT', b'x' * 30000)):
            params = fcgi.request_params(
                method, '/script', body, query='a=b',
                headers={'Accept': '*/*'}, type='a/b',
                params={'SCRIPT_FILENAME': path})
            ours = fcgi.exchange(once.address, params, body)
            theirs = fcgi.exchange(wrap, params, body)
            eq(ours.raw, theirs.raw)
    same.__name__ = 'test_same_output_as_fcgiwrap_for_%s' % name
    return same


for _name in SCRIPTS:
    globals()['test_same_output_as_fcgiwrap_for_%s' % _name] = \
        make_same(_name)


def test_without_a_file_and_handler_it_serves_as_fcgiwrap_does(t):
    path = script(t)
    listener = base.listener(t)
    t.popen([base.ONCEWRAP], 'bare.log', stdin=listener, cwd=t.dir)
    params = fcgi.request_params('GET', '/script', params={
        'SCRIPT_FILENAME': path})
    address = listener.getsockname()
    answers = parallel([lambda: fcgi.exchange(address, params)] * 5)
    eq({a.status for a in answers}, {201})
