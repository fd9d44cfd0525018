"""The CGI programs and the configuration of examples/, as they are."""
import os
import re
import shutil

import base
import postgres
import servers
from answer import DRAFT, eq, first, problem
from once import Background

JSON = ['Content-Type: application/json']
KINDS = {'payments': 'lighttpd', 'order.pl': 'nginx',
         'order.py': 'apache-proxy-fcgi', 'hello.sh': 'lighttpd'}


def setup(t, name):
    """(web server, oncewrap) with that program and oncewrap.conf."""
    servers.install(t, name)
    once = servers.start_example(t, 'oncewrap.conf')
    return t.server(KINDS[name], once), once


def lines(t, name):
    try:
        return t.read('cgi-bin/' + name).decode().splitlines()
    except FileNotFoundError:
        return []


def test_configuration_is_accepted_as_it_is(t):
    path = os.path.join(base.EXAMPLES, 'oncewrap.conf')
    run = t.run([base.ONCEWRAP, '-t', '-f', path])
    eq(run.returncode, 0, run.stderr)


def packaged(t, name, edit=lambda text: text):
    """A daemon with the configuration that a package installs."""
    once = t.once(start=False)
    with open(os.path.join(base.TOP, 'packaging', name)) as f:
        text = edit(f.read())
    text = re.sub('^database = .*', 'database = ' + once.database, text,
                  flags=re.M)
    text = re.sub('^socket = .*', 'socket = unix:' + once.socket, text,
                  flags=re.M)
    once.write_conf(re.sub('^log = .*', 'log = stderr', text, flags=re.M) +
                    '[route /]\nhandler = %s\n' % t.sh('ledger; status 201'))
    once.start()
    return once


def guards_what_its_comments_say(t, name):
    once = packaged(t, name)
    first(once.post('k'), 201)
    eq(once.post('k').replayed, 'true')
    eq(once.post().status, 201)
    eq(t.ledger(), ['1 ', ' '])
    once.stop()
    # The route in the comments.
    once = packaged(t, name, lambda text: re.sub(
        r'^; (\[route .*|\w+ = .*)', r'\1', text, flags=re.M))
    path, = re.findall(r'^\[route (/cgi-bin/.*)\]',
                       t.read(os.path.basename(once.file)).decode(), re.M)
    problem(once.post(path=path), 'key-missing', link=DRAFT)


def test_packaged_configuration_for_debian(t):
    guards_what_its_comments_say(t, 'debian/etc/oncewrap.conf')


def test_packaged_configuration_for_boards(t):
    guards_what_its_comments_say(t, 'small-flash.conf')


def test_payments(t):
    server, once = setup(t, 'payments')

    def pay(key, body):
        return server.curl('/cgi-bin/payments', key=key, body=body,
                           headers=JSON)
    problem(pay(None, '{"amount": 42}'), 'key-missing',
            link=DRAFT)
    answer = pay('"k"', '{"amount": 42}')
    first(answer, 201)
    again = pay('"k"', '{ "amount": 42.0 }')
    eq((again.status, again.replayed, again.body),
       (201, 'true', answer.body), again)
    eq(pay('"k"', '{"amount": 43}').status, 422)
    eq(pay('"bad"', '{"amount": 0}').status, 400)
    eq(pay('"bad"', '{"amount": 0}').replayed, 'true')
    busy = '{"amount": 7, "test": "busy"}'
    first(pay('"busy"', busy), 503)
    first(pay('"busy"', busy), 201)
    first(pay('"down"', '{"amount": 7, "test": "down"}'), 503)
    eq([line.split(' ', 1)[1] for line in lines(t, 'ledger')],
       ['amount=42 attempt=1 key=k', 'amount=7 attempt=2 key=busy'])


def test_payments_at_the_same_time(t):
    server, once = setup(t, 'payments')
    os.mkfifo(t.path('cgi-bin/gate'))

    def pay():
        return server.curl('/cgi-bin/payments', key='k', headers=JSON,
                           body='{"amount": 1, "test": "slow"}')
    winner = Background(pay)
    once.wait_state('k', 'in_progress')
    eq(pay().status, 409)
    with open(t.path('cgi-bin/gate'), 'wb'):
        pass
    first(winner.result(), 201)
    eq((pay().replayed, len(lines(t, 'ledger'))), ('true', 1))


def order(t, name):
    server, once = setup(t, name)

    def send(key, body):
        return server.curl('/cgi-bin/' + name, key=key, body=body,
                           headers=JSON)
    eq(send(None, '{"item": "tea", "count": 2}').status, 400)
    answer = send('k', '{"item": "tea", "count": 2}')
    first(answer, 201)
    again = send('k', '{"count": 2, "item": "tea"}')
    eq((again.replayed, again.body), ('true', answer.body), again)
    for n, bad in enumerate(('{"item": "tea"', '[' * 100000)):
        eq(send('bad%d' % n, bad).status, 400, bad[:20])
    # An order book that cannot be written: nothing happened.
    os.rename(t.path('cgi-bin/orders'), t.path('cgi-bin/kept'))
    os.mkdir(t.path('cgi-bin/orders'))
    eq(send('later', '{"item": "milk", "count": 1}').status // 100, 5)
    eq(once.state('later'), 'failed_retryable')
    os.rmdir(t.path('cgi-bin/orders'))
    os.rename(t.path('cgi-bin/kept'), t.path('cgi-bin/orders'))
    first(send('later', '{"item": "milk", "count": 1}'), 201)
    eq([line.split(' ', 1)[1] for line in lines(t, 'orders')],
       ['item=tea count=2 attempt=1 key=k',
        'item=milk count=1 attempt=2 key=later'])


def test_order_in_perl(t):
    order(t, 'order.pl')


def test_order_in_python(t):
    order(t, 'order.py')


def test_hello_in_shell(t):
    server, once = setup(t, 'hello.sh')
    path = '/cgi-bin/hello.sh'
    answer = server.curl(path, key='k')
    first(answer, 200)
    assert b'attempt 1 of key k' in answer.body, answer
    eq(server.curl(path, key='k').body, answer.body)
    answer = server.curl(path, 'GET')
    assert b'attempt - of key -' in answer.body, answer


def test_systemd_units(t):
    verify = base.need('systemd-analyze')
    for name in ('oncewrap.service', 'oncewrap.socket'):
        shutil.copy(os.path.join(base.EXAMPLES, name), t.dir)
    text = t.read('oncewrap.service').decode()
    assert '/usr/sbin/oncewrap' in text
    t.write('oncewrap.service', text.replace('/usr/sbin/oncewrap',
                                             base.ONCEWRAP))
    run = t.run([verify, 'verify', '--man=no', t.path('oncewrap.socket'),
                 t.path('oncewrap.service')])
    said = [line for line in run.stderr.decode().splitlines()
            if 'oncewrap' in line]
    eq(said, [])


def test_exposure_of_the_systemd_units(t):
    """What the units say of themselves, and in tests/vm a running systemd."""
    analyze = base.need('systemd-analyze')
    for name, tenths in (('', 14), ('user.conf', 20), ('setgid.conf', 25)):
        folder = t.path('with-' + name)
        os.makedirs(folder + '/oncewrap.service.d')
        shutil.copy(os.path.join(base.EXAMPLES, 'oncewrap.service'), folder)
        if name:
            shutil.copy(os.path.join(base.EXAMPLES, 'oncewrap.service.d',
                                     name), folder + '/oncewrap.service.d')
        run = t.run([analyze, 'security', '--offline=true', '--no-pager',
                     '--threshold=%d' % tenths, 'oncewrap.service'],
                    env={'SYSTEMD_UNIT_PATH': folder + ':'})
        eq(run.returncode, 0, run.stdout.decode())


def test_two_hosts_with_postgresql(t):
    """Also: it cleans up, and two at the same time do not meet."""
    postgres.program('initdb')
    base.need('lighttpd')
    os.chmod(t.dir, 0o755)
    runs = []
    for name in ('1', '2'):
        os.mkdir(t.path(name))
        os.chmod(t.path(name), 0o755)
        with open(t.path('run%s.log' % name), 'wb') as log:
            runs.append((name, t.popen(
                [os.path.join(base.EXAMPLES, 'postgresql', 'run')],
                stdout=log, stderr=log, env=dict(
                    os.environ, TMPDIR=t.path(name),
                    BUILDDIR=base.BUILDDIR))))
    for name, run in runs:
        status = run.wait(150 * base.SLOW)
        said = t.read('run%s.log' % name).decode()
        eq((status, said.splitlines()[-1]),
           (0, 'Every step gave what it says.'), said)
        for host in 'ab':
            assert 'ok: host %s ran ' % host in said, said
        assert 'ok: 22 payments, 22 charges, one for each key' in said
        eq(os.listdir(t.path(name)), [])


test_two_hosts_with_postgresql.minutes = 3


def test_configuration_of_postgresql_is_accepted(t):
    path = os.path.join(base.EXAMPLES, 'postgresql', 'oncewrap.conf')
    run = t.run([base.ONCEWRAP, '-t', '-f', path])
    eq(run.returncode, 0, run.stderr)
