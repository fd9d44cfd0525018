"""The operator's page in a real browser: looked at in four ways, used by mouse
and by keyboard, and checked by axe."""
import os

from answer import eq, first, problem
from browser import Browser
from test_outbox import EMITTER, section, wait_effect
from test_page import passwords

WAYS = [(width, scheme) for width in (360, 1280)
        for scheme in ('light', 'dark')]

HANDLER = EMITTER.replace('try:\n', '''
key = os.environ["ONCE_KEY"]
if key.startswith("lost"):
    out(b"Stat: 200 <b>no answer</b>")
    os.kill(os.getpid(), 9)
try:
''', 1)


def shop(t, **kw):
    """Keys of all kinds, behind lighttpd; the browser's address."""
    once = t.once(handler=t.py(HANDLER),
                  server={'admin_path': '/once', 'admin_users': 'ann'},
                  defaults=dict({'share_database': 'yes',
                                 'exit_status': 'check'}, **kw),
                  conf=section('mail', t.sh('[ -e "$D/up" ]', name='mail'),
                               attempts=1))
    os.chmod(once.socket, 0o666)
    first(once.post('order-4711', b'mail one\nmail two', user='carl'), 201)
    for _ in range(3):
        once.post('order-4711', b'mail one\nmail two', user='carl')
    for key in ('lost-1', 'lost-2', 'lost-3'):
        problem(once.post(key, path='/payments', user='carl@example.org'),
                'handler-failed', unknown=True)
    problem(once.post('lost-1', path='/payments', user='carl@example.org'),
            'outcome-unknown')
    problem(once.post('order-4711', b'x', user='carl'), 'key-reused')
    for id in (1, 2):
        wait_effect(once, 'dead_letter', id)
    passwords(t)
    server = t.server('lighttpd-page', once, inside='mimetype.assign = '
                      '( ".html" => "text/html" )')
    return once, server.url.replace('//', '//%s:secret@') + '/once/'


def fits(browser):
    """Nothing has to be scrolled sideways."""
    width, window = browser.run(
        'return [document.documentElement.scrollWidth, window.innerWidth]')
    assert width <= window, '%d pixels in %d' % (width, window)


def look_at(browser, name, address, text):
    """The page in each way: it fits, and axe finds nothing."""
    browser.get(address)
    browser.wait_text(text)
    for width, scheme in WAYS:
        browser.look(width, scheme)
        browser.screenshot('%s-%d-%s' % (name, width, scheme))
        fits(browser)
        eq(browser.axe(), [], '%s at %d, %s' % (name, width, scheme))


def test_each_page_in_each_way(t):
    once, url = shop(t)
    url = url % 'ann'
    browser = Browser(t)
    look_at(browser, 'overview', url, 'order-4711')
    browser.run('document.querySelector("details").open = true')
    look_at(browser, 'find', url + 'find?state=unknown', 'lost-2')
    look_at(browser, 'none', url + 'find?what=none', 'no such key')
    look_at(browser, 'found', url + 'find?what=%2Fpay', 'Keys whose path')
    look_at(browser, 'wrong', url + 'find?from=yesterday', 'that is no time')
    look_at(browser, 'many', url + 'many?do=not-executed&as=all&state=unknown',
            'Release all 3')
    look_at(browser, 'effects', url + 'effects?id=0', 'dead_letter')
    look_at(browser, 'key', url + 'key?id=1', '201')
    look_at(browser, 'lost', url + 'key?id=2', 'no answer')
    look_at(browser, 'effect', url + 'effect?id=1', 'dead_letter')
    look_at(browser, 'completed', url + 'act?do=completed&id=2',
            'Store this answer')
    look_at(browser, 'forget', url + 'act?do=forget&id=2', 'Forget it')
    look_at(browser, 'missing', url + 'key?id=99', 'Not found')


def test_resolve_forget_retry_and_drop(t):
    once, url = shop(t)
    url = url % 'ann'
    browser = Browser(t)
    browser.get(url)
    browser.wait_text('Needs attention')
    # It happened.
    browser.click('a[href="key?id=2"]')
    browser.wait_text('Downstream key')
    browser.click('button[value=completed]')
    browser.wait_text('Store this answer')
    browser.type('textarea', 'Status: 201\nContent-Type: text/plain\n\nok\n')
    browser.click('button.yes')
    browser.wait_text('retries get your answer')
    answer = once.post('lost-1', path='/payments', user='carl@example.org')
    eq((answer.status, answer.body, answer.replayed), (201, b'ok\n', 'true'))
    # It did not happen.
    browser.get(url + 'find')
    browser.wait_text('Find keys')
    browser.type('#what', 'lost-2')
    browser.click('input[type=submit]')
    browser.wait_text('Keys of that name')
    browser.click('a[href="key?id=3"]')
    browser.wait_text('Downstream key')
    browser.click('button[value=not-executed]')
    browser.wait_text('happens twice')
    browser.click('button.yes')
    browser.wait_text('is released')
    eq(once.state('lost-2'), 'failed_retryable')
    # Sent again by the browser: the token is stale.
    browser.reload()
    browser.wait_text('Nothing was done')
    eq(once.state('lost-2'), 'failed_retryable')
    # An effect again, another one away.
    t.write('up')
    browser.get(url)
    browser.wait_text('could not be delivered')
    browser.click('a[href="effect?id=1"]')
    browser.wait_text('Effect key')
    browser.click('button[value=retry]')
    browser.wait_text('Try it again')
    browser.click('button.yes')
    browser.wait_text('due now')
    wait_effect(once, 'delivered', 1)
    browser.get(url + 'effect?id=2')
    browser.wait_text('Effect key')
    browser.click('button[value=drop]')
    browser.wait_text('never delivered')
    browser.click('button.yes')
    browser.wait_text('is dropped')


def test_by_keyboard_alone(t):
    once, url = shop(t)
    browser = Browser(t)
    browser.get(url % 'ann')
    browser.wait_text('Needs attention')
    # The first stop leads past the head of the page.
    browser.press('Tab')
    browser.press('Enter')
    browser.tab_to('a[href="key?id=4"]')
    browser.leave()
    browser.press('Enter')
    browser.wait_text('Downstream key')
    browser.tab_to('button[value=forget]')
    browser.leave()
    browser.press('Enter')
    browser.wait_text('The key is deleted')
    browser.tab_to('button.yes')
    browser.leave()
    browser.press('Space')
    browser.wait_text('is forgotten')
    eq(once.state('lost-3'), None)
    browser.tab_to('main a')
    browser.leave()
    browser.press('Enter')
    browser.wait_text('Needs attention')
    browser.tab_to('summary')
    browser.press('Enter')
    browser.wait_text('First runs Replays Refusals Unknown')


def test_without_javascript_all_that_were_found_are_released(t):
    once, url = shop(t)
    browser = Browser(t, javascript=False)
    browser.look(360, 'light')
    browser.get(url % 'ann' + 'find')
    browser.wait_text('Find keys')
    browser.type('#what', '/payments')
    browser.click('input[type=submit]')
    browser.wait_text('Keys whose path begins so')
    browser.click('button[value=not-executed]')
    browser.wait_text('That is so for each of these keys')
    browser.click('button.yes')
    browser.wait_text('3 keys are released')
    eq([once.state('lost-%d' % n) for n in (1, 2, 3)],
       ['failed_retryable'] * 3)


def test_find_by_time_as_a_browser_sends_it(t):
    once, url = shop(t)
    browser = Browser(t)
    browser.get(url % 'ann' + 'find?what=%2Fpay&from=2026-01-02')
    browser.wait_text('order-4711')
    for name, value in (('from', '2026-01-02T00:00'), ('to', '')):
        eq(browser.run('return document.getElementById("%s").value' % name),
           value)
    browser.run('document.getElementById("to").value = "2026-01-02T00:10"')
    browser.click('input[type=submit]')
    browser.wait_text('no such key')
    eq(browser.run('return document.getElementById("to").value'),
       '2026-01-02T00:10')


def test_without_javascript_a_key_is_forgotten(t):
    once, url = shop(t)
    browser = Browser(t, javascript=False)
    browser.get(url % 'ann' + 'key?id=4')
    browser.wait_text('Downstream key')
    browser.click('button[value=forget]')
    browser.wait_text('The key is deleted')
    browser.click('button.yes')
    browser.wait_text('is forgotten')
    eq(once.state('lost-3'), None)


def test_reader_sees_no_button(t):
    once, url = shop(t)
    browser = Browser(t)
    browser.get(url % 'carl' + 'key?id=2')
    browser.wait_text('Downstream key')
    eq(browser.run('return document.querySelectorAll("button").length'), 0)
    browser.get(url % 'carl' + 'act?do=forget&id=2')
    browser.wait_text('Refused')


def test_frame_stays_empty(t):
    once, url = shop(t)
    browser = Browser(t)
    browser.get(url % 'ann')
    browser.wait_text('Needs attention')
    t.write('htdocs/frame.html', '<p>Outside</p><iframe src="/once/">'
            '</iframe><iframe src="/inside.html"></iframe>')
    t.write('htdocs/inside.html', '<p>Inside</p>')
    browser.get(url.partition('/once/')[0] % 'ann' + '/frame.html')
    browser.wait_text('Outside')
    for n, wanted in ((1, 'Inside'), (0, None)):
        browser.do('POST', '/frame', {'id': n})
        if wanted:
            browser.wait_text(wanted)
        else:
            assert 'attention' not in browser.text()
        browser.do('POST', '/frame', {'id': None})
