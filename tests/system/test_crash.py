"""kill -9 at each stage: no second run, no changed answer, nothing free."""
import os
import signal

import base
import fcgi
import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background, Lock


def once_with(t, body, server=None, **defaults):
    return t.once(handler=t.sh(body), server=server, defaults=defaults)


def is_unknown(t, once, key='k', runs=1, **kw):
    """After a restart: a run that may have happened is not repeated."""
    for _ in range(2):
        problem(once.post(key, **kw), 'outcome-unknown')
    eq((once.state(key), len(t.ledger())), ('unknown', runs))


def killed_at_gate(t, body):
    """oncewrap killed while its handler stands at the gate; started again."""
    gate = t.gate()
    once = once_with(t, body)
    conn = once.begin('k')
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    conn.close()
    once.start()
    return once


def test_oncewrap_killed_before_the_handlers_output(t):
    once = killed_at_gate(t, 'ledger; gate gate; status 201')
    is_unknown(t, once)


def test_oncewrap_killed_after_the_handlers_output(t):
    once = killed_at_gate(t, 'ledger; status 201; echo done; gate gate')
    is_unknown(t, once)


def test_oncewrap_killed_in_mid_output(t):
    once = killed_at_gate(
        t, 'ledger; status 201; head -c 3000000 /dev/zero; gate gate')
    is_unknown(t, once)


def test_oncewrap_killed_while_the_commit_is_held_up(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201; echo done')
    conn = once.begin('k')
    pid = gate.wait()
    lock = Lock(t, once.database)
    gate.open()
    wait_until(lambda: not proc.alive(pid), 'the handler has ended')
    assert conn.silent(), 'answered before the commit'
    once.kill()
    lock.release()
    once.start()
    answer = once.post('k')
    if base.POSTGRES and answer.status == 201:
        # The server had the whole transaction, and was not killed.
        eq((answer.replayed, once.state('k')), ('true', 'completed'))
        eq(len(t.ledger()), 1)
    else:
        is_unknown(t, once)


def test_oncewrap_killed_while_the_reservation_is_held_up(t):
    once = once_with(t, 'ledger; status 201')
    lock = Lock(t, once.database)
    conn = once.begin('k')
    # Another request is answered after it: so it was read.
    once.get()
    once.kill()
    lock.release()
    conn.close()
    t.write('ledger')
    once.start()
    first(once.post('k'), 201)
    eq(t.ledger(), ['1 '])


def test_oncewrap_killed_after_the_answer(t):
    once = once_with(t, 'ledger; status 201; echo "$ONCE_TOKEN"')
    answers = [once.post('k%d' % i) for i in range(10)]
    once.kill()
    once.start()
    for i, answer in enumerate(answers):
        replay(once.post('k%d' % i), answer)
    eq(len(t.ledger()), 10)


def test_oncewrap_killed_after_a_release(t):
    once = once_with(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] && status 201 || '
                     'status 503')
    first(once.post('k'), 503)
    once.kill()
    once.start()
    first(once.post('k'), 201)
    eq(t.ledger(), ['1 ', '2 '])


def test_oncewrap_killed_in_the_second_attempt(t):
    gate = t.gate()
    once = once_with(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] && gate gate; '
                     'status 503')
    first(once.post('k'), 503)
    once.begin('k')
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    once.start()
    is_unknown(t, once, runs=2)


def test_handler_killed_at_the_gate(t):
    gate = t.gate()
    once = once_with(t, 'ledger; status 201; gate gate')
    running = Background(lambda: once.post('k'))
    proc.kill(gate.wait(), signal.SIGKILL)
    problem(running.result(), 'handler-failed', unknown=True)
    is_unknown(t, once)
    once.kill()
    once.start()
    is_unknown(t, once)


def test_a_living_process_finds_the_lost_attempts_of_a_dead_one(t):
    gate = t.gate()
    one = once_with(t, 'ledger; gate gate; status 201')
    two = t.once(handler=t.sh('ledger two; status 201'), name='two',
                 database=one.database, server={'sweep_interval': '100ms'})
    one.begin('k')
    gate.wait()
    problem(two.post('k'), 'key-in-progress')
    one.kill()
    two.wait_state('k', 'unknown')
    problem(two.post('k'), 'outcome-unknown')
    eq(t.ledger(), ['1 '])


def test_a_lease_past_its_time_is_not_lost_while_its_owner_lives(t):
    gate = t.gate()
    one = once_with(t, 'ledger; gate gate; status 201; echo done',
                    timeout='1h')
    two = t.once(handler=t.sh('ledger two; status 201'), name='two',
                 database=one.database, server={'sweep_interval': '50ms',
                                                'reap_interval': '50ms'},
                 defaults={'timeout': '10ms', 'retention': '50ms'})
    conn = one.begin('k')
    gate.wait()
    # A key of two's is reaped meanwhile: so its passes have been there.
    two.defaults['timeout'] = '5s'
    two.write_conf()
    two.hup()
    two.wait_log('event=reloaded')
    first(two.post('short'), 201)
    wait_until(lambda: two.row('short') is None, 'short is reaped')
    problem(two.post('k'), 'key-in-progress')
    gate.open()
    first(conn.answer(), 201, b'done\n')
    eq(t.ledger(), ['1 ', '1 two'])


def test_many_running_when_killed(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201',
                     server={'workers': '16'})
    for i in range(16):
        once.begin('k%d' % i)
    pids = [gate.wait() for _ in range(16)]
    once.kill()
    wait_until(lambda: not any(map(proc.alive, pids)), 'handlers are gone')
    once.start()
    for i in range(16):
        problem(once.post('k%d' % i), 'outcome-unknown')
    eq({row['state'] for row in once.ls()}, {'unknown'})
    eq(len(t.ledger()), 16)


def test_killed_under_load_again_and_again(t):
    """One run a key at most, and no answer ever changes."""
    once = once_with(t, 'echo "$ONCE_KEY" >> "$D/ledger"; status 201; '
                     'echo "$ONCE_TOKEN"', server={'workers': '8'})
    seen = {}
    for round in range(4):
        stop = []

        def load(n):
            i = 0
            while not stop and i < 200:
                key = 'k%d-%d-%d' % (round, n, i)
                try:
                    answer = once.post(key)
                except (OSError, fcgi.Closed):
                    return
                except AssertionError as error:
                    # It died before the whole head was sent.
                    if 'no end of head' not in str(error):
                        raise
                    return
                if answer.status == 201 and not answer.broken:
                    seen[key] = answer.body
                i += 1
        loads = [Background(lambda n=n: load(n)) for n in range(4)]
        goal = len(seen) + 20
        wait_until(lambda: len(seen) >= goal, 'twenty answers')
        once.kill()
        stop.append(True)
        for one in loads:
            one.result()
        once.start()
    ledger = t.ledger()
    eq(len(ledger), len(set(ledger)))
    for key in set(ledger) | set(seen):
        answer = once.post(key)
        if key in seen:
            eq((answer.status, answer.replayed, answer.body),
               (201, 'true', seen[key]), answer)
        else:
            assert answer.code == 'outcome-unknown' or \
                answer.replayed == 'true', str(answer)
    eq(len(t.ledger()), len(ledger))


def test_lock_file_does_not_grow(t):
    once = once_with(t, 'status 201')
    for i in range(3):
        first(once.post('k%d' % i), 201)
        once.kill()
        once.start()
    # On PostgreSQL it names the last processes.
    size = os.path.getsize(once.local('-lock'))
    assert size < 1000 if base.POSTGRES else size == 0, size


def test_backlog_of_old_keys_does_not_hold_up_the_sweep(t):
    gate = t.gate()
    lost = t.once(handler=t.sh('gate gate; status 201'), name='lost',
                  routes={'/done': {'handler': t.sh('status 200')}})
    first(lost.post('old', path='/done'), 200)
    conn = lost.begin('k')
    gate.wait()
    rows = 30_000
    lost.plant(rows, "k.state = 'completed'", key="'old' || n", expires_at='1')
    once = t.once(handler='/bin/true', database=lost.database, server={
        'sweep_interval': '50ms', 'reap_interval': '10ms'})

    count = 'SELECT count(*) FROM once_key WHERE expires_at = 1'

    def old():
        return lost.sql(count)[0][0]

    def swept():
        """How many are left then."""
        (state, left), = lost.sql(
            "SELECT state, (%s) FROM once_key WHERE key = 'k'" % count)
        return (left,) if state == 'unknown' else None
    wait_until(lambda: old() < rows, 'it is being reaped')
    lost.kill()
    conn.close()
    left, = wait_until(swept, 'key k is unknown')
    assert left > 0
    wait_until(lambda: old() == 0, 'all are reaped', 60)
    once.stop()
    eq(len(once.log_lines('event=reaped')), 1)
    once.wait_log('event=reaped keys=%d' % rows)
