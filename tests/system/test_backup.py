"""oncectl backup: whole while oncewrap runs, and what a restored copy knows."""
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import threading

import base
from answer import eq, first, problem
from base import wait_until
from test_resolve import ctl, refused

RUN = 'ledger "$ONCE_KEY $ONCE_DOWNSTREAM_KEY"; '
BIG = ('head -c 15000000 /dev/zero | tr "\\0" "$QUERY_STRING"')


def load(database):
    """{key: row} of a database that no process has open."""
    db = sqlite3.connect('file:%s?immutable=1' % database, uri=True)
    eq(db.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
    rows = {r[0]: r[1:] for r in db.execute(
        'SELECT key, state, downstream FROM once_key')}
    db.close()
    return rows


def names(t):
    return sorted(n for n in os.listdir(t.dir) if n.startswith('copy'))


class Clients:
    """Clients that send new keys until they are told to stop."""

    def __init__(self, t, once, n=4):
        self.once, self.answered, self.over = once, [], threading.Event()
        self.sent = set()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,))
                        for i in range(n)]
        t.defer(self.stop)
        for thread in self.threads:
            thread.start()

    def run(self, number):
        for i in range(1000000):
            key = 'c%d-%d' % (number, i)
            if self.over.is_set():
                return
            with self.lock:
                self.sent.add(key)
            try:
                answer = self.once.post(key, timeout=base.WAIT)
            except OSError:
                return
            if answer.status == 200 and not answer.broken:
                with self.lock:
                    self.answered.append((key, answer.body))

    def so_far(self):
        with self.lock:
            return list(self.answered)

    def wait(self, n):
        wait_until(lambda: len(self.so_far()) >= n, '%d answers' % n)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def restore(once, copy):
    """As oncectl(1) has it."""
    for suffix in ('', '-wal', '-shm'):
        if os.path.exists(once.database + suffix):
            os.unlink(once.database + suffix)
    shutil.copy2(copy, once.database)


# --- whole ----------------------------------------------------------------

def test_a_copy_is_whole_while_requests_run(t):
    once = t.once(handler=t.sh(RUN + 'status 200; echo "of $ONCE_KEY"; '
                               'head -c 20000 /dev/zero'))
    clients = Clients(t, once)
    for i in range(4):
        clients.wait(20 * (i + 1))
        before = clients.so_far()
        copy = t.path('copy%d' % i)
        told = json.loads(once.ctl('backup', copy, '--json'))
        eq((told['file'], told['bytes']), (copy, os.path.getsize(copy)))
        rows = load(copy)
        for key, _ in before:
            eq(rows[key][0], 'completed', key)
    clients.stop()
    eq(names(t), ['copy%d' % i for i in range(4)])
    # A copy is a store: every answer is in it, byte for byte.
    run = t.run([base.ONCECTL, '-d', copy, 'doctor'])
    assert run.returncode in (0, 1) and b'BAD   integrity' not in run.stdout
    for key, body in before[:10]:
        shown = t.run([base.ONCECTL, '-d', copy, 'show', key, '--response'])
        assert shown.stdout.endswith(b'\r\n\r\n' + body), shown


def test_a_copy_is_in_wal_mode_and_keeps_a_handlers_tables(t):
    once = t.once(handler=t.py(
        'import sqlite3\n'
        'db = sqlite3.connect(os.environ["ONCE_DATABASE"])\n'
        'db.execute("CREATE TABLE IF NOT EXISTS ride(name TEXT)")\n'
        'db.execute("INSERT INTO ride(rowid, name) VALUES (7, ?)",'
        ' (os.environ["ONCE_KEY"],))\ndb.commit()\n'
        'out(b"Status: 200\\n\\n")'), defaults={'share_database': 'yes'})
    eq(once.post('k').status, 200)
    once.ctl('backup', t.path('copy'))
    with open(t.path('copy'), 'rb') as f:
        # SQLite's file format, section 1.3: 2 is the write-ahead log.
        eq(f.read(20)[18:], b'\2\2')
    db = sqlite3.connect('file:%s?immutable=1' % t.path('copy'), uri=True)
    eq(db.execute('SELECT rowid, name FROM ride').fetchall(), [(7, 'k')])
    db.close()


def test_restored_under_load_it_forgets_what_came_later_alone(t):
    """No run beyond those of the keys that the copy does not know."""
    gate = t.gate()
    once = t.once(handler=t.sh(
        'case $ONCE_KEY in held*) gate gate;; esac; ' + RUN +
        'status 200; echo "$ONCE_KEY $ONCE_DOWNSTREAM_KEY"'),
        routes={'/resume': {'on_crash': 'resume'}})
    held = [once.begin('held'), once.begin('held-resume', path='/resume')]
    gate.wait()
    gate.wait()
    clients = Clients(t, once)
    clients.wait(40)
    before = clients.so_far()
    once.ctl('backup', t.path('copy'))
    clients.wait(len(clients.so_far()) + 40)
    clients.stop()
    gate.open(2)
    for conn in held:
        eq(conn.answer().status, 200)
    after = dict(clients.so_far())
    once.kill()

    known = load(t.path('copy'))
    restore(once, t.path('copy'))
    once.start()
    for key, body in before:
        answer = once.post(key)
        eq((answer.replayed, answer.body), ('true', body), answer)
    forgotten = []
    for key in clients.sent:
        answer = once.post(key)
        if known.get(key, ('',))[0] == 'completed':
            eq((answer.replayed, answer.body), ('true', after[key]), answer)
        elif key in known:
            problem(answer, 'outcome-unknown', unknown=True)
        else:
            eq((answer.status, answer.replayed), (200, None), answer)
            forgotten.append(key)
    assert len(forgotten) >= 40, len(forgotten)
    # What ran when the copy was made is treated as after a crash.
    problem(once.post('held'), 'outcome-unknown', unknown=True)
    # No file tells whether that attempt's processes are gone: it may not be
    # released before its deadline, and is unknown then.
    problem(once.post('held-resume', path='/resume'), 'key-in-progress')

    runs = {}
    for line in t.ledger():
        attempt, key, downstream = line.split()
        runs.setdefault(key, []).append((attempt, downstream))
    for key in clients.sent:
        eq(len(runs[key]), 2 if key in forgotten else 1, (key, runs[key]))
    for key in forgotten:
        # New in all: a provider cannot tell that it is the same request.
        eq([attempt for attempt, _ in runs[key]], ['1', '1'])
        assert runs[key][0][1] != runs[key][1][1], runs[key]
    eq((len(runs['held']), len(runs['held-resume'])), (1, 1))


def test_a_copy_put_under_a_running_daemon_is_noticed(t):
    once = t.once(handler=t.sh('status 200'))
    first(once.post('k'), 200)
    once.ctl('backup', t.path('copy'))
    os.replace(t.path('copy'), once.database)
    problem(once.post('new'), 'store-unavailable', acted=True)


# --- the file -------------------------------------------------------------

def test_the_mode_is_0600_whatever_the_umask(t):
    once = t.once(handler=t.sh('status 200'))
    eq(t.run(['sh', '-c', 'umask 0; exec "$@"', 'sh', base.ONCECTL, '-d',
              once.database, 'backup', t.path('copy')]).returncode, 0)
    eq(stat.S_IMODE(os.stat(t.path('copy')).st_mode), 0o600)


def test_made_by_root_it_belongs_to_the_databases_owner(t):
    base.need_root()
    once = t.once(handler=t.sh('status 200'))
    first(once.post('k'), 200)
    once.stop()
    for suffix in ('', '-wal', '-shm', '-lock'):
        if os.path.exists(once.database + suffix):
            os.chown(once.database + suffix, 1, 2)
    once.ctl('backup', t.path('copy'))
    st = os.stat(t.path('copy'))
    eq((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (1, 2, 0o600))


def test_root_writes_to_no_file_that_another_user_has_open(t):
    base.need_root()
    once = t.once(handler=t.sh('status 200'))
    first(once.post('k'), 200)
    partial = t.write('copy.partial')
    os.chown(partial, 1, 1)
    refused(t, once, 'backup', t.path('copy'), says='not left by a backup')
    eq((t.read('copy.partial'), t.exists('copy')), (b'', False))
    os.chown(partial, 0, 0)
    once.ctl('backup', t.path('copy'))


def test_it_replaces_nothing_unless_told(t):
    once = t.once(handler=t.sh('status 200'))
    first(once.post('k'), 200)
    t.write('copy', 'precious')
    refused(t, once, 'backup', t.path('copy'), says='--yes replaces it')
    eq(t.read('copy'), b'precious')
    once.ctl('backup', t.path('copy'), '--yes')
    eq(list(load(t.path('copy'))), ['k'])
    os.symlink(t.path('elsewhere'), t.path('copy-link'))
    os.mkdir(t.path('copy-folder'))
    for name in ('copy-link', 'copy-folder'):
        for args in ([], ['--yes']):
            refused(t, once, 'backup', t.path(name), *args,
                    says='no plain file')
    eq(t.exists('elsewhere'), False)
    eq(names(t), ['copy', 'copy-folder', 'copy-link'])


def test_names_that_no_copy_may_have(t):
    once = t.once(handler=t.sh('status 200'))
    first(once.post('k'), 200)
    os.mkdir(t.path('folder'))
    os.link(t.path('once.conf'), t.path('other'))
    for suffix in ('', '-wal', '-shm', '-lock', '-journal'):
        refused(t, once, 'backup', '--yes', once.database + suffix,
                says='database itself')
    refused(t, once, 'backup', t.path('folder/'), says='name a file')
    refused(t, once, 'backup', t.path('nowhere/copy'),
            says='the folder for the copy, %s: No such file'
            % t.path('nowhere'))
    refused(t, once, 'backup', '/proc/copy', says='/proc/copy')
    t.write('copy-wal', 'old')
    refused(t, once, 'backup', t.path('copy'), says='taken for a part')
    eq((names(t), t.read('copy-wal')), (['copy-wal'], b'old'))
    eq(ctl(t, once, 'backup').returncode, 2)
    eq(once.state('k'), 'completed')


# --- copies that come to no end -------------------------------------------

def large(t, **options):
    """A store of 60 MB."""
    once = t.once(handler=t.sh('status 200; [ -z "$QUERY_STRING" ] || ' + BIG),
                  **options)
    for letter in 'abcd':
        eq(len(once.post(letter, query=letter).body), 15000000)
    return once


def half_done(t, once, *args):
    """oncectl backup, stopped when it has begun to write."""
    while True:
        process = t.popen([base.ONCECTL, '-f', once.file, 'backup',
                           t.path('copy')] + list(args), stderr=-1, stdout=-1)

        def written():
            try:
                return os.path.getsize(t.path('copy.partial')) > 0
            except FileNotFoundError:
                return process.poll() is not None
        while not written():
            pass
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and t.exists('copy.partial') and \
                os.path.getsize(t.path('copy.partial')) < 50000000:
            return process
        process.send_signal(signal.SIGCONT)     # it was too fast
        process.wait(base.WAIT)
        if t.exists('copy'):
            os.unlink(t.path('copy'))


def test_a_signal_leaves_nothing(t):
    once = large(t)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = half_done(t, once)
        eq(names(t), ['copy.partial'])
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        out, said = process.communicate(timeout=base.WAIT)
        eq((process.returncode, out), (1, b''), said)
        assert b'interrupted' in said, said
        eq(names(t), [])


def test_a_killed_backup_is_no_copy_and_delays_no_other(t):
    once = large(t)
    process = half_done(t, once)
    refused(t, once, 'backup', t.path('copy'), says='another backup')
    process.kill()
    process.wait()
    eq(names(t), ['copy.partial'])
    once.ctl('backup', t.path('copy'))
    eq(names(t), ['copy'])
    eq(sorted(load(t.path('copy'))), ['a', 'b', 'c', 'd'])
    # What a stranger left under that name is not touched.
    os.symlink(once.file, t.path('copy.partial'))
    refused(t, once, 'backup', '--yes', t.path('copy'), says='copy.partial')
    eq(t.read('once.conf').decode(), once.conf_text())


def test_what_is_written_meanwhile_is_not_in_the_copy(t):
    once = large(t)
    process = half_done(t, once)
    for i in range(20):
        first(once.post('later%d' % i), 200)
    process.send_signal(signal.SIGCONT)
    eq(process.wait(base.WAIT), 0)
    eq(sorted(load(t.path('copy'))), ['a', 'b', 'c', 'd'])


def test_it_gives_up_before_the_log_is_too_long(t):
    """The daemon never refuses a request for a backup's sake."""
    once = large(t, server={'max_wal': '40M'})
    process = half_done(t, once)
    for letter in 'ef':     # 30 MB of log, and a bit
        eq(len(once.post(letter, query=letter).body), 15000000)
    process.send_signal(signal.SIGCONT)
    out, said = process.communicate(timeout=base.WAIT)
    eq((process.returncode, out), (1, b''), said)
    assert b'max_wal' in said, said
    eq(names(t), [])
    first(once.post('k'), 200)


def test_a_full_disk_leaves_nothing(t):
    """Of a disk that ends in mid-copy, the old copy stays."""
    once = large(t)
    t.write('copy', 'old')

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000000, 20000000))
    run = t.run([base.ONCECTL, '-d', once.database, 'backup', '--yes',
                 t.path('copy')], preexec_fn=limit,
                restore_signals=False)
    eq((run.returncode, run.stdout), (1, b''), run)
    assert b'backup: ' in run.stderr, run
    eq((names(t), t.read('copy')), (['copy'], b'old'))
