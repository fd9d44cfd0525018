"""What is measured of the store in PostgreSQL; as in measure.py."""
import contextlib
import os

import programs
from delay import Delay
from measure import CROWD, FEW, KEYS, MANY, PROCESSES, SEED, with_memory
from pgserver import Server
from work import command

CLIENTS = 32    # of pgbench, fewer than the server has room for
SMALL = 0.25    # of a processor, of a small daemon
FAR = 10        # ms to a server that is far, and as many back
FAR_CLIENTS = 8
WARM = 8        # times as long: connections are made, and statements planned

BOUND = '''
CREATE TABLE bound(key text PRIMARY KEY, state text NOT NULL,
    fingerprint bytea NOT NULL, answer bytea)
'''
# What a first run and a replay ask of the database, and nothing else.
FIRST = r'''
\set key random(1, 9000000000000000000)
INSERT INTO bound(key, state, fingerprint) VALUES (md5(:key::text), 'running',
    sha256('a'));
UPDATE bound SET state = 'completed', answer = repeat('x', 150)::bytea
WHERE key = md5(:key::text);
'''
REPLAY = r'''
\set key random(1, %d)
SELECT state, fingerprint, answer FROM bound WHERE key = md5(:key::text);
''' % KEYS
FILL = '''
INSERT INTO bound SELECT md5(g::text), 'completed', sha256('a'),
    repeat('x', 150)::bytea FROM generate_series(1, %d) g
''' % KEYS


def server(b):
    """Started once, and idle while others are measured."""
    if b.postgres is None:
        b.postgres = b.keep(Server(b.work))
    return b.postgres


def program(b, processes=PROCESSES):
    return 'handler = %s\nprotocol = fastcgi\nprocesses = %d' % (
        b.work.program('program.fcgi'), processes)


def crowd(b, uri):
    with programs.oncewrap(b.work, uri, CROWD, more=program(b)) as once:
        return with_memory(b.first('once', CROWD, warm=WARM), once)


def pg_stays(b):
    pg = server(b)
    return crowd(b, pg.uri(pg.fresh()))


def pg_two(b):
    """Two daemons, as on two hosts; each has as many workers and processes."""
    pg = server(b)
    uri = pg.uri(pg.fresh())
    with programs.oncewrap(b.work, uri, CROWD, more=program(b)) as one, \
            programs.oncewrap(b.work, uri, CROWD, more=program(b),
                              name='other') as other:
        return with_memory(b.first('two', CROWD, warm=WARM), one, other)


def small(b, *names):
    """Daemons that have a part of a processor each, with their programs."""
    pg = server(b)
    uri = pg.uri(pg.fresh())
    with contextlib.ExitStack() as stack:
        daemons = []
        for name in names:
            share = stack.enter_context(programs.Share(name, SMALL))
            daemons.append(stack.enter_context(programs.oncewrap(
                b.work, uri, CROWD, more=program(b), name=name)))
            share.add(daemons[-1])
        return with_memory(b.first(names[0] if len(names) == 1 else 'two',
                                   CROWD, warm=WARM), *daemons)


def pg_small(b):
    return small(b, 'once')


def pg_small_two(b):
    return small(b, 'once', 'other')


def bound_first(b):
    pg = server(b)
    database = pg.fresh()
    pg.sql(BOUND, database)
    return pg.bench(database, FIRST, CLIENTS, b.seconds, b.warm)


def pg_far(b):
    pg = server(b)
    with Delay(pg.host, FAR) as far:
        uri = 'postgresql:///%s?host=%s&user=postgres' % (pg.fresh(),
                                                          far.folder)
        with programs.oncewrap(b.work, uri, more=program(b)) as once:
            return with_memory(b.first('once', FAR_CLIENTS, warm=WARM), once)


def bound_far(b):
    pg = server(b)
    database = pg.fresh()
    pg.sql(BOUND, database)
    with Delay(pg.host, FAR) as far:
        return pg.bench(database, FIRST, FAR_CLIENTS, b.seconds, b.warm,
                        far.folder)


def bound_replay(b):
    pg = server(b)
    database = pg.fresh()
    pg.sql(BOUND, database)
    pg.sql(FILL, database)
    pg.sql('VACUUM ANALYZE bound', database)
    return pg.bench(database, REPLAY, CLIENTS, b.seconds, b.warm)


def filled(b):
    """The URI of a database of completed keys, made once."""
    pg = server(b)
    if not pg.exists('filled'):
        pg.sql('CREATE DATABASE filled')
        with programs.oncewrap(b.work, pg.uri('filled'), CROWD,
                               more=program(b)):
            b.some('once', KEYS, '-c', CROWD, '-k', 'new:%d' % SEED, '-f')
        pg.sql('VACUUM ANALYZE', 'filled')
    return pg.uri('filled')


def replays(b, uri, keys):
    with programs.oncewrap(b.work, uri, more=program(b)) as once:
        return with_memory(b.replays('once', keys, WARM), once)


def pg_replay(b):
    return replays(b, filled(b), KEYS)


# --- many keys --------------------------------------------------------------

def copied(b, database, keys):
    """The URI of a new database of so many completed keys."""
    pg = server(b)
    uri = pg.uri(database)
    command([b.work.program('oncectl'), '-d', b.filled(keys), 'copy', '--to',
             uri], env=dict(os.environ, ONCEWRAP_MODULES=b.work.path('bin')))
    pg.sql('VACUUM ANALYZE', database)
    pg.sql('CHECKPOINT')
    return uri


def few(b):
    """Made anew each time: first runs make it grow."""
    return copied(b, server(b).fresh(), FEW)


def many(b):
    """Made once: what is added to it are few."""
    pg = server(b)
    if pg.exists('many'):
        return pg.uri('many')
    pg.sql('CREATE DATABASE many TEMPLATE template0')
    try:
        return copied(b, 'many', MANY)
    except Exception:
        pg.drop('many')     # what is left is not it
        raise


def pg_many_replay(b):
    return replays(b, many(b), MANY)


def pg_few_replay(b):
    return replays(b, few(b), FEW)


def pg_many_first(b):
    return crowd(b, many(b))


def pg_few_first(b):
    return crowd(b, few(b))
