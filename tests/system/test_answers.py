"""The answers that oncewrap makes itself: every code, in both dialects."""
import datetime
import time

from answer import eq, first, problem, stripe
from once import HASTY, Background, Lock

OK = 'ledger; status 201 Created; echo done'


def both(t, server=None, **kw):
    """[(check, oncewrap)] for each dialect; check(answer, code)."""
    for dialect, check in (('ietf', problem), ('stripe', stripe)):
        options = dict(server or {}, dialect=dialect)
        yield check, t.once(server=options, name=dialect, **kw)


def test_key_missing(t):
    for check, once in both(t, handler=t.sh(OK), defaults={
            'key': 'required'}):
        check(once.post(), 'key-missing')
    eq(t.ledger(), [])


def test_key_invalid(t):
    for check, once in both(t, handler=t.sh(OK)):
        check(once.post('"unfinished'), 'key-invalid')
    eq(t.ledger(), [])


def test_key_reused(t):
    for check, once in both(t, handler=t.sh(OK)):
        first(once.post('k', 'one'), 201)
        check(once.post('k', 'two'), 'key-reused')
    eq(len(t.ledger()), 2)


def test_key_in_progress(t):
    gate = t.gate()
    for check, once in both(t, handler=t.sh('gate gate\n' + OK)):
        running = Background(lambda: once.post('k'))
        gate.wait()
        check(once.post('k'), 'key-in-progress')
        gate.open()
        first(running.result(), 201)


def test_outcome_unknown(t):
    for check, once in both(t, handler=t.sh('ledger; kill -9 $$')):
        eq(once.post('k').status, 502)
        check(once.post('k'), 'outcome-unknown')
    eq(len(t.ledger()), 2)


def test_response_not_kept(t):
    handler = t.sh('ledger; status 201; echo 0123456789')
    for check, once in both(t, handler=handler, defaults={
            'max_response': '10'}):
        before = time.time()
        answer = once.post('k')
        first(answer, 201, b'0123456789\n')
        after = time.time()
        answer = once.post('k')
        check(answer, 'response-not-kept',
              more=('original_status', 'completed_at'))
        document = answer.json()
        document = document.get('error', document)
        eq(document['original_status'], 201, answer)
        at = datetime.datetime.fromisoformat(
            document['completed_at'].replace('Z', '+00:00')).timestamp()
        assert before - 1 <= at <= after + 1, document
    eq(len(t.ledger()), 2)


def test_scope_required(t):
    for check, once in both(t, handler=t.sh(OK), defaults={
            'scope_required': 'yes'}):
        check(once.post('k'), 'scope-required')
        first(once.post('k', user='ann'), 201)
    eq(len(t.ledger()), 2)


def test_body_too_large(t):
    for check, once in both(t, handler=t.sh(OK), defaults={
            'max_request_body': '1K'}):
        check(once.post('k', b'x' * 1025), 'body-too-large')
        eq(once.row('k'), None)
        first(once.post('k', b'x' * 1024), 201)
    eq(len(t.ledger()), 2)


def test_body_incomplete(t):
    for check, once in both(t, handler=t.sh(OK)):
        check(once.post('k', 'abc', length=4), 'body-incomplete')
        eq(once.row('k'), None)
    eq(t.ledger(), [])


def test_store_unavailable(t):
    for check, once in both(t, handler=t.sh(OK), server=HASTY):
        lock = Lock(t, once.database)
        check(once.post('k'), 'store-unavailable')
        eq(t.ledger(), [])
        lock.release()
        first(once.post('k'), 201)
        t.write('ledger')


def test_handler_not_started(t):
    for check, once in both(t, handler=t.path('missing')):
        check(once.post('k'), 'handler-not-started')
        eq(once.state('k'), 'failed_retryable')


def test_handler_failed(t):
    for check, once in both(t, handler=t.sh('exit 3')):
        check(once.post('k'), 'handler-failed', unknown=True)


def test_handler_failed_75_is_503(t):
    for check, once in both(t, handler=t.sh('exit 75')):
        answer = once.post('k')
        eq(answer.status, 503, answer)
        if check is problem:
            problem(answer, 'handler-failed', status=503)
        else:
            eq(answer.json()['error']['code'], 'handler-failed', answer)


def test_handler_timeout(t):
    t.gate()
    for check, once in both(t, handler=t.sh('gate gate'), defaults={
            'timeout': '100ms'}):
        check(once.post('k'), 'handler-timeout', unknown=True)


def test_outcome_not_recorded(t):
    gate = t.gate()
    for check, once in both(t, handler=t.sh('gate gate\n' + OK),
                            server=HASTY):
        running = Background(lambda: once.post('k'))
        gate.wait()
        lock = Lock(t, once.database)
        gate.open()
        check(running.result(), 'outcome-not-recorded')
        (line,) = once.log_lines('event=run .*key=k ')
        assert ' state=in_progress ' in line, line
        # The commit goes on: the key is in progress until it succeeds.
        check(once.post('k'), 'key-in-progress')
        lock.release()
        once.wait_state('k', 'completed')
        answer = once.post('k')
        eq((answer.status, answer.replayed), (201, 'true'), answer)
    eq(len(t.ledger()), 2)


def test_link_names_the_page_of_the_api(t):
    link = 'https://other.example/page?x=1'
    once = t.once(handler=t.sh(OK), server={'link': link},
                  defaults={'key': 'required'})
    problem(once.post(), 'key-missing', link=link)


def test_instance_stands_in_the_log(t):
    once = t.once(handler=t.sh('exit 3'))
    instance = once.post('k').json()['instance']
    once.wait_log(instance)


def test_each_line_of_a_request_has_method_and_address(t):
    once = t.once(handler=t.sh('echo said >&2; exit 3'))
    once.post('k', address='2001:db8::7')
    once.post('k', address='192.0.2.8')
    once.request('PATCH', key='k', address='a"b =\n\x1b' + 'x' * 4000)
    want = {'handler-stderr': 'method=POST path=/pay peer=2001:db8::7 key=k',
            'run': 'method=POST path=/pay peer=2001:db8::7 key=k',
            'problem': 'method=PATCH path=/pay '
                       r'peer="a\\"b =\\n\\x1bx{10,80}\.\.\." key=k '
                       'scope=- status=422 code=key-reused'}
    for event, part in want.items():
        once.wait_log('event=%s instance=urn:uuid:[^ ]* %s ' % (event, part))
    once.wait_log('event=problem .* peer=192.0.2.8 .*code=outcome-unknown')


def test_every_refusal_has_an_instance_of_its_own(t):
    once = t.once(handler=t.sh(OK), defaults={'key': 'required'})
    eq(len({once.post().json()['instance'] for _ in range(5)}), 5)


def test_a_problem_to_head_has_no_body(t):
    once = t.once(handler=t.sh(OK), defaults={
        'key': 'required', 'methods': 'HEAD'})
    answer = once.request('HEAD')
    eq((answer.status, answer.body), (400, b''), answer)
