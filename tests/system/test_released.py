"""A key that was released because nothing happened takes the next request's
fingerprint; any other released key keeps its own."""
import base
from answer import eq, first, problem, replay
from test_states import COMPLETED, RETRYABLE, UNKNOWN

# The first line of the body tells the program how to end.
ENDS = '''ledger; read -r how; case $how in
exit75) exit 75 ;;
status75) status 201; exit 75 ;;
not) printf 'Idempotency-Outcome: not-executed\\r\\n'; status 409 ;;
[45]??) status "$how" ;;
exit1) status 201; exit 1 ;;
empty) ;;
short) printf 'Content-Length: 9\\r\\nContent-Type: text/plain\\r\\n\\r\\n' ;;
says) printf 'Idempotency-Outcome: completed\\r\\n'; status 201; exit 1 ;;
kill) kill -9 $$ ;;
point) %s checkpoint charged; exit 75 ;;
*) status 201; echo "$how" ;;
esac''' % base.ONCECTL


def once_with(t, **more):
    return t.once(
        handler=t.sh(ENDS), defaults={
            'share_database': 'yes', 'environment': 'ONCEWRAP_MODULES'},
        routes={'/release': {'exit_status': 'release'},
                '/resume': {'on_crash': 'resume'}, **more})


def test_a_key_of_which_nothing_happened_takes_the_next_fingerprint(t):
    once = once_with(t, **{'/missing': {'handler': t.path('missing')}})
    for n, (how, path) in enumerate((
            ('exit75', '/pay'), ('status75', '/pay'), ('not', '/pay'),
            ('401', '/pay'), ('429', '/pay'), ('exit1', '/release'),
            ('empty', '/release'), ('short', '/release'),
            ('any', '/missing'))):
        key = 'k%d' % n
        for forged in ('\n?', '\n!'):
            answer = once.post(key, how + forged, path=path)
            assert answer.replayed is None and answer.code != 'key-reused', \
                '%s: %s' % (how, answer)
            eq(once.state(key), RETRYABLE, how)
        if path == '/missing':
            t.sh(ENDS, name='missing')
        answer = once.post(key, 'good', path=path, query='x=1')
        first(answer, 201)
        replay(once.post(key, 'good', path=path, query='x=1'), answer)
        problem(once.post(key, how, path=path), 'key-reused')
        eq(once.row(key)['attempt'], 3, how)


def test_a_key_of_which_something_may_have_happened_keeps_its_own(t):
    once = once_with(t)
    for n, (how, path, again) in enumerate((
            ('500', '/pay', True), ('503', '/release', True),
            ('point', '/pay', True), ('kill', '/resume', True),
            ('kill', '/release', False), ('says', '/release', False),
            ('exit1', '/pay', False), ('empty', '/pay', False))):
        key = 'k%d' % n
        once.post(key, how, path=path)
        eq(once.state(key), RETRYABLE if again else UNKNOWN, how)
        problem(once.post(key, 'other', path=path), 'key-reused')
        if again:
            once.post(key, how, path=path)
            eq(once.row(key)['attempt'], 2)


def test_an_attempt_that_did_nothing_says_nothing_of_the_one_before(t):
    """The first one may have acted; the same request is refused later."""
    counted = t.sh('''ledger; read -r _
case $ONCE_ATTEMPT in 1) status 500 ;; 2) status 401 ;; *) status 201 ;; esac
''')
    once = t.once(handler=counted)
    for status in (500, 401):
        eq(once.post('k', 'one').status, status)
        problem(once.post('k', 'two'), 'key-reused')
    first(once.post('k', 'one'), 201)


def test_what_is_known_not_to_have_happened_frees_the_key(t):
    gone = t.sh("printf 'Idempotency-Outcome: not-executed\\r\\n'; status 200")
    once = once_with(t, **{'/asked': {'reconcile': gone,
                                      'reconcile_after': '1ms'}})
    for key, path in (('asked', '/asked'), ('told', '/pay')):
        once.post(key, 'kill', path=path)
        if key == 'told':
            eq(once.state(key), UNKNOWN)
            problem(once.post(key, 'other', path=path), 'key-reused')
            once.ctl('resolve', key, '--not-executed')
        once.wait_state(key, RETRYABLE)
        first(once.post(key, 'other', path=path), 201)
        problem(once.post(key, 'kill', path=path), 'key-reused')
        eq(once.state(key), COMPLETED)


def test_an_accepted_request_that_runs_again_keeps_its_fingerprint(t):
    """Its stored request is the one that runs: 202 was said of that one."""
    gate = t.gate()
    handler = t.sh('''ledger; read -r how
[ "$how" != 401 ] || { status 401; exit; }
[ "$ONCE_ATTEMPT" != 1 ] || kill -9 $$
gate gate; status 201; echo "$how"''')
    once = t.once(handler=handler, server={'status_path': '/once'}, defaults={
        'async': 'always', 'on_crash': 'resume'})
    eq(once.post('lost', 'first').status, 202)
    gate.wait()
    problem(once.post('lost', 'other'), 'key-reused')
    gate.open()
    once.wait_state('lost', COMPLETED)
    eq(once.post('lost', 'first').body, b'first\n')
    # It was refused, and waits for no worker.
    eq(once.post('refused', '401').status, 202)
    once.wait_state('refused', RETRYABLE)
    eq(once.post('refused', 'other').status, 202)
    gate.wait()
    problem(once.post('refused', '401'), 'key-reused')
    gate.open()
    once.wait_state('refused', COMPLETED)
    eq(once.post('refused', 'other').body, b'other\n')
