"""Problems as pages, for clients that prefer text/html."""
import html.parser

from answer import CODES, DRAFT, LINK, NO_NEW_KEY, eq, first, problem
from base import wait_until

BROWSER = {'Accept': 'text/html,application/xhtml+xml,'
                     'application/xml;q=0.9,*/*;q=0.8'}


class Page(html.parser.HTMLParser):
    """The facts of a page, and the elements that it has."""

    def __init__(self, answer):
        super().__init__()
        self.elements, self.facts, self.text = set(), {}, ''
        self.links = []
        self.open = []
        self.feed(answer.body.decode())
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        if tag == 'a':
            self.links.append(dict(attrs)['href'])
        if tag != 'meta':
            self.open.append(tag)

    def handle_endtag(self, tag):
        eq(self.open.pop(), tag)

    def handle_data(self, data):
        if 'style' in self.open:
            return
        self.text += data
        if 'dt' in self.open:
            self.name = data
        elif 'dd' in self.open:
            self.facts[self.name] = self.facts.get(self.name, '') + data


def page(answer, code, link=LINK):
    """The answer is that problem, as a page; returns it."""
    status, _, _, retryable, wait = CODES[code]
    eq(answer.status, status, answer)
    eq(answer.get('Content-Type'), 'text/html; charset=utf-8', answer)
    eq(answer.get('Vary'), 'Accept', answer)
    eq(answer.get('Link'), '<%s>; rel="describedby"' % link, answer)
    eq(answer.get('Retry-After') is not None, wait, answer)
    eq(answer.get('X-Content-Type-Options'), 'nosniff', answer)
    assert "default-src 'none'" in answer.get('Content-Security-Policy')
    got = Page(answer)
    eq(got.elements - {'html', 'head', 'meta', 'style', 'title', 'body',
                       'main', 'h1', 'p', 'strong', 'dl', 'dt', 'dd', 'a'},
       set())
    eq(got.facts['Code'], code)
    eq(got.facts['Status'], str(status))
    eq(got.facts['Send again with the same key'], 'yes' if retryable else 'no')
    eq(got.facts['Safe to send with a new key'],
       'no' if code in NO_NEW_KEY else 'yes')
    assert got.facts['Reference'].startswith('urn:uuid:')
    eq(got.links, [link])
    return got


def test_a_browser_gets_a_page_and_a_program_json(t):
    once = t.once(handler=t.sh('status 201'), defaults={'key': 'required'})
    page(once.post(headers=BROWSER), 'key-missing')
    problem(once.post(), 'key-missing')
    for accept in ('*/*', 'application/json', 'text/html;q=0',
                   'text/html;q=0.5, application/json', 'text/html;q=9'):
        problem(once.post(headers={'Accept': accept}), 'key-missing')
    # The lines of a repeated field, as nginx passes them on.
    problem(once.post(headers=[('Accept', 'text/html'),
                               ('Accept', 'application/json')]),
            'key-missing')


def test_an_edited_form_is_told_what_to_do(t):
    once = t.once(handler=t.sh('status 201'))
    first(once.post('k', 'a=1', headers=BROWSER), 201)
    got = page(once.post('k', 'a=2', headers=BROWSER), 'key-reused')
    assert 'open the form again' in got.text, got.text
    # The handler's answer is not translated.
    answer = once.post('k', 'a=1', headers=BROWSER)
    eq((answer.status, answer.replayed), (201, 'true'), answer)


def test_a_page_names_the_reference_that_is_in_the_log(t):
    once = t.once(handler=t.sh('kill -9 $$'))
    got = page(once.post('k', headers=BROWSER), 'handler-failed')
    eq(got.facts['Outcome'], 'unknown')
    assert once.log_lines('instance=' + got.facts['Reference'])
    got = page(once.post('k', headers=BROWSER), 'outcome-unknown')
    assert 'Do not send it as a new request' in got.text, got.text


def test_a_page_in_the_stripe_dialect_has_its_statuses(t):
    once = t.once(handler=t.sh('status 201'), server={'dialect': 'stripe'})
    first(once.post('k', 'a'), 201)
    answer = once.post('k', 'b', headers=BROWSER)
    eq(answer.status, 400, answer)
    eq(Page(answer).facts['Status'], '400')


def test_head_of_a_page_has_no_body(t):
    once = t.once(handler=t.sh('status 201'), server={'status_path': '/jobs'})
    answer = once.request('HEAD', '/jobs/x', headers=BROWSER)
    eq((answer.status, answer.body), (404, b''), answer)
    eq(answer.get('Content-Type'), 'text/html; charset=utf-8', answer)


def test_the_link_is_the_drafts_page_if_none_is_configured(t):
    once = t.once(handler=t.sh('status 201'), defaults={'key': 'required'},
                  start=False)
    once.write_conf(once.conf_text().replace('link = %s\n' % LINK, ''))
    once.start()
    problem(once.post(), 'key-missing', link=DRAFT)
    page(once.post(headers=BROWSER), 'key-missing', link=DRAFT)


def test_no_configured_text_is_markup(t):
    """A link may hold quotes and ampersands."""
    link = "https://api.example/a?b='c'&d"
    once = t.once(handler=t.sh('status 201'), server={'link': link},
                  defaults={'key': 'required'})
    page(once.post(headers=BROWSER), 'key-missing', link=link)


def test_details_name_what_is_wrong_and_its_limit(t):
    once = t.once(handler=t.sh('status 201'), defaults={
        'max_request_body': '10', 'max_request_age': '1h',
        'request_timestamp': 'X-Sent', 'scope_required': 'yes'}, routes={
            '/rate': {'key_rate': '1'}, '/slow': {'timeout': '100ms'},
            '/exit': {}})
    alice = {'user': 'alice'}
    now = {'X-Sent': '2000-01-01T00:00:00Z'}

    def detail(code, *args, **kw):
        return problem(once.post(*args, **kw), code)['detail']
    assert '10 bytes' in detail('body-too-large', 'k', 'x' * 11, **alice)
    assert 'max_request_body' in detail('body-too-large', 'k', 'x' * 11,
                                        **alice)
    got = detail('body-incomplete', 'k', 'xyz', length=4, **alice)
    assert 'CONTENT_LENGTH' in got and '4 bytes' in got, got
    assert 'REMOTE_USER' in detail('scope-required', 'k')
    assert 'The field X-Sent is missing' in detail('request-too-old', 'k',
                                                   **alice)
    got = detail('request-too-old', 'k', headers=now, **alice)
    assert 'X-Sent' in got and 'max_request_age' in got, got


def test_details_name_limits_of_keys_and_of_runs(t):
    once = t.once(handler=t.sh('exit 3'), defaults={
        'key_rate': '1', 'key_max_length': '9'}, routes={
        '/min': {'key_min_length': '2'},
        '/slow': {'handler': t.sh('sleep 60'), 'timeout': '100ms'},
        '/open': {'max_open_keys': '1', 'key_rate': '0'}})
    got = problem(once.post('a'), 'handler-failed', unknown=True)['detail']
    assert 'exit status 3' in got, got
    got = problem(once.post('long' * 9), 'key-invalid')['detail']
    assert got.endswith('longer than this resource allows. '
                        'key_max_length is 9.'), got
    got = problem(once.post('a', path='/min'), 'key-invalid')['detail']
    assert got.endswith('key_min_length is 2.'), got
    # On a slow machine a second is over before the next one comes.
    keys = iter(range(1000))
    got = problem(wait_until(
        lambda: (lambda a: a if a.code == 'too-many-keys' else None)(
            once.post('b%d' % next(keys))), 'two come within a second'),
        'too-many-keys')['detail']
    assert 'key_rate is 1 ' in got, got
    got = problem(once.post('c', path='/slow'), 'handler-timeout',
                  unknown=True)['detail']
    assert '100 ms' in got, got
    problem(once.post('d', path='/open'), 'handler-failed', unknown=True)
    got = problem(once.post('e', path='/open'), 'too-many-keys')['detail']
    assert 'max_open_keys is 1' in got, got
