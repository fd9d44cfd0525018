"""Support: did it go through?  One command tells, given the key, the Reference,
or the address and the hour."""
import json
import re

from answer import eq, first, problem, replay
from test_resolve import ctl, refused

# The path of a query is what becomes of the request.
PAY = ('case $QUERY_STRING in lost) kill -9 $$;; esac; status 201; echo paid')


def reference(once, event, key):
    """The instance that the log has of that event and key."""
    line = once.wait_log('event=%s instance=.* key=%s ' % (event, key))[0]
    return re.search('instance=(urn:uuid:[0-9a-f-]+)', line)[1]


def shown(once, *args):
    row = json.loads(once.ctl('show', '--json', *args))
    return row['key'], row['state']


def ls(once, *args):
    return [json.loads(line)['key']
            for line in once.ctl('ls', '--json', *args).splitlines()]


def test_a_key_tells_whether_it_went_through(t):
    once = t.once(handler=t.sh(PAY))
    first(once.post('k'), 201)
    eq(shown(once, 'k'), ('k', 'completed'))


def test_a_key_tells_method_address_and_reference(t):
    once = t.once(handler=t.sh(PAY))
    once.request('PATCH', '/pay', key='k',
                 params={'REMOTE_ADDR': '192.0.2.7'})
    row = once.row('k')
    eq((row['method'], row['peer'], 'urn:uuid:' + row['instance']),
       ('PATCH', '192.0.2.7', reference(once, 'run', 'k')))
    once.post('l')
    eq(once.row('l')['method'], 'POST')


def test_a_reference_tells_its_key_for_a_run_a_replay_and_a_refusal(t):
    once = t.once(handler=t.sh(PAY))
    for n in range(20):
        once.post('other%d' % n)
    answer = once.post('k')
    replay(once.post('k'), answer)
    reused = problem(once.post('k', body=b'another'), 'key-reused')
    lost = problem(once.post('l', query='lost'), 'handler-failed',
                   unknown=True)
    for uuid, found in ((reference(once, 'run', 'k'), ('k', 'completed')),
                        (reference(once, 'replay', 'k'), ('k', 'completed')),
                        (reused['instance'], ('k', 'completed')),
                        (lost['instance'], ('l', 'unknown'))):
        eq(shown(once, '--instance', uuid), found)
        eq(shown(once, '--instance', uuid[len('urn:uuid:'):].upper()), found)


def test_of_another_request_than_the_last_attempt_that_is_said(t):
    once = t.once(handler=t.sh(PAY))
    once.post('k')
    run = ctl(t, once, 'show', '--instance', reference(once, 'run', 'k'))
    eq((run.returncode, run.stderr), (0, b''), run)
    reused = problem(once.post('k', body=b'another'), 'key-reused')
    run = ctl(t, once, 'show', '--instance', reused['instance'])
    eq(run.returncode, 0, run)
    assert b'did not begin the last attempt' in run.stderr, run
    once.ctl('forget', 'k')
    refused(t, once, 'show', '--instance', reused['instance'],
            says='was forgotten')


def test_a_reference_without_a_key_says_why(t):
    once = t.once(handler=t.sh(PAY), defaults={'key': 'required'})
    missing = problem(once.post(), 'key-missing')['instance']
    for uuid, says in ((missing, 'without a key'), ('x', 'no Reference'),
                       ('urn:uuid:8f0e4d0c-9a6b-4c55-8a52-0b0d6a0c9d3e',
                        'another store')):
        refused(t, once, 'show', '--instance', uuid, says=says)
    first(once.post('k'), 201)
    uuid = reference(once, 'run', 'k')
    once.ctl('forget', '--instance', uuid)
    refused(t, once, 'show', '--instance', uuid, says='not here')


def test_address_and_hour_tell_the_key(t):
    once = t.once(handler=t.sh(PAY))
    for n in range(150):
        once.post('of%d' % n, params={'REMOTE_ADDR': '192.0.2.%d' % (n % 9)})
    once.post('k', params={'REMOTE_ADDR': '2001:db8::7'})
    eq(ls(once, '--peer', '2001:db8::7', '--since', '1h'), ['k'])
    eq(ls(once, '--peer', '2001:db8::7', '--until', '1h'), [])
    eq(ls(once, '--peer', '2001:db8::7', '--since', '2020-01-01T00:00:00Z',
          '--until', '2020-01-01T01:00:00Z'), [])
    eq(len(ls(once, '--peer', '192.0.2.1', '--since', '1h')), 17)
    eq(len(ls(once, '--since', '1h')), 151)


def test_all_that_are_chosen_are_not_executed(t):
    once = t.once(handler=t.sh(PAY))
    for n in range(45):
        problem(once.post('l%d' % n, query='lost'), 'handler-failed',
                unknown=True)
    first(once.post('k'), 201)
    for input in (b'', b'n\n', b'y'):
        run = ctl(t, once, 'resolve', '--not-executed', '--path', '/pay',
                  input=input)
        eq(run.returncode, 1, run)
        assert b'resolve 45 keys as not executed? [y/N] ' in run.stderr, run
        eq(once.state('l7'), 'unknown')
    run = ctl(t, once, 'resolve', '--not-executed', '--path', '/pay',
              input=b'y\n')
    eq((run.returncode, run.stdout), (0, b'45 keys released\n'), run)
    eq((once.state('l7'), once.state('l44'), once.state('k')),
       ('failed_retryable', 'failed_retryable', 'completed'))
    first(once.post('l7'), 201)


def test_not_executed_is_said_of_open_keys_only(t):
    once = t.once(handler=t.sh(PAY))
    problem(once.post('l', query='lost'), 'handler-failed', unknown=True)
    first(once.post('k'), 201)
    refused(t, once, 'resolve', '--not-executed', '--state', 'completed',
            '--yes', says='completed cannot be')
    for args in (['--completed', '--path', '/pay'],
                 ['--not-executed', '--yes'],
                 ['k', '--not-executed', '--older', '1h']):
        eq(ctl(t, once, 'resolve', *args).returncode, 2)
    eq(once.ctl('resolve', '--not-executed', '--path', '/none', '--yes'),
       '0 keys released\n')
    lines = once.ctl('resolve', '--not-executed', '--state', 'unknown',
                     '--yes', '--json').splitlines()
    eq([json.loads(line)['key'] for line in lines], ['l'])
    eq(once.state('l'), 'failed_retryable')


def test_what_a_program_wrote_to_stderr_is_shown(t):
    once = t.once(handler=t.sh('i=0; while [ $i -lt 200 ]; do '
                               'echo "line $i of many" >&2; i=$((i + 1)); done;'
                               'printf "bad\\033[1mbold" >&2; status 201'))
    first(once.post('k'), 201)
    text = once.ctl('show', 'k')
    assert 'stderr: line 199 of many\nstderr: bad\\x1b[1mbold\n' in text, text
    assert 'line 1 of' not in text, text
    row = json.loads(once.ctl('show', '--json', 'k'))
    assert row['stderr'].endswith('199 of many\nbad\x1b[1mbold'), row
    eq(len(row['stderr']), 2048)
    refused(t, once, 'show', '--output', 'k', says='no answer of its program')


def test_nothing_is_kept_of_a_quiet_program(t):
    once = t.once(handler=t.sh(PAY))
    first(once.post('k'), 201)
    eq(json.loads(once.ctl('show', '--json', 'k'))['stderr'], None)
    assert 'stderr' not in once.ctl('show', 'k')


def test_a_released_key_tells_which_status_released_it(t):
    once = t.once(handler=t.sh('if [ "$ONCE_ATTEMPT" = 1 ]; '
                               'then status 503; else status 201; fi'))
    first(once.post('k'), 503)
    assert '503' in once.row('k')['last_error'], once.row('k')
    first(once.post('k'), 201)
    eq(once.row('k')['last_error'], None)
