"""How long a PostgreSQL server that locks is waited for."""
import time

import shared
from answer import problem
from test_postgres_ops import daemon, servers

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
