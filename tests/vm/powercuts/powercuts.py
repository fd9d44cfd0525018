"""Cases: the power of a guest fails again and again, and nothing is lost.

Clients, the ledger of what handlers did, and the guest's disk are outside of
the guest.  In the end the soak's checker judges the history.  To it a cut is
the death of all processes of a boot.
"""
import json
import os
import random
import re
import subprocess
import time

import base
import fcgi
import history
import once
import small
import soak
import store_file
from clients import Clients
from excuses import Excuses, Signal
from history import Route

from disk import Platter, Server
from recorder import Recorder, Records

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = '160M'       # of the disk
LOAD = 3.0          # seconds of requests before a cut, at most,
WRITES = 500        # ... or so many writes and flushes
EARLY = 0.15        # how often the power fails before there are any

# The host's clock at a boot, if it has one; it is never right.
CLOCKS = ('1970-01-01', '2040-02-29T12:00:00', '2026-01-01', '2001-09-09',
          '2037-12-31T23:59:00', '1999-12-31T23:59:50')

TOLD = '%d cuts, %d keys, %d blocks dropped, %d of them torn, %d violations'

HANDLER = '/bin/deeds /run@PORT@'
PATHS = {path: soak.PATHS[path] for path in (
    '/unknown', '/resume', '/said', '/later', '/short', '/gone')}
PATHS['/asked'] = (Route(False, asked=True),
                   dict(soak.LASTING, on_crash='unknown',
                        reconcile=HANDLER + ' find',
                        reconcile_after='500ms', reconcile_attempts='2'))
ROUTES = {path: route for path, (route, _) in PATHS.items()}
SERVER = dict(soak.SERVER, database='/data/store/once.db',
              socket='tcp:0.0.0.0:9000', admin_path='/once',
              busy_timeout='5s')


def configuration(durability):
    text = '[server]\n' + once.ini(dict(SERVER, durability=durability))
    text += '[defaults]\nhandler = %s\n' % HANDLER
    for path, (_, options) in PATHS.items():
        text += '[route %s]\n' % path + once.ini(options)
    return text + soak.MAIL % (HANDLER + ' deliver')


class Waiting(Clients):
    """Clients that wait while there is no address to ask."""

    def ask(self, identity, variant, patience, address=None):
        while address is None and not self.addresses and \
                not self.over.is_set():
            time.sleep(0.02)
        return super().ask(identity, variant, patience, address)


class Cuts:
    """A guest whose power is cut.  options are those of ext4; lies: its disk
    does; durability is oncewrap's; paths are those that are asked."""

    def __init__(self, t, seed, options, lies=False, durability='full',
                 paths=tuple(ROUTES)):
        small.need()
        self.t, self.options, self.lies = t, options, lies
        self.writes = durability == 'full'      # ... for each answer
        self.rng = random.Random('%s cuts' % seed)
        self.image = small.Image(
            t.dir, base.BUILDDIR, os.path.join(HERE, 'init'),
            [base.ONCEWRAP, self.handler()],
            {'oncewrap.conf': t.write('oncewrap.conf',
                                      configuration(durability))})
        self.platter = Platter(self.formatted(), lies)
        self.disk = Server(self.platter, t.path('disk.sock'))
        t.defer(self.disk.close)
        self.clients = Waiting(seed, 8, {p: ROUTES[p] for p in paths})
        self.records = Records()
        self.signals, self.losses = [], []
        self.wrong = []         # all that is
        self.refused = []       # what the checker says of it
        self.boots = 0

    def handler(self):
        path = self.t.path('deeds')
        small.output(os.environ.get('CC', 'cc'), '-O1', '-static', '-w', '-o',
                     path, os.path.join(os.path.dirname(soak.__file__),
                                        'handlers', 'deeds.c'),
                     '-lsqlite3', '-lfcgi', '-lm')
        return path

    def formatted(self):
        path = self.t.path('fresh')
        # To e2fsck a file that was removed in 1970 is damage, unless the file
        # system was made then.
        small.output('mke2fs', '-q', '-t', 'ext4', path, SIZE,
                     env=dict(os.environ, E2FSPROGS_FAKE_TIME='1'))
        with open(path, 'rb') as f:
            return f.read()

    # --- cuts ---

    def boot(self):
        self.boots += 1
        self.clock = self.rng.choice(CLOCKS)
        self.recorder = Recorder(self.records, self.boots)
        self.disk.start()
        self.guest = small.Guest(
            self.t, self.image, self.disk.path, self.clock,
            'port=%d options=%s clocksource=acpi_pm' % (
                self.recorder.port, self.options), self.t.path('console'))

    def starts(self):
        self.guest.wait_for('event=started', 120)
        # It flushes only what it knows to be cached.
        year = re.search(r'boot: .* UTC (\d+) write back', self.guest.said())
        assert year and int(year.group(1)) - int(self.clock[:4]) in (0, 1), \
            'the clock is not at %s, or there is no cache' % self.clock
        self.clients.addresses[:] = [('127.0.0.1', self.guest.port)]

    def serves(self):
        """It answers, for a while."""
        seen = len(self.clients.events)
        self.starts()
        base.wait_until(lambda: any(
            e.status for e in self.clients.events[seen:]), 'an answer', 60)
        if not self.writes or self.rng.random() < 0.3:
            time.sleep(self.rng.uniform(0, LOAD))
        else:
            self.trips(WRITES)

    def trips(self, most, or_when=lambda: False):
        """The power fails between two writes, so that there is a loss."""
        self.disk.trip(self.rng.randint(1, most))
        base.wait_until(lambda: self.disk.tripped.is_set() or or_when(),
                        'it writes', 120)

    def dead(self, sent):
        """Of the guest there is nothing left but its disk."""
        self.clients.addresses[:] = []
        self.disk.join()
        self.recorder.stop()
        self.signals += [Signal(pid, sent, time.monotonic(), True)
                         for pid in self.records.parents[self.boots]]
        assert 'EXT4-fs error' not in self.guest.said(), self.guest.said()

    def cut(self):
        self.boot()
        if self.boots > 1 and self.rng.random() < EARLY:
            # While it recovers, or when it has.
            self.trips(40, lambda: 'event=started' in self.guest.said())
        else:
            self.serves()
        sent = time.monotonic()
        self.guest.kill()
        self.dead(sent)
        self.losses.append(self.platter.cut(self.rng))

    def run(self, cuts):
        self.clients.start()
        try:
            # A cut may have nothing to drop, but not all of them.
            while len(self.losses) < cuts or self.writes and \
                    not self.dropped():
                assert len(self.losses) < 2 * cuts, 'no loss, no test'
                self.cut()
        except AssertionError as error:
            # The store, or its disk, does not come back.
            self.no('no boot %d' % self.boots, error)
        finally:
            self.clients.stop()
        self.judge(None if self.wrong else self.ends())

    def dropped(self):
        return sum(loss.dropped for loss in self.losses)

    def no(self, rule, why):
        self.wrong.append('%s: %s\n%s' % (rule, why,
                                          self.guest.said()[-3000:]))

    # --- the end ---

    def ends(self):
        """All is asked once more, and the guest stops in peace: its store."""
        self.boot()
        try:
            self.starts()
            self.is_idle()
            self.clients.each_again(('127.0.0.1', self.guest.port))
            self.guest.tell('rest')
            self.guest.wait_for('boot: at rest', 60)
            self.is_idle()
            self.guest.tell('stop')
            self.guest.wait_for('boot: unmounted', 120)
            self.guest.ends()
            # What the last handlers left behind ended here.
            self.dead(time.monotonic())
            assert 'boot: oncewrap ended with 0' in self.guest.said()
        except AssertionError as error:
            self.no('no end', error)
            return None
        # Nor is it asked how long anything takes: the guest's processor stands
        # still while the host has other things to do.
        text = self.t.read('console').decode('utf-8', 'replace')
        base.check_log(text.replace('event=loop-waited', ''))
        return self.store()

    def is_idle(self):
        want = ['oncewrap_keys{state="%s"} 0' % state
                for state in ('in_progress', 'pending')]
        want.append('oncewrap_outbox{state="pending"} 0')

        def idle():
            lines = self.metrics()
            return lines and all(line in lines for line in want)
        base.wait_until(idle, 'nothing is in progress', 60)

    def metrics(self):
        params = fcgi.request_params('GET', '/once/metrics')
        try:
            return fcgi.exchange(('127.0.0.1', self.guest.port), params,
                                 b'', 10).body.decode().splitlines()
        except (OSError, fcgi.Closed):
            return []

    def store(self):
        """The database, as it is on the disk."""
        image, folder = self.t.path('image'), self.t.path('left')
        os.mkdir(folder)
        with open(image, 'wb') as f:
            f.write(self.platter.seen)
        try:
            small.output('e2fsck', '-fn', image)
        except AssertionError as error:
            self.wrong.append(str(error))
        small.output('debugfs', '-R', 'rdump /store %s' % folder, image)
        os.unlink(image)
        return os.path.join(folder, 'store', 'once.db')

    def check_doctor(self, database):
        run = subprocess.run([base.ONCECTL, '-d', database, 'doctor'],
                             capture_output=True, text=True)
        bad = {line.split()[1] for line in run.stdout.splitlines()
               if line.startswith('BAD')}
        if not bad <= soak.NEEDS_OPERATOR or \
                run.returncode != (1 if bad else 0):
            self.wrong.append('doctor: %s%s' % (run.stdout, run.stderr))

    # --- the verdict ---

    def judge(self, database):
        """Fills in what is wrong, as lines of text."""
        events = self.clients.events
        lines = history.parse_ledger('\n'.join(self.records.ledger))
        rows, said = [], {}
        if database:
            rows = soak.rows_of(store_file.rows(database))
            if '/said' in self.clients.paths:
                said = soak.said_in(store_file.said(database),
                                    '\n'.join(self.records.deliveries))
            self.check_doctor(database)
            self.refused = history.Checker(lines, events, rows, ROUTES,
                                           Excuses(self.signals),
                                           **said).check()
            self.wrong += self.refused
        soak.tell_history(lines, events, rows)
        self.tell(events)
        if self.wrong:
            self.keep(events)

    def keep(self, events):
        """Writes the history into files: --keep."""
        self.t.write('events', ''.join(
            json.dumps(event._asdict()) + '\n' for event in events))
        self.t.write('ledger', '\n'.join(self.records.ledger) + '\n')
        self.t.write('deaths', json.dumps(self.signals))

    def tell(self, events):
        print('# %d flushes in the last boot; %s at the cuts' % (
            self.platter.flushes, ', '.join('%d of %d' % (
                loss.dropped, loss.unflushed) for loss in self.losses)))
        print('# ' + TOLD % (
            len(self.losses), len({e.identity for e in events}),
            self.dropped(),
            sum(loss.torn for loss in self.losses), len(self.wrong)))


def honest(seed, options, cuts):
    def case(t):
        run = Cuts(t, seed, options)
        run.run(cuts)
        assert not run.wrong, '%d things are wrong:\n%s' % (
            len(run.wrong), '\n'.join(run.wrong[:10]))
        assert run.platter.flushes > 0, 'it never flushed'
    return case


def found_out(seed, cuts, **how):
    """Answers are lost, and the checker sees it; a guest that does not boot is
    not enough."""
    def case(t):
        run = Cuts(t, seed, 'data=ordered', **how)
        run.run(cuts)
        rules = history.grouped(run.refused, lambda w: w.partition(':')[0])
        print('# found: %s' % ', '.join('%d %s' % (len(of), rule)
                                        for rule, of in rules.items()))
        assert run.refused, 'the checker has not seen that answers were ' \
            'lost: %s' % '\n'.join(run.wrong)
    return case
