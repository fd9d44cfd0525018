"""Threads: which there are, and what they do while nothing happens.

A thread that was taken off a processor as often as before has not run since,
and so has made no system call.
"""
import base
import proc
from answer import eq
from base import wait_until
from test_outbox import EMITTER

SERVER = {'admin_path': '/once', 'workers': '3'}
# The thread of the store; on PostgreSQL it tells other hosts that this process
# lives, so it is the one that does not sleep.
STORE = 'keeper' if base.POSTGRES else 'committer'
AWAKE = {'keeper'} if base.POSTGRES else set()
# The loop has the time of a look, and a thread of the scheduler makes it.
LOOKS = {'loop', 'scheduler'}
ALWAYS = {'oncewrap': 1, 'loop': 1, STORE: 1, 'scheduler': 1}


def sleeps(once, seconds, but=()):
    return not set(proc.stirs(once.pid, seconds)) - AWAKE - set(but)


def test_an_idle_daemon_sleeps_for_ten_seconds(t):
    once = t.once(handler=t.sh('status 201; echo done'), server=SERVER)
    for _ in range(2):
        eq(once.post('k').status, 201)
    wait_until(lambda: sleeps(once, 1), 'all threads sleep')
    eq(set(proc.stirs(once.pid, 10)) - AWAKE, set())
    # The others help, and sleep until they are asked.
    eq(set(proc.thread_names(once.pid)) - {'start', 'store'}, set(ALWAYS))


def test_a_daemon_has_four_threads(t):
    once = t.once(handler='/bin/true')
    eq(proc.thread_names(once.pid), ALWAYS)


def with_work(t, program='/bin/true', attempts=1):
    """A daemon with work of all kinds, which maintenance does not wake."""
    return t.once(
        handler=t.py(EMITTER),
        server=dict(SERVER, status_path='/jobs', sweep_interval='1h',
                    reap_interval='1h'),
        defaults={'async': 'prefer', 'share_database': 'yes',
                  'reconcile': '/bin/true'},
        conf='[effect mail]\nprogram = %s\nattempts = %d\nbackoff = 14s\n'
        % (program, attempts))


def wait_sleep(once):
    """PostgreSQL does not tell what others write, so it is asked."""
    but = LOOKS if base.POSTGRES else []
    wait_until(lambda: sleeps(once, 2, but), 'it sleeps')


def given_up(once):
    return once.ctl('outbox', 'ls', '--json', '--state', 'dead_letter')


def test_work_that_is_configured_is_polled_until_nothing_is_written(t):
    once = with_work(t)
    wait_until(lambda: set(proc.stirs(once.pid, 1)) - AWAKE == LOOKS,
               'it looks')
    wait_sleep(once)


def test_what_another_process_writes_wakes_it(t):
    once = with_work(t, program=t.sh('exit 1', 'mail'))
    eq(once.post('k', body='mail x').status, 201)
    wait_until(lambda: given_up(once), 'it is given up')
    wait_sleep(once)
    t.sh('cat > "$D/mailed"', 'mail')
    once.ctl('outbox', 'retry', '1')
    t.wait_file('mailed')


def test_what_is_due_later_wakes_it(t):
    """The second try is due when nothing was written for a while."""
    once = with_work(t, program=t.sh('exit 1', 'mail'), attempts=2)
    eq(once.post('k', body='mail x').status, 201)
    wait_sleep(once)
    assert not given_up(once)
    wait_until(lambda: given_up(once), 'it is given up')


def test_a_key_that_is_due_to_be_reconciled_wakes_it(t):
    once = t.once(
        handler=t.sh('kill -9 $$'),
        server=dict(SERVER, sweep_interval='1h', reap_interval='1h'),
        defaults={'reconcile_after': '14s', 'reconcile': t.sh(
            'echo Idempotency-Outcome: completed; status 201; echo it did')})
    once.post('k')
    eq(once.state('k'), 'unknown')
    wait_sleep(once)
    eq(once.state('k'), 'unknown')
    once.wait_state('k', 'completed')


def test_maintenance_needs_no_second_thread(t):
    once = t.once(handler='/bin/true', server=dict(
        SERVER, sweep_interval='10ms', reap_interval='10ms'))
    wait_until(lambda: set(proc.stirs(once.pid, 1)) - AWAKE ==
               {STORE, *LOOKS} - AWAKE, 'passes run')
    eq(proc.thread_names(once.pid), ALWAYS)


def test_a_reload_that_adds_work_starts_threads_for_it(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 201'),
                  server=dict(SERVER, status_path='/jobs'))
    eq(proc.thread_names(once.pid), ALWAYS)
    once.routes['/later'] = {'async': 'always'}
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    eq(once.post('a', path='/later').status, 202)
    gate.wait()
    # One runs the job, and one looks for more work.
    eq(proc.thread_names(once.pid)['scheduler'], 2)
    gate.open()
    once.wait_state('a', 'completed')


def test_a_reload_changes_how_many_jobs_run_at_once(t):
    gate = t.gate()
    server = dict(SERVER, status_path='/jobs', async_workers='1')
    once = t.once(handler=t.sh('gate gate; status 201'), server=server,
                  defaults={'async': 'always'})
    for key in 'abc':
        eq(once.post(key).status, 202)
    gate.wait()
    eq(once.gauge('keys{state="in_progress"}'), 1)
    once.server['async_workers'] = '3'
    once.write_conf()
    once.hup()
    wait_until(lambda: once.gauge('keys{state="in_progress"}') == 3,
               'all three run')
    gate.open(3)
    for key in 'abc':
        once.wait_state(key, 'completed')


def test_what_is_left_in_the_queue_runs_without_an_asynchronous_route(t):
    """A retry is not late either: its time is known without polling."""
    once = t.once(handler='/no/such/program',
                  server=dict(SERVER, status_path='/jobs'),
                  defaults={'async': 'always'})
    eq(once.post('a').status, 202)
    wait_until(lambda: once.row('a')['attempt'] >= 1, 'the handler fails')
    once.stop()
    del once.defaults['async']
    once.defaults['handler'] = t.sh('status 201; echo done')
    once.write_conf()
    once.start()
    once.wait_state('a', 'completed')
