"""What programs may do: none gets a capability of the daemon, and each goes
before the daemon if there is no memory."""
import os
import pwd
import subprocess

import base
from answer import eq, first, problem

NONE = '0000000000000000'
SETS = ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')
# Leaves what the kernel says of the program that runs it.
STATUS = 'cat /proc/self/status > "$D/%s"; '
GIVEN = '+setuid,+setgid,+kill'
# Leaves the program's own oom_score_adj, a line each time.
SCORE = 'read -r score </proc/self/oom_score_adj; echo $score >>"$D/%s"; '


def folder(t):
    """The case's folder, for programs of every user."""
    base.need_root()
    os.chmod(t.dir, 0o777)
    return t.dir


def status(t, name):
    lines = t.read(name).decode().splitlines()
    return {k: v.strip() for k, _, v in (line.partition(':')
                                         for line in lines)}


def has_no_capability(t, name, user):
    seen = status(t, name)
    eq({k: seen[k] for k in SETS}, {k: NONE for k in SETS})
    eq(seen['Uid'].split(), [str(user.pw_uid)] * 4)
    return seen


def ambient(t, **kw):
    """A daemon without root that may become every user."""
    folder(t)
    bin = pwd.getpwnam('bin')
    once = t.once(owner=bin.pw_uid, prefix=[
        base.need('setpriv'), '--reuid', str(bin.pw_uid),
        '--regid', str(bin.pw_gid), '--clear-groups',
        '--inh-caps', GIVEN, '--ambient-caps', GIVEN], **kw)
    with open('/proc/%d/status' % once.pid) as f:
        assert 'CapAmb:\t%s' % NONE not in f.read(), 'none to be left'
    return once, bin


HANDLER = STATUS % 'handler' + 'status 201'


def test_ambient_capabilities_do_not_reach_a_handler(t):
    once, bin = ambient(t, handler=t.sh(HANDLER))
    first(once.post('k'), 201)
    has_no_capability(t, 'handler', bin)


def test_ambient_capabilities_do_not_reach_a_handler_of_another_user(t):
    www = pwd.getpwnam('www-data')
    once, _ = ambient(t, handler=t.sh(HANDLER),
                      defaults={'user': 'www-data'})
    first(once.post('k'), 201)
    has_no_capability(t, 'handler', www)


def test_ambient_capabilities_do_not_reach_what_is_not_guarded(t):
    www = pwd.getpwnam('www-data')
    once, _ = ambient(t, handler=t.sh(HANDLER),
                      defaults={'user': 'www-data'})
    eq(once.get().status, 201)
    has_no_capability(t, 'handler', www)


def test_a_handler_of_another_user_cannot_become_root(t):
    once, _ = ambient(t, handler=t.py('''
try:
    os.setresuid(0, 0, 0)
    out(b"Status: 500\\r\\n\\r\\n")
except PermissionError:
    out(b"Status: 201\\r\\n\\r\\n")
'''), defaults={'user': 'www-data'})
    first(once.post('k'), 201)


def test_ambient_capabilities_do_not_reach_a_reconciler(t):
    base.need_others_processes()
    www = pwd.getpwnam('www-data')
    program = t.sh(STATUS % 'reconciler' + 'printf "Status: 201\\r\\n'
                   'Idempotency-Outcome: completed\\r\\n\\r\\n"')
    once, _ = ambient(t, handler=t.sh('kill -9 $$'), defaults={
        'user': 'www-data', 'reconcile': program, 'reconcile_after': '1ms'})
    problem(once.post('k'), 'handler-failed', unknown=True)
    once.wait_state('k', 'completed')
    has_no_capability(t, 'reconciler', www)


def effect(t, **options):
    """An effect was delivered by a program with these options."""
    program = t.sh(STATUS % 'effect')
    lines = ''.join('%s = %s\n' % o for o in options.items())
    conf = '[effect mail]\nprogram = %s\n%s' % (program, lines)
    return dict(conf=conf, defaults=emits(t))


def emits(t):
    """The options of a handler that has an effect."""
    return {'handler': t.sh('echo hello | %s emit mail || exit; status 201' %
                            t.program('oncectl')), 'share_database': 'yes'}


def delivered(once, **kw):
    first(once.post('k', **kw), 201)
    base.wait_until(lambda: '"delivered"' in once.ctl(
        'outbox', 'ls', '--json'), 'the effect is delivered')


def test_ambient_capabilities_do_not_reach_an_effect(t):
    www = pwd.getpwnam('www-data')
    once, _ = ambient(t, **effect(t, user='www-data'))
    delivered(once)
    has_no_capability(t, 'effect', www)


def test_inheritable_capabilities_of_root_do_not_reach_a_handler(t):
    www = pwd.getpwnam('www-data')
    folder(t)
    once = t.once(handler=t.sh(HANDLER), defaults={'user': 'www-data'},
                  prefix=[base.need('setpriv'), '--inh-caps', GIVEN])
    first(once.post('k'), 201)
    has_no_capability(t, 'handler', www)
    eq(status(t, 'handler')['NoNewPrivs'], '0')


def test_root_as_a_handler_inherits_nothing_and_remains_root(t):
    folder(t)
    once = t.once(handler=t.sh(HANDLER),
                  prefix=[base.need('setpriv'), '--inh-caps', GIVEN])
    first(once.post('k'), 201)
    seen = status(t, 'handler')
    eq((seen['CapInh'], seen['CapAmb']), (NONE, NONE))
    eq(seen['CapEff'], seen['CapBnd'])


NEEDS = ('to run a program as another user or group, oncewrap needs root, or '
         'CAP_SETUID and CAP_SETGID')


def test_without_the_right_to_change_the_user_nothing_starts(t):
    folder(t)
    bin = pwd.getpwnam('bin')
    once = t.once(owner=bin.pw_uid, prefix=[
        base.need('setpriv'), '--reuid', str(bin.pw_uid),
        '--regid', str(bin.pw_gid), '--clear-groups'],
        handler=t.sh('status 201'),
        routes={'/user': {'user': 'nobody'}, '/root': {'user': 'root'},
                '/group': {'group': 'www-data'},
                '/fcgi': {'user': 'nobody', 'protocol': 'fastcgi'}})
    for path in ('/user', '/root', '/group', '/fcgi'):
        # 403 is the answer for a program that may not be executed.
        eq(once.get(path).status, 502)
        problem(once.post('k', path=path), 'handler-not-started')
    lines = once.log_lines('event=handler-not-started .*step=setuid')
    assert len(lines) >= 7, lines
    for line in lines:
        assert ' why="%s"' % NEEDS in line, line
    first(once.post('k', path='/'), 201)


# --- no_new_privs -------------------------------------------------------------

def test_no_new_privs_of_a_handler(t):
    once = t.once(handler=t.sh(HANDLER), defaults={'no_new_privs': 'yes'})
    first(once.post('k'), 201)
    eq(status(t, 'handler')['NoNewPrivs'], '1')


def test_no_new_privs_of_what_is_not_guarded(t):
    once = t.once(handler=t.sh(HANDLER), defaults={'no_new_privs': 'yes'})
    eq(once.get().status, 201)
    eq(status(t, 'handler')['NoNewPrivs'], '1')


def test_no_new_privs_of_a_reconciler(t):
    program = t.sh(STATUS % 'reconciler' + 'printf "Status: 201\\r\\n'
                   'Idempotency-Outcome: completed\\r\\n\\r\\n"')
    once = t.once(handler=t.sh('kill -9 $$'), defaults={
        'no_new_privs': 'yes', 'reconcile': program,
        'reconcile_after': '1ms'})
    problem(once.post('k'), 'handler-failed', unknown=True)
    once.wait_state('k', 'completed')
    eq(status(t, 'reconciler')['NoNewPrivs'], '1')


def test_no_new_privs_of_an_effect(t):
    once = t.once(**effect(t, no_new_privs='yes'))
    delivered(once)
    eq(status(t, 'effect')['NoNewPrivs'], '1')


def test_setuid_programs_give_a_handler_nothing_with_no_new_privs(t):
    folder(t)
    once = t.once(handler=t.sh('status 201; "$D/id" -u'),
                  defaults={'user': 'www-data', 'no_new_privs': 'yes'},
                  routes={'/old': {'no_new_privs': 'no'}})
    t.run(['cp', '/usr/bin/id', t.path('id')])
    os.chown(t.path('id'), 0, 0)
    os.chmod(t.path('id'), 0o4755)
    www = str(pwd.getpwnam('www-data').pw_uid).encode()
    eq(once.post('k').body, www + b'\n')
    eq(once.post('k', path='/old').body, b'0\n')


def score(pid):
    with open('/proc/%d/oom_score_adj' % pid) as f:
        return int(f.read())


def test_each_program_goes_before_the_daemon_if_there_is_no_memory(t):
    said = r'printf "Status: 201\nIdempotency-Outcome: completed\n\n"'
    once = t.once(
        handler=t.sh(SCORE % '$REQUEST_METHOD' + 'status 201'),
        routes={'/stays': {
            'handler': '%s %s' % (t.program('kinds.py'), t.dir),
            'protocol': 'fastcgi', 'processes': '1'},
            '/lost': {'handler': t.sh('kill -9 $$'), 'reconcile': t.sh(
                SCORE % 'reconciler' + said), 'reconcile_after': '1ms'},
            '/emits': emits(t)},
        conf='[effect mail]\nprogram = %s\n' % t.sh(SCORE % 'effect'))
    want = min(score(once.pid) + 500, 1000)
    first(once.post('a'), 201)
    eq(once.get().status, 201)
    problem(once.post('b', path='/lost'), 'handler-failed', unknown=True)
    once.wait_state('b', 'completed')
    delivered(once, path='/emits')
    for name in ('POST', 'GET', 'reconciler', 'effect'):
        eq(t.read(name).decode(), '%d\n' % want, name)
    stays = once.post('d', path='/stays', query='201')
    eq(score(int(stays.body.split()[0])), want)


def may_have(own):
    """Whether a process of these tests may lower its score so far."""
    return subprocess.run([base.need('choom'), '-n', str(own), 'true'],
                          capture_output=True).returncode == 0


def test_a_programs_score_is_500_above_the_daemons_and_1000_at_most(t):
    """Only the right to lower a score allows one below 0."""
    tried = 0
    for own, want in ((-1000, -500), (-507, -7), (-500, 0), (-496, 4),
                      (499, 999), (501, 1000), (1000, 1000)):
        if not may_have(own):
            continue
        tried += 1
        once = t.once(handler=t.sh(SCORE % 'score%d' % tried + 'status 201'),
                      prefix=[base.need('choom'), '-n', str(own), '--'])
        eq(score(once.pid), own)
        first(once.post('k%d' % tried), 201)
        eq(t.read('score%d' % tried).decode(), '%d\n' % want, own)
        once.stop()
    assert tried, 'no score could be set'


def test_programs_of_another_user_go_before_the_daemon_each_time(t):
    once, _ = ambient(t, handler=t.sh(SCORE % 'score' + 'status 201'),
                      defaults={'user': 'www-data'})
    want = min(score(once.pid) + 500, 1000)
    for key in 'abc':
        first(once.post(key), 201)
    eq(t.read('score').decode(), '%d\n' % want * 3)
    # For programs of its own user it is root's file now.
    eq(os.stat('/proc/%d/oom_score_adj' % once.pid).st_uid, 0)
