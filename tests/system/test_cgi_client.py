"""oncectl cgi: web servers that speak no FastCGI, real ones and the variables
that uhttpd sends; what they get wrong; and an oncewrap that is not there."""
import os
import re
import signal
import socket
import subprocess

import base
import servers
from answer import Answer, eq, first, parse_head, problem
from once import Background

OK = 'ledger; status 201; echo "$CONTENT_TYPE,$HTTP_PROXY,"; cat'
PATH = '/cgi-bin/once.cgi/pay'


def handed_on(t, body=OK, **kw):
    """An oncewrap whose program is its route's; the CGI program of examples/
    in htdocs/cgi-bin."""
    once = t.once(t.sh(body), **kw)
    os.chmod(once.socket, 0o666)
    os.makedirs(t.path('htdocs/cgi-bin'))
    t.write('htdocs/cgi-bin/once.cgi', servers.example('once.cgi', (
        ('exec oncectl', 'exec ' + base.ONCECTL),
        ('/run/oncewrap/oncewrap.sock', once.socket))), 0o755)
    return once


def under_busybox(t, once):
    return t.server('busybox', once)


def under_apache(t, once):
    folder = t.path('htdocs/cgi-bin')
    return t.server('apache-proxy-fcgi', once, inside='''
LoadModule cgid_module %s/mod_cgid.so
ScriptSock %s
<Directory "%s">
Require all granted
</Directory>
ScriptAlias "/scripts/" "%s/"
''' % (servers.APACHE_MODULES, t.path('cgid.sock'), folder, folder))


def serves(t, under, path):
    once = handed_on(t)
    server = under(t, once)
    headers = ['Content-Type: text/x', 'Proxy: http://evil.example']
    answer = server.curl(path, key='"k"', body='body', headers=headers)
    first(answer, 201, b'text/x,,\nbody')
    assert answer.get('Idempotency-Expires'), answer
    again = server.curl(path, key='"k"', body='body', headers=headers)
    eq((again.status, again.replayed, again.body),
       (201, 'true', answer.body), again)
    problem(server.curl(path, key='"k"', body='other', headers=headers),
            'key-reused')
    eq(server.curl(path, key='k2', body='').status, 201)
    large = os.urandom(3 << 20)
    for _ in range(2):
        answer = server.curl(path, key='large', body=large, headers=headers)
        eq((answer.status, answer.body[-len(large):] == large), (201, True))
    # What passes through: no body, a body.
    eq(server.curl(path, 'GET').body, b',,\n')
    eq(server.curl(path, body='x').body, b'application/octet-stream,,\nx')
    eq(t.ledger(), ['1 '] * 3 + [' '] * 2)
    # A body of unknown length is not handed on in pieces.
    answer = server.curl(path, key='c', body='body',
                         headers=['Transfer-Encoding: chunked'])
    eq(answer.status, 411, answer)
    once.stop()
    answer = server.curl(path, key='large', body=large, headers=headers)
    eq((answer.status, answer.get('Retry-After')), (503, '5'), answer)
    eq(len(t.ledger()), 5)


def test_busybox_httpd_hands_requests_on(t):
    serves(t, under_busybox, PATH)


def test_mod_cgi_hands_requests_on(t):
    serves(t, under_apache, '/scripts/once.cgi/pay')


def test_busybox_loses_no_part_of_a_body_unseen(t):
    """It takes the body of a POST alone: of others it hands on what came with
    the head."""
    once = handed_on(t)
    server = under_busybox(t, once)
    head = ('PATCH %s HTTP/1.1\r\nHost: x\r\nIdempotency-Key: %s\r\n'
            'Content-Length: %d\r\n\r\n')
    for key, length, status in (('whole', 4, b'201'), ('cut', 8, b'400')):
        got = server.raw((head % (PATH, key, length) + 'body').encode())
        assert got.startswith(b'HTTP/1.1 ' + status), got
    assert b'"body-incomplete"' in got, got
    eq((t.ledger(), once.state('whole')), (['1 '], 'completed'))


def test_busybox_takes_it_as_the_interpreter_of_a_suffix(t):
    """The route has no handler: SCRIPT_FILENAME is the program."""
    once = t.once()
    os.chmod(once.socket, 0o666)
    path = t.write('once.cgi', '#!/bin/sh\nexec %s cgi %s\n' %
                   (base.ONCECTL, once.socket), 0o755)
    t.sh(OK, name='htdocs/pay.cgi')
    server = t.server('busybox', once, inside='*.cgi:%s\n' % path)
    first(server.curl('/pay.cgi', key='k', body='x'), 201)
    eq(server.curl('/pay.cgi', key='k', body='x').replayed, 'true')
    eq(t.ledger(), ['1 '])


# --- by the variables of uhttpd --------------------------------------------

def variables(method='POST', **more):
    """What uhttpd has in the environment: fields that were not sent are
    empty, Idempotency-Key is not among those that it knows."""
    names = ('HTTP_ACCEPT HTTP_ACCEPT_CHARSET HTTP_ACCEPT_ENCODING '
             'HTTP_ACCEPT_LANGUAGE HTTP_AUTHORIZATION HTTP_CONNECTION '
             'HTTP_COOKIE HTTP_HOST HTTP_ORIGIN HTTP_REFERER HTTP_USER_AGENT '
             'CONTENT_TYPE CONTENT_LENGTH').split()
    env = dict({name: '' for name in names}, PATH='/bin:/usr/bin',
               GATEWAY_INTERFACE='CGI/1.1', SERVER_SOFTWARE='uhttpd',
               SCRIPT_NAME='/cgi-bin/once.cgi', PATH_INFO='/pay',
               SCRIPT_FILENAME='/www/cgi-bin/once.cgi', QUERY_STRING='',
               SERVER_PROTOCOL='HTTP/1.1', REQUEST_METHOD=method,
               REMOTE_ADDR='192.0.2.7', REDIRECT_STATUS='200')
    env.update(more)
    return env


def start(t, address, env, **kw):
    return subprocess.Popen([base.ONCECTL, 'cgi', address], env=env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **kw)


def answer_of(out):
    """As uhttpd reads it: three digits, a blank, and a reason."""
    fields, body = parse_head(out)
    name, value = fields[0]
    assert name == 'Status' and re.match(r'\d{3} ', value), fields
    return Answer(int(value[:3]), fields[1:], body)


def ask(t, address, env, body=b''):
    run = t.run([base.ONCECTL, 'cgi', address], input=body, env=env)
    return answer_of(run.stdout), run


def test_uhttpd_keys_come_by_query_and_cookie(t):
    once = handed_on(t, defaults={'key_from': 'query:key cookie:key'})
    for more in ({'QUERY_STRING': 'key=k1'}, {'HTTP_COOKIE': 'a=b; key=k2'}):
        env = variables(**dict({'CONTENT_LENGTH': '4'}, **more))
        answer, run = ask(t, once.socket, env, b'body')
        first(answer, 201)
        eq((run.returncode, run.stderr), (0, b''))
        eq(ask(t, once.socket, env, b'body')[0].replayed, 'true')
    # A chunked body: it says nothing of it, and standard input ends.
    env = variables(QUERY_STRING='key=k3')
    answer, _ = ask(t, once.socket, env, b'whole body')
    eq(answer.body, b',,\nwhole body')
    eq(t.ledger(), ['1 '] * 3)


def test_safe_methods_do_not_wait_for_the_end_of_standard_input(t):
    once = handed_on(t)
    for method in ('GET', 'OPTIONS'):
        process = start(t, once.socket, variables(method))
        out = process.stdout.read()
        eq(process.wait(), 0)
        process.stdin.close()
        assert out.endswith(b',,\n'), (method, out)


# --- a length that is not true ---------------------------------------------

def test_length_that_lies_runs_nothing(t):
    once = handed_on(t)
    for length, status in (('9', 400), ('-1', 400), ('4x', 400),
                           ('99999999999999999999999', 400)):
        env = variables(CONTENT_LENGTH=length, HTTP_IDEMPOTENCY_KEY='k')
        answer, _ = ask(t, once.socket, env, b'body')
        eq((answer.status, answer.code), (400, 'body-incomplete'), length)
    eq(t.ledger(), [])
    # More than the length is not the body, and is not waited for.
    env = variables(CONTENT_LENGTH='4', HTTP_IDEMPOTENCY_KEY='k')
    process = start(t, once.socket, env)
    process.stdin.write(b'body and more')
    process.stdin.flush()
    answer = answer_of(process.stdout.read())
    eq(process.wait(), 0)
    process.stdin.close()
    eq((answer.status, answer.body), (201, b',,\nbody'))
    eq(t.ledger(), ['1 '])


def test_answer_before_the_body_has_arrived(t):
    once = handed_on(t, defaults={'max_request_body': '1K'})
    env = variables(CONTENT_LENGTH=str(8 << 20), HTTP_IDEMPOTENCY_KEY='k')
    answer, _ = ask(t, once.socket, env, bytes(8 << 20))
    problem(answer, 'body-too-large')
    server = under_apache(t, once)
    problem(server.curl('/scripts/once.cgi/pay', key='k', body=bytes(8 << 20)),
            'body-too-large')
    eq(t.ledger(), [])


# --- hostile variables -----------------------------------------------------

def test_variables_of_the_web_server_do_not_steer_the_program(t):
    once = handed_on(t, 'status 200; env | sort')
    env = variables(HTTP_IDEMPOTENCY_KEY='k', HTTP_PROXY='http://evil',
                    LD_BIND_NOW='1', ONCE_TOKEN='forged',
                    ONCE_DATABASE='/forged', FCGI_WEB_SERVER_ADDRS='x',
                    LISTEN_FDS='1', LISTEN_PID='1', HTTP_X='a=b\nc: d')
    answer, _ = ask(t, once.socket, env)
    eq(answer.status, 200, answer)
    text = answer.body.decode()
    for name in ('HTTP_PROXY', 'LD_BIND_NOW', 'forged'):
        assert name not in text, text
    assert 'HTTP_X=a=b\n' in text and '\nc: d\n' in text, text


def test_variables_that_are_too_long_are_refused(t):
    once = handed_on(t)
    env = variables(HTTP_IDEMPOTENCY_KEY='k')
    for n in range(20):
        env['HTTP_X%d' % n] = 'x' * 100000
    answer, run = ask(t, once.socket, env)
    eq((answer.status, run.returncode), (400, 75), answer)
    assert b'variables of the request' in run.stderr, run
    eq(t.ledger(), [])


def test_program_that_oncewrap_runs_itself_does_not_ask_it_again(t):
    """Without a handler the route runs SCRIPT_FILENAME: this very program."""
    once = t.once()
    path = t.write('once.cgi', '#!/bin/sh\nexec %s cgi %s\n' %
                   (base.ONCECTL, once.socket), 0o755)
    env = variables(HTTP_IDEMPOTENCY_KEY='k', CONTENT_LENGTH='0',
                    SCRIPT_FILENAME=path)
    answer, _ = ask(t, once.socket, env)
    eq(answer.status, 500, answer)
    eq(once.state('k'), 'failed_retryable')
    base.wait_until(lambda: 'its route needs a handler' in once.log(),
                    'the log says why')


# --- ends on the way -------------------------------------------------------

def test_client_that_goes_away_changes_nothing(t):
    gate = t.gate()
    once = handed_on(t, 'ledger; gate gate; status 201; echo done')
    env = variables(CONTENT_LENGTH='4', HTTP_IDEMPOTENCY_KEY='k')
    process = start(t, once.socket, env)
    ended = Background(lambda: process.communicate(b'body'))
    gate.wait()
    process.send_signal(signal.SIGKILL)
    ended.result()
    gate.open()
    once.wait_state('k', 'completed')
    answer, _ = ask(t, once.socket, env, b'body')
    eq((answer.replayed, answer.body), ('true', b'done\n'))
    # In the middle of the body: nothing runs.
    env['HTTP_IDEMPOTENCY_KEY'] = 'half'
    process = start(t, once.socket, env)
    process.stdin.write(b'bo')
    process.stdin.flush()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    gate.open()
    answer, _ = ask(t, once.socket, env, b'rest')
    first(answer, 201, b'done\n')
    eq(t.ledger(), ['1 ', '1 '])


def listener(t):
    s = socket.socket(socket.AF_UNIX)
    s.bind(t.path('fake.sock'))
    s.listen()
    t.defer(s.close)
    return s


def test_socket_that_is_not_there_is_503(t):
    env = variables(CONTENT_LENGTH='4')
    path = t.path('none.sock')
    for make, why in ((lambda: None, b'there is no such socket'),
                      (lambda: socket.socket(socket.AF_UNIX).bind(path),
                       b'nothing listens there')):
        make()
        answer, run = ask(t, path, env, b'body')
        eq((answer.status, answer.get('Retry-After'), run.returncode),
           (503, '5', 75), answer)
        assert why in run.stderr and path.encode() in run.stderr, run
        assert path.encode() not in answer.body, answer
    for address in ('fd:0', 'relative', 'tcp:localhost'):
        answer, run = ask(t, address, env, b'body')
        eq((answer.status, run.returncode), (500, 75), answer)
        assert address.encode() in run.stderr or b'name the' in run.stderr


def test_connection_that_ends_without_an_answer_is_502(t):
    s = listener(t)
    env = variables(CONTENT_LENGTH='4')
    process = start(t, t.path('fake.sock'), env)
    conn, _ = s.accept()
    conn.close()
    out, err = process.communicate(b'body')
    eq((answer_of(out).status, process.returncode), (502, 1))
    assert b'not whole' in err, err
    # What is no FastCGI.
    process = start(t, t.path('fake.sock'), env)
    conn, _ = s.accept()
    conn.sendall(b'HTTP/1.1 200 OK\r\n\r\n')
    out, err = process.communicate(b'body')
    conn.close()
    eq((answer_of(out).status, process.returncode), (502, 1))
    assert b'not FastCGI' in err, err
