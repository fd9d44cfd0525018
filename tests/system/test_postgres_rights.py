"""What a role of PostgreSQL that lacks rights, or a database, gets to read."""
import itertools

import base
from answer import eq, first, problem
from base import wait_until
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
    return server.command('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
                          server.uri(user='app').replace('/postgres?',
                                                         '/shop?'),
                          '-c', text).strip()


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
