"""Requests with one key at the same time: one of them runs."""
import time

import base
from answer import eq, first, problem, ran_once, replay
from once import parallel


def test_hundred_duplicates_run_once_and_the_rest_get_409(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201; echo done'))
    conns = [once.begin('k', 'body') for _ in range(100)]
    gate.wait()
    # 99 answers come while the handler is held.
    base.wait_until(lambda: sum(c.silent() for c in conns) == 1,
                    '99 answers')
    winner = [c for c in conns if c.silent()][0]
    for conn in conns:
        if conn is not winner:
            problem(conn.answer(), 'key-in-progress')
    gate.open()
    answer = winner.answer()
    first(answer, 201, b'done\n')
    replay(once.post('k', 'body'), answer)
    eq(t.ledger(), ['1 '])


def test_hundred_requests_without_a_gate_agree(t):
    once = t.once(handler=t.sh('ledger; status 201; echo "$ONCE_TOKEN"'))
    ran_once(parallel([lambda: once.post('k')] * 100))
    eq(t.ledger(), ['1 '])


def test_different_keys_run_at_the_same_time(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201'),
                  server={'workers': '8'})
    conns = [once.begin('k%d' % i) for i in range(8)]
    for _ in conns:
        gate.wait()
    gate.open(8)
    for conn in conns:
        first(conn.answer(), 201)
    eq(len(t.ledger()), 8)


def test_more_requests_than_workers_are_served_in_turn(t):
    once = t.once(handler=t.sh('ledger; status 201'), server={'workers': '2'})
    answers = parallel([lambda i=i: once.post('k%d' % i) for i in range(60)])
    eq({a.status for a in answers}, {201})
    eq(len(t.ledger()), 60)


def test_a_key_that_runs_while_its_duplicate_waits_for_a_worker(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 201; echo done'),
                  server={'workers': '1', 'admin_path': '/once'},
                  defaults={'concurrent': 'wait'})
    other = once.begin('other')
    gate.wait()
    conns = [once.begin('k') for _ in range(3)]
    once.wait_gauge('programs_waiting', 3)
    gate.open()
    first(other.answer(), 201)
    gate.wait()
    gate.open()
    # Which of them waits first is the store's choice.
    answers = sorted((conn.answer() for conn in conns),
                     key=lambda answer: answer.replayed or '')
    first(answers[0], 201, b'done\n')
    for answer in answers[1:]:
        replay(answer, answers[0])
    eq(len(t.ledger()), 2)


def waiting(t, handler='ledger; gate gate; status 201; echo done', workers=16,
            server=None, **defaults):
    gate = t.gate()
    return gate, t.once(
        handler=t.sh(handler), server=dict(server or {}, workers=workers,
                                           admin_path='/once'),
        defaults=dict(defaults, concurrent='wait'))


def waiters(once, n):
    conns = [once.begin('k') for _ in range(n)]
    once.wait_waiting(n)
    return conns


def all_get_one(t, winner, conns):
    answer = winner.answer()
    first(answer, 201, b'done\n')
    for conn in conns:
        replay(conn.answer(), answer)
    eq(t.ledger(), ['1 '])


def test_wait_all_get_the_one_answer(t):
    gate, once = waiting(t, workers=16, wait_time='30s')
    winner = once.begin('k')
    gate.wait()
    conns = waiters(once, 12)
    gate.open()
    all_get_one(t, winner, conns)


def test_requests_that_wait_hold_up_no_others(t):
    gate, once = waiting(t, workers=2, wait_time='30s')
    winner = once.begin('k')
    gate.wait()
    conns = waiters(once, 100)
    other = once.begin('other')
    gate.wait()
    gate.open(2)
    eq({c.answer().status for c in conns + [winner, other]}, {201})
    eq(len(t.ledger()), 2)


def test_wait_time_ends_in_409(t):
    gate, once = waiting(t, wait_time='2s')
    conn = once.begin('k')
    gate.wait()
    began = time.monotonic()
    waiter = once.begin('k')
    once.wait_waiting()
    problem(waiter.answer(), 'key-in-progress')
    took = time.monotonic() - began
    assert 1.99 <= took, 'waited %.3f s only' % took
    once.wait_waiting(0)
    gate.open()
    first(conn.answer(), 201)


def test_waiter_of_a_lost_handler_learns_that(t):
    gate, once = waiting(t, 'ledger; gate gate; kill -9 $$')
    conn = once.begin('k')
    gate.wait()
    waiter = once.begin('k')
    once.wait_waiting()
    gate.open()
    problem(conn.answer(), 'handler-failed', unknown=True)
    problem(waiter.answer(), 'outcome-unknown')
    eq(len(t.ledger()), 1)


def test_waiters_of_a_released_key_run_it_one_after_the_other(t):
    gate, once = waiting(t, 'ledger; gate gate; status 503')
    conns = [once.begin('k')]
    gate.wait()
    conns += [once.begin('k'), once.begin('k')]
    for still in (2, 1, 0):
        once.wait_waiting(still)
        eq(len(t.ledger()), 3 - still)
        gate.open()
        if still:
            gate.wait()
    for conn in conns:
        first(conn.answer(), 503)
    eq(t.ledger(), ['1 ', '2 ', '3 '])


def test_another_fingerprint_does_not_wait(t):
    gate, once = waiting(t, wait_time='60s')
    conn = once.begin('k', 'one')
    gate.wait()
    problem(once.post('k', 'two'), 'key-reused')
    gate.open()
    first(conn.answer(), 201)


def test_two_processes_on_one_database_run_it_once(t):
    handler = t.sh('ledger; status 201; echo "$ONCE_TOKEN"')
    both = [t.once(handler=handler, name='one')]
    both.append(t.once(handler=handler, name='two',
                       database=both[0].database))
    for n in range(5):
        key = 'k%d' % n
        ran_once(parallel([lambda i=i: both[i % 2].post(key)
                           for i in range(20)]))
    eq(len(t.ledger()), 5)


def test_waiters_of_one_process_see_the_end_in_another(t):
    """More than look at once."""
    gate, once = waiting(t, wait_time='1h')
    two = t.once(handler=t.sh('ledger; status 500'), name='two',
                 database=once.database, server={'admin_path': '/once'},
                 defaults={'concurrent': 'wait', 'wait_time': '1h'})
    winner = once.begin('k')
    gate.wait()
    conns = waiters(two, 450)
    gate.open()
    all_get_one(t, winner, conns)
