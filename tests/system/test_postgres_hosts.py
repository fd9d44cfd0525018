"""Daemons of several hosts at one PostgreSQL server."""
import glob
import os
import re
import shutil
import signal
import uuid

import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background
from test_postgres_ops import ctl, servers
from test_store import mount

# A file system of its own for its state: the lock file has the same number as
# in any other such file system.
OPTIONS = {'durability': 'normal', 'owner_timeout': '2s',
           'sweep_interval': '100ms'}


def container(t, server, name, handler, copy_of=None, prefix=()):
    """A daemon with a disk of its own, or with a copy of another one's."""
    disk = t.path('disk-' + name)
    os.mkdir(disk)
    mount(t, disk, 'size=1m,mode=700')
    if copy_of:
        # In the order in which they were made, for the numbers.
        there = t.path('disk-' + copy_of)
        for path in sorted(os.listdir(there),
                           key=lambda f: os.stat(there + '/' + f).st_ino):
            copy = shutil.copytree if os.path.isdir(there + '/' + path) \
                else shutil.copy2
            copy(there + '/' + path, disk + '/' + path)
        eq(inode(t, name), inode(t, copy_of))
    return t.once(handler, server=OPTIONS, defaults={'on_crash': 'resume'},
                  database=server.uri(), prefix=prefix,
                  env=dict(os.environ, STATE_DIRECTORY=disk), name=name)


def inode(t, name):
    lock, = glob.glob(t.path('disk-%s/*-lock' % name))
    return os.stat(lock).st_ino


def another_boot(t):
    """Starts a program under a kernel that names another boot."""
    boot = t.write('boot', '%s\n' % uuid.uuid4())
    return ['unshare', '-m', '--propagation', 'private', 'sh', '-c',
            'mount --bind %s /proc/sys/kernel/random/boot_id && '
            'exec "$@"' % boot, 'sh']


def hosts(server):
    return int(server.sql('SELECT count(DISTINCT host) FROM once_owner'))


def running(t):
    """A host, and a handler that it runs."""
    server = servers(t).make('a')
    gate = t.gate()
    handler = t.sh('ledger; gate gate; status 200')
    a = container(t, server, 'a', handler)
    run = Background(lambda: a.post('k'))
    gate.wait()
    return server, gate, handler, a, run


def both_answer(t, a, b, gate, run):
    """b knows that a's request runs, and both get its answer."""
    eq(ctl(t, '-d', b.database, 'sweep', env=b.env).returncode, 0)
    eq(b.post('k').code, 'key-in-progress')
    gate.open(2)
    answer = run.result()
    first(answer)
    replay(b.post('k'), answer)
    first(b.post('l'))
    eq(len(t.ledger()), 2)
    for once in (a, b):
        eq(once.log_lines('event=store-went-back'), [])


def test_containers_of_one_machine_are_two_hosts(t):
    server, gate, handler, a, run = running(t)
    b = container(t, server, 'b', handler)
    eq(inode(t, 'a'), inode(t, 'b'))
    eq(hosts(server), 2)
    both_answer(t, a, b, gate, run)


def test_a_container_with_a_copy_of_the_folder_is_another_host(t):
    server, gate, handler, a, run = running(t)
    b = container(t, server, 'b', handler, copy_of='a')
    eq(hosts(server), 2)
    both_answer(t, a, b, gate, run)


def test_a_machine_with_a_copy_of_the_disk_is_seen_while_it_moves(t):
    server, gate, handler, a, run = running(t)
    b = container(t, server, 'b', handler, 'a', another_boot(t))
    eq(hosts(server), 1)
    b.wait_log('event=host-not-unique')
    doctor = ctl(t, '-d', b.database, 'doctor', env=b.env)
    assert re.search(rb'BAD +hosts .* copy of another', doctor.stdout), doctor
    both_answer(t, a, b, gate, run)


def test_a_machine_with_a_copy_of_the_disk_frees_no_key_of_the_other(t):
    """It cannot tell that the other one did not end by a boot."""
    server, gate, handler, a, run = running(t)
    proc.kill(a.pid, signal.SIGSTOP)
    b = container(t, server, 'b', handler, 'a', another_boot(t))
    eq(hosts(server), 1)
    b.wait_state('k', 'unknown')
    # A start, a sweep and a retry change nothing.
    b.stop()
    b.start()
    eq(ctl(t, '-d', b.database, 'sweep', env=b.env).returncode, 0)
    problem(b.post('k'), 'outcome-unknown')
    eq(len(t.ledger()), 1)
    proc.kill(a.pid, signal.SIGCONT)
    gate.open()
    first(run.result())
    b.wait_state('k', 'completed')
    eq(len(t.ledger()), 1)


def test_a_machine_with_a_copy_of_the_disk_does_not_know_new_processes(t):
    """The copy is older than the other daemon."""
    server = servers(t).make('a')
    gate = t.gate()
    handler = t.sh('ledger; gate gate; status 200')
    a = container(t, server, 'a', handler)
    b = container(t, server, 'b', handler, 'a', another_boot(t))
    run = Background(lambda: a.post('k'))
    gate.wait()
    proc.kill(a.pid, signal.SIGSTOP)
    b.wait_state('k', 'unknown')
    problem(b.post('k'), 'outcome-unknown')
    # a knows that b is none of its own, too.
    b.kill()
    proc.kill(a.pid, signal.SIGCONT)
    gate.open()
    first(run.result())
    wait_until(lambda: a.state('k') == 'completed', 'it is recorded')
    eq(len(t.ledger()), 1)
    b.start()
