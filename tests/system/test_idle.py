"""Threads: which there are, and what they do while nothing happens.

A thread that was taken off a processor as often as before has not run since,
and so has made no system call.
"""
import proc
from answer import eq
from base import wait_until

SERVER = {'admin_path': '/once', 'workers': '3'}
ALWAYS = {'oncewrap': 1, 'worker': 3, 'standby': 1, 'committer': 1,
          'scheduler': 1}


def test_an_idle_daemon_sleeps_for_ten_seconds(t):
    once = t.once(handler=t.sh('status 201; echo done'), server=SERVER)
    for _ in range(2):
        eq(once.post('k').status, 201)
    wait_until(lambda: proc.stirs(once.pid, 1) == [], 'all threads sleep')
    eq(proc.stirs(once.pid, 10), [])
    eq(proc.thread_names(once.pid), ALWAYS)


def test_a_daemon_has_32_workers_and_four_threads_more(t):
    once = t.once(handler='/bin/true')
    eq(proc.thread_names(once.pid), dict(ALWAYS, worker=32))


def test_work_that_is_configured_is_polled(t):
    """Else the test above would see nothing."""
    once = t.once(handler='/bin/true', server=SERVER,
                  conf='[effect mail]\nprogram = /bin/true\n')
    wait_until(lambda: proc.stirs(once.pid, 1) == ['scheduler'], 'it looks')


def test_maintenance_needs_no_second_thread(t):
    once = t.once(handler='/bin/true', server=dict(
        SERVER, sweep_interval='10ms', reap_interval='10ms'))
    wait_until(lambda: proc.stirs(once.pid, 1) == ['committer', 'scheduler'],
               'passes run')
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
    eq(proc.thread_names(once.pid), dict(ALWAYS, scheduler=2))
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
