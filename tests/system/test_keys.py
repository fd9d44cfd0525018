"""Which values of the key field are keys, and which key they are."""
from answer import eq, first, problem, replay

OK = 'ledger; status 201; echo "$ONCE_KEY"'


def once_with(t, **defaults):
    return t.once(handler=t.sh(OK), defaults=defaults)


def test_string_and_bare_token_name_the_same_key(t):
    once = once_with(t)
    answer = once.post('"abc-1"')
    first(answer, 201, b'abc-1\n')
    replay(once.post('abc-1'), answer)
    eq(len(t.ledger()), 1)


def test_well_formed_values(t):
    once = once_with(t)
    for value, key in (
            ('"8e03978e-40d5-43dd-bc93-6894a57f9324"',
             '8e03978e-40d5-43dd-bc93-6894a57f9324'),
            ('bare.token_~!#$%&\'()*+/:<=>?@[]^`{|}', None),
            ('"with blank, comma; and semicolon"',
             'with blank, comma; and semicolon'),
            (r'"quote \" and backslash \\"', 'quote " and backslash \\'),
            ('  "blanks around"  ', 'blanks around'),
            ('"parameters";a=1;b="x";c', 'parameters'),
            ('"x";a=?1', 'x'),
            # as Firefox sends it: a decimal of 64 bits in quotes
            ('"18446744073709551615"', '18446744073709551615'),
            ("('a')", "('a')"), ('1', '1'), ('"2"', '2')):
        key = value if key is None else key
        answer = once.post(value)
        eq(answer.status, 201, '%s for %r' % (answer, value))
        eq(answer.body.decode(), key + '\n', 'value %r' % value)
        eq(once.state(key), 'completed')


def test_malformed_values_are_refused(t):
    once = once_with(t)
    for value in ('', ' ', '""', '"a', 'a"', '"a"b', '"a" "b"', 'a b',
                  '"a\\n"', '"a\\', 'a,b', 'a, b', '"a","b"', '"a", "b"',
                  '"a", ', ',', ', a', 'a;x', 'a\\b', '"\x7f"', '"\tb"',
                  'a\x01', 'sch\u00f6n', '"sch\u00f6n"', '"a";', '"a";=1',
                  '"a" ; A=1', ';a', '"' + 'a' * 256 + '"',
                  'b' * 256):
        answer = once.post(value)
        assert answer.code == 'key-invalid', 'value %r: %s' % (value, answer)
    eq(once.ls(), [])
    eq(t.ledger(), [])


def test_two_parameters_of_that_name_are_refused(t):
    once = once_with(t)
    problem(once.post(['a', 'b']), 'key-invalid')
    problem(once.post(['a', 'a']), 'key-invalid')
    problem(once.post(['"a"', '']), 'key-invalid')
    eq(t.ledger(), [])


def test_an_empty_field_is_not_an_absent_one(t):
    once = once_with(t)
    problem(once.post(''), 'key-invalid')
    eq(t.ledger(), [])


def test_absent_key_passes_where_optional(t):
    once = once_with(t)
    first(once.post(), 201, b'\n')
    eq(once.ls(), [])


def test_absent_key_is_refused_where_required(t):
    once = once_with(t, key='required')
    problem(once.post(), 'key-missing')
    eq(t.ledger(), [])


def test_key_required_concerns_guarded_methods_only(t):
    once = once_with(t, key='required')
    for method in ('GET', 'PUT', 'DELETE', 'OPTIONS'):
        first(once.request(method), 201)
    for method in ('POST', 'PATCH'):
        problem(once.request(method), 'key-missing')


def test_key_ignored_is_never_guarded(t):
    once = once_with(t, key='ignore')
    for _ in range(2):
        first(once.post('k'), 201, b'\n')
    first(once.post('"malformed'), 201)
    eq((len(t.ledger()), once.ls()), (3, []))


def test_methods_option_says_what_is_guarded(t):
    once = once_with(t, methods='PUT, DELETE')
    for method in ('PUT', 'DELETE'):
        answer = once.request(method, key=method)
        first(answer, 201)
        replay(once.request(method, key=method), answer)
    for _ in range(2):
        first(once.post('p'), 201)
    eq(len(t.ledger()), 4)


def test_methods_are_case_sensitive(t):
    once = once_with(t)
    first(once.request('post', key='k'), 201, b'\n')
    eq(once.ls(), [])


def test_key_syntax_string_refuses_bare_tokens(t):
    once = once_with(t, key_syntax='string')
    problem(once.post('bare'), 'key-invalid')
    first(once.post('"quoted"'), 201)


def test_key_lengths_count_the_key_itself(t):
    once = once_with(t, key_min_length='3', key_max_length='5')
    for value in ('ab', '"ab"', r'"\"\""', 'abcdef', '"abcdef"'):
        answer = once.post(value)
        eq(answer.code, 'key-invalid', 'value %r: %s' % (value, answer))
    for value in ('abc', '"abcde"', r'"\"\"\"\"\""'):
        first(once.post(value), 201)


def test_key_of_255_characters_is_the_longest_by_default(t):
    once = once_with(t)
    first(once.post('a' * 255), 201)
    problem(once.post('a' * 256), 'key-invalid')


def test_key_of_4096_characters(t):
    once = once_with(t, key_max_length='4096')
    first(once.post('a' * 4096), 201)
    problem(once.post('a' * 4097), 'key-invalid')
    eq(once.state('a' * 4096), 'completed')


def test_keys_are_case_sensitive(t):
    once = once_with(t)
    first(once.post('k'), 201)
    first(once.post('K'), 201)
    eq(len(t.ledger()), 2)


def test_key_from_another_header(t):
    once = once_with(t, key_from='header:X-Request-Key', key='required')
    answer = once.post(headers={'X-Request-Key': 'k'})
    first(answer, 201, b'k\n')
    replay(once.post(headers={'X-Request-Key': '"k"'}), answer)
    problem(once.post('k'), 'key-missing')


def test_scope_separates_callers(t):
    once = once_with(t)
    ann = once.post('k', user='ann')
    first(ann, 201)
    first(once.post('k', user='bob'), 201)
    first(once.post('k'), 201)
    replay(once.post('k', user='ann'), ann)
    eq(sorted(r['scope'] for r in once.ls()), ['', 'ann', 'bob'])
    eq(len(t.ledger()), 3)


def test_scope_variable_that_comes_twice_is_refused(t):
    once = once_with(t, scope='REMOTE_ADDR HTTP_X_USER')
    for twice in (('ann', 'bob'), ('bob', 'ann'), ('ann', 'ann'),
                  ('', 'ann'), ('ann', '')):
        answer = once.post('k', headers=[('X-User', user) for user in twice])
        detail = problem(answer, 'request-invalid')['detail']
        assert 'HTTP_X_USER' in detail, answer
    answer = once.post('k', headers={'X-User': 'ann'}, params=[
        ('REMOTE_ADDR', '127.0.0.1'), ('REMOTE_ADDR', '::1')])
    assert 'REMOTE_ADDR' in problem(answer, 'request-invalid')['detail']
    eq((t.ledger(), once.ls()), ([], []))
    # What is not guarded needs no scope.
    first(once.post(headers=[('X-User', 'a'), ('X-User', 'b')]), 201)
    first(once.post('k', headers=[('X-User', 'a'), ('X-Other', 'b'),
                                  ('X-Other', 'c')]), 201)


def test_method_that_comes_twice_is_refused(t):
    once = once_with(t, key='required')
    for twice in ('POST', 'GET'), ('GET', 'POST'), ('POST', ''), ('', 'GET'):
        problem(once.post('k', params=[('REQUEST_METHOD', method)
                                       for method in twice]),
                'request-invalid')
    eq((t.ledger(), once.ls()), ([], []))
    first(once.post('k', params=[('REQUEST_METHOD', 'POST')] * 2), 201)


def test_content_length_that_comes_twice_is_refused(t):
    once = once_with(t)
    for twice in (3, 4), (4, 3), ('3', 'x'):
        problem(once.post('k', b'abc', params=[('CONTENT_LENGTH', n)
                                               for n in twice]),
                'body-incomplete')
    eq((t.ledger(), once.ls()), ([], []))


def test_of_a_path_that_comes_twice_the_last_counts_for_all(t):
    """As a web server's configuration overrides what it includes."""
    once = t.once(handler=t.sh('ledger "$SCRIPT_NAME"; status 201'),
                  routes={'/pay': {'key': 'required'}})
    def twice(*paths):
        return once.post(params=[('SCRIPT_NAME', path) for path in paths])
    problem(twice('/free', '/pay'), 'key-missing')
    first(twice('/pay', '/free'), 201)
    eq(t.ledger(), [' /free'])


def test_scope_none_is_one_for_all(t):
    once = once_with(t, scope='none')
    answer = once.post('k', user='ann')
    replay(once.post('k', user='bob'), answer)
    eq(len(t.ledger()), 1)


def test_scope_of_several_variables_cannot_be_forged(t):
    once = once_with(t, scope='REMOTE_USER HTTP_X_TENANT')
    for user, tenant in (('a', 'b|c'), ('a|b', 'c'), ('a%7Cb', 'c'),
                         ('a', 'b'), ('', 'a|b'), ('b', 'a')):
        first(once.post('k', user=user, headers={'X-Tenant': tenant}), 201)
    eq(len(t.ledger()), 6)


def test_credentials_in_scope_are_kept_as_digests_only(t):
    secret = 'Bearer VERY-SECRET-TOKEN-4711'
    once = once_with(t, scope='HTTP_AUTHORIZATION, HTTP_COOKIE')
    headers = {'Authorization': secret, 'Cookie': 'sid=COOKIE-4712'}
    answer = once.post('k', headers=headers)
    first(answer, 201)
    replay(once.post('k', headers=headers), answer)
    headers['Cookie'] = 'sid=other'
    first(once.post('k', headers=headers), 201)
    once.stop()
    for name in ('once.db', 'once.db-wal', 'once.log'):
        if t.exists(name):
            data = t.read(name)
            assert b'TOKEN-4711' not in data and \
                b'COOKIE-4712' not in data, name


def test_path_is_part_of_the_identity(t):
    once = once_with(t)
    first(once.post('k', path='/a'), 201)
    first(once.post('k', path='/b'), 201)
    first(once.post('k', path='/a/b'), 201)
    eq(sorted(r['path'] for r in once.ls()), ['/a', '/a/b', '/b'])
    eq(len(t.ledger()), 3)


def test_script_name_and_path_info_make_one_path(t):
    once = once_with(t)
    answer = once.post('k', path='/a', info='/b')
    first(answer, 201)
    replay(once.post('k', path='/a/b'), answer)
    eq(len(t.ledger()), 1)


def test_spellings_of_a_path_are_one_identity(t):
    once = once_with(t)
    answer = once.post('k', path='/a/b')
    for path in ('//a/b', '/a//b', '/a/./b', '/a/x/../b', '/../a/b',
                 '/./a/b'):
        replay(once.post('k', path=path), answer)
    eq(len(t.ledger()), 1)


def test_routes_go_by_whole_segments_and_longest_prefix(t):
    handlers = {name: t.sh('status 201; echo %s' % name) for name in
                ('one', 'two', 'three')}
    once = t.once(handler=handlers['one'], routes={
        '/pay': {'handler': handlers['two'], 'key': 'required'},
        '/pay/deep': {'handler': handlers['three']}})
    for path, body in (('/payments', b'one\n'), ('/', b'one\n'),
                       ('/pay/deep', b'three\n'), ('/pay/deep/x', b'three\n'),
                       ('/x/pay', b'one\n')):
        first(once.post(path=path), 201, body)
    for path in ('/pay', '/pay/', '/pay/x', '/pay/deeper'):
        problem(once.post(path=path), 'key-missing')
        first(once.post('k', path=path), 201, b'two\n')


def test_routes_never_go_by_request_uri(t):
    once = t.once(handler=t.sh(OK), routes={'/pay': {'key': 'required'}})
    first(once.post(path='/other', params={'REQUEST_URI': '/pay'}), 201)
    problem(once.post(path='/pay', params={'REQUEST_URI': '/other'}),
            'key-missing')


def test_no_spelling_of_a_path_bypasses_a_route(t):
    once = t.once(handler=t.sh(OK), routes={'/pay': {'key': 'required'}})
    for path in ('/pay', '//pay', '/x/../pay', '/./pay', '/pay/.',
                 '/pay//', '/x/..//pay', '/../pay', '/pay/x/..'):
        problem(once.post(path=path), 'key-missing')
    for name, info in (('', '/pay'), ('/', 'pay'), ('/', 'x/../pay'),
                       ('/pay', '/x'), ('', '//pay')):
        problem(once.post(path=name, info=info), 'key-missing')
    eq(t.ledger(), [])


def test_path_info_that_leads_out_of_script_name_is_refused(t):
    once = t.once(handler=t.sh(OK))
    for name, info in (('/x', '/../pay'), ('/pay', '/..'), ('', '/../pay'),
                       ('/pay', '/../pay/x'), ('/pay/.', './x'),
                       ('/pay', '/x/../../pay/x')):
        for method in 'POST', 'GET':
            answer = once.request(method, name, info=info, key='k')
            detail = problem(answer, 'request-invalid')['detail']
            assert 'PATH_INFO' in detail, answer
    eq((t.ledger(), once.ls()), ([], []))
    first(once.post('k', path='/pay', info='/x/../y'), 201)


def test_a_retry_is_compared_in_the_way_its_key_was_made(t):
    once = once_with(t, fingerprint='value')
    json = dict(type='application/json')
    answer = once.post('k', '{"a":1,"b":2}', **json)
    first(answer, 201)
    once.defaults['fingerprint'] = 'exact'
    once.write_conf()
    once.stop()
    once.start()
    replay(once.post('k', '{"b":2.0, "a":1}', **json), answer)
    once.post('k2', '{"a":1,"b":2}', **json)
    problem(once.post('k2', '{"b":2,"a":1}', **json), 'key-reused')


def test_only_scope_can_orphan_a_key(t):
    once = once_with(t)
    answer = once.post('k', 'body')
    first(answer, 201)
    once.defaults.update({
        'key_syntax': 'string', 'fingerprint_headers': 'X-Other',
        'timeout': '5s', 'retention': '1h', 'key': 'required',
        'max_response': '1M', 'concurrent': 'wait', 'directory': '/'})
    once.routes['/pay'] = {'key_max_length': '20'}
    once.write_conf()
    once.stop()
    once.start()
    replay(once.post('"k"', 'body'), answer)
    eq(len(t.ledger()), 1)
