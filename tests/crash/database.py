"""The database of a scenario, whichever store has it: a file, or one in the
server of the run."""
import contextlib
import re
import sqlite3
import subprocess

import base
import postgres
from once import Lock

# The statements of an order are one transaction.
SQLITE_ORDER = '''
import sqlite3
db = sqlite3.connect(os.environ["ONCE_DATABASE"], timeout=20,
                     isolation_level=None)
key, token = os.environ["ONCE_KEY"], os.environ["ONCE_TOKEN"]
db.execute("BEGIN IMMEDIATE")
db.execute("CREATE TABLE IF NOT EXISTS orders(key TEXT)")
db.execute("INSERT INTO orders VALUES (?)", (key,))
for n in range(3):
    db.execute("INSERT INTO once_outbox(token, topic, payload)"
               " VALUES (?, 'mail', ?)", (token, str(n)))
db.execute("INSERT INTO once_response(token, status, body)"
           " VALUES (?, 201, ?)", (token, key))
db.execute("COMMIT")
'''
POSTGRES_ORDER = '''
import subprocess
key, token = os.environ["ONCE_KEY"], os.environ["ONCE_TOKEN"]
sql = ["BEGIN", "INSERT INTO orders VALUES ('%%s')" %% key]
for n in range(3):
    sql.append("SELECT once_outbox('%%s', 'mail', '%%d')" %% (token, n))
sql.append("SELECT once_response('%%s', 201, '', '%%s')" %% (token, key))
sql.append("COMMIT")
subprocess.run([%r, "-XAtq", "-v", "ON_ERROR_STOP=1", "-d",
                os.environ["ONCE_DATABASE"]], input="; ".join(sql) + ";",
               text=True, check=True, stdout=subprocess.DEVNULL)
'''


def psql(database, statement):
    """The rows, as lists of texts."""
    run = subprocess.run(
        [postgres.program('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
         database, '-c', statement], capture_output=True, text=True,
        stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    return [line.split('|') for line in run.stdout.splitlines()]


def literal(value):
    return "'%s'" % value if isinstance(value, str) else str(value)


def rows(life, statement, values=()):
    """The rows of a statement that both stores understand."""
    if base.POSTGRES:
        it = iter(values)
        found = psql(life.once.database, re.sub(
            r'\?', lambda _: literal(next(it)), statement))
        return [tuple(int(v) if v.isdigit() else v for v in row)
                for row in found]
    with contextlib.closing(sqlite3.connect(life.once.database,
                                            timeout=30)) as db, db:
        return db.execute(statement, values).fetchall()


def sql(life, *statement):
    """The first row, or None."""
    found = rows(life, *statement)
    return found[0] if found else None


def lock(t, life):
    return Lock(t, life.once.database)


# The columns of a key that was completed long ago, as a copy of another one.
OLD_SQLITE = """
    WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL
        SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO once_key(id, identity, key, path, scope, state, attempt,
        fingerprint, fingerprint_spec, downstream, retention, created_at,
        updated_at, expires_at, status)
    SELECT k.id + n.i, n.i, 'old' || n.i, '/pay', '', 'completed', 1,
        k.fingerprint, k.fingerprint_spec, k.downstream, 0, 0, 0, 1, 200
    FROM once_key k, n WHERE k.key = 'done'"""
OLD_POSTGRES = """
    INSERT INTO once_key(id, digest, key, path, scope, caller, state,
        attempt, fingerprint, fingerprint_spec, downstream, retention,
        created_at, updated_at, expires_at, status)
    SELECT 1000000 + i, decode(md5(i::text), 'hex'),
        convert_to('old' || i, 'UTF8'), '/pay', '', k.caller, 'completed', 1,
        k.fingerprint, k.fingerprint_spec, k.downstream, 0, 0, 0, 1, 200
    FROM once_key k, generate_series(1, ?) i WHERE k.key = 'done'"""


def plant(life, n):
    """Copies of a completed key, past their retention."""
    rows(life, OLD_POSTGRES if base.POSTGRES else OLD_SQLITE, (n,))


def order():
    """A handler in Python, up to its output."""
    if base.POSTGRES:
        return POSTGRES_ORDER % postgres.program('psql')
    return SQLITE_ORDER


def make_orders(life):
    """A table for them, where the handlers do not make it."""
    if base.POSTGRES:
        rows(life, 'CREATE TABLE orders(key TEXT)')


def orders(life):
    """The keys of orders that were committed."""
    try:
        return [key for key, in rows(life, 'SELECT key FROM orders')]
    except sqlite3.OperationalError:
        return []
