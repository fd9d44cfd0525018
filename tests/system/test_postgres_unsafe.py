"""A PostgreSQL server whose settings let a commit be lost, while a daemon with
durability = full runs: a new connection tells before anything runs by it."""
from answer import eq, first, problem, replay
from base import wait_until
from once import Background
from test_postgres_ops import HELLO, daemon, has, servers

CUT = ("SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
       "WHERE application_name = 'oncewrap'")


def promising(t, handler=HELLO, defaults=None):
    """A server, and a daemon that does not look at it by itself."""
    server = servers(t).make('a')
    server.keep_promises()
    once = daemon(t, server, 'ledger $ONCE_KEY; ' + handler, defaults=defaults,
                  options={'durability': 'full', 'admin_path': '/admin',
                           'status_path': '/s', 'owner_timeout': '1h'})
    return server, once


def refused(t, once, setting):
    """Nothing new runs, and the setting is named."""
    before = t.ledger()
    for n in range(5):
        problem(once.post('new-%d' % n), 'store-unavailable')
    eq(t.ledger(), before)
    lines = once.log_lines('event=store-unsafe')
    eq(len(lines), 1, lines)
    has(lines[0], setting)
    health = once.get('/admin/health')
    eq(health.status, 503)
    has(health.body.decode(), setting)


def safe_again(once):
    wait_until(lambda: once.get('/admin/health').status == 200,
               'health is good')
    first(once.post('later'))


def test_a_setting_of_the_role_is_seen_before_a_new_connection_is_used(t):
    server, once = promising(t)
    answer = once.post('k1')
    first(answer)
    server.sql('ALTER ROLE postgres SET synchronous_commit = off')
    server.sql(CUT)
    refused(t, once, 'synchronous_commit')
    replay(once.post('k1'), answer)
    server.sql('ALTER ROLE postgres RESET synchronous_commit')
    safe_again(once)


def test_a_server_that_comes_back_with_a_setting_off_runs_nothing(t):
    server, once = promising(t)
    answer = once.post('k1')
    first(answer)
    server.sql('ALTER SYSTEM SET fsync = off')
    server.restart()
    refused(t, once, 'fsync')
    replay(once.post('k1'), answer)
    server.sql('ALTER SYSTEM SET fsync = on')
    server.restart()
    safe_again(once)


def test_nothing_is_accepted_by_an_unsafe_connection(t):
    server, once = promising(t, defaults={'async': 'always'})
    eq(once.post('k1').status, 202)
    wait_until(lambda: once.post('k1').status == 200, 'it has run')
    server.sql('ALTER ROLE postgres SET synchronous_commit = off')
    server.sql(CUT)
    refused(t, once, 'synchronous_commit')


def test_what_runs_is_recorded_by_an_unsafe_connection(t):
    server, once = promising(t, 'gate gate; ' + HELLO)
    gate = t.gate()
    run = Background(lambda: once.post('k1'))
    gate.wait()
    server.sql('ALTER ROLE postgres SET synchronous_commit = off')
    server.sql(CUT)
    refused(t, once, 'synchronous_commit')
    gate.open()
    first(run.result())
    eq(t.ledger(), ['1 k1'])
