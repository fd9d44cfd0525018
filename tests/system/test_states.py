"""What happened to the handler decides the answer and the key's state."""
import os
import signal

import base
import proc
from answer import eq, expires_in, first, problem, replay
from clocks import HOUR, Clocks
from once import Background

RETRYABLE, UNKNOWN, COMPLETED = 'failed_retryable', 'unknown', 'completed'


def once_with(t, body, server=None, **defaults):
    return t.once(handler=t.sh(body), server=server, defaults=defaults)


def retry_runs(t, once, key, runs=2, **kw):
    """The key is free: its next request runs, as the next attempt."""
    before = once.row(key)
    eq(before['state'], RETRYABLE)
    answer = once.post(key, **kw)
    eq(answer.replayed, None, answer)
    eq(len(t.ledger()), runs)
    after = once.row(key)
    eq(after['attempt'], before['attempt'] + 1)
    eq(after['downstream'], before['downstream'])
    return answer


def retry_is_unknown(t, once, key, runs=1, **kw):
    """The key is of unknown outcome: no request runs it again."""
    eq(once.state(key), UNKNOWN)
    for _ in range(2):
        problem(once.post(key, **kw), 'outcome-unknown')
    eq(len(t.ledger()), runs)
    eq(once.state(key), UNKNOWN)


# --- not started ---

def test_not_started_after_a_lost_attempt_makes_no_new_key_safe(t):
    handler = t.sh('ledger "$ONCE_ATTEMPT"; kill -9 $$')
    once = t.once(handler=handler, defaults={'on_crash': 'resume'})
    problem(once.post('k'), 'handler-failed')
    os.chmod(handler, 0o644)
    for _ in range(2):
        problem(once.post('k'), 'handler-not-started', acted=True)
    eq(t.ledger(), ['1 1'])
    problem(once.post('new'), 'handler-not-started')
    page = once.post('k', headers={'Accept': 'text/html'})
    assert b'Do not send it as a new request' in page.body, str(page)


def test_missing_handler_is_released(t):
    once = t.once(handler=t.path('missing'))
    for _ in range(3):
        problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)
    t.sh('ledger; status 201', name='missing')
    first(once.post('k'), 201)
    eq(t.ledger(), ['4 '])


def test_handler_without_x_bit_is_released(t):
    once = t.once(handler=t.write('plain', '#!/bin/sh\n', 0o644))
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)


def test_handler_that_is_a_folder_is_released(t):
    once = t.once(handler=t.dir)
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)


def test_handler_with_a_missing_interpreter_is_released(t):
    once = t.once(handler=t.write('odd', '#!/no/such/program\n', 0o755))
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)


def test_handler_that_is_no_program_is_released(t):
    once = t.once(handler=t.write('odd', '\x01\x02 no program', 0o755))
    problem(once.post('k'), 'handler-not-started')
    eq(once.state('k'), RETRYABLE)


# --- lost ---

def test_timeout_is_unknown(t):
    t.gate()
    once = once_with(t, 'ledger; status 200; gate gate', timeout='1s')
    problem(once.post('k'), 'handler-timeout', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_timeout_after_which_it_ends_cleanly_is_unknown(t):
    t.gate()
    once = once_with(t, 'trap "status 200; exit 0" TERM; ledger; gate gate',
                     timeout='1s')
    problem(once.post('k'), 'handler-timeout', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_killed_by_a_signal_is_unknown(t):
    once = once_with(t, 'ledger; kill -$QUERY_STRING $$')
    for n, name in enumerate(('KILL', 'TERM', 'SEGV', 'HUP', 'PIPE')):
        answer = once.post(name, query=name)
        problem(answer, 'handler-failed', unknown=True)
        eq(once.state(name), UNKNOWN)
    eq(len(t.ledger()), n + 1)
    retry_is_unknown(t, once, 'KILL', runs=n + 1, query='KILL')


def test_killed_after_a_whole_answer_is_unknown(t):
    once = once_with(t, 'ledger; status 201; echo done; kill -9 $$')
    problem(once.post('k'), 'handler-failed', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_killed_by_another_process_is_unknown(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 200')
    running = Background(lambda: once.post('k'))
    proc.kill(gate.wait(), signal.SIGKILL)
    problem(running.result(), 'handler-failed', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_too_much_output_is_unknown(t):
    once = t.once(handler=t.py(
        'ledger()\nout(b"Content-Type: text/plain\\r\\n\\r\\n")\n'
        'while True: out(b"x" * 65536)'), defaults={'max_output': '1M'})
    problem(once.post('k'), 'handler-failed', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_drain_deadline_is_unknown(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 200',
                     server={'drain_timeout': '200ms'})
    conn = once.begin('k')
    gate.wait()
    once.stop()
    problem(conn.answer(), 'handler-failed', unknown=True)
    once.start()
    retry_is_unknown(t, once, 'k')


# --- no response, or a broken one ---

BROKEN = {
    'nothing': '',
    'no_head': 'no head at all',
    'head_without_end': 'Content-Type: text/plain\r\n',
    'only_an_empty_line': '\r\n\r\nbody',
    'no_field_of_the_three': 'X-Other: a\r\n\r\nbody',
    'two_status': 'Status: 200\r\nStatus: 201\r\n\r\n',
    'bad_status': 'Status: abc\r\n\r\n',
    'status_99': 'Status: 99\r\n\r\n',
    'status_600': 'Status: 600\r\n\r\n',
    'status_1000': 'Status: 1000\r\n\r\n',
    'two_content_types': 'Content-Type: a/b\r\nContent-Type: a/c\r\n\r\n',
    'two_locations': 'Location: /a\r\nLocation: /b\r\n\r\n',
    'two_lengths': 'Status: 200\r\nContent-Length: 1\r\n'
                   'Content-Length: 2\r\n\r\nx',
    'no_colon': 'Content-Type: text/plain\r\nwrong line\r\n\r\nbody',
    'empty_name': 'Content-Type: text/plain\r\n: a\r\n\r\nbody',
    'nul_in_head': 'Content-Type: text/plain\r\nX-A: a\0b\r\n\r\nbody',
    'bare_cr': 'Content-Type: text/plain\r\nX-A: a\rb\r\n\r\nbody',
    'bad_length': 'Content-Type: text/plain\r\nContent-Length: x\r\n\r\nbody',
    'negative_length':
        'Content-Type: text/plain\r\nContent-Length: -1\r\n\r\nbody',
    'body_too_short':
        'Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nbody',
    'head_too_long':
        'Content-Type: text/plain\r\n' + ('X-A: ' + 'a' * 1000 + '\r\n') * 70
        + '\r\nbody',
    'too_many_fields': 'Content-Type: text/plain\r\n' + 'A: b\r\n' * 300 +
                       '\r\nbody',
}


def broken(t, name, status=0):
    t.write('output', BROKEN[name])
    once = once_with(t, 'ledger; cat "$D/output"; exit %d' % status)
    return once, once.post('k')


def make_broken(name):
    def unknown(t):
        once, answer = broken(t, name)
        problem(answer, 'handler-failed', unknown=True)
        retry_is_unknown(t, once, 'k')
    unknown.__name__ = 'test_broken_%s_is_unknown' % name
    return unknown


for _name in BROKEN:
    globals()['test_broken_%s_is_unknown' % _name] = make_broken(_name)


# Outputs that are mended, the response that they are, and what the log says.
MENDED = {
    'status_line': ('HTTP/1.1 201 Made\r\nContent-Type: a/b\r\n\r\nbody',
                    201, 'Made', b'body', 'status line'),
    'status_line_and_status':
        ('HTTP/1.0 202 Accepted\nStatus: 202 Accepted\n'
         'Content-Type: a/b\n\nbody', 202, 'Accepted', b'body',
         'status line'),
    'status_before_a_status_line':
        ('HTTP/1.0 200 OK\nStatus: 404 No\nContent-Type: a/b\n\nbody',
         404, 'No', b'body', 'status line'),
    'two_equal_status': ('Status: 201\nContent-Type: a/b\nStatus: 201\n\n',
                         201, 'Created', b'', 'given twice'),
    'two_equal_types': ('Content-Type: a/b\nContent-type: a/b\n\nbody', 200,
                        'OK', b'body', 'given twice'),
    'two_equal_lengths': ('Content-Length: 4\nContent-Type: a/b\n'
                          'Content-Length: 4\n\nbody', 200, 'OK', b'body',
                          'given twice'),
    'blank_before_colon': ('Content-Type : a/b\n\nbody', 200, 'OK', b'body',
                           'blank before'),
    'folded_line': ('Content-Type:\r\n a/b\r\n\r\nbody', 200, 'OK',
                    b'body', 'folded'),
    'empty_line_in_front': ('\nContent-Type: a/b\n\nbody', 200, 'OK',
                            b'body', 'empty line'),
    'status_and_reason_run_together':
        ('Status: 201Made\nContent-Type: a/b\n\nbody', 201, 'Made',
         b'body', 'no space'),
    'body_too_long': ('Content-Type: a/b\nContent-Length: 3\n\nbody', 200,
                      'OK', b'bod', 'longer than'),
}


def make_mended(name):
    def completed(t):
        output, status, reason, body, says = MENDED[name]
        t.write('output', output)
        once = once_with(t, 'ledger; cat "$D/output"')
        answer = once.post('k')
        first(answer, status, body)
        eq((answer.reason, answer.all('Content-Type')), (reason, ['a/b']))
        replay(once.post('k'), answer)
        eq((once.state('k'), len(t.ledger())), (COMPLETED, 1))
        lines = once.log_lines('mended=')
        eq(len(lines), 1, lines)
        assert says in lines[0] and 'event=run' in lines[0], lines
    completed.__name__ = 'test_mended_%s_is_completed' % name
    return completed


for _name in MENDED:
    globals()['test_mended_%s_is_completed' % _name] = make_mended(_name)


def test_no_response_with_exit_75_is_released(t):
    once, answer = broken(t, 'nothing', 75)
    problem(answer, 'handler-failed', status=503)
    assert int(answer.get('Retry-After')) > 0, answer
    retry_runs(t, once, 'k')


def test_broken_response_with_exit_75_is_released(t):
    once, answer = broken(t, 'body_too_short', 75)
    problem(answer, 'handler-failed', status=503)
    retry_runs(t, once, 'k')


# --- exit status ---

def test_exit_status_is_checked(t):
    once = once_with(t, 'ledger; status 201; echo done; exit $QUERY_STRING')
    for status in (1, 2, 74, 76, 255):
        key = 'k%d' % status
        problem(once.post(key, query=str(status)), 'handler-failed',
                unknown=True)
        eq(once.state(key), UNKNOWN)
    eq(len(t.ledger()), 5)


def test_exit_status_comes_before_release(t):
    once = once_with(t, 'ledger; status 503; exit 1')
    problem(once.post('k'), 'handler-failed', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_exit_status_ignored(t):
    once = once_with(t, 'ledger; status 201; echo done; exit 3',
                     exit_status='ignore')
    answer = once.post('k')
    first(answer, 201, b'done\n')
    replay(once.post('k'), answer)
    eq((once.state('k'), len(t.ledger())), (COMPLETED, 1))


def test_exit_75_releases_with_its_response(t):
    once = once_with(t, 'ledger; status 200; echo later; exit 75')
    first(once.post('k'), 200, b'later\n')
    first(retry_runs(t, once, 'k'), 200, b'later\n')


def test_exit_75_with_exit_status_ignore(t):
    once = once_with(t, 'ledger; status 201; echo done; exit 75',
                     exit_status='ignore')
    first(once.post('k'), 201, b'done\n')
    # What exit 75 says holds whether or not others are checked.
    eq(once.state('k'), RETRYABLE)


# --- Idempotency-Outcome ---

def outcome(value, status=200):
    return ('ledger; printf "Status: %d\\r\\nIdempotency-Outcome: %s\\r\\n'
            'Content-Type: text/plain\\r\\n\\r\\ntext"' % (status, value))


def test_outcome_not_executed_releases(t):
    once = once_with(t, outcome('not-executed'))
    answer = once.post('k')
    first(answer, 200, b'text')
    eq(answer.all('Idempotency-Outcome'), [])
    retry_runs(t, once, 'k')


def test_outcome_unknown_is_unknown(t):
    once = once_with(t, outcome('unknown'))
    answer = once.post('k')
    first(answer, 200, b'text')
    eq(answer.all('Idempotency-Outcome'), [])
    retry_is_unknown(t, once, 'k')


def test_an_outcome_that_there_is_not_is_named(t):
    once = once_with(t, outcome('complete'))
    first(once.post('k'), 200, b'text')
    why = ('Idempotency-Outcome is none of completed, '
           'not-executed, status, unknown')
    eq(once.row('k')['last_error'], why + ' (status 200)')
    line, = once.wait_log('event=run ')
    assert why in line, line
    retry_is_unknown(t, once, 'k')


def test_outcome_completed_keeps_any_status(t):
    for n, status in enumerate((200, 404, 429, 500, 502, 503, 504)):
        once = once_with(t, outcome('completed', status))
        key = 'k%d' % status
        answer = once.post(key)
        first(answer, status, b'text')
        eq(answer.all('Idempotency-Outcome'), [])
        replay(once.post(key), answer)
        eq(once.state(key), COMPLETED)
        once.stop()
    eq(len(t.ledger()), n + 1)


def test_outcome_comes_after_exit_status(t):
    once = once_with(t, outcome('completed') + '; exit 1')
    problem(once.post('k'), 'handler-failed', unknown=True)
    retry_is_unknown(t, once, 'k')


def test_outcome_comes_after_exit_75(t):
    once = once_with(t, outcome('completed') + '; exit 75')
    first(once.post('k'), 200, b'text')
    retry_runs(t, once, 'k')


def test_outcome_comes_before_ambiguous_and_release(t):
    once = once_with(t, outcome('not-executed', 502))
    first(once.post('k'), 502, b'text')
    retry_runs(t, once, 'k')


# --- the status of the response ---

STATUS = 'ledger; status $QUERY_STRING; echo text'


def test_statuses_that_complete(t):
    once = once_with(t, STATUS)
    for n, status in enumerate((200, 201, 204, 301, 400, 402, 403, 404, 409,
                                410, 418, 422, 428, 499)):
        key = 'k%d' % status
        answer = once.post(key, query=str(status))
        first(answer, status)
        replay(once.post(key, query=str(status)), answer)
        eq((once.state(key), once.row(key)['status']), (COMPLETED, status))
    eq(len(t.ledger()), n + 1)


def test_statuses_that_release(t):
    once = once_with(t, STATUS)
    runs = 0
    for status in (401, 407, 408, 425, 429, 500, 501, 503, 505, 599):
        key = 'k%d' % status
        first(once.post(key, query=str(status)), status, b'text\n')
        runs += 2
        first(retry_runs(t, once, key, runs, query=str(status)), status)


def test_statuses_that_are_ambiguous(t):
    once = once_with(t, STATUS)
    for runs, status in enumerate((502, 504), 1):
        key = 'k%d' % status
        first(once.post(key, query=str(status)), status, b'text\n')
        retry_is_unknown(t, once, key, runs, query=str(status))


def test_release_and_ambiguous_options(t):
    once = once_with(t, STATUS, release='404 5xx', ambiguous='500 3xx')
    for status, state in ((404, RETRYABLE), (429, COMPLETED), (500, UNKNOWN),
                          (502, RETRYABLE), (301, UNKNOWN), (399, UNKNOWN),
                          (503, RETRYABLE), (200, COMPLETED)):
        key = 'k%d' % status
        first(once.post(key, query=str(status)), status)
        eq(once.state(key), state, status)


def test_ambiguous_is_looked_at_before_release(t):
    once = once_with(t, STATUS, release='5xx', ambiguous='503')
    once.post('k', query='503')
    eq(once.state('k'), UNKNOWN)


def test_client_redirect_completes_as_302(t):
    once = once_with(t, "ledger; printf 'Location: http://x.example/a\\r\\n"
                     "\\r\\n'")
    answer = once.post('k')
    first(answer, 302)
    eq(answer.get('Location'), 'http://x.example/a', answer)
    replay(once.post('k'), answer)


# --- states ---

def test_released_key_completes_at_its_second_attempt(t):
    once = once_with(t, 'ledger; [ $ONCE_ATTEMPT = 2 ] && status 201 || '
                     'status 503; echo "$ONCE_DOWNSTREAM_KEY"')
    failed = once.post('k')
    first(failed, 503)
    eq(once.state('k'), RETRYABLE)
    answer = once.post('k')
    first(answer, 201, failed.body)
    replay(once.post('k'), answer)
    eq(t.ledger(), ['1 ', '2 '])
    row = once.row('k')
    eq((row['state'], row['attempt'], row['downstream'] + '\n'),
       (COMPLETED, 2, answer.body.decode()))


def test_every_attempt_has_a_token_of_its_own(t):
    once = once_with(t, 'status 503; echo "$ONCE_TOKEN"')
    tokens = [once.post('k').body for _ in range(3)]
    eq(len(set(tokens)), 3)
    assert all(len(token) > 16 for token in tokens), tokens


def test_every_key_has_a_downstream_key_of_its_own(t):
    once = once_with(t, 'status 503; echo "$ONCE_DOWNSTREAM_KEY"')
    eq(len({once.post('k%d' % i).body for i in range(3)}), 3)


def test_in_progress_is_seen_while_the_handler_runs(t):
    gate = t.gate()
    once = once_with(t, 'ledger; gate gate; status 200')
    conn = once.begin('k')
    gate.wait()
    row = once.row('k')
    eq((row['state'], row['attempt'], row['status']), ('in_progress', 1, None))
    problem(once.post('k'), 'key-in-progress')
    gate.open()
    first(conn.answer(), 200)
    eq(len(t.ledger()), 1)


def test_completed_key_is_new_past_its_retention(t):
    once = once_with(t, 'ledger; status 201; echo "$ONCE_ATTEMPT '
                     '$ONCE_DOWNSTREAM_KEY"', retention='300ms',
                     server={'reap_interval': '1h'})
    answer = once.post('k')
    first(answer, 201)
    expires_in(answer, 0)

    def again():
        other = once.post('k')
        return None if other.replayed else other
    other = base.wait_until(again, 'the key counts as deleted')
    first(other, 201)
    assert other.body.startswith(b'1 '), other.body
    assert other.body != answer.body, 'the same downstream key'
    eq(t.ledger(), ['1 ', '1 '])


def test_released_key_is_new_past_its_retention(t):
    clocks = Clocks(t)
    once = once_with(t, 'ledger; status 503', retention='1h',
                     server={'reap_interval': '1h'})
    once.post('k')
    once.post('k')
    eq(t.ledger(), ['1 ', '2 '])
    clocks.passes(HOUR - 60)
    once.post('k')
    eq(t.ledger()[-1], '3 ')
    clocks.passes(HOUR + 1)
    once.post('k')
    eq(t.ledger()[-1], '1 ')


def test_another_fingerprint_may_use_a_key_past_its_retention(t):
    clocks = Clocks(t)
    once = once_with(t, 'ledger; status 201', retention='1h',
                     server={'reap_interval': '1h'})
    first(once.post('k', 'one'), 201)
    clocks.passes(HOUR - 60)
    problem(once.post('k', 'two'), 'key-reused')
    clocks.passes(61)
    first(once.post('k', 'two'), 201)
    eq(t.ledger(), ['1 ', '1 '])


def test_timeout_ends_what_ignores_sigterm_and_holds_no_pipe(t):
    gate = t.gate()
    t.write('left', 'trap "" TERM; echo $$ > "%s/gate.here"\n'
            'read _ < "%s/gate.open"' % (t.dir, t.dir))
    once = once_with(t, 'sh "$D/left" >/dev/null 2>&1 & wait',
                     timeout='1s', kill_after='1h')
    answer = Background(lambda: once.post('k'))
    left = gate.wait()
    problem(answer.result(), 'handler-timeout', unknown=True)
    base.wait_until(lambda: not proc.alive(left), 'it is gone')


def test_unknown_key_never_expires(t):
    once = once_with(t, 'ledger; kill -9 $$', retention='100ms',
                     server={'reap_interval': '100ms',
                             'sweep_interval': '100ms'})
    once.post('k')
    eq(once.row('k')['expires_at'], None)
    # A completed key of the same age is reaped: so the reaper was here.
    once.defaults['handler'] = t.sh('status 200')
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    once.post('other')
    base.wait_until(lambda: once.row('other') is None, 'other is reaped')
    problem(once.post('k'), 'outcome-unknown')
    eq(len(t.ledger()), 1)


def test_reaper_deletes_completed_and_released_keys_past_retention(t):
    once = once_with(t, STATUS, retention='100ms',
                     server={'reap_interval': '100ms'})
    once.post('done', query='200')
    once.post('free', query='503')
    once.post('lost', query='502')
    base.wait_until(lambda: len(once.ls()) == 1, 'two keys are reaped')
    eq(once.state('lost'), UNKNOWN)


def test_retention_is_stored_with_the_key(t):
    once = once_with(t, STATUS, retention='1h')
    answer = once.post('k', query='200')
    expires_in(answer, 3600)
    once.defaults['retention'] = '1s'
    once.write_conf()
    once.stop()
    once.start()
    expires_in(once.post('k', query='200'), 3600)
    expires_in(once.post('k2', query='200'), 1)
