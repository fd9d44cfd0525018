"""An answer, however it arrived, and what can be demanded of it."""
import email.utils
import json
import re
import time


class Answer:
    def __init__(self, status, fields, body, **more):
        self.status = status
        self.fields = fields            # [(name, value)] in order
        self.body = body
        self.app_status = None
        self.stderr = b''
        self.broken = None              # why it did not arrive whole
        self.reason = ''
        self.__dict__.update(more)

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        assert len(values) <= 1, '%d fields %s in %s' % (
            len(values), name, self)
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of a problem, or None."""
        try:
            return self.json().get('code')
        except (ValueError, AttributeError):
            return None

    @property
    def replayed(self):
        return self.get('Idempotent-Replayed')

    def __str__(self):
        body = self.body if len(self.body) <= 400 else \
            self.body[:400] + b'... (%d bytes)' % len(self.body)
        text = '%s %s%s | %r' % (
            self.status, self.reason,
            ''.join(' | %s: %s' % f for f in self.fields), body)
        if self.broken:
            text += ' | BROKEN: %s' % self.broken
        return text


def parse_head(data):
    """(list of fields, body) of a CGI or HTTP head."""
    match = re.search(rb'\r?\n\r?\n', data)
    assert match, 'no end of head in %r' % data[:400]
    head, body = data[:match.start()], data[match.end():]
    fields = []
    for line in head.decode('latin-1').split('\n'):
        name, colon, value = line.rstrip('\r').partition(':')
        assert colon, 'no field: %r in %r' % (line, head)
        fields.append((name, value.strip(' \t')))
    return fields, body


def eq(got, want, context=None):
    assert got == want, 'got %.1000r, expected %.1000r%s' % (
        got, want,
        '; answer: %s' % (context,) if context is not None else '')


# code: (ietf status, stripe status, stripe type, retryable, Retry-After)
CODES = {
    'key-missing': (400, 400, 'invalid_request_error', False, False),
    'request-invalid': (400, 400, 'invalid_request_error', False, False),
    'key-invalid': (400, 400, 'invalid_request_error', False, False),
    'key-reused': (422, 400, 'idempotency_error', False, False),
    'key-in-progress': (409, 409, 'idempotency_error', True, True),
    'key-of-another': (409, 409, 'idempotency_error', False, False),
    'outcome-unknown': (409, 409, 'idempotency_error', True, True),
    'response-not-kept': (410, 410, 'idempotency_error', False, False),
    'key-expired': (410, 400, 'idempotency_error', False, False),
    'scope-required': (403, 401, 'invalid_request_error', False, False),
    'body-too-large': (413, 413, 'invalid_request_error', False, False),
    'body-incomplete': (400, 400, 'invalid_request_error', True, False),
    'too-many-keys': (429, 429, 'api_error', True, True),
    'request-too-old': (412, 400, 'invalid_request_error', False, False),
    'store-unavailable': (503, 503, 'api_error', True, True),
    'overloaded': (503, 503, 'api_error', True, True),
    'handler-not-started': (502, 502, 'api_error', True, False),
    'handler-failed': (502, 502, 'api_error', True, False),
    'handler-timeout': (504, 504, 'api_error', True, False),
    'outcome-not-recorded': (500, 500, 'api_error', True, False),
    'request-expired': (408, 408, 'api_error', False, False),
    'not-found': (404, 404, 'invalid_request_error', False, False),
    'method-not-allowed': (405, 405, 'invalid_request_error', False, False),
}

LINK = 'https://api.example/idempotency'
# The link of a configuration that names none.
DRAFT = 'https://datatracker.ietf.org/doc/' \
        'draft-ietf-httpapi-idempotency-key-header/'
UUID = r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
MEMBERS = {'type', 'title', 'status', 'detail', 'instance', 'code',
           'retryable', 'safe_new_key'}
# Sending these with a new key may do it twice.
NO_NEW_KEY = {'key-in-progress', 'key-of-another',
              'outcome-unknown', 'key-expired',
              'response-not-kept', 'handler-failed', 'handler-timeout',
              'outcome-not-recorded'}


def common(answer, code, link):
    retry_after = answer.get('Retry-After')
    if CODES[code][4] or answer.status == 503:
        assert retry_after and retry_after.isdigit() and \
            int(retry_after) > 0, 'Retry-After: %s' % answer
    eq(answer.get('Link'), '<%s>; rel="describedby"' % link, answer)
    eq(answer.replayed, None, answer)


def problem(answer, code, status=None, unknown=False, link=LINK, more=(),
            acted=False):
    """The answer is that problem, with exactly the members it must have."""
    ietf, _, _, retryable, _ = CODES[code]
    status = status or ietf
    assert answer.code == code, 'expected problem %s; answer: %s' % (
        code, answer)
    eq(answer.status, status, answer)
    eq(answer.get('Content-Type'), 'application/problem+json', answer)
    document = answer.json()
    unknown = unknown or code == 'outcome-unknown'
    members = MEMBERS | set(more) | ({'outcome'} if unknown else set())
    eq(set(document), members, answer)
    eq(document['type'], '%s#%s' % (link, code), answer)
    eq(document['status'], status, answer)
    assert document['retryable'] is retryable, str(answer)
    eq(document['safe_new_key'],
       code not in NO_NEW_KEY and not unknown and not acted, answer)
    for text in ('title', 'detail'):
        assert isinstance(document[text], str) and document[text], str(answer)
    assert re.fullmatch('urn:uuid:' + UUID, document['instance']), str(answer)
    if unknown:
        eq(document['outcome'], 'unknown', answer)
    common(answer, code, link)
    return document


def stripe(answer, code, unknown=False, link=LINK, more=()):
    """The same in the stripe dialect."""
    _, status, kind, _, _ = CODES[code]
    unknown = unknown or code == 'outcome-unknown'
    eq(answer.status, status, answer)
    document = answer.json()
    eq(set(document), {'error'}, answer)
    members = {'type', 'code', 'message'} | set(more)
    eq(set(document['error']), members | ({'outcome'} if unknown else set()),
       answer)
    eq(document['error']['type'], kind, answer)
    eq(document['error']['code'], code, answer)
    assert document['error']['message'], str(answer)
    eq(answer.get('Content-Type'), 'application/json', answer)
    common(answer, code, link)


def first(answer, status=200, body=None):
    """An answer of the handler, not a replay."""
    eq(answer.status, status, answer)
    eq(answer.replayed, None, answer)
    if body is not None:
        eq(answer.body, body, answer)


def replay(answer, original, dropped=('set-cookie', 'date')):
    """Byte for byte the original, but for what is dropped and added."""
    eq(answer.status, original.status, answer)
    eq(answer.replayed, 'true', answer)
    eq(answer.body, original.body, answer)

    def kept(a):
        return [(n, v) for n, v in a.fields
                if n.lower() not in dropped and
                n.lower() != 'idempotent-replayed']
    eq(kept(answer), kept(original), answer)


def ran_once(answers):
    """One of these ran; the others are its replays, or came while it ran."""
    done = [a for a in answers if a.status == 201]
    for answer in answers:
        if answer.status != 201:
            problem(answer, 'key-in-progress')
    eq(len([a for a in done if not a.replayed]), 1)
    eq(len({a.body for a in done}), 1)


def http_date(text):
    """Seconds since 1970 of an IMF-fixdate."""
    assert re.fullmatch(r'(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|'
                        r'Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} '
                        r'\d\d:\d\d:\d\d GMT', text or ''), repr(text)
    return email.utils.parsedate_to_datetime(text).timestamp()


def expires_in(answer, seconds, slack=5):
    """Idempotency-Expires lies that far ahead."""
    left = http_date(answer.get('Idempotency-Expires')) - time.time()
    assert abs(left - seconds) <= slack, 'expires in %.1f s, not %d: %s' % (
        left, seconds, answer)
