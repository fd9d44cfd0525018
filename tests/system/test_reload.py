"""What outlives a configuration: under an allocator that overwrites what is
freed, and under valgrind."""
import os

import base
from answer import eq, first, problem
from base import wait_until

LARGE = 'ledger; status 201; exec head -c 300000 /dev/zero'
OVERWRITE = dict(os.environ, MALLOC_PERTURB_='165')
VALGRIND = ('valgrind', '-q', '--error-exitcode=99', '--track-fds=no',
            '--child-silent-after-fork=yes')


def reload(once):
    n = len(once.log_lines('event=reloaded'))
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded', n + 1)


def use_everything(once, n):
    """Requests that need what a configuration points to."""
    body = b'x' * 200000
    large = once.post('large%d' % n, body)
    first(large, 201)
    eq(len(large.body), 300000)
    eq(once.post('large%d' % n, body).body, large.body)
    if n:
        again = once.post('large%d' % (n - 1), body)
        eq((again.replayed, again.body), ('true', large.body))
    other = once.post('large%d' % n, b'other')
    problem(other, 'key-reused', link=once.server['link'])
    eq(once.get(body=body).status, 201)
    eq(once.get('/admin/health').status, 200)
    eq(once.post('later%d' % n, body, '/later').status, 202)
    wait_until(lambda: once.state('later%d' % n) == 'completed',
               'the accepted request is run')


def reload_again_and_again(t, prefix=()):
    once = t.once(handler=t.sh(LARGE), env=OVERWRITE, prefix=prefix,
                  server={'admin_path': '/admin', 'status_path': '/status',
                          'link': 'https://example.org/old',
                          'spool_dir': t.path('spool0')}, start=False,
                  routes={'/later': {'async': 'always',
                                     'reconcile': t.sh('exit 1')}},
                  conf='[effect mail]\nprogram = /bin/true\n')
    os.mkdir(t.path('spool0'))
    once.start()
    for n in range(3):
        use_everything(once, n)
        os.mkdir(t.path('spool%d' % (n + 1)))
        once.server['spool_dir'] = t.path('spool%d' % (n + 1))
        once.server['link'] = 'https://example.org/%d' % n
        reload(once)
        # Nothing but the new one can be used.
        os.rmdir(t.path('spool%d' % n))
    use_everything(once, 3)
    once.stop()


def test_what_is_freed_at_a_reload_is_not_used(t):
    reload_again_and_again(t)


def test_valgrind_sees_nothing_that_is_freed_at_a_reload(t):
    """A program with AddressSanitizer, which valgrind cannot run, looks
    itself."""
    with open(base.ONCEWRAP, 'rb') as f:
        sanitized = b'__asan_init' in f.read()
    reload_again_and_again(t, () if sanitized else VALGRIND)


def test_attempts_under_way_outlive_their_configuration(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; ' + LARGE), env=OVERWRITE,
                  server={'spool_dir': t.path('spool0')}, start=False)
    os.mkdir(t.path('spool0'))
    once.start()
    conn = once.begin('k')
    gate.wait()
    os.mkdir(t.path('spool1'))
    once.server['spool_dir'] = t.path('spool1')
    reload(once)
    reload(once)
    os.rmdir(t.path('spool0'))
    gate.open()
    answer = conn.answer()
    first(answer, 201)
    eq(len(answer.body), 300000)
    eq(once.post('k').body, answer.body)
