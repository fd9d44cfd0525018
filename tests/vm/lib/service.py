"""The service in the guest, for the cases of tests/vm: systemd's commands,
requests, and what handlers leave."""
import os
import shutil
import subprocess
import sys
import threading

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
greedy)	exec tail /dev/zero ;;
score)	read -r score </proc/self/oom_score_adj
	printf 'Status: 201\r\n\r\n%s' "$score"
	exit ;;
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


def request(key=None, query='', method='POST', path='/pay', timeout=60,
            params=()):
    params = fcgi.request_params(method, path, key=key, query=query,
                                 params=params)
    return fcgi.exchange(SOCKET, params, timeout=timeout * base.SLOW)


def first(key, query='', **kw):
    answer = request(key, query, **kw)
    eq((answer.status, answer.replayed), (201, None), answer)


class Waiting:
    """A request that is answered some time, and is not sent again."""

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
