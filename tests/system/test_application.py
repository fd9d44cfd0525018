"""FastCGI applications that oncewrap does not start: php-fpm, and one that can
say anything."""
import glob
import os
import signal
import socket
import struct
import subprocess
import threading

import base
import fcgi
import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background

RETRYABLE, UNKNOWN, COMPLETED = 'failed_retryable', 'unknown', 'completed'
SCRIPT = r'''<?php
$d = '%s';
file_put_contents("$d/ledger", ($_SERVER['ONCE_ATTEMPT'] ?? '') . ' ' .
    getmypid() . "\n", FILE_APPEND | LOCK_EX);
function gate($d) {
    file_put_contents("$d/gate.here", getmypid() . "\n");
    $f = fopen("$d/gate.open", 'r');
    stream_set_read_buffer($f, 0);
    fread($f, 1);
}
header('Content-Type: text/plain');
foreach (explode(' ', str_replace('+', ' ', $_SERVER['QUERY_STRING'])) as $w) {
    if (is_numeric($w)) http_response_code((int)$w);
    if ($w == 'gate') gate($d);
    if ($w == 'exit3') { echo "left"; exit(3); }
    if ($w == 'fatal') no_such_function();
    if ($w == 'cut') { echo 'some'; no_such_function(); }
    if ($w == 'throw') throw new Exception('oops');
    if ($w == 'flush') { echo str_repeat('x', 100000); flush(); }
    if ($w == 'finish') { echo 'early'; fastcgi_finish_request(); gate($d); }
    if ($w == 'no') once_outcome('not-executed');
    if ($w == 'yes') once_outcome('completed');
    if ($w == 'echo') echo file_get_contents('php://input');
}
echo 'done ' . getmypid();
'''


class Fpm:
    """A php-fpm of Debian's, with one child."""

    def __init__(self, t, pool='', php=()):
        self.t, self.pool, self.php = t, pool, php
        self.socket = t.path('fpm.sock')
        self.script = t.write('app.php', SCRIPT % t.dir)
        self.start()

    def start(self):
        t = self.t
        conf = t.write('fpm.conf', '''[global]
error_log = %s
daemonize = no
process_control_timeout = 0
[www]
listen = %s
pm = static
pm.max_children = 1
%s%s
''' % (t.path('fpm.log'), self.socket,
            'user = root\ngroup = root\n' if os.geteuid() == 0 else '',
            self.pool))
        found = sorted(glob.glob('/usr/sbin/php-fpm[0-9]*'))
        argv = [found[-1] if found else base.need('php-fpm'),
                '-n', '-F', '-y', conf]
        if os.geteuid() == 0:
            argv.append('-R')
        for setting in self.php:
            argv += ['-d', setting]
        self.process = t.popen(argv, 'fpm.err', stdout=subprocess.DEVNULL)
        t.defer(self.stop)
        wait_until(self.listens, 'php-fpm listens')

    def listens(self):
        assert self.process.poll() is None, self.t.read('fpm.err')
        try:
            fcgi.Conn(self.socket).close()
            return True
        except OSError:
            return False

    def stop(self):
        """SIGTERM: php-fpm kills its children at once."""
        if self.process.poll() is not None:
            return
        children = proc.descendants(self.process.pid)
        self.process.terminate()
        self.process.wait(20)
        wait_until(lambda: not any(map(proc.alive, children)), 'they ended')


def php(t, fpm, **defaults):
    once = t.once(handler='unix:' + fpm.socket, defaults=defaults)
    post = once.post

    def with_script(*args, **kw):
        return post(*args, params={'SCRIPT_FILENAME': fpm.script}, **kw)
    once.post = with_script
    return once


def test_php_fpm_answers_once(t):
    once = php(t, Fpm(t))
    answer = once.post('k', b'a=b', query='201+echo')
    first(answer, 201)
    assert answer.body.startswith(b'a=bdone '), answer
    replay(once.post('k', b'a=b', query='201+echo'), answer)
    body = b'0123456789' * 100000
    answer = once.post('big', body, query='echo')
    eq(answer.body[:len(body)], body)
    eq(len(t.ledger()), 2)


def test_php_fpm_child_that_is_killed_is_unknown(t):
    gate = t.gate()
    once = php(t, Fpm(t))
    run = Background(lambda: once.post('k', query='gate'))
    proc.kill(gate.wait(), signal.SIGKILL)
    problem(run.result(), 'handler-failed', unknown=True)
    eq(once.state('k'), UNKNOWN)
    problem(once.post('k', query='gate'), 'outcome-unknown')
    first(once.post('next', query='200'), 200)


def test_php_fpm_request_terminate_timeout_is_unknown(t):
    t.gate()
    once = php(t, Fpm(t, pool='request_terminate_timeout = 1s\n'))
    problem(once.post('k', query='gate'), 'handler-failed', unknown=True)
    eq(once.state('k'), UNKNOWN)


def test_timeout_of_an_application_is_unknown_and_it_may_run_on(t):
    gate = t.gate()
    once = php(t, Fpm(t), timeout='1s')
    problem(once.post('k', query='gate'), 'handler-timeout', unknown=True)
    pid = gate.wait()
    assert proc.alive(pid), 'it is not ours to end'
    gate.open()
    eq(once.state('k'), UNKNOWN)


def remove(once):
    """The next one with that name begins with an empty store."""
    if not base.POSTGRES:
        os.unlink(once.database)


def test_php_endings_by_their_status(t):
    """END_REQUEST has status 0 always, so the answer's status decides."""
    for shown, fatal in (('0', (500, UNKNOWN)), ('1', (200, COMPLETED))):
        fpm = Fpm(t, php=('display_errors=' + shown,))
        once = php(t, fpm)
        for key, query, status, state in (
                ('exit3', 'exit3', 200, COMPLETED),
                ('fatal', 'fatal', *fatal),
                ('cut', 'cut', 200, COMPLETED),
                ('503', '503', 503, RETRYABLE),
                ('505', '505', 505, UNKNOWN),
                ('404', '404', 404, COMPLETED)):
            eq(once.post(key, query=query).status, status, query)
            eq(once.state(key), state, (shown, query))
        once.stop()
        fpm.stop()
        remove(once)


def test_a_full_queue_is_tried_again(t):
    gate = t.gate()
    fpm = Fpm(t, pool='listen.backlog = 1\n')
    once = php(t, fpm, timeout='4s', key='optional')
    busy = Background(lambda: once.post('busy', query='gate'))
    gate.wait()
    held = []
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        held.append(s)
        try:
            s.connect(fpm.socket)
        except BlockingIOError:
            break
    problem(once.post('k', query='200'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)
    problem(busy.result(), 'handler-timeout', unknown=True)
    later = Background(lambda: once.post('j', query='200'))
    wait_until(lambda: once.state('j') == 'in_progress', 'it tries')
    gate.open()
    for s in held:
        s.close()
    first(later.result(), 200)


def test_a_restart_in_mid_request(t):
    gate = t.gate()
    fpm = Fpm(t)
    once = php(t, fpm)
    run = Background(lambda: once.post('k', query='gate'))
    gate.wait()
    fpm.stop()
    problem(run.result(), 'handler-failed', unknown=True)
    eq(once.state('k'), UNKNOWN)
    problem(once.post('j', query='200'), 'handler-not-started')
    eq(once.state('j'), RETRYABLE)
    (line,) = once.log_lines('event=handler-not-started .*key=j ')
    assert ('error="No such file or directory" why="there is no such socket: '
            'is the application running?"') in line, line
    fpm.start()
    first(once.post('j', query='200'), 200)
    problem(once.post('k', query='gate'), 'outcome-unknown')


# --- one that can say anything ---

class Fake:
    """Answers each request with some bytes, once it is read or before."""

    def __init__(self, t, family=socket.AF_UNIX):
        self.listener = socket.socket(family)
        self.path = t.path('fake.sock')
        self.listener.bind(self.path if family == socket.AF_UNIX
                           else ('127.0.0.1', 0))
        self.listener.listen(8)
        self.answer = b''
        self.requests = 0
        self.waits = False      # for the peer to close first
        threading.Thread(target=self.serve, daemon=True).start()
        t.defer(self.listener.close)

    @property
    def address(self):
        if self.listener.family == socket.AF_UNIX:
            return 'unix:' + self.path
        return 'tcp:127.0.0.1:%d' % self.listener.getsockname()[1]

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.requests += 1
            data = b''
            while not data.endswith(struct.pack('>BBHHBB', 1, 5, 1, 0, 0, 0)):
                data += conn.recv(65536)
            conn.sendall(self.answer)
            if self.waits:
                assert conn.recv(1) == b'', 'one request, one connection'
            conn.close()


def end(status=0, protocol=0):
    return fcgi.record(fcgi.END, 1, struct.pack('>IB3x', status, protocol))


OUT = fcgi.record(fcgi.STDOUT, 1, b'Status: 201\r\n\r\nx')


def test_the_ends_that_an_application_can_say(t):
    rows = (
        (OUT + end(), 201, COMPLETED),
        (OUT + end(75), 201, RETRYABLE),
        (OUT + end(3), 'handler-failed', UNKNOWN),
        (OUT + end(0x80000000), 'handler-failed', UNKNOWN),
        (OUT + end(0x80000000 | 75), 'handler-failed', UNKNOWN),
        (OUT, 'handler-failed', UNKNOWN),
        (OUT + end()[:15], 'handler-failed', UNKNOWN),
        (b'', 'handler-failed', UNKNOWN),
        (b'HTTP/1.1 200 OK\r\n\r\n', 'handler-failed', UNKNOWN),
        (end(), 'handler-failed', UNKNOWN),
    ) + tuple((end(0, protocol), 'handler-not-started', RETRYABLE)
              for protocol in (1, 2, 3)) + \
        tuple((OUT + end(0, protocol), 'handler-failed', UNKNOWN)
              for protocol in (1, 2, 3))
    for family in (socket.AF_UNIX, socket.AF_INET):
        fake = Fake(t, family)
        once = t.once(handler=fake.address, name='once%d' % family)
        for n, (data, want, state) in enumerate(rows):
            fake.answer = data
            answer = once.post('k%d' % n)
            if isinstance(want, int):
                first(answer, want)
            else:
                problem(answer, want, unknown=state == UNKNOWN)
            eq(once.state('k%d' % n), state, (n, data))
        eq(fake.requests, len(rows))
        once.stop()


def test_a_connection_is_closed_with_its_answer(t):
    """A worker of php-fpm takes no other request before that."""
    fake = Fake(t)
    fake.answer, fake.waits = OUT + end(), True
    once = t.once(handler=fake.address)
    for n in range(3):
        first(once.post('k%d' % n), 201)
        eq((once.get().status, once.get().body), (201, b'x'))
    eq(fake.requests, 9)


def test_unguarded_requests_get_what_came(t):
    fake = Fake(t)
    once = t.once(handler=fake.address)
    fake.answer = OUT + end()
    eq((once.get().status, once.get().body), (201, b'x'))
    fake.listener.close()
    os.unlink(fake.path)
    eq(once.get().status, 502)


def test_explicit_holds_for_programs_too(t):
    once = t.once(handler=t.sh(
        'printf "%sStatus: 201\\n\\n" "$QUERY_STRING"'),
        defaults={'outcome': 'explicit'})
    eq(once.post('a').status, 201)
    eq(once.state('a'), UNKNOWN)
    eq(once.post('b', query='Idempotency-Outcome: completed\n').status, 201)
    eq(once.state('b'), COMPLETED)


def test_what_an_application_cannot_promise_is_refused(t):
    for option, word in (('on_crash = resume', 'resume'),
                         ('share_database = yes', 'share_database'),
                         ('protocol = fastcgi', 'protocol')):
        for order in (0, 1):
            lines = ['handler = unix:/run/php/php-fpm.sock', option]
            file = t.write('bad.conf', '[route /a]\n' + '\n'.join(
                lines[::-1] if order else lines) + '\n')
            run = t.run([base.ONCEWRAP, '-t', '-f', file])
            eq(run.returncode, 1)
            text = run.stderr.decode()
            assert 'bad.conf:3: ' in text and word in text, text
            assert 'oncewrap starts' in text or 'take it out' in text, text


def test_bad_addresses_are_refused(t):
    for value in ('unix:relative', 'tcp:host', 'tcp:host:0', 'unix:/a b.sock c',
                  'tcp:host:80 x'):
        file = t.write('bad.conf', '[route /a]\nhandler = %s\n' % value)
        run = t.run([base.ONCEWRAP, '-t', '-f', file])
        if value != 'unix:/a b.sock c':
            eq(run.returncode, 1, value)
            assert b'bad.conf:2: handler: ' in run.stderr, run.stderr
            assert run.stderr.endswith(
                b' is not unix:/path or tcp:host:port\n'), run.stderr
    file = t.write('bad.conf', '[effect a]\nprogram = unix:/run/x\n')
    eq(t.run([base.ONCEWRAP, '-t', '-f', file]).returncode, 1)
