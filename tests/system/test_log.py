"""A stderr that takes nothing stops nothing."""
import fcntl
import os
import pty
import pwd
import re
import socket
import subprocess
import sys
import termios

import base
from answer import eq, first, replay
from base import wait_until
from test_metrics import ADMIN, metrics

LINES = 4000        # of about 100 bytes: more than any pipe or socket takes
NOISY = ('i=0\nwhile [ $i -lt %d ]; do\n'
         'echo "line $i of many that are written for no reader at all" >&2\n'
         'i=$((i + 1)); done\nstatus 201\n' % LINES)


def start(t, stderr, handler=NOISY, name='once', **kw):
    """An oncewrap with that descriptor as its stderr."""
    once = t.once(handler=t.sh(handler), server={'admin_path': ADMIN},
                  start=False, name=name, **kw)
    once.process = t.popen([base.ONCEWRAP, '-f', once.file], cwd=t.dir,
                           env=once.env, stdin=subprocess.DEVNULL,
                           stderr=stderr, **kw)
    t.deferred.pop()

    def serves():
        assert once.alive(), 'ended with %s' % once.process.returncode
        return answers(once)
    wait_until(serves, 'it serves')
    return once


def answers(once):
    try:
        return once.get(ADMIN + '/health').status == 200
    except OSError:
        return False


def unread(t, stderr, **kw):
    """Requests are answered and SIGTERM ends it, whatever stderr does."""
    once = start(t, stderr, **kw)
    answer = once.post('k')
    first(answer, 201)
    replay(once.post('k'), answer)
    # Whole: the first lines went out, the last ones did not.
    wait_until(lambda: metrics(once)['log_dropped_total'] > LINES // 10,
               'lines are counted')
    dropped = metrics(once)['log_dropped_total']
    assert dropped <= LINES + 20, dropped
    assert not flags(stderr) & os.O_NONBLOCK, 'others share this descriptor'
    once.term()
    eq(once.wait(), 0)


def flags(fd):
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def pipe(t):
    r, w = os.pipe()
    t.defer(lambda: os.close(r))
    t.defer(lambda: os.close(w))
    return r, w


def another_user(t):
    """Options of a process that may not open our pipes."""
    os.chmod(t.dir, 0o777)
    user = pwd.getpwnam('nobody')
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


def test_a_pipe_that_is_not_read(t):
    unread(t, pipe(t)[1])


def test_a_pipe_that_is_full_at_the_start(t):
    _, w = pipe(t)
    fcntl.fcntl(w, fcntl.F_SETFL, flags(w) | os.O_NONBLOCK)
    try:
        while True:
            os.write(w, b'x' * 65536)
    except BlockingIOError:
        pass
    fcntl.fcntl(w, fcntl.F_SETFL, flags(w) & ~os.O_NONBLOCK)
    unread(t, w)


def test_a_pipe_of_another_user_that_is_not_read(t):
    """It cannot be opened again."""
    base.need_root()
    unread(t, pipe(t)[1], **another_user(t))


def test_a_pipe_whose_reader_is_gone(t):
    r, w = os.pipe()
    os.close(r)
    t.defer(lambda: os.close(w))
    unread(t, w)


def test_a_terminal_that_is_stopped(t):
    master, slave = pty.openpty()
    t.defer(lambda: os.close(master))
    t.defer(lambda: os.close(slave))
    termios.tcflow(slave, termios.TCOOFF)
    unread(t, slave)


def test_a_socket_that_is_not_read(t):
    a, b = socket.socketpair()
    t.defer(a.close)
    t.defer(b.close)
    unread(t, b.fileno())


def test_a_disk_that_is_full(t):
    full = os.open('/dev/full', os.O_WRONLY)
    t.defer(lambda: os.close(full))
    unread(t, full)


def test_configuration_errors_are_no_reason_to_wait(t):
    """It ends, though nothing takes its message."""
    _, w = pipe(t)
    os.write(w, b'x' * 65536)
    path = t.write('bad.conf', '[server]\nworkers = none\n')
    process = t.popen([base.ONCEWRAP, '-f', path], stderr=w)
    eq(process.wait(base.WAIT * base.SLOW), 1)


def came_back(t, **kw):
    r, w = pipe(t)
    once = start(t, w, **kw)
    first(once.post('k'), 201)
    wait_until(lambda: metrics(once)['log_dropped_total'] > 0, 'some dropped')
    text = b''
    os.set_blocking(r, False)

    def said():
        nonlocal text
        try:
            text += os.read(r, 1 << 20)
        except BlockingIOError:
            once.hup()          # one more line, with that in front of it
        told = re.findall(rb'event=log-dropped lines=([1-9]\d*)\n', text)
        return sum(map(int, told)) == metrics(once)['log_dropped_total']
    wait_until(said, 'how much was dropped')
    for line in text.decode().splitlines():
        assert re.match(r'ts=\S+ level=\w+ event=[a-z-]+( |$)', line), \
            repr(line)
    once.term()
    eq(once.wait(), 0)


def test_a_reader_that_comes_back_is_told_how_much_was_dropped(t):
    came_back(t)


def test_a_reader_of_another_user_that_comes_back_is_told(t):
    base.need_root()
    came_back(t, **another_user(t))


# Writes what it reads into the file "out", and makes the file "late" if it was
# kept from reading for half of the time that a line waits.
READER = """
import os, select, sys, time
out = open("out", "wb", buffering=0)
last = time.monotonic()
while True:
    data = os.read(0, 65536) if select.select([0], [], [], 0.002)[0] else None
    now = time.monotonic()
    if now - last > 0.01:
        open("late", "w").close()
    last = now
    if data == b"":
        break
    out.write(data or b"")
"""


def burst(t, number):
    """Whether all lines came; if not, the reader was late."""
    folder = t.path('reader%d' % number)
    os.mkdir(folder)
    r, w = pipe(t)
    once = start(t, w, name='once%d' % number)
    reader = t.popen([sys.executable, '-ISBc', READER], stdin=r, cwd=folder)

    def came():
        with open(folder + '/out', 'rb') as f:
            return f.read().count(b'event=handler-stderr')
    wait_until(lambda: os.path.exists(folder + '/out'), 'the reader')
    if os.path.exists(folder + '/late'):
        os.unlink(folder + '/late')
    first(once.post('k'), 201)
    wait_until(lambda: came() + metrics(once)['log_dropped_total'] >= LINES,
               'all lines')
    n, dropped = came(), metrics(once)['log_dropped_total']
    once.term()
    eq(once.wait(), 0)
    base.end(reader)
    whole = (n, dropped) == (LINES, 0)
    assert whole or os.path.exists(folder + '/late'), (n, dropped)
    return whole


def test_a_slow_reader_gets_every_line(t):
    """A burst is not lost if the reader takes what comes.  Where the machine
    keeps it from that for too long, another burst is tried."""
    number = iter(range(1000))
    wait_until(lambda: burst(t, next(number)), 'all lines of a burst', 30)


def test_the_last_lines_are_written_before_the_end(t):
    """Also where they are handed on by a thread."""
    base.need_root()
    r, w = pipe(t)
    once = start(t, w, handler='status 201', **another_user(t))
    once.term()
    eq(once.wait(), 0)
    text = os.read(r, 65536).decode()
    assert text.endswith('event=stopped status=0\n'), text


def accepts(once):
    try:
        once.connect().close()
        return True
    except OSError:
        return False


def test_no_stderr_at_all(t):
    """Nothing else gets its number: a log line in the database ends it."""
    for closed in ((2,), (0, 2), (0, 1, 2)):
        once = t.once(handler=t.sh('echo noise >&2; status 201'),
                      start=False, name='n%d' % len(closed))
        script = t.py('for fd in %r: os.close(fd)\n'
                      'os.execv(sys.argv[1], sys.argv[1:])' % (closed,),
                      'close%d' % len(closed))
        once.process = t.popen([script, base.ONCEWRAP, '-f', once.file],
                               cwd=t.dir, stdin=subprocess.DEVNULL)
        t.deferred.pop()
        wait_until(lambda: accepts(once) and
                   os.path.realpath('/proc/%d/exe' % once.pid) ==
                   os.path.realpath(base.ONCEWRAP), 'it has started')
        first(once.post('k'), 201)
        for fd in closed:
            eq(os.readlink('/proc/%d/fd/%d' % (once.pid, fd)), '/dev/null')
        eq(once.state('k'), 'completed')
        once.stop()
