"""examples/webhooks.conf and webhook.py, with a delivery of each sender as its
documentation has it, behind lighttpd."""
import base64
import hashlib
import hmac
import os
import time

import base
import servers
import test_application
from answer import DRAFT, eq, problem

DATA = os.path.join(base.HERE, '..', 'webhooks')
SECRETS = {'github': "It's a Secret to Everybody", 'stripe': 'whsec_test',
           'shopify': 'hush', 'slack': '8f742231b10e8888abcd99yyyzzz85a5',
           'standard': 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}
KEYS = {'github': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
        'stripe': 'evt_1MqqbKLt4dXK03v5qaIbiNCC',
        'shopify': '98880550-7158-44d4-b7cd-2c97c8a091b5',
        'slack': 'Ev123ABC456',
        'sns': '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
        'twilio': 'e0c9bd24-9bc4-4b1c-94f2-d1b0c5d1ee86',
        'cloudevents': '/mycontext/subcontext+1234-1234-1234',
        'cloudevents-structured': '/mycontext+B234-1234-1234',
        'standard': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'}


def setup(t, without=()):
    servers.install(t, 'webhook.py')
    env = dict(os.environ, WEBHOOK_OPEN='sns twilio cloudevents',
               **{name.upper() + '_SECRET': secret
                  for name, secret in SECRETS.items() if name not in without})
    once = servers.start_example(t, 'webhooks.conf', env=env)
    return t.server('lighttpd', once), once


def sign(name, body, at):
    """As the sender does, by its documentation."""
    def mac(content, secret=None):
        return hmac.new(secret or SECRETS[name].encode(), content.encode(),
                        hashlib.sha256)
    if name == 'github':
        return 'sha256=' + mac(body).hexdigest()
    if name == 'stripe':
        return mac('%d.%s' % (at, body)).hexdigest()
    if name == 'shopify':
        return base64.b64encode(mac(body).digest()).decode()
    if name == 'slack':
        return mac('v0:%d:%s' % (at, body)).hexdigest()
    if name == 'standard':
        secret = base64.b64decode(SECRETS[name][len('whsec_'):])
        return base64.b64encode(mac('%s.%d.%s' % (
            KEYS[name], at, body), secret).digest()).decode()
    return ''


def deliver(server, name, at=None, forged=False, change=None, query='',
            fields=None):
    at = int(time.time()) if at is None else at
    with open(os.path.join(DATA, name + '.http'), encoding='utf-8') as f:
        head, _, body = f.read().partition('\n\n')
    if change:
        body = body.replace(*change)
    first, *lines = head.split('\n')
    signed = sign(name, body + 'x' * forged, at)
    lines = [line.replace('{time}', str(at)).replace('{signature}', signed)
             for line in lines]
    for name, value in (fields or {}).items():
        lines = ['%s: %s' % (name, value) if line.startswith(name + ':')
                 else line for line in lines]
    return server.curl(first.split()[1] + query, method='POST', body=body,
                       headers=lines)


def taken(t):
    try:
        return t.read('cgi-bin/webhooks').decode().splitlines()
    except FileNotFoundError:
        return []


def test_github_signs_as_it_documents(t):
    """Its own example of a secret, a body and their signature."""
    eq(sign('github', 'Hello, World!', 0), 'sha256=757107ea0eb2509fc211221cce'
       '984b8a37570b6d7586c22c46f4379c8b043e17')


def test_each_delivery_is_taken_once(t):
    server, once = setup(t)
    want = []
    for name, key in KEYS.items():
        answer = deliver(server, name)
        eq((answer.status, answer.replayed), (200, None),
           '%s: %s' % (name, answer))
        # The sender did not get the answer, and signs the retry anew.
        again = deliver(server, name, at=int(time.time()) + 1)
        eq((again.status, again.replayed), (200, 'true'),
           '%s: %s' % (name, again))
        want.append('%s %s' % (name.partition('-')[0], key))
        eq(taken(t), want)
    eq({row['key'] for row in once.ls()}, set(KEYS.values()))


def test_a_forged_call_does_not_take_the_id_of_the_genuine_one(t):
    server, once = setup(t)
    for name in SECRETS:
        eq(deliver(server, name, forged=True).status, 401, name)
        eq(once.state(KEYS[name]), 'failed_retryable')
    eq(taken(t), [])
    for name in SECRETS:
        eq(deliver(server, name).status, 200, name)
        eq(deliver(server, name, forged=True).replayed, 'true', name)
    eq(len(taken(t)), len(SECRETS))


def test_a_delivery_before_its_secret_is_there_is_not_lost(t):
    server, once = setup(t, without=('github',))
    eq(deliver(server, 'github').status, 503)
    eq(once.state(KEYS['github']), 'failed_retryable')
    once.stop()
    once.env['GITHUB_SECRET'] = SECRETS['github']
    once.start()
    eq(deliver(server, 'github').status, 200)
    eq(len(taken(t)), 1)


# Fields of forged calls: (sender, field, value).
ODD = (('github', 'X-Hub-Signature-256', '\udcff'),
       ('github', 'X-Hub-Signature-256', 'sha256=\u00e9'),
       ('stripe', 'Stripe-Signature', '\udcff'),
       ('stripe', 'Stripe-Signature', 't=\u00b2,v1=0'),
       ('stripe', 'Stripe-Signature', 't=%s,v1=0' % ('9' * 5000)),
       ('stripe', 'Stripe-Signature', 't={time},v1=\udcff'),
       ('shopify', 'X-Shopify-Hmac-Sha256', '\udcff'),
       ('slack', 'X-Slack-Signature', 'v0=\udcff'),
       ('slack', 'X-Slack-Request-Timestamp', '\u00b2'),
       ('slack', 'X-Slack-Request-Timestamp', '9' * 5000),
       ('standard', 'webhook-signature', 'v1,\udcff'),
       ('standard', 'webhook-timestamp', '\u0661'))


def test_nothing_in_a_forged_call_takes_the_id_of_the_genuine_one(t):
    server, once = setup(t)
    for name, field, value in ODD:
        value = value.replace('{time}', str(int(time.time())))
        answer = deliver(server, name, fields={field: value}, query='?x=1')
        eq(answer.status, 401, '%s %.40r: %s' % (name, value, answer))
        eq(once.state(KEYS[name]), 'failed_retryable')
    eq(taken(t), [])
    for name in SECRETS:
        eq(deliver(server, name).status, 200, name)
    eq(len(taken(t)), len(SECRETS))


def test_a_body_that_makes_no_sense_is_an_answer(t):
    """oncewrap looks for a key no deeper than 128, so the program alone."""
    servers.install(t, 'webhook.py')
    at = int(time.time())
    for body in ('[' * 100000, '[%s]' % ('9' * 5000), '\x00', '{"type":'
                 '"url_verification","challenge":"\\ud800"}'):
        run = t.run([t.path('cgi-bin/webhook.py')], input=body.encode(), env={
            'PATH_INFO': '/slack', 'SLACK_SECRET': SECRETS['slack'],
            'HTTP_X_SLACK_REQUEST_TIMESTAMP': str(at),
            'HTTP_X_SLACK_SIGNATURE': 'v0=' + sign('slack', body, at)})
        eq((run.returncode, run.stdout[:20]), (0, b'Status: 400 Bad Requ'),
           run.stderr[-300:])


def test_what_failed_is_carried_out_until_it_succeeds(t):
    """Each attempt ends in another way."""
    ways = ('status 500', 'status 502', 'status 403', 'exit 1', 'kill -9 $$',
            'status 201; exit 3', ':', 'exit 75', 'status 200')
    once = t.once(t.sh('ledger; case $ONCE_ATTEMPT in %s esac' % ' '.join(
        '%d) %s ;;' % way for way in enumerate(ways, 1))),
        defaults={'preset': 'webhook', 'key_from': 'header:X-Id'})
    for n, way in enumerate(ways, 1):
        answer = once.post(headers={'X-Id': 'e'}, query='n=%d' % n)
        assert way != ways[-1] or answer.status == 200, answer
        eq(len(t.ledger()), n, way)
        eq(once.state('e'), 'completed' if way == ways[-1]
           else 'failed_retryable', way)
    eq(once.post(headers={'X-Id': 'e'}, body='other').replayed, 'true')
    eq(len(t.ledger()), len(ways))


def forged_to_php_fpm(t, **options):
    once = test_application.php(t, test_application.Fpm(
        t, php=('display_errors=0',)), key_from='header:X-Id', **options)
    for forged in ('fatal', '500', '502', '401', '403'):
        answer = once.post(headers={'X-Id': 'e'}, query=forged)
        eq(answer.status, 500 if forged == 'fatal' else int(forged))
        eq(once.state('e'), 'failed_retryable', forged)
    eq(once.post(headers={'X-Id': 'e'}, query='201').status, 201)
    eq(once.post(headers={'X-Id': 'e'}, query='fatal').replayed, 'true')


def test_a_forged_call_to_php_fpm_takes_no_id(t):
    forged_to_php_fpm(t, preset='webhook')


def test_a_forged_call_to_php_fpm_with_its_preset_takes_no_id(t):
    forged_to_php_fpm(t, preset='webhook php-fpm', outcome='status')


def test_a_signature_of_long_ago_is_not_good(t):
    server, _ = setup(t)
    for name in ('stripe', 'slack', 'standard'):
        eq(deliver(server, name, at=int(time.time()) - 3600).status, 401, name)
        eq(deliver(server, name).status, 200, name)


def test_what_has_no_id_is_refused(t):
    server, _ = setup(t)
    answer = deliver(server, 'stripe', change=('"id": "evt', '"no": "evt'))
    problem(answer, 'key-missing', link=DRAFT)
    assert 'JSON member /id' in answer.json()['detail'], str(answer)


def test_slack_can_verify_the_address(t):
    server, _ = setup(t)
    body = '{"token":"x","challenge":"3eZbrw1aBm2rZg",' \
        '"type":"url_verification"}'
    at = int(time.time())
    answer = server.curl(
        '/cgi-bin/webhook.py/slack', method='POST', body=body, headers=[
            'Content-Type: application/json',
            'X-Slack-Request-Timestamp: %d' % at,
            'X-Slack-Signature: v0=' + sign('slack', body, at)])
    eq(answer.status, 200, answer)
    eq(answer.body.strip(), b'3eZbrw1aBm2rZg')
