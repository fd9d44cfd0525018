"""How long a PostgreSQL server that locks, or does not commit, is waited for,
and what oncectl then says."""
import time

import shared
from answer import eq, first, problem, replay
from once import Background
from test_postgres_ops import UNKNOWN, ctl, daemon, refused, servers

BUSY = 2


def test_a_new_key_waits_for_a_locked_table_once(t):
    server = servers(t).make('a')
    once = daemon(t, server, options={'busy_timeout': '%ds' % BUSY})
    db = shared.connect(server.uri())
    t.defer(db.close)
    db.execute('BEGIN')
    db.execute('LOCK TABLE once_key IN ACCESS EXCLUSIVE MODE')
    for n in range(2):
        begun = time.monotonic()
        problem(once.post('k%d' % n), 'store-unavailable', acted=True)
        took = time.monotonic() - begun
        assert BUSY - 0.1 < took < 2 * BUSY - 0.5, took


def test_what_a_commit_without_an_answer_has_done_is_said(t):
    server = servers(t).make('a')
    once = daemon(t, server, UNKNOWN)
    for key in ('k1', 'k2'):
        problem(once.post(key), 'handler-failed', unknown=True)
    once.stop()
    conf = t.write('quick.conf', '[server]\ndatabase = %s\n'
                   'durability = normal\nbusy_timeout = 200ms\n'
                   % server.uri())
    server.synchronous('missing')
    for verb, says in (
            (['accept-loss'], 'the server did not answer in time; the loss '
             'was not accepted'),
            (['accept-clock'], 'the clock was not accepted'),
            (['forget', 'k1'], 'the database did not answer in time; nothing '
             'was changed'),
            (['resolve', 'k2', '--not-executed'], 'the database did not '
             'confirm the change in time; whether it was made, "oncectl '
             'show" tells')):
        refused(ctl(t, '-f', conf, *verb), says)
    server.synchronous('')
    eq([row['state'] for row in once.ls()], ['unknown', 'unknown'])


def test_the_list_of_owners_is_waited_for_by_no_others(t):
    """Nothing is known yet of the process that runs the first request."""
    server = servers(t).make('a')
    gate = t.gate()
    handler = t.sh('[ "$ONCE_KEY" = k ] && gate gate; status 200')
    options = {'owner_timeout': '10m', 'busy_timeout': '10m'}
    other = daemon(t, server, handler, options, name='other')
    answer = other.post('small')
    first(answer)
    once = daemon(t, server, handler, options)
    run = Background(lambda: once.post('k'))
    gate.wait()
    db = shared.connect(server.uri())
    t.defer(db.close)
    db.execute('BEGIN')
    db.execute('LOCK TABLE once_owner IN ACCESS EXCLUSIVE MODE')
    conn = other.begin('k')
    for _ in range(3):
        assert conn.silent(0.2), 'it has an answer'
        replay(other.post('small'), answer)
    db.execute('ROLLBACK')
    eq(conn.answer().code, 'key-in-progress')
    gate.open()
    first(run.result())


def test_an_outcome_waits_for_a_locked_table_once(t):
    server = servers(t).make('a')
    gate = t.gate()
    once = daemon(t, server, 'gate gate; status 200', {
        'busy_timeout': '%ds' % BUSY})
    db = shared.connect(server.uri())
    t.defer(db.close)
    for n, table in enumerate(('once_key', 'once_session')):
        run = Background(lambda: once.post('k%d' % n))
        gate.wait()
        db.execute('BEGIN')
        db.execute('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE' % table)
        begun = time.monotonic()
        gate.open()
        problem(run.result(), 'outcome-not-recorded')
        took = time.monotonic() - begun
        db.execute('ROLLBACK')
        assert BUSY - 0.1 < took < 2 * BUSY - 0.5, took
        once.wait_state('k%d' % n, 'completed')


def test_an_outcome_does_not_wait_for_new_requests(t):
    """There are more of them than helpers, and the server locks."""
    server = servers(t).make('a')
    gate = t.gate()
    once = daemon(t, server, '[ "$ONCE_KEY" = k ] && gate gate; status 200', {
        'busy_timeout': '%ds' % BUSY})
    run = Background(lambda: once.post('k'))
    gate.wait()
    db = shared.connect(server.uri())
    t.defer(db.close)
    db.execute('BEGIN')
    db.execute('LOCK TABLE once_key IN ACCESS EXCLUSIVE MODE')
    conns = [once.begin('k%d' % n) for n in range(1000)]
    begun = time.monotonic()
    gate.open()
    problem(run.result(), 'outcome-not-recorded')
    took = time.monotonic() - begun
    assert took < 5 * BUSY, took
    assert conns[-1].silent(), 'it has not waited'
    db.execute('ROLLBACK')
    for conn in conns:
        conn.close()
