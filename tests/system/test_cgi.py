"""The CGI side: what a handler is given, and how it is watched (RFC 3875)."""
import os
import pwd
import re
import resource
import signal
import time

import base
import proc
from answer import UUID, eq, first, problem, replay
from base import wait_until
from once import Background


def probe(t, key='k', server=None, env=None, body=b'', request=None, **kw):
    """(once, what a handler sees of the world)."""
    once = t.once(handler=t.program('probe.py'), server=server, env=env,
                  defaults=kw)
    answer = once.post(key, body, **(request or {}))
    eq(answer.status, 200, answer)
    return once, answer.json()


# --- environment ---

def test_parameters_become_the_environment(t):
    _, seen = probe(t, request=dict(
        headers={'X-Custom': 'a b', 'Host': 'example'}, query='a=1&b=%20',
        params={'odd.name': 'kept?', 'EMPTY': '', 'SERVER_ADMIN': 'x'},
        user='ann', type='text/plain', info='/extra'))
    env = seen['environment']
    for name, value in (
            ('REQUEST_METHOD', 'POST'), ('QUERY_STRING', 'a=1&b=%20'),
            ('SCRIPT_NAME', '/pay'), ('PATH_INFO', '/extra'),
            ('REMOTE_USER', 'ann'), ('CONTENT_TYPE', 'text/plain'),
            ('HTTP_X_CUSTOM', 'a b'), ('HTTP_HOST', 'example'),
            ('EMPTY', ''), ('SERVER_ADMIN', 'x'), ('CONTENT_LENGTH', '0'),
            ('GATEWAY_INTERFACE', 'CGI/1.1'),
            ('HTTP_IDEMPOTENCY_KEY', 'k')):
        eq(env.get(name), value, name)


def test_dangerous_parameters_are_left_out(t):
    _, seen = probe(t, request=dict(
        headers={'Proxy': 'http://evil'},
        params={'LD_PRELOAD': '/evil.so', 'LD_LIBRARY_PATH': '/evil',
                'ONCE_TOKEN': 'forged', 'ONCE_NEW': 'forged',
                'PATH': '/evil', 'A=B': 'c', '': 'nameless'}))
    env = seen['environment']
    for name in ('HTTP_PROXY', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'ONCE_NEW',
                 'A', ''):
        assert name not in env, name
    eq(env['PATH'], os.environ['PATH'])
    assert env['ONCE_TOKEN'] != 'forged'


def test_once_variables(t):
    once, seen = probe(t, key='"the key"', request=dict(user='ann',
                                                        info='/sub'))
    env = seen['environment']
    row = once.row('the key')
    eq((env['ONCE_KEY'], env['ONCE_SCOPE'], env['ONCE_PATH'],
        env['ONCE_ATTEMPT'], env['ONCE_RECOVERY_POINT']),
       ('the key', 'ann', '/pay/sub', '1', 'started'))
    assert re.fullmatch(UUID, env['ONCE_DOWNSTREAM_KEY']), env
    eq(row['downstream'], env['ONCE_DOWNSTREAM_KEY'])
    assert env['ONCE_TOKEN']
    assert 'ONCE_DATABASE' not in env


def test_requests_that_are_not_guarded_have_no_once_variables(t):
    _, seen = probe(t, key=None, request=dict(params={'ONCE_KEY': 'forged'}))
    eq([n for n in seen['environment'] if n.startswith('ONCE_')], [])


def test_variables_that_the_configuration_sets(t):
    """php-cgi wants REDIRECT_STATUS, which not every web server sends."""
    _, seen = probe(t, env={'PATH': '/usr/bin:/bin', 'TZ': 'daemon'},
                    environment='REDIRECT_STATUS=200 TZ=UTC EMPTY= PATH=/bin')
    mine = seen['environment']
    eq([mine.get(n) for n in ('REDIRECT_STATUS', 'TZ', 'EMPTY', 'PATH')],
       ['200', 'UTC', '', '/bin'])


def test_nothing_else_of_the_daemons_environment(t):
    env = {'PATH': '/usr/bin:/bin', 'SECRET': '1', 'KEEP_ME': 'yes',
           'LISTEN_PID': '1', 'HOME': '/root'}
    _, seen = probe(t, env=env, environment='KEEP_ME NOT_THERE')
    mine = seen['environment']
    eq((mine['PATH'], mine['KEEP_ME']), ('/usr/bin:/bin', 'yes'))
    for name in ('SECRET', 'LISTEN_PID', 'HOME', 'NOT_THERE'):
        assert name not in mine, name


def test_of_a_repeated_parameter_the_last_counts(t):
    _, seen = probe(t, request=dict(params=[('TWICE', 'a'), ('TWICE', 'b')]))
    eq(seen['environment']['TWICE'], 'b')


def test_content_length_is_filled_in(t):
    for n, length in enumerate((False, '')):
        once = t.once(handler=t.program('probe.py'), name='once%d' % n)
        params = {} if length is False else {'CONTENT_LENGTH': ''}
        answer = once.post('k', b'12345', length=False, params=params)
        eq(answer.status, 200, answer)
        eq(answer.json()['environment']['CONTENT_LENGTH'], '5')
        eq(answer.json()['body'], '12345')


def test_content_length_of_a_body_without_bytes(t):
    _, seen = probe(t, request=dict(length=False))
    # RFC 3875, section 4.1.2: unset where there is no body.
    eq(seen['environment'].get('CONTENT_LENGTH'), None)


# --- the process ---

def test_stdin_is_a_file_with_the_whole_body(t):
    body = bytes(range(256)) * 1000
    _, seen = probe(t, body=body)
    eq(seen['seekable'], True)
    assert seen['body'].encode('latin-1') == body


def test_only_descriptors_0_to_2(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate'), routes={
        '/probe': {'handler': t.program('probe.py')}})
    # Other connections and another handler are open meanwhile.
    conns = [once.connect() for _ in range(3)] + [once.begin('other')]
    gate.wait()
    for key in ('k', None):
        seen = once.post(key, b'x' * 100000, path='/probe').json()
        eq(sorted(seen['fds']), ['0', '1', '2'])
        eq(seen['fds']['0'], 'REG')
    gate.open()
    eq(conns[-1].answer().status, 502)


def test_descriptors_that_the_daemon_was_started_with_are_not_handed_on(t):
    """As a web server leaves some open in what it spawns."""
    read, write = os.pipe()
    t.defer(lambda: (os.close(read), os.close(write)))
    once = t.once(handler=t.program('probe.py'), pass_fds=[read, write])
    for key in ('k', None):
        eq(sorted(once.post(key).json()['fds']), ['0', '1', '2'])


def test_own_session_and_process_group(t):
    once, seen = probe(t)
    eq((seen['pgid'], seen['sid']), (seen['pid'], seen['pid']))
    eq(seen['ppid'], once.pid)


def test_signals_are_default_and_unblocked(t):
    _, seen = probe(t)
    eq(seen['blocked'], 0)
    # Python itself ignores SIGPIPE and SIGXFSZ.
    own = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    eq(seen['ignored'] & ~own, 0)


def test_sigpipe_is_default_in_a_handler(t):
    once = t.once(handler=t.sh('status 200; grep ^SigIgn /proc/self/status'))
    eq(once.post('k').body.split()[1], b'0000000000000000')


def test_working_directory_is_the_handlers_own_folder(t):
    t.sh('status 200; pwd', name='sub/handler')
    once = t.once(handler=t.path('sub/handler'))
    eq(once.post('k').body.decode().strip(), t.path('sub'))
    eq(once.post().body.decode().strip(), t.path('sub'))


def test_directory_option(t):
    os.mkdir(t.path('other'))
    _, seen = probe(t, directory=t.path('other'))
    eq(seen['cwd'], t.path('other'))


def test_the_log_says_what_is_wrong_with_script_filename(t):
    os.mkdir(t.path('folder'))
    once = t.once()
    for n, (name, why) in enumerate((
            (None, 'the web server sent no SCRIPT_FILENAME: have it send one, '
             'or give the route a handler'),
            (t.path('folder'), 'SCRIPT_FILENAME names a folder'),
            (t.path('none'), 'SCRIPT_FILENAME names no file'))):
        params = {'SCRIPT_FILENAME': name, 'DOCUMENT_ROOT': None}
        problem(once.post('k%d' % n, params=params), 'handler-not-started')
        once.wait_log('why="%s"' % why)


def test_missing_directory_releases_the_key(t):
    once = t.once(handler=t.program('probe.py'),
                  defaults={'directory': t.path('missing')})
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), 'failed_retryable')


def test_umask_option(t):
    _, seen = probe(t, umask='027')
    eq(seen['umask'], 0o027)


def test_umask_is_inherited(t):
    _, seen = probe(t)
    eq(seen['umask'], 0o022)


def test_user_and_group_options(t):
    base.need_root()
    www = pwd.getpwnam('www-data')
    os.chmod(t.dir, 0o755)
    _, seen = probe(t, user='www-data')
    eq((seen['uid'], seen['gid']), (www.pw_uid, www.pw_gid))
    eq(0 in seen['groups'], False)


def test_group_option_alone(t):
    base.need_root()
    _, seen = probe(t, group='daemon')
    eq((seen['uid'], seen['gid']), (0, 1))


def test_arguments_and_quotes_of_the_handler_option(t):
    path = t.program('probe.py')
    once = t.once(handler='%s one "two words" \'$HOME *\' ""' % path)
    eq(once.post('k').json()['argv'],
       [path, 'one', 'two words', '$HOME *', ''])


def test_handler_on_the_command_line(t):
    path = t.program('probe.py')
    once = t.once(args=['--', path, 'a b', '-x'])
    eq(once.post('k').json()['argv'], [path, 'a b', '-x'])


# --- bodies ---

def test_400_kb_echoed_while_it_is_sent(t):
    once = t.once(handler=t.program('echo'))
    body = bytes(range(256)) * 1600
    for key in ('k', None):
        answer = once.post(key, body)
        eq(answer.status, 200)
        assert answer.body == body, len(answer.body)


def test_body_of_16_mb(t):
    once = t.once(handler=t.program('echo'),
                  defaults={'max_request_body': '16M'})
    body = bytes(range(256)) * 65536
    answer = once.post('k', body)
    assert answer.body == body, len(answer.body)
    again = once.post('k', body)
    eq((again.replayed, again.body == body), ('true', True))
    problem(once.post('k2', body + b'x'), 'body-too-large')


def test_body_that_the_handler_does_not_read(t):
    once = t.once(handler=t.sh('ledger; status 201; echo done'))
    body = b'x' * 1_000_000
    answer = once.post('k', body)
    first(answer, 201, b'done\n')
    replay(once.post('k', body), answer)


# --- stderr ---

def test_a_megabyte_of_stderr_delays_nothing(t):
    once = t.once(handler=t.py(
        'import sys\nsys.stderr.write(("e" * 99 + "\\n") * 10486)\n'
        'sys.stderr.flush()\nout(b"Status: 201\\r\\n\\r\\ndone")'))
    for key in ('k', None):
        answer = once.post(key)
        eq((answer.status, answer.body), (201, b'done'), answer)
    wait_until(lambda: once.log().count('e' * 99) >= 2 * 10486 or None,
               'all of stderr in the log')


def test_stderr_is_logged_by_lines_with_the_instance(t):
    once = t.once(handler=t.sh('echo "first line" >&2; echo second >&2; '
                               'printf unfinished >&2; exit 3'))
    instance = once.post('k').json()['instance']
    for text in ('first line', 'second', 'unfinished'):
        line = once.wait_log(text)[0]
        assert instance in line, line


def test_long_lines_of_stderr_are_bounded(t):
    once = t.once(handler=t.py(
        'sys.stderr.write("y" * 300000 + "\\nnext\\n")\n'
        'sys.stderr.flush()\nout(b"Status: 201\\r\\n\\r\\n")'))
    eq(once.post('k').status, 201)
    once.wait_log('next')
    longest = max(len(line) for line in once.log().splitlines())
    assert 1000 <= longest <= 4096, longest


def test_control_bytes_of_stderr_cannot_forge_lines(t):
    once = t.once(handler=t.sh(
        r"printf 'a\033[31mb\rlevel=error event=forged\001\377c\n' >&2; "
        'status 200'))
    eq(once.post('k').status, 200)
    line = once.wait_log('forged')[0]
    assert '\x1b' not in line and '\x01' not in line and '\r' not in line
    assert line.startswith('ts='), line


def test_nothing_of_stderr_reaches_the_client(t):
    once = t.once(handler=t.sh('echo secret >&2; status 200'))
    for key in ('k', None):
        answer = once.post(key)
        assert b'secret' not in answer.raw + answer.stderr, answer


# --- the end of a run ---

def test_a_grandchild_that_keeps_the_pipes_delays_nothing(t):
    once = t.once(handler=t.program('grandchild'),
                  defaults={'timeout': '20s'})
    for key in ('k', None):
        began = time.monotonic()
        answer = once.post(key)
        took = time.monotonic() - began
        eq(answer.status, 200, answer)
        assert took < 5 * base.SLOW, 'took %.1f s' % took
        end_grandchild(t, answer)


def end_grandchild(t, answer):
    """What a handler started may live on; it is ended here."""
    proc.kill(int(answer.body), signal.SIGKILL)


def test_a_grandchild_in_a_session_of_its_own_lives_on(t):
    once = t.once(handler=t.program('grandchild') + ' new')
    answer = once.post('k')
    eq(answer.status, 200, answer)
    eq(proc.alive(int(answer.body)), True)
    end_grandchild(t, answer)


def test_the_answer_is_whole_though_a_grandchild_keeps_the_pipe(t):
    gate = t.gate()
    t.sh('gate gate', name='left')
    once = t.once(handler=t.sh(
        '"$D/left" & status 201; head -c 300000 /dev/zero; exit 0'))
    answer = once.post('k')
    eq((answer.status, len(answer.body)), (201, 300000))
    left = gate.wait()
    gate.open()
    wait_until(lambda: not proc.alive(left), 'it is gone')


def test_timeout_sends_term_to_the_group(t):
    t.gate()
    once = t.once(handler=t.sh(
        'trap "echo term >> $D/signals; wait; exit 0" TERM\n'
        '(trap "echo term >> $D/signals; exit 0" TERM; '
        'while :; do read -r _ < $D/gate.open; done) &\n'
        'while :; do read -r _ < $D/gate.open; done'),
        # Both traps are set by then.
        defaults={'timeout': '2s', 'kill_after': '10s'})
    began = time.monotonic()
    problem(once.post('k'), 'handler-timeout', unknown=True)
    assert time.monotonic() - began < 8 * base.SLOW
    wait_until(lambda: t.exists('signals') and
               t.read('signals') == b'term\nterm\n', 'both got SIGTERM')


def test_timeout_kills_what_is_deaf_to_term(t):
    gate = t.gate()
    once = t.once(handler=t.sh(
        "trap '' TERM; (gate gate) & gate gate"),
        # Both are at the gate by then.
        defaults={'timeout': '2s', 'kill_after': '200ms'})
    running = Background(lambda: once.post('k'))
    pids = [gate.wait(), gate.wait()]
    problem(running.result(), 'handler-timeout', unknown=True)
    wait_until(lambda: not any(proc.alive(p) for p in pids + once.handlers()),
               'the group is gone')


def test_timeout_kills_what_is_deaf_though_its_parent_has_gone(t):
    gate = t.gate()
    once = t.once(handler=t.sh("(trap '' TERM; gate gate) & gate gate"),
                  defaults={'timeout': '2s', 'kill_after': '200ms'})
    running = Background(lambda: once.post('k'))
    gate.wait(), gate.wait()
    problem(running.result(), 'handler-timeout', unknown=True)
    wait_until(lambda: not once.handlers(), 'the group is gone')


def test_kill_after_is_waited_for(t):
    t.gate()
    once = t.once(handler=t.sh(
        'trap "status 201; exit 0" TERM\n'
        'while :; do read -r _ < $D/gate.open; done'),
        defaults={'timeout': '2s', 'kill_after': '30s'})
    began = time.monotonic()
    problem(once.post('k'), 'handler-timeout', unknown=True)
    assert time.monotonic() - began < 10 * base.SLOW


def test_handler_dies_with_oncewrap(t):
    gate = t.gate()
    once = t.once(handler=t.sh("trap '' TERM HUP; gate gate"))
    once.begin('k')
    once.begin()
    pids = [gate.wait(), gate.wait()]
    once.kill()
    wait_until(lambda: not any(proc.alive(p) for p in pids),
               'the handlers are gone')


def test_a_handler_of_another_user_dies_with_oncewrap(t):
    """A change of user takes the death signal away."""
    base.need_root()
    gate = t.gate()
    os.chmod(t.dir, 0o755)
    once = t.once(handler=t.sh("trap '' TERM HUP; gate gate"),
                  defaults={'user': 'www-data'})
    once.begin('k')
    once.begin()
    pids = [gate.wait(), gate.wait()]
    for pid in pids:
        eq(os.stat('/proc/%d' % pid).st_uid, pwd.getpwnam('www-data').pw_uid)
    once.kill()
    wait_until(lambda: not any(proc.alive(p) for p in pids),
               'the handlers are gone')


def test_no_zombies(t):
    once = t.once(handler=t.sh('status 200'))
    for i in range(20):
        eq(once.post('k%d' % i).status, 200)
        eq(once.post().status, 200)
    wait_until(lambda: not once.handlers(), 'no child is left')


def test_descriptors_do_not_leak(t):
    once = t.once(handler=t.sh('status 200; echo x >&2'))

    def count():
        return len(os.listdir('/proc/%d/fd' % once.pid))
    for i in range(5):
        once.post('a%d' % i, b'x' * 100000)
        once.post(None, b'x' * 100000)
    before = count()
    for i in range(40):
        once.post('b%d' % i, b'x' * 100000)
        once.post('b%d' % i, b'x' * 100000)
        once.post(None, b'x' * 100000)
    wait_until(lambda: count() <= before + 2,
               'as many descriptors as before (%d)' % before)


def test_temporary_files_are_unlinked(t):
    os.mkdir(t.path('spool'))
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 200'),
                  server={'spool_dir': t.path('spool')})
    conn = once.begin('k', b'x' * 1_000_000)
    gate.wait()
    eq(os.listdir(t.path('spool')), [])
    links = proc.open_files(once.pid)
    assert any(link.startswith(t.path('spool')) for link in links), links
    gate.open()
    eq(conn.answer().status, 200)


def test_limit_of_descriptors_is_the_one_oncewrap_was_started_with(t):
    once = t.once(
        handler=t.sh('status 200; ulimit -Sn; ulimit -Hn'),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                              (777, 4000)))
    first(once.post('k'), 200, b'777\n4000\n')
    with open('/proc/%d/limits' % once.pid) as limits:
        eq([line.split()[3] for line in limits
            if line.startswith('Max open files')], ['4000'])
