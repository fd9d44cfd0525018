"""oncectl resolve, forget, sweep and reap: what an operator can change."""
import json
import os

import base
import proc
from answer import eq, expires_in, first, problem, replay
from base import wait_until
from once import Lock

ANSWER = (b'Status: 201 All Made Up\r\nContent-Type: text/plain\r\n'
          b'X-Twice: a\r\nX-Twice: b\r\nSet-Cookie: secret=1\r\n'
          b'Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n'
          b'given by hand\x00\xff\n')

# The first attempt is lost, and all others have an answer.
ONCE = ('ledger "$ONCE_DOWNSTREAM_KEY"; '
        'if [ "$ONCE_ATTEMPT" = 1 ] && [ -z "$QUERY_STRING" ]; '
        'then kill -9 $$; fi; status 200; echo "$ONCE_ATTEMPT"')


def unknown(t, key='k', handler=ONCE, **options):
    once = t.once(handler=t.sh(handler), **options)
    problem(once.post(key), 'handler-failed', unknown=True)
    eq(once.state(key), 'unknown')
    return once


def ctl(t, once, *args, input=None, conf=False):
    which = ['-f', once.file] if conf else ['-d', once.database]
    return t.run([base.ONCECTL] + which + list(args), input=input)


def refused(t, once, *args, says, input=None):
    """Exit status 1, nothing printed, and a reason with these words."""
    run = ctl(t, once, *args, input=input)
    eq((run.returncode, run.stdout), (1, b''), run)
    for word in [says] if isinstance(says, str) else says:
        assert word in run.stderr.decode(), run


def is_the_answer(answer, body=b'given by hand\x00\xff\n'):
    eq((answer.status, answer.reason, answer.replayed),
       (201, 'All Made Up', 'true'), answer)
    eq(answer.body, body, answer)
    eq(answer.get('Content-Type'), 'text/plain', answer)
    eq(answer.all('X-Twice'), ['a', 'b'], answer)
    assert answer.get('Idempotency-Expires'), str(answer)


# --- resolve --------------------------------------------------------------

def test_completed_is_replayed_byte_for_byte(t):
    once = unknown(t)
    problem(once.post('k'), 'outcome-unknown')
    eq(once.ctl('resolve', 'k', '--completed', input=ANSWER),
       'key k of no scope: unknown -> completed\n')
    for _ in range(2):
        answer = once.post('k')
        is_the_answer(answer)
        eq((answer.all('Set-Cookie'), answer.all('Date')), ([], []), answer)
    row = once.row('k')
    eq((row['state'], row['status'], row['attempt'], row['last_error']),
       ('completed', 201, 1, None), row)
    eq(len(t.ledger()), 1)


def test_completed_survives_a_restart(t):
    once = unknown(t)
    once.stop()
    once.ctl('resolve', 'k', '--completed', input=ANSWER)
    once.start()
    is_the_answer(once.post('k'))


def test_completed_with_a_large_body(t):
    once = unknown(t)
    body = bytes(range(256)) * 20000
    once.ctl('resolve', 'k', '--completed', input=ANSWER + body)
    is_the_answer(once.post('k'), b'given by hand\x00\xff\n' + body)


def test_completed_keeps_the_retention_of_the_key(t):
    once = unknown(t, defaults={'retention': '3h'})
    once.ctl('resolve', 'k', '--completed', input=ANSWER)
    expires_in(once.post('k'), 3 * 3600)


def test_completed_follows_the_route_of_the_configuration(t):
    once = unknown(t, routes={'/pay': {'replay_drop': 'X-Twice'}})
    run = ctl(t, once, 'resolve', 'k', '--completed', input=ANSWER, conf=True)
    eq((run.returncode, run.stderr), (0, b''), run)
    answer = once.post('k')
    eq((answer.all('X-Twice'), answer.all('Set-Cookie')), ([], ['secret=1']),
       answer)


def test_completed_with_more_than_is_kept(t):
    once = unknown(t, routes={'/pay': {'max_response': '1K'}})
    run = ctl(t, once, 'resolve', 'k', '--completed', conf=True,
              input=ANSWER + b'x' * 100000)
    eq(run.returncode, 0, run)
    assert b'response-not-kept' in run.stderr, run
    problem(once.post('k'), 'response-not-kept',
            more=('original_status', 'completed_at'))
    eq(len(t.ledger()), 1)


def test_completed_with_a_file_that_may_change(t):
    once = unknown(t)
    run = ctl(t, once, 'resolve', 'k', '--completed',
              input=b'Status: 200\r\nX-Sendfile: /etc/motd\r\n\r\n')
    eq(run.returncode, 0, run)
    assert b'response-not-kept' in run.stderr, run
    problem(once.post('k'), 'response-not-kept',
            more=('original_status', 'completed_at'))


def test_completed_with_a_local_redirect(t):
    once = unknown(t)
    once.ctl('resolve', 'k', '--completed', input=b'Location: /done\n\n')
    eq(once.post('k').get('Location'), '/done')


def test_completed_refuses_what_is_no_response(t):
    once = unknown(t)
    for given, says in (
            (b'', 'empty: give a CGI response'),
            (b'Status: 201\r\n', 'no end'),
            (b'just text\n\n', 'no field'),
            (b'X-Other: 1\n\nbody', 'neither Content-Type'),
            (b'Status: 99\n\n', 'Status'),
            (b'Status: 200\nContent-Length: x\n\n', 'Content-Length'),
            (b'Status: 200\nContent-Type: a/b\nContent-Type: a/c\n\n',
             'two different'),
            (b'Status: 200\nX: %s\n\n' % (b'x' * 70000), 'too long'),
            (b'Status: 200\nContent-Length: 5\n\nabc', ['5', '3 bytes']),
            (b'Status: 200\nIdempotency-Outcome: not-executed\n\n',
             'Idempotency-Outcome'),
            (b'Status: 200\nIdempotency-Outcome: unknown\n\n',
             'Idempotency-Outcome')):
        refused(t, once, 'resolve', 'k', '--completed', input=given,
                says=['standard input: '] +
                ([says] if isinstance(says, str) else says))
        eq(once.state('k'), 'unknown', given)
    once.ctl('resolve', 'k', '--completed', input=(
        b'Status: 200\nIdempotency-Outcome: completed\n'
        b'Content-Length: 3\nIdempotent-Replayed: no\n\nabc'))
    answer = once.post('k')
    eq((answer.body, answer.replayed, answer.all('Idempotency-Outcome')),
       (b'abc', 'true', []), answer)


def test_completed_with_json(t):
    once = unknown(t)
    eq(json.loads(once.ctl('resolve', 'k', '--completed', '--json',
                           input=ANSWER)),
       {'scope': '', 'path': '/pay', 'key': 'k', 'from': 'unknown',
        'to': 'completed'})


def test_not_executed_runs_again_with_the_same_downstream_key(t):
    once = unknown(t)
    eq(once.ctl('resolve', 'k', '--not-executed'),
       'key k of no scope: unknown -> failed_retryable\n')
    row = once.row('k')
    eq((row['state'], row['attempt'], row['status']),
       ('failed_retryable', 1, None), row)
    assert 'not executed' in row['last_error'], row
    answer = once.post('k')
    first(answer, 200, b'2\n')
    replay(once.post('k'), answer)
    runs = [line.split() for line in t.ledger()]
    eq([r[0] for r in runs], ['1', '2'])
    eq(runs[0][1], runs[1][1])
    eq(once.row('k')['downstream'], runs[0][1])


def test_resolve_by_downstream_key_in_any_case(t):
    once = unknown(t)
    downstream = once.row('k')['downstream']
    once.ctl('resolve', '--downstream', downstream.upper(), '--completed',
             input=ANSWER)
    is_the_answer(once.post('k'))
    shown = json.loads(once.ctl('show', '--json', '--downstream',
                                downstream.upper()))
    eq((shown['key'], shown['state']), ('k', 'completed'))


def test_no_such_key(t):
    once = unknown(t)
    for verb in (['resolve', '--not-executed'], ['forget'], ['show']):
        refused(t, once, *verb, 'other', says='other: no such key')
        for uuid in ('00000000-0000-4000-8000-000000000000', 'k', '', '%'):
            refused(t, once, *verb, '--downstream', uuid, says='no such key')
        for args, says in ((('--scope', 'ann'), 'of scope ann'),
                           (('--path', '/other'), 'on path /other'),
                           (('--path', '/other', '--scope', 'ann'),
                            'on path /other of scope ann')):
            for key in ('k', 'other'):
                refused(t, once, *verb, key, *args,
                        says='%s: no such key %s\n' % (key, says))
    eq(once.state('k'), 'unknown')


def test_several_keys_are_refused_until_one_is_meant(t):
    once = t.once(handler=t.sh('kill -9 $$'))
    for user, path in (('ann', '/pay'), ('bob', '/pay'), ('bob', '/other')):
        once.post('k', user=user, path=path)
    for verb in (['resolve', '--not-executed'], ['forget']):
        refused(t, once, *verb, 'k', says=['ann', 'bob', '/other'])
        refused(t, once, *verb, 'k', '--scope', 'bob', says=['/other'])
    once.ctl('resolve', 'k', '--scope', 'bob', '--path', '/pay',
             '--not-executed')
    once.ctl('forget', 'k', '--scope', 'ann')
    eq(sorted((r['scope'], r['path'], r['state']) for r in once.ls()),
       [('bob', '/other', 'unknown'), ('bob', '/pay', 'failed_retryable')])


def test_refusals_name_the_state(t):
    gate = t.gate()
    once = t.once(handler=t.sh('case $QUERY_STRING in done) status 200;; '
                               'free) status 503;; *) gate gate; status 200;; '
                               'esac'))
    once.post('done', query='done', user='ann')
    once.post('free', query='free')
    conn = once.begin('runs')
    gate.wait()
    only = 'only unknown and dead_letter can be resolved'
    for how in ('--completed', '--not-executed'):
        refused(t, once, 'resolve', 'done', how, input=ANSWER, says=(
            'key done of scope ann is completed: ' + only))
        refused(t, once, 'resolve', 'free', how, input=ANSWER, says=(
            'key free of no scope is failed_retryable: ' + only))
        refused(t, once, 'resolve', 'runs', how, input=ANSWER, says=(
            'key runs of no scope is in_progress: ' + only))
    refused(t, once, 'forget', 'runs', says=(
        'key runs of no scope is in_progress: it cannot be forgotten'))
    gate.open()
    first(conn.answer())
    eq(sorted(once.ls(), key=lambda r: r['key'])[0]['status'], 200)


def test_who_resolves_second_is_told_the_state(t):
    once = unknown(t)
    lock = Lock(t, once.database)
    conf = t.write('slow.conf', '[server]\ndatabase = %s\n'
                   'busy_timeout = 60s\n' % once.database)
    slow = t.popen([base.ONCECTL, '-f', conf, 'resolve', 'k',
                    '--not-executed'], stdin=-1, stdout=-1, stderr=-1)
    # It has looked, and waits for the lock.
    wait_until(lambda: once.sql(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
        "AND wait_event_type = 'Lock'") if once.postgres else any(
            '-wal' in x for x in proc.open_files(slow.pid)), 'it waits')
    lock.say("UPDATE once_key SET state = 'completed', status = 204, "
             "expires_at = 1099511627776, reconcile_after = NULL;\n"
             "COMMIT;\nBEGIN;\n")
    lock.release()
    out, err = slow.communicate(timeout=base.WAIT)
    eq((slow.returncode, out), (1, b''), err)
    assert b'is completed: only unknown' in err, err
    eq(once.row('k')['status'], 204)


def test_a_locked_database(t):
    once = unknown(t)
    conf = t.write('short.conf', '[server]\ndatabase = %s\n'
                   'busy_timeout = 100ms\n' % once.database)
    lock = Lock(t, once.database)
    for verb in (['forget', 'k'], ['resolve', 'k', '--not-executed']):
        run = t.run([base.ONCECTL, '-f', conf] + verb)
        eq((run.returncode, run.stdout), (1, b''), run)
        assert run.stderr, verb
    lock.release()
    eq(once.state('k'), 'unknown')


# --- forget ---------------------------------------------------------------

def test_forget_makes_the_key_a_new_one(t):
    once = unknown(t)
    old = once.row('k')['downstream']
    eq(once.ctl('forget', 'k'), 'key k of no scope: unknown -> forgotten\n')
    eq(once.row('k'), None)
    # Another fingerprint, too: nothing is known of the first.
    first(once.post('k', b'other', query='1'), 200, b'1\n')
    runs = [line.split() for line in t.ledger()]
    eq([r[0] for r in runs], ['1', '1'])
    assert runs[1][1] != old, runs
    eq(once.row('k')['downstream'], runs[1][1])


def test_forget_each_state_that_may_be(t):
    once = t.once(handler=t.sh('case $QUERY_STRING in done) status 200; '
                               'head -c 300000 /dev/zero;; free) status 503;; '
                               '*) kill -9 $$;; esac'))
    for key in ('done', 'free', 'lost'):
        once.post(key, query=key)
        eq(json.loads(once.ctl('forget', key, '--json')),
           {'scope': '', 'path': '/pay', 'key': key, 'to': None,
            'from': {'done': 'completed', 'free': 'failed_retryable',
                     'lost': 'unknown'}[key]})
    eq(once.ls(), [])
    once.ctl('doctor')


def test_forget_of_a_dead_owners_key_names_the_sweep(t):
    gate = t.gate()
    once = t.once(handler=t.sh('gate gate; status 200'))
    conn = once.begin('k')
    gate.wait()
    once.kill()
    conn.close()
    refused(t, once, 'forget', 'k', says=['in_progress', 'is gone',
                                          'oncectl sweep'])
    once.ctl('sweep')
    once.ctl('forget', 'k')
    eq(once.ls(), [])


# --- passes ---------------------------------------------------------------

def sweep(t, once, n):
    run = ctl(t, once, 'sweep', '--json')
    eq((run.returncode, json.loads(run.stdout)),
       (0, {'pass': 'sweep', 'keys': n}), run)
    return run.stderr.decode()


def test_sweep_never_touches_a_living_attempt(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 200; echo done'),
                  defaults={'timeout': '60s'})
    conns = [once.begin('k%d' % i) for i in range(3)]
    for _ in conns:
        gate.wait()
    for _ in range(3):
        eq(sweep(t, once, 0), '')
    eq(once.ctl('sweep'), '0 keys settled\n')
    eq({r['state'] for r in once.ls()}, {'in_progress'})
    gate.open(3)
    for conn in conns:
        first(conn.answer(), 200, b'done\n')


def test_sweep_after_kill_9_settles_what_was_left(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 200'))
    conn = once.begin('k', user='ann')
    pid = gate.wait()
    once.kill()
    conn.close()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    log = sweep(t, once, 1)
    for part in ('event=swept', 'scope=49915e0d', 'key=k', 'to=unknown'):
        assert part in log, log
    eq(once.state('k'), 'unknown')
    sweep(t, once, 0)
    once.ctl('resolve', 'k', '--not-executed')
    once.start()
    gate.open()
    first(once.post('k', user='ann'))
    eq(t.ledger(), ['1 ', '2 '])


def test_sweep_after_kill_9_releases_what_may_be_resumed(t):
    gate = t.gate()
    once = t.once(handler=t.sh('ledger; gate gate; status 200'),
                  defaults={'on_crash': 'resume'})
    conn = once.begin('k')
    pid = gate.wait()
    once.kill()
    conn.close()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    sweep(t, once, 1)
    eq(once.state('k'), 'failed_retryable')
    once.ctl('doctor')


def test_sweep_for_one_that_died_while_another_lives(t):
    gate = t.gate()
    handler = t.sh('ledger; gate gate; status 200')
    dead = t.once(handler=handler)
    alive = t.once(handler=handler, database=dead.database, name='other',
                   server={'sweep_interval': '1h'})
    conns = [dead.begin('dead'), alive.begin('alive')]
    pids = [gate.wait(), gate.wait()]
    dead.kill()
    conns[0].close()
    wait_until(lambda: not all(map(proc.alive, pids)), 'a handler is gone')
    sweep(t, dead, 1)
    eq({r['key']: r['state'] for r in dead.ls()},
       {'dead': 'unknown', 'alive': 'in_progress'})
    gate.open()
    first(conns[1].answer())


def test_reap_deletes_what_is_past_its_retention_alone(t):
    gate = t.gate()
    once = t.once(
        handler=t.sh('case $QUERY_STRING in 200|503) status $QUERY_STRING;; '
                     'kill) kill -9 $$;; *) gate gate; status 200;; esac'),
        server={'reap_interval': '1h'}, defaults={'retention': '50ms'},
        routes={'/keep': {'retention': '1h'},
                '/gone': {'on_expired': 'gone'}})
    for key, query, path in (
            ('done', '200', '/pay'), ('free', '503', '/pay'),
            ('lost', 'kill', '/pay'), ('keep', '200', '/keep'),
            ('mark', '200', '/gone')):
        once.post(key, query=query, path=path)
    conn = once.begin('runs')
    gate.wait()
    rows = {r['key']: r for r in once.ls()}

    def past():
        run = ctl(t, once, 'reap')
        eq(run.returncode, 0, run)
        return once.row('done') is None and once.row('free') is None and \
            once.state('mark') == 'expired'
    wait_until(past, 'they are past their retention')
    eq({r['key']: r['state'] for r in once.ls()},
       {'lost': 'unknown', 'keep': 'completed', 'mark': 'expired',
        'runs': 'in_progress'})
    for key in ('lost', 'keep', 'runs'):
        eq(once.row(key), rows[key])
    eq(json.loads(once.ctl('reap', '--json')), {'pass': 'reap', 'keys': 0})
    gate.open()
    first(conn.answer())


def due(t, verdict, keys=('k',), before='', **options):
    """Unknown keys that are due, and that only oncectl reconciles."""
    gate = t.gate()
    options['reconcile_after'] = '1ms'
    options['reconcile'] = t.sh(
        before + 'echo "$ONCE_DOWNSTREAM_KEY" >> "$D/tries"; '
        'printf "Status: 201\\r\\n'
        'Idempotency-Outcome: %s\\r\\n\\r\\nfound"' % verdict)
    once = t.once(handler=t.sh('ledger; [ $ONCE_ATTEMPT != 1 ] || gate gate; '
                               'status 200'), defaults=options)
    conns = [once.begin(key, b'body') for key in keys]
    pids = [gate.wait() for _ in keys]
    once.kill()
    for conn in conns:
        conn.close()
    wait_until(lambda: not any(map(proc.alive, pids)), 'handlers are gone')
    sweep(t, once, len(keys))
    eq({once.state(key) for key in keys}, {'unknown'})
    return once


def reconcile(t, once, n):
    run = ctl(t, once, 'reconcile', '--json', conf=True)
    eq((run.returncode, json.loads(run.stdout)),
       (0, {'pass': 'reconcile', 'keys': n}), run)


def test_reconcile_tries_what_is_due(t):
    once = due(t, 'completed')
    reconcile(t, once, 1)
    row = once.row('k')
    eq((row['state'], row['status']), ('completed', 201))
    eq(t.read('tries').decode().split(), [row['downstream']])
    reconcile(t, once, 0)
    once.start()
    answer = once.post('k', b'body')
    eq((answer.status, answer.body, answer.replayed), (201, b'found', 'true'))


def test_reconcile_releases_what_was_not_executed(t):
    once = due(t, 'not-executed')
    reconcile(t, once, 1)
    once.start()
    first(once.post('k', b'body'), 200)
    eq(t.ledger(), ['1 ', '2 '])


def test_reconcile_waits_for_the_next_time(t):
    once = due(t, 'unknown')
    once.write_conf(once.conf_text().replace('after = 1ms', 'after = 1h'))
    reconcile(t, once, 1)
    assert once.row('k')['reconcile_after'], once.row('k')
    run = ctl(t, once, 'doctor', '--json')
    found = {f['name']: f for f in map(json.loads, run.stdout.splitlines())}
    eq((run.returncode, found['unknown']['ok'], found['requests']['ok']),
       (0, True, True), run)
    reconcile(t, once, 0)


def test_reconcile_ends_after_the_try_that_is_under_way(t):
    hold = t.gate('hold')
    once = due(t, 'completed', keys=('k', 'm'), before='gate hold; ')
    tries = t.popen([base.ONCECTL, '-f', once.file, 'reconcile'], stdout=-1,
                    stderr=-1)
    hold.wait()
    tries.terminate()
    wait_until(lambda: not pending(tries.pid), 'the signal has come')
    hold.open(2)
    out, err = tries.communicate(timeout=base.WAIT)
    eq((tries.returncode, out), (1, b'1 key tried\n'), err)
    assert b'interrupted' in err, err
    eq(sorted(r['state'] for r in once.ls()), ['completed', 'unknown'])
    reconcile(t, once, 1)
    eq({r['state'] for r in once.ls()}, {'completed'})


def pending(pid):
    """Whether signals wait to be taken."""
    with open('/proc/%d/status' % pid) as f:
        lines = dict(line.split(':', 1) for line in f)
    return int(lines['SigPnd'], 16) | int(lines['ShdPnd'], 16)


def test_reconcile_needs_a_configuration(t):
    once = due(t, 'completed')
    run = ctl(t, once, 'reconcile')
    eq((run.returncode, run.stdout), (2, b''), run)
    assert b'-f' in run.stderr, run
    eq(once.state('k'), 'unknown')


def dead_letter(t):
    once = due(t, 'unknown', reconcile_attempts=1)
    reconcile(t, once, 1)
    eq(once.state('k'), 'dead_letter')
    return once


def test_a_dead_letter_is_resolved_and_its_request_erased(t):
    once = dead_letter(t)
    run = ctl(t, once, 'doctor')
    eq(run.returncode, 1, run)
    assert b'dead_letter' in run.stdout.splitlines()[-1], run
    eq(once.ctl('resolve', 'k', '--completed', input=ANSWER),
       'key k of no scope: dead_letter -> completed\n')
    once.ctl('doctor')
    once.start()
    is_the_answer(once.post('k', b'body'))


def test_a_dead_letter_that_was_not_executed_runs_again(t):
    once = dead_letter(t)
    once.ctl('resolve', 'k', '--not-executed')
    once.start()
    first(once.post('k', b'body'), 200)
    eq(t.ledger(), ['1 ', '2 '])


def test_a_dead_letter_is_forgotten(t):
    once = dead_letter(t)
    once.ctl('forget', '--downstream', once.row('k')['downstream'])
    eq(once.ls(), [])
    once.ctl('doctor')
