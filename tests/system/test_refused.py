"""An answer that was not accepted is kept for oncectl show --output."""
import base64
import json

from answer import eq, first, problem

# What a program does, and: attempt, exit, signal, bytes, output, state.
REFUSED = {
    'no_head': ('echo no head at all; exit 0', 0, None,
                b'no head at all\n'),
    'nothing': ('exit 0', 0, None, b''),
    'exit_3': ('status 200; echo done; exit 3', 3, None,
               b'Status: 200\r\nContent-Type: text/plain\r\n\r\ndone\n'),
    'signal': ('status 200; echo part; kill -9 $$', None, 9,
               b'Status: 200\r\nContent-Type: text/plain\r\n\r\npart\n'),
    'timeout': ('echo started; gate gate', None, None, b'started\n'),
    'body_too_short': ("printf 'Content-Type: a/b\\nContent-Length: 9\\n\\nb'",
                       0, None, b'Content-Type: a/b\nContent-Length: 9\n\nb'),
    'binary': ("printf 'a\\000\\377\\033[1m\\n'", 0, None,
               b'a\0\xff\x1b[1m\n'),
}


def shown(once, key):
    row = json.loads(once.ctl('show', key, '--output', '--json'))
    row['output'] = base64.b64decode(row.pop('output_base64'))
    return row


def test_what_was_refused_is_shown_with_exit_and_signal(t):
    t.gate()
    cases = '\n'.join('%s) %s;;' % (name, body)
                      for name, (body, *_rest) in REFUSED.items())
    once = t.once(handler=t.sh('ledger; case $QUERY_STRING in\n%s\nesac' %
                               cases), defaults={'timeout': '2s'})
    for name, (_body, exit, signal, output) in REFUSED.items():
        answer = once.post(name, query=name)
        assert answer.code in ('handler-failed', 'handler-timeout'), answer
        eq(shown(once, name), {
            'scope': '', 'path': '/pay', 'key': name, 'attempt': 1,
            'exit': exit, 'signal': signal, 'bytes': len(output),
            'output': output}, name)
    eq(once.ctl('show', 'exit_3', '--output'),
       'attempt: 1\nexit: 3\nbytes: 46\n\n'
       'Status: 200\r\nContent-Type: text/plain\r\n\r\ndone\n')
    eq(once.ctl('show', 'signal', '--output').splitlines()[1], 'signal: 9')
    eq(once.ctl('show', 'timeout', '--output').splitlines()[1],
       'exit: none, oncewrap ended the program')
    # It is still there after a restart.
    once.stop()
    once.start()
    eq(shown(once, 'exit_3')['exit'], 3)


def test_the_first_4k_are_kept(t):
    once = t.once(handler=t.sh('status 200; head -c 1000000 /dev/zero | '
                               'tr "\\0" x; exit 1'))
    problem(once.post('k'), 'handler-failed', unknown=True)
    row = shown(once, 'k')
    eq((row['bytes'], len(row['output'])), (1000041, 4096))
    assert row['output'].endswith(b'xxx')
    assert ', of which the first 4096 were kept\n' in \
        once.ctl('show', 'k', '--output')


def test_output_above_the_limit_is_kept_too(t):
    once = t.once(handler=t.sh('status 200; exec head -c 300000 /dev/zero'),
                  defaults={'max_output': '64K', 'max_response': '1K'})
    problem(once.post('k'), 'handler-failed', unknown=True)
    row = shown(once, 'k')
    eq((row['exit'], row['signal'], len(row['output'])), (None, None, 4096))


def test_a_later_attempt_replaces_it_or_deletes_it(t):
    once = t.once(handler=t.sh(
        'ledger; case $ONCE_ATTEMPT in\n1) echo one; exit 75;;\n'
        '2) echo two; exit 75;;\nesac; status 201'))
    for attempt, output in ((1, b'one\n'), (2, b'two\n')):
        eq(once.post('k').status, 503)
        row = shown(once, 'k')
        eq((row['attempt'], row['exit'], row['output']),
           (attempt, 75, output))
    first(once.post('k'), 201)
    once.ctl('show', 'k', '--output', status=1)


def test_no_answer_was_refused(t):
    once = t.once(handler=t.sh('status 201'))
    first(once.post('k'), 201)
    once.ctl('show', 'k', '--output', status=1)
    once.ctl('show', 'other', '--output', status=1)
    once.ctl('show', 'k', '--output', '--response', status=2)
    once.ctl('ls', '--output', status=2)


def test_it_goes_with_its_key(t):
    once = t.once(handler=t.sh('echo none'))

    def kept():
        return once.sql('SELECT count(*) FROM once_refused')

    problem(once.post('k'), 'handler-failed', unknown=True)
    eq(kept(), [(1,)])
    once.ctl('forget', 'k')
    eq(kept(), [(0,)])
