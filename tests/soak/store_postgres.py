"""A store in PostgreSQL: a primary whose commits wait for a standby.

Daemons of two hosts use it: they have a folder of their own each, which makes
the name of a host.
"""
import json
import os
import re
import signal
import time

import base
import postgres

import history
from excuses import Act

# A daemon is suspected after so long (s); the least that is allowed.
OWNER_TIMEOUT = 1
# What a suspicion leads to has happened by then, unless the server was away
# for longer.
SUSPICION_LASTS = 4
LOCKS = ('LOCK TABLE once_key IN SHARE MODE',
         'LOCK TABLE once_session IN SHARE MODE',
         'SELECT count(*) FROM (SELECT 1 FROM once_owner FOR UPDATE) x',
         'SELECT count(*) FROM (SELECT 1 FROM once_key FOR UPDATE) x')


class Store:
    options = {'owner_timeout': '%ds' % OWNER_TIMEOUT}
    often = 0.7
    nap = 3 * OWNER_TIMEOUT
    starts = 5          # the server may just be slow
    findings = {'clock'}    # the daemons' clocks are set, the server's is not
    full = ()

    def __init__(self, t, seconds):
        self.t = t
        env = dict(os.environ)          # at each start: not Clocks'
        self.primary = postgres.Server(t.path('primary'), env=env)
        t.defer(lambda: self.primary.stop(signal.SIGQUIT))
        self.primary.keep_promises()
        self.standby = postgres.Server(t.path('standby'), self.primary,
                                       env)
        t.defer(self.end_standby)
        self.standby.set('wal_retrieve_retry_interval', '100ms')
        self.primary.synchronous('standby')
        self.database = self.primary.database()
        self.sql('CREATE ROLE app LOGIN')
        run = t.run([base.ONCECTL, '-d', self.database, 'init', '--grant',
                     'app'])
        assert run.returncode == 0, run.stderr
        self.sql('CREATE TABLE ride(run text, downstream text);'
                 ' GRANT INSERT ON ride TO app')
        os.mkdir(t.path('elsewhere'), 0o700)
        self.pids = {}          # of owners
        self.read = {}          # how much of each log
        self.suspected = []
        self.last_look = time.monotonic()

    def end_standby(self):
        self.standby.thaw()
        self.standby.stop(signal.SIGQUIT)

    def sql(self, text):
        return postgres.query(self.database, text)

    @staticmethod
    def daemons():
        return {'one': 'this', 'two': 'this', 'three': 'other'}

    def env(self, host):
        if host == 'this':
            return None
        return dict(os.environ, STATE_DIRECTORY=self.t.path('elsewhere'))

    def started(self):
        for line in self.sql('SELECT id, pid FROM once_owner').splitlines():
            owner, _, pid = line.partition('|')
            self.pids[int(owner)] = int(pid)

    def looked(self, onces):
        """Notes the daemons that were suspected since the last look."""
        began, self.last_look = self.last_look, time.monotonic()
        for once in onces:
            lines = once.log()[self.read.get(once.name, 0):]
            lines = lines[:lines.rfind('\n') + 1]
            self.read[once.name] = self.read.get(once.name, 0) + len(lines)
            for owner in re.findall(r'event=owner-suspected .*?owner=(\d+)',
                                    lines):
                self.suspected.append(Act(
                    began, self.last_look + SUSPICION_LASTS,
                    self.pids[int(owner)]))

    def keep(self):
        with open(self.t.path('soak.sql'), 'w') as f:
            f.write(self.primary.command('pg_dump', '--inserts', '-d',
                                         self.database))

    # --- what it says in the end ---

    def table(self, sql):
        return json.loads(self.sql('SELECT json_agg(row) FROM (%s) t(row)' %
                                   sql) or '[]')

    def rows(self):
        return self.table(
            "SELECT json_build_array(convert_from(scope, 'UTF8'),"
            " convert_from(path, 'UTF8'), convert_from(key, 'UTF8'),"
            ' state, attempt, downstream) FROM once_key')

    def said(self):
        rides = self.table('SELECT json_build_array(run, downstream)'
                           ' FROM ride')
        effects = self.table(
            'SELECT json_build_array(effect_key, downstream, e.state)'
            ' FROM once_effect e LEFT JOIN once_key k ON k.id = e.key_id')
        return ([history.Ride(*row) for row in rides],
                [history.Effect(*row) for row in effects])

    # --- what goes wrong with it ---

    def deeds(self, torment):
        """Each by its name."""
        def done(deed):
            deed(torment.rng)
            self.sql('SELECT txid_current()')   # commits come to an end again
        return {deed.__name__: (lambda deed=deed: done(deed))
                for deed in (self.hold_lock, self.cut, self.cut_again,
                             self.freeze_server, self.restart_server,
                             self.kill_server, self.freeze_standby,
                             self.restart_standby)}

    def hold_lock(self, rng):
        """A stranger writes, or means to."""
        try:
            self.sql('BEGIN; SET LOCAL lock_timeout = 2000; %s;'
                     ' SELECT pg_sleep(%f); ROLLBACK' % (
                         rng.choice(LOCKS), rng.uniform(0, 2)))
        except AssertionError as error:
            # The lock is held for longer, or others wait for each other.
            assert 'lock timeout' in str(error) or \
                'deadlock' in str(error), error

    def cut(self, rng):
        """Connections end, or what they are at is cancelled."""
        self.sql('SELECT %s(pid) FROM pg_stat_activity WHERE'
                 ' datname = current_database() AND pid <> pg_backend_pid()'
                 ' AND random() < %f' % (
                     rng.choice(['pg_terminate_backend',
                                 'pg_terminate_backend',
                                 'pg_cancel_backend']), rng.random()))

    def cut_again(self, rng):
        for _ in range(rng.randint(1, 8)):
            self.cut(rng)

    def freeze_server(self, rng):
        self.primary.freeze()
        time.sleep(rng.uniform(0, 3))
        self.primary.thaw()

    def restart_server(self, rng):
        self.primary.stop(rng.choice([signal.SIGINT, signal.SIGQUIT]))
        time.sleep(rng.uniform(0, 1))
        self.primary.start()

    def kill_server(self, rng):
        """As by a power failure."""
        self.primary.freeze()           # so that no child is overlooked
        self.primary.kill()
        self.primary.start()

    def freeze_standby(self, rng):
        """No commit comes to an end."""
        self.standby.freeze()
        time.sleep(rng.uniform(0, 3))
        self.standby.thaw()

    def restart_standby(self, rng):
        self.standby.stop(signal.SIGQUIT)
        time.sleep(rng.uniform(0, 1))
        self.standby.start()
