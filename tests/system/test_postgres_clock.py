"""Store time follows the server's clock, unless that jumps ahead."""
import os
import struct

from answer import eq, first, problem, replay
from base import wait_until
from clocks import HOUR, clock_file, library
from lib.postgres import Server
from test_postgres_ops import environment, has

DAY = 24 * HOUR
RUNS = 'ledger "$ONCE_KEY"; status 201'


class Clock:
    """The clocks of a program, as clock.c reads them."""

    def __init__(self, t, name):
        path, self.map = clock_file(t, name)
        preload = t.path('clock.so')
        if not os.path.exists(preload):
            library(t, 'clock')
        self.env = {'CLOCK_FILE': path, 'LD_PRELOAD': preload}
        self.added = 0

    def add(self, seconds, boot=0):
        self.added += seconds
        self.map[:] = struct.pack('=qqq', int(self.added * 10**9),
                                  int(boot * 10**9), 0)


def server_with(t, clock):
    os.chmod(t.dir, 0o755)
    server = Server(t.path('server'), env=dict(os.environ, **clock.env))
    t.defer(server.stop)
    server.keep_promises()
    return server


def daemon(t, server, clock, name='once', retention='1h', **options):
    return t.once(t.sh(RUNS), database=server.uri(), name=name,
                  env=dict(environment(t), **clock.env),
                  server={'owner_timeout': '2s', 'reap_interval': '20ms',
                          'admin_path': '/admin', **options},
                  defaults={'retention': retention})


def world(t, **options):
    """The clock of a server, the server, and a daemon on another host."""
    clock, host = Clock(t, 'clock.server'), Clock(t, 'clock.host')
    server = server_with(t, clock)
    return clock, host, server, daemon(t, server, host, **options)


def health(once):
    answer = once.get('/admin/health')
    eq(answer.status, 200)
    return answer.body.decode()


def finding(once, status):
    run = once.ctl('doctor', status=status)
    return [line for line in run.splitlines() if ' time ' in line][0]


def held(once):
    once.wait_log('level=warn event=store-clock-held .*ahead=')


def followed(once):
    once.wait_log('event=store-clock-followed')


def beats(server, n=2):
    def beat():
        return int(server.sql('SELECT min(beat) FROM once_owner'))
    before = beat()
    wait_until(lambda: beat() >= before + n, 'each process moves')


def test_a_clock_25_hours_ahead_expires_nothing(t):
    clock, _, server, once = world(t)
    old = once.post('old')
    first(old, 201)
    clock.add(25 * HOUR)
    # also before a process has noticed
    once.ctl('reap')
    replay(once.post('old'), old)
    held(once)
    replay(once.post('old'), old)
    new = once.post('new')
    first(new, 201)
    replay(once.post('new'), new)
    once.ctl('reap')
    once.ctl('sweep')
    beats(server)
    replay(once.post('old'), old)
    eq(t.ledger(), ['1 old', '1 new'])
    eq(len(once.log_lines('event=store-clock-held')), 1)
    has(health(once), 'ok\nstore-clock-held: ')
    has(once.get('/admin/').body.decode(), 'store-clock-held: ')
    has(finding(once, 1), 'BAD')
    # the clock's return
    clock.add(-25 * HOUR)
    followed(once)
    eq(health(once), 'ok\n')
    has(finding(once, 0), 'follows')
    for answer, key in ((old, 'old'), (new, 'new')):
        replay(once.post(key), answer)
    eq(len(t.ledger()), 2)


def test_a_clock_that_an_operator_accepts_ends_what_is_past(t):
    clock, _, server, once = world(t)
    first(once.post('old'), 201)
    clock.add(25 * HOUR)
    held(once)
    new = once.post('new')
    first(new, 201)
    has(once.ctl('accept-clock'), 'accepted')
    followed(once)
    eq(health(once), 'ok\n')
    first(once.post('old'), 201)
    replay(once.post('new'), new)
    eq(t.ledger(), ['1 old', '1 new', '1 old'])
    # and then it may jump no further
    clock.add(HOUR)
    once.wait_log('event=store-clock-held', 2)
    replay(once.post('new'), new)


def test_no_time_passes_for_what_runs_while_the_clock_is_ahead(t):
    clock, host = Clock(t, 'clock.server'), Clock(t, 'clock.host')
    server = server_with(t, clock)
    gate = t.gate()
    once = t.once(t.sh('ledger; gate gate; status 201'),
                  database=server.uri(), env=dict(environment(t), **host.env),
                  server={'owner_timeout': '2s', 'sweep_interval': '20ms'},
                  defaults={'timeout': '10m', 'on_crash': 'resume'})
    conn = once.begin('k')
    gate.wait()
    clock.add(25 * HOUR)
    held(once)
    problem(once.post('k'), 'key-in-progress')
    beats(server)
    problem(once.post('k'), 'key-in-progress')
    gate.open()
    answer = conn.answer()
    first(answer, 201)
    replay(once.post('k'), answer)
    eq(len(t.ledger()), 1)


def test_all_processes_stand_still_and_a_start_believes_them(t):
    clock, _, server, one = world(t)
    two = daemon(t, server, Clock(t, 'clock.two'), 'two')
    answer = one.post('k')
    first(answer, 201)
    # The same time server has set the host of the third one.
    clock.add(25 * HOUR)
    wrong = Clock(t, 'clock.three')
    wrong.add(25 * HOUR)
    three = daemon(t, server, wrong, 'three')
    for once in (one, two, three):
        held(once)
    beats(server, 8)    # owner_timeout is over
    for once in (one, two, three):
        replay(once.post('k'), answer)
    has(three.ctl('accept-clock'), 'accepted')
    for once in (one, two, three):
        followed(once)
    first(two.post('k'), 201)


def limit(server):
    return int(server.sql('SELECT time_limit / 1000 - extract(epoch FROM '
                          'clock_timestamp())::bigint FROM once_meta'))


def test_a_clock_that_goes_too_fast_by_little_is_followed(t):
    clock, _, server, once = world(t)
    first(once.post('k'), 201)
    for _ in range(20):
        clock.add(200)
        wait_until(lambda: limit(server) > 140, 'store time follows')
    first(once.post('k'), 201)
    eq(once.log_lines('event=store-clock'), [])
    # and one that is set back, which may not jump as far again
    answer = once.post('k')
    clock.add(-4000)
    wait_until(lambda: limit(server) <= 300, 'store time goes back')
    clock.add(4000)
    held(once)
    replay(once.post('k'), answer)


def test_a_server_that_starts_again_stays_ahead(t):
    clock, _, server, once = world(t)
    answer = once.post('k')
    first(answer, 201)
    server.restart()
    wait_until(lambda: once.post('k').replayed, 'it is back')
    beats(server)
    eq(once.log_lines('event=store-clock-held'), [])
    server.stop()
    clock.add(25 * HOUR)
    server.start()
    held(once)
    replay(once.post('k'), answer)
    server.restart()
    wait_until(lambda: once.get('/admin/health').status == 200, 'it is back')
    beats(server)
    replay(once.post('k'), answer)
    clock.add(-25 * HOUR)
    followed(once)
    replay(once.post('k'), answer)


def test_a_database_that_was_away_for_long_is_followed(t):
    clock, host, server, once = world(t)
    first(once.post('k'), 201)
    server.stop()
    clock.add(2 * HOUR)
    host.add(2 * HOUR, boot=2 * HOUR)
    server.start()
    wait_until(lambda: once.get('/admin/health').status == 200, 'it is back')
    beats(server)
    first(once.post('k'), 201)
    eq(once.log_lines('event=store-clock-held'), [])


def test_a_start_after_a_month_goes_on(t):
    for end in ('stop', 'kill'):
        clock, host, server, once = world(t, name=end, retention='7d') \
            if end == 'stop' else (clock, host, server, once)
        key = 'k' + end
        first(once.post(key), 201)
        getattr(once, end)()
        clock.add(30 * DAY)
        host.add(30 * DAY)
        once.start()
        # One that was killed may live, for all that is known at once.
        wait_until(lambda: limit(server) > 0, 'store time follows')
        beats(server)
        first(once.post(key), 201)
        eq(once.log_lines('event=store-clock-held'), [])


def test_a_start_on_a_host_with_another_clock_waits_for_that(t):
    clock, host, server, once = world(t)
    answer = once.post('k')
    first(answer, 201)
    once.stop()
    clock.add(DAY)
    once.start()
    held(once)
    replay(once.post('k'), answer)
    host.add(DAY)
    followed(once)
    first(once.post('k'), 201)
