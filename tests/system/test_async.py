"""Long work: accepted with 202, run later, watched at its status resource."""
import calendar
import email.utils
import os
import random
import re
import time

import base
import fcgi
import proc
from answer import (eq, expires_in, first, http_date, problem, replay,
                    stripe)
from base import wait_until
from once import HASTY, Background, Lock, parallel

MEMBERS = {'id', 'state', 'attempt', 'recovery_point', 'created_at',
           'updated_at', 'expires_at'}
ASYNC = {'Prefer': 'respond-async'}
UNKNOWN_ID = '/jobs/' + '0' * 32


def start(t, body, server=None, routes=None, conf='', name='once',
          database=None, **defaults):
    """An oncewrap whose requests are accepted, unless defaults say other."""
    return t.once(
        handler=t.sh(body), name=name, database=database, conf=conf,
        server={'status_path': '/jobs', 'sweep_interval': '50ms',
                'reap_interval': '50ms', **(server or {})},
        defaults={'async': 'always', **defaults}, routes=routes)


def a_time(text):
    """Seconds since 1970 of RFC 3339, in UTC; None of null."""
    if text is None:
        return None
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', text), text
    return calendar.timegm(time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S')) + \
        float(text[19:-1])


def document(answer):
    """What a status resource, or a 202, says; it must be whole."""
    eq(answer.get('Content-Type'), 'application/json', answer)
    eq(answer.get('Cache-Control'), 'no-store', answer)
    said = answer.json()
    eq(set(said), MEMBERS, answer)
    for name in ('created_at', 'updated_at', 'expires_at'):
        a_time(said[name])
    assert re.fullmatch('[0-9a-f]{32}', said['id']), str(answer)
    return said


def accepted(answer, prefer=False, base_path='/jobs'):
    """It is a 202; where its status resource is."""
    eq(answer.status, 202, answer)
    eq(answer.get('Preference-Applied'), 'respond-async' if prefer else None,
       answer)
    assert int(answer.get('Retry-After')) > 0, str(answer)
    eq(answer.replayed, None, answer)
    said = document(answer)
    place = answer.get('Location')
    eq(place, '%s/%s' % (base_path, said['id']), answer)
    return place


def status(once, place, **kw):
    """What the resource says, and that Retry-After is right for it."""
    answer = once.get(place, **kw)
    eq(answer.status, 200, answer)
    said = document(answer)
    eq(place.rpartition('/')[2], said['id'], answer)
    ended = said['state'] in ('completed', 'expired')
    eq(answer.get('Retry-After') is None, ended, answer)
    return said


def state(once, place, **kw):
    return status(once, place, **kw)['state']


def wait_status(once, place, wanted, **kw):
    return wait_until(lambda: state(once, place, **kw) == wanted,
                      '%s is %s' % (place, wanted))


def result(once, place, key, *post, **kw):
    """The result, which is what a retry gets."""
    got = once.get(place + '/result', **kw)
    again = once.post(key, *post, **kw)
    eq((got.status, got.fields, got.body),
       (again.status, again.fields, again.body), got)
    return got


def no_result_yet(once, place, **kw):
    answer = once.get(place + '/result', **kw)
    problem(answer, 'not-found', acted=True)
    assert int(answer.get('Retry-After')) > 0, answer


# --- the way of a request ---


def test_accepted_request_runs_later_and_its_result_is_the_replay(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; echo Set-Cookie: a=b; '
                 'status 201; echo done')
    began = time.time()
    place = accepted(once.post('k', 'body'))
    gate.wait()
    said = status(once, place)
    eq((said['state'], said['attempt'], said['recovery_point'],
        said['expires_at']), ('in_progress', 1, 'started', None))
    assert began - 2 <= a_time(said['created_at']) <= time.time() + 2, said
    no_result_yet(once, place)
    for _ in range(2):
        eq(accepted(once.post('k', 'body')), place)
    gate.open()
    wait_status(once, place, 'completed')
    got = result(once, place, 'k', 'body')
    eq((got.status, got.body, got.replayed), (201, b'done\n', 'true'), got)
    eq(got.get('Set-Cookie'), None, got)
    expires_in(got, 24 * 3600)
    said = status(once, place)
    assert abs(a_time(said['expires_at']) - time.time() - 24 * 3600) < 5, said
    eq(t.ledger(), ['1 '])
    eq(once.row('k')['state'], 'completed')


def test_accepted_request_that_waits_is_pending(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 200',
                 server={'async_workers': '1'})
    accepted(once.post('one'))
    gate.wait()
    place = accepted(once.post('two'))
    said = status(once, place)
    eq((said['state'], said['attempt']), ('pending', 0))
    assert abs(a_time(said['expires_at']) - time.time() - 24 * 3600) < 5, said
    eq(once.state('two'), 'pending')
    no_result_yet(once, place)
    eq(accepted(once.post('two')), place)
    gate.open(2)
    wait_status(once, place, 'completed')
    eq(len(t.ledger()), 2)


def test_handler_gets_the_request_as_it_was_but_for_credentials(t):
    once = start(t, 'cat > "$D/body"; env > "$D/env"; status 200',
                 environment='FROM_DAEMON')
    once.stop()
    once.env['FROM_DAEMON'] = 'yes'
    once.start()
    body = os.urandom(300000)
    place = accepted(once.post(
        'k', body, path='/pay', info='/now', query='a=b&c', type='x/y',
        user='alice', headers={'Authorization': 'hunter1', 'X-Other': 'other',
                               'Cookie': 'hunter2'}))
    wait_status(once, place, 'completed', user='alice')
    eq(t.read('body'), body)
    env = dict(line.split('=', 1)
               for line in t.read('env').decode().splitlines())
    row = once.row('k')
    want = {'REQUEST_METHOD': 'POST', 'SCRIPT_NAME': '/pay',
            'PATH_INFO': '/now', 'QUERY_STRING': 'a=b&c',
            'CONTENT_TYPE': 'x/y', 'CONTENT_LENGTH': '300000',
            'REMOTE_USER': 'alice', 'HTTP_X_OTHER': 'other',
            'FROM_DAEMON': 'yes', 'ONCE_KEY': 'k', 'ONCE_SCOPE': 'alice',
            'ONCE_PATH': '/pay/now', 'ONCE_ATTEMPT': '1',
            'ONCE_RECOVERY_POINT': 'started',
            'ONCE_DOWNSTREAM_KEY': row['downstream']}
    eq({name: env.get(name) for name in want}, want)
    assert 'HTTP_AUTHORIZATION' not in env and 'HTTP_COOKIE' not in env, env
    once.stop()
    assert b'hunter' not in once.stored()
    eq(once.sql('SELECT count(*) FROM once_request'), [(0,)])


PREFER = [
    (None, False), ('', False), ('respond-async', True),
    ('Respond-Async', True), ('respond-async, wait=10', True),
    ('wait=10; x, respond-async;foo=bar', True), ('return=minimal', False),
    ('respond-async=no', False), ('respond-sync', False),
    ('"respond-async"', False), ('return=minimal, respond-async', True),
]


def test_prefer_is_honoured_where_the_route_says_so(t):
    once = start(t, 'ledger; status 201', **{'async': 'prefer'})
    for i, (value, wanted) in enumerate(PREFER):
        headers = {} if value is None else {'Prefer': value}
        answer = once.post('k%d' % i, headers=headers)
        if not wanted:
            first(answer, 201)
            eq(answer.get('Preference-Applied'), None, answer)
            continue
        place = accepted(answer, prefer=True)
        wait_status(once, place, 'completed')
        replay(once.post('k%d' % i), once.get(place + '/result'), dropped=())
    eq(len(t.ledger()), len(PREFER))


def test_prefer_is_not_honoured_elsewhere(t):
    once = start(t, 'ledger; status 201', **{'async': 'never'})
    answer = once.post('k', headers=ASYNC)
    first(answer, 201)
    eq(answer.get('Preference-Applied'), None, answer)


def test_preference_is_applied_by_always_too_if_it_was_named(t):
    once = start(t, 'status 201')
    accepted(once.post('a'))
    accepted(once.post('b', headers=ASYNC), prefer=True)


def test_requests_without_a_key_and_of_other_methods_pass_through(t):
    once = start(t, 'ledger; status 201; echo through')
    for answer in (once.post(None, headers=ASYNC),
                   once.get(key='k', headers=ASYNC)):
        first(answer, 201, b'through\n')
    eq(once.ls(), [])


def test_refused_requests_are_not_accepted(t):
    once = start(t, 'ledger; status 201', key='required',
                 max_request_body='10', scope_required='yes')
    user = {'user': 'u'}
    problem(once.post(None, **user), 'key-missing')
    problem(once.post('a,b', **user), 'key-invalid')
    problem(once.post('k'), 'scope-required')
    problem(once.post('k', b'x' * 11, **user), 'body-too-large')
    problem(once.post('k', b'x', length=5, **user), 'body-incomplete')
    eq((once.ls(), t.ledger()), ([], []))


def test_mismatch_comes_first_in_every_state(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201', server={'async_workers': '1'})
    one = accepted(once.post('one', 'a'))
    gate.wait()
    two = accepted(once.post('two', 'a'))
    for _ in range(2):
        for key in ('one', 'two'):
            problem(once.post(key, 'b'), 'key-reused')
        gate.open(2)
        wait_status(once, one, 'completed')
        wait_status(once, two, 'completed')


def test_accepted_key_is_never_waited_for(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201', concurrent='wait',
                 wait_time='1h')
    place = accepted(once.post('k'))
    gate.wait()
    eq(accepted(once.post('k')), place)
    gate.open()
    wait_status(once, place, 'completed')


def test_store_that_cannot_be_written_accepts_nothing(t):
    once = start(t, 'ledger; status 201', server=HASTY)
    lock = Lock(t, once.database)
    problem(once.post('k'), 'store-unavailable')
    lock.release()
    eq(once.row('k'), None)
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    eq(t.ledger(), ['1 '])


# --- the status resource ---


def nothing_there(once, *places, **kw):
    for place in places:
        problem(once.get(place, **kw), 'not-found')
        answer = once.request('HEAD', place, **kw)
        eq((answer.status, answer.body), (404, b''), answer)


def test_another_scope_is_told_that_there_is_nothing(t):
    once = start(t, 'status 201; echo secret')
    place = accepted(once.post('k', user='alice'))
    wait_status(once, place, 'completed', user='alice')
    for user in ('bob', '', None, 'Alice', 'alice '):
        nothing_there(once, place, place + '/result', user=user)
    first(once.get(place, user='alice'), 200)
    result(once, place, 'k', user='alice')


def test_scope_is_that_of_the_keys_own_route(t):
    once = start(t, 'status 201', scope='none', routes={
        '/pay': {'scope': 'HTTP_AUTHORIZATION'}})
    token = {'Authorization': 'Bearer x'}
    place = accepted(once.post('k', headers=token))
    wait_status(once, place, 'completed', headers=token)
    nothing_there(once, place, place + '/result')
    nothing_there(once, place, headers={'Authorization': 'Bearer y'})
    # Without a scope the number is all that is asked for.
    place = accepted(once.post('k', path='/other'))
    wait_status(once, place, 'completed', user='stranger')


def test_what_is_no_resource_is_404(t):
    once = start(t, 'ledger; status 201')
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    nothing_there(once, '/jobs', '/jobs/', UNKNOWN_ID, UNKNOWN_ID + '/result',
                  place + '/', place + '/results', place + '0', place[:-1],
                  place + '/result/', place.upper().replace('JOBS', 'jobs'),
                  '/jobs/x/' + place[6:], '/jobs/' + 'g' * 32)
    eq(once.get('/jobss').status, 201)


def test_other_methods_are_405(t):
    once = start(t, 'ledger; status 201')
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    for method in ('POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'get'):
        for path in (place, place + '/result', UNKNOWN_ID, '/jobs'):
            answer = once.request(method, path, b'x' * 100, key='k')
            problem(answer, 'method-not-allowed')
            eq(answer.get('Allow'), 'GET, HEAD', answer)
    eq(t.ledger(), ['1 '])


def test_head_is_get_without_a_body(t):
    once = start(t, 'status 201; echo done')
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    for path in (place, place + '/result'):
        head, get = once.request('HEAD', path), once.get(path)
        eq((head.status, head.fields, head.body),
           (get.status, get.fields, b''))


def test_stripe_dialect(t):
    once = start(t, 'status 201', server={'dialect': 'stripe'})
    stripe(once.get(UNKNOWN_ID), 'not-found')
    stripe(once.post('k', path=UNKNOWN_ID), 'method-not-allowed')


def test_location_is_a_uri(t):
    once = start(t, 'status 201', server={'status_path': '/j b/\u00e9%'})
    said = once.post('k')
    eq(said.status, 202, said)
    number = said.json()['id']
    eq(said.get('Location'), '/j%20b/%C3%A9%25/' + number, said)
    eq(once.get('/j b/\u00e9%/' + number).status, 200)


def test_unkept_answer_and_marker_are_results_too(t):
    once = start(t, 'status 200; echo too long', routes={
        '/big': {'max_response': '3'},
        '/gone': {'on_expired': 'gone', 'retention': '100ms'},
        '/past': {'retention': '100ms'}})
    place = accepted(once.post('k', path='/big'))
    wait_status(once, place, 'completed')
    for answer in (once.get(place + '/result'), once.post('k', path='/big')):
        problem(answer, 'response-not-kept',
                more=('original_status', 'completed_at'))
    place = accepted(once.post('k', path='/gone'))
    wait_status(once, place, 'expired')
    for answer in (once.get(place + '/result'), once.post('k', path='/gone')):
        problem(answer, 'key-expired')
    place = accepted(once.post('k', path='/past'))
    wait_until(lambda: once.get(place).status == 404, 'it is past')
    nothing_there(once, place, place + '/result')


def test_resource_of_a_key_that_was_used_anew_is_another(t):
    once = start(t, 'status 201')
    one = accepted(once.post('k'))
    wait_status(once, one, 'completed')
    once.ctl('forget', 'k')
    two = accepted(once.post('k'))
    assert one != two
    wait_status(once, two, 'completed')
    nothing_there(once, one, one + '/result')


# --- the queue ---


def test_full_queue_accepts_nothing_more(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201',
                 server={'async_workers': '1', 'async_queue': '2'})
    accepted(once.post('running'))
    gate.wait()
    # One caller fills half of it at most.
    accepted(once.post('a', user='ann'))
    problem(once.post('d', user='ann'), 'overloaded')
    accepted(once.post('b', user='bob'))
    for _ in range(2):
        problem(once.post('c'), 'overloaded')
    eq(once.row('c'), None)
    eq(once.ctl('metrics').count('keys{state="pending"} 2'), 1)
    # What is queued has its place.
    accepted(once.post('b', user='bob'))
    gate.open(1)
    gate.wait()
    place = accepted(once.post('c'))
    gate.open(3)
    wait_status(once, place, 'completed')
    eq(len(t.ledger()), 4)


def test_what_cannot_be_started_does_not_fill_the_queue(t):
    once = start(t, 'status 201', server={'async_queue': '2'},
                 routes={'/gone': {'handler': t.path('missing')}})
    for key in ('a', 'b', 'c'):
        accepted(once.post(key, path='/gone'))
        wait_until(lambda: once.row(key)['attempt'] >= 2, 'it is put off')
    wait_until(lambda: all(r['attempt'] >= 3 for r in once.ls()),
               'all are put off for two seconds')
    place = accepted(once.post('good'))
    wait_status(once, place, 'completed')


def test_as_many_run_at_once_as_there_are_async_workers(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201', server={'async_workers': '3'})
    places = [accepted(once.post('k%d' % i)) for i in range(7)]
    for _ in range(3):
        gate.wait()
    states = [state(once, place) for place in places]
    eq((states.count('in_progress'), states.count('pending')), (3, 4))
    assert not gate.came()
    gate.open(7)
    for place in places:
        wait_status(once, place, 'completed')


def test_workers_for_requests_do_not_wait_for_accepted_ones(t):
    gate = t.gate()
    once = start(t, '[ "$ONCE_KEY" = fast ] || gate gate; status 201',
                 server={'workers': '1'}, **{'async': 'prefer'})
    for i in range(8):
        accepted(once.post('k%d' % i, headers=ASYNC), prefer=True)
    for _ in range(4):
        gate.wait()
    first(once.post('fast'), 201)
    gate.open(8)


def test_first_come_first_served(t):
    gate = t.gate()
    once = start(t, 'ledger "$ONCE_KEY"; gate gate; status 201',
                 server={'async_workers': '1'})
    for i in range(9):
        accepted(once.post('k%d' % i))
    gate.open(9)
    once.wait_state('k8', 'completed')
    eq(t.ledger(), ['1 k%d' % i for i in range(9)])


def test_processes_share_one_queue(t):
    gate = t.gate()
    body = 'ledger "$ONCE_KEY"; echo $PPID >> "$D/parents"; ' \
        'gate gate; status 201'
    few = {'async_workers': '2', 'workers': '2'}
    both = [start(t, body, few, name='one')]
    both.append(start(t, body, few, name='two', database=both[0].database))
    # Accepted by one, run by both.
    places = [accepted(both[0].post('k%d' % i)) for i in range(40)]
    for _ in range(4):
        gate.wait()
    parents = t.read('parents').split()
    eq({int(p) for p in parents}, {once.pid for once in both})
    gate.open(40)
    for place in places:
        wait_status(both[1], place, 'completed')
    eq(sorted(t.ledger()), sorted('1 k%d' % i for i in range(40)))


def test_hundred_duplicates_have_one_place_in_the_queue(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201', server={'workers': '8'})
    places = {accepted(a) for a in parallel([lambda: once.post('k')] * 100)}
    eq(len(places), 1)
    gate.wait()
    gate.open()
    wait_status(once, places.pop(), 'completed')
    eq(t.ledger(), ['1 '])


def test_queued_request_past_its_retention_is_answered_408(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201', {'async_workers': '1'},
                 routes={'/short': {'retention': '3s'}})
    accepted(once.post('running'))
    gate.wait()
    place = accepted(once.post('k', path='/short'))
    # The one worker is busy all the time.
    wait_status(once, place, 'completed')
    answer = once.get(place + '/result')
    again = once.post('k', path='/short')
    eq(again.replayed, 'true', again)
    replay(again, answer, dropped=())
    eq((answer.status, answer.code, answer.json()['retryable']),
       (408, 'request-expired', False), answer)
    eq(once.row('k', path='/short')['attempt'], 0)
    once.wait_log('event=abandoned .*key=k .*from=pending to=completed')
    gate.open(2)
    once.wait_state('running', 'completed')
    eq(t.ledger(), ['1 '])


def test_marker_of_a_request_that_never_began(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201', {'async_workers': '1'},
                 routes={'/short': {'retention': '100ms',
                                    'on_expired': 'gone'}})
    accepted(once.post('running'))
    gate.wait()
    place = accepted(once.post('k', path='/short'))
    wait_status(once, place, 'expired')
    problem(once.post('k', path='/short'), 'key-expired')
    gate.open()
    eq(t.ledger(), ['1 '])


# --- what becomes of it ---


def test_released_by_its_answer_it_is_not_queued_again_until_asked_for(t):
    once = start(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] && status 201 || '
                 'status 503')
    place = accepted(once.post('k'))
    wait_status(once, place, 'failed_retryable')
    no_result_yet(once, place)
    place2 = accepted(once.post('other'))
    wait_status(once, place2, 'failed_retryable')
    eq(t.ledger(), ['1 ', '1 '])
    eq(accepted(once.post('k')), place)
    wait_status(once, place, 'completed')
    eq(result(once, place, 'k').status, 201)
    eq(t.ledger(), ['1 ', '1 ', '2 '])


def test_released_it_runs_at_once_for_a_client_that_does_not_prefer_202(t):
    once = start(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] && status 201 || '
                 'exit 75', **{'async': 'prefer'})
    place = accepted(once.post('k', headers=ASYNC), prefer=True)
    wait_status(once, place, 'failed_retryable')
    first(once.post('k'), 201)
    eq(state(once, place), 'completed')
    eq(t.ledger(), ['1 ', '2 '])


def test_unknown_outcome_is_answered_as_ever(t):
    once = start(t, 'ledger; kill -9 $$')
    place = accepted(once.post('k'))
    wait_status(once, place, 'unknown')
    problem(once.post('k'), 'outcome-unknown')
    no_result_yet(once, place)
    once.ctl('resolve', 'k', '--completed', input=b'Status: 203\n\nfound')
    got = result(once, place, 'k')
    eq((got.status, got.body), (203, b'found'))
    eq(t.ledger(), ['1 '])


def test_reconciler_gets_the_accepted_request(t):
    found = t.sh('cat > "$D/asked"; echo "$QUERY_STRING" >> "$D/asked"; '
                 'echo Idempotency-Outcome: completed; status 201')
    once = start(t, 'ledger; kill -9 $$', reconcile=found,
                 reconcile_after='1ms')
    place = accepted(once.post('k', 'body', query='q'))
    wait_status(once, place, 'completed')
    eq(t.read('asked'), b'bodyq\n')


def test_handler_that_cannot_be_started_is_tried_again(t):
    once = start(t, 'true')
    once.defaults['handler'] = t.path('later')
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    place = accepted(once.post('k'))
    once.wait_log('event=handler-not-started', 2)
    t.sh('ledger; status 201', name='later')
    wait_status(once, place, 'completed')
    assert status(once, place)['attempt'] >= 3


def test_no_new_key_is_safe_while_a_request_that_never_started_is_queued(t):
    once = start(t, 'true', max_request_age='1h',
                 request_timestamp='X-Sent-At')
    once.defaults['handler'] = t.path('later')
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    now = email.utils.formatdate(usegmt=True)
    place = accepted(once.post('k', headers={'X-Sent-At': now}))
    wait_until(lambda: once.state('k') == 'failed_retryable', 'it is put off')

    # Its queue will run it; it answers 202 while that is tried.
    def refused():
        answer = once.post('k')
        return answer.status != 202 and answer
    problem(wait_until(refused, 'it is put off'), 'request-too-old',
            acted=True)
    t.sh('ledger; status 201', name='later')
    wait_status(once, place, 'completed')
    eq(len(t.ledger()), 1)


def test_body_that_has_no_room_when_its_turn_comes_is_tried_again(t):
    gate = t.gate()
    spool = t.path('spool')
    os.mkdir(spool)
    once = start(t, '[ "$ONCE_KEY" = first ] && gate gate; status 201; wc -c',
                 server={'spool_dir': spool, 'async_workers': 1})
    accepted(once.post('first'))
    gate.wait()
    place = accepted(once.post('k', b'x' * 100000))
    os.rename(spool, spool + '.away')
    gate.open()
    # Its lines in the log name the key.
    for event in ('handler-not-started', 'run'):
        once.wait_log(r'event=%s instance=urn:uuid:\S+ method=- path=/pay '
                      'peer=- key=k ' % event)
    os.rename(spool + '.away', spool)
    wait_status(once, place, 'completed')
    once.wait_log(r'event=run .* method=POST path=/pay peer=127.0.0.1 key=k ')
    eq(once.get(place + '/result').body.strip(), b'100000')


def test_lost_handler_is_resumed_by_itself(t):
    once = start(t, 'ledger "$ONCE_RECOVERY_POINT $ONCE_DOWNSTREAM_KEY"; '
                 '[ "$ONCE_ATTEMPT" = 3 ] || kill -9 $$; status 201',
                 on_crash='resume')
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    downstream = once.row('k')['downstream']
    eq(t.ledger(), ['%d started %s' % (i, downstream) for i in (1, 2, 3)])
    # The first time at once, then with a pause.
    eq(status(once, place)['attempt'], 3)


def test_pause_before_it_is_resumed_is_not_part_of_its_retention(t):
    once = start(t, 'ledger; [ "$ONCE_ATTEMPT" = 3 ] || kill -9 $$; '
                 'status 201', on_crash='resume', retention='900ms')
    accepted(once.post('k'))
    wait_until(lambda: '3 ' in t.ledger(), 'it runs for the third time')


def test_what_did_not_happen_is_run_again(t):
    says = t.sh('echo Idempotency-Outcome: not-executed; status 200')
    body = 'ledger "$ONCE_KEY"; [ "$ONCE_ATTEMPT" = 2 ] || kill -9 $$; ' \
        'status 201'
    once = start(t, body, routes={
        '/asks': {'reconcile': says, 'reconcile_after': '1ms'}})
    asked = accepted(once.post('asked', path='/asks'))
    wait_status(once, asked, 'completed')
    told = accepted(once.post('told'))
    wait_status(once, told, 'unknown')
    once.ctl('resolve', 'told', '--not-executed')
    wait_status(once, told, 'completed')
    eq(t.ledger(), ['1 asked', '2 asked', '1 told', '2 told'])


def test_timeout_is_resumed_by_itself(t):
    gate = t.gate()
    once = start(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] || gate gate; '
                 'status 201', on_crash='resume', timeout='1s')
    place = accepted(once.post('k'))
    gate.wait()
    wait_status(once, place, 'completed')
    eq(t.ledger(), ['1 ', '2 '])


def test_resume_waits_for_the_whole_attempt_lock_of_the_lost_attempt(t):
    gate = t.gate()
    once = start(
        t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] && { status 201; exit; }; '
        '( gate gate ) & wait', on_crash='resume')
    place = accepted(once.post('k'))
    child = gate.wait()
    parent = int(proc.stat(child)[1]) if proc.stat(child) else 0
    once.kill()
    wait_until(lambda: not proc.alive(parent), 'the handler is gone')
    once.start()
    # Two sweeps later it is still held.
    other = accepted(once.post('other'))
    gate.wait()
    eq((state(once, place), state(once, other)),
       ('in_progress', 'in_progress'))
    accepted(once.post('k'))
    eq(t.ledger(), ['1 ', '1 '])
    gate.open(2)
    wait_status(once, place, 'completed')
    wait_until(lambda: not proc.alive(child), 'its child is gone')
    eq(t.ledger().count('2 '), 1)


# --- ends and beginnings ---


def test_queue_survives_a_restart(t):
    gate = t.gate()
    once = start(t, 'ledger "$ONCE_KEY"; gate gate; status 201',
                 {'async_workers': '1'})
    places = [accepted(once.post('k%d' % i)) for i in range(5)]
    gate.wait()
    once.term()
    once.wait_log('event=stopping')
    gate.open()
    eq(once.wait(), 0)
    # The one that ran has ended, and no other was begun.
    eq(t.ledger(), ['1 k0'])
    eq([row['state'] for row in once.ls()], ['completed'] + ['pending'] * 4)
    gate.open(4)
    once.start()
    for place in places:
        wait_status(once, place, 'completed')
    eq(t.ledger(), ['1 k%d' % i for i in range(5)])


def test_queue_survives_sigkill(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201', {'async_workers': '1'})
    places = [accepted(once.post('k%d' % i)) for i in range(5)]
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    gate.open(4)
    once.start()
    for place in places[1:]:
        wait_status(once, place, 'completed')
    # It may have happened.
    eq(state(once, places[0]), 'unknown')
    problem(once.post('k0'), 'outcome-unknown')
    eq(len(t.ledger()), 5)


def test_drain_timeout_makes_it_lost_and_a_successor_resumes_it(t):
    gate = t.gate()
    once = start(t, 'ledger; [ "$ONCE_ATTEMPT" = 2 ] || gate gate; '
                 'status 201', server={'drain_timeout': '100ms'},
                 on_crash='resume', kill_after='100ms')
    place = accepted(once.post('k'))
    gate.wait()
    once.stop()
    eq((once.state('k'), t.ledger()), ('failed_retryable', ['1 ']))
    once.start()
    wait_status(once, place, 'completed')
    eq(t.ledger(), ['1 ', '2 '])


def test_other_process_takes_up_what_a_dead_one_had(t):
    gate = t.gate()
    body = 'ledger; [ "$ONCE_ATTEMPT" = 2 ] || gate gate; status 201'
    one = start(t, body, name='one', on_crash='resume')
    place = accepted(one.post('k'))
    pid = gate.wait()
    two = start(t, body, name='two', database=one.database,
                on_crash='resume')
    one.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    wait_status(two, place, 'completed')
    eq(t.ledger(), ['1 ', '2 '])


def test_reload_begins_and_ends_acceptance(t):
    gate = t.gate()
    once = start(t, 'ledger; [ "$ONCE_KEY" = k ] && gate gate; status 201',
                 {'async_workers': '1'}, **{'async': 'never'})
    first(once.post('before'), 201)

    def reload(n, **change):
        once.defaults.update(change)
        once.write_conf()
        once.hup()
        once.wait_log('event=reloaded', n)
    reload(1, **{'async': 'always'})
    place = accepted(once.post('k'))
    gate.wait()
    queued = accepted(once.post('queued'))
    reload(2, **{'async': 'never'})
    first(once.post('after'), 201)
    eq(accepted(once.post('queued')), queued)
    gate.open()
    for place in (place, queued):
        wait_status(once, place, 'completed')


def test_without_a_status_path_any_more_it_is_still_run(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201')
    accepted(once.post('k'))
    gate.wait()
    once.defaults['async'] = 'never'
    del once.server['status_path']
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    answer = once.post('k')
    eq((answer.status, answer.get('Location')), (202, None), answer)
    gate.open()
    once.wait_state('k', 'completed')
    eq(once.post('k').status, 201)


# --- concurrent = accept ---


def test_concurrent_accept_answers_202_to_duplicates(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; status 201; echo done',
                 concurrent='accept', **{'async': 'never'})
    conn = once.begin('k', 'body')
    gate.wait()
    place = accepted(once.post('k', 'body'))
    eq(accepted(once.post('k', 'body', headers=ASYNC), prefer=True), place)
    problem(once.post('k', 'other'), 'key-reused')
    eq(state(once, place), 'in_progress')
    no_result_yet(once, place)
    gate.open()
    answer = conn.answer()
    first(answer, 201, b'done\n')
    replay(result(once, place, 'k', 'body'), answer)
    eq(t.ledger(), ['1 '])


def test_concurrent_accept_does_not_queue_again_what_was_lost(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; kill -9 $$', concurrent='accept',
                 on_crash='resume', **{'async': 'never'})
    conn = once.begin('k')
    gate.wait()
    place = accepted(once.post('k'))
    gate.open()
    problem(conn.answer(), 'handler-failed')
    eq(state(once, place), 'failed_retryable')
    other = once.begin('other')
    gate.wait()
    eq((state(once, place), len(t.ledger())), ('failed_retryable', 2))
    gate.open()
    other.answer()


def test_concurrent_accept_by_reload_has_no_resource_for_what_runs(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201', **{'async': 'never'})
    conn = once.begin('k')
    gate.wait()
    once.defaults['concurrent'] = 'accept'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    problem(once.post('k'), 'key-in-progress')
    gate.open()
    first(conn.answer(), 201)


# --- a handler's own answer ---

ANSWERS = r'''
import shared
db = shared.connect(%r)
def answer(status=201, headers='X-Own: yes\nSet-Cookie: a=b', body='own'):
    db.execute('INSERT INTO once_response(token, status, headers, body) '
               'VALUES (?, ?, ?, ?)',
               (os.environ['ONCE_TOKEN'], status, headers, body))
def gate(name):
    with open(D + '/' + name + '.here', 'w') as f:
        f.write('%%d\n' %% os.getpid())
    open(D + '/' + name + '.open').readline()
ledger()
'''


def answering(t, body, **kw):
    """An oncewrap whose handler can answer in the database."""
    once = start(t, 'true', **kw)
    once.defaults['handler'] = t.py(ANSWERS % once.database + body)
    once.stop()
    once.write_conf()
    once.start()
    return once


ENDS = [
    'out(b"Status: 500\\n\\nprinted")',
    'sys.exit(3)',
    'os.kill(os.getpid(), 9)',
    'sys.exit(75)',
    'out(b"no response at all")',
    'out(b"Idempotency-Outcome: not-executed\\nStatus: 200\\n\\n")',
    'gate("late")',
]


def test_own_answer_wins_whatever_follows(t):
    t.gate('late')
    body = 'answer()\n' + 'n = int(os.environ["QUERY_STRING"])\n' + ''.join(
        'if n == %d: %s\n' % end for end in enumerate(ENDS))
    once = answering(t, body, **{'async': 'never'}, routes={
        # It has answered by then.
        '/late': {'timeout': '%ds' % (3 * max(1, base.SLOW))}})
    for n, end in enumerate(ENDS):
        key = 'k%d' % n
        path = '/late' if 'late' in end else '/pay'
        answer = once.post(key, path=path, query=str(n))
        first(answer, 201, b'own')
        eq((answer.get('X-Own'), answer.get('Set-Cookie')), ('yes', 'a=b'))
        expires_in(answer, 24 * 3600)
        again = once.post(key, path=path, query=str(n))
        replay(again, answer)
        eq(again.get('Set-Cookie'), None, again)
        eq(once.log_lines('event=run .*key=%s .*state=completed why=answered'
                          % key) != [], True)
    eq(len(t.ledger()), len(ENDS))


def test_own_answer_of_an_accepted_request_is_its_result(t):
    once = answering(t, 'answer()\nos.kill(os.getpid(), 9)',
                     on_crash='resume')
    place = accepted(once.post('k'))
    wait_status(once, place, 'completed')
    got = result(once, place, 'k')
    eq((got.status, got.body, got.get('X-Own')), (201, b'own', 'yes'), got)
    eq(t.ledger(), ['1'])


def test_own_answer_is_replayed_while_its_handler_still_runs(t):
    gate = t.gate()
    once = answering(t, 'answer()\ngate("gate")', retention='1h',
                     timeout='30m', **{'async': 'never'})
    conn = once.begin('k')
    gate.wait()
    early = once.post('k')
    eq((early.status, early.body, early.replayed), (201, b'own', 'true'))
    # Not beyond what it will be in the end.
    expires_in(early, 3600)
    gate.open()
    first(conn.answer(), 201, b'own')
    # Its retention begins now, which may be another second.
    late = once.post('k')
    replay(late, early, dropped=('idempotency-expires',))
    ends = [http_date(a.get('Idempotency-Expires')) for a in (early, late)]
    eq(ends, sorted(ends))
    eq(t.ledger(), ['1'])


def test_own_answer_survives_the_death_of_oncewrap(t):
    gate = t.gate()
    for name in ('resume', 'unknown'):
        once = answering(t, 'answer()\ngate("gate")', on_crash=name,
                         name=name)
        place = accepted(once.post('k'))
        gate.wait()
        eq(state(once, place), 'completed')
        once.kill()
        once.start()
        got = result(once, place, 'k')
        eq((got.status, got.body, got.replayed), (201, b'own', 'true'), got)
        once.wait_log('event=swept .*key=k')
    eq(t.ledger(), ['1', '1'])


# --- all together ---


def test_behind_lighttpd(t):
    gate = t.gate()
    once = start(t, 'ledger; gate gate; cat > "$D/body"; '
                 'echo X-Field: value; status 201; echo done',
                 server={'status_path': '/cgi-bin/jobs'},
                 **{'async': 'prefer'})
    t.write('cgi-bin/pay', '#!/bin/sh\n', 0o755)
    server = t.server('lighttpd', once, inside='''
$HTTP["url"] =~ "^/cgi-bin/jobs/" {
	fastcgi.server = ( "/cgi-bin/jobs" => ((
		"socket" => "%s", "check-local" => "disable" )) )
}''' % once.socket)
    answer = server.curl(key='"k"', body='body',
                         headers=['Prefer: respond-async'])
    place = accepted(answer, prefer=True, base_path='/cgi-bin/jobs')
    gate.wait()
    eq(server.curl(place, method='GET').json()['state'], 'in_progress')
    eq(server.curl(place + '/result', method='GET').status, 404)
    eq(server.curl(place, method='DELETE').status, 405)
    gate.open()
    wait_until(lambda: server.curl(place, method='GET').json()['state'] ==
               'completed', 'it is completed')
    got = server.curl(place + '/result', method='GET')
    again = server.curl(key='"k"', body='body')
    eq((got.status, got.body, got.replayed, got.get('X-Field')),
       (201, b'done\n', 'true', 'value'), got)
    replay(again, got, dropped=('date',))
    eq(server.curl(place, method='HEAD').status, 200)
    eq((t.read('body'), t.ledger()), (b'body', ['1 ']))


def test_metrics_count_accepted_requests(t):
    gate = t.gate()
    once = start(t, '[ "$ONCE_KEY" = 1st ] && gate gate; status 201',
                 {'admin_path': '/admin', 'async_workers': '1'})

    def metrics():
        return once.get('/admin/metrics').body.decode().splitlines()
    accepted(once.post('1st'))
    gate.wait()
    for key in ('2nd', '2nd', '3rd'):
        accepted(once.post(key))
    got = metrics()
    for line in ('oncewrap_keys{state="pending"} 2',
                 'oncewrap_keys{state="in_progress"} 1',
                 'oncewrap_reserve_total{result="created"} 3',
                 'oncewrap_reserve_total{result="in_progress"} 1'):
        assert line in got, line
    gate.open()
    once.wait_state('3rd', 'completed')
    wait_until(lambda: 'oncewrap_handler_seconds_count 3' in metrics(),
               'three runs were measured')


def crowd(t, jobs, kills, seed, on_crash, daemons=1):
    """So many accepted requests, while the oncewraps that share them are
    killed again and again; returns one when there is nothing more to do, and
    where it was said that the results are."""
    body = 'ledger "$ONCE_KEY $ONCE_DOWNSTREAM_KEY"; status 201; ' \
        'echo "$ONCE_KEY $ONCE_ATTEMPT"'
    all = []
    for i in range(daemons):
        all.append(start(
            t, body, on_crash=on_crash, name='once%d' % i,
            database=t.path('shared.db'),
            # A kill loses nothing that was not synced, and a slow disk would
            # make it a long case.
            server={'async_queue': str(jobs), 'async_workers': '4',
                    'durability': 'normal'}))
    keys = ['job%d' % i for i in range(jobs)]
    todo, places = list(keys), {}

    def accept(once, key):
        while key not in places:
            try:
                answer = once.post(key, 'body of ' + key)
            except (OSError, fcgi.Closed):
                continue        # it is dead, and will live again
            if answer.status == 202:
                places[key] = accepted(answer)
            elif answer.replayed or answer.code == 'outcome-unknown':
                places[key] = None      # that it was accepted got lost

    def client(once):
        while todo:
            try:
                key = todo.pop()
            except IndexError:
                break
            accept(once, key)
    clients = [Background(lambda i=i: client(all[i % daemons]))
               for i in range(4)]
    draw = random.Random(seed)
    for runs in sorted(draw.sample(range(1, jobs), kills)):
        wait_until(lambda: len(t.ledger()) >= runs, '%d runs' % runs)
        one = draw.choice(all)
        one.kill()
        # What it was about to start may hold its socket for a moment.
        wait_until(lambda: not listens(one), 'the socket to be closed')
        one.start()
    for one in clients:
        one.result(60)
    # One look at all: between two of them a state may change.
    wait_until(lambda: all[0].sql(
        "SELECT count(*) FROM once_key WHERE state IN ('pending', "
        "'in_progress', 'failed_retryable')") == [(0,)], 'all have ended', 60)
    return all[0], places


def listens(once):
    try:
        fcgi.Conn(once.address).close()
        return True
    except OSError:
        return False


def runs_of(t):
    """[(key, attempt, downstream)] of the ledger."""
    lines = [line.split() for line in t.ledger()]
    return [(key, int(attempt), downstream)
            for attempt, key, downstream in lines]


def each_ended_once(t, once, places, jobs):
    rows = {row['key']: row for row in once.ls()}
    eq((len(rows), {row['state'] for row in rows.values()}),
       (jobs, {'completed'}))
    runs = runs_of(t)
    # One run an attempt, all with the key's own downstream key.
    eq(len({(key, attempt) for key, attempt, _ in runs}), len(runs))
    for key, attempt, downstream in runs:
        eq(downstream, rows[key]['downstream'])
        assert attempt <= rows[key]['attempt'], (key, attempt)
    for key, place in places.items():
        if place is None:
            got = once.post(key, 'body of ' + key)
        else:
            got = result(once, place, key, 'body of ' + key)
        eq((got.status, got.replayed), (201, 'true'), got)
        # The last run's answer: no run began after it had ended.
        name, attempt = got.body.decode().split()
        eq((name, int(attempt)), (key, rows[key]['attempt']))
        assert (key, int(attempt), rows[key]['downstream']) in runs, got
    # All but those whose answer was lost with a connection.
    assert sum(place is None for place in places.values()) < jobs / 10


def test_thousand_accepted_jobs_and_ten_kills(t):
    once, places = crowd(t, 1000, 10, 5, 'resume')
    each_ended_once(t, once, places, 1000)


def test_three_processes_share_jobs_and_are_killed_ten_times(t):
    once, places = crowd(t, 500, 10, 6, 'resume', daemons=3)
    each_ended_once(t, once, places, 500)


def test_jobs_that_may_not_be_resumed_run_once_or_are_unknown(t):
    once, places = crowd(t, 200, 5, 7, 'unknown', daemons=2)
    rows = {row['key']: row for row in once.ls()}
    runs = [key for key, _, _ in runs_of(t)]
    eq(len(set(runs)), len(runs))
    eq(set(rows), set(places))
    for key, row in rows.items():
        eq(row['attempt'], 1)
        assert row['state'] == 'completed' and key in runs or \
            row['state'] == 'unknown', row
    unknown = [row for row in rows.values() if row['state'] == 'unknown']
    assert len(unknown) <= 5 * 4, unknown
