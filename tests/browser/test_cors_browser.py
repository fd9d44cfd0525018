"""Scripts of another site, by the lines of examples/*-cors.conf: a real browser
asks before it sends a key, and shows the scripts what they may read."""
import http.server
import json
import os
import threading

import servers
from answer import eq
from browser import Browser
from once import Background

SITE = 'https://shop.example'

# A program that names a site itself, as if it were the first to ask; it can
# be held back.
PROGRAM = r'''
ledger "$REQUEST_METHOD"
[ ! -p "$D/gate.here" ] || gate gate
printf 'Access-Control-Allow-Origin: http://elsewhere.example\r\n'
status 201; echo taken
'''

# One request: its status, the fields that the script may read, its body.
FETCH = '''
const [url, key, body, done] = arguments;
fetch(url, {method: 'PATCH', body: body, headers: {
    'Content-Type': 'application/json', 'Idempotency-Key': key}}).then(
    async r => done([r.status, Object.fromEntries(r.headers),
                     await r.text()]),
    e => done(['' + e]));
'''


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(b'<p>another site')

    def log_message(self, *_):
        pass


def site(t):
    """Another site; its origin."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def stop():
        server.shutdown()
        server.server_close()
        thread.join()
    t.defer(stop)
    return 'http://127.0.0.1:%d' % server.server_address[1]


def lines(kind, origin):
    """The example, for that site."""
    name = kind.replace('-proxy-fcgi', '') + '-cors.conf'
    return servers.example(name, [(SITE, origin)])


def shop(t, kind, origin):
    t.sh(PROGRAM, name='cgi-bin/pay')
    once = t.once()
    os.chmod(once.socket, 0o666)
    text = lines(kind, origin)
    if kind == 'nginx':
        path = t.write('cors.conf', text)
        return t.server(kind, once, more=[(
            '#include /etc/nginx/snippets/oncewrap-cors.conf',
            'include ' + path)])
    return t.server(kind, once, inside=text)


def ask(browser, *args):
    return browser.do('POST', '/execute/async',
                      {'script': FETCH, 'args': list(args)})


def serves_another_site(t, kind):
    browser = Browser(t)
    origin = site(t)
    server = shop(t, kind, origin)
    url = server.url + '/cgi-bin/pay'
    browser.get(origin)
    browser.wait_text('another site')
    status, fields, body = ask(browser, url, '"k"', '{"n": 1}')
    eq((status, body), (201, 'taken\n'))
    assert 'idempotency-expires' in fields, fields
    assert 'idempotent-replayed' not in fields, fields
    status, fields, body = ask(browser, url, '"k"', '{"n": 1}')
    eq((status, body, fields.get('idempotent-replayed')),
       (201, 'taken\n', 'true'))
    # Problems of our own are read like answers.
    status, fields, body = ask(browser, url, '"k"', '{"n": 2}')
    eq((status, json.loads(body)['code']), (422, 'key-reused'))
    gate = t.gate()
    first = Background(lambda: server.curl(
        method='PATCH', key='"busy"', body='{"n": 1}',
        headers=['Content-Type: application/json']))
    gate.wait()
    status, fields, body = ask(browser, url, '"busy"', '{"n": 1}')
    eq((status, json.loads(body)['code'], fields.get('retry-after')),
       (409, 'key-in-progress', '1'))
    gate.open()
    eq(first.result().status, 201)
    # The question of the browser has reached no program.
    eq(t.ledger(), ['1 PATCH', '1 PATCH'])
    # A third site gets nothing, and nothing runs for it.
    browser.get(site(t))
    browser.wait_text('another site')
    answer = ask(browser, url, '"third"', '{"n": 1}')
    eq((len(answer), answer[0][:9]), (1, 'TypeError'), answer)
    eq(len(t.ledger()), 2)


def test_lighttpd_serves_scripts_of_another_site(t):
    serves_another_site(t, 'lighttpd')


def test_nginx_serves_scripts_of_another_site(t):
    serves_another_site(t, 'nginx')


def test_apache_serves_scripts_of_another_site(t):
    serves_another_site(t, 'apache-proxy-fcgi')
