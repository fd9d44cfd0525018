"""What must not hold up the thread that serves all requests.

While an obstacle stands, requests without a key and replays are answered, which
a loop that waited for it could not do.  How long they may take is not asked of
them: a test build ends a daemon whose loop was held up for 50 ms (base/loop.c).
"""
import os
import pwd
import signal
import threading
import time

import base
import fcgi
import proc
from answer import eq, first, problem, replay
from base import wait_until
from clocks import library
from disk import Disk
from once import Background, Lock

MIB = 1 << 20
SAY = 'ledger "$ONCE_KEY"; status 201; echo "$ONCE_KEY"'
TIMES = 25


class Others:
    """Those who have nothing to do with the obstacle."""

    def __init__(self, once, path='/pay'):
        self.once, self.path = once, path
        self.first = once.post('small', path=path)
        first(self.first, 201)
        self.took = []

    def ask(self):
        for one in (lambda: eq(self.once.get(self.path).status, 201),
                    lambda: replay(self.once.post('small', path=self.path),
                                   self.first)):
            began = time.monotonic()
            one()
            self.took.append(time.monotonic() - began)

    def ask_while(self, stands, times=TIMES):
        """They are answered, and the obstacle stands all the time."""
        for _ in range(times):
            self.ask()
            assert stands(), 'the obstacle is gone'
        self.say()

    def say(self):
        took = sorted(self.took)
        print('%d answers: median %.1f ms, 99th percentile %.1f ms' % (
            len(took), took[len(took) // 2] * 1000,
            took[len(took) * 99 // 100] * 1000))


def silent(conns):
    return all(conn.silent() for conn in conns)


def test_a_disk_that_hangs(t):
    disk = Disk(t)
    once = t.once(handler=t.sh(SAY), env=disk.env,
                  server={'busy_timeout': '10m'})
    others = Others(once)
    disk.hang()
    conns = [once.begin('k%d' % n) for n in range(4)]
    wait_until(disk.hangs, 'a commit hangs')
    others.ask_while(lambda: silent(conns))
    disk.go_on()
    for conn in conns:
        first(conn.answer(), 201)


def test_a_name_service_that_is_stuck(t):
    hang = t.path('names.hang')
    preload = library(t, 'names')
    once = t.once(handler=t.sh(SAY), routes={
        '/far': {'handler': 'tcp:localhost:1'}},
        env=dict(os.environ, LD_PRELOAD=preload, NAMES_HANG=hang))
    others = Others(once)
    t.write('names.hang')
    # More than there are helpers for names.
    conns = [once.begin('k%d' % n, path='/far') for n in range(6)]
    wait_until(lambda: os.path.getsize(hang) > 0, 'a name is looked for')
    others.ask_while(lambda: silent(conns))
    os.unlink(hang)
    for conn in conns:
        problem(conn.answer(), 'handler-not-started')


def test_a_directory_of_users_that_is_stuck(t):
    hang = t.path('names.hang')
    once = t.once(handler=t.sh(SAY), routes={
        '/user': {'user': pwd.getpwuid(os.geteuid()).pw_name}},
        env=dict(os.environ, LD_PRELOAD=library(t, 'names'), NAMES_HANG=hang))
    others = Others(once)
    t.write('names.hang')
    # More than there are helpers for starts.
    conns = [once.begin('k%d' % n, path='/user') for n in range(12)]
    wait_until(lambda: os.path.getsize(hang) > 0, 'a user is looked for')
    others.ask_while(lambda: silent(conns))
    os.unlink(hang)
    for conn in conns:
        first(conn.answer(), 201)


def test_an_upload_of_256_megabytes(t):
    once = t.once(handler=t.sh('cat >/dev/null; ' + SAY))
    others = Others(once)
    params = fcgi.request_params('POST', '/pay', key='k', length=256 * MIB)
    conn = once.connect()
    conn.send(fcgi.begin(), fcgi.stream(fcgi.PARAMS, 1, fcgi.pairs(params)))
    piece = fcgi.stream(fcgi.STDIN, 1, bytes(MIB), end=False)
    sent = []

    def send():
        for n in range(256):
            conn.send(piece)
            sent.append(n)
    sender = Background(send)
    wait_until(lambda: sent, 'it comes')
    while not sender.done():
        others.ask()
    sender.result()
    others.ask_while(lambda: conn.silent(), 1)
    conn.send(fcgi.record(fcgi.STDIN, 1))
    runs = Background(conn.answer)
    while not runs.done():
        others.ask()
    first(runs.result(), 201, b'k\n')


def test_large_json_out_of_order(t):
    """Two have a helper each, and two wait for these.  One takes more than
    twice as long as a loop may be held up."""
    once = t.once(handler=t.sh(SAY), server={'busy_timeout': '10m'})
    others = Others(once)
    body = '{%s}' % ','.join('"%d":%d' % (n * 7919 % 1000003, n)
                             for n in range(8 * MIB // 15))
    posts = [Background(lambda n=n: once.post(
        'k%d' % n, body, type='application/json')) for n in range(4)]
    while not all(post.done() for post in posts):
        others.ask()
    others.say()
    for post in posts:
        first(post.result(), 201)


def test_json_that_takes_all_helpers_for_it(t):
    """A file is written meanwhile."""
    hold = t.gate('hold')
    once = t.once(handler=t.sh('n=$(wc -c); status 201; echo $n'), env=dict(
        os.environ, LD_PRELOAD=library(t, 'hold'), HOLD_GATE=t.path('hold')))
    body = '{"a":"%s"}' % (13 * MIB // 2 * 'x')
    posts = [Background(lambda n=n: once.post(
        'k%d' % n, body, type='application/json')) for n in range(2)]
    for _ in posts:
        hold.wait()
    eq(once.request('GET', body=bytes(4 * MIB)).body, b'%d\n' % (4 * MIB))
    hold.open(2)
    for post in posts:
        first(post.result(), 201)


def test_json_that_needs_no_memory_does_not_wait_for_it(t):
    """It is too long, and compared as bytes."""
    hold = t.gate('hold')
    once = t.once(handler=t.sh('cat >/dev/null; ' + SAY), env=dict(
        os.environ, LD_PRELOAD=library(t, 'hold'), HOLD_GATE=t.path('hold')),
        server={'busy_timeout': '10m', 'admin_path': '/once'})
    posts = []
    for n in range(2):
        posts.append(Background(lambda n=n: once.post(
            'k%d' % n, '{"a":"%s"}' % (9000000 * 'b'),
            type='application/json')))
        hold.wait() if n == 0 else once.wait_gauge('json_waiting', 1)
    first(once.post('long', 17 * MIB * 'b', type='application/json'), 201)
    hold.open(2)
    for post in posts:
        first(post.result(), 201)


def test_a_database_that_is_locked(t):
    once = t.once(handler=t.sh(SAY), server={'busy_timeout': '10m'})
    others = Others(once)
    lock = Lock(t, once.database)
    conns = [once.begin('k%d' % n) for n in range(6)]
    others.ask_while(lambda: silent(conns))
    lock.release()
    for conn in conns:
        first(conn.answer(), 201)


def test_a_large_replay_that_is_read_slowly(t):
    once = t.once(handler=t.sh(SAY), routes={'/large': {
        'handler': t.sh('ledger; status 201; head -c 100000000 /dev/zero'),
        'max_response': '100M'}}, server={'durability': 'normal',
                                          'max_wal': '1G'})
    others = Others(once)
    run = Background(lambda: once.post('large', path='/large'))
    while not run.done():
        others.ask()
    eq(len(run.result().body), 100000000)
    conn = once.begin('large', path='/large')
    got = len(conn.first_bytes())

    def stands():
        nonlocal got
        got += len(conn.record()[2])
        return got < 50000000
    others.ask_while(stands)
    conn.close()


def test_a_program_that_does_not_end(t):
    once = t.once(handler=t.sh(SAY), routes={'/stuck': {
        'handler': t.sh('kill -STOP $$'), 'timeout': '2s',
        'kill_after': '1h'}})
    others = Others(once)
    conn = once.begin('k', path='/stuck')
    pid, = wait_until(once.handlers, 'it runs')

    def is_told():
        fields = proc.thread_status(pid)[pid]
        return int(fields['ShdPnd'], 16) >> (signal.SIGTERM - 1) & 1
    wait_until(is_told, 'it has got SIGTERM')
    eq(proc.state(pid), 'T')
    others.ask_while(lambda: conn.silent())
    os.kill(pid, signal.SIGKILL)
    problem(conn.answer(), 'handler-timeout', unknown=True)


WAITING = 5000
EACH = 8 * 1024


def resident(pid):
    with open('/proc/%d/status' % pid) as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith('RssAnon:')) * 1024


def test_requests_that_wait_for_the_first_one(t):
    gate = t.gate()
    once = t.once(handler=t.sh('[ "$ONCE_KEY" = k ] && gate gate; ' + SAY),
                  server={'admin_path': '/once'},
                  defaults={'concurrent': 'wait', 'wait_time': '1h'})
    others = Others(once)
    winner = once.begin('k')
    gate.wait()
    data = fcgi.full_request(fcgi.request_params('POST', '/pay', key='k'))
    conns = [once.connect() for _ in range(WAITING)]
    eq(once.get('/once/health').status, 200)
    before = resident(once.pid)
    for conn in conns:
        conn.send(data)
    # Some of them look whether it has ended.
    wait_until(lambda: once.gauge('requests_waiting') > WAITING - 500,
               'they wait')
    each = (resident(once.pid) - before) / WAITING
    print('%.0f bytes each' % each)
    if 'san' not in os.path.basename(base.BUILDDIR):
        assert each <= EACH, '%.0f bytes each' % each
    others.ask_while(lambda: winner.silent())
    gate.open()
    answer = winner.answer()
    first(answer, 201)
    for conn in conns:
        replay(conn.answer(), answer)
        conn.close()
    eq(t.ledger().count('1 k'), 1)


def test_others_have_their_turn_while_many_go_on(t):
    """The daemon stops as the first one of those goes on that have waited for
    another process."""
    gate = t.gate()
    once = t.once(handler=t.sh('[ "$ONCE_KEY" = k ] && gate gate; ' + SAY))
    run = Background(lambda: once.post('k'))
    gate.wait()
    two = t.once(handler=t.sh(SAY), name='two', database=once.database,
                 defaults={'concurrent': 'wait', 'wait_time': '1h'},
                 env=dict(os.environ, ONCEWRAP_FAULT='PLACE_WAITED:1:stop'))
    others = Others(two)
    two.halt()
    conns = [two.begin('k') for _ in range(200)]
    os.kill(two.pid, signal.SIGCONT)
    wait_until(lambda: proc.state(two.pid) == 'T', 'it stops')
    gate.open()
    answer = run.result()
    small = two.begin('small')
    os.kill(two.pid, signal.SIGCONT)
    replay(small.answer(), others.first)
    for conn in conns:
        replay(conn.answer(), answer)
    said = two.log_lines('event=replay')
    place, = [n for n, line in enumerate(said) if 'key=small' in line]
    assert place < 150, '%d of %d' % (place, len(said))


def test_others_have_their_turn_while_many_stall(t):
    """The time of thousands of connections is over at once."""
    once = t.once(handler=t.sh(SAY), server={'io_timeout': '1s'})
    others = Others(once)
    conns = [once.connect() for _ in range(4000)]
    for conn in conns:
        conn.send(fcgi.begin())
    others.ask()
    once.halt()
    over = time.monotonic() + 1.1
    wait_until(lambda: time.monotonic() > over, 'their time is over')
    small = once.begin('small')
    os.kill(once.pid, signal.SIGCONT)
    replay(small.answer(), others.first)
    once.wait_log('event=peer-stalled', len(conns))
    said = once.log_lines('event=peer-stalled|event=replay')
    place = max(n for n, line in enumerate(said) if 'key=small' in line)
    assert place < len(conns) // 2, place
