"""What oncectl init, doctor and the first start say of a PostgreSQL server."""
import os
import shutil

import base
from answer import eq, first, replay
from base import wait_until
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
