"""What goes wrong: one thing after the other, at random."""
import contextlib
import fcntl
import json
import random
import signal
import subprocess
import time

import base
import proc
from clocks import HOUR, YEAR

from excuses import Act, Signal, Sleep

TERM_LIMIT = 20     # seconds that an oncewrap may take to end


def user_of(scope):
    return scope.rpartition('=')[2]


class Torment:
    """Plagues oncewraps, their handlers, and the store."""

    def __init__(self, t, seed, onces, clients, store, clocks):
        self.t, self.onces, self.clients = t, onces, clients
        self.store = store
        self.clocks = clocks
        self.rng = random.Random('%s torment' % seed)
        # See excuses.py.
        self.signals, self.slept = [], []
        self.forgot, self.resolved = [], []
        self.count = {}
        deeds = [self.kill, self.kill, self.terminate, self.stop_a_while,
                 self.kill_handler, self.kill_handler, self.hang_up,
                 self.look, self.look, self.resolve, self.resolve,
                 self.forget, self.set_clock]
        self.deeds = [(deed.__name__, deed) for deed in deeds]
        self.deeds += store.deeds(self).items()

    def go(self, seconds):
        """Everything at least once, and on until the time is up."""
        until = time.monotonic() + seconds
        todo = []
        while time.monotonic() < until:
            if not todo:
                todo = list(self.deeds)
                self.rng.shuffle(todo)
            name, deed = todo.pop()
            self.count[name] = self.count.get(name, 0) + 1
            deed()
            self.tend()
            self.rest()

    # --- oncewraps ---

    def rest(self):
        time.sleep(self.rng.uniform(0, 0.4))

    def start(self, once):
        for _ in range(self.store.starts):
            once.start(wait=False)
            self.t.logs[:] = dict.fromkeys(self.t.logs)     # one a start
            base.wait_until(lambda: once.has_started() or not once.alive(),
                            '%s has started or ended' % once.name)
            if once.alive():
                break

    def tend(self):
        """Starts dead processes; one that died without a signal has failed."""
        for once in self.onces:
            if once.process is not None and not once.alive():
                assert any(s.pid == once.pid for s in self.signals), \
                    '%s ended with %s: %s' % (
                        once.name, once.process.returncode,
                        once.log()[-800:])
            if once.process is None or not once.alive():
                if once is self.onces[0] or \
                        self.rng.random() < self.store.often:
                    self.start(once)
                    assert once.alive(), '%s ends at once with %s: %s' % (
                        once.name, once.process.returncode,
                        once.log()[-800:])
                    self.store.started()
        self.store.looked(self.onces)
        self.clients.addresses[:] = [o.address for o in self.onces
                                     if o.process and o.alive()]

    def alive(self):
        return [o for o in self.onces if o.process and o.alive()]

    @contextlib.contextmanager
    def death(self, pid, daemon=True):
        """What is done meanwhile may end that process."""
        sent = time.monotonic()
        yield
        self.signals.append(Signal(pid, sent, time.monotonic(), daemon))

    @contextlib.contextmanager
    def act(self, of, what):
        begin = time.monotonic()
        yield
        of.append(Act(begin, time.monotonic(), what))

    def kill(self):
        """Without a warning, and perhaps not for the first time."""
        for once in self.alive():
            if once is self.onces[0] or self.rng.random() < 0.5:
                with self.death(once.pid):
                    once.kill()
                self.rest()

    def terminate(self):
        for once in self.alive()[self.rng.randrange(2):]:
            with self.death(once.pid):
                once.term()
                twice = self.rng.random() < 0.3
                if twice:
                    self.rest()
                    once.term()
                status = once.wait(TERM_LIMIT)
            # It may end before it sees the second one, but not with 1 then.
            assert status == 0 or twice and status == 1, \
                '%s ended with %d' % (once.name, status)

    def stop_a_while(self):
        """Alive, and silent."""
        once = self.rng.choice(self.alive())
        once.process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0, self.store.nap))
        once.process.send_signal(signal.SIGCONT)

    def hang_up(self):
        once = self.rng.choice(self.alive())
        text = once.conf_text()
        if self.rng.random() < 0.5:
            text += '[route /bad]\nno_such_option = 1\n'
        once.write_conf(text)
        once.hup()
        self.rest()
        once.write_conf()

    def kill_handler(self):
        for _ in range(20):
            found = [pid for once in self.alive()
                     for pid in once.handlers()]
            if found:
                pid = self.rng.choice(found)
                with self.death(pid, daemon=False):
                    proc.kill(pid, self.rng.choice([signal.SIGKILL,
                                                    signal.SIGTERM]))
                return
            time.sleep(0.005)

    def set_clock(self):
        """The wall clock is wrong, or right again; or the host sleeps."""
        wrong = self.rng.choice([0, 0, 1, -1, 3 * HOUR, -3 * HOUR, 50 * YEAR,
                                 -50 * YEAR])
        self.clocks.jump(wrong - self.clocks.wall_added)
        if self.rng.random() < 0.2:
            begin, seconds = time.monotonic(), self.rng.uniform(0, 5)
            self.clocks.passes(seconds)
            self.slept.append(Sleep(begin, time.monotonic(), seconds))

    # --- the store ---

    def ctl(self, *words, **kw):
        """What oncectl says, or None if the store did not let it."""
        run = subprocess.run(
            [base.ONCECTL, '-d', self.onces[0].database] + list(words),
            capture_output=True, timeout=60, **kw)
        assert run.returncode in (0, 1), 'oncectl %s: %d %r' % (
            words, run.returncode, run.stderr[-800:])
        base.check_log(run.stderr.decode('utf-8', 'replace'))
        return run.stdout if run.returncode == 0 else None

    def look(self):
        """An operator does, or makes a pass."""
        self.ctl(*self.rng.choice([
            ['ls'], ['ls', '--json'], ['doctor'], ['stats', '--by-scope'],
            ['metrics'], ['sweep'], ['reap'], ['export']]))

    def rows(self, *words):
        return [json.loads(line) for line in
                (self.ctl('ls', '--json', *words) or b'').splitlines()]

    def resolve(self):
        """An operator resolves keys, by what the handlers did."""
        rows = self.rows('--state', 'unknown', '--path', '/asked')
        time.sleep(0.2)     # a handler whose oncewrap was killed is dying
        for row in rows[:self.rng.randrange(6)]:
            if not self.is_over(row['downstream']):
                continue
            name = ['--downstream', row['downstream']]
            with self.act(self.resolved, row['downstream']):
                found = subprocess.run(
                    [self.t.program('deeds'), self.t.dir, 'find'],
                    env={'ONCE_DOWNSTREAM_KEY': row['downstream']},
                    stdout=subprocess.PIPE, check=True).stdout
                if b'not-executed' in found:
                    self.ctl('resolve', *name, '--not-executed')
                else:
                    self.ctl('resolve', *name, '--completed', input=found)

    def is_over(self, downstream):
        """Whether the last run's processes are gone.  Those of a daemon that
        was only suspected may act yet."""
        try:
            with open(self.t.path('claims', downstream)) as f:
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, BlockingIOError):
            return False
        return True

    def forget(self):
        """An operator deletes keys that no client needs."""
        rows = self.rows('--path', '/short')
        for row in self.rng.sample(rows, min(3, len(rows))):
            identity = (user_of(row['scope']), row['path'], row['key'])
            with self.act(self.forgot, identity):
                self.ctl('forget', row['key'], '--scope', row['scope'],
                         '--path', row['path'])
