"""The folder with files of this host's processes, which a PostgreSQL store
needs: who makes it, and what is said of it."""
import os
import shutil

import base
from answer import eq, first
from base import wait_until
from test_postgres_ops import (HELLO, ctl, environment, has, refused, servers)


def store(t):
    """A server with a store in it."""
    server = servers(t).make('a')
    server.keep_promises()
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    return server


def leases(t, uri, env, status):
    run = ctl(t, '-d', uri, 'doctor', env=env)
    eq(run.returncode, status, run)
    return [line for line in run.stdout.decode().splitlines()
            if line.split()[1] == 'leases'][0]


def lost(t, server, env):
    """A key whose daemon was killed."""
    once = t.once(t.sh('kill -9 $PPID'), database=server.uri(), env=env,
                  name='lost')
    once.begin('k1')
    once.process.wait(60)
    once.process = None
    eq(server.sql("SELECT state FROM once_key"), 'in_progress')


def test_operators_make_no_files(t):
    server = store(t)
    folder = t.path('none')
    env = dict(os.environ, STATE_DIRECTORY=folder)
    has(leases(t, server.uri(), env, 0), 'all held by living processes')
    for command in ('doctor', 'sweep', 'ls'):
        eq(ctl(t, '-d', server.uri(), command, env=env).returncode, 0)
        assert not os.path.exists(folder)
    run = ctl(t, '-d', server.uri(), 'sweep', env=env)
    has(run.stdout.decode(), '0 keys settled')
    has(run.stderr.decode(), folder + ': there is no such folder')
    os.mkdir(folder, 0o700)
    for command in ('doctor', 'sweep'):
        eq(ctl(t, '-d', server.uri(), command, env=env).returncode, 0)
        eq(os.listdir(folder), [])


def test_doctor_says_that_it_cannot_know(t):
    server = store(t)
    lost(t, server, environment(t))
    elsewhere = dict(os.environ, STATE_DIRECTORY=t.path('none'))
    line = leases(t, server.uri(), elsewhere, 1)
    has(line, '1 held by processes of this host, and it cannot tell whether '
        'they live: %s: there is no such folder: name' % t.path('none'))
    # A folder with files of another daemon tells nothing either.
    other = dict(os.environ, STATE_DIRECTORY=t.path('other'))
    once = t.once(t.sh(HELLO), database=server.uri(), env=other, name='other')
    once.stop()
    has(leases(t, server.uri(), other, 0),
        '1 held by processes of other hosts')
    has(leases(t, server.uri(), environment(t), 1), '1 held by processes that '
        'are gone')


def test_the_dead_are_seen_by_any_role(t):
    server = store(t)
    server.sql('CREATE ROLE admin LOGIN SUPERUSER')
    env = environment(t)
    lost(t, server, env)
    uri = server.uri(user='admin')
    has(leases(t, uri, env, 1), '1 held by processes that are gone')
    run = ctl(t, '-d', uri + '&connect_timeout=9', 'sweep', env=env)
    has(run.stdout.decode(), '1 key settled')


def test_stores_of_one_database_have_files_of_their_own(t):
    server = store(t)
    env = environment(t)
    server.sql('CREATE ROLE own LOGIN; CREATE SCHEMA own AUTHORIZATION own')
    for n, user in enumerate(('postgres', 'own')):
        once = t.once(t.sh(HELLO), database=server.uri(user=user), env=env,
                      name=user)
        first(once.post('k1'))
        eq(len([f for f in os.listdir(t.path('state'))
                if f.endswith('-lock')]), n + 1)


def test_a_restored_store_leaves_the_files_of_the_first_one(t):
    """Both have one name for their files, and one folder."""
    server = store(t)
    env = environment(t)
    gate = t.gate()
    once = t.once(t.sh('ledger $ONCE_ATTEMPT; gate gate; ' + HELLO), env=env,
                  database=server.uri(), defaults={'on_crash': 'resume'})
    other = servers(t).make('b')
    other.keep_promises()
    dump = os.path.join(other.folder, 'dump')
    server.command('pg_dump', '-Fc', '-f', dump, '-d', server.uri())
    other.command('pg_restore', '-d', other.uri(), dump)
    conn = once.begin('k1')
    gate.wait()
    eq(ctl(t, '-d', other.uri(), 'sweep', env=env).returncode, 0)
    once.kill()
    conn.close()
    once.start()
    gate.open(2)
    wait_until(lambda: once.post('k1').status == 200, 'it was resumed')
    eq(t.ledger(), ['1 1', '2 2'])


def test_an_operator_reconciles_a_key_that_left_a_process(t):
    server = store(t)
    env = environment(t)
    gate, left = t.gate(), t.gate('left')
    once = t.once(
        t.sh('gate left & gate gate'), env=env, database=server.uri(),
        defaults={'reconcile_after': '1ms', 'reconcile': t.sh(
            'printf "Idempotency-Outcome: completed\\n'
            'Content-Type: text/plain\\n\\nfound"', name='found')})
    conn = once.begin('k1')
    gate.wait()
    left.wait()
    once.kill()
    conn.close()
    eq(ctl(t, '-d', server.uri(), 'sweep', env=env).returncode, 0)
    eq(once.state('k1'), 'unknown')
    left.open()

    def is_found():
        run = ctl(t, '-f', once.file, 'reconcile', env=env)
        eq(run.returncode, 0, run)
        return once.state('k1') == 'completed'
    wait_until(is_found, 'the reconciler was asked')


def test_a_start_names_the_file_that_it_cannot_use(t):
    base.need_root()
    server = store(t)
    folder = t.path('folder')
    env = dict(os.environ, STATE_DIRECTORY=folder)
    once = t.once(t.sh(HELLO), database=server.uri(), env=env)
    has(once.log(), 'folder=' + folder)
    once.stop()
    lock, = [os.path.join(folder, f) for f in os.listdir(folder)
             if f.endswith('-lock')]
    os.chmod(t.dir, 0o755)
    os.mkdir(t.path('run'))
    shutil.chown(t.path('run'), 'nobody')

    def start(*more):
        return t.run([base.ONCEWRAP, '-d', server.uri(), '-s',
                      t.path('run/s'), *more], env=env, user='nobody')
    run = start()
    refused(run, folder + ': is for files that name this host\'s processes, '
            'and must be a folder of nobody that no other user can write')
    run = start('-t')
    eq(run.returncode, 0)
    has(run.stderr.decode(), 'warning: database: %s: is for files' % folder)
    shutil.chown(folder, 'nobody')
    run = start()
    refused(run, '%s: Permission denied: it tells which of this host\'s '
            'processes live' % lock)
