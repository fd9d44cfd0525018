"""on_attention: who is told of keys that are unknown and of refusals."""
import http.server
import json
import os
import threading

import base
from answer import eq, first, problem
from base import wait_until
from once import Background
from test_world import SERVER, check

EXAMPLES = os.path.join(base.EXAMPLES, 'attention')


def tells(t, more=''):
    """A program that writes what it is told, and a mark at its end."""
    return t.sh('cat >> "$D/told" && echo >> "$D/told"\n' + more, 'tell')


def start(t, handler, server=None, program=None, **kw):
    return t.once(handler=t.sh(handler), server=dict({
        'on_attention': program or tells(t), 'attention_interval': '1ms'},
        **(server or {})), **kw)


def runs(t):
    """What was told, as a list of objects for each run."""
    if not t.exists('told'):
        return []
    return [[json.loads(line) for line in text.splitlines()]
            for text in t.read('told').decode().split('\n\n') if text]


def told(t):
    return [line for run in runs(t) for line in run]


def wait_told(t, n):
    wait_until(lambda: len(told(t)) >= n, '%d lines are told' % n)
    eq(len(told(t)), n, told(t))
    return told(t)


def test_an_unknown_key_is_told(t):
    once = start(t, 'kill -9 $$')
    answer = problem(once.post('k', user='ann'), 'handler-failed',
                     unknown=True)
    line, = wait_told(t, 1)
    eq((line['event'], line['key'], line['path'], line['instance']),
       ('unknown', 'k', '/pay', answer['instance']))
    assert once.log_lines('scope=%s ' % line['scope'])
    assert 'signal' in line['why'] and line['ts'].endswith('Z'), line
    # What is settled needs no attention.
    problem(once.post('k', user='ann'), 'outcome-unknown')
    once.wait_log('event=attention lines=1 end=exited exit=0')
    eq(len(told(t)), 1)


def test_answers_and_released_keys_are_not_told(t):
    once = start(t, 'status $(cat)')
    first(once.post('a', '201'), 201)
    first(once.post('b', '503'), 503)
    problem(once.post(''), 'key-invalid')
    once.stop()
    eq(runs(t), [])


def test_a_crash_is_one_message_with_a_line_for_each_key(t):
    once = start(t, 'gate g')
    gate = t.gate('g')
    sent = [Background(lambda n=n: once.post('k%d' % n)) for n in range(5)]
    for _ in sent:
        gate.wait()
    once.kill()
    once.start()
    lines = wait_told(t, 5)
    eq(len(runs(t)), 1)
    eq(sorted(line['key'] for line in lines), ['k%d' % n for n in range(5)])
    eq({line['event'] for line in lines}, {'unknown'})
    for one in sent:
        try:
            one.result()
        except Exception:
            pass


def test_after_a_run_the_next_one_waits_for_the_interval(t):
    once = start(t, 'kill -9 $$', server={'attention_interval': '1d'})
    once.post('a')
    wait_told(t, 1)
    once.wait_log('event=attention')
    once.post('b')
    once.post('c')
    eq(len(runs(t)), 1)
    # A reload with a shorter one; nothing was lost meanwhile.
    once.server['attention_interval'] = '1ms'
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    wait_told(t, 3)
    eq([[line['key'] for line in run] for run in runs(t)], [['a'], ['b', 'c']])


def test_what_waits_is_told_at_the_stop(t):
    once = start(t, 'kill -9 $$', server={'attention_interval': '1d'})
    once.post('a')
    wait_told(t, 1)
    once.wait_log('event=attention')
    once.post('b')
    once.stop()
    eq([[line['key'] for line in run] for run in runs(t)], [['a'], ['b']])


def test_a_key_that_the_drain_made_unknown_is_told(t):
    once = start(t, "trap '' TERM; gate g", server={'drain_timeout': '1ms'},
                 defaults={'kill_after': '10ms'})
    gate = t.gate('g')
    sent = Background(lambda: once.post('k'))
    gate.wait()
    once.stop()
    eq(sent.result().code, 'handler-failed')
    eq([line['key'] for line in told(t)], ['k'])


def test_too_many_keys_of_a_caller_are_told_once_with_their_number(t):
    once = start(t, 'kill -9 $$', server={'attention_interval': '1d'},
                 defaults={'max_open_keys': '1'})
    once.post('a', user='ann')
    wait_told(t, 1)
    once.wait_log('event=attention')
    for n in range(3):
        problem(once.post('b%d' % n, user='ann'), 'too-many-keys')
    once.stop()
    line = told(t)[1]
    eq({name: line.get(name) for name in
        ('event', 'code', 'limit', 'route', 'requests')},
       {'event': 'refused', 'code': 'too-many-keys', 'limit': 'max_open_keys',
        'route': None, 'requests': 3})
    eq(len(told(t)), 2)
    assert line['caller'] and 'ann' not in line['caller'], line


def test_a_full_store_and_one_that_is_gone_are_told(t):
    once = start(t, 'status 201', server={'max_store': '1'})
    problem(once.post('a'), 'overloaded')
    line, = wait_told(t, 1)
    eq((line['code'], line['limit'], 'caller' in line),
       ('overloaded', 'max_store', False))
    os.rename(once.database, once.database + '.away')
    eq(once.post('b').code, 'store-unavailable')
    line = wait_told(t, 2)[1]
    eq(line['code'], 'store-unavailable')
    assert line['why'], line


def test_a_dead_letter_is_told(t):
    once = start(t, 'kill -9 $$', defaults={
        'reconcile': t.sh('exit 1'), 'reconcile_after': '1ms',
        'reconcile_attempts': '1'})
    once.post('k')
    once.wait_state('k', 'dead_letter')
    lines = wait_told(t, 2)
    eq([line['event'] for line in lines], ['unknown', 'dead_letter'])
    eq({line['key'] for line in lines}, {'k'})
    eq(lines[0]['scope'], lines[1]['scope'])


def test_what_failed_is_logged_and_told_again(t):
    program = t.sh('echo "no mail today" >&2\ncat >> "$D/all"\n'
                   '[ -e "$D/go" ] || exit 3\n'
                   'cp "$D/all" "$D/again"', 'tell')
    once = start(t, 'kill -9 $$', program=program)
    once.post('k')
    once.wait_log('level=error event=attention lines=1 end=exited exit=3')
    once.wait_log('event=handler-stderr.*no mail today')
    t.write('go')
    t.wait_file('again')
    once.wait_log('level=info event=attention lines=1')
    eq({json.loads(line)['key']
        for line in t.read('again').decode().splitlines()}, {'k'})


def test_a_program_that_is_not_there(t):
    once = start(t, 'kill -9 $$', program=t.path('none'))
    problem(once.post('k'), 'handler-failed', unknown=True)
    once.wait_log('event=attention lines=1 end=not-started')
    program = tells(t)
    os.rename(program, t.path('none'))
    wait_told(t, 1)


def test_a_hostile_program_holds_up_nothing(t):
    """It reads nothing, fills stdout and stderr, leaves processes behind,
    and does not end when it is told to."""
    program = t.sh(
        "trap '' TERM\nsleep 1000 & sleep 1000 >&- 2>&- &\n"
        'head -c 300000 /dev/zero | tr "\\0" x\n'
        'head -c 300000 /dev/zero | tr "\\0" x >&2; echo >&2\n'
        'echo > "$D/here"; while :; do sleep 1000; done', 'tell')
    once = start(t, '[ "$ONCE_KEY" = bad ] && kill -9 $$; status 201',
                 program=program, server={'drain_timeout': '100ms'})
    once.post('bad')
    t.wait_file('here')
    for n in range(20):
        first(once.post('k%d' % n), 201)
    once.hup()
    once.wait_log('event=reloaded')
    first(once.post('l'), 201)
    once.stop()
    assert once.log_lines('event=attention .*end=drained')


def test_the_environment_is_the_path_alone(t):
    program = t.write('tell', '#!/bin/sh\ncat >/dev/null\n/usr/bin/env | '
                      'grep -vE "^(_|PWD|SHLVL)=" > %s.new; mv %s.new %s\n'
                      % ((t.path('env'),) * 3), 0o755)
    once = start(t, 'kill -9 $$', program=program)
    once.post('k')
    t.wait_file('env')
    names = [line.split('=')[0] for line in
             t.read('env').decode().splitlines()]
    eq(names, ['PATH'])


def test_a_reload_without_a_program_tells_nothing_more(t):
    once = start(t, 'kill -9 $$')
    del once.server['on_attention']
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded')
    once.post('k')
    once.stop()
    eq(runs(t), [])


def test_check_looks_at_the_program(t):
    eq(check(t, SERVER + 'on_attention = %(dir)s/none root\n'),
       [(4, 'on_attention', 'D/none: there is no such program')])


# --- the programs of examples/ ------------------------------------------------

def run_example(t, name, *args, path=None, status=0):
    lines = b'{"event":"unknown","key":"k"}\n{"event":"unknown","key":"l"}\n'
    env = dict(os.environ, PATH=(path + ':' if path else '') +
               os.environ['PATH'])
    run = t.run([os.path.join(EXAMPLES, name)] + list(args), input=lines,
                env=env)
    eq(run.returncode, status, run)
    return lines.decode()


def test_the_example_that_mails(t):
    os.mkdir(t.path('bin'))
    t.write('bin/sendmail', '#!/bin/sh\necho "$@" > %s\ncat > %s\n'
            % (t.path('args'), t.path('mail')), 0o755)
    lines = run_example(t, 'mail.sh', 'ops@example.org', path=t.path('bin'))
    eq(t.read('args'), b'-oi -t\n')
    head, body = t.read('mail').decode().split('\n\n', 1)
    assert head.startswith('To: ops@example.org\nSubject: oncewrap on '), head
    assert ': 2 to look at\n' in head, head
    assert body.startswith(lines), body


def test_the_example_that_calls_a_webhook(t):
    got = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.headers['Content-Type'], self.rfile.read(
                int(self.headers['Content-Length'])).decode()))
            self.send_response(200 if self.path == '/hook' else 500)
            self.end_headers()

        def log_message(self, *args):
            pass
    server = http.server.HTTPServer(('127.0.0.1', 0), Hook)
    t.defer(server.server_close)
    t.defer(server.shutdown)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = 'http://127.0.0.1:%d/' % server.server_port
    lines = run_example(t, 'webhook.sh', url + 'hook')
    eq(got, [('application/jsonl', lines)])
    run_example(t, 'webhook.sh', url + 'broken', status=22)


def test_the_example_that_lights_a_lamp(t):
    for name in ('led/brightness', 'gpio/value'):
        t.write(name, '0\n')
        run_example(t, 'lamp.sh', os.path.dirname(t.path(name)))
        eq(t.read(name), b'1\n')
    run_example(t, 'lamp.sh', t.path('nothing'), status=1)
