"""Cases: a random run, and what must be true of its history."""
import json
import os
import resource

import base
from clocks import Clocks

import history
import torment
from clients import Clients
from excuses import Excuses
from history import Route

LASTING = {'retention': '1h'}
SHORT = {'retention': '1s'}
PATHS = {
    '/unknown': (Route(False),
                 dict(LASTING, on_crash='unknown')),
    '/resume': (Route(True),
                dict(LASTING, on_crash='resume', concurrent='wait',
                     wait_time='2s')),
    '/late': (Route(True, timeout=0.1),
              dict(LASTING, on_crash='resume', timeout='100ms',
                   kill_after='50ms')),
    '/lost': (Route(False, timeout=0.1),
              dict(LASTING, on_crash='unknown', timeout='100ms',
                   kill_after='50ms', concurrent='wait', wait_time='1s')),
    '/asked': (Route(False, timeout=0.4, asked=True),
               dict(LASTING, on_crash='unknown', timeout='400ms',
                    kill_after='50ms', reconcile_after='500ms',
                    reconcile_attempts='2')),
    '/said': (Route(True, says=True),
              dict(LASTING, on_crash='resume', share_database='yes',
                   concurrent='wait', wait_time='2s')),
    '/later': (Route(True, later=True, says=True),
               dict(LASTING, on_crash='resume', share_database='yes',
                    **{'async': 'always'})),
    '/stays': (Route(True, says=True),
               dict(LASTING, on_crash='resume', share_database='yes',
                    concurrent='wait', wait_time='2s', protocol='fastcgi',
                    processes='3', max_requests='50')),
    '/stays-late': (Route(False, timeout=0.1),
                    dict(LASTING, on_crash='unknown', timeout='100ms',
                         kill_after='50ms', protocol='fastcgi',
                         processes='2')),
    '/short': (Route(True, keeps=1),
               dict(SHORT, on_crash='resume', concurrent='wait')),
    '/gone': (Route(False, keeps=1, marker=1),
              dict(SHORT, on_crash='unknown', on_expired='gone',
                   expired_retention='1s')),
}
ROUTES = {path: route for path, (route, _) in PATHS.items()}
SERVER = {'workers': '12', 'sweep_interval': '300ms', 'reap_interval': '200ms',
          'busy_timeout': '700ms', 'drain_timeout': '300ms', 'max_wal': '4M',
          'status_path': '/jobs', 'async_workers': '3'}
MAIL = '[effect mail]\nbackoff = 1ms\nattempts = 1000\nprogram = %s\n'
# What doctor may find: keys for an operator, and nothing broken.
NEEDS_OPERATOR = {'unknown', 'reconcile', 'dead_letter', 'summary'}


def tell_history(lines, events, rows):
    """Prints how requests and keys have ended."""
    told = history.grouped(events, lambda e: e.code or e.what or 'none')
    states = history.grouped(rows, lambda row: row.state)
    for what, groups in (('requests', told), ('keys', states)):
        print('# %s: %s' % (what, counted(
            {k: len(v) for k, v in groups.items()})))
    print('# %d runs, %d in processes that went on, %d replays' % (
        len([x for x in lines if x.deed == 'started']), went_on(lines),
        len([e for e in events if e.replayed])))


def went_on(lines):
    """How many runs of processes that stay had one before them there."""
    stay = history.grouped((x for x in lines if x.deed == 'started' and
                            'protocol' in PATHS[x.identity[1]][1]),
                           lambda x: x.pid)
    return sum(len(runs) - 1 for runs in stay.values())


def counted(counts):
    return ' '.join('%s=%d' % pair for pair in sorted(counts.items()))


def rows_of(rows):
    """Those of a store, as a history has them."""
    return [history.Row((torment.user_of(scope), path, key), *rest)
            for scope, path, key, *rest in rows]


def said_in(said, deliveries):
    """What handlers committed, and what was delivered."""
    rides, effects = said
    return dict(rides=rides, effects=effects, deliveries={
        history.Delivery(*line.split(' '))
        for line in deliveries.splitlines()})


class Soak:
    def __init__(self, t, store, seed, seconds, clients=16):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.t, self.seconds = t, seconds
        os.mkdir(t.path('claims'))
        self.store = store(t, seconds)
        clocks = Clocks(t)
        handler = '%s %s' % (t.program('deeds'), t.dir)
        PATHS['/asked'][1]['reconcile'] = handler + ' find'
        self.onces = [
            t.once(handler, name=name,
                   server=dict(SERVER, **self.store.options), start=False,
                   database=self.store.database, env=self.store.env(host),
                   conf=MAIL % (handler + ' deliver'),
                   routes={path: options
                           for path, (_, options) in PATHS.items()})
            for name, host in self.store.daemons().items()]
        self.clients = Clients(seed, clients, ROUTES)
        self.torment = torment.Torment(t, seed, self.onces, self.clients,
                                       self.store, clocks)

    def run(self):
        self.torment.start(self.onces[0])
        self.torment.tend()
        self.clients.start()
        try:
            self.torment.go(self.seconds)
        finally:
            self.clients.stop()
        self.recovers()
        self.restarts()
        self.judge()

    def nothing_in_progress(self):
        base.wait_until(lambda: not any(
            self.onces[0].ls('--state', state)
            for state in ('in_progress', 'pending')),
            'nothing is in progress')

    def all_is_delivered(self):
        def pending():
            return self.onces[0].ctl('outbox', 'ls', '--state', 'pending',
                                     '--json')
        try:
            base.wait_until(lambda: not pending(), 'all is delivered')
        except AssertionError as error:
            self.keep(self.clients.events, self.rows())
            raise AssertionError('%s: %s' % (error, pending()))

    def recovers(self):
        """Left alone, it works again."""
        one = self.onces[0]
        self.nothing_in_progress()
        answer = one.post('after', 'x 0.0.0.0.created', path='/unknown',
                          user='nobody')
        assert answer.status == 201, str(answer)

    def restarts(self):
        one = self.onces[0]
        for once in self.torment.alive():
            with self.torment.death(once.pid):
                once.kill()
        back = self.one_of_each_host()
        for once in back:
            once.start()
        self.nothing_in_progress()
        self.clients.each_again(one.address)
        # A retry that was lost once more is not swept, but settled.
        self.nothing_in_progress()
        self.all_is_delivered()
        self.check_doctor()
        # Nothing is in progress: this end excuses nothing.
        for once in back:
            once.stop()

    def one_of_each_host(self):
        """Only a host itself can tell that its processes are gone."""
        hosts = {}
        for once, host in zip(self.onces, self.store.daemons().values()):
            hosts.setdefault(host, once)
        return hosts.values()

    def check_doctor(self):
        run = self.t.run([base.ONCECTL, '-d', self.store.database, 'doctor'])
        bad = {line.split()[1] for line in run.stdout.decode().splitlines()
               if line.startswith('BAD')}
        assert bad <= NEEDS_OPERATOR | self.store.findings, run.stdout.decode()
        assert run.returncode == (1 if bad else 0), run.stderr

    # --- the verdict ---

    def rows(self):
        return rows_of(self.store.rows())

    def said(self):
        return said_in(self.store.said(), self.t.read('deliveries').decode())

    def excuses(self):
        did = self.torment
        return Excuses(did.signals, did.forgot, did.resolved, did.slept,
                       self.store.full, self.store.suspected,
                       reaper=os.getpid())

    def judge(self):
        rows = self.rows()
        lines = [line for line in history.parse_ledger(
            '\n'.join(self.t.ledger())) if line.identity[0] != 'nobody']
        rows = [row for row in rows if row.identity[0] != 'nobody']
        events = self.clients.events
        said = self.said()
        wrong = history.Checker(lines, events, rows, ROUTES, self.excuses(),
                                **said).check()
        print('# trouble: %s' % counted(self.torment.count))
        if self.store.suspected:
            print('# %d suspicions, %d late settlements' % (
                len(self.store.suspected), sum(
                    len(once.log_lines('event=late-settlement'))
                    for once in self.onces)))
        tell_history(lines, events, rows)
        deeds = history.grouped(lines, lambda line: line.deed)
        print('# %s; %d of %d that were left behind' % (
            ', '.join('%d %s' % (len(of), what)
                      for what, of in said.items()),
            len(deeds['late-said']), len(deeds['late'])))
        if wrong:
            self.keep(events, rows)
        assert not wrong, '%d things are wrong:\n%s' % (
            len(wrong), '\n'.join(wrong[:10]))
        self.not_idle(lines, events, rows)

    def keep(self, events, rows):
        """Writes the history into files: --keep."""
        with open(self.t.path('events'), 'w') as f:
            for event in events:
                f.write(json.dumps(event._asdict()) + '\n')
        with open(self.t.path('excuses'), 'w') as f:
            json.dump(vars(self.excuses()), f)
        self.store.keep()

    def not_idle(self, lines, events, rows):
        """All this was not for nothing."""
        for what, there in (
                ('a replay', any(e.replayed for e in events)),
                ('a process that got two requests', went_on(lines)),
                ('a second attempt', any(x.attempt > 1 for x in lines)),
                ('an unknown outcome', any(r.state == 'unknown'
                                           for r in rows)),
                ('a record after another', len(
                    {x.downstream for x in lines}) > len(
                        {x.identity for x in lines})),
                ('an accepted request', any(e.code == history.ACCEPTED
                                            for e in events)),
                ('an answer that a handler committed', any(
                    e.what == 'said' for e in events)),
                ('no answer at all', any(e.status is None for e in events))):
            assert there, 'there never was %s' % what


def case(store, seed, seconds):
    def run(t):
        Soak(t, store, seed, seconds).run()
    return run
