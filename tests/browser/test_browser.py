"""What people do to forms, in a real browser."""
import os

import base
import servers
from answer import eq
from browser import Browser

FORMS = ('form', 'form.pl', 'form.php')

# A page with a form, an upload and what the cookie says; an answer that the
# test can hold back.
SHOP = r'''
page() { status "$1" | sed 's,text/plain,text/html,'; cat; }
if [ "$REQUEST_METHOD" = GET ]; then
	page 200 <<-EOT
		<p>Cookie: $HTTP_COOKIE.</p>
		<form method="post" action="?send"
		enctype="multipart/form-data">
		<input type="hidden" name="once_key" value="$ONCE_FORM_KEY">
		<input name="item" value="tea"><input type="file" name="file">
		<button>Send</button></form>
	EOT
	exit 0
fi
ledger "$ONCE_KEY"
[ ! -p "$D/gate.here" ] || gate gate
printf 'Set-Cookie: session=ann; Path=/\r\n'
size=$(wc -c)
page 200 <<-EOT
	<p>Taken, run $(wc -l <"$D/ledger").</p>
EOT
'''


def shop(t, **options):
    once = t.once(handler=t.sh(SHOP, 'cgi-bin/shop'),
                  server={'admin_path': '/once'},
                  defaults=dict({'preset': 'form'}, **options))
    os.chmod(once.socket, 0o666)
    return t.server('lighttpd', once).url + '/cgi-bin/shop', once


def examples(t):
    """The address of each form of examples/, and the daemon."""
    servers.install(t, *FORMS)
    once = servers.start_example(t, 'form.conf', '\nadmin_path = /once')
    url = t.server('lighttpd', once).url
    return [url + '/cgi-bin/' + name for name in FORMS], once


def replays(once):
    return once.gauge('reserve_total{result="replay"}')


def wait_replays(once, n):
    base.wait_until(lambda: replays(once) == n, '%d replays' % n)


def orders(t):
    return t.read('cgi-bin/orders').decode().splitlines()


def double_click(t, browser):
    """Two clicks, the second while the first one's answer is held back."""
    gate = t.gate()
    url, once = shop(t)
    browser.get(url)
    key = browser.wait_form()
    button = browser.place()
    browser.leave()
    browser.click_at(button)
    gate.wait()
    browser.click_at(button)
    once.wait_waiting()
    gate.open()
    browser.wait_text('Taken, run 1.')
    eq(t.ledger(), ['1 ' + key])
    eq(once.state(key), 'completed')
    wait_replays(once, 1)
    return url


def test_double_click_runs_once_and_shows_the_answer(t):
    double_click(t, Browser(t))


def test_login_by_a_double_click_brings_the_cookie(t):
    """The browser threw the first answer away, with its Set-Cookie."""
    browser = Browser(t)
    url = double_click(t, browser)
    eq(browser.cookies(), {'session': 'ann'})
    browser.get(url)
    browser.wait_text('Cookie: session=ann.')


def reload_back_and_edit(t, browser):
    urls, once = examples(t)
    for n, url in enumerate(urls):
        browser.get(url)
        key = browser.wait_form()
        browser.type('input[name=item]', 'tea & cake')
        browser.click()
        answer = browser.wait_text('tea & cake is number %d.' % (n + 1))
        # The answer's page is reloaded: it is sent again.
        browser.reload()
        wait_replays(once, 2 * n + 1)
        eq(browser.wait_text('is number %d.' % (n + 1)), answer)
        # Back to the form, and submitted once more.
        browser.back()
        eq(browser.wait_form(), key)
        browser.type('input[name=item]', 'tea & cake')
        browser.click()
        wait_replays(once, 2 * n + 2)
        eq(browser.wait_text('is number %d.' % (n + 1)), answer)
        # Back, and submitted with something else: a page that says no.
        browser.back()
        eq(browser.wait_form(), key)
        browser.type('input[name=item]', 'coffee')
        browser.click()
        page = browser.wait_text('with other content')
        assert 'key-reused' in page, page
        eq(orders(t)[n:], [key + ' tea & cake'])
        # A new page is a new order.
        browser.get(url)
        assert browser.wait_form() != key


def test_answer_reloaded_back_and_sent_again_and_edited(t):
    reload_back_and_edit(t, Browser(t))


def test_back_finds_the_key_where_pages_are_made_anew_from_the_cache(t):
    """Chromium keeps some whole pages for a while, those of a session that
    say no-store too."""
    reload_back_and_edit(t, Browser(t, page_cache=False))


def test_upload_sent_twice_is_taken_once(t):
    browser = Browser(t)
    url, once = shop(t)
    file = t.write('picture.bin', bytes(range(256)) * 4000)
    browser.get(url)
    key = browser.wait_form()
    browser.type('input[type=file]', file, clear=False)
    browser.click()
    browser.wait_text('Taken, run 1.')
    browser.reload()
    wait_replays(once, 1)
    browser.wait_text('Taken, run 1.')
    # Chosen and sent again: the boundary is another one.
    browser.back()
    eq(browser.wait_form(), key)
    browser.type('input[type=file]', file, clear=False)
    browser.click()
    wait_replays(once, 2)
    browser.wait_text('Taken, run 1.')
    # Another file is another request.
    browser.back()
    eq(browser.wait_form(), key)
    browser.type('input[type=file]', t.write('other.bin', b'other'),
                 clear=False)
    browser.click()
    browser.wait_text('key-reused')
    eq(t.ledger(), ['1 ' + key])


def test_without_javascript_a_double_click_runs_once(t):
    double_click(t, Browser(t, javascript=False))


def test_without_javascript_reloaded_sent_again_and_edited(t):
    reload_back_and_edit(t, Browser(t, javascript=False))
