"""Keys from other places than the header field: query, form, JSON, cookie,
two of them together; presets; what of the request then counts."""
import os
import re

import base
from answer import UUID, eq, first, problem, replay
from once import Background

SAY = 'ledger "$ONCE_KEY"; status 201; echo "$ONCE_KEY"'
URL = 'application/x-www-form-urlencoded'
JSON = 'application/json'


def once_with(t, key_from, handler=SAY, name='once', **defaults):
    return t.once(handler=t.sh(handler), name=name,
                  defaults=dict({'key_from': key_from}, **defaults))


def multipart(fields, boundary='B'):
    """(media type, body); a field is (name, value) or (name, value, more)."""
    out = b''
    for name, value, *more in fields:
        out += b'--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n' \
            b'%s\r\n' % (boundary.encode(), name.encode(),
                         ''.join(more).encode(), value)
    return ('multipart/form-data; boundary=' + boundary,
            out + b'--%s--\r\n' % boundary.encode())


def test_key_from_the_query_string(t):
    once = once_with(t, 'query:once')
    answer = once.post(query='a=1&once=k+%31')
    first(answer, 201, b'k 1\n')
    replay(once.post(query='once=k%201&a=1'), answer)
    problem(once.post(query='a=2&once=k+1'), 'key-reused')
    problem(once.post(query='once=k&once=k'), 'key-invalid')
    problem(once.post(query='once='), 'key-invalid')
    problem(once.post(query='once=%00'), 'key-invalid')
    eq(once.state('k 1'), 'completed')
    eq(t.ledger(), ['1 k 1'])
    # Without it, and in another case, the request is not guarded.
    first_body = once.post(query='Once=x').body
    eq(first_body, b'\n')
    eq(t.ledger(), ['1 k 1', ' '])


def test_key_from_an_urlencoded_form(t):
    once = once_with(t, 'form:key')
    answer = once.post(body='a=1&key=k%2B1&b=2', type=URL)
    first(answer, 201, b'k+1\n')
    replay(once.post(body='key=k%2B1&a=1&b=2', type=URL), answer)
    problem(once.post(body='key=k%2B1&a=2&b=2', type=URL), 'key-reused')
    problem(once.post(body='key=a&key=b', type=URL), 'key-invalid')
    problem(once.post(body='key=', type=URL), 'key-invalid')
    eq(t.ledger(), ['1 k+1'])


def test_key_from_a_multipart_form_and_upload_sent_twice(t):
    once = once_with(t, 'form:key',
                     handler='cat >/dev/null; ' + SAY)
    file = bytes(range(256)) * 1000
    fields = [('key', b'k'),
              ('f', file, '; filename="a.bin"\r\nContent-Type: x/y')]
    kind, body = multipart(fields, 'one')
    answer = once.post(body=body, type=kind)
    first(answer, 201, b'k\n')
    # A browser makes a new boundary for each submission.
    kind, body = multipart(fields, 'another')
    replay(once.post(body=body, type=kind), answer)
    fields[1] = ('f', file[:-1] + b'x', fields[1][2])
    kind, body = multipart(fields, 'another')
    problem(once.post(body=body, type=kind), 'key-reused')
    problem(once.post(body=body[:-4], type=kind), 'key-invalid')
    eq(t.ledger(), ['1 k'])


def test_key_from_json(t):
    once = once_with(t, 'json:/data/id')
    answer = once.post(body='{"data":{"id":"evt_1"},"a":1}', type=JSON)
    first(answer, 201, b'evt_1\n')
    replay(once.post(body='{"a":1.0,"data":{"id":"evt_1"}}', type=JSON),
           answer)
    first(once.post(body='{"data":{"id":1e3}}', type=JSON), 201, b'1000\n')
    for bad in ('{"data":{"id":1.5}}', '{"data":{"id":null}}',
                '{"data":{"id":""}}', '{"data":{"id":{}}}', '{"data":', 'x',
                '{"data":{"id":"a","id":"a"}}'):
        problem(once.post(body=bad, type=JSON), 'key-invalid')
    eq(once.post(body='{"data":{}}', type=JSON).body, b'\n')
    eq(t.ledger(), ['1 evt_1', '1 1000', ' '])


def test_a_body_of_another_type_is_named(t):
    form, member = 'json:/id', 'form:id'
    urlencoded = 'application/x-www-form-urlencoded'
    for source, body, type, says in (
            (form, 'id=k', urlencoded, 'The Content-Type is %s, so no JSON '
             'member was looked for.' % urlencoded),
            (member, '{"id":"k"}', JSON, 'The Content-Type is %s, so no form '
             'field was looked for.' % JSON),
            (member, 'id=k', '', 'The body has no Content-Type, so no form '
             'field was looked for.'),
            (form, '{"x":"k"}', JSON, None), (member, 'x=k', urlencoded, None),
            (form, '', urlencoded, None)):
        once = once_with(t, source, key='required')
        got = problem(once.post(body=body, type=type), 'key-missing')['detail']
        if says is None:
            assert 'looked for' not in got, got
        else:
            assert got.endswith('. ' + says), got
        once.stop()


def test_key_from_a_cookie(t):
    once = once_with(t, 'cookie:form', key='required')
    answer = once.post(headers={'Cookie': 'a=1; form=k; b=2'})
    first(answer, 201, b'k\n')
    replay(once.post(headers={'Cookie': 'form=k; a=3'}), answer)
    problem(once.post(headers={'Cookie': 'form=k; form=k'}), 'key-invalid')
    problem(once.post(headers={'Cookie': 'forms=k'}), 'key-missing')


def test_the_same_text_is_the_same_key_wherever_it_came_from(t):
    once = once_with(t, 'header:Idempotency-Key form:k query:k')
    answer = once.post('x', 'a=1', type=URL)
    first(answer, 201, b'x\n')
    replay(once.post(body='a=1&k=x', type=URL), answer)
    replay(once.post(body='a=1', query='k=x', type=URL), answer)
    replay(once.post('x', 'k=x&a=1', query='k=x', type=URL), answer)
    # A field that is not the key counts.
    problem(once.post('x', 'k=y&a=1', type=URL), 'key-reused')
    # The first place that has one decides, whatever it has.
    problem(once.post('"', 'k=x&a=1', type=URL), 'key-invalid')
    first(once.post('y', 'k=x&a=1', type=URL), 201, b'y\n')
    eq(t.ledger(), ['1 x', '1 y'])


def test_two_parts_make_one_key(t):
    once = once_with(t, 'header:ce-source+header:ce-id json:/source+json:/id',
                     key='required')

    def post(source, id):
        return once.post(headers={'ce-source': source, 'ce-id': id})
    answer = post('//a/b', '1+1%')
    first(answer, 201, b'//a/b+1%2B1%25\n')
    replay(post('//a/b', '1+1%'), answer)
    first(post('//a/b+1', '1%'), 201, b'//a/b%2B1+1%25\n')
    eq(once.state('//a/b+1%2B1%25'), 'completed')
    problem(once.post(headers={'ce-id': '1'}), 'key-missing')
    first(once.post(body='{"source":"s","id":"i"}',
                    type='application/cloudevents+json'), 201, b's+i\n')


def test_the_detail_names_the_place(t):
    once = once_with(t, 'header:X-Id form:key+cookie:sid',
                     key='required')
    for detail, answer in (
            ('the header field X-Id or the form field key with the '
             'cookie sid', once.post()),
            ('The header field X-Id: The key is empty.',
             once.post(headers={'X-Id': ''})),
            ('The cookie sid: It is there more than once.',
             once.post(body='key=a', type=URL,
                       headers={'Cookie': 'sid=1;sid=2'})),
            ('The form field key: The body is not a complete '
             'multipart/form-data.',
             once.post(body='x', type='multipart/form-data; boundary=B',
                       headers={'Cookie': 'sid=1'}))):
        eq(answer.status, 400, answer)
        assert detail in answer.json()['detail'], str(answer)


def test_each_route_has_places_of_its_own(t):
    once = t.once(handler=t.sh(SAY), routes={
        '/a': {'key_from': 'query:id', 'key': 'required'},
        '/b': {'key_from': 'header:X-Id', 'key': 'required'}})
    first(once.post(path='/a', query='id=1'), 201, b'1\n')
    problem(once.post('1', path='/a'), 'key-missing')
    first(once.post(path='/b', headers={'X-Id': '2'}), 201, b'2\n')
    problem(once.post('1', path='/b'), 'key-missing')
    first(once.post('3', path='/c'), 201, b'3\n')


def test_keys_of_any_language_are_kept_and_found(t):
    once = once_with(t, 'form:k')
    key = 'Bestellung n\u00fcmero \u4e00, "1"; \U0001f600'
    kind, body = multipart([('k', key.encode())])
    answer = once.post(body=body, type=kind)
    first(answer, 201, key.encode() + b'\n')
    replay(once.post(body=body, type=kind), answer)
    eq(once.state(key), 'completed')
    eq(once.ls()[0]['key'], key)


def test_a_scope_of_a_cookie_is_kept_as_a_hash_only(t):
    once = t.once(handler=t.sh('ledger "$ONCE_SCOPE"; status 201'),
                  defaults={'scope': 'cookie:sid', 'scope_required': 'yes'})
    answer = once.post('k', headers={'Cookie': 'a=1; sid=secret-of-ann'})
    first(answer, 201)
    replay(once.post('k', headers={'Cookie': 'sid=secret-of-ann; b=2'}),
           answer)
    first(once.post('k', headers={'Cookie': 'sid=other'}), 201)
    problem(once.post('k', headers={'Cookie': 'a=1'}), 'scope-required')
    problem(once.post('k', headers={'Cookie': 'sid='}), 'scope-required')
    answer = once.post('k', headers={'Cookie': 'sid=1; sid=2'})
    problem(answer, 'request-invalid')
    assert 'cookie:sid' in answer.json()['detail'], str(answer)
    eq(len({row['scope'] for row in once.ls()}), 2)
    for line in t.ledger():
        assert re.fullmatch('1 [0-9a-f]{64}', line), line
    for text in (once.stored(), t.read('once.log')):
        assert b'secret-of-ann' not in text


def test_methods_unsafe(t):
    once = t.once(handler=t.sh(SAY), defaults={'methods': 'unsafe'})
    for method in ('POST', 'PUT', 'PATCH', 'DELETE', 'BREW'):
        answer = once.request(method, key=method)
        first(answer, 201, method.encode() + b'\n')
        replay(once.request(method, key=method), answer)
    for method in ('GET', 'HEAD', 'OPTIONS', 'TRACE'):
        eq(once.request(method, key='x').replayed, None)
    eq(len(t.ledger()), 5 + 4)
    eq(len(once.ls()), 5)


def test_form_key_is_new_for_each_run(t):
    say = 'status 200; echo "$ONCE_FORM_KEY"'
    once = t.once(handler=t.sh(say), routes={
        '/form': {'key_from': 'form:k'}, '/query': {'key_from': 'query:k'},
        '/cookie': {'key_from': 'header:X cookie:k+form:l'},
        '/json': {'key_from': 'json:/k'}})
    seen = set()
    for path in ('/form', '/query', '/cookie'):
        for answer in (once.get(path), once.get(path), once.post(path=path)):
            key = answer.body.decode().strip()
            assert re.fullmatch(UUID, key), repr(key)
            seen.add(key)
    answer = once.post(body='k=1', type=URL, path='/form')
    seen.add(answer.body.decode().strip())
    replay(once.post(body='k=1', type=URL, path='/form'), answer)
    eq(len(seen), 10)
    for path in ('/json', '/other'):
        eq(once.get(path).body, b'\n')
        eq(once.get(path, params={'ONCE_FORM_KEY': 'forged'}).body, b'\n')


def test_preset_form_lets_the_second_click_wait_and_get_the_cookie(t):
    gate = t.gate()
    once = t.once(handler=t.sh(
        'if [ "$REQUEST_METHOD" = GET ]; then status 200; '
        'exec echo "$ONCE_FORM_KEY"; fi; '
        'ledger; gate gate; printf "Set-Cookie: sid=1\\r\\n"; status 200; '
        'echo done'), defaults={'preset': 'form'},
        server={'admin_path': '/once'})
    body = 'a=1&once_key=' + once.get().body.decode().strip()
    clicks = [Background(lambda: once.post(body=body, type=URL))]
    gate.wait()
    clicks.append(Background(lambda: once.post(body=body, type=URL)))
    once.wait_waiting()
    gate.open()
    answers = [c.result() for c in clicks]
    for answer in answers:
        eq(answer.status, 200, answer)
        eq(answer.get('Set-Cookie'), 'sid=1', answer)
    eq(sorted(a.replayed or '' for a in answers), ['', 'true'])
    eq(len(t.ledger()), 1)


def test_preset_webhook_keeps_a_forged_call_from_the_genuine_one(t):
    once = t.once(handler=t.sh(
        'ledger "$HTTP_SIGNATURE"; if [ "$HTTP_SIGNATURE" = good ]; '
        'then status 200; else status 401; fi'),
        routes={'/hook': {'preset': 'webhook', 'key_from': 'json:/id'}})

    def post(signature, body='{"id":"evt_1"}'):
        return once.post(path='/hook', body=body, type=JSON,
                         headers={'Signature': signature})
    eq(post('forged').status, 401)
    answer = post('good')
    first(answer, 200)
    # The sender says the same in other words: neither body nor type count.
    replay(post('good', '{"id":"evt_1","attempt":2}'), answer)
    problem(once.post(path='/hook', body='{}', type=JSON), 'key-missing')
    eq(t.ledger(), ['1 forged', '2 good'])


def test_released_by_default_are_401_407_and_408(t):
    once = t.once(handler=t.sh('ledger "$HTTP_X"; status "$HTTP_X"'))
    for status in ('401', '407', '408', '425', '429', '503'):
        for _ in range(2):
            eq(once.post('k' + status, headers={'X': status}).status,
               int(status))
        eq(once.state('k' + status), 'failed_retryable')
    for status in ('400', '403', '404', '422'):
        answer = once.post('k' + status, headers={'X': status})
        replay(once.post('k' + status, headers={'X': status}), answer)
    eq(len(t.ledger()), 6 * 2 + 4)


def bad_bodies():
    """(media type, body) of all that a stranger may send."""
    multi = 'multipart/form-data; boundary=B'
    part = b'--B\r\nContent-Disposition: form-data; name='
    last = b'\r\n--B--\r\n'
    for body in (
            b'x', b'--B', b'--B\r\n', b'--B--', b'--B--' * 1000,
            b'--B\r\n\r\n1' + last, b'--BB' + last,
            b'--B\nContent-Disposition: form-data; name=k\n\n1\n--B--\n',
            part + b'k', part + b'k\r\n\r\n', part + b'k\r\n\r\n1',
            part + b'k; name=k\r\n\r\n1' + last + b'x' * 100000,
            part + b'"k\r\n\r\n1' + last,
            part + b'k\r\n\r\n1\r\n--BC' + b'x' * 200000,
            part + b'k\r\n\r\n' + b'\r\n--' * 100000 + last,
            part + b'k\r\n\r\n' + b'k' * 2000000 + last,
            part + b'k' * 100000 + b'\r\n\r\n1' + last,
            part + b'a\r\n' + b'X: y\r\n' * 10000 + b'\r\n1' + last,
            (part + b'k\r\n\r\n1\r\n') * 20000 + last,
            part + b'\0\r\n\r\n\0' + last):
        yield multi, body
    for kind in ('multipart/form-data', multi + multi[19:],
                 'multipart/form-data; boundary=',
                 'multipart/form-data; boundary="B',
                 'multipart/form-data; boundary=' + 'B' * 1000,
                 'multipart/form-data;' * 1000):
        yield kind, part + b'k\r\n\r\n1' + last
    for body in (b'k', b'k=', b'&' * 100000, b'=' * 100000, b'%' * 100000,
                 b'k=' + b'%41' * 1000000, b'k=%', b'k=1&' * 100000,
                 b'k' * 1000000 + b'=1', b'k=%00', b'\0', b'k=\xff'):
        yield URL, body
    for body in (b'', b' ', b'{', b'[' * 100000, b'{"id":' * 1000,
                 b'{"id":"' + b'a' * 1000000 + b'"}', b'{"id":1e999999999}',
                 b'{"id":-}', b'{"id":"\\ud800"}', b'{"id":1,"id":1}',
                 b'{"id":' + b'9' * 100000 + b'}', b'{"id":null}',
                 b'\xff\xfe', b'{"id":"\0"}',
                 b'[' + b'{},' * 300000 + b'{}]', b'"' * 100000):
        yield JSON, body


def test_no_body_ends_anything_and_memory_is_bounded(t):
    once = once_with(t, 'form:k json:/id', key='required',
                     handler='cat >/dev/null; status 201')
    before = peak(once)
    refused = 0
    for kind, body in bad_bodies():
        answer = once.post(body=body, type=kind)
        what = '%r, %r: %s' % (kind[:60], body[:60], answer)
        if answer.status != 201:
            assert answer.code in ('key-missing', 'key-invalid'), what
            refused += 1
    assert refused > 40, refused
    first(once.post(body='k=1', type=URL), 201)
    # And so it is where only the fingerprint reads the body.
    other = once_with(t, 'header:Idempotency-Key form:k', name='other',
                      handler='cat >/dev/null; status 201')
    for n, (kind, body) in enumerate(bad_bodies()):
        answer = other.post('n%d' % n, body, type=kind)
        first(answer, 201)
        replay(other.post('n%d' % n, body, type=kind), answer)
    for daemon in (once, other):
        assert daemon.alive()
        if 'san' not in os.path.basename(base.BUILDDIR):
            more = peak(daemon) - before
            assert more < 40 << 20, '%d bytes more' % more


def peak(once):
    """The most memory (bytes) the daemon has had resident."""
    with open('/proc/%d/status' % once.pid) as f:
        return int(re.search(r'VmHWM:\s+(\d+) kB', f.read()).group(1)) << 10


def test_large_bodies_take_no_memory(t):
    once = t.once(handler=t.sh('ledger "$(wc -c)"; status 201'),
                  defaults={'key_from': 'header:Idempotency-Key form:k'},
                  routes={'/small': {'max_request_body': '1M'}})
    once.post('first')
    before = peak(once)
    data = b'0123456789abcdef' * 65536 * 100      # 100M
    answer = once.post('exact', data, type='application/octet-stream')
    first(answer, 201)
    replay(once.post('exact', data, type='application/octet-stream'), answer)
    kind, body = multipart([('f', data), ('k', b'form')])
    del data
    answer = once.post(body=body, type=kind)
    first(answer, 201)
    replay(once.post(body=body, type=kind), answer)
    # Its body says that it is guarded: the limit holds for it as well.
    problem(once.post(body=body, type=kind, path='/small'), 'body-too-large')
    eq([int(line.split()[1]) for line in t.ledger()],
       [0, 16 * 65536 * 100, len(body)])
    if 'san' not in os.path.basename(base.BUILDDIR):
        more = peak(once) - before
        assert more < 10 << 20, '%d bytes more' % more
