"""The operator's page: what readers see, and what operators may do."""
import base64
import hashlib
import os
import re
import time
import urllib.parse

import base
from answer import eq, first, problem
from base import wait_until
from clocks import HOUR, Clocks
from page import Page, encode, form_of
from test_life import parse
from test_metrics import metrics, refused
from test_outbox import EMITTER, RECEIPT, section, wait_effect

FORM = 'application/x-www-form-urlencoded'
LOST = 'ledger "$ONCE_KEY"; kill -9 $$'

# What people have put into names to break pages, logs and terminals.
NASTY = [
    b'<script>alert(1)</script>', b'"><script>alert(1)</script>',
    b"'><img src=x onerror=alert(1)>", b'</td></tr></table>',
    b'</title><h1>x', b'</style><style>*{display:none}', b'</textarea>x',
    b'<!--', b'-->', b'<![CDATA[', b']]>', b'&lt;b&gt;', b'&#60;b>',
    b'&amp;', b'&', b'javascript:alert(1)', b'data:text/html,<b>',
    b'" onmouseover="alert(1)', b"' autofocus onfocus='alert(1)",
    b'`onclick=alert(1)`', b'x" style="position:fixed',
    b'{key}', b'%s%n%x', b'%3Cscript%3E', b'${7*7}', b'{{7*7}}',
    b"' OR 1=1 --", b'"; DROP TABLE once_key; --', b'../../etc/passwd',
    b'?id=1&do=forget', b'#', b'a\tb', b'a\nb', b'a\r\nSet-Cookie: x=1',
    b'\x1b[2J\x1b]0;x\x07', b'\x01\x08\x7f', b'\xff\xfe', b'\xc0\xbcscript',
    b'\xed\xa0\x80', b'\xc2\x9b31m', b'\xe2\x80\xaegnp.exe',
    b'\xf0\x9f\x92\xa9 \xe6\xbc\xa2', b'e\xcc\x81' * 40,
    b'x' * 3000, b' lead and trail ',
]


def shown(name):
    """How the page shows these bytes."""
    out, text = '', name.decode('utf-8', 'surrogateescape')
    for c in text:
        if 0xdc80 <= ord(c) <= 0xdcff:
            out += '\\x%02x' % (ord(c) - 0xdc00)
        elif ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0:
            out += ''.join('\\x%02x' % b for b in c.encode())
        else:
            out += c
    return out


def start(t, handler=LOST, admins='ann bob', server=None, **kw):
    if isinstance(handler, str) and '\n' not in handler:
        handler = t.sh(handler)
    server = dict({'admin_path': '/once', 'admin_users': admins},
                  **(server or {}))
    return t.once(handler=handler, server=server, **kw)


def is_guarded(answer):
    """The fields that every page has."""
    policy = answer.get('Content-Security-Policy')
    for part in ("default-src 'none'", "frame-ancestors 'none'",
                 "form-action 'self'", "base-uri 'none'"):
        assert part in policy, policy
    assert 'unsafe' not in policy and 'script' not in policy, policy
    nonce = re.search(r"style-src 'nonce-([0-9a-f-]{36})'", policy).group(1)
    if answer.body:
        eq(re.findall(rb'<style.*?>', answer.body),
           [b'<style nonce="%s">' % nonce.encode()])
    eq(answer.get('X-Frame-Options'), 'DENY')
    eq(answer.get('X-Content-Type-Options'), 'nosniff')
    eq(answer.get('Cache-Control'), 'no-store')
    eq(answer.get('Content-Type'), 'text/html; charset=utf-8')


def get(once, name='', status=200, user='ann', **kw):
    path, _, query = name.partition('?')
    answer = once.get('/once/' + path, query=query, user=user, **kw)
    eq(answer.status, status, answer)
    is_guarded(answer)
    return Page(answer)


def post(once, fields, user='ann', type=FORM, **kw):
    body = fields if isinstance(fields, bytes) else encode(fields)
    answer = once.post(None, body, path='/once/act', user=user, type=type,
                       **kw)
    is_guarded(answer)
    return answer


def find(once, status=200, **fields):
    return get(once, 'find?' + urllib.parse.urlencode(fields), status=status)


def found(once, **fields):
    """The keys of a search, whole: each page of it."""
    pages = [find(once, **fields)]
    while pages[-1].next:
        pages.append(get(once, pages[-1].next[0]))
    return [key for page in pages for key in page.keys]


def lost(once, key='k', **kw):
    """A key that is unknown; its number."""
    problem(once.post(key, **kw), 'handler-failed', unknown=True)
    return find(once, what=key, **{'as': 'key'}).id_of('key')


def confirm(once, do, id, user='ann'):
    """The form of the page that asks."""
    return form_of(get(once, 'act?do=%s&id=%d' % (do, id), user=user))


def forbidden(answer):
    eq(answer.status, 403, answer)
    Page(answer)


# --- what is shown ---------------------------------------------------------

def test_overview_says_that_nothing_needs_attention(t):
    once = start(t, 'status 201')
    first(once.post('a'), 201)
    page = get(once)
    assert 'Nothing does.' in page.text and 'The store works.' in page.text
    eq([tag for tag, _ in page.tags if tag == 'script'], [])


def test_overview_shows_an_unknown_key_first(t):
    once = start(t)
    lost(once, 'k-1', user='carl')
    page = get(once)
    for text in ('k-1', '/pay', 'carl', 'unknown none',
                 'Keys whose outcome'):
        assert text in page.text, text
    assert page.text.index('k-1') < page.text.index('Health')
    assert page.text.index('Health') < page.text.index('Keys by state')
    assert page.text.index('Keys by state') < page.text.index('last hour')


def test_overview_counts_by_route(t):
    once = start(t, 'status 201', routes={'/pay': {}})
    for path, times in (('/pay', 3), ('/other', 2)):
        for _ in range(times):
            once.post('k', path=path)
    once.post('k', body=b'another')
    rows = re.search(r'since this process began Path First runs Replays '
                     r'Refusals (.*?) The last hour', get(once).text)[1]
    eq(rows, '/pay 1 2 1 (no route) 1 1 0')


def test_admin_path_alone_leads_to_the_page(t):
    answer = start(t).get('/once')
    eq((answer.status, answer.get('Location')), (301, '/once/'))
    is_guarded(answer)


def test_head_has_no_body(t):
    once = start(t)
    answer = once.request('HEAD', '/once/')
    eq((answer.status, answer.body), (200, b''))
    is_guarded(answer)


def test_what_is_not_there_is_404(t):
    once = start(t)
    for name in ('none', 'key', 'key?id=1', 'key?id=x', 'key?id=-1',
                 'key?id=99999999999999999999', 'effect?id=1',
                 'act?do=forget&id=7', 'act?do=none&id=1', 'act'):
        get(once, name, status=404)


def test_other_methods_are_405(t):
    once = start(t)
    for method, name, allowed in (('POST', '/once/', 'GET, HEAD'),
                                  ('PUT', '/once/act', 'GET, HEAD, POST'),
                                  ('DELETE', '/once/key', 'GET, HEAD')):
        answer = once.request(method, name, user='ann')
        eq((answer.status, answer.get('Allow')), (405, allowed))
        is_guarded(answer)


def test_lists_show_100_and_go_on(t):
    once = start(t, defaults={'max_open_keys': '0'})
    for i in range(203):
        once.post('k%d' % i)
    keys = ['k%d' % i for i in range(203)]

    def whole():
        page = find(once, state='unknown')
        return page if len(page.keys) == 100 else None
    # The list ends early where reading it takes long.
    page = wait_until(whole, 'a list of 100 keys')
    assert ' 103 more.' in page.text, page.text
    eq(page.keys, keys[:100])
    eq(found(once, state='unknown'), keys)
    # The overview leads to the same list, and has the newest keys as well.
    page = get(once)
    eq(page.keys[:100], keys[:100])
    eq(get(once, page.next[0]).keys, keys[100:200])
    eq(page.keys[100:], keys[:-101:-1])
    eq(get(once, page.next[1]).keys, keys[102:2:-1])
    get(once, page.next[0] + 'x', status=400)


def test_effects_of_a_key_go_on(t):
    once = start(t, t.py(EMITTER), defaults={'share_database': 'yes'},
                 conf=section('mail', '/bin/false', backoff='1h'))
    first(once.post('k', b'mail x\n' * 130), 201)
    page = get(once, 'key?id=1')
    links = [link for link in page.links if link.startswith('effect?')]
    page = get(once, page.next[0])
    links += [link for link in page.links if link.startswith('effect?')]
    eq(links, ['effect?id=%d' % n for n in range(1, 131)])
    eq(page.next, [])


def test_counts_by_state_are_those_of_now(t):
    once = start(t, 'case $ONCE_KEY in l*) kill -9 $$;; r*) status 503;; '
                 'esac; status 201')
    for key in ('a', 'b', 'c', 'r1', 'r2', 'l'):
        once.post(key)
    text = get(once).text
    for count in ('3 completed', '2 failed_retryable', '1 unknown',
                  '0 pending', '0 expired'):
        assert count in text, text


def minutes(once):
    """The sums of the table: first runs, replays, refusals, unknown."""
    body = once.get('/once/').body.decode()
    rows = re.findall(r'<tr><th scope="row">\d\d:\d\d</th>(.*?)</tr>', body)
    eq(len(rows), 60)
    numbers = [[int(n) for n in re.findall(r'>(\d+)<', row)] for row in rows]
    return [sum(column) for column in zip(*numbers)]


def test_last_hour_counts_what_happened(t):
    once = start(t, 'case $ONCE_KEY in l*) kill -9 $$;; esac; status 201',
                 defaults={'key': 'required'})
    eq(minutes(once), [0, 0, 0, 0])
    first(once.post('a'), 201)
    for _ in range(3):
        once.post('a')
    problem(once.post(), 'key-missing')
    problem(once.post('a', b'other'), 'key-reused')
    problem(once.post('l'), 'handler-failed', unknown=True)
    problem(once.post('l'), 'outcome-unknown')
    eq(minutes(once), [2, 3, 2, 2])
    body = once.get('/once/').body.decode()
    for name in ('first', 'replay', 'refusal', 'unknown'):
        assert '<rect class="%s" x=' % name in body


def test_refusals_of_the_page_count_as_all_others(t):
    once = start(t)
    eq(once.get('/once/nope').status, 404)
    eq(once.get('/once/key', query='id=99999').status, 404)
    eq(once.request('PUT', '/once/').status, 405)
    eq(once.request('POST', '/once/health').status, 405)
    eq(minutes(once), [0, 0, 4, 0])
    eq(refused(metrics(once)), {'not-found': 2, 'method-not-allowed': 2})


def test_key_page_shows_life_and_answer(t):
    once = start(t, 'printf "Status: 202 So Be It\\nX-A: <b>\\n'
                 'Set-Cookie: s=secret\\n\\nbody"',
                 defaults={'replay_drop': 'Date'})
    once.post('k', user='carl')
    page = get(once, 'key?id=%d' % get(once, 'find?what=k').id_of('key'))
    assert re.search(r' Made \d{4}(-\d\d){2} \d\d(:\d\d){2} UTC '
                     r'\(\d+ s ago\) Last', page.text), page.text
    for text in ('completed', '/pay', 'carl', '202 So Be It', 'X-A <b>',
                 "Method POST Client's address 127.0.0.1 Reference "
                 'urn:uuid:' + re.search(r'event=run instance=urn:uuid:(\S+)',
                                         once.log()).group(1),
                 'Bytes of the body 4', once.row('k')['downstream']):
        assert text in page.text, (text, page.text)
    assert 'secret' not in page.text


def test_key_page_shows_the_body_to_those_who_may_act(t):
    once = start(t, r'printf "Content-Type: text/html\n\n'
                 r'<b>a\0b\377\r\n\tc</b>\303\244"; cat "$D/body"')
    t.write('body', b'x' * 70000)
    once.post('long')
    t.write('body', b'')
    once.post('k')
    for user, wanted in (('ann', True), ('carl', False)):
        page = get(once, 'key?id=2', user=user)
        eq('<b>a\\x00b\\xff\\x0d\n\tc</b>\u00e4' in page.texts, wanted)
        eq('Only the users in admin_users see the body.' in page.text,
           not wanted)
        assert 'Bytes of the body 17' in page.text, page.text
        page = get(once, 'key?id=1', user=user)
        eq([len(text) for text in page.texts if text.startswith('<b>')],
           [65536 - 17 + 25] if wanted else [])
        eq('The first 65536 bytes of the body' in page.text, wanted)


def test_key_page_shows_what_was_refused(t):
    once = start(t, r'printf "no <answer>\nat\0all"; exit 3')
    id = lost(once)
    page = get(once, 'key?id=%d' % id)
    assert 'no <answer> at\\x00all' in page.text, page.text
    assert 'Exit status 3' in page.text
    assert 'stderr' not in page.text


def test_key_page_shows_stderr_and_what_released_the_key(t):
    once = start(t, r'printf "first\n<b>\033[1m\nlast" >&2; status 503')
    first(once.post('k'), 503)
    page = get(once, 'key?id=1', user='carl')
    assert 'wrote to stderr first <b>\\x1b[1m last' in page.text, page.text
    assert re.search(r'Last error \D*\(status 503\) ', page.text), page.text


def test_find_by_what_a_customer_has(t):
    once = start(t, 'case $ONCE_KEY in l*) kill -9 $$;; esac; status 201')
    peers = {'a': '192.0.2.7', 'b': '2001:db8::7', 'l1': '192.0.2.7',
             'l2': '192.0.2.8', '/pay/y': '192.0.2.9'}
    for key, path in (('a', '/pay'), ('b', '/pay/x'), ('l1', '/pay'),
                      ('l2', '/other'), ('/pay/y', '/p')):
        once.post('"%s"' % key, path=path,
                  params=[('REMOTE_ADDR', peers[key])])
    eq(found(once, what='a'), ['a'])
    eq(found(once, what=' a'), [])
    eq(found(once, what='/pay'), ['l1', 'b', 'a'])
    eq(found(once, what='/pay', state='unknown'), ['l1'])
    eq(found(once, state='unknown'), ['l1', 'l2'])
    eq(found(once, state='completed'), ['/pay/y', 'b', 'a'])
    eq(found(once, what='192.0.2.7'), ['l1', 'a'])
    eq(found(once, what='2001:db8::7'), ['b'])
    eq(found(once, what='192.0.2.77'), [])
    for key in ('a', 'l2'):
        row = once.row(key)
        eq(found(once, what=row['downstream']), [key])
        # A first run, a replay, and a refusal.
        once.post(key, path=row['path'])
        once.post(key, b'x', path=row['path'])
        told = re.findall(r'instance=(\S+) .* key=%s ' % key, once.log())
        assert len(set(told)) == 3, told
        for reference in told:
            eq(found(once, what=reference), [key])
            eq(found(once, what=reference.replace('urn:uuid:', '').upper()),
               [key])
    eq(found(once, what='a', state='unknown'), [])
    assert 'There is no such key.' in find(once, what='none').text
    once.ctl('forget', 'l2')
    page = find(once, what=told[0])
    assert 'of a request to this store, but its key is not' in page.text
    eq(page.keys, [])


def test_a_text_that_is_two_things_is_found_as_both(t):
    once = start(t, 'status 201')
    once.post('a')
    row = once.row('a')
    once.post('"%s"' % row['downstream'])
    once.post('"/pay"', path='/other')
    eq(found(once, what=row['downstream']), [row['downstream'], 'a'])
    page = find(once, what='/pay')
    eq(page.keys, ['/pay', row['downstream'], 'a'])
    assert 'Keys of that name' in page.text, page.text
    assert 'Keys whose path begins so' in page.text, page.text


def test_find_by_time(t):
    once = start(t, 'status 201')
    once.post('old')
    once.post('new')
    hour = 3600 * 1000
    once.sql("UPDATE once_key SET created_at = created_at - %d WHERE id = 1"
             % (48 * hour))

    def day(ago, format='%Y-%m-%d'):
        return time.strftime(format, time.gmtime(time.time() - ago * 86400))
    minute = '%Y-%m-%dT%H:%M'
    for fields, keys in (
            ({'from': day(0.5, minute)}, ['new']),
            ({'from': day(3)}, ['new', 'old']),
            ({'to': day(1, minute)}, ['old']),
            ({'to': day(1, '%Y-%m-%d %H:%M')}, ['old']),
            ({'to': day(0)}, ['new', 'old']),
            ({'from': day(2), 'to': day(2)}, ['old']),
            ({'from': day(1.5, minute), 'to': day(1, minute)}, [])):
        eq(found(once, **fields), keys, fields)
        eq(found(once, what='/pay', **fields), keys, fields)


def test_find_says_which_field_is_wrong(t):
    once = start(t, 'status 201')
    for fields, says in (
            ({'state': 'none'}, 'State: there is no such state.'),
            ({'from': 'yesterday'}, 'Made from: that is no time.'),
            ({'from': '2026-11-31'}, 'Made from: that is no time.'),
            ({'to': '2026-11-20T25:00'}, 'Made until: that is no time.'),
            ({'to': '9' * 99}, 'A field is too long.'),
            ({'to': '9' * 99, 'z': '1'}, 'A field is too long.'),
            ({'what': 'x' * 20000, 'z': '1'}, 'Look for: that is too long'),
            ({'from': '2026-11-20', 'to': '2026-11-19'},
             'Made until: it is before Made from.'),
            ({'what': 'x' * 20000}, 'Look for: that is too long'),
            ({'what': 'a\0b'}, 'Look for: that is too long, or no text'),
            ({'what': 'a', 'as': 'peer'}, 'cannot be looked for so'),
            ({'state': 'unknown', 'next': 'x'}, 'leads nowhere')):
        page = find(once, status=400, **fields)
        assert says in page.text, (says, page.text)
        assert 'Look for' in page.text, 'the form is there'


def test_downstream_key_is_found_behind_many_others(t):
    """One that is settled, too: it tells the number of its row."""
    once = start(t, 'status $QUERY_STRING')
    first(once.post('old', query='201'), 201)
    first(once.post('free', query='503'), 503)
    row = once.row('old')
    once.plant(60000, "k.state = 'failed_retryable'", key="'k' || n",
               downstream='gen_random_uuid()' if base.POSTGRES else
               'randomblob(16)')
    page = find(once, what=row['downstream'])
    eq(page.keys, ['old'])
    # By its state it is behind a window of newer keys, or several.
    further, keys, pages = 'find?state=completed', [], 0
    while further:
        page = get(once, further)
        further = (page.next or [None])[0]
        keys += page.keys
        pages += 1
        assert bool(further) == ('Looked back to 20' in page.text), page.text
        assert page.keys or not further or 'none so far.' in page.text
    eq(keys, ['old'])


def test_45_nastiest_names(t):
    """Each is shown as text, whole on its key's page, and breaks nothing."""
    eq(len(NASTY), 45)
    once = start(t, defaults={'key_from': 'query:k header:Idempotency-Key',
                              'key_max_length': '4096',
                              'max_open_keys': '0'})
    lost(once, 'plain', path='/pay/plain', user='plain')
    tags = {}
    for name in ('', 'find?as=key&what=plain', 'key?id=1',
                 'act?do=forget&id=1'):
        tags[name] = get(once, name).tags
    rows = len(get(once, 'find?state=unknown').links)
    for n, name in enumerate(NASTY, 2):
        # A key has no control characters; scopes and paths may.
        try:
            key = name if name.decode().isprintable() else b'k%d' % n
        except UnicodeDecodeError:
            key = b'k%d' % n
        answer = once.post(None, query='k=' + urllib.parse.quote(key),
                           params=[('SCRIPT_NAME', b'/pay/x' + name),
                                   ('REMOTE_USER', name)])
        eq(answer.status, 502, answer)
        page = get(once, 'key?id=%d' % n)
        eq(page.tags, tags['key?id=1'], name)
        for value in (shown(key), shown(name)):
            assert value in page.texts, (value, page.texts)
        if b'/../' not in name:
            assert '/pay/x' + shown(name) in page.texts, page.texts
        page = get(once, 'act?do=forget&id=%d' % n)
        eq(page.tags, tags['act?do=forget&id=1'], name)
        query = 'find?as=key&what=' + urllib.parse.quote(key)
        eq(get(once, query).tags, tags['find?as=key&what=plain'], name)
        # The user's own name is one of them.
        get(once, params=[('REMOTE_USER', name)])
    page = get(once, 'find?state=unknown')
    eq(len(page.links), rows + 45)
    eq(set(tag for tag, _ in get(once).tags),
       set(tag for tag, _ in tags['']))


def passwords(t):
    """ann and carl have the password "secret"."""
    hashed = base64.b64encode(hashlib.sha1(b'secret').digest()).decode()
    t.write('htpasswd', ''.join('%s:{SHA}%s\n' % (user, hashed)
                                for user in ('ann', 'carl')))


def behind(t, kind):
    """With the example of that server: a password, a page and an act."""
    once = start(t)
    os.chmod(once.socket, 0o666)
    id = lost(once)
    passwords(t)
    server = t.server(kind, once)

    def curl(name, user='ann', method='GET', **kw):
        return server.curl('/once/' + name, method,
                           args=('-u', user + ':secret') if user else (),
                           **kw)
    eq(curl('', user=None).status, 401)
    eq(curl('', user='bob').status, 401)
    page = Page(curl(''))
    assert 'ann may change keys' in page.text, page.text
    eq(page.id_of('key'), id)
    assert 'carl may read' in Page(curl('', user='carl')).text
    to = server.curl('/once', 'GET', args=('-u', 'ann:secret'))
    assert to.status in (200, 301), to
    form = form_of(Page(curl('act?do=completed&id=%d' % id)))
    form['response'] = 'Status: 201\r\n\r\nby hand'
    body, line = encode(form), ['Content-Type: ' + FORM]
    eq(curl('act', 'carl', 'POST', body=body, headers=line).status, 403)
    answer = curl('act', 'ann', 'POST', body=body, headers=line)
    eq(answer.status, 200)
    is_guarded(answer)
    answer = once.post('k')
    eq((answer.status, answer.body), (201, b'by hand'))


def test_behind_lighttpd(t):
    behind(t, 'lighttpd-page')


def test_behind_nginx(t):
    behind(t, 'nginx-page')


def test_behind_apache(t):
    behind(t, 'apache-page')


# --- acts need a right ------------------------------------------------------

def test_readers_see_no_buttons(t):
    once = start(t)
    id = lost(once)
    for user in (None, '', 'carl', 'ANN', 'ann '):
        page = get(once, 'key?id=%d' % id, user=user)
        eq(page.acts, [])
        assert 'button' not in [tag for tag, _ in page.tags]
        get(once, 'act?do=forget&id=%d' % id, status=403, user=user)
    eq(get(once, 'key?id=%d' % id).acts,
       ['completed', 'not-executed', 'forget'])
    eq(get(once, 'key?id=%d' % id, user='bob').acts,
       ['completed', 'not-executed', 'forget'])


def test_two_names_of_a_user_are_none(t):
    once = start(t)
    id = lost(once)
    page = get(once, 'key?id=%d' % id, user='ann',
               params=[('REMOTE_USER', 'ann'), ('REMOTE_USER', 'ann')])
    eq(page.acts, [])


def test_without_admin_users_nobody_acts(t):
    once = t.once(handler=t.sh(LOST), server={'admin_path': '/once'})
    id = lost(once)
    eq(get(once, 'key?id=%d' % id).acts, [])
    get(once, 'act?do=forget&id=%d' % id, status=403)
    forbidden(post(once, {'do': 'forget', 'id': id, 'token': 'x'}))
    eq(once.state('k'), 'unknown')


def test_forged_post_changes_nothing(t):
    once = start(t)
    id, other = lost(once), lost(once, 'other')
    good = confirm(once, 'forget', id)
    eq(good['do'], 'forget')
    for change in ({'token': ''}, {'token': 'x'}, {'do': 'not-executed'},
                   {'do': 'none'}, {'id': other}, {'id': 99}, {'id': ''},
                   {'token': good['token'][:-1]},
                   {'token': good['token'] + '0'},
                   {'token': '0' + good['token']},
                   {'token': good['token'].upper()}):
        forbidden(post(once, dict(good, **change)))
    without = dict(good)
    del without['token']
    forbidden(post(once, without))
    forbidden(post(once, b''))
    forbidden(post(once, good, user='bob'))     # another admin's token
    forbidden(post(once, good, user='carl'))
    forbidden(post(once, good, user=None))
    forbidden(post(once, good, type='text/plain'))
    for host in ('evil.example', 'www.example.org:8080'):
        forbidden(post(once, good, params=[('HTTP_HOST', host)]))
    forbidden(post(once, b'', query=encode(good).decode()))
    eq([once.state('k'), once.state('other')], ['unknown', 'unknown'])
    assert once.log_lines('event=operator-refused.*user=bob')
    # All the same, it was a good one.
    eq(post(once, good).status, 200)
    eq(once.state('k'), None)


def test_token_ends_with_the_state_and_the_life(t):
    once = start(t)
    id = lost(once)
    forget = confirm(once, 'forget', id)
    release = confirm(once, 'not-executed', id)
    eq(post(once, release).status, 200)
    eq(once.state('k'), 'failed_retryable')
    forbidden(post(once, release))
    forbidden(post(once, forget))
    problem(once.post('k'), 'handler-failed', unknown=True)
    # Unknown again, but of another attempt.
    forbidden(post(once, forget))
    forbidden(post(once, release))
    eq((once.state('k'), once.row('k')['attempt']), ('unknown', 2))
    gone = confirm(once, 'forget', id)
    eq(post(once, gone).status, 200)
    forbidden(post(once, gone))
    lost(once)
    forbidden(post(once, gone))
    eq(once.state('k'), 'unknown')


def test_token_is_good_for_an_hour(t):
    clocks = Clocks(t)
    once = start(t)
    id = lost(once)
    form = confirm(once, 'forget', id)
    clocks.passes(HOUR + 1)
    forbidden(post(once, form))
    eq(once.state('k'), 'unknown')
    eq(post(once, confirm(once, 'forget', id)).status, 200)


def test_token_holds_over_a_restart(t):
    once = start(t)
    form = confirm(once, 'forget', lost(once))
    once.stop()
    once.start()
    eq(post(once, form).status, 200)


# --- acts --------------------------------------------------------------------

def test_completed_takes_an_answer(t):
    once = start(t)
    id = lost(once, user='carl')
    form = confirm(once, 'completed', id)
    given = 'Status: 201 Made Up\r\nContent-Type: text/plain\r\n\r\n' \
        'one\r\ntwo <b> \u20ac\r\n'
    eq(post(once, dict(form, response=given)).status, 200)
    answer = once.post('k', user='carl')
    eq((answer.status, answer.replayed), (201, 'true'), answer)
    eq(answer.body, 'one\ntwo <b> \u20ac\n'.encode())
    eq(t.ledger(), ['1 k'])
    line, = once.log_lines('event=operator ')
    for part in ('user=ann', 'key=k', 'act=completed', 'result=done',
                 'method=POST path=/pay peer=127.0.0.1 '):
        assert part in line, line


def test_completed_with_an_answer_that_cannot_be_replayed(t):
    once = start(t, routes={'/pay': {'max_response': '4'}})
    form = confirm(once, 'completed', lost(once))
    page = Page(post(once, dict(form, response='Status: 200\n\nabcde')))
    assert 'response-not-kept' in page.text, page.text
    problem(once.post('k'), 'response-not-kept',
            more=('original_status', 'completed_at'))


def test_a_key_that_is_settled_is_not_resolved(t):
    once = start(t, 'status 201')
    first(once.post('a'), 201)
    id = get(once, 'find?what=a').id_of('key')
    for do in ('completed', 'not-executed'):
        text = get(once, 'act?do=%s&id=%d' % (do, id), status=409).text
        assert 'is completed: only unknown and dead_letter can be resolved' \
            in text, text


def test_completed_refuses_what_is_no_answer(t):
    once = start(t)
    form = confirm(once, 'completed', lost(once))
    for given, why in (('', 'empty'), ('no head', 'end'),
                       ('Content-Type: a/b\r\n: x\r\n\r\n', 'line'),
                       ('Content-Type: a/b\r\nContent-Length: 9\r\n\r\nx',
                        'Content-Length says 9, but the body has 1 bytes'),
                       ('Status: 200\r\nIdempotency-Outcome: unknown\r\n\r\n',
                        'Idempotency-Outcome')):
        answer = post(once, dict(form, response=given))
        eq(answer.status, 400, answer)
        page = Page(answer)
        assert why in page.text, page.text
        assert given.replace('\r', '').strip() in ''.join(page.texts)
    eq(once.state('k'), 'unknown')
    # The page that was shown last has a form that works.
    again = form_of(page)
    eq(post(once, dict(again, response='Status: 204\r\n\r\n')).status, 200)
    eq(once.post('k').status, 204)


def test_not_executed_releases(t):
    once = start(t, 'ledger; [ $ONCE_ATTEMPT != 1 ] || kill -9 $$; '
                 'status 201')
    eq(post(once, confirm(once, 'not-executed', lost(once))).status, 200)
    eq(once.state('k'), 'failed_retryable')
    first(once.post('k'), 201)
    eq(len(t.ledger()), 2)


def test_forget_is_not_offered_while_it_runs(t):
    gate = t.gate()
    once = start(t, 'gate gate; status 201')
    conn = once.begin('k')
    gate.wait()
    id = get(once, 'find?state=in_progress').id_of('key')
    eq(get(once, 'key?id=%d' % id).acts, [])
    get(once, 'act?do=forget&id=%d' % id, status=409)
    gate.open()
    eq(conn.answer().status, 201)
    eq(get(once, 'key?id=%d' % id).acts, ['forget'])


def test_effect_is_retried_and_dropped(t):
    once = start(t, t.py(EMITTER), defaults={'share_database': 'yes'},
                 conf=section('mail', t.sh(RECEIPT + '[ -e "$D/up" ]',
                                           name='mail'), attempts=1))
    first(once.post('k', b'mail one\nmail two'), 201)
    wait_effect(once, 'dead_letter', 1)
    wait_effect(once, 'dead_letter', 2)
    page = get(once)
    assert 'Effects that could not be delivered' in page.text
    id = page.id_of('effect')
    eq(get(once, 'effect?id=%d' % id).acts, ['retry', 'drop'])
    eq(get(once, 'effect?id=%d' % id, user='carl').acts, [])
    eq(post(once, confirm(once, 'drop', 2)).status, 200)
    t.write('up')
    form = confirm(once, 'retry', 1)
    eq(post(once, form).status, 200)
    wait_effect(once, 'delivered', 1)
    forbidden(post(once, form))
    eq(get(once, 'effect?id=1').acts, ['drop'])
    get(once, 'effect?id=2', status=404)
    eq(len(once.log_lines('event=operator .*user=ann.*effect=')), 3)


def test_body_too_large_is_413(t):
    once = start(t)
    id = lost(once)
    form = confirm(once, 'completed', id)
    eq(post(once, dict(form, response='x' * 5_000_000)).status, 413)
    eq(once.state('k'), 'unknown')


# --- all that a search found --------------------------------------------------

def release(n):
    return re.escape('Release all %d (not executed)' % n)


def offer(once, do, label, user='ann', **fields):
    """The page that asks for an act upon all keys of a search."""
    page = find(once, **fields)
    assert [text for text in page.texts if re.fullmatch(label, text)], page
    (form,) = [f for _, action, f in page.forms if action == 'many']
    eq(form.pop('do').count(do), 1)
    query = dict({name: value for name, (value,) in form.items()}, do=do)
    return get(once, 'many?' + urllib.parse.urlencode(query), user=user)


def many(once, fields, **kw):
    """Does it."""
    body = encode(fields)
    answer = once.post(None, body, path='/once/many', type=FORM,
                       **dict({'user': 'ann'}, **kw))
    is_guarded(answer)
    return answer


def lose(once, *keys, **kw):
    for key in keys:
        problem(once.post(key, **kw), 'handler-failed', unknown=True)


def operators(once):
    return [(parse(line)[1]['act'], parse(line)[1]['key'],
             parse(line)[1]['result'])
            for line in once.log_lines('event=operator .*user=ann')]


def test_all_that_a_search_found_are_released(t):
    once = start(t, 'case $ONCE_KEY in ok*) status 201;; *) kill -9 $$;; esac',
                 defaults={'max_open_keys': '0'})
    keys = ['k%d' % n for n in range(45)]
    lose(once, *keys)
    lose(once, 'other', path='/other')
    first(once.post('ok'), 201)
    page = offer(once, 'not-executed', release(45), what='/pay')
    assert 'Release all 45' in page.text and 'happens twice' in page.text
    # What changes or is made from now on stays as it is.
    once.ctl('resolve', 'k7', '--not-executed')
    lose(once, 'k7', 'new')
    page = Page(many(once, form_of(page)))
    assert '44 keys are released.' in page.text, page.text
    assert '1 stays as it is' in page.text, page.text
    eq(page.forms, [])
    states = {row['key']: row['state'] for row in once.ls()}
    for key in ('k7', 'new', 'other'):
        eq(states.pop(key), 'unknown')
    eq(states.pop('ok'), 'completed')
    eq(set(states.values()), {'failed_retryable'})
    eq(sorted(operators(once)), sorted(
        ('not-executed', key, 'done') for key in keys if key != 'k7'))


def test_all_that_a_search_found_are_forgotten_but_what_runs(t):
    gate = t.gate()
    once = start(t, 'case $ONCE_KEY in run) gate gate;; l*) kill -9 $$;; esac;'
                 ' status 201')
    for key in ('a', 'b'):
        first(once.post(key), 201)
    lose(once, 'lost')
    running = once.begin('run')
    gate.wait()
    page = find(once, what='127.0.0.1')
    for text in ('Release all 1 (not executed)', 'Forget all 3'):
        assert text in page.texts, page.texts
    page = Page(many(once, form_of(
        offer(once, 'forget', 'Forget all 3', what='127.0.0.1'))))
    assert '3 keys are forgotten.' in page.text, page.text
    assert '1 stays as it is' in page.text, page.text
    eq([row['key'] for row in once.ls()], ['run'])
    page = find(once, state='in_progress')
    eq((page.keys, page.forms[1:]), (['run'], []))
    gate.open()
    first(running.answer(), 201)


def test_what_takes_long_is_gone_on_with(t):
    """A request acts for a second and a half, whatever the machine."""
    once = start(t, 'status 201')
    first(once.post('a'), 201)
    once.plant(60000, key="'k' || n")
    answer = many(once, form_of(offer(
        once, 'forget', 'Forget all(, more than \\d+| 60001)',
        state='completed')))
    pages = 1
    while Page(answer).forms:
        assert re.search(r' Left: (more than )?\d+\. Go on',
                         Page(answer).text), Page(answer).text
        answer = many(once, form_of(Page(answer)))
        pages += 1
    assert 'Done' in Page(answer).text, answer
    eq(once.ls(), [])
    assert pages > 1, 'all 60001 keys within one request'


def test_all_are_reached_behind_many_newer_ones(t):
    """Those are not of the question, however many requests it takes."""
    once = start(t, 'status 201')
    first(once.post('a'), 201)
    once.plant(300, key="'k' || n")
    form = form_of(offer(once, 'forget', 'Forget all 301', what='/pay'))
    first(once.post('new'), 201)
    once.plant(20000, "key = 'new'", key="'n' || n")
    page = Page(many(once, form))
    assert '301 keys are forgotten.' in page.text, page.text
    while page.forms:
        page = Page(many(once, form_of(page)))
    assert 'Done' in page.text and 'stay' not in page.text, page.text
    eq(len(once.ls()), 20001)


def test_many_goes_on_where_it_ended(t):
    """Else what lies behind more keys than a request looks at stays."""
    once = start(t, 'status 201')
    first(once.post('a'), 201)
    id = find(once, what='a').id_of('key')
    once.plant(300, key="'k' || n")
    form = form_of(offer(once, 'forget', 'Forget all 301', what='/pay'))
    page = Page(many(once, dict(form, next='0.%d' % id)))
    assert '300 keys are forgotten.' in page.text, page.text
    forbidden(many(once, dict(form, next='x')))
    eq([row['key'] for row in once.ls()], ['a'])


def test_forged_post_for_many_changes_nothing(t):
    clocks = Clocks(t)
    once = start(t)
    lose(once, 'a', 'b')
    good = form_of(offer(once, 'not-executed', release(2),
                         state='unknown'))
    eq(sorted(good), ['as', 'do', 'from', 'moment', 'state', 'to', 'token',
                      'what'])
    for change in ({'do': 'forget'}, {'state': 'dead_letter'}, {'state': ''},
                   {'what': 'a', 'as': 'key'}, {'from': '2020-01-01'},
                   {'moment': str(int(good['moment']) + 1)}, {'moment': ''},
                   {'token': good['token'][:-1] + 'x'}, {'token': ''}):
        forbidden(many(once, dict(good, **change)))
    for change in ({'do': 'completed'}, {'do': ''}, {'as': ''},
                   {'what': 'x', 'as': 'all'}):
        eq(many(once, dict(good, **change)).status, 404)
    forbidden(many(once, good, user='bob'))
    forbidden(many(once, good, user='carl'))
    forbidden(many(once, good, user=None))
    forbidden(many(once, good, params=[('HTTP_HOST', 'evil.example')]))
    get(once, 'many?do=forget&as=all&state=unknown', user='carl', status=403)
    get(once, 'many?do=forget&as=all&state=expired', status=409)
    get(once, 'many?do=forget', status=404)
    eq(find(once, state='unknown').keys, ['a', 'b'])
    assert not [f for f in get(once, 'find?state=unknown', user='carl').forms
                if f[1] == 'many']
    clocks.passes(HOUR + 1)
    forbidden(many(once, good))
    eq(len(once.ls('--state', 'unknown')), 2)
    eq(many(once, form_of(offer(once, 'not-executed', release(2),
                                state='unknown'))).status, 200)
    eq(once.ls('--state', 'unknown'), [])
