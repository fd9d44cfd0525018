"""The forms of examples/ with form.conf, behind lighttpd."""
import re

import base
import servers
from answer import UUID, eq

FORMS = ('form', 'form.pl', 'form.sh', 'form.php')
URL = ['Content-Type: application/x-www-form-urlencoded']
HTML = ['Accept: text/html,application/xhtml+xml,*/*;q=0.8']


def setup(t):
    base.need('php-cgi')
    servers.install(t, *FORMS)
    once = servers.start_example(t, 'form.conf')
    return t.server('lighttpd', once), once


def orders(t):
    return t.read('cgi-bin/orders').decode().splitlines()


def test_each_form_orders_once(t):
    server, once = setup(t)
    for n, name in enumerate(FORMS, 1):
        path = '/cgi-bin/' + name
        page = server.curl(path, method='GET', headers=HTML)
        eq(page.status, 200, page)
        found = re.findall(r'name="once_key" value="(%s)"' % UUID,
                           page.body.decode())
        eq(len(found), 1, page)
        key = found[0][0]
        body = 'once_key=%s&item=tea' % key
        answer = server.curl(path, body=body, headers=URL + HTML)
        eq((answer.status, answer.replayed), (200, None),
           '%s: %s' % (name, answer))
        assert b'tea is number %d.' % n in answer.body, str(answer)
        again = server.curl(path, body=body, headers=URL + HTML)
        eq((again.status, again.replayed, again.body),
           (200, 'true', answer.body), '%s: %s' % (name, again))
        edited = server.curl(path, body=body.replace('tea', 'coffee'),
                             headers=URL + HTML)
        eq(edited.status, 422, '%s: %s' % (name, edited))
        assert edited.get('Content-Type').startswith('text/html'), str(edited)
        eq(once.state(key), 'completed')
        eq(orders(t)[-1], key + ' tea')
        # A page of its own is an order of its own.
        eq(server.curl(path, method='GET').body == page.body, False)
    eq(len(orders(t)), len(FORMS))


def test_each_form_works_as_it_did_without_a_key(t):
    server, once = setup(t)
    for name in FORMS:
        path = '/cgi-bin/' + name
        answer = server.curl(path, body='item=tea', headers=URL)
        eq(answer.status, 200, '%s: %s' % (name, answer))
        eq(server.curl(path, body='item=', headers=URL).status, 400)
    eq(orders(t), ['- tea'] * len(FORMS))
    eq(once.ls(), [])


def test_nothing_is_ordered_of_a_body_that_is_too_long(t):
    server, once = setup(t)
    eq(server.curl('/cgi-bin/form', body='item=' + 4092 * 'x',
                   headers=URL).status, 413)
    eq(server.curl('/cgi-bin/form', body='item=' + 4091 * 'x',
                   headers=URL).status, 200)
    eq(orders(t), ['- ' + 4091 * 'x'])


def test_what_is_typed_is_shown_as_text(t):
    server, _ = setup(t)
    for name in FORMS:
        if name == 'form.sh':   # it has a list to choose from
            continue
        answer = server.curl('/cgi-bin/' + name, headers=URL,
                             body='item=%3Cb%3E+%26+t%C3%A4%0Ax')
        text = answer.body.decode()
        eq(answer.status, 200, '%s: %s' % (name, answer))
        assert '<b>' not in text and '\u00e4' in text, '%s: %s' % (
            name, answer)
        eq(orders(t)[-1], '- <b> & t\u00e4 x', name)
