"""Keys in forms: only those that were given count, each for the browser that
sent it first."""
from answer import eq, first, problem, replay
from once import Background

URL = 'application/x-www-form-urlencoded'
HTML = {'Accept': 'text/html,*/*;q=0.8'}

# GET prints a key; anything else is an order.
SHOP = r'''
if [ "$REQUEST_METHOD" = GET ]; then
	status 200
	printf '%s' "$ONCE_FORM_KEY"
	exit 0
fi
ledger "$ONCE_KEY"
[ -z "$HTTP_GATE" ] || gate "$HTTP_GATE"
[ -z "$HTTP_FAIL" ] || { status "$HTTP_FAIL"; exit 0; }
printf 'Set-Cookie: session=%s\r\n' "$ONCE_ATTEMPT"
status 201
echo "ordered"
'''


def shop(t, **options):
    options.setdefault('defaults', {'preset': 'form'})
    return t.once(handler=t.sh(SHOP), **options)


def given(once, path='/app'):
    return once.get(path).body.decode()


def test_key_that_was_not_given_is_refused_and_nothing_runs(t):
    once = shop(t, routes={'/own': {'key_from': 'form:id'}})
    key = given(once)
    wrong = key[:-1] + ('1' if key[-1] == '0' else '0')
    for bad in ('k', wrong, key.upper(), key + '0', 'x' * 300,
                '123e4567-e89b-42d3-a456-426614174000'):
        body = 'once_key=' + bad
        answer = once.post(body=body, type=URL)
        problem(answer, 'key-invalid')
        problem(once.post(query=body), 'key-invalid')
        problem(once.post(body='--B\r\nContent-Disposition: form-data; '
                          'name="once_key"\r\n\r\n%s\r\n--B--' % bad,
                          type='multipart/form-data; boundary=B'),
                'key-invalid')
    page = once.post(body='once_key=' + wrong, type=URL, headers=HTML)
    eq(page.status, 400)
    eq(page.get('Content-Type').split(';')[0], 'text/html')
    assert b'Open the form again' in page.body, str(page)
    eq(t.ledger(), [])
    # What was given does, wherever it is sent; and of the same name elsewhere,
    # or of another name, any text.
    answer = once.post(body='a=1&once_key=' + key, type=URL)
    first(answer, 201)
    replay(once.post(body='a=1&once_key=' + key, type=URL), answer)
    first(once.post(query='once_key=' + given(once)), 201)
    first(once.post('k'), 201)
    first(once.post(path='/own', body='id=k&once_key=x', type=URL), 201)
    eq(len(t.ledger()), 4)


def test_keys_are_given_and_taken_by_all_that_share_a_store(t):
    one = shop(t)
    two = shop(t, database=one.database, name='two')
    key = given(one)
    first(two.post(body='once_key=' + key, type=URL), 201)
    one.stop()
    one.start()
    eq(one.post(body='once_key=' + key, type=URL).replayed, 'true')
    alien = shop(t, name='alien')
    problem(alien.post(body='once_key=' + key, type=URL), 'key-invalid')
    eq(len(t.ledger()), 1)


def sent(once, key, address, cookie=None, **kw):
    kw.setdefault('headers', {})
    if cookie:
        kw['headers'] = dict(kw['headers'], Cookie=cookie)
    return once.post(body='once_key=' + key, type=URL,
                     params={'REMOTE_ADDR': address}, **kw)


def test_key_belongs_to_the_browser_that_sent_it_first(t):
    """Another site's page may have the key, and the values."""
    once = shop(t)
    key = given(once)
    answer = sent(once, key, '192.0.2.1', 'sid=1')
    first(answer, 201)
    for address, cookie in (('192.0.2.1', 'sid=1'), ('192.0.2.1', None),
                            ('192.0.2.9', 'sid=1'), ('192.0.2.1', 'sid=2')):
        replay(sent(once, key, address, cookie), answer)
    for address, cookie in (('192.0.2.9', None), ('192.0.2.9', 'sid=2')):
        other = sent(once, key, address, cookie)
        problem(other, 'key-of-another')
        eq(other.get('Set-Cookie'), None, other)
    # Nor in a header, in a query, or with other values; the page says so.
    for way in ({'key': key}, {'query': 'once_key=' + key},
                {'body': 'a=2&once_key=' + key, 'type': URL}):
        problem(once.post(params={'REMOTE_ADDR': '192.0.2.9'}, **way),
                'key-of-another')
    page = sent(once, key, '192.0.2.9', headers=HTML)
    eq((page.status, page.get('Content-Type').split(';')[0]),
       (409, 'text/html'), page)
    # Two without cookies have nothing in common.
    bare = given(once)
    first(sent(once, bare, '192.0.2.1'), 201)
    problem(sent(once, bare, '192.0.2.9'), 'key-of-another')
    # A key from a header alone belongs to whom it says.
    api = once.post('k', params={'REMOTE_ADDR': '192.0.2.1'})
    replay(once.post('k', params={'REMOTE_ADDR': '192.0.2.9'}), api)
    eq(len(t.ledger()), 3)


def test_key_of_another_does_not_wait_run_again_or_get_202(t):
    once = shop(t, server={'status_path': '/status', 'admin_path': '/once'},
                routes={'/later': {'preset': 'form', 'async': 'always'},
                        '/named': {'preset': 'form', 'scope': 'REMOTE_USER'}})
    gate = t.gate()
    key = given(once)
    running = Background(lambda: sent(once, key, '192.0.2.1', 'sid=1',
                                      headers={'Gate': 'gate'}))
    gate.wait()
    problem(sent(once, key, '192.0.2.9'), 'key-of-another')
    waiting = Background(lambda: sent(once, key, '192.0.2.1'))
    once.wait_waiting()
    gate.open()
    eq(waiting.result().body, running.result().body)
    # Released, it still belongs to the first.
    key = given(once)
    eq(sent(once, key, '192.0.2.1', headers={'Fail': '503'}).status, 503)
    eq(once.state(key), 'failed_retryable')
    problem(sent(once, key, '192.0.2.9'), 'key-of-another')
    first(sent(once, key, '192.0.2.1'), 201)
    key = given(once)
    eq(sent(once, key, '192.0.2.1', path='/later').status, 202)
    problem(sent(once, key, '192.0.2.9', path='/later'), 'key-of-another')
    once.wait_state(key, 'completed')
    problem(sent(once, key, '192.0.2.9', path='/later'), 'key-of-another')
    # Where callers have names, these count.
    key = given(once, '/named')
    answer = sent(once, key, '192.0.2.1', path='/named', user='ann')
    first(answer, 201)
    replay(sent(once, key, '192.0.2.9', path='/named', user='ann'), answer)
    eq(len(t.ledger()), 5)
