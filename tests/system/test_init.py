"""examples/oncewrap.init: a daemon and its pid file without systemd."""
import os
import shutil

import base
import fcgi
from answer import eq
from base import wait_until
from once import Background

INIT = os.path.join(base.EXAMPLES, 'oncewrap.init')


class Service:
    def __init__(self, t):
        base.need_root()
        base.need('start-stop-daemon')
        self.t = t
        self.handler = t.sh('status 200; id -un')
        shutil.copy(base.ONCEWRAP, t.path('oncewrap'))
        os.chmod(t.path('oncewrap'), 0o755)
        self.configure()
        self.defaults = t.write('defaults', ''.join(
            '%s=%s\n' % (name, t.path(file)) for name, file in (
                ('DAEMON', 'oncewrap'), ('CONFIG', 'once.conf'),
                ('RUN', 'run'), ('STATE', 'state'),
                ('PIDFILE', 'once.pid'))) + 'ACCOUNT=daemon\n')
        t.defer(lambda: self('stop'))
        t.logs.append(('once.log', t.path('state/once.log')))

    def configure(self, more=''):
        self.t.write('once.conf', '[server]\ndatabase = %s\n'
                     'socket = unix:%s\nlog = %s\n%s[defaults]\n'
                     'handler = %s\n' % (
                         self.t.path('state/once.db'),
                         self.t.path('run/once.sock'),
                         self.t.path('state/once.log'), more, self.handler))

    def __call__(self, command, status=0):
        run = self.t.run(['sh', INIT, command],
                         env={'DEFAULTS': self.defaults, 'PATH': '/bin'})
        eq(run.returncode, status, run)
        if command in ('start', 'restart') and status == 0:
            # The case has adopted it, and must reap it as init would.
            Background(lambda pid=self.pid: os.waitpid(pid, 0))
        return (run.stdout + run.stderr).decode()

    @property
    def pid(self):
        return int(self.t.read('once.pid'))

    def answers(self):
        answer = fcgi.exchange(self.t.path('run/once.sock'),
                               fcgi.request_params('POST', '/pay', b'',
                                                   key='k'), b'', base.WAIT)
        eq((answer.status, answer.body), (200, b'daemon\n'), answer)


def test_start_reload_restart_stop(t):
    service = Service(t)
    assert 'does not run' in service('status', status=3)
    eq(service('start'), '')
    service.answers()       # at once: it waits until requests are answered
    pid = service.pid
    eq(service('start'), '')
    assert 'process %d' % pid in service('status')
    eq((service.pid, os.stat('/proc/%d' % pid).st_uid), (pid, 1))
    service('reload')
    wait_until(lambda: b'event=reloaded' in t.read('state/once.log'),
               'it has reloaded')
    service('restart')
    assert service.pid != pid
    service.answers()
    service('stop')
    assert not t.exists('once.pid') and not t.exists('run/once.sock')
    service('status', status=3)
    service('stop')


def test_a_bad_configuration_ends_nothing(t):
    service = Service(t)
    service('start')
    pid = service.pid
    service.configure('nonsense = 1\n')
    for command in ('reload', 'restart', 'force-reload'):
        said = service(command, status=1)
        assert 'once.conf:5: ' in said and 'nonsense' in said, said
        eq(service.pid, pid)
        service.answers()
    service('stop')
    said = service('start', status=1)
    assert 'once.conf:5: ' in said and not t.exists('once.pid'), said


def test_a_start_that_fails_says_so(t):
    service = Service(t)
    os.makedirs(t.path('state/once.db'))
    os.chown(t.path('state'), 1, 1)
    assert 'its log says why' in service('start', status=1)
    assert b'not a file' in t.read('state/once.log')
    assert not t.exists('once.pid')
    service('status', status=3)


def test_its_usage(t):
    run = t.run(['sh', INIT, 'nonsense'], env={
        'DEFAULTS': t.write('defaults', 'DAEMON=/bin/true\n')})
    eq(run.returncode, 2)
    assert b'usage:' in run.stderr, run
