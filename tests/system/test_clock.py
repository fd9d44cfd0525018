"""Deadlines survive the wall clock: it jumps, the host sleeps, or reboots."""
import datetime
import email.utils

import answer as answer_module
import base
import proc
from answer import eq, problem
from base import wait_until
from clocks import HOUR, YEAR, Clocks
from once import Background

RUNS = 'ledger; status 201; echo done'
JUMPS = (3 * HOUR, -3 * HOUR, 56 * YEAR, -56 * YEAR)
PATIENCE = 60       # what a slow machine may take, seconds


def once_with(t, body=RUNS, server=None, **defaults):
    defaults.setdefault('retention', '1h')
    return t.once(handler=t.sh(body), server=server, defaults=defaults)


def seconds(rfc3339):
    return datetime.datetime.fromisoformat(
        rfc3339.replace('Z', '+00:00')).timestamp()


def ends(answer):
    return email.utils.parsedate_to_datetime(
        answer.get('Idempotency-Expires')).timestamp()


def first(answer, status=201):
    answer_module.first(answer, status)
    return answer


def replay(answer, original):
    """The original; when it ends is shown by the clock of now."""
    answer_module.replay(answer, original,
                         ('set-cookie', 'date', 'idempotency-expires'))
    return answer


def about(got, want, what):
    assert abs(got - want) < PATIENCE, '%s: %+d s' % (what, got - want)


# --- the wall clock jumps ---

def test_a_jump_expires_no_key(t):
    clocks = Clocks(t)
    once = once_with(t, server={'reap_interval': '20ms'})
    answer = first(once.post('k'))
    for jump in JUMPS:
        clocks.jump(jump)
        replay(once.post('k'), answer)
        once.ctl('reap')
        once.stop()
        once.start()
        replay(once.post('k'), answer)
        clocks.jump(-jump)
        replay(once.post('k'), answer)
    eq(len(t.ledger()), 1)


def test_a_key_expires_on_time_whatever_the_clock_says(t):
    clocks = Clocks(t)
    once = once_with(t)
    for n, jump in enumerate(JUMPS):
        key = 'k%d' % n
        clocks.jump(jump / 2)
        first(once.post(key))
        clocks.jump(jump / 2)
        clocks.passes(HOUR - PATIENCE)
        eq(once.post(key).replayed, 'true')
        clocks.jump(-jump)
        eq(once.post(key).replayed, 'true')
        clocks.passes(PATIENCE + 1)
        eq(once.post(key).replayed, None)
        eq(len(t.ledger()), 2 * (n + 1))


def test_a_jump_frees_no_running_key(t):
    clocks = Clocks(t)
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 201; echo done',
                     server={'sweep_interval': '20ms',
                             'reap_interval': '20ms'})
    for n, jump in enumerate(JUMPS):
        key = 'k%d' % n
        running = Background(lambda key=key: once.post(key))
        gate.wait()
        clocks.jump(jump)
        once.ctl('sweep')
        once.ctl('reap')
        problem(once.post(key), 'key-in-progress')
        gate.open()
        answer = first(running.result())
        about(ends(answer), clocks.now() + HOUR, 'Idempotency-Expires')
        eq(ends(replay(once.post(key), answer)), ends(answer))
    eq(len(t.ledger()), len(JUMPS))


def test_dates_follow_the_clock_once_it_is_right(t):
    clocks = Clocks(t)
    right = clocks.now()
    clocks.set_wall(7)      # no battery: 1970
    once = once_with(t)
    answer = first(once.post('k'))
    about(ends(answer), clocks.now() + HOUR, 'before')
    clocks.set_wall(right)
    answer = once.post('k')
    eq(answer.replayed, 'true')
    about(ends(answer), right + HOUR, 'Idempotency-Expires')
    about(seconds(once.row('k')['expires_at']), right + HOUR, 'expires_at')


def test_a_jump_does_not_end_the_wait_for_a_lost_tree(t):
    clocks = Clocks(t)
    heir, gate = t.gate('heir'), t.gate()
    once = once_with(
        t, 'ledger; setsid sh -c "echo \\$\\$ > $D/heir.here; '
        'read -r _ < $D/heir.open" & gate gate', on_crash='resume',
        timeout='1h')
    conn = once.begin('k')
    pid, heir_pid = gate.wait(), heir.wait()
    once.kill()
    conn.close()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    once.start()
    for jump in JUMPS:
        clocks.jump(jump)
        once.ctl('sweep')
        eq(once.state('k'), 'in_progress')
    clocks.passes(HOUR - PATIENCE)
    once.ctl('sweep')
    eq(once.state('k'), 'in_progress')
    # its deadline is the timeout and what ending it may take
    clocks.passes(2 * PATIENCE)
    once.ctl('sweep')
    eq(once.state('k'), 'unknown')
    heir.open()
    wait_until(lambda: not proc.alive(heir_pid), 'nothing is left')
    problem(once.post('k'), 'outcome-unknown')


# --- the host reboots ---

def crash(once, clocks, **how):
    """Power is lost and comes back."""
    once.kill()
    clocks.reboot(**how)
    once.start()


def test_after_a_reboot_a_key_ends_never_early(t):
    clocks = Clocks(t)
    right = clocks.now()
    once = once_with(t)
    answer = first(once.post('k'))
    # by a clock without a battery, a right one, and one from the future;
    # up for shorter and for longer than before
    for wall, uptime in ((7, 20), (right, 5), (right + 56 * YEAR, 10**8),
                         (7, 60)):
        crash(once, clocks, wall=wall, uptime=uptime)
        replay(once.post('k'), answer)
        once.ctl('reap')
        eq(once.state('k'), 'completed')
    clocks.passes(HOUR - PATIENCE)
    eq(once.post('k').replayed, 'true')
    # nor much later: what was last seen is no older than a minute
    clocks.passes(3 * PATIENCE)
    eq(once.post('k').replayed, None)
    eq(len(t.ledger()), 2)


def test_store_time_goes_on_from_a_clean_stop(t):
    clocks = Clocks(t)
    once = once_with(t)
    first(once.post('k'))
    clocks.passes(HOUR / 2)
    once.stop()
    clocks.reboot(wall=7)
    once.start()
    about(ends(once.post('k')), clocks.now() + HOUR / 2, 'the other half')
    clocks.passes(HOUR / 2)
    eq(once.post('k').replayed, None)


def test_a_reboot_in_mid_request(t):
    # On PostgreSQL a host with a copied disk looks like this one's past boot,
    # so that is given its owner_timeout.
    server = {'owner_timeout': '1s', 'sweep_interval': '100ms'} \
        if base.POSTGRES else {}
    for on_crash, state in (('unknown', 'unknown'),
                            ('resume', 'failed_retryable')):
        clocks = Clocks(t)
        gate = t.gate(on_crash)
        once = t.once(handler=t.sh('ledger; gate %s' % on_crash),
                      name=on_crash, server=server,
                      defaults={'on_crash': on_crash})
        conn = once.begin('k')
        pid = gate.wait()
        once.kill()
        conn.close()
        wait_until(lambda pid=pid: not proc.alive(pid), 'the handler is gone')
        clocks.reboot(wall=7)
        once.start()
        if base.POSTGRES:
            once.wait_state('k', state)
        eq(once.state('k'), state)


def test_where_boots_have_no_name_keys_end_never_early(t):
    clocks = Clocks(t)
    once = once_with(t)
    clocks.reboot(name=False, uptime=1000)
    once.stop()
    once.start()
    answer = first(once.post('k'))
    # several at once count the same time
    two = t.once(handler=t.sh(RUNS), name='two', database=once.database,
                 defaults={'retention': '1h'})
    eq(ends(two.post('k')), ends(answer))
    two.stop()
    clocks.passes(HOUR / 2)
    two.start()
    about(ends(two.post('k')), ends(answer), 'two of them')
    two.stop()
    crash(once, clocks, name=False, uptime=5)
    replay(once.post('k'), answer)
    clocks.passes(HOUR / 2 - PATIENCE)
    eq(once.post('k').replayed, 'true')
