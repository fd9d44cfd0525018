"""Handlers that lock their key in a PostgreSQL database, and stay."""
import shared
from answer import eq, first, problem
from base import wait_until
from once import Background
from test_postgres_ops import daemon, servers

SHARES = 'ledger "$ONCE_TOKEN"; gate gate; status 201; echo done'


def locked(t, n, workers=32):
    """A daemon, n requests whose outcomes it cannot record, and the connections
    that have locked their keys."""
    server = servers(t).make('a')
    gate = t.gate()
    once = daemon(t, server, options={'busy_timeout': '500ms',
                                      'workers': workers,
                                      'admin_path': '/admin'},
                  routes={'/shares': {'handler': t.sh(SHARES),
                                      'share_database': 'yes'}})
    runs, connections = [], []
    for k in range(n):
        runs.append(Background(lambda k=k: once.post('k%d' % k,
                                                    path='/shares')))
        gate.wait()
        db = shared.connect(server.uri())
        t.defer(db.close)
        db.execute('BEGIN')
        db.execute("INSERT INTO once_checkpoint(token, recovery_point) "
                   "VALUES (?, 'here')", [t.ledger()[k].split()[1]])
        connections.append(db)
    gate.open(n + 1)
    for run in runs:
        problem(run.result(), 'outcome-not-recorded')
    eq(len(once.wait_log('event=key-locked', n)), n)
    return once, connections


def test_a_key_that_its_handler_has_locked_holds_up_no_other(t):
    once, connections = locked(t, 1)
    for n in range(9):
        first(once.post('other%d' % n))
    eq(once.get('/admin/health').status, 200)
    problem(once.post('k0', path='/shares'), 'key-in-progress')
    connections[0].execute('ROLLBACK')
    once.wait_state('k0', 'completed')
    answer = once.post('k0', path='/shares')
    eq((answer.status, answer.replayed), (201, 'true'))
    eq(len(t.ledger()), 1)


def test_behind_a_locked_key_another_outcome_is_recorded(t):
    once, connections = locked(t, 2)
    connections[1].execute('ROLLBACK')
    once.wait_state('k1', 'completed')
    eq(once.row('k0')['state'], 'in_progress')


def test_more_than_64_locked_keys_stop_new_runs_of_their_path_only(t):
    once, connections = locked(t, 65, workers=80)
    wait_until(lambda: once.get('/admin/health').status == 200,
               'all are known to be locked')
    problem(once.post('new', path='/shares'), 'store-unavailable')
    for n in range(3):
        first(once.post('other%d' % n))
    eq(len(t.ledger()), 65)
    connections[0].execute('ROLLBACK')
    once.wait_state('k0', 'completed')
    eq(once.post('k0', path='/shares').replayed, 'true')
    first(once.post('new', path='/shares'), 201)
