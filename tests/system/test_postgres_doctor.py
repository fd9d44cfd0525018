"""What oncectl init, doctor and the first start say of a PostgreSQL server."""
import os
import shutil

import base
from answer import eq, first, replay
from base import wait_until
from clocks import Clocks
from lib.postgres import account, own
from test_postgres_ops import (HELLO, ctl, daemon, environment, has, refused,
                               servers)


def pooler(t, server, mode):
    """The URI of a pgbouncer before the server."""
    base.need('/usr/sbin/pgbouncer')
    folder = t.path('pooler')
    os.mkdir(folder)
    own(folder)
    os.chmod(t.dir, 0o755)
    with open(os.path.join(folder, 'ini'), 'w') as f:
        f.write("""
[databases]
postgres = host=%s dbname=postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = %s
auth_type = any
pool_mode = %s
ignore_startup_parameters = extra_float_digits
""" % (server.folder, folder, mode))
    t.popen(['/usr/sbin/pgbouncer', os.path.join(folder, 'ini')],
            'pooler.log', **account())
    path = os.path.join(folder, '.s.PGSQL.6432')
    wait_until(lambda: os.path.exists(path), 'pgbouncer listens')
    return 'postgresql:///postgres?host=%s&port=6432&user=postgres' % folder


def full(server):
    server.keep_promises()
    return server


def findings(t, *args, status):
    run = ctl(t, *args, 'doctor')
    eq(run.returncode, status, run)
    return {line.split()[1]: line for line in
            run.stdout.decode().splitlines()[1:]}


def test_a_pooler_by_transaction_is_refused(t):
    server = full(servers(t).make('a'))
    uri = pooler(t, server, 'transaction')
    for _ in range(3):
        refused(ctl(t, '-d', uri, 'init'), 'pool_mode = session')
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    for _ in range(3):
        refused(ctl(t, '-d', uri, 'ls'), 'pool_mode = session')
    run = t.run([base.ONCEWRAP, '-d', uri, '-s', t.path('s')],
                env=environment(t))
    refused(run, 'pool_mode = session')


def test_a_pooler_by_session_serves(t):
    server = full(servers(t).make('a'))
    uri = pooler(t, server, 'session')
    once = t.once(t.sh(HELLO), database=uri, env=environment(t))
    answer = once.post('k1')
    first(answer)
    replay(once.post('k1'), answer)
    eq([r['key'] for r in once.ls()], ['k1'])


def small(findings):
    return {name: line.split()[0] for name, line in findings.items()}


def test_doctor_finds_all_well_on_a_server_that_keeps_promises(t):
    server = full(servers(t).make('a'))
    once = t.once(t.sh(HELLO), database=server.uri(), env=environment(t))
    first(once.post('k1'))
    found = findings(t, '-d', server.uri(), status=0)
    assert 'BAD' not in small(found).values(), found
    has(found['server'], ' at %s port 5432' % server.folder)
    has(found['standby'], 'none')
    has(found['clock'], 'agree')
    has(found['rights'], 'all it needs')


def test_doctor_says_what_an_asynchronous_standby_may_lose(t):
    group = servers(t)
    server = full(group.make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    standby = group.make('b', 'a')
    found = findings(t, '-d', server.uri(), status=1)
    eq(found['standby'].split()[0], 'BAD')
    has(found['standby'], 'asynchronous')
    server.synchronous('standby')
    found = findings(t, '-d', server.uri(), status=0)
    has(found['standby'], 'a standby has it; 1 connected')
    standby.stop()
    found = findings(t, '-d', server.uri(), status=1)
    eq(found['standby'].split()[0], 'BAD')
    has(found['standby'], 'none is connected')
    standby.start()
    wait_until(lambda: '1 connected' in ctl(
        t, '-d', server.uri(), 'doctor').stdout.decode(), 'it is back')


def test_doctor_names_tables_rights_and_clocks_that_are_wrong(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    server.sql('ALTER TABLE once_refused SET UNLOGGED')
    found = findings(t, '-d', server.uri(), status=1)
    has(found['tables'], 'empties once_refused')
    server.sql('ALTER TABLE once_refused SET LOGGED')
    server.sql("""CREATE ROLE reader LOGIN;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public
            TO reader;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO reader;
        REVOKE DELETE ON once_effect FROM reader""")
    found = findings(t, '-d', server.uri(user='reader'), status=1)
    has(found['rights'], 'read and change once_effect')


def test_doctor_names_what_safety_rests_on_and_lacks(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)

    def finds(name, says, change, back):
        server.sql(change)
        found = findings(t, '-d', server.uri(), status=1)
        eq(found[name].split()[0], 'BAD')
        has(found[name], says)
        server.sql(back)
    finds('schema', 'without once_key_digest_key',
          'ALTER TABLE once_key DROP CONSTRAINT once_key_digest_key',
          'ALTER TABLE once_key ADD UNIQUE (digest)')
    valid = "UPDATE pg_index SET indisvalid = %s WHERE indexrelid = " \
        "'once_key_running'::regclass"
    finds('schema', 'without once_key_running', valid % 'false',
          valid % 'true')
    finds('foreign', 'row security',
          'ALTER TABLE once_key ENABLE ROW LEVEL SECURITY',
          'ALTER TABLE once_key DISABLE ROW LEVEL SECURITY')
    server.sql('ALTER SCHEMA public RENAME TO shop')
    server.sql('ALTER ROLE postgres SET search_path = shop')
    finds('schema', 'SET search_path = shop, pg_temp',
          'ALTER FUNCTION once_checkpoint SET search_path = shop, pg_temp',
          'ALTER FUNCTION once_outbox SET search_path = shop, pg_temp; '
          'ALTER FUNCTION once_response SET search_path = shop, pg_temp')
    findings(t, '-d', server.uri(), status=0)


def test_doctor_says_how_far_the_clocks_are_apart(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    clocks = Clocks(t)
    clocks.jump(100)
    has(findings(t, '-d', server.uri(), status=1)['clock'], "s ahead of")
    clocks.jump(-200)
    has(findings(t, '-d', server.uri(), status=1)['clock'], "s behind")


def test_doctor_finds_a_host_with_a_copy_of_the_disk(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    for number, boot in ((1, 'x'), (2, 'y')):
        server.sql("INSERT INTO once_owner(id, host, boot, pid, beat, beat_at)"
                   " VALUES (%d, 'a-machine', '%s', 1, 1, (extract(epoch FROM"
                   " clock_timestamp()) * 1000)::bigint)" % (number, boot))
    has(findings(t, '-d', server.uri(), status=1)['hosts'],
        "a copy of another's, unless it has just booted: a-machine")


def test_a_role_that_may_make_no_tables_gets_a_clear_error(t):
    server = full(servers(t).make('a'))
    server.sql('CREATE ROLE plain LOGIN')
    refused(ctl(t, '-d', server.uri(user='plain'), 'init'),
            'permission denied for schema public')
    server.sql('CREATE SCHEMA plain AUTHORIZATION plain')
    eq(ctl(t, '-d', server.uri(user='plain'), 'init').returncode, 0)
    eq(server.sql("SELECT schemaname, tableowner FROM pg_tables "
                  "WHERE tablename = 'once_key'"), 'plain|plain')
    refused(ctl(t, '-d', server.uri(), 'ls'), 'make them: oncectl')
    server.sql('CREATE ROLE other LOGIN; GRANT USAGE ON SCHEMA plain TO '
               'other; ALTER ROLE other SET search_path = plain')
    refused(ctl(t, '-d', server.uri(user='other'), 'ls'),
            'permission denied for table once_meta')


def test_an_ordinary_role_makes_the_tables_and_uses_them(t):
    server = full(servers(t).make('a'))
    server.sql('CREATE ROLE plain LOGIN')
    server.sql('CREATE DATABASE shop OWNER plain')
    once = t.once(t.sh(HELLO), env=environment(t), database=server.uri(
        user='plain').replace('/postgres?', '/shop?'))
    first(once.post('k1'))


def test_tables_of_another_release_are_refused(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    server.sql('UPDATE once_meta SET version = version + 1')
    refused(ctl(t, '-d', server.uri(), 'ls'), 'another release of oncewrap')
    refused(ctl(t, '-d', server.uri(), 'init'), 'another release of oncewrap')
    refused(t.run([base.ONCEWRAP, '-d', server.uri(), '-s', t.path('s')],
                  env=environment(t)), 'another release of oncewrap')


# --- this host's folder ---

def test_sweep_and_doctor_know_the_dead_of_their_host(t):
    server = full(servers(t).make('a'))
    once = t.once(t.sh('kill -9 $PPID'), database=server.uri(),
                  env=environment(t), name='lost')
    once.begin('k1')
    once.process.wait(60)
    env = once.env
    eq(server.sql("SELECT state FROM once_key"), 'in_progress')
    run = ctl(t, '-d', server.uri(), 'doctor', env=env)
    has(' '.join(run.stdout.decode().split()), 'BAD leases 1 held by')
    run = ctl(t, '-d', server.uri(), 'sweep', env=env)
    has(run.stdout.decode(), '1 key settled')
    eq(server.sql("SELECT state FROM once_key"), 'unknown')
    eq(server.sql("SELECT count(*) FROM once_owner"), '0')
    once.process = None


def test_root_looks_at_the_processes_of_a_daemon_of_another_user(t):
    base.need_root()
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    folder = t.path('state')
    os.mkdir(folder, 0o700)
    shutil.chown(folder, 'nobody')
    env = dict(os.environ, STATE_DIRECTORY=folder)
    eq(ctl(t, '-d', server.uri(), 'sweep', env=env).returncode, 0)
    # The daemon must be able to open its files: root has made none.
    eq(os.listdir(folder), [])


def test_the_sessions_of_an_operator_go_with_it(t):
    server = full(servers(t).make('a'))
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    eq(ctl(t, '-d', server.uri(), 'accept-loss').returncode, 0)
    eq(server.sql('SELECT count(*) FROM once_session'), '0')
