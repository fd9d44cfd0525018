"""Finding out what happened to unknown keys: the route's reconciler."""

import json

import proc
from answer import eq, first, problem
from base import wait_until

# Leaves its key unknown.
LOST = 'ledger; kill -9 $$'
COMPLETED = ('printf "Status: 201\\r\\nX-Found: yes\\r\\nSet-Cookie: a=b\\r\\n'
             'Content-Type: text/plain\\r\\nIdempotency-Outcome: completed'
             '\\r\\n\\r\\nfound"')
NOT_EXECUTED = ('printf "Content-Type: text/plain\\r\\n'
                'Idempotency-Outcome: not-executed\\r\\n\\r\\n"')
UNKNOWN = ('printf "Content-Type: text/plain\\r\\n'
           'Idempotency-Outcome: unknown\\r\\n\\r\\n"')


def tries(t):
    return t.read('tries').decode().splitlines() if t.exists('tries') else []


def once_with(t, reconciler, handler=LOST, after='1ms', **defaults):
    """A route whose reconciler writes a line for each try."""
    program = t.sh('echo "$ONCE_KEY $ONCE_ATTEMPT" >> "$D/tries"; ' +
                   reconciler, name='reconciler')
    options = {'reconcile': program, 'reconcile_after': after}
    options.update(defaults)
    return t.once(handler=t.sh(handler), defaults=options)


def lost(once, key='k', **kw):
    problem(once.post(key, **kw), 'handler-failed', unknown=True)


def test_completed_becomes_the_stored_answer(t):
    once = once_with(t, COMPLETED)
    lost(once)
    once.wait_state('k', 'completed')
    for _ in range(2):
        again = once.post('k')
        eq((again.status, again.body, again.replayed), (201, b'found', 'true'))
        eq((again.get('X-Found'), again.get('Set-Cookie')), ('yes', None))
        eq(again.get('Idempotency-Outcome'), None)
    eq((t.ledger(), tries(t)), (['1 '], ['k 1']))


def test_not_executed_releases_the_key(t):
    once = once_with(t, NOT_EXECUTED, handler=(
        'ledger "$ONCE_DOWNSTREAM_KEY"; test $ONCE_ATTEMPT = 2 || kill -9 $$; '
        'status 201'))
    lost(once)
    once.wait_state('k', 'failed_retryable')
    first(once.post('k'), 201)
    runs = [line.split() for line in t.ledger()]
    eq([r[0] for r in runs], ['1', '2'])
    eq(runs[0][1], runs[1][1])


def test_a_reconciler_has_no_lease_and_no_token(t):
    once = once_with(t, 'echo "${ONCE_TOKEN-unset}" > "$D/token"; ' +
                     COMPLETED)
    lost(once)
    once.wait_state('k', 'completed')
    eq(t.read('token'), b'unset\n')


def test_a_verdict_of_completed_leaves_no_last_error(t):
    once = once_with(t, 'gate gate; ' + COMPLETED)
    gate = t.gate()
    lost(once)
    gate.wait()
    assert once.row('k')['last_error'], once.row('k')
    gate.open()
    once.wait_state('k', 'completed')
    eq(once.row('k')['last_error'], None)


def test_unknown_again_and_again_is_a_dead_letter(t):
    once = once_with(t, UNKNOWN, reconcile_attempts=3)
    lost(once)
    once.wait_state('k', 'dead_letter')
    eq(len(tries(t)), 3)
    once.wait_log('level=warn event=run .* state=unknown ')
    once.wait_log('level=warn event=reconciled .* to=unknown ', 2)
    once.wait_log('level=error event=reconciled .* to=dead_letter ')
    problem(once.post('k'), 'outcome-unknown')
    eq(t.ledger(), ['1 '])


def test_a_verdict_that_there_is_not_is_named(t):
    once = once_with(t, UNKNOWN.replace('unknown', 'unknwon'),
                     reconcile_attempts=2)
    lost(once)
    once.wait_state('k', 'dead_letter')
    why = ('Idempotency-Outcome is none of completed, '
           'not-executed, status, unknown')
    eq(once.row('k')['last_error'], why)
    eq(len([line for line in once.wait_log('event=reconciled', 2)
            if why in line]), 2)


def fails(t, reconciler, **defaults):
    once = once_with(t, reconciler, reconcile_attempts=2, **defaults)
    lost(once)
    once.wait_state('k', 'dead_letter')
    eq(len(tries(t)), 2)


def test_exit_status_is_a_failed_try(t):
    fails(t, COMPLETED + '; exit 1')


def test_signal_is_a_failed_try(t):
    fails(t, COMPLETED + '; kill -9 $$')


def test_timeout_is_a_failed_try(t):
    fails(t, 'exec sleep 1000', timeout='100ms', kill_after='1ms')


def test_no_answer_is_a_failed_try(t):
    fails(t, ':')


def test_answer_without_a_verdict_is_a_failed_try(t):
    fails(t, 'status 201')


def test_reconciler_that_is_missing_is_a_failed_try(t):
    once = once_with(t, ':', reconcile='/nonexistent/program',
                     reconcile_attempts=2)
    lost(once)
    once.wait_state('k', 'dead_letter')


def test_reconciler_gets_the_request_without_credentials(t):
    once = once_with(
        t, 'env > "$D/env"; cat > "$D/body"; ' + COMPLETED,
        scope='REMOTE_USER')
    body = b'{"amount": 1}' + b' ' * 200000
    lost(once, body=body, params={
        'REMOTE_USER': 'alice', 'CONTENT_TYPE': 'application/json',
        'QUERY_STRING': 'a=b', 'HTTP_AUTHORIZATION': 'Basic c2VjcmV0',
        'HTTP_COOKIE': 'session=secret', 'HTTP_X_ORDER': '17'})
    once.wait_state('k', 'completed')
    eq(t.read('body'), body)
    env = dict(line.split('=', 1)
               for line in t.read('env').decode().splitlines() if '=' in line)
    for name, value in (
            ('REQUEST_METHOD', 'POST'), ('CONTENT_TYPE', 'application/json'),
            ('QUERY_STRING', 'a=b'), ('HTTP_X_ORDER', '17'),
            ('CONTENT_LENGTH', str(len(body))), ('REMOTE_USER', 'alice'),
            ('ONCE_KEY', 'k'), ('ONCE_SCOPE', 'alice'), ('ONCE_ATTEMPT', '1'),
            ('ONCE_RECOVERY_POINT', 'started')):
        eq((name, env.get(name)), (name, value))
    assert env['ONCE_DOWNSTREAM_KEY'] == once.row('k')['downstream']
    assert 'ecret' not in repr(env)
    assert 'HTTP_AUTHORIZATION' not in env and 'HTTP_COOKIE' not in env


def stored(once):
    return once.sql('SELECT count(*) FROM once_request')[0][0]


def test_request_is_erased_with_the_outcome(t):
    gate = t.gate()
    once = once_with(t, 'gate gate; ' + COMPLETED)
    lost(once, body=b'x' * 100)
    gate.wait()
    eq(stored(once), 1)
    gate.open()
    once.wait_state('k', 'completed')
    eq(stored(once), 0)


def test_nothing_is_tried_before_its_time(t):
    once = once_with(t, COMPLETED, after='1h')
    lost(once)
    assert once.row('k')['reconcile_after'] is not None
    problem(once.post('k'), 'outcome-unknown')
    eq(tries(t), [])


def test_route_without_reconciler_keeps_no_request(t):
    once = t.once(handler=t.sh(LOST))
    lost(once)
    eq((stored(once), once.row('k')['reconcile_after']), (0, None))


def test_doctor_tells_of_a_key_whose_route_has_no_reconciler_any_more(t):
    once = once_with(t, COMPLETED, after='1h')
    lost(once)

    def found(*args, status):
        lines = once.ctl('doctor', '--json', *args, status=status)
        return {f['name']: (f['ok'], f['text'])
                for f in map(json.loads, lines.splitlines())}
    eq(found('-f', once.file, status=0)['unknown'][0], True)
    del once.defaults['reconcile']
    once.routes = {'/refund': {'reconcile': t.path('reconciler')}}
    once.write_conf()
    # no configuration: not known
    eq(found(status=0)['unknown'][0], True)
    now = found('-f', once.file, status=1)
    eq(now['unknown'][0], False)
    assert now['unknown'][1].startswith('1 that no program'), now


def test_try_that_kills_oncewrap_counts(t):
    gate = t.gate()
    once = once_with(t, 'gate gate; ' + UNKNOWN, reconcile_attempts=1,
                     timeout='1s', kill_after='1ms')
    lost(once)
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the reconciler is gone')
    once.start()
    once.wait_state('k', 'dead_letter')
    eq(len(tries(t)), 1)


def test_two_processes_try_once(t):
    gate = t.gate()
    once = once_with(t, 'gate gate; ' + COMPLETED)
    other = t.once(name='other', handler=once.defaults['handler'],
                   database=once.database, defaults=once.defaults)
    lost(once)
    gate.wait()
    gate.open()
    once.wait_state('k', 'completed')
    eq(len(tries(t)), 1)
    eq(other.post('k').body, b'found')


def test_sigterm_ends_a_reconciler_by_drain_timeout(t):
    gate = t.gate()
    program = t.sh('gate gate', name='reconciler')
    once = t.once(handler=t.sh(LOST), server={'drain_timeout': '1ms'},
                  defaults={'reconcile': program, 'reconcile_after': '1ms'})
    lost(once)
    pid = gate.wait()
    once.stop()
    assert not proc.alive(pid)
