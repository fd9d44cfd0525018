"""When the key store cannot be used: 503, and nothing runs."""
import os
import sqlite3
import subprocess
import threading
import time

import base
import shared
from answer import eq, first, problem, replay
from base import wait_until
from disk import Disk
from once import HASTY, Background, Lock, elapsed, lock_outcome, parallel

OK = 'ledger; status 201; echo done'


def once_with(t, body=OK, server=None, **kw):
    return t.once(handler=t.sh(body), server=server, **kw)


def not_kept(answer):
    problem(answer, 'response-not-kept',
            more=('original_status', 'completed_at'))


def does_not_start(t, database, *texts):
    run = subprocess.run(
        [base.ONCEWRAP, '-d', database, '-s', t.path('s'), '--', '/bin/true'],
        cwd=t.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=base.WAIT * base.SLOW)
    assert run.returncode > 0, run
    for text in texts or (database,):
        assert text in run.stderr, 'no %r in %r' % (text, run.stderr)
    return run.stderr


def test_missing_folder(t):
    does_not_start(t, t.path('missing/once.db'))


def test_file_that_is_no_database(t):
    path = t.write('text.db', 'This is no database, and precious.\n' * 50)
    does_not_start(t, path)
    eq(t.read('text.db'), b'This is no database, and precious.\n' * 50)


def test_database_of_another_program(t):
    path = t.path('other.db')
    with sqlite3.connect(path) as db:
        db.execute('CREATE TABLE mine(a)')
        db.execute('PRAGMA application_id = 77')
        db.execute('PRAGMA user_version = 3')
    db.close()
    before = t.read('other.db')
    does_not_start(t, path)
    eq(t.read('other.db') == before, True)


def test_database_of_a_newer_release(t):
    once = once_with(t)
    first(once.post('k'), 201)
    once.stop()
    if base.POSTGRES:
        once.sql('UPDATE once_meta SET version = version + 1')
        does_not_start(t, once.database, 'another release of oncewrap')
        return
    db = sqlite3.connect(once.database, isolation_level=None)
    version = db.execute('PRAGMA user_version').fetchone()[0]
    db.execute('PRAGMA user_version = %d' % (version + 1))
    db.close()
    does_not_start(t, once.database)


def test_database_that_is_a_folder(t):
    os.mkdir(t.path('folder.db'))
    does_not_start(t, t.path('folder.db'))


def test_database_that_may_not_be_written(t):
    if os.geteuid() == 0:
        # Root may write anywhere but on a read-only file system.
        os.mkdir(t.path('ro'))
        mount(t, t.path('ro'), 'ro,size=1m')
    else:
        os.mkdir(t.path('ro'), 0o555)
    does_not_start(t, t.path('ro/once.db'))


def mount(t, path, options):
    base.need_root()
    run = subprocess.run(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs',
                          path], capture_output=True, text=True)
    if run.returncode != 0:
        raise base.Skip('cannot mount: %s' % run.stderr.strip())
    t.defer(lambda: subprocess.run(['umount', '-l', path], check=True))


def test_locked_for_longer_than_busy_timeout(t):
    once = once_with(t, server=HASTY)
    done = once.post('done')
    first(done, 201)
    lock = Lock(t, once.database)
    took, answer = elapsed(lambda: once.post('k'))
    problem(answer, 'store-unavailable')
    assert took >= 0.28, 'gave up after %.3f s' % took
    replay(once.post('done'), done)
    problem(once.post('done', 'other'), 'key-reused')
    eq(len(t.ledger()), 1)
    lock.release()
    first(once.post('k'), 201)
    eq(len(t.ledger()), 2)


def test_locked_for_less_than_busy_timeout(t):
    once = once_with(t, server={'busy_timeout': '20s'})
    lock = Lock(t, once.database)
    running = Background(lambda: once.post('k'))
    once.get()
    lock.release()
    first(running.result(), 201)


def test_locked_at_the_start(t):
    once = once_with(t, server={'busy_timeout': '20s'})
    first(once.post('k'), 201)
    once.stop()
    lock = Lock(t, once.database)
    once.start(wait=False)
    lock.release()
    once.wait_listening()
    eq(once.post('k').replayed, 'true')


def test_pass_through_needs_no_store(t):
    once = once_with(t, server={'busy_timeout': '100ms'})
    lock = Lock(t, once.database)
    first(once.get(), 201)
    first(once.post(), 201)
    lock.release()


def test_requests_beside_a_locked_store_do_not_pile_up(t):
    once = once_with(t, server={'busy_timeout': '500ms', 'workers': '4'})
    lock = Lock(t, once.database)
    running = [Background(lambda i=i: once.post('k%d' % i))
               for i in range(12)]
    for one in running:
        problem(one.result(), 'store-unavailable')
    lock.release()
    eq(t.ledger(), [])


def test_a_reader_in_mid_transaction_hinders_nobody(t):
    once = once_with(t)
    first(once.post('a'), 201)
    db = shared.connect(once.database)
    db.execute('BEGIN')
    db.execute('SELECT count(*) FROM once_key').fetchall()
    for i in range(20):
        first(once.post('k%d' % i), 201)
    db.execute('COMMIT')
    db.close()


def test_wal_above_max_wal_is_unavailable_until_the_reader_ends(t):
    once = once_with(t, 'ledger; status 201; head -c 200000 '
                     '/dev/zero', server=dict(HASTY, max_wal='1M'))
    first(once.post('a'), 201)
    db = sqlite3.connect(once.database, isolation_level=None)
    db.execute('BEGIN')
    db.execute('SELECT count(*) FROM sqlite_master').fetchall()

    def refused(n=[0]):
        n[0] += 1
        answer = once.post('k%d' % n[0])
        return answer if answer.status != 201 else None
    problem(wait_until(refused, 'the limit is reached'), 'store-unavailable')
    runs = len(t.ledger())
    problem(once.post('last'), 'store-unavailable')
    eq(len(t.ledger()), runs)
    eq(once.post('a').replayed, 'true')
    db.execute('COMMIT')
    db.close()
    wait_until(lambda: once.post('again').status == 201, 'served again')


def large(t):
    """An oncewrap whose key k has an answer of 8 MB, and its database."""
    once = t.once(handler=t.program('large.py'),
                  defaults={'directory': t.dir})
    eq(len(once.post('k', query='8000000').body), 8000000)
    db = sqlite3.connect(once.database, isolation_level=None)
    t.defer(db.close)
    return once, db


def truncate_log(db):
    """Whether no connection reads or writes, so that the log was emptied."""
    return db.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0] == 0


def test_a_replay_that_is_not_read_keeps_no_transaction_open(t):
    once, db = large(t)
    conn = once.begin('k', query='8000000')
    rest = conn.first_bytes()
    wait_until(lambda: truncate_log(db), 'the log can be emptied')
    eq(os.stat(once.database + '-wal').st_size, 0)
    answer = conn.answer(read=rest)
    eq((answer.replayed, len(answer.body)), ('true', 8000000))


def test_a_large_answer_is_deleted_without_being_overwritten(t):
    """Where SQLite is built with SECURE_DELETE, as Debian's is, too."""
    once, db = large(t)
    once.stop()
    # With a connection left the log stays when oncectl closes its own.
    eq(db.execute('SELECT count(*) FROM once_key').fetchone(), (1,))
    wait_until(lambda: truncate_log(db), 'the log can be emptied')
    once.ctl('forget', 'k')
    written = os.stat(once.database + '-wal').st_size
    assert 0 < written < 1000000, '%d bytes to delete 8 MB' % written


# --- a sync that fails ---

def test_after_a_sync_that_failed_the_log_begins_anew(t):
    disk = Disk(t)
    once = once_with(t, 'cat >/dev/null; ' + OK, env=disk.env,
                     server={'busy_timeout': '500ms', 'admin_path': '/admin'})
    before = once.post('before')
    first(before, 201)
    # A reader needs the log as it is.
    db = sqlite3.connect(once.database, isolation_level=None)
    db.execute('BEGIN')
    db.execute('SELECT count(*) FROM once_key').fetchall()
    length = os.stat(once.database + '-wal').st_size
    disk.fail()
    problem(once.post('failed'), 'store-unavailable')
    disk.mend()
    problem(once.post('waits'), 'store-unavailable')
    eq(len(t.ledger()), 1)
    health = once.get('/admin/health')
    eq(health.status, 503)
    assert b'begin anew because a sync has failed' in health.body, health
    # It would be logged a second after that began.
    again = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > again, 'a second')
    eq(once.log_lines('event=write-lock-held'), [])
    assert os.stat(once.database + '-wal').st_size >= length
    db.execute('COMMIT')
    # Until the committer has tried again, it refuses at once.
    wait_until(lambda: once.post('after').status == 201, 'the new log')
    assert os.stat(once.database + '-wal').st_size < length
    replay(once.post('before'), before)
    first(once.post('failed'), 201)
    eq(len(t.ledger()), 3)


def test_a_group_whose_sync_failed_waits_for_a_new_log_together(t):
    disk = Disk(t)
    once = once_with(t, 'cat >/dev/null; ' + OK, env=disk.env,
                     server={'busy_timeout': '1s', 'workers': '200',
                             'sweep_interval': '1h',
                             'admin_path': '/once'})
    first(once.post('before'), 201)
    db = sqlite3.connect(once.database, isolation_level=None)
    db.execute('BEGIN')
    db.execute('SELECT count(*) FROM once_key').fetchall()
    lock = Lock(t, once.database)
    disk.fail_once()
    conns = [once.begin('k%d' % i) for i in range(200)]
    once.wait_gauge('requests', 201)    # and the one that asks
    lock.release()
    took, answers = elapsed(lambda: [conn.answer() for conn in conns])
    for answer in answers:
        problem(answer, 'store-unavailable')
    assert disk.has_failed()
    # busy_timeout twice; each by itself would add 50 ms.
    assert took < 5 * base.SLOW, took
    eq(len(t.ledger()), 1)
    db.execute('COMMIT')
    wait_until(lambda: once.post('after').status == 201, 'the new log')


def test_a_start_whose_commit_fails_takes_the_store_for_no_older_copy(t):
    disk = Disk(t)
    once = once_with(t, env=disk.env)
    done = once.post('k')
    first(done, 201)
    once.kill()
    disk.fail_once()
    once.start()
    assert disk.has_failed()
    eq(once.log_lines('event=store-went-back'), [])
    replay(once.post('k'), done)
    first(once.post('new'), 201)


def test_after_a_sync_that_failed_at_the_start_the_log_begins_anew(t):
    """What another process left unsynced in the log may be lost by that, and
    with it whatever is committed behind it."""
    disk = Disk(t)
    once = once_with(t, 'cat >/dev/null; ' + OK, env=disk.env)
    for i in range(20):
        first(once.post('k%d' % i), 201)
    length = os.stat(once.database + '-wal').st_size
    failed = 0
    for after in range(4):      # one of them is a sync of the folder
        once.kill()
        disk.fail_once(after)
        once.start()
        assert disk.has_failed()
        first(once.post('new%d' % after), 201)
        if len(once.log_lines('event=store-error')) > failed:
            failed += 1
            assert os.stat(once.database + '-wal').st_size < length, after
        for i in range(20):
            first(once.post('k%d-%d' % (after, i)), 201)
    eq(failed, 3)   # COMMIT; the log, and the file that it is moved to
    replay(once.post('k0'), once.post('k0'))


# --- a full disk ---

def on_small_disk(t, size, body=OK, **kw):
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=%s' % size)
    return once_with(t, body, database=t.path('disk/once.db'),
                     server=dict({'busy_timeout': '2s'}, **kw))


def fill(t, leave=0):
    """Fills the disk, but for that many bytes."""
    with open(t.path('disk/filler'), 'wb', buffering=0) as f:
        try:
            while True:
                f.write(bytes(65536))
        except OSError:
            pass
        try:
            while True:
                f.write(bytes(512))
        except OSError:
            pass
        f.truncate(max(0, f.tell() - leave))


def test_full_disk_runs_nothing_and_replays(t):
    once = on_small_disk(t, '4m')
    done = once.post('done')
    first(done, 201)
    fill(t)

    def refused(n=[0]):
        n[0] += 1
        # The last one to run may find no space for its outcome; and the first
        # one that is refused may leave some, as the log is cut.
        answer, runs = once.post('k%d' % n[0]), len(t.ledger())
        if answer.status == 503 and \
                once.post('more%d' % n[0]).status == 503:
            return answer, n[0], runs
    answer, n, runs = wait_until(refused, 'the disk is full')
    problem(answer, 'store-unavailable')
    problem(once.post('last'), 'store-unavailable')
    eq(len(t.ledger()), runs)
    replay(once.post('done'), done)
    os.unlink(t.path('disk/filler'))
    # What was refused runs now, once, as a first attempt.
    first(wait_until(lambda: (lambda a: a if a.status == 201 else None)(
        once.post('k%d' % n)), 'served again'), 201)
    eq(len(t.ledger()), runs + 1)
    eq(t.ledger()[-1], '1 ')


def test_disk_full_of_accepted_work_is_emptied_by_doing_it(t):
    # What is written moves into the database later, and that takes as much
    # again: there must be room for it, whatever else is accepted.
    gate = t.gate()
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=6m')
    once = once_with(
        t, 'ledger; gate gate; status 201', database=t.path('disk/once.db'),
        server={'status_path': '/jobs', 'async_workers': '1'},
        defaults={'async': 'always'})
    body, keys = b'x' * 70_000, []
    while True:
        answer = once.post('k%d' % len(keys), body)
        if answer.status != 202:
            break
        keys.append('k%d' % len(keys))
    problem(answer, 'store-unavailable')
    assert len(keys) > 5, len(keys)
    gate.wait()
    gate.open(len(keys) + 1)
    wait_until(lambda: all(
        row['state'] == 'completed' for row in once.ls()), 'all have run')
    eq(sorted(row['key'] for row in once.ls()), sorted(keys))
    eq(len(t.ledger()), len(keys))
    # And is there for others again.
    eq(wait_until(lambda: (lambda a: a if a.status == 202 else None)(
        once.post('again', b'x')), 'served again').status, 202)
    once.wait_state('again', 'completed')


def test_answer_too_large_for_the_disk_never_frees_the_key(t):
    once = on_small_disk(t, '3m', 'ledger; status 201; '
                         'exec head -c 4000000 /dev/zero', busy_timeout='20s')
    answer = once.post('k', timeout=30)
    eq((answer.status, len(answer.body)), (201, 4_000_000))
    once.wait_log(r'event=answer-not-kept instance=urn:uuid:\S+ method=POST '
                  r'path=/pay peer=\S+ key=\S+ .*bytes=4000000')
    not_kept(once.post('k'))
    once.kill()
    once.start()
    not_kept(once.post('k'))
    eq(len(t.ledger()), 1)


def test_nearly_full_disk_and_large_answers_settle_each_that_ran(t):
    once = on_small_disk(t, '12m', 'ledger; status 201; '
                         'exec head -c 1400000 /dev/zero', workers='8',
                         busy_timeout='20s')

    def post(i):
        return once.post('k%d' % i, timeout=60)
    answers = sum((parallel([lambda i=i: post(i) for i in range(n, n + 8)])
                   for n in range(0, 64, 8)), [])
    ran = [i for i, a in enumerate(answers) if a.status == 201]
    assert len(ran) > 8, len(ran)
    eq(len(t.ledger()), len(ran))
    for i, answer in enumerate(answers):
        if i in ran:
            eq(len(answer.body), 1_400_000)
            again = post(i)
            if again.status == 201:
                replay(again, answer)
            else:
                not_kept(again)
        else:
            problem(answer, 'store-unavailable')
            eq(once.state('k%d' % i), None)
    eq(len(t.ledger()), len(ran))
    eq({row['state'] for row in once.ls()}, {'completed'})


# --- another process holds the write lock ---


def test_requests_that_wait_for_the_lock_hold_up_no_other(t):
    once = once_with(t, server={'busy_timeout': '60s',
                                'admin_path': '/once'})
    done = once.post('done')
    first(done, 201)
    lock = Lock(t, once.database)
    posts = [Background(lambda i=i: once.post('k%d' % i)) for i in range(20)]
    once.wait_gauge('requests', 21)     # and the one that asks
    eq([p.done() for p in posts], [False] * 20)
    replay(once.post('done'), done)
    eq(once.get('/once/health').status, 200)
    lock.release()
    for post in posts:
        first(post.result(), 201)
    eq(len(t.ledger()), 21)


def take_turns(database, stop):
    """Transactions of another process, as long as a slow disk makes them."""
    db = shared.connect(database)
    db.execute('CREATE TABLE others(n INTEGER)')
    while not stop.is_set():
        db.execute('BEGIN IMMEDIATE')
        db.execute('INSERT INTO others VALUES (1)')
        stop.wait(0.15)
        db.execute('COMMIT')
        stop.wait(0.02)
    db.close()


def test_lock_that_another_process_takes_by_turns_refuses_nothing(t):
    once = once_with(t, server={'busy_timeout': '120s', 'workers': '8'})
    stop = threading.Event()
    other = Background(lambda: take_turns(once.database, stop))
    try:
        for n in range(3):
            for answer in parallel([lambda i=i: once.post(
                    'k%d-%d' % (n, i), timeout=60) for i in range(7)]):
                first(answer, 201)
    finally:
        stop.set()
        other.result()
    eq(len(t.ledger()), 21)


def test_lock_not_had_for_busy_timeout_refuses_at_once_until_it_is(t):
    once = once_with(t, server={'busy_timeout': '3s', 'workers': '8'})
    lock = Lock(t, once.database)
    took, answer = elapsed(lambda: once.post('k'))
    problem(answer, 'store-unavailable')
    assert took >= 2.8, 'gave up after %.3f s' % took
    for i in range(10):
        took, answer = elapsed(lambda: once.post('k%d' % i))
        problem(answer, 'store-unavailable')
        assert took < 2, 'waited for %.3f s' % took
    lock.release()
    # Without a request that would look for it.
    first(wait_until(lambda: (lambda a: a if a.status == 201 else None)(
        once.post('k')), 'served again'), 201)
    eq(len(t.ledger()), 1)


def test_outcome_overdue_stops_new_runs_until_it_is_recorded(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201',
                     server=dict(HASTY, admin_path='/admin'))
    lock = lock_outcome(t, once, gate, 'run')
    problem(once.post('k'), 'store-unavailable')
    eq(once.get('/admin/health').status, 503)
    once.wait_log('event=store-unavailable .*outcomes are not recorded yet')
    lock.release()
    once.wait_state('run', 'completed')
    gate.open()
    first(wait_until(lambda: (lambda a: a if a.status == 201 else None)(
        once.post('k')), 'served again'), 201)
    eq(len(t.ledger()), 2)


def test_full_spool_folder_runs_nothing(t):
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=1m')
    once = once_with(t, server={'spool_dir': t.path('disk')})
    answer = once.post('k', b'x' * 3_000_000)
    eq(answer.status // 100, 5, answer)
    eq((t.ledger(), once.row('k')), ([], None))
    first(once.post('k', b'x' * 300_000), 201)


def test_full_spool_folder_for_an_answer(t):
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=1m')
    once = once_with(t, 'ledger; status 201; exec head -c 3000000 /dev/zero',
                     server={'spool_dir': t.path('disk')})
    answer = once.post('k')
    eq(answer.status // 100, 5, answer)
    eq((len(t.ledger()), once.state('k')), (1, 'unknown'))


def test_no_space_for_one_neighbour_does_not_hurt_the_others(t):
    gate = t.gate()
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=3m')
    once = t.once(handler=t.sh('gate gate; status 201; echo small'),
                  database=t.path('disk/once.db'),
                  server={'busy_timeout': '20s'},
                  routes={'/large': {'handler': t.sh(
                      'gate gate; status 201; exec head -c 5000000 '
                      '/dev/zero')}})
    conns = [once.begin('s%d' % i) for i in range(4)]
    large = once.begin('large', path='/large')
    for _ in range(5):
        gate.wait()
    gate.open(5)
    for conn in conns:
        first(conn.answer(), 201, b'small\n')
    answer = large.answer()
    eq((answer.status, len(answer.body)), (201, 5_000_000))


def test_database_is_whole_after_all(t):
    once = once_with(t)
    for i in range(20):
        once.post('k%d' % i)
    once.kill()
    once.start()
    db = sqlite3.connect(once.database)
    eq(db.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
    eq(db.execute('PRAGMA journal_mode').fetchone()[0], 'wal')
    db.close()


def test_a_full_spool_dir_loses_a_run_and_no_promise(t):
    """What the handler did is not known, so its key is not free."""
    os.mkdir(t.path('spool'))
    mount(t, t.path('spool'), 'size=256k')
    once = t.once(handler=t.py(
        'ledger(); out(b"Content-Type: text/plain\\r\\n\\r\\n" + '
        'b"x" * int(os.environ["QUERY_STRING"]))'),
        server={'spool_dir': t.path('spool')})
    problem(once.post('k', query='1000000'), 'handler-failed', unknown=True)
    problem(once.post('k', query='1000000'), 'outcome-unknown')
    eq(once.state('k'), 'unknown')
    # A body that has no room: nothing runs.
    problem(once.post('body', b'x' * 1000000), 'store-unavailable', acted=True)
    eq(once.row('body'), None)
    first(once.post('small', query='100000'), 200, b'x' * 100000)
    eq(len(t.ledger()), 2)
    assert 'No space left' in once.log(), once.log()


def test_without_room_for_the_file_of_an_attempt_health_says_so(t):
    once = once_with(t, server={'admin_path': '/admin'},
                     routes={'/resume': {'on_crash': 'resume'}})
    first(once.post('a', path='/resume'), 201)
    eq(once.get('/admin/health').status, 200)
    # One inode: the folder's own.
    path = once.local('-attempts')
    mount(t, path, 'mode=0700,nr_inodes=1')
    problem(once.post('b', path='/resume'), 'store-unavailable')
    health = once.get('/admin/health')
    eq(health.status, 503)
    assert path in health.body.decode(), health
    # Other routes need no such file.
    first(once.post('c'), 201)
    eq(once.get('/admin/health').status, 503)
    subprocess.run(['mount', '-o', 'remount,nr_inodes=10', path], check=True)
    eq(once.get('/admin/health').status, 200)
    first(once.post('b', path='/resume'), 201)
    eq((len(t.ledger()), os.listdir(path)), (3, []))
