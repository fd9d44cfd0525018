"""Two daemons on two hosts that are cut off from each other and from the
database, and joined again."""
import datetime
import os
import re

from answer import eq, problem, replay
from base import wait_until
from once import Background

import world
from hosts import Host

GATED = 'gate gate'


def pair(t, body=GATED, **options):
    """The world, its hosts, and a daemon on each."""
    defaults = options.pop('defaults', {})
    w = world.World(t, body, **{'owner_timeout': '2s', **options})
    a, b = Host(w, 'a'), Host(w, 'b')
    return (w, a, b, a.daemon(defaults=defaults),
            b.daemon(defaults=defaults))


def unknown(w, once, key):
    answer = w.final(once, key)
    problem(answer, 'outcome-unknown')


def test_who_is_cut_off_is_suspected_and_its_late_outcome_stands(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(t)
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    problem(w.post(on_b, 'k'), 'key-in-progress')
    a.cut_off()
    unknown(w, on_b, 'k')
    on_b.wait_log('event=owner-suspected host=[0-9a-f]{32}-')
    eq(on_b.row('k')['state'], 'unknown')
    # Nothing runs on the host that is cut off; it does on the other.
    w.refused(on_a, 'elsewhere')
    gate.open(2)
    eq(w.final(on_b, 'elsewhere').status, 201)
    eq(client.result().code, 'outcome-not-recorded')
    unknown(w, on_b, 'k')
    a.join()
    on_b.wait_state('k', 'completed')
    on_a.wait_log('event=late-settlement.*key=k')
    w.check(on_a, on_b)
    eq((w.runs('k'), w.runs('elsewhere')), (1, 1))


def test_who_was_cut_off_itself_suspects_nobody(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(t)
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    for host in (a, b):
        host.cut_off()
    for once in (on_a, on_b):
        w.refused(once, 'meanwhile')
        wait_until(lambda: once.get('/once/health').status == 503,
                   'it knows that it is cut off')
    # As long as would make the other suspected.
    began = once_now()
    wait_until(lambda: once_now() - began > 3, 'owner_timeout is over')
    for host in (b, a):
        host.join()
    wait_until(lambda: on_b.get('/once/health').status == 200, 'b is joined')
    problem(w.found(on_b, 'k'), 'key-in-progress')
    gate.open(2)
    eq(client.result().status, 201)
    w.check(on_a, on_b)
    for once in (on_a, on_b):
        eq(once.log_lines('event=owner-suspected'), [])


def once_now():
    return datetime.datetime.now().timestamp()


def test_only_its_own_host_resumes_what_a_dead_daemon_ran(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(t, defaults={'on_crash': 'resume'})
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    a.power_off(on_a)
    client.result()
    unknown(w, on_b, 'k')
    gate.open(9)
    unknown(w, on_b, 'k')
    eq(w.runs('k'), 1)
    a.new_boot()
    on_a.start()
    wait_until(lambda: on_b.state('k') != 'unknown', 'its host releases it')
    w.check(on_b, on_a, runs=2)
    eq((w.runs('k'), on_b.row('k')['attempt']), (2, 2))


def test_a_dead_attempt_with_on_crash_unknown_stays_unknown(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(t)
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    a.power_off(on_a)
    client.result()
    unknown(w, on_b, 'k')
    a.new_boot()
    on_a.start()
    gate.open(9)
    w.check(on_a, on_b, states=('unknown',))
    eq(w.runs('k'), 1)


def test_only_the_host_of_an_attempt_asks_its_reconciler(t):
    """The others cannot tell whether its processes still act."""
    gate = t.gate()
    reconcile = t.sh(
        'ledger asked $ONCE_KEY\n'
        "printf 'Status: 201\\r\\nIdempotency-Outcome: completed\\r\\n"
        "\\r\\nfound'")
    w, a, b, on_a, on_b = pair(t, defaults={
        'reconcile': reconcile, 'reconcile_after': '1ms', 'timeout': '3s',
        'kill_after': '1s'})
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    a.power_off(on_a)
    client.result()
    unknown(w, on_b, 'k')
    # Longer than the attempt could have taken.
    wait_until(lambda: w.primary.sql(
        'SELECT reconcile_after + 5000 < extract(epoch FROM '
        'clock_timestamp()) * 1000 FROM once_key') == 't', 'it is due')
    unknown(w, on_b, 'k')
    eq([line for line in t.ledger() if 'asked' in line], [])
    on_a.start()
    on_b.wait_state('k', 'completed')
    eq(len([line for line in t.ledger() if 'asked' in line]), 1)
    for once in (on_a, on_b):
        answer = w.final(once, 'k')
        eq((answer.status, answer.body, answer.replayed),
           (201, b'found', 'true'))
    eq(w.runs('k'), 1)


def test_a_host_asks_only_when_the_processes_of_its_attempt_have_ended(t):
    """It was suspected, and its daemon died; what the handler has left behind
    lives on."""
    gate = t.gate()
    reconcile = t.sh(
        'ledger asked $ONCE_KEY\n'
        "printf 'Status: 201\\r\\nIdempotency-Outcome: completed\\r\\n"
        "\\r\\nfound'")
    w, a, b, on_a, on_b = pair(
        t, 'setsid sleep 1000 & echo $! > "$D/child"; gate gate',
        defaults={'reconcile': reconcile, 'reconcile_after': '1ms',
                  'timeout': '3s', 'kill_after': '1s'})
    client = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    on_a.kill()
    client.result()
    unknown(w, on_b, 'k')
    on_a.start()
    on_a.wait_log('event=reconciled.*still running')
    eq([line for line in t.ledger() if 'asked' in line], [])
    os.kill(int(t.read('child')), 9)
    on_b.wait_state('k', 'completed')
    eq(len([line for line in t.ledger() if 'asked' in line]), 1)
    eq(w.runs('k'), 1)


def test_no_number_of_an_owner_is_used_twice(t):
    w, a, b, on_a, on_b = pair(t)
    seen = []

    def look(once):
        seen.append(w.primary.sql(
            'SELECT id FROM once_owner WHERE pid = %d' % once.pid))
    look(on_a)
    look(on_b)
    for end in ('stop', 'kill', 'stop'):
        for once in (on_a, on_b):
            getattr(once, end)()
            once.start()
            look(once)
    # Whatever the database remembers.
    w.primary.sql('DELETE FROM once_owner')
    on_a.kill()
    on_a.start()
    look(on_a)
    eq(len(set(seen)), 9, seen)


def test_a_request_that_one_host_accepted_is_run_by_another(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(
        t, status_path='/jobs', async_workers='1',
        defaults={'async': 'always'})
    for key in ('runs', 'waits'):
        answer = w.post(on_a, key)
        eq(answer.status, 202, answer)
    # Each host has one worker, and they take one each.
    gate.wait()
    gate.wait()
    resource = re.sub('^https?://[^/]*', '', answer.get('Location'))
    gate.open(2)
    for key in ('runs', 'waits'):
        on_b.wait_state(key, 'completed')
    for once in (on_a, on_b):
        status = once.get(resource)
        eq(status.status // 100, 2, status)
    w.seen.clear()      # 202 was not the final answer
    for key in ('runs', 'waits'):
        eq(w.final(on_a, key).body, w.final(on_b, key).body)
        eq(w.runs(key), 1)


def test_a_host_that_is_gone_leaves_its_queue_to_the_others(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(
        t, status_path='/jobs', async_workers='1',
        defaults={'async': 'always'})
    on_b.stop()
    for key in ('runs', 'waits'):
        eq(w.post(on_a, key).status, 202)
    gate.wait()
    a.cut_off()
    on_b.start()
    gate.wait()
    gate.open(2)
    on_b.wait_state('waits', 'completed')
    a.join()
    on_b.wait_state('runs', 'completed')
    eq((w.runs('runs'), w.runs('waits')), (1, 1))


def test_who_waits_on_one_host_gets_the_answer_of_the_other(t):
    gate = t.gate()
    w, a, b, on_a, on_b = pair(t, defaults={'concurrent': 'wait'})
    first = Background(lambda: w.post(on_a, 'k'))
    gate.wait()
    second = Background(lambda: w.post(on_b, 'k'))
    on_b.wait_waiting()
    gate.open()
    eq(first.result().status, 201)
    replay(second.result(), first.result())
    w.check(on_a, on_b)
