#!/usr/bin/python3 -IB
"""webhook.py/SENDER: takes the webhooks that webhooks.conf has routes for.

It checks the signature, and writes a line to the file `webhooks` in its own
folder.  oncewrap sees to it that a delivery that comes again writes no second
one.  The secret of a sender is in SENDER_SECRET.  WEBHOOK_OPEN names senders
whose calls are let in unchecked, because the web server has checked them.

A forged call can be anything.  Until the first effect every error is an answer
that releases the delivery's id.
"""
import base64
import hashlib
import hmac
import json
import os
import sys
import time

TOLERANCE = 300         # seconds that a signed time may be off
DIGITS = 15             # of a time, at most


def answer(status, text):
    print('Status: %s\r\nContent-Type: text/plain\r\n\r\n%s' % (status, text))
    sys.exit(0)


def field(name):
    """Bytes: what a client sends need not be text."""
    name = 'HTTP_' + name.upper().replace('-', '_')
    return os.environb.get(name.encode(), b'')


def digest(secret, content):
    return hmac.new(secret, content, hashlib.sha256)


def same(a, b):
    return hmac.compare_digest(a.encode(), b)


def fresh(timestamp):
    return timestamp.isdigit() and len(timestamp) <= DIGITS and \
        abs(time.time() - int(timestamp)) <= TOLERANCE


def github(secret, body):
    return same('sha256=' + digest(secret, body).hexdigest(),
                field('X-Hub-Signature-256'))


def stripe(secret, body):
    """t=TIME,v1=SIGNATURE[,v1=SIGNATURE]: any of them may be good."""
    pairs = [part.strip().partition(b'=')
             for part in field('Stripe-Signature').split(b',')]
    times = [value for name, _, value in pairs if name == b't']
    if len(times) != 1 or not fresh(times[0]):
        return False
    good = digest(secret, times[0] + b'.' + body).hexdigest()
    return any(name == b'v1' and same(good, value) for name, _, value in pairs)


def shopify(secret, body):
    good = base64.b64encode(digest(secret, body).digest()).decode()
    return same(good, field('X-Shopify-Hmac-Sha256'))


def slack(secret, body):
    timestamp = field('X-Slack-Request-Timestamp')
    content = b'v0:' + timestamp + b':' + body
    return fresh(timestamp) and same(
        'v0=' + digest(secret, content).hexdigest(),
        field('X-Slack-Signature'))


def standard(secret, body):
    """Several signatures with blanks between them; the secret is base64."""
    secret = base64.b64decode(secret.removeprefix(b'whsec_'))
    timestamp = field('webhook-timestamp')
    content = b'.'.join((field('webhook-id'), timestamp, body))
    good = 'v1,' + base64.b64encode(digest(secret, content).digest()).decode()
    return fresh(timestamp) and any(
        same(good, value) for value in field('webhook-signature').split())


CHECKS = {'github': github, 'stripe': stripe, 'shopify': shopify,
          'slack': slack, 'standard': standard}


def challenge(body):
    """Slack's first call, which wants its own word back."""
    value = json.loads(body)
    return value.get('challenge') if isinstance(value, dict) and \
        value.get('type') == 'url_verification' else None


def check(sender):
    """Answers a call that is not to be carried out."""
    body = sys.stdin.buffer.read()
    secret = os.environ.get(sender.upper() + '_SECRET', '').encode()
    if sender not in os.environ.get('WEBHOOK_OPEN', '').split():
        if sender not in CHECKS or not secret:
            # Released: nothing is lost until the secret is there.
            answer('503 Service Unavailable', 'No such sender is configured.')
        if not CHECKS[sender](secret, body):
            answer('401 Unauthorized', 'The signature is not good.')
    if sender == 'slack' and challenge(body) is not None:
        answer('200 OK', challenge(body))


def main():
    sender = os.environ.get('PATH_INFO', '').strip('/')
    try:
        check(sender)
    except Exception:
        answer('400 Bad Request', 'The call makes no sense.')
    with open('webhooks', 'a', encoding='utf-8') as f:
        f.write('%s %s\n' % (sender, os.environ.get('ONCE_KEY', '-')))
    answer('200 OK', 'Taken.')


main()
