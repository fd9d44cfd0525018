"""What systemd hands over, what it is told, and what the journal takes."""
import configparser
import os
import re
import shlex
import signal
import socket
import subprocess

import base
import fcgi
from answer import eq, first
from base import wait_until

OK = 'ledger; status 201; echo ok'


def unit(name='oncewrap.service'):
    """[(option, value)] of one of the units in examples/."""
    with open(os.path.join(base.EXAMPLES, name)) as f:
        lines = [line.strip() for line in f]
    return [tuple(line.split('=', 1)) for line in lines
            if '=' in line and line[0] not in '#;']


def command(t, option, conf):
    """The command lines of the unit, with our programs and configuration."""
    found = []
    for name, value in unit():
        if name != option:
            continue
        argv = shlex.split(value)
        found.append([{'/usr/sbin/oncewrap': base.ONCEWRAP,
                       '/etc/oncewrap.conf': conf}.get(a, a) for a in argv])
    assert found, 'no %s=' % option
    return found


def as_systemd(t, argv, fds, env=None, **kw):
    """Starts it with those descriptors as 3 and on, as systemd does."""
    script = t.py('import fcntl\nfds = %r\n'
                  'high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in fds]\n'
                  'for n, fd in enumerate(high): os.dup2(fd, 3 + n)\n'
                  'os.closerange(3 + len(fds), 100)\n'
                  'os.environ.update(LISTEN_PID=str(os.getpid()), '
                  'LISTEN_FDS=str(len(fds)), '
                  'LISTEN_FDNAMES=":".join(["oncewrap.socket"] * len(fds)))\n'
                  'os.execv(sys.argv[1], sys.argv[1:])' %
                  ([f.fileno() for f in fds],))
    kw.setdefault('log', 'systemd.log')
    return t.popen([script] + argv, cwd=t.dir, stdin=subprocess.DEVNULL,
                   pass_fds=[f.fileno() for f in fds],
                   env=dict(os.environ, **(env or {})), **kw)


def conf(t, more='', handler=None):
    # The file of examples/ names a socket, too: -s wins.
    return t.write('oncewrap.conf', '[server]\ndatabase = %s\n'
                   'socket = unix:%s\n%s[defaults]\nhandler = %s\n' %
                   (t.path('once.db'), t.path('unused.sock'), more,
                    handler or t.sh(OK)))


def post(listener, key='k'):
    params = fcgi.request_params('POST', '/pay', key=key)
    return fcgi.exchange(listener.getsockname(), params)


def end(process):
    process.terminate()
    eq(process.wait(base.WAIT * base.SLOW), 0)



def test_unit_survives_starts_that_fail_and_a_program_without_memory(t):
    """A limit of starts would end the service for good, and its socket; the
    end of one program, the whole service."""
    service = configparser.ConfigParser(strict=False, interpolation=None)
    service.optionxform = str
    service.read(os.path.join(base.EXAMPLES, 'oncewrap.service'))
    eq(service['Unit']['StartLimitIntervalSec'], '0')
    eq(service['Service']['Restart'], 'on-failure')
    eq(service['Service']['OOMPolicy'], 'continue')


def test_unit_opens_the_folder_of_php_sessions(t):
    script = t.write('where.php', '<?php echo session_save_path();')
    run = t.run([base.need('php-cgi'), '-q', script])
    eq(run.returncode, 0, run.stderr)
    # Without the hyphen a unit does not start where there is no such folder.
    assert ('ReadWritePaths', '-' + run.stdout.decode()) in unit(), run


def test_the_command_line_of_the_unit(t):
    (argv,) = command(t, 'ExecStart', conf(t))
    assert 'fd:3' in argv, argv
    listener = base.listener(t)
    process = as_systemd(t, argv, [listener])
    first(post(listener), 201)
    assert not t.exists('unused.sock')
    end(process)
    assert os.path.exists(listener.getsockname()), 'removed what is not ours'


def test_the_socket_outlives_a_restart(t):
    (argv,) = command(t, 'ExecStart', conf(t))
    listener = base.listener(t)
    process = as_systemd(t, argv, [listener])
    first(post(listener), 201)
    end(process)
    conn = fcgi.Conn(listener.getsockname(), base.WAIT * base.SLOW)
    t.defer(conn.close)
    conn.send(fcgi.full_request(fcgi.request_params('POST', '/pay', key='k2'),
                                b''))
    process = as_systemd(t, argv, [listener])
    wait_until(lambda: len(t.ledger()) == 2, 'the one that waited runs')
    end(process)


def test_one_of_several_sockets_is_named(t):
    """The others refuse at once; nothing waits in a queue of theirs."""
    listeners = [base.listener(t, 'l%d' % n) for n in range(3)]
    process = as_systemd(t, [base.ONCEWRAP, '-f', conf(t), '-s', 'fd:4'],
                         listeners)
    first(post(listeners[1]), 201)
    for n in (0, 2):
        path = listeners[n].getsockname()
        listeners[n].close()        # as systemd would, when it stops it
        try:
            fcgi.Conn(path).close()
        except ConnectionRefusedError:
            continue
        raise AssertionError('descriptor %d is still open' % (3 + n))
    end(process)


def test_several_sockets_and_none_is_named(t):
    listeners = [base.listener(t, 'l%d' % n) for n in range(2)]
    process = as_systemd(t, [base.ONCEWRAP, '-d', t.path('d'), '--',
                             t.sh(OK)], listeners)
    assert process.wait(base.WAIT * base.SLOW) > 0
    log = t.read('systemd.log').decode()
    assert 'LISTEN_FDS' in log and '-s fd:N' in log, log


# --- sd_notify ---

class Manager:
    """The socket to which a service says how it is."""

    def __init__(self, t, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        t.defer(self.socket.close)
        if abstract:
            self.socket.bind('\0oncewrap-test-%d' % os.getpid())
            self.path = '@' + self.socket.getsockname()[1:].decode()
        else:
            self.path = t.path('notify')
            self.socket.bind(self.path)
        self.socket.settimeout(base.WAIT * base.SLOW)

    def said(self):
        """The next message as a dict."""
        text = self.socket.recv(4096).decode()
        return dict(line.split('=', 1) for line in text.splitlines())


def notified(t, manager):
    listener = base.listener(t)
    handler = t.sh('status 201; echo "<$NOTIFY_SOCKET$JOURNAL_STREAM>"')
    path = conf(t, handler=handler)
    (argv,) = command(t, 'ExecStart', path)
    process = as_systemd(t, argv, [listener],
                         env={'NOTIFY_SOCKET': manager.path})
    eq(manager.said(), {'READY': '1'})
    first(post(listener), 201, b'<>\n')
    return process, path


def test_systemd_is_told_of_each_change(t):
    eq(dict(unit())['Type'], 'notify')
    manager = Manager(t)
    process, path = notified(t, manager)

    process.send_signal(signal.SIGHUP)
    said = manager.said()
    eq((said['RELOADING'], said['MONOTONIC_USEC'].isdigit()), ('1', True))
    eq(manager.said(), {'READY': '1', 'STATUS': ''})

    good = t.read('oncewrap.conf').decode()
    t.write('oncewrap.conf', good + 'timeout = soon\n')
    process.send_signal(signal.SIGHUP)
    eq(manager.said()['RELOADING'], '1')
    said = manager.said()
    eq(said['READY'], '1')
    assert re.search(r'oncewrap\.conf:\d+: .*timeout', said['STATUS']), said

    t.write('oncewrap.conf', good)
    process.send_signal(signal.SIGHUP)
    eq(manager.said()['RELOADING'], '1')
    eq(manager.said(), {'READY': '1', 'STATUS': ''})
    process.terminate()
    eq(manager.said(), {'STOPPING': '1'})
    eq(process.wait(base.WAIT * base.SLOW), 0)


def test_an_abstract_socket_of_systemd(t):
    manager = Manager(t, abstract=True)
    process, _ = notified(t, manager)
    process.terminate()
    eq(manager.said(), {'STOPPING': '1'})
    eq(process.wait(base.WAIT * base.SLOW), 0)


def test_a_start_that_fails_is_not_called_ready(t):
    manager = Manager(t)
    os.mkdir(t.path('once.db'))         # no database
    (argv,) = command(t, 'ExecStart', conf(t))
    process = as_systemd(t, argv, [base.listener(t)],
                         env={'NOTIFY_SOCKET': manager.path})
    assert process.wait(base.WAIT * base.SLOW) > 0
    manager.socket.setblocking(False)
    try:
        raise AssertionError(manager.said())
    except BlockingIOError:
        pass


def test_a_manager_that_does_not_listen_changes_nothing(t):
    for path in (t.path('nothing'), 'x', '/' + 'x' * 200, ''):
        listener = base.listener(t, 'l%d' % len(path))
        (argv,) = command(t, 'ExecStart', conf(t))
        process = as_systemd(t, argv, [listener], env={'NOTIFY_SOCKET': path})
        assert post(listener).status == 201
        end(process)


def test_reload_of_the_unit_checks_the_file_first(t):
    lines = command(t, 'ExecReload', t.write('bad.conf', '[server]\nx = 1\n'))
    run = t.run(lines[0])
    eq(run.returncode, 1)
    assert b'bad.conf:2: ' in run.stderr, run
    eq(lines[1:], [['/bin/sh', '-c', 'kill -HUP ${MAINPID}']])


# --- the journal ---

def journal(t, argv, ours=True, status=0):
    """What is written to a stream of the journal, or of another program."""
    a, b = socket.socketpair()
    t.defer(a.close)
    st = os.fstat(b.fileno())
    stream = '%d:%d' % (st.st_dev, st.st_ino + (0 if ours else 1))
    listener = base.listener(t, 'j%d' % len(t.deferred))
    process = as_systemd(t, argv, [listener], env={'JOURNAL_STREAM': stream},
                         log=None, stderr=b)
    b.close()
    if status == 0:
        first(post(listener, 'k%d' % ours), 201)
        process.send_signal(signal.SIGHUP)
        process.terminate()
    eq(process.wait(base.WAIT * base.SLOW), status)
    a.settimeout(base.WAIT)
    text = b''
    while True:
        more = a.recv(65536)
        if not more:
            return text.decode().splitlines()
        text += more


def test_priorities_for_the_journal(t):
    priority = {'debug': 7, 'info': 6, 'warn': 4, 'error': 3}
    path = conf(t, handler=t.sh('echo careful >&2; status 201'))
    (argv,) = command(t, 'ExecStart', path)
    seen = set()
    for line in journal(t, argv):
        match = re.match(r'<(\d)>level=(\w+) event=', line)
        assert match, line
        eq(int(match.group(1)), priority[match.group(2)], line)
        seen.add(match.group(2))
    assert seen >= {'info', 'warn'}, seen


def test_no_priorities_where_stderr_is_not_the_journal(t):
    """JOURNAL_STREAM stays in the environment of what is redirected."""
    (argv,) = command(t, 'ExecStart', conf(t))
    lines = journal(t, argv, ours=False)
    assert lines and all(line.startswith('ts=') for line in lines), lines


def test_a_start_that_fails_is_an_error_in_the_journal(t):
    path = t.write('bad.conf', '[server]\nworkers = none\n')
    (argv,) = command(t, 'ExecStart', path)
    (line,) = journal(t, argv, status=1)
    assert line.startswith('<3>') and 'bad.conf:2: ' in line, line
    argv = command(t, 'ExecReload', path)[0]
    (line,) = journal(t, argv, status=1)
    assert line.startswith('<3>') and 'bad.conf:2: ' in line, line
