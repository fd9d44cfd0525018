"""What a role of PostgreSQL that lacks rights, or a database, gets to read."""
import itertools
import os

import base
from answer import eq, first, problem
from base import wait_until
from lib.postgres import query
from test_postgres_ops import HELLO, ctl, environment, has, refused, servers


def shop(t):
    """A server that keeps promises, and the URI of its database shop, which
    the role app owns."""
    server = servers(t).make('a')
    server.keep_promises()
    server.sql('CREATE ROLE app LOGIN')
    server.sql('CREATE DATABASE shop OWNER app')
    return server, server.uri(user='app').replace('/postgres?', '/shop?')


def sql(server, text):
    """In the database shop, as its owner."""
    return query(server.uri(user='app').replace('/postgres?', '/shop?'), text)


def start(t, uri):
    return t.run([base.ONCEWRAP, '-d', uri, '-s', t.path('s')],
                 env=environment(t))


def test_no_start_without_the_rights_that_a_key_needs(t):
    server, uri = shop(t)
    eq(ctl(t, '-d', uri, 'init').returncode, 0)
    server.sql('CREATE ROLE guest LOGIN')
    sql(server, 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA '
        'public TO guest')
    guest = uri.replace('user=app', 'user=guest')
    refused(start(t, guest), 'its role must be able to read and change')
    has(start(t, guest).stderr.decode(), 'once_key_id')
    has(start(t, guest).stderr.decode(), 'name the role app, which owns')
    sql(server, 'GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO guest')
    once = t.once(t.sh(HELLO), database=guest, env=environment(t))
    first(once.post('k1'))


def test_health_is_bad_while_no_key_can_be_reserved(t):
    server, uri = shop(t)
    once = t.once(t.sh(HELLO), server={'admin_path': '/admin'}, database=uri,
                  env=environment(t))
    first(once.post('k0'))
    number = itertools.count(1)
    for right in ('ALL ON SEQUENCE once_key_id', 'INSERT ON once_key',
                  'SELECT ON once_key'):
        sql(server, 'REVOKE %s FROM app' % right)
        # Some numbers were drawn before.
        wait_until(lambda: once.post('k%d' % next(number)).status == 503,
                   'no key is reserved')
        for _ in range(2):
            health = once.get('/admin/health')
            eq(health.status, 503)
            has(health.body.decode(), 'no key can be reserved: permission '
                'denied for ')
        sql(server, 'GRANT %s TO app' % right)
        eq(once.get('/admin/health').status, 200)
        first(once.post('k%d' % next(number)))
    problem(once.post('k0', body=b'other'), 'key-reused')
    eq(sql(server, "SELECT count(*) FROM once_key WHERE state <> 'completed'"),
       '0')
    eq(sql(server, 'SELECT sum(bytes), count(r) FROM once_kept '
           'LEFT JOIN once_request r ON true'), '0|0')


def test_a_missing_right_or_database_names_the_cure(t):
    server, uri = shop(t)
    server.sql('CREATE ROLE guest LOGIN')
    guest = uri.replace('user=app', 'user=guest')
    refused(ctl(t, '-d', uri.replace('/shop?', '/shopp?'), 'ls'),
            '"shopp" does not exist (make it: createdb -O app shopp)')
    # PostgreSQL 14 and older let any role make tables.
    sql(server, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC')
    refused(ctl(t, '-d', guest, 'init'), 'permission denied for schema '
            'public: name a role that owns the database')
    run = ctl(t, '-d', uri, 'init')
    eq((run.returncode, run.stdout), (0, b'the tables are there\n'), run)
    run = ctl(t, '-d', uri, 'init', '--grant', 'guest')
    eq(run.stdout, b'the tables are there; role guest may call the functions '
       b'for handlers\n')
    refused(ctl(t, '-d', guest, 'ls'), 'permission denied for table '
            'once_meta: name the role app, which owns the tables')


def test_doctor_names_what_is_foreign_and_whose(t):
    server, uri = shop(t)
    eq(ctl(t, '-d', uri, 'init').returncode, 0)
    server.sql('CREATE ROLE guest LOGIN')

    def foreign():
        return [line for line in ctl(t, '-d', uri, 'doctor').stdout.decode(
            ).splitlines() if line.split()[1] == 'foreign'][0]
    has(foreign(), 'nothing of others')
    sql(server, 'CREATE UNIQUE INDEX myu ON once_topic(name)')
    has(foreign(), 'on our tables: index myu')
    sql(server, 'GRANT SELECT ON once_key TO guest')
    has(foreign(), 'index myu, rights of role guest on once_key')


def test_names_that_are_almost_a_uri_are_refused_unseen(t):
    for name in ('postgres:/u:s3kr@h/db', 'postgresql:/u:s3kr@h/db',
                 'host=127.0.0.1 dbname=shop password=s3kr',
                 'sslmode=disable host=127.0.0.1 password=s3kr',
                 'password = s3kr host = h'):
        conf = t.write('c.conf', '[server]\ndatabase = %s\n' % name)
        for command in ([base.ONCEWRAP, '-t', '-f', conf],
                        [base.ONCEWRAP, '-d', name, '-s', t.path('s')],
                        [base.ONCECTL, '-d', name, 'ls']):
            run = t.run(command)
            assert run.returncode != 0, run
            has(run.stderr.decode(), 'named by a URI, which begins with '
                'postgresql://')
            assert b's3kr' not in run.stderr, run
    run = ctl(t, '-d', 'postgresql://u:s3kr@h/d?sslmod=hidden', 'ls')
    refused(run, 'not a URI or conninfo string of PostgreSQL: invalid URI '
            'query parameter: ...')
    assert b's3kr' not in run.stderr and b'hidden' not in run.stderr, run


def test_a_password_that_is_missing_is_told_where_it_belongs(t):
    server, _ = shop(t)
    t.write('passwords', 'elsewhere:*:*:secret:x\n')
    os.chmod(t.path('passwords'), 0o600)
    refused(ctl(t, '-d', server.uri(user='secret'), 'ls',
                env=dict(environment(t), PGPASSFILE=t.path('passwords'))),
            'as a line %s:5432:postgres:secret:PASSWORD, and name that file '
            'in PGPASSFILE)' % server.folder)
