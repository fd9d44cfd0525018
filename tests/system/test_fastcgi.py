"""Handlers that stay: oncewrap's own FastCGI processes."""
import os
import re
import signal
import socket
import subprocess

import base
import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background, parallel

RETRYABLE, UNKNOWN, COMPLETED = 'failed_retryable', 'unknown', 'completed'


def stays(t, server=None, start=True, manager='', **defaults):
    options = {'protocol': 'fastcgi', 'processes': '1'}
    options.update(defaults)
    return t.once(handler='%s %s%s' % (t.program('kinds.py'), t.dir, manager),
                  server=server, defaults=options, start=start)


def pid_of(answer):
    return int(answer.body.split()[0])


def started(once):
    return len(once.log_lines('event=process-started'))


def test_one_process_answers_many_requests(t):
    once = stays(t)
    pids = set()
    for n in range(20):
        answer = once.post('k%d' % n, query='201')
        first(answer, 201)
        pids.add(pid_of(answer))
        replay(once.post('k%d' % n, query='201'), answer)
    eq((len(pids), len(t.ledger()), started(once)), (1, 20, 1))


def test_each_process_has_one_request_at_a_time(t):
    gate = t.gate()
    once = stays(t, processes='2')
    runs = [Background(lambda k=k: once.post(k, query='gate+201'))
            for k in ('a', 'b', 'c')]
    eq(len({gate.wait(), gate.wait()}), 2)
    eq(gate.came(), False)
    gate.open()
    gate.wait()
    gate.open(2)
    pids = [pid_of(run.result()) for run in runs]
    eq(len(set(pids)), 2)


def test_a_request_waits_for_a_process_at_most_timeout(t):
    gate = t.gate()
    once = stays(t, timeout='1s')
    busy = Background(lambda: once.post('a', query='gate+201'))
    gate.wait()
    late = Background(lambda: once.post('b', query='201'))
    # The first is lost at its timeout; the second has waited as long, and
    # gets the next process or none.
    problem(busy.result(), 'handler-timeout', unknown=True)
    answer = late.result()
    if answer.status != 201:
        problem(answer, 'handler-not-started')
        eq(once.state('b'), RETRYABLE)
        first(once.post('b', query='201'), 201)


def test_waiting_is_no_part_of_the_runs_time(t):
    gate = t.gate()
    once = stays(t, timeout='10s',
                 server={'admin_path': '/once', 'workers': '1'})
    one = Background(lambda: once.post('a', query='gate+201'))
    gate.wait()
    two = Background(lambda: once.post('b', query='gate+201'))
    once.wait_gauge('programs_waiting', 1)
    eq(once.state('b'), None)
    gate.open()
    first(one.result(), 201)
    gate.wait()
    gate.open()
    first(two.result(), 201)


def test_large_bodies_both_ways(t):
    once = stays(t)
    body = os.urandom(3000000).hex().encode()
    answer = once.post('k', body, query='201+echo')
    first(answer, 201)
    eq(answer.body.partition(b'\n')[2], body)
    replay(once.post('k', body, query='201+echo'), answer)


def test_unguarded_requests_stream(t):
    gate = t.gate()
    once = stays(t)
    conn = once.begin(method='GET', query='201+gate+size=10')
    gate.wait()
    assert b'201' in conn.first_bytes(), 'the head came before the end'
    gate.open()
    assert conn.answer(read=b'Status: 201\r\n\r\n').body.endswith(b'x' * 10)


def test_errors_go_to_the_log(t):
    once = stays(t)
    first(once.post('k', query='err=one+log=two+201'), 201)
    for word in ('one', 'two'):
        line, = once.wait_log('event=handler-stderr .*line=%s' % word)
        assert ' key=k ' in line, line


def test_max_requests_renews_the_process(t):
    once = stays(t, max_requests='3')
    pids = [pid_of(once.post('k%d' % n, query='201')) for n in range(9)]
    eq([len(set(pids[i:i + 3])) for i in (0, 3, 6)], [1, 1, 1])
    eq(len(set(pids)), 3)


def test_a_process_that_dies_between_requests_is_replaced(t):
    once = stays(t)
    pid = pid_of(once.post('a', query='201'))
    proc.kill(pid, signal.SIGKILL)
    wait_until(lambda: not proc.alive(pid), 'it is gone')
    answer = once.post('b', query='201')
    first(answer, 201)
    assert pid_of(answer) != pid


def test_the_end_of_a_process_with_its_request_is_logged(t):
    once = stays(t)
    for key, query, exit, signal_number in (
            ('left', 'leave', 0, 0), ('killed', 'die=11', 0, 11),
            ('three', 'leave=3', 3, 0)):
        problem(once.post(key, query=query), 'handler-failed', unknown=True)
        (line,) = once.log_lines('event=process-ended .* key=%s ' % key)
        says = ' exit=%d signal=%d ' % (exit, signal_number)
        assert says + 'why="it ended by itself"' in line, line
        (line,) = once.log_lines('event=run .* key=%s ' % key)
        assert says in line, line


def test_one_that_ends_after_its_answer_has_answered(t):
    """It may be about to end when it gets the next request, and reads none."""
    once = stays(t)
    for n in range(5):
        key = 'k%d' % n
        answer = once.post(key, query='201+quit')
        while answer.status != 201:
            eq(answer.code, 'handler-not-started', answer)
            eq(once.state(key), RETRYABLE)
            answer = once.post(key, query='201+quit')
        eq(once.state(key), COMPLETED)
    eq(len({line.split()[1] for line in t.ledger()}), 5)


def test_end_without_end_request_is_lost(t):
    once = stays(t)
    for query in ('201+leave', 'leave', 'leave=1', '201+leave=75'):
        problem(once.post(query, query=query), 'handler-failed', unknown=True)
        eq(once.state(query), UNKNOWN)
    first(once.post('k', query='201'), 201)


def test_a_process_that_exits_with_75_before_it_answers_releases(t):
    """Without END_REQUEST, and whatever exit_status says."""
    gate = t.gate()
    for options in ({}, {'exit_status': 'ignore'}, {'on_crash': 'resume'}):
        once = stays(t, **options)
        problem(once.post('k', query='leave=75'), 'handler-failed',
                status=503)
        eq(once.state('k'), RETRYABLE, options)
        run = Background(lambda: once.post('j', query='gate+leave=75'))
        gate.wait()
        gate.open()
        problem(run.result(), 'handler-failed', status=503)
        eq(once.state('j'), RETRYABLE)
        once.stop()


def test_a_process_that_timed_out_is_not_used_again(t):
    gate = t.gate()
    once = stays(t, timeout='1s', kill_after='100ms')
    one = Background(lambda: once.post('a', query='deaf+201'))
    pid = gate.wait()
    problem(one.result(), 'handler-timeout', unknown=True)
    eq(proc.alive(pid), False)
    answer = once.post('b', query='201')
    first(answer, 201)
    assert pid_of(answer) != pid


def test_a_program_that_is_missing_is_not_started(t):
    once = t.once(handler=t.path('missing'), defaults={'protocol': 'fastcgi'})
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)
    eq(once.get().status, 404)


def test_a_program_that_ends_at_its_start_is_not_started(t):
    once = t.once(handler=t.sh('exit 0'), defaults={'protocol': 'fastcgi'})
    for key in ('a', 'b'):
        problem(once.post(key), 'handler-not-started')
        eq(once.state(key), RETRYABLE)


def test_a_process_that_never_read_is_not_started(t):
    """It has the connection in its queue when it is killed."""
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate'), defaults={
        'protocol': 'fastcgi', 'processes': '1', 'timeout': '20s'})
    pid = gate.wait()
    run = Background(lambda: once.post('k'))
    wait_until(lambda: once.state('k') == 'in_progress', 'it runs')
    proc.kill(pid, signal.SIGKILL)
    problem(run.result(), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)


def test_sighup_starts_a_changed_program_anew(t):
    program = t.sh('exec %s %s' % (t.program('kinds.py'), t.dir))
    gate = t.gate()
    once = t.once(handler=program, defaults={
        'protocol': 'fastcgi', 'processes': '2'})
    lines = once.wait_log('event=process-started', 2)
    before = {int(re.search(r' pid=(\d+)', line)[1]) for line in lines}
    once.hup()
    once.wait_log('event=reloaded')
    assert pid_of(once.post('a', query='201')) in before
    busy = Background(lambda: once.post('c', query='gate+201'))
    old = gate.wait()
    with open(program, 'a') as f:
        f.write('# changed\n')
    once.hup()
    once.wait_log('event=reloaded', 2)
    answers = [once.post('d%d' % n, query='201') for n in range(4)]
    assert not {pid_of(a) for a in answers} & before, answers
    gate.open()
    eq(pid_of(busy.result()), old)
    wait_until(lambda: not proc.alive(old), 'the old one has ended')


def test_reload_changes_the_handlers(t):
    once = stays(t)
    old = pid_of(once.post('a', query='201'))
    once.defaults['protocol'] = 'cgi'
    once.write_conf()
    once.hup()
    wait_until(lambda: not proc.alive(old), 'it has ended')
    first(once.post('b', query='201'), 201)
    once.defaults.update(protocol='fastcgi', processes='3')
    once.write_conf()
    once.hup()
    once.wait_log('event=process-started', 4)
    first(once.post('c', query='201'), 201)


def waits_for_a_process(t, once, key, n=1):
    """The n-th of them; admin_path is /once."""
    run = Background(lambda: once.post(key, query='201'))
    once.wait_gauge('programs_waiting', n)
    return run


def reload(once, **defaults):
    once.defaults.update(defaults)
    once.write_conf()
    n = len(once.log_lines('event=reloaded'))
    once.hup()
    once.wait_log('event=reloaded', n + 1)


def test_requests_that_wait_go_to_the_new_processes_at_a_reload(t):
    """One of them has its configuration from before, and asks after it."""
    gate = t.gate()
    once = stays(t, timeout='10m', concurrent='wait', wait_time='10m',
                 server={'admin_path': '/once', 'workers': '1'})
    busy = Background(lambda: once.post('a', query='gate+leave=75'))
    old = gate.wait()
    behind = Background(lambda: once.post('a', query='gate+leave=75'))
    once.wait_waiting()
    waiting = [waits_for_a_process(t, once, key, n)
               for n, key in enumerate('bc', 1)]
    reload(once, max_output='1M')
    pids = {pid_of(run.result()) for run in waiting}
    eq((len(pids), old in pids, proc.alive(old)), (1, False, True))
    gate.open()
    problem(busy.result(), 'handler-failed', status=503)
    eq({gate.wait()}, pids)
    gate.open()
    problem(behind.result(), 'handler-failed', status=503)
    # A program that is there no more, and one that comes back.
    busy = Background(lambda: once.post('d', query='gate+201'))
    old = gate.wait()
    waiting = waits_for_a_process(t, once, 'e')
    reload(once, handler=t.path('missing'))
    problem(waiting.result(), 'handler-not-started')
    eq(once.state('e'), RETRYABLE)
    gate.open()
    first(busy.result(), 201)
    wait_until(lambda: not proc.alive(old), 'it has ended')


def test_requests_that_wait_are_served_if_their_route_keeps_no_process(t):
    gate = t.gate()
    once = stays(t, timeout='10m',
                 server={'admin_path': '/once', 'workers': '1'})
    once.routes = {'/pay': {'processes': '2'}}
    reload(once)
    pids = []
    for change in ('removed', 'cgi'):
        busy = [Background(lambda n=n: once.post(
            '%s%d' % (change, n), query='gate+201')) for n in range(2)]
        pids += [gate.wait(), gate.wait()]
        waiting = [waits_for_a_process(t, once, '%s%d' % (change, n), n - 1)
                   for n in (2, 3)]
        once.routes = {} if change == 'removed' else {
            '/pay': {'protocol': 'cgi'}}
        reload(once)
        gate.open(2)
        for run in busy:
            first(run.result(), 201)
        pids += [pid_of(run.result()) for run in waiting]
        wait_until(lambda: not any(proc.alive(pid) for pid in pids),
                   'all of them have ended')
        once.routes = {'/pay': {'processes': '2'}}
        reload(once)
    once.stop()


def test_a_stop_does_not_wait_for_what_a_reload_has_replaced(t):
    gate = t.gate()
    once = stays(t, timeout='10m', server={'drain_timeout': '10m',
                                           'admin_path': '/once',
                                           'workers': '1'})
    busy = Background(lambda: once.post('a', query='gate+201'))
    gate.wait()
    waiting = waits_for_a_process(t, once, 'b')
    reload(once, umask='077')
    once.term()
    first(waiting.result(), 201)
    gate.open()
    first(busy.result(), 201)
    eq(once.wait(), 0)


def test_what_takes_no_request_is_never_given_back(t):
    """It would be the next one that is asked, beside others that serve."""
    once = stays(t, processes='3')
    once.wait_log('event=process-started', 3)
    for n, (query, why) in enumerate((('shut+201', 'it took no connection'),
                                      ('201+shut', 'it took no connection'),
                                      ('refuse', 'it refused the request'))):
        answer = once.post('k%d' % n, query=query)
        if query == 'refuse':
            problem(answer, 'handler-not-started')
            eq(once.state('k%d' % n), RETRYABLE)
            bad = int(t.ledger()[-1].split()[1])
        else:
            first(answer, 201)
            bad = pid_of(answer)
        pids = {pid_of(once.post('%s-%d' % (query, i), query='201'))
                for i in range(6)}
        assert bad not in pids, query
        wait_until(lambda: not proc.alive(bad), 'it was ended')
        once.wait_log('event=process-ended .* pid=%d .*why="%s"' % (bad, why))
    once.stop()
    # With none beside it, the program is started again.
    once.defaults['processes'] = '1'
    once.write_conf()
    once.start()
    old = pid_of(once.post('alone', query='shut+201'))
    answer = once.post('next', query='201')
    first(answer, 201)
    assert pid_of(answer) != old


def test_a_program_that_takes_no_connection_at_all_is_not_started(t):
    once = t.once(handler=t.py(
        'import signal, socket\n'
        'socket.socket(fileno=0).shutdown(socket.SHUT_RDWR)\n'
        'open(D + "/there", "a").write("x")\n'
        'signal.pause()'), defaults={'protocol': 'fastcgi', 'processes': '1'})
    t.wait_file('there')
    for n, key in enumerate('ab', 1):
        wait_until(lambda n=n: os.path.getsize(t.path('there')) == n,
                   'the next process has shut its socket')
        problem(once.post(key), 'handler-not-started')
        eq(once.state(key), RETRYABLE)


def test_a_manager_that_dies_in_mid_request_takes_its_children_along(t):
    t.gate()
    for n, options in enumerate(({}, {'on_crash': 'resume'}, {
            'reconcile': t.sh(r'printf "Idempotency-Outcome: completed\n'
                              r'Status: 202\n\n"'),
            'reconcile_after': '1ms'})):
        once = stays(t, manager=' manager', **options)
        child = pid_of(once.post('a%d' % n, query='201'))
        key = 'k%d' % n
        resumes = 'on_crash' in options
        problem(once.post(key, query='orphan+child=plain+deaf'),
                'handler-failed', unknown=not resumes)
        wait_until(lambda: not proc.alive(child), 'the child has ended')
        if 'reconcile' in options:
            once.wait_state(key, COMPLETED)
        else:
            eq(once.state(key), RETRYABLE if resumes else UNKNOWN)
        once.stop()


def test_stop_drains_and_ends_all(t):
    gate = t.gate()
    once = stays(t, processes='3')
    run = Background(lambda: once.post('k', query='gate+201'))
    gate.wait()
    # The run began when the first of them was there.
    pids = wait_until(lambda: (lambda pids: len(pids) == 3 and pids)(
        once.handlers()), 'all have started')
    once.term()
    once.wait_log('event=stopping')
    gate.open()
    first(run.result(), 201)
    eq(once.wait(), 0)
    eq([pid for pid in pids if proc.alive(pid)], [])


def test_stop_ends_runs_at_drain_timeout(t):
    gate = t.gate()
    once = stays(t, server={'drain_timeout': '100ms', 'admin_path': '/once',
                            'workers': '1'},
                 kill_after='100ms', processes='1')
    run = Background(lambda: once.post('k', query='gate+201'))
    gate.wait()
    wait = waits_for_a_process(t, once, 'w')
    once.term()
    problem(run.result(), 'handler-failed', unknown=True)
    problem(wait.result(), 'overloaded', acted=True)
    eq(once.wait(), 0)
    eq((once.state('k'), once.state('w')), (UNKNOWN, None))


def test_resume_waits_for_what_the_process_left_behind(t):
    """The attempt's lock is its process's; its children inherit that."""
    for how in ('plain', 'shed', 'far'):
        once = stays(t, on_crash='resume', timeout='1s',
                     kill_after='100ms')
        answer = once.post(how, query='child=%s+die=9' % how)
        # A child outside of its group outlives it: then the key is unknown.
        problem(answer, 'handler-failed', unknown=how == 'far')
        eq(once.state(how), UNKNOWN if how == 'far' else RETRYABLE, how)
        once.stop()
        for pid in proc.descendants(os.getpid()):
            proc.kill(pid, signal.SIGKILL)


def test_resume_releases_what_left_nothing_behind(t):
    once = stays(t, on_crash='resume')
    problem(once.post('k', query='die=9'), 'handler-failed')
    eq(once.state('k'), RETRYABLE)
    problem(once.post('k', query='die=9'), 'handler-failed')
    eq([line.split()[0] for line in t.ledger()], ['1', '2'])


def test_resume_after_the_daemon_died(t):
    gate = t.gate()
    once = stays(t, on_crash='resume', server={'sweep_interval': '50ms'})
    conn = once.begin('k', query='child=far+gate+201')
    pid = gate.wait()
    left = [p for p in proc.descendants(pid)]
    eq(len(left), 1)
    once.kill()
    conn.close()
    wait_until(lambda: not proc.alive(pid), 'the process is gone')
    once.start()
    problem(once.post('k', query='child=far+gate+201'), 'key-in-progress')
    proc.kill(left[0], signal.SIGKILL)
    once.wait_state('k', RETRYABLE)
    gate.open()
    answer = once.post('k', query='child=far+gate+201')
    first(answer, 201)
    for left in proc.descendants(pid_of(answer)):
        proc.kill(left, signal.SIGKILL)


def test_a_process_acts_for_one_attempt_only(t):
    """An unknown outcome is looked into while its process goes on."""
    once = stays(t, reconcile=t.sh(
        r'printf "Idempotency-Outcome: completed\nStatus: 202\n\n"'),
        reconcile_after='1ms')
    answer = once.post('k', query='504')
    eq(answer.status, 504)
    once.wait_state('k', COMPLETED)
    eq(once.post('k', query='504').status, 202)
    eq(pid_of(once.post('j', query='201')), int(t.ledger()[0].split()[1]))


def test_it_shares_the_database(t):
    once = stays(t, share_database='yes')
    answer = once.post('k', query='respond+die=9')
    eq((answer.status, answer.body), (203, b'answered'))
    eq(once.state('k'), COMPLETED)


def test_no_socket_and_no_folder_is_left(t):
    once = stays(t, start=False, on_crash='resume')
    once.env['TMPDIR'] = t.path('tmp')
    os.mkdir(t.path('tmp'))
    once.start()
    first(once.post('k', query='201'), 201)
    eq(os.listdir(t.path('tmp')), [])
    once.stop()
    eq(once.attempts(), [])


def test_many_at_once(t):
    once = stays(t, processes='8', server={'workers': '32'})
    answers = parallel([lambda k=k: once.post('k%d' % k, query='201')
                        for k in range(64)])
    eq({a.status for a in answers}, {201})
    eq(len(t.ledger()), 64)


def test_bad_configurations_are_refused(t):
    for lines, line, word in (
            ('protocol = fastcgi', 2, 'needs a handler'),
            ('handler = /bin/true\nprotocol = scgi', 3, 'protocol'),
            ('handler = /bin/true\nprocesses = 0', 3, 'processes'),
            ('handler = /bin/true\nmax_requests = -1', 3, 'max_requests')):
        file = t.write('bad.conf', '[route /a]\n%s\n' % lines)
        run = t.run([base.ONCEWRAP, '-t', '-f', file])
        eq(run.returncode, 1, lines)
        text = run.stderr.decode()
        assert 'bad.conf:%d: ' % line in text and word in text, text


# --- what happened to the handler: one table for all kinds ---

# Time to start kinds.py and answer, whatever else runs.
ENOUGH = '%ds' % (2 * max(1, base.SLOW))

# word of kinds.py, defaults: (status, code), state
TABLE = (
    ('respond+die=9', {'share_database': 'yes'}, 203,
     COMPLETED),
    ('respond+504+exit=3', {'share_database': 'yes'}, 203,
     COMPLETED),
    ('201', {}, 201, COMPLETED),
    ('gate', {'timeout': ENOUGH, 'kill_after': '100ms'}, 'handler-timeout',
     UNKNOWN),
    ('201+deaf', {'timeout': ENOUGH, 'kill_after': '100ms'},
     'handler-timeout', UNKNOWN),
    ('die=9', {}, 'handler-failed', UNKNOWN),
    ('201+die=15', {}, 'handler-failed', UNKNOWN),
    ('201+leave', {}, 'handler-failed', UNKNOWN),
    ('201+size=100000', {'max_output': '50000'}, 'handler-failed', UNKNOWN),
    ('none', {}, 'handler-failed', UNKNOWN),
    ('headless', {}, 'handler-failed', UNKNOWN),
    ('two', {}, 'handler-failed', UNKNOWN),
    ('short', {}, 'handler-failed', UNKNOWN),
    ('none+exit=75', {}, (503, 'handler-failed'), RETRYABLE),
    ('201+exit=3', {}, 'handler-failed', UNKNOWN),
    ('201+exit=3', {'exit_status': 'ignore'}, 201, COMPLETED),
    ('201+exit=75', {}, 201, RETRYABLE),
    ('says=not-executed+201', {}, 201, RETRYABLE),
    ('says=unknown+201', {}, 201, UNKNOWN),
    ('says=completed+503', {}, 503, COMPLETED),
    ('says=completed+201+exit=3', {}, 'handler-failed', UNKNOWN),
    ('says=completed+201+exit=75', {}, 201, RETRYABLE),
    ('201', {'outcome': 'explicit'}, 201, UNKNOWN),
    ('503', {'outcome': 'explicit'}, 503, UNKNOWN),
    ('says=completed+201', {'outcome': 'explicit'}, 201, COMPLETED),
    ('201+exit=75', {'outcome': 'explicit'}, 201, RETRYABLE),
    ('504', {}, 504, UNKNOWN),
    ('503', {}, 503, RETRYABLE),
    ('404', {}, 404, COMPLETED),
    ('die=9', {'on_crash': 'resume'}, 'handler-failed', RETRYABLE),
    ('gate', {'timeout': ENOUGH, 'kill_after': '100ms',
              'on_crash': 'resume'}, 'handler-timeout', RETRYABLE),
    ('504', {'on_crash': 'resume'}, 504, UNKNOWN),
)


def row(t, once, n, query, want, state, key):
    answer = once.post(key, query=query)
    if isinstance(want, int):
        first(answer, want)
    else:
        status, code = want if isinstance(want, tuple) else (None, want)
        problem(answer, code, status=status, unknown=state == UNKNOWN)
    eq(once.state(key), state, (n, query))
    return answer


def application(t, name):
    """Two processes that oncewrap did not start; the address of both."""
    path = t.path(name)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen(8)
        both = [t.popen([t.program('kinds.py'), t.dir], stdin=s)
                for _ in range(2)]
    return 'unix:' + path, both


KINDS = ('cgi', 'fastcgi', 'application')
REFUSED_THERE = {'on_crash'} if base.POSTGRES else {
    'on_crash', 'share_database'}


def handled(t, kind, name, options, **kw):
    """An oncewrap with that kind of handler, and what else that needs."""
    handler, others = '%s %s' % (t.program('kinds.py'), t.dir), []
    if kind == 'application':
        handler, others = application(t, name)
    else:
        options = dict(options, protocol=kind, processes='1')
    return t.once(name=name, handler=handler, defaults=options, **kw), others


def table_holds(t, kind):
    """TABLE is one for all kinds.  Rows of the same options are one daemon's:
    not with an application, which nobody starts again."""
    t.gate()
    rows = {}
    for n, (query, options, want, state) in enumerate(TABLE):
        if kind == 'application' and REFUSED_THERE & set(options):
            continue
        name = n if kind == 'application' else repr(options)
        rows.setdefault(name, []).append((n, query, options, want, state))
    for group in rows.values():
        once, others = handled(t, kind, '%s-%d' % (kind, group[0][0]),
                               group[0][2])
        for n, query, _, want, state in group:
            row(t, once, n, query, want, state, 'k%d' % n)
            # What came before does not touch the next one.
            row(t, once, n, 'says=completed+201', 201, COMPLETED, 'next%d' % n)
        once.stop()
        for other in others:
            base.end(other)
    missing = t.path('missing')
    once = t.once(name='missing-' + kind, defaults={
        'handler': 'unix:' + missing} if kind == 'application' else {
        'handler': missing, 'protocol': kind})
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)
    once.stop()


def test_the_table_of_what_happened_holds_for_a_cgi_program(t):
    table_holds(t, 'cgi')


def test_the_table_of_what_happened_holds_for_a_fastcgi_process(t):
    table_holds(t, 'fastcgi')


def test_the_table_of_what_happened_holds_for_an_application(t):
    table_holds(t, 'application')


# It starts 33 daemons.
test_the_table_of_what_happened_holds_for_an_application.minutes = 2


def test_a_stop_in_mid_run_is_the_same_for_all_kinds(t):
    gate = t.gate()
    for kind in KINDS:
        once, others = handled(t, kind, 'stop-' + kind, {
            'kill_after': '100ms'}, server={'drain_timeout': '100ms'})
        run = Background(lambda once=once: once.post('k', query='gate+201'))
        gate.wait()
        once.term()
        problem(run.result(), 'handler-failed', unknown=True)
        eq(once.wait(), 0)
        eq(once.state('k'), UNKNOWN, kind)
        for other in others:
            base.end(other)


def test_the_end_of_oncewrap_is_the_same_for_all_kinds(t):
    gate = t.gate()
    for kind in KINDS:
        once, others = handled(t, kind, 'lost-' + kind, {})
        conn = once.begin('k', query='gate+201')
        gate.wait()
        once.kill()
        conn.close()
        eq(once.state('k'), 'in_progress', kind)
        once.start()
        once.wait_state('k', UNKNOWN)
        problem(once.post('k', query='gate+201'), 'outcome-unknown')
        once.stop()
        for other in others:
            base.end(other)


# --- the examples ---

def test_payments_as_fastcgi(t):
    program = t.path('payments.fcgi')
    subprocess.run([os.environ.get('CC', 'cc'), '-DFASTCGI', '-o', program,
                    os.path.join(base.EXAMPLES, 'payments.c'), '-lfcgi'],
                   check=True)
    once = t.once(handler=program, defaults={'protocol': 'fastcgi',
                                             'processes': '1'})
    answer = once.post('k', '{"amount": 4200}')
    first(answer, 201)
    eq(answer.json()['amount'], 4200)
    replay(once.post('k', '{"amount": 4200}'), answer)
    eq(once.post('bad', '{}').status, 400)
    busy = '{"amount": 5, "test": "busy"}'
    eq(once.post('busy', busy).status, 503)
    eq(once.state('busy'), RETRYABLE)
    first(once.post('busy', busy), 201)
    lines = t.read('ledger').decode().splitlines()
    eq([line.split(' ', 1)[1] for line in lines],
       ['amount=4200 attempt=1 key=k', 'amount=5 attempt=2 key=busy'])
    eq(started(once), 1)


def test_programs_that_stay_in_perl_and_python(t):
    """The second is nothing but Python's own library: its body may be long,
    and so may its answer."""
    for name in ('stays.pl', 'stays.py'):
        once = t.once(name=name, handler=os.path.join(base.EXAMPLES, name),
                      defaults={'protocol': 'fastcgi', 'processes': '1'})
        for n, body in enumerate(('body', 'x' * 200000), 1):
            answer = once.post('k%d' % n, body, params={'LONG': 'y' * 300})
            first(answer, 201)
            text = answer.body.decode()
            assert text.startswith('deed %d of process ' % n), text[:80]
            assert text.endswith(': attempt 1, %s\n' % body), text[-80:]
            replay(once.post('k%d' % n, body, params={'LONG': 'y' * 300}),
                   answer)
        eq(once.get('/').body.decode().split()[1], '3')
        eq(started(once), 1)
