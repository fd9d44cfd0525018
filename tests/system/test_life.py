"""The log: where it goes, and that one search shows a whole life."""
import hashlib
import os
import re
import socket

import base
import fcgi
import proc
import servers
from answer import UUID, eq, first, problem, replay
from base import wait_until
from once import HASTY, Background, lock_outcome

TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'
LINE = re.compile(r'ts=%s level=\w+ event=([a-z-]+)(?: (.*))?$' % TIME)
PAIR = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^" ]*)(?: |$)')


def parse(line):
    """(event, {name: value}) of a line."""
    match = LINE.match(line)
    assert match, line
    rest = match.group(2) or ''
    pairs = PAIR.findall(rest)
    eq(' '.join('%s=%s' % p for p in pairs), rest)
    return match.group(1), {n: v.strip('"') for n, v in pairs}


def grep(once, word):
    """As grep -F does."""
    return [parse(line) for line in once.log().splitlines() if word in line]


def tag(scope):
    return hashlib.sha256(scope.encode()).hexdigest()[:8]


def complete(lines, path, scope):
    """Each line of a request names it in full."""
    for event, got in lines:
        eq(got['path'], path, event)
        eq(got['scope'], scope, event)
        if 'instance' in got:
            assert re.fullmatch('urn:uuid:' + UUID, got['instance']), got
            assert re.fullmatch(r'\d{3}|-', got['status']), got


def test_one_grep_for_a_key_shows_its_whole_life(t):
    gate = t.gate()
    once = t.once(handler=t.sh('echo working >&2; gate gate; status 201'))
    ann = {'user': 'ann'}
    running = Background(lambda: once.post('order-17', 'a', **ann))
    gate.wait()
    problem(once.post('order-17', 'a', **ann), 'key-in-progress')
    gate.open()
    answer = running.result()
    first(answer, 201)
    replay(once.post('order-17', 'a', **ann), answer)
    problem(once.post('order-17', 'b', **ann), 'key-reused')
    problem(once.post('order-18', 'a' * 10, length=11, **ann),
            'body-incomplete')

    def came():
        # stderr may come before or after the answer to the second request
        return [e for e, _ in grep(once, 'key=order-17 ')
                if e != 'handler-stderr']
    wait_until(lambda: len(came()) == 4, 'all lines')
    eq(came(), ['problem', 'run', 'replay', 'problem'])
    lines = grep(once, 'key=order-17 ')
    eq(len(lines), 5, lines)
    complete(lines, '/pay', tag('ann'))
    eq([got['status'] for event, got in lines if event != 'handler-stderr'],
       ['409', '201', '201', '422'])
    (run,) = [got for event, got in lines if event == 'run']
    eq((run['exit'], run['signal'], run['state']), ('0', '0', 'completed'))


def test_one_grep_shows_a_lost_attempt_and_what_followed(t):
    once = t.once(handler=t.sh('gate gate'), start=False, defaults={
        'reconcile': t.sh(r'printf "Idempotency-Outcome: completed\n'
                          r'Status: 202\n\n"'), 'reconcile_after': '1ms'},
                  server={'sweep_interval': '10ms'})
    gate = t.gate()
    once.start()
    conn = once.begin('k')
    pid = gate.wait()
    once.kill()
    conn.close()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    once.start()
    once.wait_log('event=reconciled .*to=completed')
    eq(once.post('k').status, 202)
    lines = grep(once, 'key=k ')
    eq([event for event, _ in lines], ['swept', 'reconciled', 'replay'])
    complete(lines, '/pay', '-')


def test_one_grep_for_an_instance_shows_its_whole_life(t):
    once = t.once(handler=t.sh('echo oops >&2; kill -9 $$'))
    got = problem(once.post('k', user='ann'), 'handler-failed', unknown=True)
    lines = grep(once, got['instance'])
    eq(sorted(event for event, _ in lines),
       ['handler-stderr', 'problem', 'run'])
    complete(lines, '/pay', tag('ann'))
    (run,) = [pairs for event, pairs in lines if event == 'run']
    eq((run['signal'], run['status'], run['key']), ('9', '502', 'k'))


def test_an_accepted_request_keeps_its_instance(t):
    once = t.once(handler=t.sh('status 201'),
                  server={'status_path': '/jobs'},
                  defaults={'async': 'always'})
    answer = once.post('k')
    eq(answer.status, 202, answer)
    once.wait_log('event=run ')
    # A worker may begin before the line of the 202 is written.
    once.wait_log('event=accepted ')
    lines = sorted(grep(once, 'key=k '), key=lambda line: line[0])
    eq([event for event, _ in lines], ['accepted', 'run'])
    eq(lines[0][1]['instance'], lines[1][1]['instance'])
    eq([pairs['status'] for _, pairs in lines], ['202', '201'])


def test_an_outcome_that_is_recorded_late_names_its_key(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server=HASTY)
    lock = lock_outcome(t, once, gate, 'k', user='ann')
    lock.release()
    once.wait_log('event=late-settlement')
    lines = grep(once, 'key=k ')
    eq([event for event, _ in lines],
       ['run', 'outcome-not-recorded', 'problem', 'late-settlement'])
    eq([pairs['status'] for _, pairs in lines], ['500', '500', '500', '-'])
    eq(len({pairs['instance'] for _, pairs in lines}), 1)
    complete(lines, '/pay', tag('ann'))


def test_an_outcome_that_is_never_recorded_is_said_to_be_lost(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server=dict(HASTY, drain_timeout='100ms'))
    lock = lock_outcome(t, once, gate, 'k')
    once.stop()
    eq(len(once.log_lines('level=error event=outcome-lost .*key=k ')), 1)
    eq(once.log_lines('event=late-settlement'), [])
    lock.release()
    once.start()
    once.wait_state('k', 'unknown')


def test_an_answer_of_the_handlers_own_is_logged_with_its_status(t):
    once = t.once(handler=t.sh('printf "Status: 203\\n\\n" | %s respond'
                               % t.program('oncectl')),
                  defaults={'share_database': 'yes'})
    eq(once.post('k').status, 203)
    eq([(event, pairs['status']) for event, pairs in grep(once, 'key=k ')],
       [('run', '-'), ('answered', '203')])


def test_refusals_before_the_key_is_known_are_logged(t):
    once = t.once(handler=t.sh('status 201'), defaults={'key': 'required'})
    got = problem(once.post(), 'key-missing')
    ((event, pairs),) = grep(once, got['instance'])
    eq((event, pairs['key'], pairs['scope'], pairs['status'], pairs['code']),
       ('problem', '', '-', '400', 'key-missing'))


def test_each_refusal_names_its_key_and_its_caller(t):
    once = t.once(handler=t.sh('status 201'), defaults={
        'key': 'required', 'max_request_body': '8'}, routes={
            '/form': {'key_from': 'form:k header:X-Key'},
            '/query': {'key_from': 'query:k'},
            '/app': {'scope': 'HTTP_APP'},
            '/named': {'scope_required': 'yes'}})

    def line(code, name, scope, **kw):
        got = problem(once.post(**dict({'user': 'ann'}, **kw)), code)
        ((event, pairs),) = grep(once, got['instance'])
        eq((event, pairs['code'], pairs['key'], pairs['scope']),
           ('problem', code, name, scope), kw)
    ann = tag('ann')
    line('body-too-large', 'k1', ann, key='"k1"', body='123456789')
    line('body-incomplete', 'k2', ann, key='k2', body='1234', length=5)
    line('key-missing', '', ann)
    line('key-invalid', '', ann, key='"k3')
    line('scope-required', 'k4', '-', key='k4', path='/named', user=None)
    line('request-invalid', 'k5', '-', key='k5', path='/app',
         headers=[('App', 'a'), ('App', 'b')])
    line('body-too-large', 'k6', ann, path='/query', query='k=k6',
         body='123456789')
    # Only the body could tell, and it is not there.
    line('body-too-large', '', ann, path='/form', body='k=1234567',
         type='application/x-www-form-urlencoded')


def test_an_unguarded_request_names_its_caller(t):
    once = t.once(handler=t.sh('status 201'))
    first(once.get(user='ann'), 201)
    (line,) = once.log_lines('event=unguarded')
    eq(parse(line)[1]['scope'], tag('ann'))


def test_programs_of_unguarded_requests_are_logged_with_exit_and_signal(t):
    once = t.once(handler=t.sh(
        'case $QUERY_STRING in exit) status 404; exit 3;; '
        'kill) status 201; kill -TERM $$;; '
        'none) exit 7;; esac'))
    for n, (query, want) in enumerate((
            ('exit', ('exited', '3', '0', '404')),
            ('kill', ('signaled', '0', '15', '201')),
            ('none', ('exited', '7', '0', '502')))):
        try:
            once.get(query=query)
        except fcgi.Closed:
            assert query == 'kill'
        once.wait_log('event=unguarded', n + 1)
        event, got = parse(once.log_lines('event=unguarded')[-1])
        eq((got['end'], got['exit'], got['signal'], got['status']), want)
        eq((got['path'], got['key'], got['scope']), ('/pay', '', '-'))


def test_a_hostile_key_forges_no_pair(t):
    once = t.once(handler=t.sh('status 201'))
    key = '"a b=c \\\\ key=x"'
    first(once.post(key), 201)
    (line,) = once.log_lines('event=run')
    eq(parse(line)[1]['key'], 'a b=c \\\\\\\\ key=x'.replace('\\\\\\\\', r'\\'))
    eq(len(re.findall(' key=', line.replace(r'\\ key=x', ''))), 1, line)


# --- the target ---

def file_log(t, once):
    return t.read('my.log').decode() if t.exists('my.log') else ''


def with_file(t, **kw):
    once = t.once(handler=t.sh('status 201'), listen=True, start=False,
                  server={'log': t.path('my.log')}, **kw)
    once.start(wait=False)
    wait_until(lambda: 'event=started' in file_log(t, once), 'the start')
    return once


def test_log_in_a_file_that_sighup_opens_anew(t):
    once = with_file(t)
    first(once.post('before'), 201)
    os.rename(t.path('my.log'), t.path('my.log.1'))
    first(once.post('between'), 201)
    once.hup()
    wait_until(lambda: 'event=reloaded' in file_log(t, once), 'the new file')
    first(once.post('after'), 201)
    old, new = t.read('my.log.1').decode(), file_log(t, once)
    for text, keys in ((old, ('before', 'between')), (new, ('after',))):
        for key in ('before', 'between', 'after'):
            eq('key=%s ' % key in text, key in keys, text)
        for line in text.splitlines():
            parse(line)
    eq(os.stat(t.path('my.log')).st_mode & 0o777, 0o640)
    eq(once.log(), '')
    once.stop()
    assert file_log(t, once).endswith('event=stopped status=0\n')


def test_the_example_for_logrotate(t):
    base.need_root()
    logrotate = base.need('logrotate')
    once = with_file(t)
    first(once.post('before'), 201)
    # As systemd's own would: the number of the process.
    t.write('systemctl', '#!/bin/sh\necho %d\n' % once.pid, 0o755)
    t.write('rotate', servers.example('oncewrap.logrotate', (
        ('/var/log/oncewrap/oncewrap.log', t.path('my.log')),
        ('su www-data adm', 'su root root'),
        ('create 0640 www-data adm', 'create 0640 root root'))))
    os.chmod(t.dir, 0o755)
    run = t.run([logrotate, '-f', '-s', t.path('state'), t.path('rotate')],
                env={'PATH': t.dir + ':/usr/bin:/bin'})
    eq((run.returncode, run.stderr), (0, b''), run)
    wait_until(lambda: 'event=reloaded' in file_log(t, once), 'the new file')
    first(once.post('after'), 201)
    assert b'key=before ' in t.read('my.log.1')
    assert 'key=before ' not in file_log(t, once)
    assert 'key=after ' in file_log(t, once)


def test_a_bad_configuration_does_not_keep_the_old_log_open(t):
    once = with_file(t)
    os.rename(t.path('my.log'), t.path('my.log.1'))
    once.write_conf('[server]\nworkers = none\n')
    once.hup()
    wait_until(lambda: 'event=reload-failed' in file_log(t, once),
               'the new file')
    first(once.post('k'), 201)
    assert 'key=k ' in file_log(t, once)


def test_a_log_that_is_gone_is_reported_and_the_old_one_stays(t):
    os.mkdir(t.path('logs'))
    once = t.once(handler=t.sh('status 201'), start=False,
                  server={'log': t.path('logs', 'a.log')})
    once.start(wait=False)
    wait_until(lambda: t.exists('logs/a.log') and
               b'event=started' in t.read('logs/a.log'), 'the start')
    os.rename(t.path('logs'), t.path('old'))
    once.hup()
    wait_until(lambda: b'event=reloaded' in t.read('old/a.log'), 'reload')
    text = t.read('old/a.log').decode()
    assert 'event=log-not-opened' in text, text
    assert 'No such file or directory' in text, text


def test_reload_to_a_log_that_cannot_be_opened_changes_nothing(t):
    once = with_file(t)
    first(once.post('k'), 201)
    once.server['log'] = t.path('none', 'my.log')
    once.defaults['methods'] = 'PUT'
    once.write_conf()
    once.hup()
    wait_until(lambda: 'event=reload-failed' in file_log(t, once),
               'the reload')
    assert 'none/my.log: No such file or directory' in file_log(t, once)
    eq(once.post('k').replayed, 'true')


def test_an_option_that_waits_for_a_start_is_named_at_each_reload(t):
    once = t.once(handler=t.sh('status 201'), server={'workers': 2})
    for n, (workers, told) in enumerate(((3, 1), (3, 2), (2, 2)), 1):
        once.server['workers'] = workers
        once.write_conf()
        once.hup()
        wait_until(lambda: once.log().count('event=reloaded') == n, 'reload')
        eq(once.log().count('options=workers '), told, once.log())


def plant(t):
    """Files in a folder that all may write."""
    os.mkdir(t.path('open'))
    os.chmod(t.path('open'), 0o777)
    t.write('victim', 'as it was')
    os.symlink(t.path('victim'), t.path('open', 'soft'))
    os.link(t.path('victim'), t.path('open', 'hard'))
    os.mkfifo(t.path('open', 'fifo'))


def test_log_that_another_may_have_planted_is_not_written(t):
    once = with_file(t)
    plant(t)
    for n, name in enumerate(('soft', 'hard', 'fifo'), 1):
        once.server['log'] = t.path('open', name)
        once.write_conf()
        once.hup()
        wait_until(lambda: file_log(t, once).count('event=reload-failed') == n,
                   'the reload')
    eq(t.read('victim'), b'as it was')
    once.server['log'] = t.path('open', 'new')
    once.write_conf()
    check = t.run([base.ONCEWRAP, '-t', '-f', once.file])
    eq(check.returncode, 0, check)
    assert b'all users may write this folder' in check.stderr, check


def test_reload_can_move_the_log(t):
    once = t.once(handler=t.sh('status 201'))
    once.server['log'] = t.path('my.log')
    once.write_conf()
    once.hup()
    wait_until(lambda: 'event=reloaded' in file_log(t, once), 'in the file')
    first(once.post('k'), 201)
    assert 'key=k ' in file_log(t, once)
    del once.server['log']
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    assert not once.log_lines('key=k ')


def test_a_start_that_fails_is_told_on_stderr_too(t):
    path = t.write('bad.conf', '[server]\nlog = %s\nsocket = unix:%s\n'
                   'database = %s\n' % (t.path('my.log'), t.path('s'),
                                        t.path('no', 'where.db')))
    run = t.run([base.ONCEWRAP, '-f', path])
    eq(run.returncode, 1, run)
    for text in (run.stderr.decode(), t.read('my.log').decode()):
        (line,) = [x for x in text.splitlines() if 'not-started' in x]
        event, pairs = parse(line)
        eq(event, 'not-started')
        assert 'no/where.db' in pairs['error'], text


def test_a_log_that_cannot_be_opened_is_no_start(t):
    path = t.write('bad.conf', '[server]\nlog = %s\nsocket = unix:%s\n'
                   % (t.path('no', 'log'), t.path('s')))
    run = t.run([base.ONCEWRAP, '-f', path])
    eq(run.returncode, 1, run)
    (line,) = run.stderr.decode().splitlines()
    event, pairs = parse(line)
    eq(event, 'not-started')
    assert 'No such file' in pairs['error'] and '/no/log' in pairs['error']
    assert not t.exists('s')


# Puts the socket "log" of the folder $D into /dev, for one process alone.
OWN_DEV = r'''set -e
mkdir "$D/real" "$D/dev"
mount --bind /dev "$D/real"
for file in null zero random urandom; do
    ln -s "$D/real/$file" "$D/dev/$file"
done
ln -s "$D/syslog" "$D/dev/log"
ln -s /proc/self/fd "$D/dev/fd"
mount --bind "$D/dev" /dev
exec "$@"
'''


def with_syslog(t, **server):
    """A oncewrap that finds t.path('syslog') as /dev/log."""
    base.need_root()
    server['log'] = 'syslog'
    once = t.once(
        handler=t.sh('echo careful >&2; status 201'), server=server,
        start=False, env=dict(os.environ, D=t.dir),
        prefix=[base.need('unshare'), '-m', '--propagation', 'private',
                'sh', '-c', OWN_DEV, 'sh'])
    once.start(wait=False)
    return once


def listen_as_syslog(t):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.settimeout(base.WAIT * base.SLOW)
    sock.bind(t.path('syslog'))
    t.defer(sock.close)
    return sock


def syslog_until(once, sock, event):
    """The line of that event; all before it are well-formed."""
    priority = {'info': 6, 'warn': 4, 'error': 3}
    while True:
        text = sock.recv(8192).decode()
        match = re.fullmatch(
            r'<(\d+)>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d '
            r'oncewrap\[%d\]: level=(\w+) event=([a-z-]+)( .*)?'
            % once.pid, text)
        assert match, text
        eq(int(match.group(1)), 24 + priority[match.group(2)], text)
        if match.group(3) == event:
            return text


def test_log_in_syslog(t):
    sock = listen_as_syslog(t)
    once = with_syslog(t)
    syslog_until(once, sock, 'started')
    first(once.post('k'), 201)
    eq({syslog_until(once, sock, 'handler-stderr').count(' key=k '),
        syslog_until(once, sock, 'run').count(' key=k ')}, {1})
    # A daemon that starts again needs nothing from us.
    sock.close()
    os.unlink(t.path('syslog'))
    first(once.post('lost'), 201)
    sock = listen_as_syslog(t)
    once.hup()
    syslog_until(once, sock, 'log-dropped')
    syslog_until(once, sock, 'reloaded')
    once.term()
    syslog_until(once, sock, 'stopped')
    eq(once.wait(), 0)
    eq(once.log(), '')


def test_a_syslog_that_nobody_reads_stops_nothing(t):
    sock = listen_as_syslog(t)
    once = with_syslog(t, admin_path='/once')
    syslog_until(once, sock, 'started')
    for n in range(200):
        first(once.post('n%d' % n), 201)
    assert once.gauge('log_dropped_total') > 0
    once.term()
    eq(once.wait(), 0)


def test_a_start_without_syslog_serves(t):
    once = with_syslog(t, admin_path='/once')

    def serves():
        try:
            return once.post('k').status == 201
        except OSError:
            return False
    wait_until(serves, 'it serves')
    assert once.gauge('log_dropped_total') > 0
    once.term()
    eq(once.wait(), 0)
