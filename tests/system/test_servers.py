"""Through real web servers, with the configurations of examples/.

Each function here that takes a kind becomes a case for each web server.
"""
import http.client
import os
import pwd
import shutil
import socket

import base
import servers
from answer import Answer, eq, first, problem, ran_once
from once import Background, parallel

OK = 'ledger; status 201; echo done; cat'
TEXT = 'Content-Type: text/plain'


def setup(t, kind, body=OK, routes=None, server=None, handlers=(), inside='',
          before='', **defaults):
    """(web server, oncewrap) with the script /cgi-bin/pay."""
    t.sh(body, name='cgi-bin/pay')
    options = dict({'workers': '8'}, **(server or {}))
    if kind in servers.CONNECTING:
        options.setdefault('socket_mode', '0666')
        once = t.once(server=options, defaults=defaults, routes=routes)
    else:
        once = t.once(server=options, defaults=defaults, routes=routes,
                      start=False, listen=False)
    return t.server(kind, once, inside=inside, before=before), once


def each(kinds=servers.KINDS):
    """Makes a case of the function for each kind of web server."""
    def decorate(function):
        for kind in kinds:
            def case(t, kind=kind):
                function(t, kind)
            case.__name__ = 'test_%s_with_%s' % (function.__name__,
                                                 kind.replace('-', '_'))
            case.__module__ = __name__
            globals()[case.__name__] = case
        return function
    return decorate


def replay_through(answer, original):
    """A replay, but for the fields that web servers add themselves."""
    eq(answer.status, original.status, answer)
    eq(answer.replayed, 'true', answer)
    eq(answer.body, original.body, answer)
    own = ('date', 'server', 'connection', 'keep-alive', 'transfer-encoding',
           'content-length', 'idempotent-replayed', 'set-cookie', 'vary')

    def kept(a):
        return sorted(f for f in a.fields if f[0].lower() not in own)
    eq(kept(answer), kept(original), answer)


@each()
def first_retry_mismatch(t, kind):
    server, once = setup(t, kind)
    answer = server.curl(key='"k"', body='body', headers=[TEXT])
    first(answer, 201, b'done\nbody')
    replay_through(server.curl(key='"k"', body='body', headers=[TEXT]),
                   answer)
    problem(server.curl(key='"k"', body='other', headers=[TEXT]),
            'key-reused')
    eq((t.ledger(), once.state('k')), (['1 '], 'completed'))


@each()
def released_and_run_again(t, kind):
    server, once = setup(t, kind, 'ledger; [ $ONCE_ATTEMPT = 1 ] && '
                         'status 500 || status 201; echo text')
    first(server.curl(key='k'), 500, b'text\n')
    first(server.curl(key='k'), 201, b'text\n')
    eq(server.curl(key='k').replayed, 'true')
    eq(t.ledger(), ['1 ', '2 '])


OUTCOMES = r'''
ledger "$QUERY_STRING"
says() { printf 'Idempotency-Outcome: %s\r\n' "$1"; status 200; echo text; }
case $QUERY_STRING in
timeout)	gate gate;;
signal)		status 200; kill -9 $$;;
output)		status 200; exec dd if=/dev/zero bs=64k count=64 2>/dev/null;;
nothing)	;;
nothing75)	exit 75;;
broken)		echo no head; echo;;
exit)		status 200; exit 3;;
exit75)		status 200; echo text; exit 75;;
says-*)		says "${QUERY_STRING#says-}";;
*)		status "$QUERY_STRING"; echo text;;
esac'''

# what: (status, code of the problem or None, state of the key)
ROWS = {
    'timeout': (504, 'handler-timeout', 'unknown'),
    'signal': (502, 'handler-failed', 'unknown'),
    'output': (502, 'handler-failed', 'unknown'),
    'nothing': (502, 'handler-failed', 'unknown'),
    'nothing75': (503, 'handler-failed', 'failed_retryable'),
    'broken': (502, 'handler-failed', 'unknown'),
    'exit': (502, 'handler-failed', 'unknown'),
    'exit75': (200, None, 'failed_retryable'),
    'says-not-executed': (200, None, 'failed_retryable'),
    'says-unknown': (200, None, 'unknown'),
    'says-completed': (200, None, 'completed'),
    '502': (502, None, 'unknown'), '504': (504, None, 'unknown'),
    '500': (500, None, 'failed_retryable'),
    '503': (503, None, 'failed_retryable'),
    '429': (429, None, 'failed_retryable'),
    '201': (201, None, 'completed'), '404': (404, None, 'completed'),
}


@each()
def every_outcome_and_its_retry(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, OUTCOMES, max_output='1M',
                         timeout='%dms' % (2000 * base.SLOW))
    for what, (status, code, state) in ROWS.items():
        path = '/cgi-bin/pay?' + what
        answer = server.curl(path, key=what)
        eq((answer.status, answer.code, answer.replayed),
           (status, code, None), '%s: %s' % (what, answer))
        eq(answer.all('Idempotency-Outcome'), [], answer)
        eq(once.state(what), state, what)
        if what == 'timeout':
            gate.wait()
        again = server.curl(path, key=what)
        runs = sum(what in line.split() for line in t.ledger())
        if state == 'completed':
            replay_through(again, answer)
            eq(runs, 1, what)
        elif state == 'unknown':
            problem(again, 'outcome-unknown')
            eq(runs, 1, what)
        else:
            eq((again.status, again.replayed), (status, None), what)
            eq((runs, once.row(what)['attempt']), (2, 2), what)


@each()
def handler_not_started_is_released(t, kind):
    server, once = setup(t, kind)
    t.sh('not to be started', name='cgi-bin/plain')
    os.chmod(t.path('cgi-bin/plain'), 0o644)
    problem(server.curl('/cgi-bin/plain', key='k'), 'handler-not-started')
    eq(once.state('k'), 'failed_retryable')
    t.sh(OK, name='cgi-bin/plain')
    first(server.curl('/cgi-bin/plain', key='k'), 201)
    eq(t.ledger(), ['2 '])


@each(servers.CONNECTING)
def lost_at_the_drain_deadline(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, 'ledger; gate gate; status 201',
                         server={'drain_timeout': '200ms'})
    running = Background(lambda: server.curl(key='k'))
    gate.wait()
    once.stop()
    problem(running.result(), 'handler-failed', unknown=True)
    once.start()
    base.wait_until(lambda: server.curl(key='k').code == 'outcome-unknown',
                    'the outcome is unknown')
    eq(t.ledger(), ['1 '])


@each(servers.CONNECTING)
def oncewrap_killed_while_the_handler_runs(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, 'ledger; gate gate; status 201')
    running = Background(lambda: server.curl(key='k'))
    gate.wait()
    once.kill()
    eq(running.result().status, 500 if kind == 'lighttpd' else
       502 if kind == 'nginx' else 503)
    once.start()
    base.wait_until(lambda: server.curl(key='k').code == 'outcome-unknown',
                    'the outcome is unknown')
    eq((once.state('k'), t.ledger()), ('unknown', ['1 ']))


@each()
def other_methods_pass_through(t, kind):
    server, once = setup(t, kind, 'status 200; echo "$REQUEST_METHOD"')
    for method in ('GET', 'PUT', 'DELETE'):
        first(server.curl(method=method, key='k'), 200,
              method.encode() + b'\n')
    answer = server.curl(method='HEAD')
    eq((answer.status, answer.body), (200, b''))
    assert not os.path.exists(once.database) or once.ls() == []


@each()
def repeated_key_fields_are_refused(t, kind):
    server, once = setup(t, kind)
    again = ['Idempotency-Key: ' + k for k in ('k', '"k"', 'other')]
    # lighttpd drops a field without a value.
    for line in again + ['Idempotency-Key;'] * ('lighttpd' not in kind):
        problem(server.curl(key='k', headers=[line]), 'key-invalid')
    eq((t.ledger(), once.ls()), ([], []))


@each()
def underscore_is_no_way_to_send_a_key(t, kind):
    server, once = setup(t, kind, key='required')
    problem(server.curl(headers=['Idempotency_Key: k']), 'key-missing')
    answer = server.curl(key='real', headers=['Idempotency_Key: forged'])
    first(answer, 201)
    eq([r['key'] for r in once.ls()], ['real'])


@each()
def chunked_body_is_the_same_request(t, kind):
    server, once = setup(t, kind)
    body = b'0123456789' * 30000
    answer = server.curl(key='k', body=body,
                         headers=['Transfer-Encoding: chunked'])
    first(answer, 201, b'done\n' + body)
    replay_through(server.curl(key='k', body=body), answer)
    eq(t.ledger(), ['1 '])


@each()
def one_mb_to_a_refused_request(t, kind):
    server, once = setup(t, kind, key='required')
    body = b'x' * (1 << 20)
    problem(server.curl(body=body), 'key-missing')
    problem(server.curl(body=body, headers=['Expect:']), 'key-missing')
    first(server.curl(key='k'), 201)
    eq(t.ledger(), ['1 '])


@each()
def one_mb_there_and_back(t, kind):
    server, once = setup(t, kind)
    body = bytes(range(256)) * 4096
    answer = server.curl(key='k', body=body)
    assert answer.body == b'done\n' + body, len(answer.body)
    again = server.curl(key='k', body=body)
    assert again.body == answer.body and again.replayed == 'true'
    eq(t.ledger(), ['1 '])


@each()
def body_above_the_limit(t, kind):
    server, once = setup(t, kind, max_request_body='100K')
    problem(server.curl(key='k', body=b'x' * 200_000), 'body-too-large')
    problem(server.curl(key='k', body=b'x' * 200_000,
                        headers=['Transfer-Encoding: chunked']),
            'body-too-large')
    eq((t.ledger(), once.ls()), ([], []))


PATHS = ('/cgi-bin/pay', '/cgi-bin/p%61y', '/cgi-bin/%70%61%79',
         '//cgi-bin/pay', '/cgi-bin//pay', '/cgi-bin///pay',
         '/cgi-bin/x/../pay', '/x/../cgi-bin/pay', '/cgi-bin/./pay',
         '/./cgi-bin/pay', '/cgi-bin/%2e/pay', '/cgi-bin/x/%2e%2e/pay',
         '/cgi-bin/pay/../pay', '/cgi-bin/pay/', '/cgi-bin/pay/.',
         '/cgi-bin/pay/x/..', '/cgi-bin%2fpay', '/cgi-bin/pay%2f',
         '/cgi-bin/pay%00', '/cgi-bin/pay;x', '/cgi-bin/pay?x=/..',
         '/%63gi-bin/pay', '/cgi-bin/../cgi-bin/pay',
         '/cgi-bin/x%2f..%2fpay', '/cgi-bin/pay%2f..%2f..%2fother',
         '/cgi-bin/.//pay', '/cgi-bin/pay//')


@each()
def no_spelling_of_the_path_bypasses_the_guard(t, kind):
    server, once = setup(t, kind, routes={'/cgi-bin/pay': {
        'key': 'required'}})
    for path in PATHS:
        answer = server.curl(path)
        assert answer.status in (400, 403, 404) or \
            answer.code == 'handler-not-started', '%s: %s' % (path, answer)
        eq(t.ledger(), [], path)
    problem(server.curl(PATHS[0]), 'key-missing')


@each()
def spellings_of_the_path_are_one_key(t, kind):
    server, once = setup(t, kind)
    answer = server.curl('/cgi-bin/pay', key='k')
    first(answer, 201)
    for path in ('/cgi-bin/p%61y', '//cgi-bin/pay', '/cgi-bin/x/../pay',
                 '/cgi-bin/./pay', '/cgi-bin//pay'):
        again = server.curl(path, key='k')
        assert again.replayed == 'true' or again.status == 404, \
            '%s: %s' % (path, again)
    eq(t.ledger(), ['1 '])


def test_lighttpd_fields_that_become_one_variable_cannot_name_a_caller(t):
    server, once = setup(
        t, 'lighttpd', 'ledger; status 201; echo "$HTTP_X_USER"',
        before='setenv.set-request-header = ( "X-User" => "ann" )',
        scope='HTTP_X_USER', scope_required='yes')
    answer = server.curl(key='k')
    first(answer, 201, b'ann\n')
    for name in 'X.User', 'X_User', 'X~User':
        for headers in ([name + ': bob'], [name + ': ann'],
                        [name + ': bob', 'X-User: bob']):
            problem(server.curl(key='k', headers=headers), 'request-invalid')
    again = server.curl(key='k', headers=['X-User: bob'])
    eq((again.replayed, again.body), ('true', b'ann\n'), again)
    eq(len(t.ledger()), 1)


@each()
def path_info(t, kind):
    server, once = setup(t, kind, 'status 200; '
                         'echo "$SCRIPT_NAME|$PATH_INFO|$QUERY_STRING"')
    for method, key in (('GET', None), ('POST', 'k')):
        answer = server.curl('/cgi-bin/pay/a/b%20c?x=%2F', method, key)
        first(answer, 200, b'/cgi-bin/pay|/a/b c|x=%2F\n')
    eq([r['path'] for r in once.ls()], ['/cgi-bin/pay/a/b c'])


@each()
def fields_of_first_answer_and_replay(t, kind):
    server, once = setup(
        t, kind, "ledger; printf 'Status: 201 Created\\r\\n"
        "Location: http://x.example/7\\r\\nSet-Cookie: a=1\\r\\n"
        "Set-Cookie: b=2\\r\\nX-Repeat: 1\\r\\nX-Repeat: 2\\r\\n"
        "Content-Type: text/x\\r\\n\\r\\nbody'")
    answer = server.curl(key='k')
    first(answer, 201, b'body')
    eq(answer.all('Set-Cookie'), ['a=1', 'b=2'], answer)
    again = server.curl(key='k')
    replay_through(again, answer)
    eq(again.all('Set-Cookie'), [], again)
    for a in (answer, again):
        eq(', '.join(a.all('X-Repeat')), '1, 2', a)
        eq(a.get('Location'), 'http://x.example/7', a)
        assert a.get('Idempotency-Expires'), a
    eq(t.ledger(), ['1 '])


@each()
def authorization_as_scope(t, kind):
    server, once = setup(t, kind, scope='HTTP_AUTHORIZATION',
                         scope_required='yes')
    ann = server.curl(key='k', headers=['Authorization: Bearer ann'])
    first(ann, 201)
    first(server.curl(key='k', headers=['Authorization: Bearer bob']), 201)
    problem(server.curl(key='k'), 'scope-required')
    eq(server.curl(key='k', headers=['Authorization: Bearer ann']).replayed,
       'true')
    eq(len(t.ledger()), 2)


@each()
def a_name_that_was_not_verified_is_no_caller(t, kind):
    server, once = setup(t, kind, scope='REMOTE_USER', scope_required='yes')
    problem(server.curl(key='k', args=['--user', 'ann:guess']),
            'scope-required')
    eq((t.ledger(), once.ls()), ([], []))


@each()
def proxy_field_is_not_the_handlers_proxy(t, kind):
    server, once = setup(t, kind, 'status 200; echo "<$HTTP_PROXY>"')
    for key in ('k', None):
        first(server.curl(key=key, headers=['Proxy: http://evil']), 200,
              b'<>\n')


@each()
def client_that_leaves_in_mid_body_runs_nothing(t, kind):
    server, once = setup(t, kind)
    with socket.create_connection(('127.0.0.1', server.port)) as s:
        s.sendall(b'POST /cgi-bin/pay HTTP/1.1\r\nHost: x\r\n'
                  b'Idempotency-Key: gone\r\nContent-Length: 100000\r\n\r\n'
                  + b'x' * 70000)
    first(server.curl(key='k'), 201)
    eq(([r['key'] for r in once.ls()], t.ledger()), (['k'], ['1 ']))


@each()
def client_that_leaves_while_the_handler_runs(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, 'ledger; gate gate; status 201; echo done')
    with socket.create_connection(('127.0.0.1', server.port)) as s:
        s.sendall(b'POST /cgi-bin/pay HTTP/1.1\r\nHost: x\r\n'
                  b'Idempotency-Key: k\r\nContent-Length: 0\r\n\r\n')
        gate.wait()
    gate.open()
    once.wait_state('k', 'completed')
    answer = server.curl(key='k')
    eq((answer.status, answer.replayed, answer.body),
       (201, 'true', b'done\n'), answer)
    eq(t.ledger(), ['1 '])


class Client:
    """Keeps one connection to a web server for several requests."""

    def __init__(self, server):
        self.http = http.client.HTTPConnection(
            '127.0.0.1', server.port, timeout=base.WAIT * base.SLOW)

    def post(self, key=None, body=b'', path='/cgi-bin/pay'):
        headers = {'Content-Type': 'text/plain'}
        if key:
            headers['Idempotency-Key'] = key
        self.http.request('POST', path, body, headers)
        r = self.http.getresponse()
        return Answer(r.status, r.getheaders(), r.read())

    def close(self):
        self.http.close()


@each()
def many_requests_on_one_connection(t, kind):
    server, once = setup(t, kind, key='required')
    client = Client(server)
    for i in range(5):
        body = b'%d' % i
        first(client.post('k%d' % i, body), 201, b'done\n' + body)
        eq(client.post('k%d' % i, body).replayed, 'true')
        problem(client.post(None, b'x' * 300_000), 'key-missing')
        problem(client.post('k%d' % i, b'other'), 'key-reused')
    client.close()
    eq(len(t.ledger()), 5)


@each(servers.CONNECTING + ('lighttpd-bin-path',))
def hundred_duplicates(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, 'ledger; gate gate; status 201; echo done')
    winner = Background(lambda: Client(server).post('k', b'body'))
    gate.wait()
    clients = [Client(server) for _ in range(99)]
    for answer in parallel([lambda c=c: c.post('k', b'body')
                            for c in clients]):
        problem(answer, 'key-in-progress')
    gate.open()
    first(winner.result(), 201, b'done\n')
    eq(t.ledger(), ['1 '])
    for client in clients:
        client.close()


@each()
def duplicates_without_a_gate_run_once(t, kind):
    server, once = setup(t, kind, 'ledger; status 201; echo "$ONCE_TOKEN"')
    ran_once(parallel([lambda: Client(server).post('k')] * 24))
    eq(t.ledger(), ['1 '])


@each(servers.CONNECTING + ('lighttpd-bin-path',))
def duplicates_that_wait_get_the_one_answer(t, kind):
    gate = t.gate()
    server, once = setup(t, kind, 'ledger; gate gate; status 201; echo done',
                         server={'workers': '32', 'admin_path': '/once'},
                         concurrent='wait', wait_time='20s')
    winner = Background(lambda: Client(server).post('k'))
    gate.wait()
    waiters = [Background(lambda: Client(server).post('k'))
               for _ in range(10)]
    if kind == 'lighttpd-bin-path':
        once.address = os.path.join(server.dir, 'once.sock-0')
    once.wait_waiting(10)
    gate.open()
    first(winner.result(), 201, b'done\n')
    for waiter in waiters:
        answer = waiter.result()
        eq((answer.status, answer.replayed, answer.body),
           (201, 'true', b'done\n'), answer)
    eq(t.ledger(), ['1 '])


@each(servers.CONNECTING)
def restarted_between_two_requests(t, kind):
    server, once = setup(t, kind)
    client = Client(server)
    answer = client.post('k')
    first(answer, 201)
    once.stop()
    once.start()
    replay_through(client.post('k'), answer)
    replay_through(Client(server).post('k'), answer)
    eq(t.ledger(), ['1 '])


@each(servers.CONNECTING)
def served_again_after_requests_that_found_no_responder(t, kind):
    server, once = setup(t, kind)
    first(server.curl(key='k'), 201)
    once.stop()
    eq(server.curl(key='k').status, 502 if kind == 'nginx' else 503)
    once.start()
    # lighttpd looks for a backend that was gone once a second.
    base.wait_until(lambda: server.curl(key='k').replayed, 'a replay')
    eq(t.ledger(), ['1 '])


def test_chunked_body_unbuffered_by_nginx(t):
    server, once = setup(t, 'nginx', 'status 201; echo "$CONTENT_LENGTH"; '
                         'cat', inside='fastcgi_request_buffering off;')
    body = b'0123456789' * 1000
    answer = server.curl(key='k', body=body,
                         headers=['Transfer-Encoding: chunked'])
    first(answer, 201, b'10000\n' + body)
    replay_through(server.curl(key='k', body=body), answer)


# --- git ---

def git(t, *args, key=None, cwd=None, check=True):
    argv = ['git', '-c', 'user.name=x', '-c', 'user.email=x@example',
            '-c', 'init.defaultBranch=main', '-c', 'protocol.version=0',
            '-c', 'http.proxy=', '-c', 'gc.auto=0']
    if key:
        argv += ['-c', 'http.extraHeader=Idempotency-Key: ' + key]
    env = {'PATH': os.environ['PATH'], 'HOME': t.dir,
           'GIT_CONFIG_NOSYSTEM': '1', 'GIT_TERMINAL_PROMPT': '0'}
    run = t.run(argv + list(args), env=env, cwd=cwd or t.dir)
    if check:
        assert run.returncode == 0, 'git %s: %s' % (
            ' '.join(args), run.stderr.decode('utf-8', 'replace'))
    return run


@each()
def git_push_and_clone_with_a_key(t, kind):
    base.need('git')
    server, once = setup(t, kind, routes={'/cgi-bin/git': {
        'key': 'required'}})
    t.sh('export GIT_PROJECT_ROOT="$D/repos" GIT_HTTP_EXPORT_ALL=1 HOME="$D"\n'
         '[ "$REQUEST_METHOD" = GET ] || ledger\n'
         'exec git http-backend', name='cgi-bin/git')
    git(t, 'init', '-q', '--bare', t.path('repos/r.git'))
    git(t, '-C', t.path('repos/r.git'), 'config', 'http.receivepack', 'true')
    if kind == 'apache-fcgid' and os.geteuid() == 0:
        www = pwd.getpwnam('www-data')
        for folder, _, names in os.walk(t.path('repos')):
            for path in [folder] + [os.path.join(folder, n) for n in names]:
                os.chown(path, www.pw_uid, www.pw_gid)
    git(t, 'init', '-q', 'work')
    t.write('work/file', os.urandom(300_000))
    git(t, 'add', 'file', cwd=t.path('work'))
    git(t, 'commit', '-q', '-m', 'one', cwd=t.path('work'))
    url = server.url + '/cgi-bin/git/r.git'
    assert git(t, 'push', '-q', url, 'main', cwd=t.path('work'),
               check=False).returncode != 0, 'pushed without a key'
    eq(t.ledger(), [])
    git(t, 'push', '-q', url, 'main', key='push-1', cwd=t.path('work'))
    eq(once.state('push-1'), 'completed')
    git(t, 'clone', '-q', url, 'copy', key='clone-1')
    eq(t.read('copy/file') == t.read('work/file'), True)
    # The same clone again: the same request, so the stored answer.
    git(t, 'clone', '-q', url, 'copy2', key='clone-1')
    eq(t.read('copy2/file') == t.read('work/file'), True)
    eq(t.ledger(), ['1 ', '1 '])
    shutil.rmtree(t.path('copy2'))
