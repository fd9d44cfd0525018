"""What the recipe's files do on a board with a small flash: runs there.

Cases run in the order of this file, with the configuration and the init script
of the package, and go on from the state that the one before left.  The database
is on UBIFS, on a simulated NAND flash.
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import base     # noqa: E402
import fcgi     # noqa: E402
from base import wait_until    # noqa: E402

INIT = '/etc/init.d/S49oncewrap'
CONF = '/etc/oncewrap.conf'
PIDFILE = '/var/run/oncewrap.pid'
SOCKET = '/var/run/oncewrap/oncewrap.sock'
STORE = '/srv/oncewrap'
DATABASE = STORE + '/oncewrap.db'
HANDLER = '/usr/lib/cgi-bin/pay'
STATE = '/tmp/state'
LEDGER = STATE + '/ledger'
PROGRAM = '''#!/bin/sh
case $QUERY_STRING in
slow)	touch %(state)s/began
	while [ ! -e %(state)s/go ]; do sleep 0.1; done ;;
esac
echo "$ONCE_KEY" >>%(state)s/ledger
printf 'Status: 201 Created\\r\\n\\r\\npaid\\n'
''' % {'state': STATE}
ROUTES = '''
[route /cgi-bin/pay]
key = required

[route /cgi-bin/soon]
key = required
retention = 2s
'''
YEAR = 31557600


def eq(got, want, context=''):
    assert got == want, 'got %.500r, expected %.500r %s' % (
        got, want, context)


def run(*argv, status=0):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if status is not None:
        eq(done.returncode, status, '%s: %s' % (' '.join(argv), done.stdout))
    return done.stdout


def write(path, text, mode=0o644):
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, mode)


def read(path):
    with open(path) as f:
        return f.read()


def ledger():
    return read(LEDGER).split() if os.path.exists(LEDGER) else []


def post(key, path='/cgi-bin/pay', query='', timeout=60):
    """An answer of lighttpd: status, fields, body."""
    c = http.client.HTTPConnection('127.0.0.1', 80,
                                   timeout=timeout * base.SLOW)
    c.request('POST', path + ('?' + query if query else ''), body='{"n":1}',
              headers={'Idempotency-Key': '"%s"' % key,
                       'Content-Type': 'application/json'})
    answer = c.getresponse()
    body = answer.read().decode()
    c.close()
    return answer.status, answer.headers, body


def first_and_replay(key):
    status, answer, body = post(key)
    eq((status, answer['Idempotent-Replayed'], body), (201, None, 'paid\n'))
    status, answer, body = post(key)
    eq((status, answer['Idempotent-Replayed'], body), (201, 'true', 'paid\n'))
    eq(ledger().count(key), 1)


def unanswered(key, query):
    """Its server dies: it gets an error, or none."""
    try:
        post(key, query=query)
    except OSError:
        pass


def raw(key, address, path='/cgi-bin/pay'):
    params = fcgi.request_params('POST', path, key=key,
                                 params={'SCRIPT_FILENAME': HANDLER})
    return fcgi.exchange(address, params, timeout=60 * base.SLOW)


def pid():
    return int(read(PIDFILE))


def listed(*args):
    return run('oncectl', '-f', CONF, 'ls', *args)


def up():
    """It answers: a connection is accepted."""
    def accepts():
        try:
            fcgi.Conn(SOCKET).close()
            return True
        except OSError:
            return False
    wait_until(accepts, 'it accepts a connection', 60)


def start():
    run('sh', INIT, 'start')
    up()


def set_clock(seconds):
    time.clock_settime(time.CLOCK_REALTIME, seconds)
    assert abs(time.time() - seconds) < 60


# --- cases ---

def test_the_clock_begins_in_1970():
    assert time.time() < YEAR, time.time()


def test_the_database_is_on_ubifs():
    run('ubiattach', '-p', '/dev/mtd0')
    wait_until(lambda: os.path.exists('/dev/ubi0'), 'the device of UBI')
    run('ubimkvol', '/dev/ubi0', '-m', '-N', 'srv')
    wait_until(lambda: os.path.exists('/dev/ubi0_0'), 'the volume')
    run('mount', '-t', 'ubifs', 'ubi0:srv', '/srv')
    write(CONF, read(CONF) + ROUTES)
    start()
    subprocess.Popen(['lighttpd', '-D', '-f', '/etc/lighttpd-board.conf'])
    wait_until(lambda: os.path.exists('/run/lighttpd.pid'), 'lighttpd')
    assert os.path.exists(DATABASE)
    info = os.stat(DATABASE)
    eq((info.st_uid, info.st_mode & 0o777), (900, 0o600))


def test_first_request_and_replay_in_1970():
    assert time.time() < YEAR, time.time()
    first_and_replay('in-1970')


def test_the_service_is_another_user():
    status = read('/proc/%d/status' % pid())
    eq(re.findall(r'^Uid:\t(.*)$', status, re.M), ['900\t900\t900\t900'])
    eq(os.stat(SOCKET).st_gid, 33)


def test_reload():
    was = pid()
    text = read(CONF)
    write(CONF, text + 'max_response = much\n')
    assert 'oncewrap.conf:' in run('sh', INIT, 'reload', status=1)
    write(CONF, text.replace('reap_interval = 10m', 'reap_interval = 100ms')
          .replace('[defaults]', 'sweep_interval = 100ms\n[defaults]'))
    run('sh', INIT, 'reload')
    eq(pid(), was)


def test_an_expired_key_is_reaped():
    eq(post('brief', '/cgi-bin/soon')[0], 201)
    assert 'brief' in listed()
    wait_until(lambda: 'brief' not in listed(), 'it is deleted', 60)
    assert 'in-1970' in listed()


def test_killed_in_a_run_it_recovers():
    """As inittab starts it: a killed one comes back."""
    run('sh', INIT, 'stop')
    eq(os.path.exists(PIDFILE), False)
    respawn = subprocess.Popen(
        ['sh', '-c', 'while :; do sh %s run; echo >>%s/ends; done' % (
            INIT, STATE)], start_new_session=True)
    up()
    lost = threading.Thread(target=unanswered, args=('lost', 'slow'))
    lost.start()
    wait_until(lambda: os.path.exists(STATE + '/began'), 'it runs')
    (old,) = run('pidof', 'oncewrap').split()
    os.kill(int(old), signal.SIGKILL)
    lost.join()
    wait_until(lambda: os.path.exists(STATE + '/ends'), 'it has ended')
    up()
    wait_until(lambda: 'lost' in listed('--state', 'unknown'),
               'the lost run is recovered', 60)
    status, answer, body = post('lost', query='slow')
    eq(status, 409, body)
    assert 'outcome-unknown' in body, body
    eq(post('in-1970')[1]['Idempotent-Replayed'], 'true')
    # The program of the lost run may go on; no other is started.
    write(STATE + '/go', '')
    assert ledger().count('lost') <= 1, ledger()
    os.killpg(respawn.pid, signal.SIGKILL)
    respawn.wait()
    wait_until(lambda: run('pidof', 'oncewrap', status=None) == '', 'it ends')
    start()


def test_the_clock_is_set():
    """As ntpd does: keys of before are no older for it."""
    set_clock(56 * YEAR)
    eq(post('in-1970')[1]['Idempotent-Replayed'], 'true')
    first_and_replay('in-2026')


def test_in_2040():
    set_clock(70.5 * YEAR)
    eq(post('in-2026')[1]['Idempotent-Replayed'], 'true')
    first_and_replay('in-2040')
    shown = run('oncectl', '-f', CONF, 'show', 'in-2040')
    assert '2040-' in shown, shown
    run('sh', INIT, 'restart')
    up()
    first_and_replay('in-2040-again')
    for key in ('in-1970', 'in-2026', 'in-2040'):
        eq(post(key)[1]['Idempotent-Replayed'], 'true', key)
    eq(post('brief-2040', '/cgi-bin/soon')[0], 201)
    wait_until(lambda: 'brief-2040' not in listed(), 'it is deleted', 60)


def test_jffs2_is_refused_with_a_reason():
    os.makedirs('/jffs2')
    run('mount', '-t', 'jffs2', 'mtd1', '/jffs2')
    os.makedirs('/jffs2/store')
    os.chown('/jffs2/store', 900, 900)
    conf = '/tmp/jffs2.conf'
    write(conf, '[server]\ndatabase = /jffs2/store/oncewrap.db\n'
          'socket = unix:/tmp/jffs2.sock\n')
    said = run('timeout', '60', 'su', '-s', '/bin/sh', 'oncewrap', '-c',
               'exec /usr/sbin/oncewrap -f ' + conf, status=None)
    assert 'use ext4, F2FS or UBIFS' in said, said
    assert not os.path.exists('/tmp/jffs2.sock')


def test_what_it_takes():
    """Memory, flash and writes: printed, with limits."""
    for n in range(100):
        eq(raw('many-%d' % n, SOCKET).status, 201)
    status = read('/proc/%d/status' % pid())
    kib = {name: int(n) for name, n in
           re.findall(r'^(VmRSS|RssAnon|RssFile|Threads):\s+(\d+)', status,
                      re.M)}
    print('    memory: %(VmRSS)d KiB, of it %(RssAnon)d KiB its own, '
          '%(RssFile)d KiB programs and libraries; %(Threads)d threads' % kib)
    assert kib['RssAnon'] < 8192, kib
    # The same on the card, whose writes the kernel counts.
    os.makedirs('/card')
    os.chown('/card', 900, 900)
    conf = '/tmp/card.conf'
    write(conf, read(CONF).replace(STORE, '/card')
          .replace(SOCKET, '/tmp/card.sock'))
    server = card_server(conf)
    eq(raw('card-first', '/tmp/card.sock').status, 201)
    end(server)
    size = os.stat('/card/oncewrap.db').st_size
    server = card_server(conf)
    os.sync()
    before, keys = written(), 100
    for n in range(keys):
        eq(raw('card-%d' % n, '/tmp/card.sock').status, 201)
    os.sync()
    wear = (written() - before) / keys
    end(server)
    size = (os.stat('/card/oncewrap.db').st_size - size) / keys
    print('    ext4 on the card: %.1f KiB written a key, %.0f bytes kept' % (
        wear / 1024, size))
    assert size < 2048 and wear < 100 * 1024, (size, wear)


def card_server(conf):
    # By another name: one of its own runs already.
    server = subprocess.Popen(['start-stop-daemon', '--start', '--quiet',
                               '--chuid', 'oncewrap:oncewrap', '--exec',
                               '/usr/bin/env', '--', '/usr/sbin/oncewrap',
                               '-f', conf])
    wait_until(lambda: os.path.exists('/tmp/card.sock'), 'it listens', 60)
    return server


def end(server):
    server.terminate()
    eq(server.wait(60 * base.SLOW), 0)
    assert not os.path.exists('/tmp/card.sock')


def written():
    """Bytes that the card was given."""
    return int(read('/sys/block/mmcblk0/stat').split()[6]) * 512


# --- running them ---

def setup():
    os.makedirs(STATE)
    os.chown(STATE, 900, 900)
    for name in ('pay', 'soon'):
        write('/usr/lib/cgi-bin/' + name, PROGRAM, 0o755)
    os.makedirs('/var/tmp', exist_ok=True)
    for path in ('/usr', '/usr/lib', '/usr/lib/cgi-bin', '/etc', '/'):
        os.chmod(path, 0o755)
    write('/etc/lighttpd-board.conf', '''
server.document-root = "/srv"
server.port = 80
server.bind = "127.0.0.1"
server.username = "www-data"
server.groupname = "www-data"
server.pid-file = "/run/lighttpd.pid"
''' + read(HERE + '/lighttpd.conf').replace('/run/oncewrap',
                                           '/var/run/oncewrap'))


def main():
    with open(os.path.join(HERE, 'arguments')) as f:
        slow, *filters = f.read().split()
    # An emulated processor is slow by itself.
    base.SLOW = 2 * float(slow)
    setup()
    passed = failed = 0
    for name, case in list(globals().items()):
        if not name.startswith('test_') or (
                filters and not any(f in name for f in filters)):
            continue
        began = time.monotonic()
        try:
            case()
        except Exception:       # noqa: the next one may pass
            failed += 1
            print('FAIL board.%s' % name[5:])
            text = traceback.format_exc() + run('busybox', 'logread',
                                                status=None)[-2000:]
            for line in text.splitlines():
                print('    ' + line)
        else:
            passed += 1
            print('ok board.%s (%.0f s)' % (name[5:],
                                            time.monotonic() - began))
        sys.stdout.flush()
    print('%d and %d' % (passed, failed))
    sys.stdout.flush()


main()
