"""How much one caller may ask for: keys at once, new keys a second, and how
old a request may be."""
import datetime
import email.utils
import json
import os
import re
import time

from answer import eq, first, problem, replay, stripe
from base import wait_until
from clocks import library
from once import Background, parallel

HOLD = 'ledger "$ONCE_KEY"; gate gate; status 201; echo "$ONCE_KEY"'
SAY = 'ledger "$ONCE_KEY"; status 201; echo "$ONCE_KEY"'


def test_keys_of_a_scope_above_max_active_keys_are_turned_away(t):
    gate = t.gate()
    once = t.once(handler=t.sh(HOLD), defaults={'max_active_keys': '2'})
    running = [Background(lambda k=k: once.post(k, user='ann'))
               for k in ('a', 'b')]
    gate.wait(), gate.wait()
    answer = once.post('c', user='ann')
    problem(answer, 'too-many-keys')
    eq(answer.get('Retry-After'), '1')
    eq(once.row('c'), None)
    problem(once.post('a', user='ann'), 'key-in-progress')
    # Another caller is not held up.
    bob = Background(lambda: once.post('c', user='bob'))
    gate.wait()
    gate.open(3)
    for i, k in enumerate(('a', 'b')):
        first(running[i].result(), 201, k.encode() + b'\n')
    first(bob.result(), 201)
    gate.open()
    answer = once.post('c', user='ann')
    first(answer, 201)
    replay(once.post('c', user='ann'), answer)
    eq(sorted(t.ledger()), ['1 a', '1 b', '1 c', '1 c'])


def test_client_without_a_name_closes_no_route_for_others(t):
    """Only an address on one route is turned away, by each of the limits."""
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; [ "$QUERY_STRING" = hold ] || exit 1\n'
                               'gate gate; status 201'),
                  server={'workers': '4', 'admin_path': '/admin'},
                  defaults={'scope': 'none', 'max_open_keys': '2'},
                  routes={'/one': {'max_active_keys': '1'},
                          '/two': {'max_active_keys': '1'},
                          '/rate': {'key_rate': '1'},
                          '/named': {'scope': 'REMOTE_USER'}})
    mine, other = '192.0.2.7', '192.0.2.8'
    mapped = '::ffff:192.0.2.7'
    for key in ('a', 'b'):
        eq(once.get('/admin/health').body, b'ok\n')
        once.post(key, address=mine)
        eq(once.state(key), 'unknown')
    line = 'too-many-keys route=- caller=192.0.2.7'
    for address in (mine, mapped):
        eq(once.get('/admin/health').body.decode(), 'ok\n%s\n' % line)
        problem(once.post('c', address=address), 'too-many-keys')
    eq(once.get('/admin/health').body.decode(), 'ok\n%s\n' % line)
    assert line in once.get('/admin/').body.decode()
    said, = once.log_lines('event=refused')
    assert 'level=warn' in said, said
    assert ' route=- caller=192.0.2.7 ' in said, said
    for i, address in enumerate((other, '2001:db8::1', 'unix:', '')):
        eq(once.post('o%d' % i, address=address).code, 'handler-failed')
    # Another route; and all addresses of an IPv6 network are one caller.
    eq(once.post('n', address=mine, path='/one').code, 'handler-failed')
    eq(once.post('o', address='2001:db8::2').code, 'handler-failed')
    problem(once.post('p', address='2001:db8::ffff:1'), 'too-many-keys')
    eq(once.post('p', address='2001:db8:0:1::1').code, 'handler-failed')
    # A caller with a name is the same from any address.
    for i, address in enumerate((mine, other)):
        once.post('u%d' % i, address=address, path='/named', user='ann')
    problem(once.post('u', address='192.0.2.9', path='/named', user='ann'),
            'too-many-keys')
    eq(once.post('u', address=mine, path='/named', user='bob').code,
       'handler-failed')
    eq(once.post('v', address=mine, path='/named').code, 'handler-failed')

    held = Background(lambda: once.post('h', address=mine, path='/one',
                                        query='hold'))
    gate.wait()
    problem(once.post('i', address=mine, path='/one'), 'too-many-keys')
    eq(once.post('i', address=other, path='/one').code, 'handler-failed')
    eq(once.post('i', address=mine, path='/two').code, 'handler-failed')
    gate.open()
    first(held.result(), 201)

    statuses = {once.post('r%d' % i, address=mine, path='/rate').status
                for i in range(10)}
    assert 429 in statuses, statuses
    eq(once.post('r', address=other, path='/rate').code, 'handler-failed')


def test_max_active_keys_holds_for_all_processes_and_all_at_once(t):
    gate = t.gate()
    handler = t.sh(HOLD)
    once = [t.once(handler=handler, name='once%d' % i,
                   database=t.path('shared.db'),
                   defaults={'max_active_keys': '3'}) for i in range(2)]
    answers = Background(lambda: parallel([
        lambda i=i: once[i % 2].post('k%d' % i) for i in range(12)]))
    for _ in range(3):
        gate.wait()
    # Nine are turned away while three run.
    wait_until(lambda: sum(
        len(o.log_lines('event=problem .*code=too-many-keys'))
        for o in once) == 9, 'nine are turned away')
    assert not gate.came()
    gate.open(3)
    statuses = sorted(a.status for a in answers.result())
    eq(statuses, [201] * 3 + [429] * 9)
    eq(len(t.ledger()), 3)


def test_released_key_is_turned_away_too(t):
    gate = t.gate()
    once = t.once(handler=t.sh('[ "$ONCE_KEY" = hold ] && gate gate; '
                               'status 503'),
                  defaults={'max_active_keys': '1'})
    first(once.post('again'), 503)
    held = Background(lambda: once.post('hold'))
    gate.wait()
    problem(once.post('again'), 'too-many-keys', acted=True)
    eq(once.row('again')['attempt'], 1)
    gate.open()
    held.result()
    first(once.post('again'), 503)
    eq(once.row('again')['attempt'], 2)


def test_new_keys_above_key_rate_are_turned_away(t):
    once = t.once(handler=t.sh(SAY), routes={
        '/slow': {'key_rate': '2'}, '/free': {}})
    began = time.monotonic()
    answers = parallel([lambda i=i: once.post('k%d' % i, path='/slow',
                                              user='ann')
                        for i in range(20)])
    took = time.monotonic() - began
    ran = [a for a in answers if a.status == 201]
    assert 2 <= len(ran) <= 2 + 2 * (took + 0.01), (len(ran), took)
    for answer in answers:
        if answer.status != 201:
            problem(answer, 'too-many-keys')
            eq(answer.get('Retry-After'), '1')
    eq(len(t.ledger()), len(ran))
    # Known keys, other scopes and other routes are not counted.
    known = ran[0].body.decode().strip()
    for _ in range(5):
        replay(once.post(known, path='/slow', user='ann'), ran[0])
    first(once.post('k', path='/slow', user='bob'), 201)
    for i in range(5):
        first(once.post('f%d' % i, path='/free', user='ann'), 201)
    # What was turned away has its turn.
    late = wait_until(
        lambda: (lambda a: a if a.status == 201 else None)(
            once.post('late', path='/slow', user='ann')), 'its turn')
    first(late, 201)


def test_caller_that_is_refused_again_and_again_is_named_once_a_minute(t):
    """Though it gets keys in between."""
    once = t.once(handler=t.sh(SAY), server={'admin_path': '/admin'},
                  defaults={'key_rate': '2'})
    line = 'too-many-keys route=- caller=192.0.2.7\n'
    keys = iter(range(10000))

    def until(status):
        wait_until(lambda: once.post('k%d' % next(keys), user='',
                                     address='192.0.2.7').status == status,
                   'a %d' % status)
    until(429)
    until(201)
    eq(once.get('/admin/health').body, b'ok\n')
    until(429)
    for _ in range(2):
        until(201)
        eq(once.get('/admin/health').body.decode(), 'ok\n' + line)
    until(429)
    eq(len(once.log_lines('event=refused')), 1)


def test_run_again_does_not_count_for_key_rate(t):
    once = t.once(handler=t.sh('status 503'), defaults={'key_rate': '1'})
    first(once.post('k'), 503)
    for _ in range(5):
        first(once.post('k'), 503)
    eq(once.row('k')['attempt'], 6)


def stamp(seconds, rfc3339=False):
    then = time.time() + seconds
    if rfc3339:
        return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(then))
    return email.utils.formatdate(then, usegmt=True)


def test_request_that_is_too_old_or_undated_is_refused(t):
    once = t.once(handler=t.sh(SAY), defaults={
        'max_request_age': '1h', 'request_timestamp': 'X-Sent-At'},
        routes={'/any': {'max_request_age': '0'}})

    def post(key, date, **kw):
        headers = {} if date is None else {'X-Sent-At': date}
        return once.post(key, headers=headers, **kw)
    for i, date in enumerate((stamp(0), stamp(-3500), stamp(3500),
                              stamp(-60, True))):
        first(post('good%d' % i, date), 201)
    bad = (None, '', 'today', stamp(-3700), stamp(3700), stamp(-3700, True),
           '1994-11-06T08:49:37Z', '%d' % time.time(),
           '%s, %s' % (stamp(0, True), stamp(0, True)))
    for i, date in enumerate(bad):
        answer = post('bad%d' % i, date)
        problem(answer, 'request-too-old')
        eq(once.row('bad%d' % i), None)
    first(post('any', None, path='/any'), 201)
    # What is not guarded is not asked.
    first(once.get(), 201)
    eq(len(t.ledger()), 6)


def test_a_duplicate_that_becomes_too_old_in_the_queue_gets_the_answer(t):
    gate = t.gate()
    once = t.once(handler=t.sh(HOLD),
                  server={'workers': '1', 'admin_path': '/once'},
                  defaults={'max_request_age': '1h', 'concurrent': 'wait',
                            'request_timestamp': 'X-Sent-At'})
    other = Background(lambda: once.post('o', headers={'X-Sent-At': stamp(0)}))
    gate.wait()
    one = Background(lambda: once.post('k', headers={'X-Sent-At': stamp(0)}))
    once.wait_gauge('programs_waiting', 1)
    sent = time.time()
    two = Background(
        lambda: once.post('k', headers={'X-Sent-At': stamp(-3595)}))
    once.wait_gauge('programs_waiting', 2)
    gate.open()
    first(other.result(), 201)
    gate.wait()
    wait_until(lambda: time.time() > sent + 7, 'it is too old')
    gate.open()
    first(one.result(), 201)
    replay(two.result(), one.result())
    eq(len(t.ledger()), 2)


def test_only_a_request_that_would_run_can_be_too_old(t):
    gate = t.gate()
    once = t.once(handler=t.sh(
        'case $QUERY_STRING in held) gate gate; status 201;;\n'
        'lost) kill -9 $$;; busy) status 503;; *) ledger; status 201;; esac'),
        defaults={'max_request_age': '1h',
                  'request_timestamp': 'X-Sent-At'},
        routes={'/short': {'retention': '1ms'},
                '/gone': {'retention': '1ms', 'on_expired': 'gone'}})

    def post(key, date, **kw):
        return once.post(
            key, headers={'X-Sent-At': date} if date else {}, **kw)
    answer = post('k', stamp(0))
    first(answer, 201)
    held = Background(lambda: post('held', stamp(0), query='held'))
    gate.wait()
    problem(post('lost', stamp(0), query='lost'), 'handler-failed',
            unknown=True)
    first(post('gone', stamp(0), path='/gone'), 201)
    wait_until(lambda: post('gone', stamp(0), path='/gone').status == 410,
               'the answer is past its retention')
    for date in (stamp(-3700), None, 'today', stamp(3700)):
        replay(post('k', date), answer)
        problem(post('k', date, body='other'), 'key-reused')
        problem(post('held', date, query='held'), 'key-in-progress')
        problem(post('lost', date, query='lost'), 'outcome-unknown')
        problem(post('gone', date, path='/gone'), 'key-expired')
    gate.open()
    first(held.result(), 201)
    # These would run: a key that was released, and one that was deleted.
    first(post('busy', stamp(0), query='busy'), 503)
    problem(post('busy', stamp(-3700), query='busy'), 'request-too-old',
            acted=True)
    eq(once.row('busy')['attempt'], 1)
    first(post('short', stamp(0), path='/short'), 201)
    wait_until(lambda: post('short', stamp(-3700), path='/short').code ==
               'request-too-old', 'the answer is past its retention')
    eq(len(t.ledger()), 3)


def test_a_request_that_is_too_old_does_not_count_for_key_rate(t):
    once = t.once(handler=t.sh('status 201'), defaults={
        'max_request_age': '1h', 'request_timestamp': 'X-Sent-At',
        'key_rate': '1'})
    for i in range(5):
        problem(once.post('old%d' % i, headers={'X-Sent-At': stamp(-3700)}),
                'request-too-old')
    first(once.post('k', headers={'X-Sent-At': stamp(0)}), 201)


def test_too_much_in_the_dialect_of_stripe(t):
    gate = t.gate()
    once = t.once(handler=t.sh(HOLD), server={'dialect': 'stripe'}, defaults={
        'max_active_keys': '1', 'max_request_age': '1h',
        'request_timestamp': 'Date'})
    now = {'Date': stamp(0)}
    stripe(once.post('k'), 'request-too-old')
    held = Background(lambda: once.post('k', headers=now))
    gate.wait()
    stripe(once.post('l', headers=now), 'too-many-keys')
    gate.open()
    first(held.result(), 201)


def test_accepted_requests_are_limited_where_they_are_accepted(t):
    gate = t.gate()
    once = t.once(handler=t.sh(HOLD), server={'status_path': '/jobs'},
                  defaults={'max_active_keys': '1', 'async': 'always'})
    eq(once.post('k').status, 202)
    gate.wait()
    problem(once.post('l'), 'too-many-keys')
    eq(once.row('l'), None)
    eq(once.post('k').status, 202)
    gate.open(2)
    once.wait_state('k', 'completed')
    eq(once.post('l').status, 202)
    once.wait_state('l', 'completed')
    eq(sorted(t.ledger()), ['1 k', '1 l'])


# --- what one caller may leave open, and what is kept for all ---


def test_new_key_of_a_caller_with_many_open_outcomes_is_turned_away(t):
    once = t.once(handler=t.sh('ledger; exit 1'),
                  defaults={'max_open_keys': '2'},
                  routes={'/free': {'max_open_keys': '0'}})
    for key in ('a', 'b'):
        once.post(key, user='ann')
        eq(once.state(key), 'unknown')
    answer = once.post('c', user='ann')
    problem(answer, 'too-many-keys')
    assert int(answer.get('Retry-After')) > 0, str(answer)
    eq((once.row('c'), len(t.ledger())), (None, 2))
    problem(once.post('a', user='ann'), 'outcome-unknown')
    once.post('c', user='bob')
    once.post('d', user='ann', path='/free')
    eq(len(t.ledger()), 4)
    for key in ('a', 'b', 'd'):
        once.ctl('resolve', key, '--not-executed')
    once.post('c', user='ann')
    eq(len(t.ledger()), 5)


def doctor(once, *names, **kw):
    """[ok, text] for each name, as doctor says."""
    lines = once.ctl('-f', once.file, 'doctor', '--json', **kw).splitlines()
    found = {f['name']: [f['ok'], f['text']] for f in map(json.loads, lines)}
    return [found[name] for name in names]


def test_callers_at_max_open_keys_are_named_after_a_restart(t):
    """By health, the page and doctor, until their keys are settled."""
    once = t.once(handler=t.sh('exit 1'), server={'admin_path': '/admin'},
                  defaults={'max_open_keys': '2', 'scope': 'REMOTE_USER'},
                  routes={'/free': {'max_open_keys': '0'},
                          '/more': {'max_open_keys': '3'}})
    mine, other = '192.0.2.7', '192.0.2.8'
    for key in ('a', 'b'):
        once.post(key, address=mine)
        once.post('f' + key, address=mine, path='/free')
        once.post('m' + key, address=other, path='/more')
    once.post('c', address=other)
    eq(doctor(once, 'max_open_keys', status=1),
       [[False, '1 caller is at it: route=- caller=192.0.2.7: new keys get '
         '429 until "oncectl resolve" settles old ones']])
    once.stop()
    once.start()
    line = 'too-many-keys route=- caller=192.0.2.7'
    eq(once.get('/admin/health').body.decode(), 'ok\n%s\n' % line)
    assert line in once.get('/admin/').body.decode()
    once.post('mc', address=other, path='/more')
    eq(sorted(once.get('/admin/health').body.decode().splitlines()),
       ['ok', line, 'too-many-keys route=/more caller=192.0.2.8'])
    assert doctor(once, 'max_open_keys', status=1)[0][1].startswith(
        '2 callers are at it: route=')
    for key in ('a', 'ma'):
        once.ctl('resolve', key, '--not-executed')
    eq(once.get('/admin/health').body.decode(), 'ok\n')
    eq(doctor(once, 'max_open_keys', status=1),
       [[True, 'no caller is at it']])


def test_callers_beyond_what_one_look_reads_are_named_in_turn(t):
    once = t.once(handler=t.sh('exit 1'), server={'admin_path': '/admin'},
                  defaults={'max_open_keys': '1'})
    for i in range(70):
        once.post('k', user='u%d' % i)
    seen = set()
    for _ in range(2):
        lines = once.get('/admin/health').body.decode().splitlines()
        assert len(lines) <= 65, lines
        seen |= set(lines[1:])
    eq(len(seen), 70)
    assert doctor(once, 'max_open_keys', status=1)[0][1].startswith(
        '70 callers are at it: route=- caller=')


def test_doctor_tells_who_is_at_a_limit_of_the_moment(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server={'async_workers': '1', 'async_queue': '4',
                          'status_path': '/jobs'},
                  routes={'/now': {'max_active_keys': '1'},
                          '/later': {'async': 'always'}})
    eq(doctor(once, 'max_active_keys', 'async_queue'),
       [[True, 'no caller is at it']] * 2)
    held = Background(lambda: once.post('h', path='/now',
                                        address='192.0.2.7'))
    gate.wait()
    eq(once.post('run', path='/later').status, 202)
    gate.wait()
    until = 'what is to be accepted gets 503 until a handler begins'
    for i, address in enumerate(('192.0.2.8', '192.0.2.8', '192.0.2.9')):
        eq(once.post('q%d' % i, path='/later', address=address).status, 202)
    eq(doctor(once, 'max_active_keys', 'async_queue'),
       [[True, '1 caller is at it: route=/now caller=192.0.2.7: new keys get '
         '429 until a handler ends'],
        [True, '1 caller is at it: caller=192.0.2.8: ' + until]])
    eq(once.post('q', path='/later', address='192.0.2.9').status, 202)
    eq(doctor(once, 'async_queue'),
       [[True, '4 keys wait: for all callers, ' + until]])
    gate.open(6)
    first(held.result(), 201)
    wait_until(lambda: all(row['state'] == 'completed' for row in once.ls()),
               'all have run')


def test_request_that_cannot_be_kept_is_not_begun(t):
    once = t.once(handler=t.sh('ledger; exit 1'),
                  server={'max_kept': '100K', 'status_path': '/jobs'},
                  defaults={'reconcile': '/bin/false',
                            'reconcile_after': '1h'},
                  routes={'/job': {'async': 'always'},
                          '/plain': {'reconcile_attempts': '1'}})
    body = b'x' * 60_000
    once.post('a', body)
    eq(once.state('a'), 'unknown')
    kept = int(re.search(r'^oncewrap_kept_bytes (\d+)$',
                         once.ctl('metrics'), re.M).group(1))
    assert 60_000 < kept < 70_000, kept
    problem(once.post('b', body), 'overloaded')
    problem(once.post('b', body, path='/job'), 'overloaded')
    eq((once.row('b'), len(t.ledger())), (None, 1))
    once.ctl('resolve', 'a', '--not-executed')
    once.post('b', body)
    eq((once.state('b'), len(t.ledger())), ('unknown', 2))


def test_requests_of_one_caller_fill_half_of_max_kept(t):
    """On whatever routes, whatever has become of them; one alone takes all."""
    gate = t.gate()
    once = t.once(handler=t.sh('[ "$QUERY_STRING" = hold ] && gate gate\n'
                               'exit 1'),
                  server={'max_kept': '100K', 'async_workers': '1',
                          'status_path': '/jobs', 'admin_path': '/admin'},
                  defaults={'scope': 'none', 'reconcile': '/bin/false',
                            'reconcile_after': '1h'},
                  routes={'/later': {'async': 'always'}})
    mine, other = '192.0.2.7', '192.0.2.8'
    body = b'x' * 14000
    eq(once.post('open', body, address=mine).code, 'handler-failed')
    held = Background(lambda: once.post('held', body, address=mine,
                                        query='hold'))
    gate.wait()
    eq(once.post('run', body, path='/later', address=other,
                 query='hold').status, 202)
    gate.wait()
    eq(once.post('wait', body, path='/later', address=mine).status, 202)
    for path in ('/pay', '/later'):
        problem(once.post('more', body, path=path, address=mine),
                'overloaded')
        eq(once.row('more'), None)
    eq(once.get('/admin/health').body.decode(), 'ok\n' + ''.join(
        'overloaded max_kept route=%s caller=192.0.2.7\n' % route
        for route in ('-', '/later')))
    eq(once.post('other', body, address=other).code, 'handler-failed')
    problem(once.post('all', body * 3, address='192.0.2.9'), 'overloaded')
    assert 'overloaded max_kept\n' in once.get('/admin/health').body.decode()
    once.ctl('resolve', 'open', '--not-executed')
    eq(once.post('more', body, address=mine).code, 'handler-failed')
    gate.open(2)
    eq(held.result().code, 'handler-failed')
    wait_until(lambda: all(row['state'] == 'unknown' for row in once.ls()
                           if row['key'] != 'open'), 'all have run')
    for row in once.ls():
        once.ctl('forget', row['key'])
    eq(once.post('alone', body * 6, address=mine).code, 'handler-failed')
    problem(once.post('small', b'x', address=mine), 'overloaded')
    eq(once.post('small', b'x', address=other).code, 'handler-failed')


def test_body_to_be_kept_is_at_most_16m(t):
    once = t.once(handler=t.sh('ledger; status 201'),
                  server={'status_path': '/jobs'},
                  defaults={'max_request_body': '64M'},
                  routes={'/job': {'async': 'prefer'},
                          '/find': {'reconcile': '/bin/false'}})
    body = b'x' * (16 * 1024 * 1024 + 1)
    problem(once.post('a', body, path='/find'), 'body-too-large')
    problem(once.post('b', body, path='/job',
                      headers={'Prefer': 'respond-async'}), 'body-too-large')
    eq((once.ls(), t.ledger()), ([], []))
    first(once.post('b', body, path='/job'), 201)
    first(once.post('a', body[1:], path='/find'), 201)


def test_client_without_a_name_fills_half_of_the_queue(t):
    """On however many routes, and with however many keys."""
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server={'async_workers': '1', 'async_queue': '4',
                          'status_path': '/jobs'},
                  defaults={'async': 'always'}, routes={'/two': {}})
    eq(once.post('run').status, 202)
    gate.wait()
    eq(once.post('a').status, 202)
    eq(once.post('b', path='/two').status, 202)
    problem(once.post('c'), 'overloaded')
    problem(once.post('c', path='/two'), 'overloaded')
    eq(once.post('c', address='192.0.2.7').status, 202)
    gate.open(4)
    wait_until(lambda: all(row['state'] == 'completed' for row in once.ls()),
               'all have run')


def test_one_caller_fills_half_of_the_queue(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server={'async_workers': '1', 'async_queue': '4',
                          'status_path': '/jobs'},
                  defaults={'async': 'always'})
    eq(once.post('run', user='ann').status, 202)
    gate.wait()
    for key in ('a', 'b'):
        eq(once.post(key, user='ann').status, 202)
    problem(once.post('c', user='ann'), 'overloaded')
    for key in ('c', 'd'):
        eq(once.post(key, user='bob').status, 202)
    problem(once.post('e', user='eve'), 'overloaded')
    gate.open(5)
    wait_until(lambda: all(row['state'] == 'completed' for row in once.ls()),
               'all have run')


def test_keys_of_one_caller_do_not_hold_up_anothers_reconciliation(t):
    gate = t.gate()
    once = t.once(handler=t.sh('exit 1'), server={'reconcile_workers': '2'},
                  defaults={
                      'reconcile': t.sh(
                          '[ "$ONCE_SCOPE" = ann ] && gate gate; '
                          'echo Idempotency-Outcome: completed; status 201',
                          'reconciler'),
                      'reconcile_after': '1s'})
    for i in range(20):
        once.post('k%d' % i, user='ann')
    once.post('mine', user='bob')
    gate.wait()
    gate.wait()
    # On a busy machine the first of ann's are due before bob's is there.
    due = once.row('mine')['reconcile_after']
    wait_until(lambda: due is None or datetime.datetime.now(
        datetime.timezone.utc) > datetime.datetime.fromisoformat(due),
        'it is due')
    gate.open(1)
    once.wait_state('mine', 'completed')
    done = [row for row in once.ls() if row['state'] == 'completed']
    assert len(done) <= 3, done
    gate.open(25)


LIMITS = ('max_open_keys', 'max_active_keys')


def test_limits_that_a_reload_lowers_hold_at_once(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; exit 1'),
                  server={'max_kept': '1M', 'status_path': '/jobs'},
                  defaults=dict.fromkeys(LIMITS, '10'),
                  routes={'/later': {'async': 'always'}})
    for key in ('a', 'b'):
        run = Background(lambda key=key: once.post(key, user='ann'))
        gate.wait()
        gate.open()
        run.result()
    runs = [Background(lambda i=i: once.post('r%d' % i, user='bob'))
            for i in range(2)]
    for _ in runs:
        gate.wait()
    for limit in LIMITS:
        once.defaults[limit] = '2'
    once.server['max_kept'] = '1K'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    problem(once.post('c', user='ann'), 'too-many-keys')
    problem(once.post('c', user='bob'), 'too-many-keys')
    problem(once.post('c', b'x' * 2000, path='/later', user='eve'),
            'overloaded')
    eq((once.row('c'), len(t.ledger())), (None, 4))
    gate.open(2)
    for run in runs:
        run.result()


def test_open_keys_exceed_their_limit_by_no_more_than_what_ran_at_once(t):
    """32 clients of one caller and two processes; other callers are free."""
    workers = 8
    handler = t.sh('ledger; exit 1')
    nodes = []
    for name in ('one', 'two'):
        nodes.append(t.once(handler=handler, name=name,
                            database=t.path('once.db'),
                            server={'workers': str(workers)},
                            defaults={'max_open_keys': '3'}))

    def client(i):
        for n in range(4):
            nodes[(i + n) % 2].post('k%d.%d' % (i, n), user='ann')
    parallel([lambda i=i: client(i) for i in range(32)])
    open_keys = len([r for r in nodes[0].ls() if r['state'] == 'unknown'])
    assert 3 <= open_keys <= 3 + 2 * workers, open_keys
    eq(len(t.ledger()), open_keys)
    problem(nodes[1].post('more', user='ann'), 'too-many-keys')
    for i in range(3):
        eq(nodes[i % 2].post('k%d' % i, user='bob').code, 'handler-failed')
    # After a restart, too.
    for node in nodes:
        node.stop()
        node.start()
        problem(node.post('more', user='ann'), 'too-many-keys')
        problem(node.post('more', user='bob'), 'too-many-keys')


def test_comparing_large_json_holds_up_no_others(t):
    gate = t.gate('hold')
    os.environ.update(LD_PRELOAD=library(t, 'hold'), HOLD_GATE=t.path('hold'))
    once = t.once(handler=t.sh(SAY),
                  server={'workers': 2, 'admin_path': '/once',
                          'busy_timeout': '10m'},
                  routes={'/id': {'key_from': 'json:/id'}})
    large = {'type': 'application/json',
             'body': '{"id":"d","a":"%s"}' % ('x' * 15000000)}
    small = {'type': 'application/json', 'body': '{"id":"small"}'}
    answer = once.post('small', **small)
    first(answer, 201)
    first(once.post(path='/id', **small), 201)
    # One body has all of the memory, the others wait for it.
    a = once.begin('a', **large)
    gate.wait()
    b = once.begin('b', **large)
    once.wait_gauge('json_waiting', 1)
    c = once.begin('c', address='192.0.2.8', **large)
    once.wait_gauge('json_waiting', 2)
    d = once.begin(path='/id', **large)
    once.wait_gauge('json_waiting', 3)
    eq(once.get('/other').status, 201)
    replay(once.post('small', **small), answer)
    first(once.post('small2', **small), 201)
    # Callers have their turns.  The key is found, and the request compared, by
    # one reading of the body.
    for conn in (a, c, b, d):
        gate.open()
        first(conn.answer(), 201)
        if conn is not d:
            gate.wait()
    assert not gate.came()
    once.wait_gauge('json_waiting', 0)
    eq(t.ledger(), ['1 small', '1 small', ' ', '1 small2', '1 a', '1 c',
                    '1 b', '1 d'])
    once.stop()
    once = t.once(handler=t.sh(SAY), name='hasty',
                  server={'workers': 4, 'busy_timeout': '100ms',
                          'admin_path': '/once'},
                  routes={'/id': {'key_from': 'json:/id'}})
    conn = once.begin('a', **large)
    gate.wait()
    problem(once.post('b', **large), 'overloaded', acted=True)
    problem(once.post('b', path='/id', **large), 'overloaded', acted=True)
    eq(once.get('/once/health').body.decode(), 'ok\n' + ''.join(
        'overloaded json route=%s caller=127.0.0.1\n' % route
        for route in ('-', '/id')))
    eq(len(once.log_lines('event=refused .* limit=json ')), 2)
    gate.open()
    first(conn.answer(), 201)
    eq(once.row('b'), None)


def test_store_that_is_full_takes_no_new_key_and_answers_all_others(t):
    once = t.once(handler=t.sh(
        '[ "$QUERY_STRING" = busy ] && { status 503; exit; }\n'
        'ledger; status 201; head -c 200000 /dev/urandom'),
        server={'max_store': '2M', 'sweep_interval': '50ms',
                'admin_path': '/admin'})

    def used():
        return int(re.search(r'^oncewrap_store_bytes (\d+)$',
                             once.ctl('metrics'), re.M).group(1))
    first(once.post('busy', query='busy'), 503)
    answers = []

    def full():
        answer = once.post('k%d' % len(answers), user='ann')
        if answer.status != 201:
            problem(answer, 'overloaded')
            return True
        answers.append(answer)
        assert len(answers) < 100
        return False
    wait_until(full, 'the store is full')
    assert used() > 2 << 20, used()
    ran = len(t.ledger())
    problem(once.post('new', user='bob'), 'overloaded')
    eq((once.row('new'), len(t.ledger())), (None, ran))
    replay(once.post('k0', user='ann'), answers[0])
    first(once.post('busy', query='busy'), 503)     # a known key
    eq(once.row('busy')['attempt'], 2)
    eq(once.get('/admin/health').body, b'ok\noverloaded max_store\n')
    (ok, text), = doctor(once, 'max_store', status=1)
    assert not ok and re.fullmatch(
        r'\d+ of 2097152 bytes: for all callers, new keys get 503; replays '
        r'and outcomes go on: make room, or raise it', text), text
    once.server['max_store'] = '1G'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    first(once.post('new', user='bob'), 201)
    eq(once.get('/admin/health').body, b'ok\n')
    eq(doctor(once, 'max_store')[0][0], True)
