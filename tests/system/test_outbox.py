"""The outbox: what handlers put there is delivered by the programs that the
configuration names, at least once, and in order for each key."""
import datetime
import json
import os
import re

import base
import proc
from answer import UUID, eq, first
from base import wait_until
from once import Lock, parallel
from test_metrics import ADMIN, metrics

# Emits each line of the request's body, "TOPIC PAYLOAD", in one transaction.
EMITTER = '''
import shared, sqlite3
db = shared.connect()
db.execute("BEGIN IMMEDIATE")
try:
    for line in sys.stdin.buffer.read().split(b"\\n"):
        topic, _, payload = line.partition(b" ")
        if topic:
            db.execute("INSERT INTO once_outbox(token, topic, payload)"
                       " VALUES (?, ?, ?)", (os.environ["ONCE_TOKEN"],
                       topic.decode(), payload))
    db.execute("COMMIT")
    out(b"Status: 201\\r\\n\\r\\n")
except sqlite3.DatabaseError as error:
    out(b"Status: 400\\r\\n\\r\\n%s" % str(error).encode())
'''

# Writes down what is delivered.
RECEIPT = 'echo "$ONCE_EFFECT_KEY $ONCE_KEY $(cat)" >> "$D/receipts"; '

FIELDS = ['id', 'key', 'scope', 'path', 'topic', 'state', 'attempts',
          'next_at', 'reference', 'last_error']


def section(name, program, **options):
    options.setdefault('backoff', '1ms')
    text = '[effect %s]\nprogram = %s\n' % (name, program)
    return text + ''.join('%s = %s\n' % o for o in options.items())


def start(t, conf, **kw):
    kw['defaults'] = dict({'share_database': 'yes'}, **kw.get('defaults', {}))
    if 'handler' not in kw:
        kw['handler'] = t.py(EMITTER)
    return t.once(conf=conf, **kw)


def start_mail(t, body='', **options):
    """Deliveries leave a receipt before they do the rest."""
    return start(t, section('mail', t.sh(RECEIPT + body, name='mail'),
                            **options))


def emit(once, *effects, key='k', **kw):
    first(once.post(key, body='\n'.join(effects), **kw), 201)


def receipts(t):
    """(effect key, key, payload) of each, in order."""
    try:
        lines = t.read('receipts').decode().splitlines()
    except FileNotFoundError:
        return []
    return [tuple(line.split(' ', 2)) for line in lines]


def payloads(t):
    return [payload for _, _, payload in receipts(t)]


def outbox(once, *args):
    return [json.loads(line) for line in
            once.ctl('outbox', 'ls', '--json', *args).splitlines()]


def effect(once, number=1):
    rows = [row for row in outbox(once) if row['id'] == number]
    return rows[0] if rows else None


def wait_effect(once, state, number=1):
    """Waits until the effect is in that state, and no try is under way."""
    def found():
        row = effect(once, number)
        return row is not None and row['state'] == state and row
    return wait_until(found, 'effect %d is %s' % (number, state))


def wait_put_off(once, number=1):
    """Waits until a try has failed, and the next one is due later.  Before the
    first one it is due, too, and while one is under way it is counted."""
    def found():
        row = effect(once, number)
        return row is not None and row['attempts'] and row['next_at'] and row
    return wait_until(found, 'effect %d is put off' % number)


def wait_empty(once):
    wait_until(lambda: not outbox(once, '--state', 'pending'),
               'nothing is pending')


def when(text):
    return datetime.datetime.strptime(
        text, '%Y-%m-%dT%H:%M:%S.%f%z').timestamp()


# --- delivery -----------------------------------------------------------------

def test_an_effect_is_delivered_once(t):
    once = start_mail(t, 'echo 4711')
    emit(once, 'mail hello')
    row = wait_effect(once, 'delivered')
    eq(list(row), FIELDS)
    eq(row, {'id': 1, 'key': 'k', 'scope': '', 'path': '/pay',
             'topic': 'mail', 'state': 'delivered', 'attempts': 1,
             'next_at': None, 'reference': '4711', 'last_error': None})
    (effect_key, key, payload), = receipts(t)
    assert re.fullmatch(UUID, effect_key), effect_key
    eq((key, payload), ('k', 'hello'))
    once.stop()
    once.start()
    emit(once, 'mail next', key='other')
    wait_effect(once, 'delivered', 2)
    eq(payloads(t), ['hello', 'next'])


def test_program_gets_its_variables_and_no_others(t):
    program = t.py('import json\n'
                   'json.dump(dict(os.environ), open(D + "/env", "w"))')
    once = start(t, section('mail', program, environment='TZ LANG'),
                 env={'PATH': '/usr/bin:/bin', 'TZ': 'UTC', 'SECRET': '1'},
                 defaults={'scope': 'REMOTE_USER'})
    emit(once, 'mail x', key='a-key', params={'REMOTE_USER': 'alice'})
    wait_effect(once, 'delivered')
    env = json.loads(t.read('env'))
    env.pop('LC_CTYPE', None)       # Python's own
    assert re.fullmatch(UUID, env.pop('ONCE_EFFECT_KEY'))
    eq(env, {'PATH': '/usr/bin:/bin', 'TZ': 'UTC', 'ONCE_TOPIC': 'mail',
             'ONCE_KEY': 'a-key', 'ONCE_SCOPE': 'alice'})


def test_payloads_arrive_as_they_are(t):
    # Programs for two keys may run at once.
    program = t.sh('cat > "$D/got.$ONCE_KEY"; '
                   'mv "$D/got.$ONCE_KEY" "$D/payload.$ONCE_KEY"')
    once = start(t, section('mail', program), handler=t.py('''
import shared
db = shared.connect()
db.execute("INSERT INTO once_outbox(token, topic, payload)"
           " VALUES (?, 'mail', ?)", (os.environ["ONCE_TOKEN"],
                                      sys.stdin.buffer.read()))
out(b"Status: 201\\r\\n\\r\\n")'''))
    every = bytes(range(256))
    cases = {'none': b'', 'bytes': every, 'row': every * 8,
             'more': every * 8 + b'x', 'file': every * 400,
             'large': every * 40000}
    for key, body in cases.items():
        first(once.post(key, body=body), 201)
    wait_empty(once)
    for key, body in cases.items():
        assert t.read('payload.' + key) == body, key
    eq(once.sql('SELECT count(payload) FROM once_effect'), [(0,)])
    eq(once.sql('SELECT count(*) FROM once_piece'), [(0,)])


def test_program_runs_as_its_section_says(t):
    base.need_root()
    os.chmod(t.dir, 0o777)
    program = t.sh('echo $(id -u) $(id -g) $(umask) $PWD "$@"')
    once = start(t, section('mail', program + ' "a b" c', user='www-data',
                            group='daemon', umask='0027', directory='/tmp'))
    emit(once, 'mail x')
    eq(wait_effect(once, 'delivered')['reference'], '33 1 0027 /tmp a b c')


def test_folder_of_the_program_is_where_it_runs(t):
    once = start(t, section('mail', t.sh('pwd')))
    emit(once, 'mail x')
    eq(wait_effect(once, 'delivered')['reference'], t.dir)


def reference(t, printed):
    once = start(t, section('mail', t.sh("printf '%s'" % printed)))
    emit(once, 'mail x')
    return wait_effect(once, 'delivered')['reference']


def test_reference_is_what_was_printed_less_one_newline(t):
    eq(reference(t, 'a b\\n\\n'), 'a b\n')


def test_reference_of_nothing_is_null(t):
    eq(reference(t, '\\n'), None)


def test_reference_of_any_bytes_is_text(t):
    eq(reference(t, '\\303\\274 \\377 \\000 \\001'),
       '\u00fc \ufffd \ufffd \u0001')


def test_reference_is_cut_at_4096_bytes(t):
    once = start(t, section('mail', t.sh(
        'read -r n; head -c "$n" /dev/zero | tr "\\0" x; echo')))
    for number, (length, kept) in enumerate(
            ((4095, 4095), (4096, 4096), (4097, 4096), (100000, 4096))):
        emit(once, 'mail %d' % length, key='k%d' % number)
        eq(wait_effect(once, 'delivered', number + 1)['reference'], 'x' * kept)


def test_effects_of_a_transaction_that_is_rolled_back_are_none(t):
    once = start_mail(t)
    answer = once.post('k', body='mail lost\nfax unknown')
    eq(answer.status, 400, answer)
    assert b'once_outbox.topic' in answer.body, str(answer)
    emit(once, 'mail after', key='other')
    wait_until(lambda: [row['state'] for row in outbox(once)] ==
               ['delivered'], 'the other one is delivered')
    eq(payloads(t), ['after'])


# --- failure ------------------------------------------------------------------

def given_up(t, why, body, tries=3, **options):
    """The last_error; each try had the same effect key."""
    once = start_mail(t, body, attempts=tries, **options)
    emit(once, 'mail hello')
    row = wait_effect(once, 'dead_letter')
    eq((row['attempts'], row['next_at'], row['reference']),
       (tries, None, None))
    assert re.search(why, row['last_error']), row
    eq([r[1:] for r in receipts(t)], [('k', 'hello')] * tries)
    eq(len({r[0] for r in receipts(t)}), 1)
    return once


def test_exit_status_is_a_failure(t):
    given_up(t, 'exited with 3', 'echo no; exit 3')


def test_signal_is_a_failure(t):
    given_up(t, 'killed by signal 9', 'kill -9 $$')


def test_timeout_is_a_failure(t):
    given_up(t, 'too long', 'exec sleep 1000', timeout='1s',
             kill_after='1ms', tries=2)


def test_timeout_ends_what_ignores_it(t):
    given_up(t, 'too long', 'trap "" TERM; sleep 1000 & wait; wait; wait',
             timeout='1s', kill_after='50ms', tries=1)


def test_too_much_output_is_a_failure(t):
    given_up(t, 'too much', 'yes', max_output='64K', tries=2)


def test_missing_program_is_a_failure(t):
    once = start(t, section('mail', '/nonexistent/program', attempts=2))
    emit(once, 'mail hello')
    row = wait_effect(once, 'dead_letter')
    assert 'started' in row['last_error'], row
    eq(row['attempts'], 2)


def test_it_is_delivered_when_it_succeeds_at_last(t):
    once = start_mail(t, 'test $(wc -l < "$D/receipts") = 3')
    emit(once, 'mail hello')
    row = wait_effect(once, 'delivered')
    eq((row['attempts'], row['last_error']), (3, None))
    eq(len({r[0] for r in receipts(t)}), 1)
    eq(len(receipts(t)), 3)


def test_next_try_is_put_off(t):
    once = start_mail(t, 'exit 1', backoff='1h')
    emit(once, 'mail hello')
    row = wait_put_off(once)
    eq((row['state'], row['attempts']), ('pending', 1))
    ahead = when(row['next_at']) - when(once.row('k')['created_at'])
    assert 3590 <= ahead <= 3700, ahead
    eq(len(receipts(t)), 1)


def test_log_names_the_try_and_not_the_payload(t):
    once = start_mail(t, 'echo trouble >&2; exit 1', attempts=2)
    emit(once, 'mail confidential')
    wait_effect(once, 'dead_letter')
    lines = once.wait_log('event=effect ', 2)
    for n, (line, state) in enumerate(zip(lines, ('pending', 'dead_letter'))):
        for word in ('topic=mail', 'key=k', 'path=/pay', 'try=%d' % (n + 1),
                     'effect_key=' + receipts(t)[0][0], 'state=' + state,
                     'exit=1'):
            assert ' %s ' % word in line + ' ', (word, line)
    eq(len(once.log_lines('event=handler-stderr .*trouble')), 2)
    assert 'confidential' not in once.log()


# --- order --------------------------------------------------------------------

def test_effects_of_a_key_are_delivered_in_order(t):
    """One that fails holds back those behind it, of all topics."""
    fails_twice = 'test $(grep -c " 1$" "$D/receipts") = 3'
    once = start(t, section('mail', t.sh(RECEIPT + fails_twice)) +
                 section('sms', t.sh(RECEIPT)))
    emit(once, 'mail 1', 'sms 2', 'mail 3', 'sms 4')
    wait_empty(once)
    eq(payloads(t), ['1', '1', '1', '2', '3', '4'])


def test_dead_letter_holds_back_no_effect(t):
    once = start_mail(t, 'test "$(tail -n1 "$D/receipts" | cut -d" " -f3)"'
                      ' != bad', attempts=2)
    emit(once, 'mail bad', 'mail good')
    wait_effect(once, 'delivered', 2)
    eq(payloads(t), ['bad', 'bad', 'good'])
    eq(effect(once)['state'], 'dead_letter')


def test_one_that_hangs_holds_back_its_key_alone(t):
    gate = t.gate()
    once = start_mail(t, 'test "$ONCE_KEY" != slow || gate gate')
    emit(once, 'mail 1', 'mail 2', key='slow')
    gate.wait()
    for key in 'abcdefgh':
        emit(once, 'mail ' + key, key=key)
    wait_until(lambda: len(outbox(once, '--state', 'delivered')) == 8,
               'the others are delivered')
    eq([r['next_at'] for r in outbox(once, '--state', 'pending')],
       [None, None])
    gate.open(2)
    wait_empty(once)
    eq([p for _, k, p in receipts(t) if k == 'slow'], ['1', '2'])


def test_topic_that_hangs_holds_back_no_other(t):
    gate = t.gate()
    once = start(t, section('hook', t.sh('gate gate')) +
                 section('mail', t.sh(RECEIPT)))
    for n in range(8):
        emit(once, 'hook x', key='h%d' % n)
    for _ in range(3):
        gate.wait()
    emit(once, 'mail after')
    wait_effect(once, 'delivered', 9)
    assert not gate.came()
    gate.open(8)
    wait_empty(once)


# --- crash and end ------------------------------------------------------------

def test_delivery_that_a_crash_interrupts_is_repeated_with_its_key(t):
    gate = t.gate()
    once = start_mail(t, 'gate gate', attempts=1)
    emit(once, 'mail hello')
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the program is gone')
    row = effect(once)
    eq((row['state'], row['attempts']), ('pending', 1))
    once.start()
    gate.wait()
    gate.open()
    eq(wait_effect(once, 'delivered')['attempts'], 2)
    eq(len(receipts(t)), 2)
    eq(len(set(receipts(t))), 1)


def test_another_process_delivers_what_a_dead_one_left(t):
    gate = t.gate()
    conf = section('mail', t.sh(RECEIPT + 'gate gate'))
    once = start(t, conf)
    emit(once, 'mail hello')
    gate.wait()
    other = start(t, conf, name='other', database=once.database,
                  server={'sweep_interval': '50ms'})
    once.kill()
    gate.wait()
    gate.open()
    wait_effect(other, 'delivered')
    other.wait_log('event=effects-freed')
    eq(len(set(receipts(t))), 1)


def test_sigterm_waits_for_a_delivery(t):
    gate = t.gate()
    once = start_mail(t, 'gate gate')
    emit(once, 'mail hello')
    gate.wait()
    once.term()
    once.wait_log('event=stopping')
    gate.open()
    eq(once.wait(), 0)
    eq(effect(once)['state'], 'delivered')


def test_drain_timeout_ends_a_delivery_and_gives_up_nothing(t):
    gate = t.gate()
    once = start(t, section('mail', t.sh(RECEIPT + 'gate gate'), attempts=1),
                 server={'drain_timeout': '1ms'})
    emit(once, 'mail hello')
    pid = gate.wait()
    once.stop()
    assert not proc.alive(pid)
    row = effect(once)
    eq((row['state'], row['attempts']), ('pending', 1))
    once.start()
    gate.wait()
    gate.open()
    wait_effect(once, 'delivered')


def test_delivery_that_cannot_be_recorded_is_not_repeated(t):
    gate = t.gate()
    once = start(t, section('mail', t.sh(RECEIPT + 'gate gate')),
                 server={'busy_timeout': '100ms'})
    wait_until(lambda: once.post('k', body='mail hello').status != 503,
               'it is reserved in so short a time')
    gate.wait()
    lock = Lock(t, once.database)
    gate.open()
    once.wait_log('event=effect-not-recorded')
    lock.release()
    wait_effect(once, 'delivered')
    eq(len(receipts(t)), 1)


def test_nothing_is_tried_while_the_store_cannot_be_written(t):
    once = start(t, section('mail', t.sh(RECEIPT + 'exit 1')),
                 server={'busy_timeout': '100ms', 'admin_path': ADMIN})
    wait_until(lambda: once.post('k', body='mail hello\nmail 2').status != 503,
               'it is reserved in so short a time')
    wait_until(lambda: receipts(t), 'it is tried')
    with Held(t, once):
        once.wait_log('event=(effect-not-recorded|pass-failed pass=outbox)')
        before = len(receipts(t))
        # A pass that goes on failing is logged once.
        failed = metrics(once)['store_errors_total']
        wait_until(lambda: metrics(once)['store_errors_total'] > failed + 1,
                   'it is tried again')
        assert len(receipts(t)) <= before + 1
    wait_until(lambda: len(receipts(t)) > before + 2, 'it goes on')


class Held:
    """The write lock, while it is entered."""

    def __init__(self, t, once):
        self.lock = Lock(t, once.database)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self.lock.release()


def test_two_processes_deliver_each_effect_once_and_in_order(t):
    conf = section('mail', t.sh(RECEIPT))
    both = [start(t, conf)]
    both.append(start(t, conf, name='other', database=both[0].database))
    parallel([lambda k=k: emit(both[k % 2], *['mail %d' % n for n in range(6)],
                               key='k%d' % k) for k in range(8)])
    wait_empty(both[0])
    found = receipts(t)
    eq(len(found), 48)
    eq(len({r[0] for r in found}), 48)
    for k in range(8):
        eq([p for _, key, p in found if key == 'k%d' % k], list('012345'))
    for once in both:
        once.wait_log('event=effect ')      # each has delivered some


# --- configuration ------------------------------------------------------------

def doctor(once, name, *args, status=0):
    lines = once.ctl('doctor', '--json', *args, status=status).splitlines()
    found, = [f for f in map(json.loads, lines) if f['name'] == name]
    return found


def hup(once, n=1):
    once.write_conf()
    once.hup()
    once.wait_log('event=reloaded', n)


def test_topics_come_and_go_with_a_reload(t):
    mail = section('mail', t.sh('exit 1'), backoff='1h')
    once = start(t, mail)
    emit(once, 'mail x')
    wait_put_off(once)
    eq(doctor(once, 'topics')['ok'], True)
    once.conf = section('sms', t.sh(RECEIPT))
    hup(once)
    eq(once.post('no', body='mail y').status, 400)
    emit(once, 'sms hello', key='other')
    wait_effect(once, 'delivered', 2)
    # What was there stays, and doctor reports it.
    eq(effect(once)['state'], 'pending')
    found = doctor(once, 'topics', status=1)
    assert not found['ok'] and 'mail' in found['text'], found
    once.conf = section('mail', t.sh(RECEIPT)) + once.conf
    hup(once, 2)
    eq(doctor(once, 'topics')['ok'], True)
    once.ctl('outbox', 'retry', '1')
    wait_effect(once, 'delivered')
    eq(sorted(payloads(t)), ['hello', 'x'])


def test_doctor_knows_the_sections_of_a_configuration(t):
    once = start(t, section('mail', '/bin/false', backoff='1h'))
    emit(once, 'mail x')
    eq(doctor(once, 'topics', '-f', once.file)['ok'], True)
    other = t.write('other.conf', '[server]\ndatabase = x\n')
    eq(doctor(once, 'topics', '-f', other, status=1)['ok'], False)


def test_reload_that_the_store_cannot_take_changes_nothing(t):
    once = start(t, section('mail', t.sh(RECEIPT)),
                 server={'busy_timeout': '50ms'})
    once.conf = section('sms', t.sh(RECEIPT))
    once.write_conf()
    with Held(t, once):
        once.hup()
        once.wait_log('event=reload-failed')
    wait_until(lambda: once.post('k', body='mail x').status == 201,
               'it is recorded in so short a time')
    wait_effect(once, 'delivered')


def test_effects_without_a_section_stay_over_a_restart(t):
    once = start(t, section('mail', t.sh('exit 1'), backoff='1h'))
    emit(once, 'mail x')
    wait_put_off(once)
    once.stop()
    once.conf = ''
    once.write_conf()
    once.start()
    found = doctor(once, 'topics', '-f', once.file, status=1)
    assert 'mail' in found['text'], found
    eq(effect(once)['state'], 'pending')


def test_topics_are_stored_though_the_store_was_locked_at_the_start(t):
    once = start(t, '', server={'busy_timeout': '50ms'})
    once.stop()
    once.conf = section('mail', t.sh(RECEIPT))
    once.write_conf()
    lock = Lock(t, once.database)
    once.start()
    once.wait_log('event=topics-not-stored')
    lock.release()
    tries = iter(range(1000))
    wait_until(lambda: once.post('k%d' % next(tries),
                                 body='mail x').status == 201,
               'the topic is known')


def test_topics_of_a_former_configuration_are_none_after_a_restart(t):
    mail = section('mail', t.sh(RECEIPT))
    sms = section('sms', '/bin/true')
    once = start(t, mail)
    emit(once, 'mail x')
    other = start(t, sms, name='other', database=once.database)
    once.stop()
    once.conf = sms
    once.write_conf()
    once.start()
    # While another process lives, the topic may be its own.
    eq(once.post('shared', body='mail y').status, 201)
    other.stop()
    once.stop()
    once.start()
    refused = once.post('no', body='mail z')
    eq(refused.status, 400)
    assert b'no effect of that name' in refused.body, str(refused)
    eq(once.post('yes', body='sms z').status, 201)


# --- operators ----------------------------------------------------------------

def test_dead_letter_is_retried_by_an_operator(t):
    once = start_mail(t, 'test -e "$D/well"', attempts=2)
    emit(once, 'mail hello')
    wait_effect(once, 'dead_letter')
    found = doctor(once, 'outbox', status=1)
    assert not found['ok'] and 'outbox retry' in found['text'], found
    t.write('well')
    out = once.ctl('outbox', 'retry', '1')
    eq(out, 'effect 1, mail of key k: dead_letter -> pending\n')
    eq(wait_effect(once, 'delivered')['attempts'], 1)
    eq(len(receipts(t)), 3)
    eq(len({r[0] for r in receipts(t)}), 1)
    eq(doctor(once, 'outbox')['ok'], True)


def test_effect_that_waits_is_retried_at_once(t):
    once = start_mail(t, 'test -e "$D/well"', backoff='1h')
    emit(once, 'mail hello', 'mail behind')
    wait_put_off(once)
    t.write('well')
    eq(json.loads(once.ctl('outbox', 'retry', '2', '--json')),
       {'id': 2, 'from': 'pending', 'to': 'pending'})
    wait_empty(once)
    eq(payloads(t), ['hello', 'hello', 'behind'])


def test_dropped_effect_is_never_delivered(t):
    once = start_mail(t, 'test "$ONCE_KEY" = other', backoff='1h')
    emit(once, 'mail hello')
    wait_put_off(once)
    eq(json.loads(once.ctl('outbox', 'drop', '1', '--json')),
       {'id': 1, 'from': 'pending', 'to': None})
    eq(outbox(once), [])
    emit(once, 'mail last', key='other')
    wait_effect(once, 'delivered', 2)
    eq(payloads(t), ['hello', 'last'])
    eq(once.ctl('outbox', 'drop', '2'),
       'effect 2, mail of key other: delivered -> dropped\n')


def refused(once, *args):
    run = once.t.run([base.ONCECTL, '-d', once.database, 'outbox', *args])
    eq((run.returncode, run.stdout), (1, b''), run)
    return run.stderr.decode()


def test_retry_and_drop_refuse_what_they_must(t):
    gate = t.gate()
    once = start_mail(t, 'gate gate')
    emit(once, 'mail hello')
    gate.wait()
    for verb in ('retry', 'drop'):
        assert 'tried now' in refused(once, verb, '1')
        assert 'no such effect' in refused(once, verb, '2')
    gate.open()
    wait_effect(once, 'delivered')
    assert 'is delivered' in refused(once, 'retry', '1')


def test_effect_of_a_dead_process_can_be_dropped_after_a_sweep(t):
    gate = t.gate()
    once = start_mail(t, 'gate gate')
    emit(once, 'mail hello')
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the program is gone')
    assert 'sweep' in refused(once, 'drop', '1')
    eq(doctor(once, 'leases', status=1)['ok'], False)
    once.ctl('sweep')
    eq(effect(once)['last_error'], 'oncewrap was lost while it was tried')
    once.ctl('outbox', 'drop', '1')
    eq(outbox(once), [])


def test_usage_errors_of_outbox(t):
    once = start_mail(t)
    for args in ([], ['nonsense'], ['retry'], ['drop'], ['retry', 'x'],
                 ['retry', '0'], ['retry', '-1'], ['drop', '1x'],
                 ['retry', ''], ['retry', '99999999999999999999'],
                 ['ls', 'x'], ['ls', '--state', 'completed'],
                 ['retry', '1', '--scope', 's'], ['ls', '--older', '1d'],
                 ['retry', '1', '2']):
        run = t.run([base.ONCECTL, '-d', once.database, 'outbox', *args])
        eq((run.returncode, run.stdout), (2, b''), (args, run))
        assert run.stderr, args
    once.ctl('ls', '--state', 'delivered', status=2)


def test_ls_filters_and_prints_a_table(t):
    once = start(t, section('mail', t.sh('test "$ONCE_KEY" = good'),
                            attempts=1) +
                 section('sms', '/bin/false', backoff='1h'),
                 defaults={'scope': 'REMOTE_USER'})
    alice, bob = ({'params': {'REMOTE_USER': u}} for u in ('alice', 'bob'))
    emit(once, 'mail x', key='good', **alice)
    emit(once, 'mail x', key='bad', **bob)
    emit(once, 'sms x', key='late', path='/other', **bob)
    wait_effect(once, 'delivered')
    wait_effect(once, 'dead_letter', 2)
    wait_put_off(once, 3)
    for args, want in (((), [1, 2, 3]), (('--state', 'delivered'), [1]),
                       (('--state', 'dead_letter'), [2]),
                       (('--state', 'pending'), [3]),
                       (('--scope', 'bob'), [2, 3]),
                       (('--path', '/other'), [3]),
                       (('--scope', 'alice', '--path', '/other'), [])):
        eq([row['id'] for row in outbox(once, *args)], want)
    lines = once.ctl('outbox', 'ls').splitlines()
    eq(len(lines), 4)
    assert re.match(r'ID +STATE +ATTEMPTS +NEXT +TOPIC ', lines[0])
    assert re.match(r'2 +dead_letter +1 +- +mail +bob +/pay +bad +the ',
                    lines[2])


def test_export_has_keys_and_effects(t):
    once = start_mail(t, 'echo ref')
    emit(once, 'mail hello')
    wait_effect(once, 'delivered')
    lines = [json.loads(line) for line in once.ctl('export').splitlines()]
    eq(lines[0], once.row('k'))
    assert 'type' not in lines[0]
    eq(len(lines), 2)
    exported = lines[1]
    eq(list(exported), ['type'] + FIELDS +
       ['effect_key', 'created_at', 'updated_at'])
    eq(exported['type'], 'effect')
    eq({k: exported[k] for k in FIELDS}, effect(once))
    eq(exported['effect_key'], receipts(t)[0][0])
    assert when(exported['created_at']) <= when(exported['updated_at'])
    eq(once.ctl('export', '--since', '2999-01-01T00:00:00Z'), '')


def test_effects_and_the_end_of_their_key(t):
    gate = t.gate()
    once = start_mail(t, 'test "$ONCE_KEY" != slow || gate gate')
    emit(once, 'mail hello')
    emit(once, 'mail hello', 'mail hello', key='slow')
    wait_effect(once, 'delivered')
    gate.wait()
    for key in ('k', 'slow'):
        once.ctl('forget', key)
    # A delivered one goes with its key, the others outlive it.
    eq([row['id'] for row in outbox(once)], [2, 3])
    gate.open(2)
    wait_until(lambda: not outbox(once), 'they are delivered and gone')
    eq(len(receipts(t)), 3)
    eq(doctor(once, 'effects')['ok'], True)


# --- metrics ------------------------------------------------------------------

def counted(once):
    return {k: v for k, v in metrics(once).items() if k.startswith('outbox')}


def test_metrics_of_the_outbox(t):
    once = start(t, section('mail', t.sh('test "$ONCE_KEY" = good'),
                            attempts=2) +
                 section('sms', '/bin/false', backoff='1h'),
                 server={'admin_path': ADMIN})
    emit(once, 'mail x', key='good')
    emit(once, 'mail x', key='bad')
    emit(once, 'sms x', key='late')
    want = {'outbox_total{result="delivered"}': 1,
            'outbox_total{result="retried"}': 2,
            'outbox_total{result="dead"}': 1,
            'outbox{state="pending"}': 1, 'outbox{state="dead_letter"}': 1}

    def as_wanted():
        found = counted(once)
        found.pop('outbox{state="delivered"}', None)   # counted now and then
        return found == want
    wait_until(as_wanted, '%r' % want)
    text = once.ctl('metrics')
    for state, n in (('pending', 1), ('delivered', 1), ('dead_letter', 1)):
        assert 'oncewrap_outbox{state="%s"} %d\n' % (state, n) in text, text
