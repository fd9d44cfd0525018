"""The files of the store: removed, replaced, restored, linked."""
import os
import shutil
import sqlite3
import stat
import subprocess

import base
from answer import eq, first, problem, replay
from disk import Disk
from base import wait_until
from test_liveness import another_space

ADMIN = '/once'
SUFFIXES = ('', '-wal', '-shm', '-lock')
OK = 'ledger; status 201; echo done'
LARGE = 'ledger; status 201; head -c 100000 /dev/zero'


def start(t, body=OK, server=None, **kw):
    return t.once(handler=t.sh(body),
                  server=dict({'admin_path': ADMIN}, **(server or {})), **kw)


def health(once):
    answer = once.get(ADMIN + '/health')
    return answer.status, answer.body.decode()


def is_out_of_place(t, once, done, name):
    """Whatever is asked: 503, and nothing runs."""
    ran = len(t.ledger())
    problem(once.post('done'), 'store-unavailable', acted=True)
    problem(once.post('new'), 'store-unavailable', acted=True)
    eq(len(t.ledger()), ran)
    assert once.log_lines('event=store-replaced .*file=%s ' % name), once.log()
    status, text = health(once)
    eq(status, 503)
    assert name in text, text


def test_a_file_that_is_removed_or_replaced_is_named_and_nothing_runs(t):
    once = start(t)
    done = once.post('done')
    first(done, 201)
    for suffix in SUFFIXES:
        name = once.database + suffix
        os.rename(name, t.path('aside'))
        is_out_of_place(t, once, done, name)
        shutil.copy(t.path('aside'), name)
        is_out_of_place(t, once, done, name)
        os.rename(t.path('aside'), name)
        replay(once.post('done'), done)
        eq(health(once)[0], 200)
    first(once.post('new'), 201)
    eq(len(once.log_lines('event=store-in-place')), len(SUFFIXES))


def test_a_database_moved_over_it_gives_no_other_callers_answer(t):
    other = start(t, LARGE, name='other')
    first(other.post('k', user='bob'), 201)
    other.stop()
    once = start(t, LARGE)
    done = once.post('k', user='alice')
    first(done, 201)
    os.rename(other.database, once.database)
    for user in ('alice', 'bob'):
        problem(once.post('k', user=user), 'store-unavailable', acted=True)
    eq(len(t.ledger()), 2)


def overwrite(copy, database):
    """As `.restore` does: the content of the copy, in the same file."""
    source, target = sqlite3.connect(copy), sqlite3.connect(database)
    source.backup(target)
    source.close()
    target.close()


def shell(once, *commands):
    subprocess.run(['sqlite3', once.database, *commands], check=True,
                   capture_output=True)


def test_a_copy_of_this_life_that_is_restored_in_place_is_noticed(t):
    for name, restore in (
            ('shell', lambda once: shell(once, '.restore ' + t.path('shell'))),
            ('cp', lambda once: shutil.copyfile(t.path('cp'),
                                                once.database))):
        once = start(t, name='once-' + name)
        first(once.post('a'), 201)
        shell(once, '.backup ' + t.path(name))
        first(once.post('b'), 201)
        # So that no part of the present content is in the log.
        shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
        restore(once)
        ran = len(t.ledger())
        problem(once.post('c'), 'store-unavailable', acted=True)
        problem(once.post('b'), 'store-unavailable', acted=True)
        eq(len(t.ledger()), ran)
        once.wait_log('event=store-went-back')
        status, text = health(once)
        eq(status, 503)
        assert 'store-went-back' in text, text
        once.stop()


def test_an_older_copy_under_a_newer_log_is_noticed(t):
    keys = ['k%d' % i for i in range(60)]
    once = start(t)
    first(once.post('before'), 201)
    once.stop()
    shutil.copy(once.database, t.path('older'))
    once.start()
    for key in keys:
        first(once.post(key), 201)
    shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
    # The log has the newest rows, and few pages of the index.
    first(once.post('newest'), 201)
    ran = len(t.ledger())
    shutil.copyfile(t.path('older'), once.database)
    for key in keys:
        problem(once.post(key), 'store-unavailable', acted=True)
    problem(once.post('newest'), 'store-unavailable', acted=True)
    eq(len(t.ledger()), ran)
    once.wait_log('event=store-went-back')
    eq(health(once)[0], 503)
    # What is in the log is not mixed with what was copied.
    once.term()
    once.wait()
    kept = contents(once)
    assert len(kept[1]) > 0
    # Nor is it by a start, or by an operator.
    for run in (t.run([base.ONCEWRAP, '-f', once.file]),
                t.run([base.ONCECTL, '-d', once.database, 'ls'])):
        eq(run.returncode, 1, run)
        assert b'is older than its log' in run.stderr, run
        eq(contents(once), kept)
    # As the message says.
    for suffix in ('-wal', '-shm'):
        os.remove(once.database + suffix)
    once.start()
    eq(once.post('before').replayed, 'true')


def contents(once):
    found = []
    for suffix in ('', '-wal'):
        with open(once.database + suffix, 'rb') as f:
            found.append(f.read())
    return found


def test_a_file_with_the_log_of_its_own_starts_after_a_kill(t):
    once = start(t)
    for n in range(3):
        for key in range(3):
            first(once.post('k%d-%d' % (n, key)), 201)
        shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)' if n == 1 else
              'PRAGMA wal_checkpoint(PASSIVE)')
        first(once.post('last%d' % n), 201)
        first(once.post('more%d' % n), 201)
        once.kill()
        once.start()
        eq(once.post('more%d' % n).replayed, 'true')


def test_a_log_that_a_hidden_process_uses_is_missed(t):
    once = start(t)
    first(once.post('k'), 201)
    hidden = another_space() + ['--kill-child']
    for suffix in ('-wal', '-shm'):
        os.rename(once.database + suffix, t.path('aside' + suffix))
    run = t.run(hidden + [base.ONCEWRAP, '-d', once.database, '-s',
                          t.path('socket')])
    eq(run.returncode, 1, run)
    assert b'of another container, still uses it' in run.stderr, run
    assert not os.path.exists(once.database + '-wal')
    for suffix in ('-wal', '-shm'):
        os.rename(t.path('aside' + suffix), once.database + suffix)
    run = t.run(hidden + [base.ONCECTL, '-d', once.database, 'ls'])
    eq(run.returncode, 0, run)


def make_room(once):
    """In its file, so that the length of that tells nothing."""
    shell(once, 'CREATE TABLE room(a); INSERT INTO room VALUES('
          'zeroblob(300000)); DROP TABLE room',
          'PRAGMA wal_checkpoint(TRUNCATE)')


def move_log(once):
    """As a handler with wal_autocheckpoint does."""
    shell(once, 'PRAGMA wal_checkpoint(PASSIVE)')


def keys_beside_a_copy(t, once):
    """Copies the file; the keys that came after that, and are in the file."""
    make_room(once)
    shutil.copyfile(once.database, t.path('older'))
    keys = ['b%d' % i for i in range(60)]
    for key in keys:
        first(once.post(key), 201)
    move_log(once)
    return keys


def refuses_all(t, once, keys, ran):
    """The store went back: of these keys none runs, after so many runs."""
    for key in keys:
        problem(once.post(key), 'store-unavailable', acted=True)
    eq(len(t.ledger()), ran)
    once.wait_log('event=store-went-back')


def test_a_copy_from_before_a_handlers_checkpoint_is_noticed(t):
    keys = ['k%d' % i for i in range(60)]
    once = start(t)
    for key in keys:
        first(once.post(key), 201)
    make_room(once)
    for key in ('a', 'b', 'c'):
        first(once.post(key), 201)
    shutil.copyfile(once.database, t.path('older'))
    shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
    first(once.post('newest'), 201)
    first(once.post('more'), 201)
    ran = len(t.ledger())
    shutil.copyfile(t.path('older'), once.database)
    for key in ('a', 'b', 'c', 'newest'):
        problem(once.post(key), 'store-unavailable', acted=True)
    eq(len(t.ledger()), ran)
    once.wait_log('event=store-went-back')


def test_a_copy_from_between_two_checkpoints_of_one_log_is_noticed(t):
    once = start(t, server={'sweep_interval': '1h'})
    for i in range(1500):
        first(once.post('k%d' % i), 201)
    make_room(once)
    first(once.post('a'), 201)
    # While it reads, the log does not begin anew.
    reader = sqlite3.connect(once.database, isolation_level=None)
    reader.execute('BEGIN')
    reader.execute('SELECT count(*) FROM sqlite_master').fetchall()
    move_log(once)
    shutil.copyfile(once.database, t.path('older'))
    keys = ['b%d' % i for i in range(6)]
    for key in keys:
        first(once.post(key), 201)
    reader.close()
    move_log(once)
    for i in range(8):
        first(once.post('newest%d' % i), 201)
    ran = len(t.ledger())
    shutil.copyfile(t.path('older'), once.database)
    # The daemon forgets the pages that it knows.
    shell(once, 'CREATE TABLE other(a)')
    refuses_all(t, once, keys, ran)


def test_a_log_that_is_moved_in_part_is_no_older_copy(t):
    """A page that the rest of the log has too is not moved."""
    released = 'ledger; status 503'
    one = start(t, released, name='one')
    two = start(t, released, name='two', database=one.database)
    for n in range(2):      # a second attempt sets a seal
        first(two.post('a'), 503)
    reader = sqlite3.connect(one.database, isolation_level=None)
    reader.execute('BEGIN')
    reader.execute('SELECT count(*) FROM sqlite_master').fetchall()
    for n in range(2):
        first(one.post('b'), 503)
    move_log(one)
    ran = len(t.ledger())
    first(two.post('a'), 503)
    first(one.post('b'), 503)
    eq(len(t.ledger()), ran + 2)
    reader.close()
    move_log(one)
    first(two.post('a'), 503)


def test_a_copy_is_noticed_though_nothing_was_asked_since_a_move(t):
    once = start(t, server={'sweep_interval': '1h'})
    for i in range(40):
        first(once.post('k%d' % i), 201)
    keys = keys_beside_a_copy(t, once)
    ran = len(t.ledger())
    shutil.copyfile(t.path('older'), once.database)
    # The daemon still has pages of what was there.
    problem(once.post('new'), 'store-unavailable', acted=True)
    refuses_all(t, once, keys, ran)


def test_a_copy_that_comes_before_the_log_is_moved_gets_no_seal(t):
    disk = Disk(t)
    once = start(t, server={'sweep_interval': '1h'}, env=disk.env)
    keys = keys_beside_a_copy(t, once)
    # The COMMIT after which the daemon moves the log.
    disk.hang()
    conn = once.begin('new')
    wait_until(disk.hangs, 'the commit hangs')
    shutil.copyfile(t.path('older'), once.database)
    disk.go_on()
    conn.answer()
    ran = len(t.ledger())
    refuses_all(t, once, keys, ran)


def test_a_copy_under_a_log_that_is_to_begin_anew_is_noticed(t):
    disk = Disk(t)
    once = start(t, server={'sweep_interval': '1h'}, env=disk.env)
    keys = keys_beside_a_copy(t, once)
    first(once.post('newest'), 201)
    # The log has the seal, and is moved as soon as the disk allows it.
    disk.fail()
    conn = once.begin('new')
    once.wait_log('event=store-error .*doing=checkpoint ')
    shutil.copyfile(t.path('older'), once.database)
    disk.mend()
    problem(conn.answer(), 'store-unavailable')
    ran = len(t.ledger())
    refuses_all(t, once, keys, ran)


def test_a_backup_from_before_a_handlers_checkpoint_is_noticed(t):
    """It has what was in the log by then, and so its seal."""
    for name, backup in (
            ('shell', lambda once: shell(once, '.backup ' + t.path('shell'))),
            ('oncectl', lambda once: once.ctl('backup', t.path('oncectl')))):
        once = start(t, server={'sweep_interval': '1h'}, name='once-' + name)
        # The file has room, so that its length tells nothing.
        shell(once, 'CREATE TABLE room(a); INSERT INTO room VALUES('
              'zeroblob(300000)); DROP TABLE room')
        first(once.post('a'), 201)
        backup(once)
        keys = ['b%d' % i for i in range(60)]
        for key in keys:
            first(once.post(key), 201)
        move_log(once)
        for i in range(8):
            first(once.post('newest%d' % i), 201)
        ran = len(t.ledger())
        shutil.copyfile(t.path(name), once.database)
        # The daemon forgets the pages that it knows.
        shell(once, 'CREATE TABLE other(a)')
        for key in keys:
            problem(once.post(key), 'store-unavailable', acted=True)
        eq(len(t.ledger()), ran)
        once.wait_log('event=store-went-back')
        once.kill()


def test_a_backup_is_noticed_whatever_the_file_has(t):
    """Nothing but the end of the log has come since."""
    once = start(t, server={'sweep_interval': '1h'})
    first(once.post('a'), 201)
    once.ctl('backup', t.path('copy'))
    shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
    shutil.copyfile(t.path('copy'), once.database)
    problem(once.post('a'), 'store-unavailable', acted=True)
    once.wait_log('event=store-went-back')
    # A start with it goes on from its seal.
    for n in range(2):
        once.kill()
        for suffix in ('-wal', '-shm'):
            if os.path.exists(once.database + suffix):
                os.remove(once.database + suffix)
        if n == 0:
            shutil.copyfile(t.path('copy'), once.database)
        once.start()
        eq(once.post('a').replayed, 'true')


def test_a_copy_that_lacks_no_key_but_an_attempt_is_noticed(t):
    for name, restore in (
            ('restore', lambda once: overwrite(t.path('restore'),
                                               once.database)),
            ('cp', lambda once: shutil.copyfile(t.path('cp'),
                                                once.database))):
        once = start(t, 'ledger; if [ "$ONCE_ATTEMPT" = 1 ]; then '
                     'status 503; else status 201; fi; echo done',
                     server={'sweep_interval': '1h'}, name='once-' + name)
        first(once.post('a'), 503)
        shell(once, '.backup ' + t.path(name))
        first(once.post('a'), 201)
        shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
        ran = len(t.ledger())
        restore(once)
        problem(once.post('a'), 'store-unavailable', acted=True)
        eq(len(t.ledger()), ran)
        once.wait_log('event=store-went-back')
        once.stop()


def test_an_index_that_is_cut_and_grown_again_deceives_nobody(t):
    for cut in (0, 4096, 16384):
        once = start(t, name='cut%d' % cut)
        keys = ['c%d-%d' % (cut, i) for i in range(40)]
        for key in keys:
            first(once.post(key), 201)
        size = os.path.getsize(once.database + '-shm')
        os.truncate(once.database + '-shm', cut)
        os.truncate(once.database + '-shm', size)
        ran = len(t.ledger())
        for key in keys:
            answer = once.post(key)
            assert answer.status == 503 or answer.replayed == 'true', (
                cut, key, str(answer))
        eq(len(t.ledger()), ran)
        once.kill()
        once.start()
        for key in keys:
            eq(once.post(key).replayed, 'true')


def test_another_file_under_the_log_gives_no_other_answer(t):
    other = start(t, 'ledger; status 201; head -c 9000000 /dev/zero | '
                  'tr "\\0" b', name='other')
    first(other.post('k', user='bob'), 201)
    other.stop()
    once = start(t, 'ledger; status 201; head -c 9000000 /dev/zero | '
                 'tr "\\0" a')
    done = once.post('k', user='alice')
    first(done, 201)
    shell(once, 'PRAGMA wal_checkpoint(TRUNCATE)')
    first(once.post('newest', user='alice'), 201)
    shutil.copyfile(other.database, once.database)
    for user, key in (('alice', 'k'), ('bob', 'k'), ('alice', 'newest')):
        problem(once.post(key, user=user), 'store-unavailable', acted=True)
    eq(len(t.ledger()), 3)
    once.wait_log('event=store-went-back')


TRUNCATES = """ledger "$ONCE_KEY"
case $ONCE_KEY in *bad) : > "$D/$ONCE_KEY.db%s";; esac
status 201; echo "$ONCE_KEY" """


def test_a_handler_that_truncates_a_file_neither_ends_nor_deceives_it(t):
    for suffix in ('-shm', '-wal', ''):
        name = 'of%sbad' % suffix
        once = start(t, TRUNCATES % suffix, name=name, defaults={
            'share_database': 'yes'}, server={'busy_timeout': '300ms'})
        keys = ['%s%d' % (name, i) for i in range(20)]
        for key in keys:
            first(once.post(key), 201)
        bad = once.post(name)
        assert bad.status in (201, 500, 503), str(bad)
        for key in keys + [name, name]:
            answer = once.post(key)
            assert answer.status in (409, 500, 503) or \
                answer.body.decode() == key + '\n', (key, str(answer))
            assert once.alive()
        if suffix != '-wal' or bad.status != 201:
            problem(once.post('new'), 'store-unavailable', acted=True)
            eq(health(once)[0], 503)
        ran = [line for line in t.ledger() if line.split()[1].startswith(name)]
        eq((len(ran), len(set(ran))), (21, 21))
        once.kill()
        if suffix == '-shm':
            once.start()
            for key in keys:
                eq(once.post(key).replayed, 'true')
            problem(once.post(name), 'outcome-unknown')
            once.kill()


def test_a_restore_in_place_is_noticed_until_a_restart(t):
    once = start(t)
    first(once.post('before'), 201)
    once.stop()
    shutil.copy(once.database, t.path('copy'))
    once.start()
    first(once.post('after'), 201)
    inode = os.stat(once.database).st_ino
    overwrite(t.path('copy'), once.database)
    eq(os.stat(once.database).st_ino, inode)
    answer = once.post('after')
    problem(answer, 'store-unavailable', acted=True)
    assert 'store-went-back' in answer.json()['detail'], answer
    problem(once.post('before'), 'store-unavailable', acted=True)
    eq(len(t.ledger()), 2)
    once.wait_log('event=store-went-back')
    status, text = health(once)
    eq(status, 503)
    assert 'store-went-back' in text, text
    once.term()
    once.wait()
    once.start()
    eq(once.post('before').replayed, 'true')
    eq(health(once)[0], 200)


def test_a_copy_of_another_database_in_place_is_noticed(t):
    other = start(t, name='other')
    first(other.post('k'), 201)
    other.stop()
    once = start(t)
    first(once.post('k'), 201)
    overwrite(other.database, once.database)
    problem(once.post('new'), 'store-unavailable', acted=True)
    problem(once.post('k'), 'store-unavailable', acted=True)
    eq(len(t.ledger()), 2)


def test_a_new_store_and_an_empty_file_are_logged_as_created(t):
    once = start(t)
    eq(len(once.log_lines('level=warn event=store-created .*database=%s ' %
                          once.database)), 1)
    once.stop()
    os.truncate(once.database, 0)
    once.start()
    eq(len(once.log_lines('level=warn event=store-created .*empty')), 1)
    once.stop()
    once.start()
    eq(len(once.log_lines('event=store-created')), 2)


def test_a_database_outside_of_wal_mode_is_put_into_it(t):
    once = start(t)
    done = once.post('done')
    first(done, 201)
    once.stop()
    db = sqlite3.connect(once.database)
    db.execute('VACUUM INTO ?', (t.path('copy'),))
    db.close()
    os.chmod(t.path('copy'), 0o600)
    os.rename(t.path('copy'), once.database)
    once.start()
    once.wait_log('level=warn event=store-journal')
    replay(once.post('done'), done)
    db = sqlite3.connect(once.database)
    eq(db.execute('PRAGMA journal_mode').fetchone()[0], 'wal')
    db.close()
    once.ctl('doctor')


def refused(t, database, text):
    run = subprocess.run(
        [base.ONCEWRAP, '-d', database, '-s', t.path('s'), '--', '/bin/true'],
        cwd=t.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=base.WAIT * base.SLOW)
    eq(run.returncode, 1)
    assert database in run.stderr and text in run.stderr, run.stderr


def test_a_link_in_the_place_of_a_file_is_refused_and_left_alone(t):
    victim = t.write('victim', 'precious', 0o600)
    for suffix in SUFFIXES + ('-journal',):
        for link, text in ((os.symlink, 'symbolic link'),
                           (os.link, 'hard links')):
            os.mkdir(t.path('store'))
            database = t.path('store/once.db')
            link(victim, database + suffix)
            if suffix:
                once = start(t, name='base' + suffix + text[:4])
                once.stop()
                shutil.copy(once.database, database)
            refused(t, database, text)
            eq(t.read('victim'), b'precious')
            eq(stat.S_IMODE(os.stat(victim).st_mode), 0o600)
            shutil.rmtree(t.path('store'))


def test_a_database_of_another_user_is_refused(t):
    base.need_root()
    once = start(t)
    once.stop()
    os.chown(once.database, 54321, -1)
    refused(t, once.database, 'belongs to user 54321')


def test_a_second_daemon_is_refused_where_the_log_was_removed(t):
    once = start(t)
    done = once.post('done')
    first(done, 201)
    for suffix in ('-wal', '-shm'):
        os.rename(once.database + suffix, t.path('aside'))
        refused(t, once.database, 'is gone')
        eq(os.path.exists(once.database + suffix), False)
        os.rename(t.path('aside'), once.database + suffix)
    replay(once.post('done'), done)


def test_a_row_that_makes_no_sense_is_named_and_ends_nothing(t):
    once = start(t, 'kill -9 $$', defaults={
        'reconcile': t.sh('echo Status: 200; '
                          'echo Idempotency-Outcome: not-executed; echo'),
        'reconcile_after': '1d'})
    eq(once.post('bad').status, 502)
    eq(once.post('good').status, 502)
    once.stop()
    db = sqlite3.connect(once.database)
    with db:
        db.execute("UPDATE once_key SET path = 'pay' WHERE key = 'bad'")
        db.execute('UPDATE once_key SET reconcile_after = id')
        number, = db.execute("SELECT id FROM once_key WHERE key = 'bad'"
                             ).fetchone()
    db.close()
    once.start()
    once.wait_log('event=bad-row .*table=once_key id=%d ' % number)
    once.wait_state('good', 'failed_retryable')
    assert 'once_key %d' % number in once.ctl('doctor', status=1)
    shown = t.run([base.ONCECTL, '-d', once.database, 'show', 'bad'])
    eq(shown.returncode, 1)
    assert b'bad: the row of that key makes no sense' in shown.stderr, shown
    metrics = once.get(ADMIN + '/metrics').body.decode()
    assert '\noncewrap_bad_rows_total 1\n' in metrics, metrics
    eq(once.alive(), True)


def test_a_planted_trigger_does_not_run_in_the_daemon(t):
    once = start(t)
    db = sqlite3.connect(once.database)
    db.executescript('''
        CREATE TABLE seen(what);
        CREATE TRIGGER planted AFTER UPDATE ON once_key BEGIN
            INSERT INTO seen VALUES (NEW.token); SELECT RAISE(ABORT, 'no');
        END;''')
    done = once.post('k')
    first(done, 201)
    replay(once.post('k'), done)
    eq(db.execute('SELECT count(*) FROM seen').fetchone()[0], 0)
    db.close()
    assert 'planted' in once.ctl('doctor', status=1)


def test_a_planted_view_does_not_run_in_the_daemon(t):
    """It would never end."""
    once = start(t)
    first(once.post('k'), 201)
    db = sqlite3.connect(once.database)
    db.executescript('''
        ALTER TABLE once_key RENAME TO kept;
        CREATE VIEW once_key AS WITH RECURSIVE r(n) AS (
            SELECT 1 UNION ALL SELECT n + 1 FROM r)
            SELECT kept.* FROM kept, r WHERE n < 0;''')
    for key in ('k', 'other'):
        problem(once.post(key), 'store-unavailable', acted=True)
    run = t.run([base.ONCECTL, '-d', once.database, 'ls'])
    eq((run.returncode, run.stdout), (1, b''))
    db.executescript('DROP VIEW once_key; ALTER TABLE kept RENAME TO once_key')
    db.close()
    eq(len(t.ledger()), 1)


# --- a folder that others may write ---

def test_a_folder_in_which_others_can_rename_is_named_with_the_cure(t):
    path = t.path('store')
    os.mkdir(path)
    for mode, safe in ((0o770, False), (0o1770, True), (0o757, False),
                       (0o750, True)):
        os.chmod(path, mode)
        once = start(t, name='once%o' % mode, database=path + '/once.db')
        found = once.log_lines('event=store-folder .*%s' % path)
        eq(len(found), 0 if safe else 1)
        assert safe or 'chmod +t' in found[0], found
        report = once.ctl('doctor', status=0 if safe else 1)
        eq('chmod +t' in report, not safe)
        once.stop()


# --- damaged rows that there is one of ---

def sql(once, text):
    db = sqlite3.connect(once.database)
    db.execute(text)
    db.commit()
    db.close()


def manual_cure(database):
    """The command that oncewrap(8) shows, for that database."""
    with open(os.path.join(base.TOP, 'src', 'oncewrap.8')) as f:
        page = f.read()
    start = page.index('$ sqlite3 ') + 2
    end = page.index('.Ed', start)
    command = page[start:end].replace('\n', ' ')
    name = '/var/lib/oncewrap/oncewrap.db'
    assert name in command, command
    return command.replace(name, database)


def test_a_damaged_clock_is_named_and_mended_as_the_manual_says(t):
    once = start(t)
    done = once.post('done')
    first(done, 201)
    for damage in ('DELETE FROM once_clock',
                   'UPDATE once_clock SET last = 9223372036854775807',
                   'UPDATE once_clock SET shift = -9223372036854775808',
                   'UPDATE once_clock SET last = -1'):
        once.stop()
        sql(once, damage)
        before = len(once.log())
        once.start(wait=False)
        eq(once.wait(), 1)
        said = once.log()[before:]
        for word in (once.database, 'table once_clock', 'backup',
                     'oncewrap(8)'):
            assert word in said, said
        run = t.run(['sh', '-c', manual_cure(once.database)])
        eq((run.returncode, run.stderr), (0, b''))
        once.start()
        again = once.post('done')       # it ends a little later
        eq((again.replayed, again.body), ('true', done.body))
    eq(len(t.ledger()), 1)


def is_refused_for_its_secret(once):
    before = len(once.log())
    once.start(wait=False)
    eq(once.wait(), 1)
    assert 'table once_meta' in once.log()[before:], once.log()
    once.process = None


def test_a_damaged_secret_is_named(t):
    once = start(t)
    once.stop()
    sql(once, "UPDATE once_meta SET secret = x'00'")
    is_refused_for_its_secret(once)


def test_with_another_secret_no_key_runs_again(t):
    once = start(t)
    first(once.post('j'), 201)
    done = once.post('k')
    first(done, 201)
    once.stop()
    sql(once, 'CREATE TABLE kept AS SELECT secret FROM once_meta')
    sql(once, 'UPDATE once_meta SET secret = randomblob(32)')
    is_refused_for_its_secret(once)
    sql(once, 'UPDATE once_meta SET secret = (SELECT secret FROM kept)')
    # One row that is damaged does not keep it from starting.
    sql(once, "UPDATE once_key SET identity = 7 WHERE key = 'j'")
    once.start()
    replay(once.post('k'), done)
    eq(len(t.ledger()), 2)
