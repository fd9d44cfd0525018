"""examples/webhooks.conf and webhook.py, with a delivery of each sender as its
documentation has it, behind lighttpd."""
import base64
import hashlib
import hmac
import os
import time

import base
import servers
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


def setup(t):
    servers.install(t, 'webhook.py')
    env = dict(os.environ, WEBHOOK_OPEN='sns twilio cloudevents',
               **{name.upper() + '_SECRET': secret
                  for name, secret in SECRETS.items()})
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


def deliver(server, name, at=None, forged=False, change=None):
    at = int(time.time()) if at is None else at
    with open(os.path.join(DATA, name + '.http'), encoding='utf-8') as f:
        head, _, body = f.read().partition('\n\n')
    if change:
        body = body.replace(*change)
    first, *lines = head.split('\n')
    signed = sign(name, body + 'x' * forged, at)
    return server.curl(
        first.split()[1], method='POST', body=body,
        headers=[line.replace('{time}', str(at)).replace('{signature}', signed)
                 for line in lines])


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
