"""What is left of a lost attempt is found, and holds up nothing else."""
import os
import pwd
import shutil
import signal

import base
import proc
from answer import eq, first, problem, replay
from base import wait_until
from clocks import HOUR, Clocks

APP, OTHER = (pwd.getpwnam(name).pw_uid for name in ('games', 'daemon'))

# The first attempt leaves a child behind, as Python starts it: without the
# descriptors above 2.  Then it waits at its gate.
LEAVES = r'''
import subprocess
if os.environ["ONCE_ATTEMPT"] == "1":
    subprocess.Popen(["/bin/sh", "-c", "echo $$ > %s/child.here; "
        "read -r _ < %s/child.open; echo acted >> %s/ledger" % (D, D, D)]
        MORE)
    open(D + "/gate.here", "w").write("%d\n" % os.getpid())
    open(D + "/gate.open").readline()
ledger()
out(b"Status: 201\r\n\r\ndone")
'''


class Lost:
    """A first attempt that stands at its gate, and its child at another."""

    def __init__(self, t, more='', server=None, prefix=(), owner=None,
                 **defaults):
        self.t = t
        self.gate, self.at_child = t.gate(), t.gate('child')
        self.once = t.once(
            handler=t.py(LEAVES.replace(' MORE', more)),
            defaults={'on_crash': 'resume', 'timeout': '10m', **defaults},
            server={'sweep_interval': '1h', **(server or {})},
            prefix=prefix, owner=owner)
        self.conn = self.once.begin('k')
        self.handler = self.gate.wait()
        self.child = self.at_child.wait()

    def lose_oncewrap(self):
        """oncewrap is killed, and its handler with it."""
        self.once.kill()
        wait_until(lambda: not proc.alive(self.handler), 'the handler ends')
        assert proc.alive(self.child)
        self.conn.close()

    def restart(self):
        self.lose_oncewrap()
        self.once.start()

    def end_child(self):
        self.at_child.open()
        wait_until(lambda: not proc.alive(self.child), 'the child ends')


def is_resumed_after_its_child(t, more, **options):
    is_resumed(t, Lost(t, more, **options))


def is_resumed(t, lost):
    lost.restart()
    for _ in range(3):
        problem(lost.once.post('k'), 'key-in-progress')
    lost.end_child()
    # No sweep has been there: the retry finds out.
    first(wait_until(
        lambda: (lambda a: a.status != 409 and a)(lost.once.post('k')),
        'the key is released'), 201)
    eq(t.ledger(), ['acted', '2'])


def test_a_child_without_descriptors_holds_up_the_next_attempt(t):
    is_resumed_after_its_child(t, '')


def test_a_child_in_a_session_of_its_own_holds_up_the_next_attempt(t):
    is_resumed_after_its_child(t, ', start_new_session=True')


def test_a_child_with_an_empty_environment_holds_up_the_next_attempt(t):
    is_resumed_after_its_child(t, ', env={}')


def test_a_child_of_another_user_holds_up_the_next_attempt(t):
    base.need_root()
    t.write('ledger', mode=0o666)
    os.chmod(t.dir, 0o755)
    is_resumed_after_its_child(
        t, ', start_new_session=True, user=%d' % APP)


def lose_handler(lost):
    """The handler is killed, and its child is waited for."""
    proc.kill(lost.handler, signal.SIGKILL)
    (line,) = lost.once.wait_log('event=children-left .*key=k ')
    assert ' pid=%d' % lost.child in line, line
    eq(proc.state(lost.handler), None)


def says(lost, *args):
    run = lost.t.run([base.ONCECTL, '-d', lost.once.database] + list(args),
                     input=b'')
    return run.returncode, (run.stdout + run.stderr).decode()


def test_a_sweep_says_which_process_a_key_waits_for(t):
    lost = Lost(t)
    lost.once.kill()
    wait_until(lambda: not proc.alive(lost.handler), 'the handler ends')
    lost.conn.close()
    at = lost.once.row('k')['locked_until'].split('.')[0].rstrip('Z')
    eq(says(lost, 'sweep'),
       (0, '0 keys settled\noncectl: key k of no scope waits for process %d '
        'that its lost attempt started: it is settled when that has ended, or '
        'after %sZ\n' % (lost.child, at)))
    for args in (('forget', 'k'), ('resolve', 'k', '--not-executed')):
        status, text = says(lost, *args)
        eq((status, '"oncectl sweep" settles it, or says what it waits for'
            in text), (1, True), text)
    status, text = says(lost, 'doctor')
    assert '"oncectl sweep" settles, or says what is waited for' in text
    lost.end_child()
    status, text = says(lost, 'sweep')
    eq((status, 'waits for' in text, '1 key settled' in text),
       (0, False, True), text)
    eq(lost.once.state('k'), 'failed_retryable')


def is_answered_after_its_child(t, lost):
    lose_handler(lost)
    problem(lost.once.post('k'), 'key-in-progress')
    eq(t.exists('ledger'), False)
    lost.end_child()
    problem(lost.conn.answer(), 'handler-failed')
    first(lost.once.post('k'), 201)
    eq(t.ledger(), ['acted', '2'])


def test_a_lost_handler_is_answered_when_its_child_has_ended(t):
    is_answered_after_its_child(t, Lost(t))


def test_a_child_of_another_user_is_found_without_root(t):
    base.need_root()
    base.need_others_processes()
    os.chmod(t.dir, 0o777)
    may = '+setuid,+setgid,+kill'
    lost = Lost(t, ', start_new_session=True', user=str(APP), group='games',
                owner=OTHER, prefix=[
                    base.need('setpriv'), '--reuid', str(OTHER),
                    '--regid', str(OTHER), '--clear-groups',
                    '--inh-caps', may, '--ambient-caps', may])
    is_answered_after_its_child(t, lost)
    # No thread has remained another user.
    threads = proc.thread_status(lost.once.pid)
    assert lost.once.pid in threads, threads
    for thread in threads.values():
        eq((thread['Uid'].split(), thread['Gid'].split()),
           ([str(OTHER)] * 4,) * 2)


def test_past_its_deadline_a_key_with_a_living_child_is_unknown(t):
    lost = Lost(t, timeout='%ds' % (4 * base.SLOW), kill_after='1ms',
                more=', start_new_session=True')
    lose_handler(lost)
    problem(lost.once.post('k'), 'key-in-progress')
    problem(lost.conn.answer(), 'handler-failed', unknown=True)
    assert proc.alive(lost.child)
    problem(lost.once.post('k'), 'outcome-unknown')
    lost.end_child()
    problem(lost.once.post('k'), 'outcome-unknown')


def test_after_a_timeout_a_living_child_makes_the_key_unknown(t):
    lost = Lost(t, timeout='%ds' % (3 * base.SLOW), kill_after='1ms',
                more=', start_new_session=True')
    problem(lost.conn.answer(), 'handler-timeout', unknown=True)
    assert proc.alive(lost.child)
    lost.end_child()
    problem(lost.once.post('k'), 'outcome-unknown')


FINDS_OUT = r'''echo try >> "$D/tries"
printf 'Status: 201\r\nIdempotency-Outcome: completed\r\n\r\nfound\n' '''


def reconciling(t, more=''):
    return Lost(t, more, on_crash='unknown', reconcile=t.sh(FINDS_OUT),
                reconcile_after='1ms')


def is_asked_after_its_child(t, lost):
    problem(lost.once.post('k'), 'outcome-unknown')
    lost.once.wait_log('event=reconciled.*still running', 3)
    eq((lost.once.state('k'), t.exists('tries')), ('unknown', False))
    lost.end_child()
    lost.once.wait_state('k', 'completed')
    eq(t.read('tries'), b'try\n')


def test_a_reconciler_is_asked_when_a_lost_oncewraps_child_has_ended(t):
    lost = reconciling(t)
    lost.restart()
    is_asked_after_its_child(t, lost)


def test_a_reconciler_is_asked_when_a_lost_handlers_child_has_ended(t):
    lost = reconciling(t, ', start_new_session=True')
    proc.kill(lost.handler, signal.SIGKILL)
    problem(lost.conn.answer(), 'handler-failed', unknown=True)
    is_asked_after_its_child(t, lost)


def test_a_reconciler_is_asked_after_a_restart_when_the_child_has_ended(t):
    lost = reconciling(t, ', start_new_session=True')
    proc.kill(lost.handler, signal.SIGKILL)
    problem(lost.conn.answer(), 'handler-failed', unknown=True)
    lost.restart()
    is_asked_after_its_child(t, lost)


# --- what another container sees ---------------------------------------------

def with_mount(mount):
    """A program below it has that mount of its own."""
    base.need_root()
    return [base.need('unshare'), '-m', '--propagation', 'private', 'sh', '-c',
            'mount %s && exec "$0" "$@"' % mount]


def another_boot(t):
    """The same kernel, which names its boot otherwise."""
    name = t.write('boot', 'c2c5b1a2-7a3c-4a9e-8f0d-5d8c9f6b1e77\n')
    return with_mount('--bind %s /proc/sys/kernel/random/boot_id' % name)


def another_space():
    base.need_root()
    return [base.need('unshare'), '--pid', '--fork', '--mount-proc']


def sweeps(lost, prefix):
    """The state of the key after a sweep from there."""
    run = lost.t.run(prefix + [base.ONCECTL, '-d', lost.once.database,
                               'sweep'])
    eq(run.returncode, 0, run.stderr)
    return lost.once.state('k')


def test_a_held_lock_proves_life_whatever_the_boot_is_called(t):
    lost = Lost(t, ', env={}, start_new_session=True, close_fds=False')
    lost.once.prefix = another_boot(t)
    is_resumed(t, lost)


def test_a_child_is_found_whatever_the_boot_is_called(t):
    lost = Lost(t, ', start_new_session=True')
    lost.lose_oncewrap()
    eq(sweeps(lost, another_boot(t)), 'in_progress')
    lost.end_child()
    eq(sweeps(lost, another_boot(t)), 'failed_retryable')


def test_where_its_processes_cannot_be_seen_a_key_is_not_free(t):
    clocks = Clocks(t)
    lost = Lost(t, ', start_new_session=True', on_crash='resume')
    lost.lose_oncewrap()
    eq(sweeps(lost, another_space()), 'in_progress')
    # /proc shows this namespace's processes, and not that one's numbers.
    eq(sweeps(lost, another_space()[:-1]), 'in_progress')
    clocks.passes(HOUR)
    if base.POSTGRES:   # no daemon lives that moves the time of the store
        lost.once.ctl('accept-clock')
    eq(sweeps(lost, another_space()), 'unknown')
    eq(t.exists('ledger'), False)
    lost.end_child()


def test_where_proc_hides_other_users_a_key_is_not_free(t):
    base.need_root()
    os.chmod(t.dir, 0o777)
    caps = '+setuid,+setgid,+kill'

    def as_other(*more):
        return [base.need('setpriv'), '--reuid', str(OTHER), '--regid',
                str(OTHER), '--clear-groups', *more]
    lost = Lost(t, ', start_new_session=True', user=str(APP), group='games',
                owner=OTHER, prefix=as_other('--inh-caps', caps,
                                             '--ambient-caps', caps))
    lost.lose_oncewrap()
    hidden = with_mount('-t proc -o hidepid=invisible proc /proc')
    eq(sweeps(lost, hidden + as_other()), 'in_progress')
    lost.end_child()
    # Nor is it known that the child has ended.
    eq(sweeps(lost, hidden + as_other()), 'in_progress')
    eq(sweeps(lost, hidden), 'failed_retryable')


def test_a_process_elsewhere_does_not_move_the_time_of_the_store(t):
    clocks = Clocks(t)
    one = t.once(handler=t.sh('ledger; status 201'),
                 defaults={'retention': '1h'},
                 server={'sweep_interval': '1d', 'reap_interval': '1d'})
    boot = another_boot(t)

    def ls():
        run = t.run(boot + [base.ONCECTL, '-d', one.database, 'ls'])
        eq(run.returncode, 0, run.stderr)
    clocks.passes(HOUR / 2)
    ls()
    two = t.once(handler=t.sh('ledger; status 201'), name='two',
                 database=one.database, defaults=one.defaults,
                 server=one.server, prefix=boot)
    done = two.post('k')
    first(done, 201)
    clocks.passes(HOUR * 3 / 4)
    ls()
    replay(one.post('k'), done, ('set-cookie', 'date', 'idempotency-expires'))
    eq(t.ledger(), ['1 '])


def test_the_time_of_the_store_is_that_of_the_kernel(t):
    """A time namespace adds what it likes to the time since boot."""
    base.need_root()
    one = t.once(handler=t.sh('ledger; status 201'),
                 defaults={'retention': '1h'})
    two = t.once(handler=t.sh('ledger; status 201'), name='two',
                 database=one.database, defaults=one.defaults,
                 prefix=[base.need('unshare'), '-T', '--boottime', '90000',
                         '--monotonic', '90000'])
    done = one.post('k')
    first(done, 201)
    replay(two.post('k'), done)
    eq(t.ledger(), ['1 '])


# --- what is kept of attempts ------------------------------------------------

def attempts(once):
    try:
        return once.attempts()
    except FileNotFoundError:
        return []


def test_nothing_is_left_of_attempts_that_have_ended(t):
    once = t.once(handler=t.sh('status 201'),
                  defaults={'on_crash': 'resume'})
    for i in range(3):
        first(once.post('k%d' % i), 201)
    once.post('k0')
    eq(attempts(once), [])


def test_a_sweep_removes_what_a_dead_oncewrap_left(t):
    lost = Lost(t)
    eq(len(attempts(lost.once)), 1)
    lost.restart()
    eq(len(attempts(lost.once)), 1)
    lost.end_child()
    lost.once.ctl('sweep')
    eq((lost.once.state('k'), attempts(lost.once)), ('failed_retryable', []))


def test_a_sweep_removes_what_an_operator_has_settled(t):
    lost = reconciling(t)
    proc.kill(lost.handler, signal.SIGKILL)
    problem(lost.conn.answer(), 'handler-failed', unknown=True)
    eq(len(attempts(lost.once)), 1)
    lost.once.ctl('resolve', 'k', '--not-executed')
    lost.once.ctl('sweep')
    # The files of a living daemon are left to it.
    eq(len(attempts(lost.once)), 1)
    lost.once.server['sweep_interval'] = '50ms'
    lost.once.write_conf()
    lost.once.hup()
    wait_until(lambda: not attempts(lost.once), 'it has swept')
    lost.end_child()


# --- what a handler can do with what it inherits -----------------------------

HOSTILE = r'''
import fcntl, struct
def lock(fd, kind):
    """All of the file but what others have locked."""
    at, form = 0, "hhqqi4x"
    try:
        while True:
            want = struct.pack(form, kind, 0, at, 0, 0)
            has, _, start, length, _ = struct.unpack(
                form, fcntl.fcntl(fd, 36, want))
            size = 0 if has == fcntl.F_UNLCK else start - at
            if has == fcntl.F_UNLCK or size > 0:
                fcntl.fcntl(fd, 37, struct.pack(form, kind, 0, at, size, 0))
            if has == fcntl.F_UNLCK or length == 0:
                break
            at = start + length
    except OSError:
        pass
if os.environ["ONCE_KEY"] == "hostile":
    for fd in range(3, 64):
        lock(fd, fcntl.F_RDLCK)
        lock(fd, fcntl.F_WRLCK)
    if os.fork() == 0:
        os.setsid()
        open(D + "/gate.here", "w").write("%d\n" % os.getpid())
        open(D + "/gate.open").readline()
        os._exit(0)
ledger()
out(b"Status: 201\r\n\r\ndone")
'''


def test_a_handler_of_another_user_holds_up_no_other_attempt(t):
    base.need_root()
    gate = t.gate()
    os.chmod(t.dir, 0o1777)
    once = t.once(handler=t.py(HOSTILE), defaults={
        'on_crash': 'resume', 'user': str(APP), 'group': 'games'})
    first(once.post('hostile'), 201)
    gate.wait()
    for i in range(3):
        first(once.post('k%d' % i), 201)
    two = t.once(handler=t.sh('status 201'), name='two',
                 database=once.database, defaults={'on_crash': 'resume'})
    first(two.post('k4'), 201)
    gate.open()


# --- a handler that cannot be signalled --------------------------------------

def stubborn(t, **more):
    base.need_root()
    gate = t.gate()
    os.chmod(t.dir, 0o1777)
    program = shutil.copy(t.program('stubborn'), t.path('stubborn'))
    os.chmod(program, 0o4755)
    once = t.once(handler='%s %s' % (program, t.dir), user=OTHER, group=OTHER,
                  extra_groups=[], **more)
    return gate, once


def is_left(once, pid):
    once.wait_log('event=handler-left .*pid=%d ' % pid)
    assert proc.alive(pid)


def test_a_handler_that_cannot_be_ended_is_answered_for(t):
    gate, once = stubborn(t, server={'workers': '1'}, defaults={
        'timeout': '1s', 'kill_after': '100ms'})
    conn = once.begin('k')
    pid = gate.wait()
    problem(conn.answer(), 'handler-timeout', unknown=True)
    is_left(once, pid)
    # Its slot is free.
    problem(once.post('k'), 'outcome-unknown')
    eq(once.state('k'), 'unknown')
    proc.kill(pid, signal.SIGKILL)
    wait_until(lambda: proc.state(pid) == 'Z', 'it has ended')
    # It is reaped by the next one.
    other = once.begin('k2')
    pid2 = gate.wait()
    eq(proc.state(pid), None)
    problem(other.answer(), 'handler-timeout', unknown=True)
    proc.kill(pid2, signal.SIGKILL)


def test_with_resume_its_key_is_unknown(t):
    gate, once = stubborn(t, defaults={
        'timeout': '1s', 'kill_after': '100ms', 'on_crash': 'resume'})
    conn = once.begin('k')
    pid = gate.wait()
    problem(conn.answer(), 'handler-timeout', unknown=True)
    is_left(once, pid)
    proc.kill(pid, signal.SIGKILL)
    problem(once.post('k'), 'outcome-unknown')


def test_a_drain_ends_though_a_handler_does_not(t):
    gate, once = stubborn(t, server={'drain_timeout': '100ms'},
                          defaults={'timeout': '10m', 'kill_after': '100ms'})
    conn = once.begin('k')
    pid = gate.wait()
    once.stop()
    problem(conn.answer(), 'handler-failed', unknown=True)
    assert proc.alive(pid)
    eq(once.state('k'), 'unknown')
    proc.kill(pid, signal.SIGKILL)


# --- a retry finds out --------------------------------------------------------

def two_of(t, **defaults):
    """A key in progress at a process that is killed; the other one never
    sweeps by itself."""
    gate = t.gate()
    body = t.sh('ledger; test "$ONCE_ATTEMPT" = 2 || gate gate; status 201')
    never = {'sweep_interval': '1h'}
    one = t.once(handler=body, defaults=defaults, server=never)
    two = t.once(handler=body, defaults=defaults, server=never, name='two',
                 database=one.database)
    one.begin('k')
    pid = gate.wait()
    problem(two.post('k'), 'key-in-progress')
    return one, two, pid


def test_a_retry_finds_that_the_owner_is_gone(t):
    one, two, pid = two_of(t)
    one.kill()
    problem(two.post('k'), 'outcome-unknown')
    eq((two.state('k'), t.ledger()), ('unknown', ['1 ']))
    two.wait_log('event=swept .*key=k ')


def test_a_retry_resumes_at_once(t):
    one, two, pid = two_of(t, on_crash='resume')
    one.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler ends')
    first(two.post('k'), 201)
    eq(t.ledger(), ['1 ', '2 '])


def test_a_request_that_waits_finds_that_the_owner_is_gone(t):
    gate = t.gate()
    body = t.sh('ledger; gate gate; status 201')
    never = {'sweep_interval': '1h', 'admin_path': '/once'}
    one = t.once(handler=body, server=never)
    two = t.once(handler=body, server=never, name='two',
                 defaults={'concurrent': 'wait', 'wait_time': '10m'},
                 database=one.database)
    one.begin('k')
    gate.wait()
    conn = two.begin('k')
    two.wait_waiting()
    one.kill()
    problem(conn.answer(), 'outcome-unknown')

