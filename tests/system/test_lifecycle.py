"""Command line, sockets, signals."""
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import base
import fcgi
import proc
import servers
from answer import eq, first, problem
from base import wait_until
from disk import Disk
from once import Background

OK = 'ledger; status 201; echo done'


def wrap(t, *args, **kw):
    """Runs oncewrap to its end."""
    kw.setdefault('stdin', subprocess.DEVNULL)
    return subprocess.run([base.ONCEWRAP] + list(args), cwd=t.dir,
                          capture_output=True, text=True,
                          timeout=base.WAIT * base.SLOW, **kw)


def fails(run, *texts, status=1):
    eq(run.returncode, status, run.stderr)
    for text in texts:
        assert text in run.stderr, 'no %r in %r' % (text, run.stderr)
    eq(run.stdout, '')


# --- command line ---

def test_version(t):
    run = wrap(t, '-V')
    eq(run.returncode, 0, run.stderr)
    assert re.fullmatch(r'oncewrap \d+\.\d+\S*\n', run.stdout), run.stdout


def test_the_start_names_the_socket(t):
    once = t.once(handler=t.sh(OK))
    assert once.log_lines('event=started .* socket=unix:%s workers='
                          % once.socket), once.log()


def test_check_of_a_good_file(t):
    once = t.once(start=False, handler=t.sh(OK))
    run = wrap(t, '-t', '-f', once.file)
    eq((run.returncode, run.stdout), (0, 'ok: 0 routes\n'), run.stderr)
    t.write('one.conf', '[route /a]\n')
    eq(wrap(t, '-t', '-f', t.path('one.conf')).stdout, 'ok: 1 route\n')
    assert not os.path.exists(once.database), 'made a database'
    assert not os.path.exists(once.socket), 'made a socket'


BAD = (
    ('[server]\n\nworkers = none\n', 3, 'workers'),
    ('[server]\nworkers = 0\n', 2, 'workers'),
    ('[server]\nworkers = 1025\n', 2, 'workers'),
    ('[server]\nno_such = 1\n', 2, 'no_such'),
    ('[nowhere]\na = 1\n', 1, 'nowhere'),
    ('[server]\nworkers = 1\nworkers = 2\n', 3, 'workers'),
    ('[defaults]\ntimeout = 5 apples\n', 2, 'timeout'),
    ('[defaults]\nkey = maybe\n', 2, 'maybe'),
    ('[defaults]\nscope_required = 1\n', 2, 'scope_required'),
    ('[defaults]\nrelease = 99\n', 2, 'release'),
    ('[defaults]\nrelease = 6xx\n', 2, 'release'),
    ('[defaults]\nmax_response = 5X\n', 2, 'max_response'),
    ('[defaults]\nkey_max_length = 5000\n', 2, 'key_max_length'),
    ('[defaults]\nhandler = "/bin/x\n', 2, 'handler'),
    ('[defaults]\nfingerprint_ignore = no/slash\n', 2, 'fingerprint_ignore'),
    ('[defaults]\numask = 999\n', 2, 'umask'),
    ('[defaults]\nworkers = 1\n', 2, 'workers'),
    ('[server]\nhandler = /bin/true\n', 2, 'handler'),
    ('[route pay]\nkey = required\n', None, 'pay'),
    ('[route /pay]\nkey = required\n[route /pay]\nkey = optional\n', None,
     '/pay'),
    ('[server]\nsocket = tcp:nowhere\n', 2, 'socket'),
    ('[server]\nsocket = fd:x\n', 2, 'socket'),
    ('[server]\nsocket = tcp:127.0.0.1:9\nallow_peers = root\n', None,
     'allow_peers'),
    ('[server]\nallow_peers = no-such-user\nsocket = unix:/tmp/x\n', 2,
     'no-such-user'),
    ('[server]\nsocket_user = no-such-user\n', 2, 'no-such-user'),
    ('[server]\n\nsocket_group = no-such-group\n', 3, 'no-such-group'),
    ('[defaults]\nuser = no-such-user\n', 2, 'no-such-user'),
    ('[route /x]\n\ngroup = no-such-group\n', 3, 'no-such-group'),
    ('[effect mail]\nprogram = /bin/true\nuser = no-such-user\n', 3,
     'no-such-user'),
    ('[effect mail]\nprogram = /bin/true\ngroup = no-such-group\n', 3,
     'no-such-group'),
    ('[effect mail]\ntimeout = 1s\n', 1, 'program'),
    ('[route /x]\nasync = prefer\n', 2, 'status_path'),
    ('[route /x]\nconcurrent = accept\n', 2, 'status_path'),
    ('[route /x]\nmax_request_age = 1h\n', 2, 'request_timestamp'),
    ('[route /x]\nmethods = post\n', 2, 'upper case'),
    ('[route /x]\nscope = Authorization\n', 2, 'HTTP_X_USER'),
    ('[defaults]\nkey_from = header:HTTP_KEY\n', 2, 'name of the field'),
    ('[server]\njust words\n', 2, ''),
    ('words = 1\n', 1, ''),
    ('[server\n', 1, ''),
)


def test_check_of_bad_files_names_file_line_and_option(t):
    for text, line, name in BAD:
        path = t.write('bad.conf', text)
        run = wrap(t, '-t', '-f', path)
        eq(run.returncode, 1, '%r: %r' % (text, run.stderr))
        match = re.search(r'(\S*bad\.conf):(\d+): (.+)', run.stderr)
        assert match, '%r: %r' % (text, run.stderr)
        if line:
            eq(int(match.group(2)), line, '%r: %s' % (text, run.stderr))
        assert name in match.group(3), '%r: %s' % (text, run.stderr)


def test_a_bad_file_does_not_start(t):
    path = t.write('bad.conf', '[server]\nworkers = none\n')
    fails(wrap(t, '-f', path, '-s', t.path('s')), 'bad.conf:2: ', 'workers')


def test_a_missing_file(t):
    for args in (['-t'], []):
        fails(wrap(t, *args, '-f', t.path('missing.conf')), 'missing.conf')


def test_unknown_flag_is_a_usage_error(t):
    for args in (['-x'], ['-w'], ['-f']):
        run = wrap(t, *args)
        eq(run.returncode, 2, run)
        assert 'usage' in run.stderr.lower(), run.stderr


def test_help(t):
    for flag in ('-h', '--help'):
        run = wrap(t, flag)
        eq((run.returncode, run.stderr), (0, ''), run)
        assert run.stdout.startswith('usage: oncewrap '), run.stdout


def test_flag_with_a_bad_value(t):
    for args, text in ((['-w', '0'], 'w'), (['-w', 'x'], 'w'),
                       (['-s', 'tcp:x'], 's'), (['-s', ''], 's'),
                       (['-s', 'fd:99'], '99')):
        run = wrap(t, *args)
        eq(run.returncode, 1, run)
        assert text in run.stderr, run.stderr


def test_descriptor_0_that_is_no_socket_is_a_usage_error(t):
    with open(t.write('plain', 'x')) as plain:
        for stdin in (subprocess.DEVNULL, plain):
            run = wrap(t, stdin=stdin)
            assert run.returncode > 0, run
            assert run.stderr, run


def test_descriptor_0_that_does_not_listen_is_a_usage_error(t):
    a, b = socket.socketpair()
    with a, b:
        run = wrap(t, stdin=a)
    assert run.returncode > 0 and run.stderr, run


def test_flags_override_the_file(t):
    once = t.once(handler=t.sh('status 500'), start=False,
                  args=['-d', t.path('other.db'), '-s', t.path('other.sock'),
                        '-w', '2', '--', t.sh(OK)])
    once.address = t.path('other.sock')
    once.start()
    first(once.post('k'), 201)
    assert t.exists('other.db') and not t.exists('once.db')
    assert not t.exists('once.sock')


def test_database_is_private(t):
    once = t.once(handler=t.sh(OK))
    first(once.post('k'), 201)
    for name in os.listdir(t.dir):
        if name.startswith('once.db'):
            mode = stat.S_IMODE(os.stat(t.path(name)).st_mode)
            eq(mode & 0o077, 0, name)


def test_database_by_default_in_the_working_directory(t):
    path = t.path('bare.sock')
    t.popen([base.ONCEWRAP, '-s', path, '--', t.sh(OK)], 'bare.log',
            cwd=t.dir, stdin=subprocess.DEVNULL)
    wait_until(lambda: connects(path), 'it listens')
    params = fcgi.request_params('POST', '/pay', key='k')
    first(fcgi.exchange(path, params), 201)
    assert t.exists('oncewrap.db')


def connects(address):
    try:
        fcgi.Conn(address).close()
        return True
    except OSError:
        return False


# --- sockets ---

def test_socket_mode(t):
    for mode in ('0660', '0600', '0666'):
        once = t.once(handler=t.sh(OK), server={'socket_mode': mode},
                      name='m' + mode)
        eq(stat.S_IMODE(os.stat(once.socket).st_mode), int(mode, 8))


def test_socket_mode_is_0660_by_default(t):
    once = t.once(handler=t.sh(OK))
    eq(stat.S_IMODE(os.stat(once.socket).st_mode), 0o660)


def test_socket_user_and_group(t):
    base.need_root()
    once = t.once(handler=t.sh(OK), server={'socket_user': 'www-data',
                                            'socket_group': 'daemon'})
    status = os.stat(once.socket)
    eq((status.st_uid, status.st_gid),
       (pwd.getpwnam('www-data').pw_uid, 1))


def test_socket_is_removed_at_the_end(t):
    once = t.once(handler=t.sh(OK))
    once.stop()
    assert not os.path.exists(once.socket)


def test_socket_of_another_process_at_the_path_is_left_alone(t):
    once = t.once(handler=t.sh(OK))
    os.unlink(once.socket)
    other = socket.socket(socket.AF_UNIX)
    t.defer(other.close)
    other.bind(once.socket)
    other.listen(1)
    once.stop()
    assert os.path.exists(once.socket), 'it was removed'


def test_stale_socket_is_replaced(t):
    once = t.once(handler=t.sh(OK))
    once.kill()
    assert os.path.exists(once.socket)
    once.start()
    first(once.post('k'), 201)


def test_socket_that_a_process_listens_on_is_left_alone(t):
    once = t.once(handler=t.sh(OK))
    run = wrap(t, '-f', once.file, '-d', t.path('other.db'))
    assert run.returncode > 0, run
    assert once.socket in run.stderr, run.stderr
    first(once.post('k'), 201)


def test_file_that_is_no_socket_is_left_alone(t):
    path = t.write('precious', 'data')
    run = wrap(t, '-s', path)
    assert run.returncode > 0 and path in run.stderr, run
    eq(t.read('precious'), b'data')


def test_socket_in_a_missing_folder(t):
    path = t.path('missing/sock')
    run = wrap(t, '-s', path)
    assert run.returncode > 0 and path in run.stderr, run


def test_socket_path_too_long(t):
    path = '/tmp/' + 'x' * 200
    run = wrap(t, '-s', path)
    assert run.returncode > 0 and 'socket' in run.stderr, run


def test_bare_path(t):
    once = t.once(handler=t.sh(OK), server={'socket': t.path('bare')},
                  start=False)
    once.address = t.path('bare')
    once.start()
    first(once.post('k'), 201)


def tcp(t, host, address):
    port = servers.free_port()
    once = t.once(handler=t.sh(OK), start=False,
                  server={'socket': 'tcp:%s:%d' % (host, port)})
    once.address = (address, port)
    once.start()
    first(once.post('k'), 201)


def test_tcp(t):
    tcp(t, '127.0.0.1', '127.0.0.1')


def test_tcp_by_name(t):
    tcp(t, 'localhost', socket.getaddrinfo('localhost', 1)[0][4][0])


def test_tcp_ipv6(t):
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(('::1', 0))
    except OSError:
        raise base.Skip('no IPv6')
    tcp(t, '[::1]', '::1')


def test_tcp_port_in_use(t):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        name = '127.0.0.1:%d' % s.getsockname()[1]
        run = wrap(t, '-s', 'tcp:' + name)
    assert run.returncode > 0 and name in run.stderr, run


def inherited(t, argv, listener, **kw):
    """An oncewrap that gets its socket from us."""
    process = t.popen([base.ONCEWRAP, '-d', t.path('once.db')] + argv,
                      'inherited.log', cwd=t.dir, **kw)
    params = fcgi.request_params('POST', '/pay', key='k')
    first(fcgi.exchange(listener.getsockname(), params), 201)
    process.terminate()
    eq(process.wait(base.WAIT * base.SLOW), 0)
    assert os.path.exists(listener.getsockname()), 'removed what is not ours'


def test_descriptor_0_that_listens(t):
    listener = base.listener(t)
    inherited(t, ['--', t.sh(OK)], listener, stdin=listener)


def test_fd_0(t):
    listener = base.listener(t)
    inherited(t, ['-s', 'fd:0', '--', t.sh(OK)], listener, stdin=listener)


def test_fd_n(t):
    listener = base.listener(t)
    inherited(t, ['-s', 'fd:%d' % listener.fileno(), '--', t.sh(OK)],
              listener, stdin=subprocess.DEVNULL,
              pass_fds=[listener.fileno()])


def test_listen_fds(t):
    listener = base.listener(t)
    script = t.py('os.dup2(%d, 3)\n'
                  'os.environ.update(LISTEN_PID=str(os.getpid()), '
                  'LISTEN_FDS="1")\n'
                  'os.execv(sys.argv[1], sys.argv[1:])' % listener.fileno())
    process = t.popen([script, base.ONCEWRAP, '-d', t.path('once.db'), '--',
                       t.sh('status 201; echo "<$LISTEN_FDS>"')],
                      'inherited.log', cwd=t.dir, stdin=subprocess.DEVNULL,
                      pass_fds=[listener.fileno()])
    params = fcgi.request_params('POST', '/pay', key='k')
    first(fcgi.exchange(listener.getsockname(), params), 201, b'<>\n')
    process.terminate()
    eq(process.wait(base.WAIT * base.SLOW), 0)


def test_listen_fds_of_another_process_are_not_ours(t):
    env = dict(os.environ, LISTEN_PID='1', LISTEN_FDS='1')
    run = wrap(t, env=env)
    assert run.returncode > 0, run


def test_spawn_fcgi(t):
    program = base.need('spawn-fcgi')
    path = t.path('spawned.sock')
    t.popen([program, '-n', '-s', path, '--', base.ONCEWRAP, '-d',
             t.path('once.db'), '--', t.sh(OK)], 'spawned.log', cwd=t.dir,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: connects(path), 'it listens')
    params = fcgi.request_params('POST', '/pay', key='k')
    first(fcgi.exchange(path, params), 201)


# --- allow_peers ---

def ask_as(t, once, user):
    """What a peer of that user gets: an answer, or None."""
    who = pwd.getpwnam(user)
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = b'failed'
        try:
            os.setgid(who.pw_gid)
            os.setuid(who.pw_uid)
            try:
                text = b'%d' % once.post('k').status
            except (fcgi.Closed, BrokenPipeError, ConnectionResetError):
                text = b'closed'
            except Exception as error:    # noqa: told to the parent
                text = repr(error).encode()
        finally:
            os.write(w, text)
            os._exit(0)
    os.close(w)
    with os.fdopen(r, 'rb') as f:
        text = f.read().decode()
    os.waitpid(pid, 0)
    return text


def test_allow_peers(t):
    base.need_root()
    once = t.once(handler=t.sh(OK), server={
        'socket_mode': '0666', 'allow_peers': 'root, www-data'})
    eq(ask_as(t, once, 'www-data'), '201')
    eq(ask_as(t, once, 'nobody'), 'closed')
    first_or_replay = once.post('k')
    eq(first_or_replay.status, 201)


def test_allow_peers_by_number(t):
    base.need_root()
    once = t.once(handler=t.sh(OK), server={
        'socket_mode': '0666',
        'allow_peers': '%d' % pwd.getpwnam('www-data').pw_uid}, start=False)
    once.start(wait=False)
    wait_until(lambda: connects(once.socket), 'it listens')
    eq(ask_as(t, once, 'www-data'), '201')
    eq(ask_as(t, once, 'root'), 'closed')
    eq(len(t.ledger()), 1)


# --- signals ---

def test_sigterm_and_sigint_end_with_0(t):
    for number in (signal.SIGTERM, signal.SIGINT):
        once = t.once(handler=t.sh(OK), name='s%d' % number)
        once.process.send_signal(number)
        eq(once.wait(), 0)


def test_sigterm_lets_a_successor_take_the_socket_at_once(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201; echo done'))
    conn = once.begin('k')
    gate.wait()
    once.term()
    wait_until(lambda: not os.path.exists(once.socket), 'the socket is gone')
    two = t.once(handler=t.sh(OK), name='two', database=once.database,
                 server={'socket': once.socket}, start=False)
    two.address = once.socket
    two.start()
    problem(two.post('k'), 'key-in-progress')
    gate.open()
    first(conn.answer(), 201, b'done\n')
    eq(once.wait(), 0)
    eq(two.post('k').replayed, 'true')


def test_sigterm_lets_handlers_finish(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201; echo done'))
    guarded = once.begin('k')
    gate.wait()
    passed = once.begin(method='GET')
    gate.wait()
    once.term()
    wait_until(lambda: not connects(once.socket), 'no more connections')
    assert once.alive() and guarded.silent()
    gate.open(2)
    first(guarded.answer(), 201, b'done\n')
    first(passed.answer(), 201, b'done\n')
    eq(once.wait(), 0)
    once.start()
    eq(once.post('k').replayed, 'true')


def test_sigterm_closes_idle_connections(t):
    once = t.once(handler=t.sh(OK))
    conn = once.connect()
    kept = once.begin('k', keep=True)
    first(kept.answer(), 201)
    once.term()
    assert conn.is_closed() and kept.is_closed()
    eq(once.wait(), 0)


def arriving(once, key):
    """A connection and the bytes of a request for it."""
    params = fcgi.request_params('POST', '/pay', key=key)
    return once.connect(), fcgi.full_request(params)


def test_sigterm_lets_a_request_that_is_arriving_in(t):
    once = t.once(handler=t.sh(OK))
    kept = once.begin('kept', keep=True)
    first(kept.answer(), 201)
    fresh, whole = arriving(once, 'fresh')
    begun, parts = arriving(once, 'begun')
    begun.send(parts[:20])
    first(once.post('accepted'), 201)
    once.term()
    eq(kept.is_closed(), True)      # so it has stopped
    begun.send(parts[20:])
    first(begun.answer(), 201)
    fresh.send(whole)
    first(fresh.answer(), 201)
    eq(once.wait(), 0)


def test_sigterm_lets_those_in_who_wait_to_be_accepted(t):
    once = t.once(handler=t.sh(OK))
    once.halt()
    conns = [once.begin('k%d' % i) for i in range(100)]
    once.term()
    once.process.send_signal(signal.SIGCONT)
    for conn in conns:
        first(conn.answer(), 201)
    eq(once.wait(), 0)
    eq(len(t.ledger()), 100)


RESTARTS = 25
CLIENTS = 16


def test_restart_under_load_loses_no_request(t):
    """The listening socket outlives each process, as under systemd."""
    sock = base.listener(t, 'once.sock')
    once = t.once(handler=t.sh(OK), listen=False, pass_fds=[sock.fileno()],
                  args=['-s', 'fd:%d' % sock.fileno()])
    done = threading.Event()
    t.defer(done.set)
    good = [0] * CLIENTS

    def client(number):
        while not done.is_set():
            first(once.post('k%d.%d' % (number, good[number])), 201)
            good[number] += 1
    clients = [Background(lambda n=n: client(n)) for n in range(CLIENTS)]
    def served(n):
        for c in clients:
            if c.done():
                c.result()          # says what it got
        return sum(good) >= n

    for _ in range(RESTARTS):
        enough = sum(good) + 20
        wait_until(lambda: served(enough), 'requests are answered')
        once.stop()
        once.start()
    done.set()
    for c in clients:
        c.result()
    eq(len(t.ledger()), sum(good))
    eq({row['state'] for row in once.ls()}, {'completed'})


def test_drain_timeout_ends_handlers_that_are_deaf_too(t):
    gate = t.gate()
    once = t.once(handler=t.sh("trap '' TERM; gate gate"),
                  server={'drain_timeout': '200ms'},
                  defaults={'kill_after': '1h'})
    conn = once.begin('k')
    pid = gate.wait()
    once.stop()
    problem(conn.answer(), 'handler-failed', unknown=True)
    eq(proc.alive(pid), False)
    eq(once.state('k'), 'unknown')


FLOOD = '''
out(b"Content-Type: text/plain\\r\\n\\r\\n")
while True:
    os.write(1, b"x" * 65536)
'''


def test_drain_timeout_ends_a_stream_that_nobody_reads(t):
    once = t.once(handler=t.py(FLOOD), server={'drain_timeout': '100ms',
                                               'io_timeout': '1h'})
    conn = once.begin(method='GET')
    conn.read(1 << 16)
    once.stop()
    conn.close()


def test_drain_timeout_ends_a_stream_that_is_read_slowly(t):
    """Slow enough that there is always more output to be had."""
    once = t.once(handler=t.py(FLOOD), server={'drain_timeout': '100ms',
                                               'io_timeout': '1h'})
    conn = once.begin(method='GET')

    def trickle():
        try:
            while conn.sock.recv(8192):
                threading.Event().wait(0.005)   # it is a slow reader
        except OSError:
            pass
    reader = Background(trickle)
    wait_until(once.handlers, 'the handler')
    once.stop()
    reader.result()


def test_drain_timeout_ends_waiting_for_another_process(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; ' + OK))
    other = t.once(handler=t.sh(OK), name='other', database=once.database,
                   server={'drain_timeout': '100ms',
                           'admin_path': '/once'},
                   defaults={'concurrent': 'wait', 'wait_time': '1h'})
    conn = once.begin('k')
    gate.wait()
    waiter = other.begin('k')
    other.wait_waiting()
    other.stop()
    problem(waiter.answer(), 'key-in-progress')
    gate.open()
    first(conn.answer(), 201)


def test_queued_requests_are_not_begun_after_drain_timeout(t):
    """Nor are they reserved: what is not committed need not be waited for."""
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate'),
                  server={'drain_timeout': '100ms', 'workers': '1'})
    running = once.begin('running')
    gate.wait()
    queued = once.begin('queued')
    once.stop()
    problem(running.answer(), 'handler-failed', unknown=True)
    answer = queued.answer()
    problem(answer, 'overloaded', acted=True)
    assert 'being stopped' in answer.json()['detail'], str(answer)
    eq([(row['key'], row['state']) for row in once.ls()],
       [('running', 'unknown')])
    eq(len(t.ledger()), 1)


def test_drain_timeout_bounds_a_stop_while_the_disk_hangs(t):
    """What is not recorded by then is lost, as in a crash."""
    disk = Disk(t)
    once = t.once(handler=t.sh(OK), env=disk.env,
                  server={'drain_timeout': '100ms', 'workers': '2',
                          'busy_timeout': '1h'})
    first(once.post('done'), 201)
    disk.hang()
    conns = [once.begin('k%d' % i) for i in range(4)]
    wait_until(disk.hangs, 'a commit hangs')
    once.term()
    once.wait()
    disk.go_on()
    once.wait_log('event=stop-forced')
    for conn in conns:
        conn.close()
    eq(len(t.ledger()), 1)
    once.start()
    for i in range(4):
        assert once.post('k%d' % i).status in (201, 409)
    eq(len(t.ledger()), 1 + sum(r['state'] == 'completed'
                                for r in once.ls() if r['key'] != 'done'))


def test_drain_timeout_ends_the_wait_for_what_a_handler_left(t):
    """The key would be released when that has exited, but the daemon does not
    wait that long."""
    gate = t.gate()
    once = t.once(
        handler=t.sh('setsid sh "$D/left" & read _ < "$D/go.open"'
                     '; kill -9 $$'),
        server={'drain_timeout': '100ms'},
        defaults={'on_crash': 'resume', 'timeout': '1h'})
    go = t.gate('go')
    t.write('left', 'echo $$ > "%s/gate.here"; read _ < "%s/gate.open"'
            % (t.dir, t.dir))
    conn = once.begin('k')
    left = gate.wait()
    handler = [p for p in once.handlers() if p != left]
    go.open()
    assert handler, 'no handler beside what it left'
    wait_until(lambda: not any(proc.state(p) for p in handler),
               'the handler was reaped')
    assert conn.silent(), 'answered while its process lives'
    once.stop()
    problem(conn.answer(), 'handler-failed', unknown=True)
    eq(once.state('k'), 'unknown')
    gate.open()


def test_second_sigterm_ends_at_once(t):
    gate = t.gate()
    once = t.once(handler=t.sh("trap '' TERM; gate gate"),
                  server={'drain_timeout': '1h'})
    conn = once.begin('k')
    pid = gate.wait()
    once.term()
    wait_until(lambda: not connects(once.socket), 'no more connections')
    assert once.alive()
    once.term()
    once.wait()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    conn.close()
    once.start()
    problem(once.post('k'), 'outcome-unknown')


def reload(once, pattern='event=reloaded'):
    n = len(once.log_lines(pattern))
    once.hup()
    once.wait_log(pattern, n + 1)


def test_sighup_reloads(t):
    once = t.once(handler=t.sh('status 201; echo old'))
    first(once.post(), 201, b'old\n')
    once.defaults['handler'] = t.sh('status 201; echo new')
    once.write_conf()
    reload(once)
    first(once.post(), 201, b'new\n')


def test_sighup_with_a_bad_file_keeps_the_old_one(t):
    once = t.once(handler=t.sh(OK))
    once.write_conf('[server]\nworkers = 2\nnonsense = 1\n')
    once.hup()
    line = once.wait_log('nonsense')[0]
    assert 'once.conf:3' in line, line
    first(once.post('k'), 201)
    os.unlink(once.file)
    once.hup()
    wait_until(lambda: len(once.log_lines('once.conf')) >= 2 or None,
               'the missing file is reported')
    eq(once.post('k').replayed, 'true')


def test_sighup_with_an_unknown_user_changes_nothing(t):
    once = t.once(handler=t.sh('status 201; echo old'))
    once.defaults['handler'] = t.sh('status 201; echo new')
    once.server['log'] = t.path('new.log')
    for n, (option, part) in enumerate((('allow_peers', 'root, no-such'),
                                        ('socket_group', 'no-such')), 1):
        once.server[option] = part
        once.write_conf()
        once.hup()
        once.wait_log('event=reload-failed .*%s: no such' % option)
        first(once.post('k%d' % n), 201, b'old\n')
        eq(t.exists('new.log'), False)
        del once.server[option]
    once.write_conf()
    once.hup()
    wait_until(lambda: t.exists('new.log') and b'event=reloaded' in
               t.read('new.log'), 'it is reloaded')
    first(once.post('k3'), 201, b'new\n')


def test_options_that_a_reload_leaves_alone_are_named(t):
    once = t.once(handler=t.sh(OK), server={'busy_timeout': '5000ms'})
    once.server.update(busy_timeout='5s', io_timeout='7s', log='stderr',
                       link='https://example.org/')
    once.write_conf()
    reload(once)
    eq(once.log_lines('event=reload '), [])
    once.server.update(socket_mode='0600', socket_user='www-data',
                       socket_group='www-data', workers='3',
                       busy_timeout='4s', owner_timeout='2s',
                       durability='normal', max_wal='2M', drain_timeout='1s')
    once.write_conf()
    reload(once)
    line, = once.log_lines('event=reload ')
    eq(re.search(r'options="([^"]*)"', line).group(1).split(), [
        'socket_mode', 'socket_user', 'socket_group', 'workers',
        'busy_timeout', 'owner_timeout', 'durability', 'max_wal'])
    eq(stat.S_IMODE(os.stat(once.socket).st_mode), 0o660)


def test_requests_under_way_keep_their_configuration(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 503'),
                  defaults={'release': '503'})
    conn = once.begin('k')
    gate.wait()
    once.defaults['release'] = '429'
    once.write_conf()
    reload(once)
    gate.open()
    first(conn.answer(), 503)
    eq(once.state('k'), 'failed_retryable')


def test_reload_under_load_loses_nothing(t):
    once = t.once(handler=t.sh(OK), server={'workers': '4'})
    stop = []

    def load(n):
        i = 0
        while not stop:
            first(once.post('k%d-%d' % (n, i)), 201)
            i += 1
        return i
    loads = [Background(lambda n=n: load(n)) for n in range(3)]
    for _ in range(10):
        reload(once)
    stop.append(True)
    eq(sum(l.result() for l in loads), len(t.ledger()))


def test_flags_hold_over_a_reload(t):
    once = t.once(args=['--', t.sh('status 201; echo flag')])
    once.defaults['timeout'] = '5s'
    once.write_conf()
    reload(once)
    first(once.post(), 201, b'flag\n')


def test_other_signals_do_not_end_it(t):
    once = t.once(handler=t.sh(OK))
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGWINCH):
        once.process.send_signal(number)
        first(once.post('k%d' % number), 201)


def test_log_is_one_logfmt_line_an_event_without_credentials(t):
    once = t.once(handler=t.sh('status 503'), defaults={
        'scope': 'HTTP_AUTHORIZATION'})
    once.post('k', b'BODY-4711', headers={'Authorization': 'Bearer 4712',
                                          'Cookie': 'sid=4713'})
    once.stop()
    for line in once.log().splitlines():
        assert re.match(r'ts=\S+ level=\S+ event=\S+', line), line
    for secret in ('4711', '4712', '4713'):
        assert secret not in once.log()
