"""What a systemd does with the units of examples/: runs in the guest.

Cases run in the order of this file, each with a good configuration, and go on
from the state in which the one before left the service.  No command is given
where a case says that the service goes on by itself.
"""
import json
import os
import shutil
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

SOCKET = '/run/oncewrap/oncewrap.sock'
CONF = '/etc/oncewrap.conf'
UNITS = '/etc/systemd/system/'
SERVICE = 'oncewrap.service'
DATA = '/srv/data'
LEDGER = '/var/lib/oncewrap/ledger'
HANDLER = '/usr/lib/cgi-bin/handler'
PROGRAM = '''#!/bin/sh
case $QUERY_STRING in
noise)	head -c 20000000 /dev/zero | tr '\\0' x | fold -w 1000 >&2 ;;
warn)	echo careful >&2 ;;
slow)	touch /var/lib/oncewrap/began
	while [ ! -e /var/lib/oncewrap/go ]; do sleep 0.1; done ;;
esac
echo "$ONCE_KEY" >>/var/lib/oncewrap/ledger
printf 'Status: 201 Created\\r\\n\\r\\ndone\\n'
'''
GOOD = '''[server]
database = %s/oncewrap.db
admin_path = /once
[defaults]
handler = /usr/lib/cgi-bin/handler
'''


def eq(got, want, context=''):
    assert got == want, 'got %.500r, expected %.500r %s' % (
        got, want, context)


def run(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def systemctl(*args):
    done = run('systemctl', *args)
    eq(done.returncode, 0, 'systemctl %s: %s' % (' '.join(args), done.stdout))
    return done.stdout


def show(name, unit=SERVICE):
    return systemctl('show', '--value', '-p', name, unit).strip()


def journal(*args):
    """Lines of the service in the journal."""
    return run('journalctl', '-u', SERVICE, '-o', 'cat', '--no-pager',
               *args).stdout.splitlines()


def write(path, text, mode=0o644):
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, mode)


def ledger():
    try:
        with open(LEDGER) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def request(key=None, query='', method='POST', path='/pay', timeout=60):
    params = fcgi.request_params(method, path, key=key, query=query)
    return fcgi.exchange(SOCKET, params, timeout=timeout * base.SLOW)


def first(key, query='', **kw):
    answer = request(key, query, **kw)
    eq((answer.status, answer.replayed), (201, None), answer)


class Waiting:
    """A request that is answered some time; nobody sends it again."""

    def __init__(self, key, query=''):
        self.answer = self.error = None
        self.thread = threading.Thread(target=self.work, args=(key, query),
                                       daemon=True)
        self.thread.start()

    def work(self, key, query):
        try:
            self.answer = request(key, query, timeout=200)
        except Exception as error:      # noqa: raised in result()
            self.error = error

    def result(self):
        self.thread.join(200 * base.SLOW)
        assert not self.thread.is_alive(), 'no answer'
        if self.error:
            raise self.error
        eq((self.answer.status, self.answer.replayed), (201, None),
           self.answer)


def restarts(n):
    """It has been started again so often, and none of it was a success."""
    wait_until(lambda: int(show('NRestarts')) >= n, '%d restarts' % n, 60)
    eq(show('ActiveState', 'oncewrap.socket'), 'active')
    assert show('SubState') != 'running'


# --- cases ---

def test_the_first_request_starts_it():
    eq(show('ActiveState'), 'inactive')
    eq(show('SubState', 'oncewrap.socket'), 'listening')
    first('one')
    eq((show('ActiveState'), show('SubState')), ('active', 'running'))
    answer = request('one')
    eq((answer.status, answer.replayed), (201, 'true'))
    eq(ledger(), ['one'])


def test_priorities_in_the_journal():
    first('warn', 'warn')

    def entries():
        found = [json.loads(line) for line in run(
            'journalctl', '-u', SERVICE, '-o', 'json', '--no-pager',
            '_COMM=oncewrap').stdout.splitlines()]
        found = {e['MESSAGE'].split(' ')[1]: e for e in found
                 if e['MESSAGE'].startswith('level=')}
        return 'event=handler-stderr' in found and found
    found = wait_until(entries, 'the line of the handler')
    eq(found['event=handler-stderr']['PRIORITY'], '4')
    eq(found['event=started']['PRIORITY'], '6')


def test_reload():
    write(CONF, GOOD % '/var/lib/oncewrap' + '[route /keyed]\nkey = required\n')
    pid = show('MainPID')
    eq(request(path='/keyed').status, 201)
    systemctl('reload', SERVICE)
    wait_until(lambda: request(path='/keyed').status == 400, 'a key is needed')
    eq(show('MainPID'), pid)
    eq(show('ActiveState'), 'active')


def test_reload_with_a_bad_file_fails_and_says_why():
    write(CONF, GOOD % '/var/lib/oncewrap' + 'timeout = soon\n')
    done = run('systemctl', 'reload', SERVICE)
    assert done.returncode != 0, done
    wait_until(lambda: [line for line in journal('-p', 'err')
                        if 'oncewrap.conf:6: ' in line and 'timeout' in line],
               'the reason in the journal')
    eq(show('ActiveState'), 'active')
    eq(request(path='/keyed').status, 400, 'the old configuration stays')
    write(CONF, GOOD % '/var/lib/oncewrap')
    systemctl('reload', SERVICE)
    wait_until(lambda: request(path='/keyed').status == 201, 'the new one')


def test_restart_under_load_loses_no_request():
    wrong, answered, stop = [], [], threading.Event()

    def client(name):
        n = 0
        while not stop.is_set():
            key, n = 'load-%s-%d' % (name, n), n + 1
            try:
                first(key)
                answered.append(key)
            except Exception as error:      # noqa: told below
                wrong.append('%s: %r' % (key, error))
    clients = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in clients:
        thread.start()
    for _ in range(3):
        seen = len(answered)
        wait_until(lambda: len(answered) > seen + 20 or wrong, 'answers')
        systemctl('restart', SERVICE)
    stop.set()
    for thread in clients:
        thread.join()
    eq(wrong, [])
    eq(sorted(k for k in ledger() if k.startswith('load')), sorted(answered))


def test_stop_lets_a_handler_finish():
    slow = Waiting('slow', 'slow')
    wait_until(lambda: os.path.exists('/var/lib/oncewrap/began'), 'it runs')
    stopping = subprocess.Popen(['systemctl', 'stop', SERVICE],
                                stderr=subprocess.DEVNULL)
    wait_until(lambda: show('SubState') == 'stop-sigterm', 'it is stopping')
    write('/var/lib/oncewrap/go', '')
    slow.result()
    eq(stopping.wait(60 * base.SLOW), 0)
    eq((show('Result'), show('ActiveState')), ('success', 'inactive'))


def test_killed_it_comes_back():
    first('before')
    pid = show('MainPID')
    os.kill(int(pid), signal.SIGKILL)
    Waiting('after').result()
    assert show('MainPID') not in (pid, '0')


def test_a_broken_configuration_and_its_repair():
    systemctl('stop', SERVICE)
    write(CONF, '[server]\nworkers = none\n')
    done = run('systemctl', 'start', SERVICE)
    assert done.returncode != 0, 'a start that fails is not called one'
    waiting = Waiting('repaired')
    # More often than systemd allows by default, in no more than its 10 s.
    restarts(7)
    wait_until(lambda: [line for line in journal('-p', 'err')
                        if 'oncewrap.conf:2: ' in line], 'the reason')
    write(CONF, GOOD % '/var/lib/oncewrap')
    waiting.result()
    eq(show('ActiveState'), 'active')


def test_a_data_disk_that_is_mounted_late():
    systemctl('stop', SERVICE)
    with open(UNITS + SERVICE) as f:
        shipped = f.read()
    option = '\nReadWritePaths=%s\n' % DATA
    unit = shipped.replace('\n#ReadWritePaths=/srv/data\n', option)
    assert option in unit, unit
    write(UNITS + SERVICE, unit)
    write(CONF, GOOD % (DATA + '/store'))
    systemctl('daemon-reload')
    os.chmod(DATA, 0o777)       # that is not what stops it
    waiting = Waiting('late')
    restarts(7)
    eq(os.listdir(DATA), [], 'below the mount point')
    eq(run('mount', '/dev/vdc', DATA).returncode, 0)
    waiting.result()
    assert os.path.exists(DATA + '/store/oncewrap.db')
    eq(show('ActiveState'), 'active')
    systemctl('stop', SERVICE)
    eq(run('umount', DATA).returncode, 0)
    eq(os.listdir(DATA), [], 'below the mount point')
    write(UNITS + SERVICE, shipped)
    systemctl('daemon-reload')


def test_a_journal_that_takes_nothing_stops_nothing():
    """Its stream has room for 16 MB in the kernel."""
    (pid,) = run('pidof', 'systemd-journald').stdout.split()
    os.kill(int(pid), signal.SIGSTOP)
    try:
        first('noise', 'noise', timeout=120)
        metrics = request(method='GET', path='/once/metrics').body.decode()
        (dropped,) = [line.split()[1] for line in metrics.splitlines()
                      if line.startswith('oncewrap_log_dropped_total ')]
        assert int(dropped) > 0, dropped
        systemctl('stop', SERVICE)
    finally:
        os.kill(int(pid), signal.SIGCONT)
    eq(show('Result'), 'success')


def test_enabled_it_starts_at_boot():
    """Pending work must not wait for a request."""
    systemctl('disable', 'oncewrap.socket')
    systemctl('enable', SERVICE)
    for unit in (SERVICE, 'oncewrap.socket'):
        eq(systemctl('is-enabled', unit).strip(), 'enabled', unit)
    assert SERVICE in show('Wants', 'multi-user.target')


# --- running them ---

def setup():
    for name in ('oncewrap', 'oncectl'):
        shutil.copy(os.path.join(HERE, name), '/usr/sbin')
    for name in (SERVICE, 'oncewrap.socket'):
        shutil.copy(os.path.join(HERE, name), UNITS)
    os.makedirs(os.path.dirname(HANDLER), exist_ok=True)
    write(HANDLER, PROGRAM, 0o755)
    write(CONF, GOOD % '/var/lib/oncewrap')
    systemctl('daemon-reload')
    systemctl('enable', '--now', 'oncewrap.socket')


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
            write(CONF, GOOD % '/var/lib/oncewrap')
            case()
        except Exception:       # noqa: the next one may pass
            failed += 1
            print('FAIL vm.%s' % name[5:])
            text = traceback.format_exc() + run(
                'journalctl', '-n', '30', '--no-pager', '-o', 'cat',
                '-u', SERVICE, '-u', 'oncewrap.socket').stdout
            for line in text.splitlines():
                print('    ' + line)
        else:
            passed += 1
            print('ok vm.%s (%.0f s)' % (name[5:], time.monotonic() - began))
        sys.stdout.flush()
    print('%d and %d' % (passed, failed))


main()
