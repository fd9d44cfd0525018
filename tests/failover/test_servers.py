"""Servers that are full, restarted, or behind a pooler; clients that are
frozen."""
import contextlib
import os
import shutil
import signal
import subprocess

import base
import proc
from answer import eq, problem
from base import wait_until
from lib import postgres
from once import Background, parallel

import world


def health(once, status):
    wait_until(lambda: once.get('/once/health').status == status,
               'health is %d' % status)


def test_out_of_connections(t):
    """The server has room for few, others take them all, and leave again."""
    w = world.World(t)
    w.primary.write('postgresql.auto.conf', 'max_connections = 12\n'
                    'superuser_reserved_connections = 3\n'
                    'max_wal_senders = 0\n')
    w.primary.restart()
    w.primary.sql('CREATE ROLE shop LOGIN; GRANT ALL ON SCHEMA public TO shop')
    database = w.primary.uri(user='shop')
    once = w.host('a', database=database)
    eq(w.final(once, 'k').status, 201)
    others = []

    def take():
        """False: there was no connection left."""
        one = t.popen([postgres.program('psql'), '-XAtq', '-d', database],
                      stdin=-1, stdout=-1, stderr=-1)
        one.stdin.write(b'SELECT 1;\n')
        one.stdin.flush()
        if not one.stdout.readline():
            return False
        others.append(one)
        return True

    def all_taken():
        """Those of the daemon are ended until others have been faster."""
        w.primary.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name <> 'psql' AND usename = 'shop'")
        while take():
            pass
        return len(others) == 9
    wait_until(all_taken, 'no connection is left')
    w.refused(once, 'meanwhile')
    health(once, 503)
    for one in others:
        base.end(one)
    w.check(once)
    eq(w.final(once, 'meanwhile').status, 201)
    # More clients than connections: they wait for one another.
    keys = ['k%d' % n for n in range(24)]
    parallel([lambda k=k: w.final(once, k) for k in keys])
    w.check(once)


def small_disk(t, size):
    """Servers of which disk/NAME has a disk of its own."""
    base.need_root()
    # Where the others have their data, in memory.
    os.environ.pop('POSTGRES_DATA', None)
    group = world.servers(t)
    disk = os.path.join(group.folder, 'disk')
    os.mkdir(disk)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=755,size=' + size,
                    'tmpfs', disk], check=True)
    # After the server has stopped.
    t.deferred.insert(0, lambda: subprocess.run(['umount', disk], check=True))
    t.deferred.insert(0, lambda: shutil.rmtree(group.folder))
    return group, disk


def test_out_of_disk(t):
    """Its disk is full, and then has room again.  A key whose outcome had no
    room may lose its answer's body, and nothing else."""
    group, disk = small_disk(t, '220m')
    w = world.World(t, group=group, name='disk/primary')
    once = w.host('a')
    kept = w.final(once, 'kept')
    filler = os.path.join(disk, 'filler')
    with open(filler, 'wb', buffering=0) as f, contextlib.suppress(OSError):
        while f.write(bytes(4096)):
            pass
    # Until the pages that are there are full, too.  One of them may still have
    # room for a row when another had none.
    keys, refused = [], []
    while len(refused) < 5:
        assert len(keys) < 500, 'there is no end of room'
        keys.append('k%d' % len(keys))
        answer = w.post(once, keys[-1])
        if answer.code == 'store-unavailable':
            assert answer.get('Retry-After'), str(answer)
            refused.append(keys[-1])
    eq([w.runs(key) for key in refused], [0] * 5)
    os.unlink(filler)
    eq(w.final(once, 'kept').body, kept.body)
    for key in keys:
        answer = w.final(once, key)
        assert answer.status == 201 or answer.code == 'response-not-kept', \
            str(answer)
        eq(w.runs(key), 1)
    health(once, 200)


def test_a_server_is_restarted_again_and_again(t):
    w = world.World(t)
    once = w.host('a')
    for n, how in enumerate((signal.SIGINT, signal.SIGQUIT, signal.SIGINT)):
        client = Background(lambda n=n: w.final(once, 'k%d' % n))
        w.primary.stop(how)
        w.refused(once, 'meanwhile')
        w.primary.start()
        eq(client.result().status, 201)
    w.check(once)


POOLER = """
[databases]
postgres = host=%(folder)s port=5432 dbname=postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = %(here)s
listen_port = 6432
auth_type = any
pool_mode = session
default_pool_size = 30
server_reset_query = DISCARD ALL
ignore_startup_parameters = extra_float_digits
pidfile =
logfile =
"""


def test_behind_a_pooler_in_session_mode(t):
    """Two daemons behind pgbouncer; it is killed, and started again."""
    w = world.World(t)
    here = os.path.join(w.group.folder, 'pooler')
    os.mkdir(here)
    postgres.own(here)
    conf = t.write('pgbouncer.ini', POOLER % {'folder': w.primary.folder,
                                              'here': here})

    def pooler():
        process = t.popen([base.need('pgbouncer'), '-q', conf],
                          log='pooler.log', stdin=subprocess.DEVNULL,
                          **postgres.account())
        wait_until(lambda: os.path.exists(here + '/.s.PGSQL.6432'),
                   'the pooler listens')
        return process
    process = pooler()
    database = 'postgresql:///postgres?host=%s&port=6432&user=postgres' % here
    daemons = [w.host(name, database=database) for name in 'ab']
    for n in range(10):
        eq(w.final(daemons[n % 2], 'k%d' % n).status, 201)
    process.kill()
    process.wait()
    w.refused(daemons[0], 'meanwhile')
    os.unlink(here + '/.s.PGSQL.6432')
    pooler()
    w.check(*daemons)


def test_a_frozen_client_that_holds_a_lock_holds_nobody_up_for_long(t):
    """It stands still with its reservation open.  Its server process ends, so
    that others get at the key."""
    w = world.World(t)
    first = w.host('a', fault='COMMIT_READY:+1:stop')
    waits = Background(lambda: w.post(first, 'k'))
    world.is_stopped(first)
    open_ones = w.primary.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE state = "
        "'idle in transaction'")
    eq(open_ones, '1')
    other = w.host('b')
    eq(w.final(other, 'k').status, 201)
    eq(proc.state(first.pid), 'T')
    eq(w.primary.sql("SELECT count(*) FROM pg_stat_activity WHERE state = "
                     "'idle in transaction'"), '0')
    world.go_on(first)
    assert waits.result().status in (201, 503), waits.result()
    w.check(first, other)


def test_what_only_the_primary_has_is_told_to_nobody(t):
    """The wait for the synchronous standby is cancelled: the server says
    COMMIT, with a warning."""
    w = world.World(t, busy_timeout='5s').with_standby()
    once = w.host('a')
    eq(w.final(once, 'k').status, 201)
    w.standby.freeze()
    client = Background(lambda: w.post(once, 'alone'))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    wait_until(lambda: w.primary.sql(waiting), 'it waits for the standby')
    w.primary.sql("SET synchronous_commit = local; SELECT "
                  "pg_cancel_backend(pid) FROM (%s) w" % waiting)
    once.wait_log('store-error.*COMMIT.*canceling wait for synchronous')
    problem(client.result(), 'store-unavailable',
            acted=not client.result().json()['safe_new_key'])
    eq(w.runs('alone'), 0)
    w.standby.thaw()
    w.check(once)
