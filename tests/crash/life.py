"""One oncewrap's lives around a death, and what must hold after it.

  I1  No run without a durable reservation: every key of the ledger is in the
      store, with at least that many attempts.
  I2  What a client saw as a final answer is what a retry gets, byte for byte.
  I3  One key, one run, unless the record says that it was released; and no
      run beside what is left of an earlier one.
"""
import datetime
import glob
import os
import signal

import base
import fcgi
import proc
from answer import eq, http_date, problem
from base import wait_until

# Of an answer: in the first one only, and in the stored one only.
FIRST_ONLY = {'set-cookie', 'date'}
STORED_ONLY = {'idempotent-replayed'}


# The handlers stay: each is FastCGI, and is given its requests.
STAYS = False


def fields(answer, but):
    return [f for f in answer.fields if f[0].lower() not in but]


def same(seen, again, early=False):
    """A retry got what was seen, as far as that arrived.  early: it was seen
    while its attempt ran on, and the key's retention had not begun."""
    eq((again.status, again.reason, again.replayed),
       (seen.status, seen.reason, 'true'), again)
    expires = {'idempotency-expires'} if early else set()
    eq(fields(again, STORED_ONLY | expires),
       fields(seen, FIRST_ONLY | STORED_ONLY | expires), again)
    if early:
        assert http_date(again.get('Idempotency-Expires')) >= \
            http_date(seen.get('Idempotency-Expires')), str(again)
    if seen.broken:
        assert again.body.startswith(seen.body), str(again)
    else:
        eq(again.body, seen.body, again)


def session(pid):
    fields = proc.stat(pid)
    return int(fields[3]) if fields else None


def now():
    """As oncectl writes it."""
    return datetime.datetime.utcnow().isoformat(timespec='milliseconds') + 'Z'


class Life:
    def __init__(self, t, point, *words, server=None, defaults=None,
                 stop=False):
        self.t = t
        self.fate, self.name, self.n = point
        self.words = words
        self.fault = '%s:%s%s' % (self.name, self.n, ':stop' * stop)
        self.server = {'workers': '16', 'sweep_interval': '1h',
                       'reap_interval': '1h'}
        if base.POSTGRES:
            # So that a commit is not sometimes the keeper's.
            self.server['owner_timeout'] = '10m'
        self.server.update(server or {})
        self.defaults = {'on_crash': self.fate}
        self.defaults.update(defaults or {})
        self.handler = ' '.join((t.program('ledger'), t.dir) + words)
        if STAYS:
            self.handler = t.program('stays') + ' ' + self.handler
            self.defaults.update(protocol='fastcgi', processes='2')
        self.once = t.once(self.handler, server=self.server,
                           defaults=self.defaults, start=False)
        self.seen = []      # (key, path, answer)
        self.early = False  # an answer may be seen before its attempt ends
        self.expected = {}  # key: its state after the restart, where one is
        self.past = set()   # keys past their retention
        self.marked = False # and a marker stays of them
        self.paths = {}

    # --- until the death ---

    def gate(self):
        return self.t.gate()

    def start(self):
        """Without a fault."""
        self.once.env.pop('ONCEWRAP_FAULT', None)
        self.once.write_conf()
        self.once.start()

    def arm(self):
        """With it: returns when it listens, or is dead already."""
        self.once.env['ONCEWRAP_FAULT'] = self.fault
        self.once.write_conf()
        self.once.start(wait=False)
        wait_until(lambda: self.once.process.poll() is not None or
                   self.listens(), 'it listens or is dead')

    def listens(self):
        try:
            fcgi.Conn(self.once.address).close()
            return True
        except OSError:
            return False

    def post(self, key, path='/pay'):
        """A request, and what became of it; None if that cannot be told."""
        self.paths[key] = path
        try:
            answer = self.once.post(key, path=path)
        except (OSError, fcgi.Closed):
            return None
        self.seen.append((key, answer))
        return answer

    def dies(self):
        wait_until(lambda: self.once.process.poll() is not None,
                   '%s is passed' % self.fault)
        eq(self.once.process.returncode, -signal.SIGKILL, self.fault)

    def other(self):
        """Another process on the same database; from now on it is asked."""
        self.server['sweep_interval'] = '50ms'
        first = self.once
        self.once = self.t.once(self.handler, server=self.server,
                                defaults=self.defaults, name='other',
                                database=first.database)
        return first

    # --- what is left ---

    def orphans(self):
        """What outlived its oncewrap."""
        found = set(proc.descendants(os.getpid()))
        if self.once.alive():
            found -= {self.once.pid, *proc.descendants(self.once.pid)}
        return [pid for pid in found if proc.alive(pid)]

    def left_behind(self):
        """What handlers left behind, once they are gone themselves: they
        lead sessions."""
        wait_until(lambda: not [pid for pid in self.orphans()
                                if session(pid) == pid],
                   'the handlers are gone')
        return self.orphans()

    def end_orphans(self):
        for pid in self.orphans():
            proc.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.orphans(), 'its processes are gone')

    def lines(self, deed, key):
        return [line.split() for line in self.t.ledger()
                if line.split()[:2] == [deed, key]]

    def runs(self, key):
        return len(self.lines('started', key))

    # --- after it ---

    def over(self, keys, stays=False):
        """It is dead; it is started again, and all must be well."""
        self.dies()
        self.start_again()
        self.check(keys, stays)

    def start_again(self):
        """A handler may outlive its oncewrap by a moment: the first sweep
        then leaves its key to the next one."""
        self.server['sweep_interval'] = '50ms'
        self.once.server.update(self.server)
        self.start()

    def check(self, keys, stays=False):
        if self.fate == 'resume':
            self.attempt_lock_goes(keys, stays)
        rows = {row['key']: row for row in self.once.ls()}
        for key, state in self.expected.items():
            eq(rows[key]['state'] if key in rows else None, state, self.fault)
        for key in keys:
            self.check_row(key, rows.get(key))
        for key in keys:
            self.check_retries(key, rows[key]['state'] if key in rows
                               else None)
        for line in self.t.ledger():
            assert not line.startswith('overlap'), line
        self.check_doctor()
        self.end_orphans()
        self.check_attempts()

    def check_attempts(self):
        """Nothing is kept of attempts that have ended."""
        self.once.ctl('sweep')
        folder = self.once.database + '-attempts'
        if base.POSTGRES:
            folder, = glob.glob(self.t.path('postgresql-*-attempts')) or ['']
        names = os.listdir(folder) if os.path.exists(folder) else []
        # Each process that stays has a file as long as it lives.
        live = [name for name in names if name.endswith('.process')]
        eq(sorted(names), sorted(live))
        assert len(live) <= (2 if STAYS else 0), live

    def attempt_lock_goes(self, keys, stays):
        """While something of an attempt is left, its key is not released."""
        if 'child' in self.words and self.left_behind():
            for key in keys:
                self.is_held(key, stays)
        if not stays:
            self.end_orphans()
        wait_until(lambda: not self.once.ls('--state', 'in_progress'),
                   'nothing is in progress')
        if stays:
            eq([self.once.state(key) for key in keys], ['unknown'])

    def is_held(self, key, stays):
        runs = self.runs(key)
        state = self.once.state(key)
        may_be = ['in_progress', 'completed'] + ['unknown'] * stays
        assert state in may_be, 'I3: %s, and its processes live' % state
        if state == 'in_progress':
            answer = self.once.post(key)
            if not stays or self.once.state(key) == state:
                problem(answer, 'key-in-progress')
        eq(self.runs(key), runs)

    def check_row(self, key, row):
        """Checks a row before any client asks again."""
        started = self.lines('started', key)
        acted = self.lines('acted', key)
        released = [a for k, a in self.seen if k == key and a.status == 503
                    and a.code is None]
        assert len(acted) <= len(started), acted
        eq(len({token for _, _, _, token in started}), len(started))
        most = 1 if 'first=503' not in self.words else 2
        assert len(started) <= most, '%d runs: %r' % (len(started), started)
        if row is None:
            assert not started or key in self.past and not self.marked, \
                'I1: %s is gone' % key
            return
        state = row['state']
        assert state in ('completed', 'failed_retryable', 'unknown') or \
            state == 'expired' and key in self.past and self.marked, row
        for _, _, attempt, _ in started:
            assert int(attempt) <= row['attempt'], 'I1: %r' % row
        if state == 'failed_retryable':
            assert self.fate == 'resume' or released or \
                'first=503' in self.words and acted, row
        if self.lines('responded', key):
            eq(state, 'completed', row)
        if state == 'completed':
            assert acted, 'completed, and no run acted: %r' % row
        for k, answer in self.seen:
            if k == key and answer.status == 201 and key not in self.past:
                eq(state, 'completed', answer)
            if k == key and answer.code in ('handler-failed',
                                            'handler-timeout'):
                assert state == 'unknown' or self.fate == 'resume', row

    def is_past(self, key):
        """The row of a key past its retention."""
        row = self.once.row(key)
        return row if row['expires_at'] < now() else None

    def check_accepted(self, keys):
        """A request that was answered with 202 is not forgotten, and a key that
        is queued, or may be resumed, runs without a retry."""
        for key, answer in self.seen:
            if answer.status == 202:
                assert self.once.row(key), 'I1: %s is gone' % key
        # One look at all: between two of them a state may change.
        wait_until(lambda: not any(
            row['state'] in ('pending', 'in_progress', 'failed_retryable')
            for row in self.once.ls()), 'all have ended')
        rows = {row['key']: row for row in self.once.ls()}
        for key in keys:
            if key not in rows:
                assert not self.runs(key), 'I1: %s is gone' % key
                eq(self.once.post(key).status, 202)
                self.once.wait_state(key, 'completed')
            self.check_ended(key, self.once.row(key))
        for line in self.t.ledger():
            assert not line.startswith('overlap'), line
        self.check_doctor()
        self.end_orphans()

    def check_ended(self, key, row):
        runs = self.lines('started', key)
        acted = {token for _, _, _, token in self.lines('acted', key)}
        eq(len({(n, token) for _, _, n, token in runs}), len(runs), 'I3')
        for _, _, attempt, _ in runs:
            assert int(attempt) <= row['attempt'], 'I1: %r' % row
        first, second = self.once.post(key), self.once.post(key)
        if row['state'] == 'unknown':
            eq((self.fate, row['attempt']), ('unknown', 1))
            problem(second, 'outcome-unknown')
        else:
            eq(row['state'], 'completed', row)
            assert row['attempt'] == 1 or self.fate == 'resume', row
            assert first.body.split(b'\n')[0].decode() in acted, str(first)
            same(first, second)
        for k, answer in self.seen:
            if k == key and answer.status == 201:
                same(answer, second)
        eq(self.lines('started', key), runs, 'I3')

    def check_doctor(self):
        """It finds fault with nothing but unknown outcomes."""
        run = self.t.run([base.ONCECTL, '-d', self.once.database, 'doctor'])
        bad = {line.split()[1] for line in run.stdout.decode().splitlines()
               if line.startswith('BAD')}
        unknown = self.once.ls('--state', 'unknown')
        eq(bad, {'unknown', 'summary'} if unknown else set(),
           run.stdout.decode())
        eq(run.returncode, 1 if bad else 0, run.stderr)

    def final(self, key):
        """What a client that retries gets in the end."""
        for _ in range(3):
            answer = self.once.post(key, path=self.paths.get(key, '/pay'))
            if answer.status != 503:
                break
        return answer

    def check_retries(self, key, state):
        runs = self.runs(key)
        first = self.final(key)
        second = self.final(key)
        if state == 'unknown':
            problem(first, 'outcome-unknown')
            problem(second, 'outcome-unknown')
            eq(self.runs(key), runs, 'I3')
            return
        if key in self.past and self.marked:
            problem(first, 'key-expired')
            problem(second, 'key-expired')
            eq(self.runs(key), runs, 'I3')
            return
        eq(first.status, 201, first)
        if state == 'completed' and key not in self.past:
            eq(self.runs(key), runs, 'I3')
            for k, answer in self.seen:
                if k == key and answer.status == 201:
                    same(answer, first, self.early)
        else:
            eq(first.replayed, None, first)
            assert self.runs(key) > runs, self.t.ledger()
        tokens = [token for _, _, _, token in self.lines('acted', key)]
        assert first.body.split(b'\n')[0].decode() in tokens, str(first)
        if key not in self.past:
            same(first, second)
