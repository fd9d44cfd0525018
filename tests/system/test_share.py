"""A handler that shares the database: whose files they are, who gets its
lock, and what it can say in a transaction of its own."""
import os
import re
import stat

import base
import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background, Lock

FILES = ('', '-wal', '-shm', '-lock')


def modes(once):
    return {suffix: stat.S_IMODE(os.stat(once.database + suffix).st_mode)
            for suffix in FILES if os.path.exists(once.database + suffix)}


def all_are(once, mode):
    eq(modes(once), {suffix: mode for suffix in FILES})


# --- whose files they are ---------------------------------------------------

def test_files_are_the_owners_alone_where_nothing_is_shared(t):
    once = t.once(handler=t.program('probe.py'))
    answer = once.post('k')
    all_are(once, 0o600)
    seen = answer.json()
    assert 'ONCE_DATABASE' not in seen['environment']
    assert re.fullmatch(r'[0-9a-f]{32}-[1-9][0-9]*',
                        seen['environment']['ONCE_TOKEN'])
    eq(sorted(seen['fds']), ['0', '1', '2'])
    folder = os.path.dirname(once.database)
    assert not any(once.database in v or folder + '/once' in v
                   for v in seen['environment'].values()), seen


def test_files_are_the_groups_too_where_a_route_shares_them(t):
    once = t.once(handler=t.program('probe.py'),
                  routes={'/shared': {'share_database': 'yes'}})
    all_are(once, 0o660)
    seen = once.post('k', path='/shared').json()['environment']
    eq(seen['ONCE_DATABASE'], os.path.realpath(once.database))
    assert 'ONCE_DATABASE' not in once.post(
        'k', path='/own').json()['environment']
    # Who is not guarded has nothing to say.
    assert 'ONCE_DATABASE' not in once.get(
        path='/shared').json()['environment']


def test_files_that_were_there_become_the_groups(t):
    once = t.once(handler=t.sh('status 201'))
    all_are(once, 0o600)
    once.kill()
    once.defaults['share_database'] = 'yes'
    once.write_conf()
    once.start()
    all_are(once, 0o660)
    first(once.post('k'), 201)


def locks(once, mode):
    """The ranges that oncewrap has locked in each file of the store."""
    inodes = {os.stat(once.database + s).st_ino: s for s in FILES}
    with open('/proc/locks') as f:
        rows = [line.split() for line in f]
    return sorted((inodes[inode], row[6], row[7]) for row in rows
                  for inode in [int(row[5].split(':')[2])]
                  if inode in inodes and row[3] == mode)


def test_files_become_the_groups_while_it_runs_and_no_lock_is_lost(t):
    once = t.once(handler=t.sh('status 201'))
    first(once.post('k'), 201)
    before = locks(once, 'READ')
    assert any(file == '' for file, _, _ in before), before
    once.defaults['share_database'] = 'yes'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    all_are(once, 0o660)
    eq(locks(once, 'READ'), before)
    eq(once.log_lines('store-mode'), [])


def test_a_name_that_stands_for_another_file_is_left_alone(t):
    once = t.once(handler=t.sh('status 201'))
    once.stop()
    other = t.write('other', 'x', 0o600)
    os.unlink(once.database + '-lock')
    os.link(other, once.database + '-lock')
    once.defaults['share_database'] = 'yes'
    once.write_conf()
    once.start()
    once.wait_log('event=store-mode .*once.db-lock')
    eq(stat.S_IMODE(os.stat(other).st_mode), 0o600)


# --- who gets the lock -------------------------------------------------------

HOLDER = '''
import sqlite3
db = sqlite3.connect(os.environ["ONCE_DATABASE"], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
with open(D + "/held.here", "w") as f: f.write("%d\\n" % os.getpid())
open(D + "/held.open").readline()
db.execute("ROLLBACK")
out(b"Status: 201\\r\\n\\r\\ndone")
'''


def test_a_handler_that_sits_on_the_lock_is_named(t):
    held = t.gate('held')
    gate = t.gate()
    once = t.once(server={'busy_timeout': '300ms'},
                  routes={'/sits': {'handler': t.py(HOLDER),
                                    'share_database': 'yes'},
                          '/other': {'handler': t.sh(
                              'gate gate; status 201; echo other')}})
    other = Background(lambda: once.post('o', path='/other'))
    gate.wait()
    sits = Background(lambda: once.post('s', path='/sits'))
    pid = held.wait()
    # A run that has ended is not lost, whoever waits for its answer.
    gate.open()
    problem(other.result(), 'outcome-not-recorded')
    # Nothing new begins.
    problem(once.post('n', path='/other'), 'store-unavailable')
    line, = once.wait_log('event=write-lock-held')
    for text in ('pid=%d ' % pid, 'comm=handler', 'path=/sits', 'key=s',
                 'instance=urn:uuid:'):
        assert text in line, line
    ms = int(re.search(r' ms=(\d+)', line).group(1))
    assert 1000 <= ms, line
    held.open()
    first(sits.result(), 201, b'done')
    once.wait_state('o', 'completed')
    answer = once.post('o', path='/other')
    eq((answer.status, answer.body, answer.replayed),
       (201, b'other\n', 'true'), answer)
    eq(len(once.log_lines('event=write-lock-held')), 1)


def test_a_stranger_that_sits_on_the_lock_is_named(t):
    once = t.once(handler=t.sh('status 201'), server={'busy_timeout': '5s'})
    lock = Lock(t, once.database)
    answer = Background(lambda: once.post('k'))
    line, = once.wait_log('event=write-lock-held')
    assert 'pid=%d ' % lock.process.pid in line, line
    assert 'comm=sqlite3' in line and 'key=' not in line, line
    lock.release()
    first(answer.result(), 201)
    # Another hold is another report.
    lock = Lock(t, once.database)
    answer = Background(lambda: once.post('k2'))
    once.wait_log('event=write-lock-held', 2)
    lock.release()
    first(answer.result(), 201)
