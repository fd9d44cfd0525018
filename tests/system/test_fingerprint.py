"""What makes two requests the same request."""
from answer import eq, first, problem, replay

OK = 'ledger; status 201; echo done'
JSON = {'type': 'application/json'}


def once_with(t, **defaults):
    return t.once(handler=t.sh(OK), defaults=defaults)


def same(once, key, one, two):
    """Requests one and two (arguments of post) are the same."""
    answer = once.post(key, **one)
    first(answer, 201)
    replay(once.post(key, **two), answer)


def differ(once, key, one, two):
    first(once.post(key, **one), 201)
    problem(once.post(key, **two), 'key-reused')


def test_same_json_value(t):
    once = once_with(t)
    for n, (one, two) in enumerate((
            ('{"a":1,"b":2}', ' { "b" : 2 , "a" : 1 } '),
            ('[1]', '[1.0]'), ('[1]', '[10e-1]'), ('[1]', '[0.1E+1]'),
            ('[100]', '[1e2]'), ('[0]', '[-0.0e9]'),
            ('[0.1]', '[1e-1]'), ('[1e400]', '[10e399]'),
            ('[123456789012345678901234567890]',
             '[1.2345678901234567890123456789e29]'),
            (r'["\u00e9\/\n"]', '["\u00e9/\\u000a"]'),
            (r'["\ud83d\ude00"]', '["\U0001f600"]'),
            ('"a"', '\n"a"\n'), ('null', ' null'),
            (r'{"\u0061":[]}', '{"a":[ ]}'),
            ('[' * 128 + ']' * 128, '[' * 128 + ' ' + ']' * 128))):
        same(once, 'k%d' % n, dict(body=one, **JSON), dict(body=two, **JSON))
    eq(len(t.ledger()), n + 1)


def test_other_json_value(t):
    once = once_with(t)
    for n, (one, two) in enumerate((
            ('{"a":1}', '{"a":2}'), ('[1,2]', '[2,1]'), ('[1]', '["1"]'),
            ('[9007199254740993]', '[9007199254740992]'),
            ('[0.1]', '[0.10000000000000000001]'),
            ('[1e400]', '[1e401]'), ('[1]', '[-1]'),
            ('[null]', '[]'), ('{}', '[]'), ('[true]', '[1]'),
            ('{"a":null}', '{}'), ('["a"]', '["A"]'), ('[""]', '[" "]'),
            ('["\u00e9"]', '["e\u0301"]'))):
        differ(once, 'k%d' % n, dict(body=one, **JSON),
               dict(body=two, **JSON))


def test_what_is_no_i_json_counts_by_its_bytes(t):
    once = once_with(t)
    for n, (one, two) in enumerate((
            (b'{"a":1,"a":1}', b'{"a":1, "a":1}'),
            (b'["\\ud800"]', b'[ "\\ud800"]'),
            (b'["\xff"]', b'[ "\xff"]'),
            (b'[1', b'[1 '), (b'[01]', b'[ 01]'), (b'[1,]', b'[ 1,]'),
            (b'[1] x', b'[1]  x'), (b'', b' '), (b'NaN', b' NaN'),
            (b'[' * 129 + b']' * 129, b'[' * 129 + b' ' + b']' * 129))):
        differ(once, 'd%d' % n, dict(body=one, **JSON),
               dict(body=two, **JSON))
        same(once, 's%d' % n, dict(body=one, **JSON), dict(body=one, **JSON))


def test_types_that_are_json(t):
    once = once_with(t)
    for n, type in enumerate((
            'application/json', 'Application/JSON',
            'application/json; charset=utf-8', 'application/vnd.api+json',
            'application/json;q="a"')):
        same(once, 'k%d' % n, dict(body='[1]', type=type),
             dict(body='[ 1.0 ]', type=type))


def test_types_that_are_not_json(t):
    once = once_with(t)
    for n, type in enumerate(('text/plain', None, '', 'application/jsonp',
                              'text/json', 'application/x-json',
                              'application/json-seq')):
        differ(once, 'k%d' % n, dict(body='[1]', type=type),
               dict(body='[ 1]', type=type))


def test_media_type_counts_without_parameters_and_case(t):
    once = once_with(t)
    same(once, 'a', dict(body='x', type='text/plain'),
         dict(body='x', type='TEXT/Plain; charset=utf-8'))
    differ(once, 'b', dict(body='x', type='text/plain'),
           dict(body='x', type='text/html'))
    differ(once, 'c', dict(body='x', type='text/plain'), dict(body='x'))


def test_query_string_counts(t):
    once = once_with(t)
    differ(once, 'a', dict(query='x=1'), dict(query='x=2'))
    differ(once, 'b', dict(query='x=1&y=2'), dict(query='y=2&x=1'))
    differ(once, 'c', dict(query=''), dict(query='x'))
    same(once, 'd', dict(query='x=1'), dict(query='x=1'))


def test_method_counts(t):
    once = once_with(t)
    first(once.post('k', 'b'), 201)
    problem(once.request('PATCH', key='k', body='b'), 'key-reused')


def test_lengths_are_framed(t):
    once = once_with(t)
    differ(once, 'a', dict(query='ab', body='c'), dict(query='a', body='bc'))
    differ(once, 'b', dict(query='', type='text/plain', body=''),
           dict(query='text/plain', type='', body=''))


def test_last_byte_of_a_large_body_counts(t):
    once = once_with(t)
    body = b'x' * 3_000_000
    differ(once, 'k', dict(body=body + b'1'), dict(body=body + b'2'))


def test_large_json_bodies_are_compared_by_value(t):
    once = once_with(t)
    numbers = ','.join('%d' % i for i in range(100000))
    same(once, 'k', dict(body='[%s]' % numbers, **JSON),
         dict(body='[ %s.0 ]' % numbers, **JSON))


def test_fingerprint_exact_compares_json_by_bytes(t):
    once = once_with(t, fingerprint='exact')
    differ(once, 'k', dict(body='[1]', **JSON), dict(body='[1 ]', **JSON))


def test_fingerprint_headers_count(t):
    once = once_with(t, fingerprint_headers='X-Version, Accept')
    differ(once, 'a', dict(headers={'X-Version': '1'}),
           dict(headers={'X-Version': '2'}))
    differ(once, 'b', dict(headers={'Accept': 'text/plain'}), dict())
    differ(once, 'c', dict(headers={'Accept': ''}), dict())
    same(once, 'd', dict(headers={'Accept': 'a', 'X-Other': '1'}),
         dict(headers={'Accept': 'a', 'X-Other': '2'}))


def test_the_refusal_names_all_that_counts(t):
    for n, (fields, says) in enumerate((
            ({}, 'another method, query, media type or body.'),
            ({'fingerprint_headers': 'X-Version, Accept'},
             'another method, query, media type or body, or another value of '
             'one of the fields X-Version, Accept.'))):
        once = t.once(handler=t.sh(OK), defaults=fields, name='o%d' % n)
        first(once.post('k', type='text/plain'), 201)
        answer = once.post('k', type='text/html')
        problem(answer, 'key-reused')
        eq(answer.json()['detail'],
           'This key was used for a different request: ' + says)


def test_other_headers_do_not_count(t):
    once = once_with(t)
    same(once, 'k', dict(headers={'User-Agent': 'a', 'X-Trace': '1'}),
         dict(headers={'User-Agent': 'b'}))


def test_content_type_may_be_a_fingerprint_header(t):
    once = once_with(t, fingerprint_headers='Content-Type')
    differ(once, 'k', dict(body='x', type='text/plain'),
           dict(body='x', type='text/plain; charset=x'))


def test_fingerprint_ignore_leaves_members_out(t):
    once = once_with(t, fingerprint_ignore='/sent_at /meta/trace /a~1b')
    same(once, 'a', dict(body='{"x":1,"sent_at":"now"}', **JSON),
         dict(body='{"sent_at":"later","x":1}', **JSON))
    same(once, 'b', dict(body='{"x":1,"sent_at":"now"}', **JSON),
         dict(body='{"x":1}', **JSON))
    same(once, 'c', dict(body='{"meta":{"trace":1,"n":2}}', **JSON),
         dict(body='{"meta":{"n":2}}', **JSON))
    same(once, 'e', dict(body='{"a/b":1}', **JSON),
         dict(body='{"a/b":2}', **JSON))
    differ(once, 'f', dict(body='{"meta":{"trace":1,"n":2}}', **JSON),
           dict(body='{"meta":{"trace":1,"n":3}}', **JSON))
    differ(once, 'g', dict(body='{"x":{"sent_at":1}}', **JSON),
           dict(body='{"x":{"sent_at":2}}', **JSON))


def test_duplicate_names_are_not_i_json_though_ignored(t):
    once = once_with(t, fingerprint_ignore='/a')
    differ(once, 'k', dict(body='{"a":1,"a":2}', **JSON),
           dict(body='{"a":1,"a":3}', **JSON))


def test_mismatch_comes_first_in_every_state(t):
    gate = t.gate()
    once = t.once(handler=t.sh(
        'ledger; case $QUERY_STRING in '
        'completed) status 200;; '
        'released) status 503;; '
        'unknown) kill -9 $$;; '
        'running) gate gate; status 200;; esac'))
    for name in ('completed', 'released', 'unknown'):
        once.post(name, query=name)
        problem(once.post(name, 'other', query=name), 'key-reused')
    conn = once.begin('running', query='running')
    gate.wait()
    problem(once.post('running', 'other', query='running'), 'key-reused')
    gate.open()
    eq(conn.answer().status, 200)
    eq([once.state(k) for k in ('completed', 'released', 'unknown')],
       ['completed', 'failed_retryable', 'unknown'])
    eq(len(t.ledger()), 4)
