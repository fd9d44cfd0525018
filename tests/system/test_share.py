"""A handler that shares the database: the owners of the files, the turns at the
lock, and what the handler can say in a transaction of its own."""
import grp
import os
import pwd
import re
import sqlite3
import stat
import sys
import threading

import base
from answer import eq, first, problem, replay
from base import wait_until
from once import HASTY, Background, Lock, parallel
from test_say import EFFECTS, prepare

# What can open the lock file can lock it: it is never shared.
FILES = ('', '-wal', '-shm', '-lock')


def modes(once):
    return {suffix: stat.S_IMODE(os.stat(once.database + suffix).st_mode)
            for suffix in FILES if os.path.exists(once.database + suffix)}


def all_are(once, mode):
    eq(modes(once), {**{suffix: mode for suffix in FILES}, '-lock': 0o600})


# --- the owners of the files ------------------------------------------------

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
    # A handler of a request without a key has no record to write to.
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
    """The ranges that oncewrap has locked in each file of the store; where
    locks come and go, the list has one twice."""
    inodes = {os.stat(once.database + s).st_ino: s for s in FILES}
    with open('/proc/locks') as f:
        rows = [line.split() for line in f]
    return sorted({(inodes[inode], row[6], row[7]) for row in rows
                   for inode in [int(row[5].split(':')[2])]
                   if inode in inodes and row[3] == mode and
                   row[4] == str(once.pid)})


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
    other = t.write('other', 'x', 0o600)
    os.unlink(once.database + '-wal')
    os.link(other, once.database + '-wal')
    once.defaults['share_database'] = 'yes'
    once.write_conf()
    once.hup()
    once.wait_log('event=store-mode .*once.db-wal')
    eq(stat.S_IMODE(os.stat(other).st_mode), 0o600)


# --- turns at the lock -------------------------------------------------------

HOLDER = '''
import shared
db = shared.connect()
db.execute("BEGIN IMMEDIATE")
with open(D + "/held.here", "w") as f: f.write("%d\\n" % os.getpid())
open(D + "/held.open").readline()
db.execute("ROLLBACK")
out(b"Status: 201\\r\\n\\r\\ndone")
'''


def test_a_handler_that_sits_on_the_lock_is_named(t):
    held = t.gate('held')
    gate = t.gate()
    once = t.once(server=HASTY,
                  routes={'/sits': {'handler': t.py(HOLDER),
                                    'share_database': 'yes'},
                          '/other': {'handler': t.sh(
                              'gate gate; status 201; echo other')}})
    other = Background(lambda: once.post('o', path='/other'))
    gate.wait()
    sits = Background(lambda: once.post('s', path='/sits'))
    pid = held.wait()
    # A run that has ended is not lost, although its caller gets no answer.
    gate.open()
    problem(other.result(), 'outcome-not-recorded')
    # Nothing new begins.
    problem(once.post('n', path='/other'), 'store-unavailable')
    line, = once.wait_log('event=write-lock-held')
    for text in ('pid=%d ' % pid, 'comm=handler'):
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


def test_an_answer_that_cannot_be_synced_now_holds_up_no_other(t):
    held = t.gate('held')
    gate = t.gate()
    once = t.once(server={'busy_timeout': '1h'}, conf=EFFECTS, routes={
        '/sits': {'handler': t.py(HOLDER), 'share_database': 'yes'},
        '/order': {'handler': ' '.join((t.program('order'), t.dir, 'order',
                                        'gate=gate')),
                   'share_database': 'yes'},
        '/other': {'handler': t.sh('status 201')}})
    prepare(once)
    done = once.post('d', path='/other')
    order = Background(lambda: once.post('o', path='/order'))
    gate.wait()
    sits = Background(lambda: once.post('s', path='/sits'))
    held.wait()
    waiting = [once.begin('o', path='/order') for _ in range(5)]
    # All five, the first of them too, wait for the lock by now or later.
    for _ in range(20):
        replay(once.post('d', path='/other'), done)
        first(once.get(path='/other'), 201)
    assert all(conn.silent() for conn in waiting)
    held.open()
    first(sits.result(), 201)
    for conn in waiting:
        answer = conn.answer()
        eq((answer.status, answer.body, answer.replayed),
           (201, b'order 1\n', 'true'), answer)
    gate.open()
    first(order.result(), 201, b'order 1\n')


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


# A handler in Python, as its manual says, that tells how long it waited for
# the lock, and had it.
PATIENT = '''
import shared, time
db = shared.connect()
began = time.monotonic()
db.execute("BEGIN IMMEDIATE")
began, waited = time.monotonic(), time.monotonic() - began
db.execute("INSERT INTO orders(note) VALUES (?)", (os.environ["ONCE_KEY"],))
db.execute("INSERT INTO once_response(token, status, body) VALUES (?, 201, ?)",
           (os.environ["ONCE_TOKEN"], "%.6f" % waited))
db.execute("COMMIT")
with open(D + "/held", "a") as f:
    f.write("%.6f\\n" % (time.monotonic() - began))
'''


def loaded(t, clients, transactions, threads=5):
    """Seconds that each handler waited while clients keep oncewrap busy."""
    once = t.once(server={'workers': '32'}, routes={
        '/load': {'handler': t.program('echo')},
        '/shared': {'handler': t.py(PATIENT), 'share_database': 'yes'}})
    db = sqlite3.connect(once.database)
    db.execute('CREATE TABLE orders(id INTEGER PRIMARY KEY, note TEXT)')
    db.close()
    stop = threading.Event()
    done = [0] * clients

    def load(n):
        while not stop.is_set():
            first(once.post('load-%d-%d' % (n, done[n]), path='/load'))
            done[n] += 1

    def shared(n):
        waits = []
        for i in range(transactions // threads):
            answer = once.post('shared-%d-%d' % (n, i), path='/shared')
            first(answer, 201)
            waits.append(float(answer.body))
        return waits
    loads = [Background(lambda n=n: load(n)) for n in range(clients)]
    try:
        wait_until(lambda: all(done), 'all clients are at it')
        waits = sum(parallel([lambda n=n: shared(n) for n in range(threads)]),
                    [])
    finally:
        stop.set()
        for background in loads:
            background.result()
    db = sqlite3.connect(once.database)
    eq(db.execute('SELECT count(*) FROM orders').fetchone(), (len(waits),))
    db.close()
    # A slow disk, or a machine that has no time for it, may make it a second.
    if max(map(float, t.read('held').split())) < 0.9:
        eq(once.log_lines('write-lock-held'), [])
    return waits, sum(done)


def test_handlers_get_the_lock_under_load(t):
    waits, _ = loaded(t, clients=8, transactions=50)
    eq(len(waits), 50)


# --- other users --------------------------------------------------------------

# Some that every Debian has.
APP, OTHER = (pwd.getpwnam(name).pw_uid for name in ('games', 'daemon'))
GROUP = grp.getgrnam('www-data').gr_gid

# Tries what the request names, one a line.
TRESPASS = '''
import fcntl, json
said = {}
for name in sys.stdin.read().split():
    try:
        os.close(os.open(name, os.O_RDWR))
        said[name] = "open"
    except OSError as error:
        said[name] = error.strerror
held = {fd: os.readlink("/proc/self/fd/" + fd)
        for fd in os.listdir("/proc/self/fd") if int(fd) > 2
        and os.path.exists("/proc/self/fd/" + fd)}
writes = [fd for fd in held
          if fcntl.fcntl(int(fd), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY]
out(b"Content-Type: application/json\\r\\n\\r\\n" +
    json.dumps([said, held, writes, dict(os.environ)]).encode())
'''


def trespass(t, **defaults):
    base.need_root()
    once = t.once(handler=t.py(TRESPASS), defaults=dict(
        defaults, user=str(APP), group='games'))
    names = [once.local('-lock')] if base.POSTGRES else [
        once.database + suffix for suffix in FILES]
    said, held, writes, environment = once.post(
        'k', '\n'.join(names)).json()
    eq(said, {name: 'Permission denied' for name in names})
    eq(writes, [])      # nor may it lock what others read
    assert 'ONCE_DATABASE' not in environment
    for value in environment.values():
        assert not value.startswith(once.database), value
    return once, held


def test_another_user_has_no_way_to_a_store_that_is_not_shared(t):
    _, held = trespass(t)
    eq(held, {})


def test_with_resume_another_user_has_the_attempts_lock_and_no_more(t):
    once, held = trespass(t, on_crash='resume')
    eq(list(held), ['3'])
    assert re.fullmatch(re.escape(once.local('-attempts')) +
                        '/[0-9a-f]{16}', held['3']), held


def folder(t, owner=0, mode=0o3770):
    """A folder whose files are the group's, as the manual says."""
    base.need_root()
    path = t.path('store')
    os.mkdir(path)
    os.chown(path, owner, GROUP)
    os.chmod(path, mode)
    return path


def owners(database):
    return {suffix: (os.stat(database + suffix).st_uid,
                     os.stat(database + suffix).st_gid,
                     stat.S_IMODE(os.stat(database + suffix).st_mode))
            for suffix in FILES if os.path.exists(database + suffix)}


def as_another_user(t, handler, *words):
    path = folder(t)
    once = t.once(handler=' '.join((t.program(handler), path) + words),
                  database=None if base.POSTGRES else path + '/once.db',
                  defaults={'share_database': 'yes', 'umask': '077',
                            'user': str(APP), 'group': str(GROUP)},
                  conf=EFFECTS)
    prepare(once)
    answer = once.post('k')
    first(answer, 201)
    replay(once.post('k'), answer)
    if not base.POSTGRES:
        eq(owners(once.database),
           {**{suffix: (0, GROUP, 0o660) for suffix in FILES},
            '-lock': (0, GROUP, 0o600)})


def test_another_user_shares_in_c(t):
    as_another_user(t, 'order', 'order')


def test_another_user_shares_in_python(t):
    as_another_user(t, 'order.py', 'order')


def test_another_user_shares_in_perl(t):
    as_another_user(t, 'order.pl', 'order')


def test_another_user_shares_with_oncectl(t):
    as_another_user(t, 'say.sh')


# Opens the database first, writes, and keeps it open.
OPENER = '''
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
db.execute("INSERT INTO orders(note) VALUES ('first')")
print("open", flush=True)
sys.stdin.readline()
db.execute("INSERT INTO orders(note) VALUES ('last')")
'''


def opener(t, database):
    process = t.popen([sys.executable, '-ISBc', OPENER, database],
                      log='opener', stdin=-1, stdout=-1, user=APP,
                      group=GROUP, extra_groups=[], umask=0o077)
    eq(process.stdout.readline(), b'open\n')
    return process


def protects_files():
    """Whether the sticky bit keeps users from files of each other."""
    with open('/proc/sys/fs/protected_regular') as f:
        return int(f.read()) > 1


def test_a_folder_with_the_sticky_bit_belongs_to_the_databases_owner(t):
    path = folder(t)
    os.chmod(t.dir, 0o1777)
    once = t.once(handler=' '.join((t.program('order'), path, 'order')),
                  database=path + '/once.db', user=OTHER, group=GROUP,
                  extra_groups=[], conf=EFFECTS,
                  defaults={'share_database': 'yes'})
    warned = once.log_lines('event=store-folder .*fs.protected_regular')
    eq(len(warned), protects_files())
    once.stop()
    os.chown(path, OTHER, GROUP)
    once.start()
    eq(len(once.log_lines('event=store-folder')), protects_files())
    prepare(once)       # root is another user
    first(once.post('k'), 201)
    once.stop()
    process = opener(t, once.database)
    run = t.run([base.ONCEWRAP, '-t', '-f', once.file], user=OTHER,
                group=GROUP, extra_groups=[])
    says = b'once.db-wal: belongs to ' in run.stderr and \
        b'fs.protected_regular' in run.stderr
    eq((run.returncode, says), (0, protects_files()), run.stderr)
    process.stdin.close()
    eq(process.wait(base.WAIT), 0)
    once.start()
    first(once.post('k2'), 201)


def test_a_handler_of_another_user_is_first_to_open_the_database(t):
    """The folder goes without the sticky bit, which may prevent that."""
    path = folder(t, mode=0o2770)
    os.chmod(t.dir, 0o1777)
    once = t.once(handler=' '.join((t.program('order'), path, 'order')),
                  database=path + '/once.db', conf=EFFECTS,
                  defaults={'share_database': 'yes'}, user=OTHER,
                  group=GROUP, extra_groups=[], umask=0o077)
    prepare(once)
    lock = (OTHER, GROUP, 0o600)
    eq(set(owners(once.database).values()), {(OTHER, GROUP, 0o660), lock})
    once.stop()
    process = opener(t, once.database)
    both = (APP, GROUP, 0o660)
    mine = (OTHER, GROUP, 0o660)
    eq(owners(once.database),
       {'': mine, '-wal': both, '-shm': both, '-lock': lock})
    once.start()
    answer = once.post('k')
    first(answer, 201, b'order 2\n')
    process.stdin.close()
    eq(process.wait(base.WAIT), 0)
    first(once.post('k2'), 201, b'order 4\n')
    replay(once.post('k'), answer)
    once.kill()
    # It is the first one after a crash, too.
    process = opener(t, once.database)
    process.stdin.close()
    eq(process.wait(base.WAIT), 0)
    once.start()
    replay(once.post('k'), answer)
    first(once.post('k3'), 201, b'order 7\n')
    eq(once.log_lines('store-mode|store-error'), [])
