"""A retry gets the first answer: fields in order, body byte for byte."""
import datetime

from answer import eq, expires_in, first, http_date, problem, replay
from once import parallel

PATTERN = bytes(range(256)) * 256


def pattern(n):
    return (PATTERN * (n // len(PATTERN) + 1))[:n]


def once_saying(t, output, defaults=None, **kw):
    """A handler that writes exactly that output."""
    t.write('output', output)
    return t.once(handler=t.sh('ledger; exec cat "$D/output"'),
                  defaults=defaults, **kw)


def twice(t, once, key='k', **kw):
    answer = once.post(key, **kw)
    eq(answer.replayed, None, answer)
    again = once.post(key, **kw)
    replay(again, answer)
    eq(len(t.ledger()), 1)
    return answer, again


def test_fields_keep_order_repeats_and_spelling(t):
    once = once_saying(t, 'Status: 201 Made It\r\nX-b: 1\r\nX-A: 2\r\n'
                       'x-B: 3\r\nContent-Type: text/x; a="b"\r\nX-A: 2\r\n'
                       'Link: <a>; rel=b\r\nX-Empty:\r\nETag: "q"\r\n\r\nbody')
    answer, again = twice(t, once)
    for a in (answer, again):
        eq([f for f in a.fields if not f[0].startswith('Idempot')],
           [('X-b', '1'), ('X-A', '2'), ('x-B', '3'),
            ('Content-Type', 'text/x; a="b"'), ('X-A', '2'),
            ('Link', '<a>; rel=b'), ('X-Empty', ''), ('ETag', '"q"')])
        eq((a.status, a.reason), (201, 'Made It'))


def test_location_with_a_status_is_kept(t):
    once = once_saying(t, 'Status: 201\r\nLocation: /orders/7\r\n\r\n')
    answer, again = twice(t, once)
    eq((again.status, again.get('Location')), (201, '/orders/7'))


def test_set_cookie_and_date_are_dropped(t):
    date = 'Tue, 15 Nov 1994 08:12:31 GMT'
    once = once_saying(t, 'Status: 200\r\nSet-Cookie: a=1\r\nX: y\r\n'
                       'set-cookie: b=2\r\nDate: %s\r\n\r\n' % date)
    answer, again = twice(t, once)
    eq(answer.all('Set-Cookie'), ['a=1', 'b=2'], answer)
    eq(answer.all('Date'), [date], answer)
    eq((again.all('Set-Cookie'), again.all('Date')), ([], []), again)


def test_hop_by_hop_fields_are_dropped(t):
    once = once_saying(
        t, 'Status: 200\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n'
        'Keep-Alive: 5\r\nTransfer-Encoding: chunked\r\nTE: a\r\n'
        'Trailer: b\r\nUpgrade: c\r\nProxy-Authenticate: d\r\n'
        'Proxy-Connection: e\r\nX-Stays: 1\r\n\r\nbody')
    answer, again = twice(t, once)
    for a in (answer, again):
        eq([f for f in a.fields if not f[0].startswith('Idempot')],
           [('X-Stays', '1')], a)


def test_replay_drop_option(t):
    once = once_saying(t, 'Status: 200\r\nX-Trace: 1\r\nSet-Cookie: a\r\n'
                       'x-trace: 2\r\nX-Stays: 1\r\n\r\n',
                       {'replay_drop': 'X-Trace, X-None'})
    answer = once.post('k')
    again = once.post('k')
    eq(answer.all('X-Trace'), ['1', '2'], answer)
    eq((again.all('X-Trace'), again.all('Set-Cookie'), again.get('X-Stays')),
       ([], ['a'], '1'), again)


def test_fields_of_the_contract_cannot_be_forged(t):
    once = once_saying(t, 'Status: 200\r\nIdempotent-Replayed: true\r\n'
                       'Idempotency-Expires: never\r\n\r\n')
    answer = once.post('k')
    eq(answer.all('Idempotent-Replayed'), [], answer)
    expires_in(answer, 86400)
    eq(once.post('k').all('Idempotent-Replayed'), ['true'])


def test_expires_is_told_first_and_again(t):
    once = once_saying(t, 'Status: 200\r\n\r\n', {'retention': '2h'})
    answer, again = twice(t, once)
    expires_in(answer, 7200)
    eq(again.get('Idempotency-Expires'), answer.get('Idempotency-Expires'))


def test_expires_agrees_with_oncectl(t):
    once = once_saying(t, 'Status: 200\r\n\r\n')
    answer = once.post('k')
    at = datetime.datetime.fromisoformat(
        once.row('k')['expires_at'].replace('Z', '+00:00')).timestamp()
    told = http_date(answer.get('Idempotency-Expires'))
    assert abs(told - at) <= 1.5, (told, at)


def test_binary_body(t):
    body = pattern(1024) + b'\r\n\r\n\0Status: 500\r\n'
    once = once_saying(t, b'Content-Type: a/b\r\n\r\n' + body)
    answer, again = twice(t, once)
    eq(again.body, body)


def test_empty_body(t):
    once = once_saying(t, 'Status: 204\r\n\r\n')
    answer, again = twice(t, once)
    eq(again.body, b'')


def test_lf_head(t):
    once = once_saying(t, 'Status: 201\nX-A: b\n\nbody\n')
    answer, again = twice(t, once)
    eq((again.status, again.get('X-A'), again.body), (201, 'b', b'body\n'))


def test_longest_head(t):
    """What oncewrap adds has room beside it."""
    head = 'Status: 201\r\n' + 60 * ('X-Fill: %s\r\n' % ('a' * 1070))
    fill = 65536 - len(head) - len('X-Last: \r\n\r\n')
    once = once_saying(t, head + 'X-Last: %s\r\n\r\nbody' % ('b' * fill))
    answer, again = twice(t, once)
    eq(len(answer.all('X-Fill')), 60)
    eq((again.status, len(again.get('X-Last')), again.body),
       (201, fill, b'body'))
    for field in ('Idempotency-Expires', 'Idempotent-Replayed'):
        assert again.get(field), field


def test_content_length_of_the_handler(t):
    once = once_saying(t, 'Status: 200\r\nContent-Length: 4\r\n\r\nbody')
    answer, again = twice(t, once)
    eq((answer.all('Content-Length'), again.all('Content-Length')),
       (['4'], ['4']))


def large(t, n):
    once = t.once(handler=t.program('large.py'),
                  defaults={'directory': t.dir})
    answer = once.post('k', query=str(n))
    eq(answer.status, 200)
    assert answer.body == pattern(n), len(answer.body)
    return once, answer


def test_bodies_around_64k(t):
    once = t.once(handler=t.program('large.py'),
                  defaults={'directory': t.dir})
    for n in (65535, 65536, 65537):
        answer = once.post('k%d' % n, query=str(n))
        assert answer.body == pattern(n), len(answer.body)
        replay(once.post('k%d' % n, query=str(n)), answer)
    eq(len(t.ledger()), 3)


def test_body_of_16m(t):
    n = 16 * 1024 * 1024
    once, answer = large(t, n)
    replay(once.post('k', query=str(n)), answer)
    eq(len(t.ledger()), 1)


def test_body_above_max_response_is_sent_once_and_never_runs_again(t):
    n = 16 * 1024 * 1024 + 1
    once, answer = large(t, n)
    for _ in range(2):
        document = problem(once.post('k', query=str(n)), 'response-not-kept',
                           more=('original_status', 'completed_at'))
        eq(document['original_status'], 200)
    eq((once.state('k'), len(t.ledger())), ('completed', 1))


def test_answers_that_name_a_file_are_not_kept(t):
    for n, name in enumerate(('X-Sendfile', 'X-LIGHTTPD-send-file',
                              'X-Accel-Redirect', 'x-sendfile')):
        once = once_saying(t, 'Status: 200\r\n%s: /tmp/file\r\n\r\n' % name)
        answer = once.post('k%d' % n)
        first(answer, 200)
        eq(answer.get(name), '/tmp/file', answer)
        problem(once.post('k%d' % n), 'response-not-kept',
                more=('original_status', 'completed_at'))
        eq(once.state('k%d' % n), 'completed')
        once.stop()
    eq(len(t.ledger()), n + 1)


def test_local_redirect_is_handed_on_as_it_is(t):
    once = once_saying(t, 'Location: /elsewhere?x=1\r\n\r\n')
    for _ in range(2):
        answer = once.post('k')
        assert b'status' not in answer.raw.lower(), answer.raw
        eq((answer.get('Location'), answer.body), ('/elsewhere?x=1', b''))
    eq((once.state('k'), len(t.ledger())), ('completed', 1))


def test_head_gets_the_fields_without_the_body(t):
    once = once_saying(t, 'Status: 200\r\nX-A: b\r\n\r\nbody',
                       {'methods': 'HEAD'})
    for replayed in (None, 'true'):
        answer = once.request('HEAD', key='k')
        eq((answer.status, answer.body, answer.get('X-A'), answer.replayed),
           (200, b'', 'b', replayed), answer)
    eq(len(t.ledger()), 1)


def test_retries_after_many_new_keys(t):
    """A store may expect the next key to be new, too."""
    once = once_saying(t, 'Content-Type: text/plain\n\nhello')
    first_ones = [once.post('k%d' % i, b'body') for i in range(24)]
    replay(once.post('k5', b'body'), first_ones[5])
    for i in range(24, 48):
        once.post('k%d' % i, b'body')
    problem(once.post('k30', b'another body'), 'key-reused')
    for i in range(48, 72):
        once.post('k%d' % i, b'body')
    for i in range(24):
        replay(once.post('k%d' % i, b'body'), first_ones[i])
    eq(len(t.ledger()), 72)


def test_answer_survives_a_restart(t):
    once = once_saying(t, b'Status: 200\r\nX: y\r\n\r\n' + pattern(100000))
    answer = once.post('k')
    once.stop()
    once.start()
    replay(once.post('k'), answer)
    eq(len(t.ledger()), 1)


def test_replay_needs_no_handler(t):
    once = once_saying(t, 'Status: 200\r\n\r\nbody')
    answer = once.post('k')
    once.defaults['handler'] = t.path('gone')
    once.write_conf()
    once.stop()
    once.start()
    replay(once.post('k'), answer)


def test_many_replays_at_once(t):
    once = once_saying(t, b'Status: 200\r\n\r\n' + pattern(300000))
    answer = once.post('k')

    for again in parallel([lambda: once.post('k')] * 40):
        replay(again, answer)
    eq(len(t.ledger()), 1)


def test_the_client_going_away_changes_nothing(t):
    gate = t.gate()
    t.write('output', b'Status: 201\r\n\r\n' + pattern(200000))
    once = t.once(handler=t.sh('ledger; gate gate; cat "$D/output"'))
    conn = once.begin('k')
    gate.wait()
    conn.close()
    gate.open()
    once.wait_state('k', 'completed')
    answer = once.post('k')
    eq((answer.status, answer.replayed), (201, 'true'), answer)
    assert answer.body == pattern(200000)
    eq(len(t.ledger()), 1)


def test_a_client_that_does_not_read_keeps_nobody(t):
    once = t.once(handler=t.program('large.py'), server={
        'workers': '2', 'io_timeout': '1h'}, defaults={'directory': t.dir})
    n = 8 * 1024 * 1024
    conns = [once.begin('k%d' % i, query=str(n)) for i in range(4)]
    for i in range(4):
        once.wait_state('k%d' % i, 'completed')
    # Were its slot kept, it would be kept for an hour.
    answer = once.post('k0', query=str(n))
    eq((answer.status, answer.replayed), (200, 'true'))
    for conn in conns:
        assert conn.answer().body == pattern(n)
