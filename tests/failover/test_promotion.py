"""A standby takes over while clients ask."""
import threading

from answer import eq, problem
from base import wait_until
from once import Background

import world

CLIENTS = 6


class Load:
    """Clients that ask for one key after another, each until it is answered.
    They begin no new one once stop() is called."""

    def __init__(self, w, daemons):
        self.w, self.stopping = w, threading.Event()
        self.done = 0
        self.clients = [Background(lambda n=n: self.client(n, daemons))
                        for n in range(CLIENTS)]

    def client(self, n, daemons):
        i = 0
        while not self.stopping.is_set():
            i += 1
            self.w.final(daemons[(n + i) % len(daemons)],
                         'k%d-%d' % (n, i))
            self.done += 1

    def goes_on(self, more=30):
        """So many more keys are answered."""
        want = self.done + more
        wait_until(lambda: self.done >= want, 'clients get answers', 60)

    def stop(self):
        self.stopping.set()
        for one in self.clients:
            one.result(120)


def promoted(w):
    """The standby is the primary now; the old one is gone."""
    w.standby.promote()
    wait_until(lambda: w.standby.sql('SELECT pg_is_in_recovery()') == 'f',
               'the standby is promoted')


def begun(t):
    """Two daemons with clients, on a primary with a synchronous standby."""
    w = world.World(t).with_standby()
    daemons = [w.host(name, database=w.either()) for name in 'ab']
    load = Load(w, daemons)
    load.goes_on()
    return w, daemons, load


def ended(w, daemons, load, *others):
    """What must hold, also where other daemons are asked."""
    load.stop()
    w.check(*daemons, *others)
    for once in daemons:
        eq(once.log_lines('event=store-went-back'), [])


def test_a_synchronous_standby_takes_over_and_nothing_is_lost(t):
    w, daemons, load = begun(t)
    w.primary.kill()
    promoted(w)
    load.goes_on()
    ended(w, daemons, load)


def test_a_frozen_primary_is_replaced_and_comes_back_as_nothing(t):
    """It stands still in the middle of commits; its clients have gone over to
    the standby when it moves again, and it is no longer asked."""
    w, daemons, load = begun(t)
    w.primary.freeze()
    promoted(w)
    w.primary.kill()
    load.goes_on()
    ended(w, daemons, load)


def test_an_old_primary_that_moves_again_confirms_nothing(t):
    """It was not stopped, and takes itself for the primary: but each of its
    commits waits for a standby that has gone its own way."""
    w, daemons, load = begun(t)
    w.primary.freeze()
    promoted(w)
    load.goes_on()
    w.primary.thaw()
    load.goes_on(60)
    # All connections are made anew, and the old one takes them, too.
    w.standby.restart()
    load.goes_on(60)
    w.primary.kill()
    load.goes_on()
    ended(w, daemons, load, w.host('c', database=w.either()))


def health(once):
    return once.get('/once/health').body.decode()


def test_lost_commits_stop_everything_until_they_are_accepted(t):
    w = world.World(t).with_standby(synchronous=False)
    daemons = [w.host(name, database=w.either()) for name in 'ab']
    kept = [(once, w.final(once, 'kept-' + once.name)) for once in daemons]
    w.primary.caught_up(w.standby)
    w.standby.sql('SELECT pg_wal_replay_pause()')
    w.standby.stop()
    load = Load(w, daemons)
    load.goes_on()
    w.primary.kill()
    w.standby.start()
    w.standby.sql('SELECT pg_wal_replay_resume()')
    promoted(w)
    for once in daemons:
        once.wait_log('event=store-went-back')
        for key in ('kept-' + once.name, 'new-' + once.name):
            answer = once.post(key)
            problem(answer, 'store-unavailable', acted=True)
            assert 'store-went-back' in answer.body.decode(), str(answer)
        assert 'store-went-back' in health(once)
        for name in ('refused_total{code="store-unavailable"}',
                     'store_errors_total'):
            before = once.gauge(name)
            w.post(once, 'new-' + once.name)
            assert once.gauge(name) > before, name
        eq(w.runs('new-' + once.name), 0)
    load.stopping.set()
    assert 'accepted' in daemons[0].ctl('accept-loss')
    for once in daemons:
        once.wait_log('event=loss-accepted')
        wait_until(lambda: once.get('/once/health').status == 200,
                   '%s goes on' % once.name)
    load.stop()
    # Which the standby had stands; what was lost may run again.
    for once, answer in kept:
        again = w.final(once, 'kept-' + once.name)
        eq((again.status, again.body, again.replayed),
           (201, answer.body, 'true'))
        eq(w.runs('kept-' + once.name), 1)
        eq(w.final(once, 'new-' + once.name).status, 201)
