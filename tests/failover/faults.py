"""A daemon stands at a fault point.  Meanwhile the primary, the synchronous
standby or the proxy before the primary is killed, frozen or cut off; the
daemon goes on; clients retry; what was hurt is mended.

While it is not, requests are refused and nothing runs; then the daemon goes on
by itself, each key has run once, and every client gets the same answer.

Or the daemon itself is frozen or killed there.
"""
import signal

from answer import eq
from base import wait_until
from once import Background

import world

# (point, passage).  After the start the first COMMIT is the reservation, and
# the second one the outcome.  COMMIT_FOUND is passed if the proxy has cut that
# COMMIT: 1 is the reservation, 2 the outcome.
POINTS = (
    ('OP_ASKED', 1), ('COMMIT_READY', '+1'), ('COMMIT_SENT', '+1'),
    ('COMMIT_DONE', '+1'), ('RESERVED', 1), ('HANDLER_STARTED', 1),
    ('HANDLER_OUTPUT', 1), ('JUDGED', 1), ('COMMIT_READY', '+2'),
    ('COMMIT_SENT', '+2'), ('COMMIT_DONE', '+2'), ('SETTLED', 1),
    ('OWNER_MOVED', 3), ('COMMIT_FOUND', 1), ('COMMIT_FOUND', 2),
)

# victim and deed: (hurt, mend)
DEEDS = {
    'primary_killed': (lambda w: w.primary.kill(),
                       lambda w: w.primary.start()),
    'primary_frozen': (lambda w: w.primary.freeze(),
                       lambda w: w.primary.thaw()),
    'primary_restarted': (lambda w: w.primary.stop(signal.SIGQUIT),
                          lambda w: w.primary.start()),
    'standby_killed': (lambda w: w.standby.kill(),
                       lambda w: w.standby.start()),
    'standby_frozen': (lambda w: w.standby.freeze(),
                       lambda w: w.standby.thaw()),
    'proxy_frozen': (lambda w: w.proxy.freeze(), lambda w: w.proxy.thaw()),
    'proxy_killed': (lambda w: w.proxy.refuse(),
                     lambda w: w.proxy.back()),
}


def passage(point, n):
    """For ONCEWRAP_FAULT."""
    return '%s:%s:stop' % (point, 1 if point == 'COMMIT_FOUND' else n)


def stand(w, once, point, n):
    """The daemon stands at the point; the client that waits."""
    wait_until(lambda: world.proc.state(once.pid) == 'T' or
               once.log_lines('event=started'), 'it is at work')
    if point == 'COMMIT_FOUND':
        w.proxy.cut_commits(n, times=1)
    client = Background(lambda: w.post(once, 'k'))
    world.is_stopped(once)
    w.proxy.cut_commits(0)
    return client


def hurt(t, deed, point, n):
    break_it, mend = DEEDS[deed]
    w = world.World(t, owner_timeout='1s' if point == 'OWNER_MOVED' else '30s')
    w.with_standby().with_proxy()
    once = w.host('a', fault=passage(point, n), start=False).start(wait=False)
    client = stand(w, once, point, n)
    break_it(w)
    world.go_on(once)
    once.wait_listening()
    w.refused(once, 'meanwhile')
    mend(w)
    client.result()
    w.check(once)
    eq(once.alive(), True)


def client(t, deed, point, n):
    """The daemon itself is frozen or killed there.  One on another host serves
    the same keys meanwhile, and is not held up."""
    w = world.World(t, owner_timeout='1s').with_proxy()
    first = w.host('a', fault=passage(point, n), start=False)
    first.start(wait=False)
    waits = stand(w, first, point, n)
    if deed == 'killed':
        first.kill()
    other = w.host('b')
    eq(w.final(other, 'other').status, 201)
    # It runs there, or it may have run.
    w.final(other, 'k')
    if deed == 'killed':
        waits.result()
        w.check(other, states=('completed', 'unknown'))
        return
    world.go_on(first)
    first.wait_listening()
    waits.result()
    # What it has run it has recorded after all.
    other.wait_state('k', 'completed')
    w.check(first, other)


def case(play, *what):
    return lambda t: play(t, *what)


def cases():
    found = [('faults.%s.%s.%s' % (deed, point, n), case(hurt, deed, point, n))
             for deed in DEEDS for point, n in POINTS]
    found += [('faults.client_%s.%s.%s' % (deed, point, n),
               case(client, deed, point, n))
              for deed in ('frozen', 'killed') for point, n in POINTS]
    return found
