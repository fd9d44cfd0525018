"""Commits whose outcome is not known in time: the standby does not answer."""
import os

import base
from answer import eq, problem
from lib.postgres import Servers


def cluster(t):
    """A primary whose commits wait for the standby."""
    s = Servers()
    t.defer(s.close)
    primary = s.make('a')
    standby = s.make('b', 'a')
    primary.synchronous('standby')
    t.defer(standby.thaw)
    return primary, standby


def test_a_request_that_may_be_accepted_is_not_told_that_nothing_ran(t):
    primary, standby = cluster(t)
    once = t.once(t.sh('ledger; status 200'),
                  server={'durability': 'normal', 'busy_timeout': '300ms',
                          'status_path': '/jobs'},
                  routes={'/later': {'async': 'always'}},
                  database=primary.uri(),
                  env=dict(os.environ, STATE_DIRECTORY=t.dir))
    # A sweep may just have the connection that is ready; then nothing runs.
    for n in range(9):
        standby.freeze()
        answer = once.post('k%d' % n, path='/later')
        if answer.code != 'store-unavailable':
            break
        eq(answer.json()['safe_new_key'], True)
        standby.thaw()
    problem(answer, 'outcome-not-recorded')
    eq(answer.json()['safe_new_key'], False)
    eq(t.ledger(), [])
    once.wait_log('event=store-unavailable .*no standby confirms')
    standby.thaw()
    base.wait_until(t.ledger, 'it runs')
    once.wait_state('k%d' % n, 'completed')
    eq(once.post('k%d' % n, path='/later').replayed, 'true')
    eq(len(t.ledger()), 1)
