"""A store in a file: what it says, and what goes wrong with it."""
import ctypes
import os
import shutil
import sqlite3
import subprocess
import time
import uuid

import history

CLONE_NEWNS = 0x00020000


def uuid_text(data):
    """The text of the 16 bytes in a row; None of no row."""
    return data and str(uuid.UUID(bytes=data))


def small_disk(t, megabytes):
    """A folder of its own size, which goes with this process; or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        return None
    path = t.path('disk')
    os.mkdir(path)
    for words in (['--make-rprivate', '/'],
                  ['-t', 'tmpfs', '-o', 'size=%dm' % megabytes, 'soak',
                   path]):
        if subprocess.run(['mount'] + words,
                          stderr=subprocess.DEVNULL).returncode != 0:
            return None
    return path


def rows(database):
    db = sqlite3.connect(database)
    try:
        found = db.execute('PRAGMA integrity_check').fetchall()
        assert found == [('ok',)], found
        found = db.execute('SELECT scope, path, key, state, attempt,'
                           ' downstream FROM once_key').fetchall()
    finally:
        db.close()
    return [row[:5] + (uuid_text(row[5]),) for row in found]


def said(database):
    db = sqlite3.connect(database)
    try:
        rides = db.execute('SELECT run, downstream FROM ride').fetchall()
        effects = db.execute(
            'SELECT effect_key, downstream, e.state FROM once_effect e'
            ' LEFT JOIN once_key k ON k.id = e.key_id').fetchall()
    finally:
        db.close()
    return ([history.Ride(*row) for row in rides],
            [history.Effect(key, uuid_text(downstream), state)
             for key, downstream, state in effects])


class Store:
    options = {}        # of [server]
    often = 0.3         # how likely a second daemon is started when it can be
    nap = 1.5           # seconds that a daemon is stopped at most
    starts = 1          # how often a daemon that does not start is started
    findings = set()    # of doctor, which are no fault of the store
    suspected = ()      # see excuses.py

    def __init__(self, t, seconds):
        self.t = t
        self.disk = small_disk(t, 16 + seconds // 4)
        self.database = os.path.join(self.disk or t.dir, 'soak.db')
        self.full = []

    @staticmethod
    def daemons():
        """The name and the host of each; the first is always there."""
        return {'one': 'this', 'two': 'this'}

    def env(self, host):
        return None

    def started(self):
        """Daemons were started."""

    def looked(self, onces):
        """What the daemons' logs say now."""

    def keep(self):
        if self.disk:
            shutil.copy(self.database, self.t.path('soak.db'))

    # --- what it says in the end, when no other process has it open ---

    def rows(self):
        return rows(self.database)

    def said(self):
        return said(self.database)

    # --- what goes wrong with it ---

    def deeds(self, torment):
        """Each by its name."""
        found = {'hold_lock': self.hold_lock, 'hold_log': self.hold_log}
        if self.disk:
            for name in ('fill', 'fill_again'):
                found[name] = self.fill
        return {name: (lambda deed=deed: deed(torment))
                for name, deed in found.items()}

    def hold_lock(self, torment):
        """A stranger writes, or means to."""
        self.stranger(torment, 'BEGIN IMMEDIATE')

    def hold_log(self, torment):
        """A stranger reads, and the log cannot be reset."""
        self.stranger(torment, 'BEGIN; SELECT count(*) FROM once_key')

    def stranger(self, torment, sql):
        db = sqlite3.connect(self.database, timeout=2, isolation_level=None)
        try:
            for statement in sql.split('; '):
                db.execute(statement).fetchall()
            time.sleep(torment.rng.uniform(0, 2))
            db.execute('ROLLBACK')
        except sqlite3.OperationalError:
            pass        # the lock is held for longer
        finally:
            db.close()

    def fill(self, torment):
        """The disk is full, or there is room for a little."""
        with torment.act(self.full, 'disk'):
            self.fill_a_while(torment)

    def fill_a_while(self, torment):
        path = os.path.join(self.disk, 'filler')
        rng = torment.rng
        room = rng.choice([0, 0, 4096, 16384, 100000])
        with open(path, 'wb', 0) as f:
            for _ in range(rng.randint(1, 8)):
                free = os.statvfs(self.disk)
                size = free.f_bavail * free.f_frsize - room
                try:
                    if size > 0:
                        os.posix_fallocate(f.fileno(),
                                           os.fstat(f.fileno()).st_size, size)
                except OSError:
                    pass        # another process has taken the room
                time.sleep(rng.uniform(0, 0.3))
            if rng.random() < 0.3:
                # Nothing that it had not promised is lost with it.
                once = rng.choice(torment.alive())
                with torment.death(once.pid):
                    once.kill()
        os.unlink(path)
