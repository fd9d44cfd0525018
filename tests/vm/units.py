"""What a systemd does with the units of examples/.

Cases run in the order of this file, each with a good configuration, and go on
from the state in which the one before left the service.  No command is given
where a case says that the service goes on by itself.
"""
import json
import os
import signal
import subprocess
import threading

import base
from base import wait_until
from service import (CONF, DATA, GOOD, SERVICE, UNITS, Waiting, eq, first,
                     journal, ledger, request, restarts, run, show, systemctl,
                     write)


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


def test_without_memory_a_program_is_ended_and_not_the_service():
    eq(request('score', 'score').body, b'0')
    pid = show('MainPID')
    with open('/proc/%s/oom_score_adj' % pid) as f:
        eq(f.read(), '-500\n')
    systemctl('set-property', '--runtime', SERVICE, 'MemoryMax=64M',
              'MemorySwapMax=0')
    answer = request('greedy', 'greedy', timeout=200)
    eq(answer.status, 502, answer)
    assert journal('-g', 'event=run .*key=greedy .* signal=9 ')
    wait_until(lambda: journal('-g', 'killed by the OOM killer'),
               'systemd has noticed')
    eq((show('MainPID'), show('ActiveState')), (pid, 'active'))
    systemctl('set-property', '--runtime', SERVICE, 'MemoryMax=infinity')
    eq(request('greedy', 'greedy').status, 409)
    first('after-memory')


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
