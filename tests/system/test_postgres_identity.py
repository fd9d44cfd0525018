"""Which store a daemon uses in PostgreSQL, and by which settings, whatever a
database's administrator does to schemas, roles and servers."""
import os

import base
import shared
from answer import eq, first, problem, replay
from base import wait_until
from lib.postgres import Proxy
from once import Background
from test_postgres_ops import (HELLO, ctl, daemon, environment, has, refused,
                               servers)
from test_postgres_unsafe import CUT

UNSAFE = {'client_min_messages': 'error', 'synchronous_commit': 'local',
          'default_transaction_isolation': 'serializable',
          'default_transaction_read_only': 'on',
          'standard_conforming_strings': 'off', 'array_nulls': 'off'}


def counting(t, server, **kw):
    return daemon(t, server, 'ledger $ONCE_KEY; ' + HELLO,
                  {'admin_path': '/admin', **kw.pop('options', {})}, **kw)


def unavailable(answer):
    problem(answer, 'store-unavailable',
            acted=not answer.json()['safe_new_key'])


def health(once):
    return once.get('/admin/health').body.decode()


def test_a_daemon_makes_no_store_and_says_what_does(t):
    server = servers(t).make('a')
    server.keep_promises()
    run = t.run([base.ONCEWRAP, '-d', server.uri(), '-s', t.path('s')],
                env=environment(t))
    refused(run, "make them: oncectl -d 'postgresql:")
    eq(server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE "
                  "'once%'"), '0')


def test_a_schema_of_the_role_that_is_made_later_moves_nobody(t):
    server = servers(t).make('a')
    once = counting(t, server)
    answer = once.post('k1')
    first(answer)
    server.sql('CREATE SCHEMA postgres AUTHORIZATION postgres')
    replay(once.post('k1'), answer)
    server.sql(CUT)
    replay(once.post('k1'), answer)
    eq([r['key'] for r in once.ls()], ['k1'])
    other = counting(t, server, name='other')
    replay(other.post('k1'), answer)
    eq(ctl(t, '-f', once.file, 'init').returncode, 0)
    once.stop()
    once.start()
    replay(once.post('k1'), answer)
    eq(t.ledger(), ['1 k1'])
    eq(server.sql("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename "
                  "LIKE 'once%'"), 'public')


def test_another_store_in_the_place_of_the_first_one_serves_nobody(t):
    server = servers(t).make('a')
    once = counting(t, server, options={'busy_timeout': '1s',
                                        'owner_timeout': '1h'})
    answer = once.post('k1')
    first(answer)
    server.sql('ALTER SCHEMA public RENAME TO first; CREATE SCHEMA public')
    eq(ctl(t, '-f', once.file, 'init').returncode, 0)
    server.sql(CUT)
    unavailable(once.post('k1'))
    unavailable(once.post('k2'))
    has(health(once), 'another store is there')
    once.wait_log('level=error .*another store is there')
    server.sql('DROP SCHEMA public CASCADE; '
               'ALTER SCHEMA first RENAME TO public')
    wait_until(lambda: once.get('/admin/health').status == 200, 'it is back')
    replay(once.post('k1'), answer)
    eq(t.ledger(), ['1 k1'])


def swap(server, to):
    """The schema `other` gets the name of the store's, or the first one does
    again."""
    parts = ('public', 'first', 'other') if to == 'other' else \
        ('public', 'other', 'first')
    server.sql('BEGIN; ALTER SCHEMA %s RENAME TO %s; ALTER SCHEMA %s RENAME '
               'TO public; COMMIT' % parts)


def with_another_store(t, **options):
    server = servers(t).make('a')
    once = counting(t, server, options=options,
                    defaults={'max_active_keys': 5})
    server.sql('CREATE SCHEMA other')
    conf = t.write('other.conf', '[server]\ndurability = normal\ndatabase = '
                   '%s\n' % server.uri('&options=-csearch_path%3Dother'))
    eq(ctl(t, '-f', conf, 'init').returncode, 0)
    return server, once


def test_another_store_in_open_connections_serves_nobody(t):
    server, once = with_another_store(t)
    answer = once.post('k1')
    first(answer)
    swap(server, 'other')
    for key in 'k1', 'k2':
        unavailable(once.post(key))
    is_told = 'another store is there'
    wait_until(lambda: is_told in health(once), 'it is told')
    once.ctl('accept-loss')
    wait_until(lambda: server.sql('SELECT losses > 0 FROM once_meta') == 't',
               'it is accepted there')
    wait_until(lambda: is_told in health(once), 'it is told still')
    swap(server, 'first')
    wait_until(lambda: 'accept-loss' in health(once), 'it is back')
    once.ctl('accept-loss')
    once.wait_log('event=loss-accepted')
    replay(once.post('k1'), answer)
    eq(t.ledger(), ['1 k1'])


def test_no_transaction_goes_on_in_another_store(t):
    """It waits for a lock in the first one."""
    server, once = with_another_store(t, busy_timeout='10s',
                                      owner_timeout='1h')
    first(once.post('k1'))
    boss = shared.connect(server.uri())
    t.defer(boss.close)
    boss.execute('BEGIN')
    boss.execute('SELECT 1 FROM once_kept FOR UPDATE').fetchall()
    client = Background(lambda: once.post('k2'))
    wait_until(lambda: server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = "
        "'Lock'") == '1', 'it waits')
    swap(server, 'other')
    boss.execute('ROLLBACK')
    unavailable(client.result())
    eq(t.ledger(), ['1 k1'])
    eq(server.sql('SELECT count(*) FROM once_key'), '0')


def test_a_store_in_a_schema_whose_name_needs_quotes(t):
    server = servers(t).make('a')
    server.keep_promises()
    server.sql('CREATE ROLE "Shop-App" LOGIN; CREATE SCHEMA "Shop-App" '
               'AUTHORIZATION "Shop-App"')
    uri = server.uri(user='Shop-App')
    once = t.once(t.sh(HELLO), database=uri, env=environment(t))
    answer = once.post('k1')
    first(answer)
    replay(once.post('k1'), answer)
    doctor = ctl(t, '-d', uri, 'doctor', env=environment(t))
    has(' '.join(doctor.stdout.decode().split()),
        'ok schema Shop-App, version')


def test_a_store_in_another_cluster_runs_nothing_until_it_is_accepted(t):
    group = servers(t)
    old, new = group.make('old'), group.make('new')
    proxy = Proxy(old)
    t.defer(proxy.close)
    once = t.once(t.sh('ledger $ONCE_KEY; ' + HELLO), database=proxy.uri(),
                  env=environment(t),
                  server={'durability': 'normal', 'owner_timeout': '2s',
                          'admin_path': '/admin'})
    answer = once.post('k1')
    first(answer)
    dump = t.path('dump')
    os.chmod(t.dir, 0o777)
    old.command('pg_dump', '-d', old.uri(), '-f', dump)
    new.command('psql', '-Xq', '-d', new.uri(), '-f', dump)
    proxy.target = '%s/.s.PGSQL.5432' % new.folder
    proxy.cut()
    unavailable(once.post('k2'))
    once.wait_log('event=store-went-back .*in another cluster')
    has(health(once), 'in another cluster')
    has(health(once), 'oncectl accept-loss')
    once.ctl('accept-loss')
    once.wait_log('event=loss-accepted')
    replay(once.post('k1'), answer)
    first(once.post('k2'))
    eq(t.ledger(), ['1 k1', '1 k2'])


def test_settings_of_the_role_reach_no_session_of_the_store(t):
    """By `error` the WARNING of a COMMIT that no standby has is not sent, and
    with `local` the COMMIT does not wait."""
    group = servers(t)
    server = group.make('a')
    standby = group.make('b', 'a')
    server.synchronous('standby')
    once = counting(t, server)
    server.sql('; '.join("ALTER ROLE postgres SET %s = '%s'" % one
                         for one in UNSAFE.items()))
    server.sql(CUT)
    first(once.post('k1'))
    standby.freeze()
    client = Background(lambda: once.post('alone'))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    wait_until(lambda: server.sql(waiting), 'it waits for the standby')
    server.sql('SELECT pg_cancel_backend(pid) FROM (%s) w' % waiting)
    once.wait_log('store-error.*COMMIT.*canceling wait for synchronous')
    unavailable(client.result())
    eq(t.ledger(), ['1 k1'])
    standby.thaw()
    wait_until(lambda: once.get('/admin/health').status == 200, 'it is well')
