"""What a handler says in a transaction of its own, in any language: all of
it or nothing, and its answer wins."""
import json
import os
import signal

import base
import proc
from answer import eq, first, problem, replay
from base import wait_until
from once import Background

LANGUAGES = ('order.py',) if base.POSTGRES else (
    'order', 'order.py', 'order.pl')
# What is put there stays to be seen: delivery does not succeed.
EFFECTS = '[effect mail]\nprogram = /bin/false\nbackoff = 1h\n'
BY = {'order': 'c', 'order.py': 'python', 'order.pl': 'perl'}


# Not before it has taken the order.
SOON = '%ds' % (3 * max(1, base.SLOW))


def shared(t, *words, handler='order', script=None, server=None, **defaults):
    """A daemon whose handler takes orders, and a table for them."""
    defaults['share_database'] = 'yes'
    once = t.once(handler=t.py(script) if script else
                  command(t, handler, *words), server=server,
                  defaults=defaults, conf=EFFECTS)
    prepare(once)
    return once


def prepare(once):
    once.sql('CREATE TABLE orders(id INTEGER PRIMARY KEY, note TEXT)')


def command(t, handler, *words):
    if base.POSTGRES and handler == 'order':
        handler = 'order.py'    # without a library of SQLite
    return ' '.join((t.program(handler), t.dir) + words)


def orders(once):
    return [note for note, in once.sql('SELECT note FROM orders')]


def is_taken(once, key='k', state='completed'):
    """The order is there as a whole, once."""
    eq(orders(once), [key])
    eq(once.effects(), [('mail', b'thanks')])
    row = once.row(key)
    eq((row['state'], row['recovery_point']), (state, 'ordered'))


def is_nothing(once):
    eq((orders(once), once.effects()), ([], []))


# --- one transaction ----------------------------------------------------------

def taken_in(t, language):
    once = shared(t, 'order', handler=language)
    answer = once.post('k')
    first(answer, 201, b'order 1\n')
    eq(answer.all('X-Twice'), ['1', '2'], answer)
    eq(answer.get('X-By'), BY[language], answer)
    assert answer.get('Idempotency-Expires'), str(answer)
    is_taken(once)
    replay(once.post('k'), answer)
    eq(t.ledger(), ['1 COMMIT'])
    eq(once.row('k')['last_error'], None)


def test_an_order_is_taken_in_c(t):
    taken_in(t, 'order')


def test_an_order_is_taken_in_python(t):
    taken_in(t, 'order.py')


def test_an_order_is_taken_in_perl(t):
    taken_in(t, 'order.pl')


def rolled_back_in(t, language):
    once = shared(t, 'rollback', 'print=200', handler=language)
    answer = once.post('k')
    first(answer, 200, b'printed\n')
    is_nothing(once)
    eq(once.row('k')['recovery_point'], 'started')
    replay(once.post('k'), answer)
    eq(t.ledger(), ['1 ROLLBACK'])


def test_nothing_is_left_of_what_was_rolled_back_in_c(t):
    rolled_back_in(t, 'order')


def test_nothing_is_left_of_what_was_rolled_back_in_python(t):
    rolled_back_in(t, 'order.py')


def test_nothing_is_left_of_what_was_rolled_back_in_perl(t):
    rolled_back_in(t, 'order.pl')


def test_a_handler_killed_in_its_transaction_leaves_nothing(t):
    gate = t.gate()
    once = shared(t, script='''
import shared, signal
db = shared.connect()
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO once_response(token, status) VALUES (?, 201)",
           (os.environ["ONCE_TOKEN"],))
db.execute("INSERT INTO orders(note) VALUES ('k')")
with open(D + "/gate.here", "w") as f: f.write("%d\\n" % os.getpid())
signal.pause()
''')
    running = Background(lambda: once.post('k'))
    proc.kill(gate.wait(), signal.SIGKILL)
    problem(running.result(), 'handler-failed', unknown=True)
    is_nothing(once)
    eq(once.state('k'), 'unknown')


# --- what follows does not matter ---------------------------------------------

def wins_over(t, *words, language='order', **defaults):
    once = shared(t, 'order', *words, handler=language, **defaults)
    answer = once.post('k')
    first(answer, 201, b'order 1\n')
    eq(answer.all('X-Printed'), [], answer)
    is_taken(once)
    replay(once.post('k'), answer)
    eq(t.ledger(), ['1 COMMIT'])
    once.stop()
    once.start()
    replay(once.post('k'), answer)


def test_its_answer_wins_over_what_it_prints(t):
    wins_over(t, 'print=500')


def test_its_answer_wins_over_garbage(t):
    wins_over(t, 'garbage')


def test_its_answer_wins_over_an_exit_status(t):
    wins_over(t, 'exit=1')


def test_its_answer_wins_over_exit_75(t):
    wins_over(t, 'print=503', 'exit=75')


def test_its_answer_wins_over_a_segmentation_fault(t):
    wins_over(t, 'signal=11')


def test_its_answer_wins_over_a_kill(t):
    wins_over(t, 'print=201', 'signal=9')


def test_its_answer_wins_over_a_timeout(t):
    wins_over(t, 'sleep', timeout=SOON, kill_after='100ms')


def test_its_answer_wins_over_ten_megabytes(t):
    wins_over(t, 'flood')


def test_its_answer_wins_over_more_output_than_allowed(t):
    wins_over(t, 'flood', max_output='1M')


def test_its_answer_wins_over_an_outcome_that_it_prints(t):
    wins_over(t, 'outcome=not-executed')


def test_its_answer_wins_with_resume(t):
    wins_over(t, 'signal=9', on_crash='resume')


def test_its_answer_wins_over_a_timeout_with_resume(t):
    wins_over(t, 'sleep', on_crash='resume', timeout=SOON,
              kill_after='100ms')


def test_its_answer_wins_though_its_status_would_be_released(t):
    once = shared(t, 'order', release='201')
    answer = once.post('k')
    first(answer, 201, b'order 1\n')
    replay(once.post('k'), answer)


def test_its_answer_wins_over_a_drain(t):
    gate = t.gate()
    once = shared(t, 'order', 'gate=gate',
                  server={'drain_timeout': '100ms'})
    running = Background(lambda: once.post('k'))
    gate.wait()
    once.stop()
    answer = running.result()
    first(answer, 201, b'order 1\n')
    once.start()
    replay(once.post('k'), answer)
    is_taken(once)


def test_its_answer_wins_though_oncewrap_is_killed(t):
    gate = t.gate()
    once = shared(t, 'order', 'gate=gate')
    conn = once.begin('k')
    pid = gate.wait()
    once.kill()
    wait_until(lambda: not proc.alive(pid), 'the handler is gone')
    conn.close()
    once.start()
    answer = once.post('k')
    eq((answer.status, answer.body, answer.replayed),
       (201, b'order 1\n', 'true'), answer)
    is_taken(once)
    eq(t.ledger(), ['1 COMMIT'])


# --- while it runs on ---------------------------------------------------------

def test_duplicates_get_the_answer_while_the_handler_runs_on(t):
    gate = t.gate()
    once = shared(t, 'order', 'gate=gate', 'print=500', 'exit=1')
    running = Background(lambda: once.post('k', 'a'))
    gate.wait()
    eq(once.state('k'), 'completed')
    early = once.post('k', 'a')
    eq((early.status, early.body, early.replayed),
       (201, b'order 1\n', 'true'), early)
    problem(once.post('k', 'b'), 'key-reused')
    # It cannot be forgotten under the handler.
    once.ctl('forget', 'k', status=1)
    once.ctl('reap')
    gate.open()
    answer = running.result()
    first(answer, 201, b'order 1\n')
    replay(once.post('k', 'a'), answer, dropped=('idempotency-expires',))
    is_taken(once)


def test_a_retention_begins_when_the_handler_has_ended(t):
    gate = t.gate()
    once = shared(t, 'order', 'gate=gate', retention='1ms')
    running = Background(lambda: once.post('k'))
    gate.wait()
    # Past that by now, were it counted from the handler's commit.
    for _ in range(3):
        eq(once.post('k').replayed, 'true')
    once.ctl('reap')
    eq(once.state('k'), 'completed')
    gate.open()
    first(running.result(), 201)
    once.ctl('reap')
    eq(once.row('k'), None)


def test_an_answer_that_cannot_be_read_is_not_told_to_have_run_nothing(t):
    gate = t.gate()
    once = shared(t, 'order', 'gate=gate')
    running = Background(lambda: once.post('k'))
    gate.wait()
    (version,), = once.sql("SELECT response_version FROM once_key")
    once.sql("UPDATE once_key SET response_version = 99")
    gate.open()
    problem(running.result(), 'outcome-not-recorded')
    # The retry itself runs nothing, but its key is used.
    problem(once.post('k'), 'store-unavailable', acted=True)
    once.sql("UPDATE once_key SET response_version = %d" % version)
    answer = once.post('k')
    eq((answer.status, answer.body, answer.replayed),
       (201, b'order 1\n', 'true'), answer)
    is_taken(once)


# --- attempts that were superseded --------------------------------------------

LATE = ('escape', 'gate=old', 'order')


def escaped(t, **defaults):
    """A handler's process that outlived its daemon, asleep at a gate.  It has
    shed all that tells whose it is."""
    old = t.gate('old')
    once = shared(t, *LATE, handler='order.py', **defaults)
    once.begin('k')
    pid = old.wait()
    once.kill()
    t.defer(lambda: proc.kill(pid, signal.SIGKILL))
    once.defaults['handler'] = command(t, 'order.py', 'order')
    once.write_conf()
    return once, old, pid


def released(once):
    """The process that lives on is not found, and the others are gone at once:
    then a sweep releases."""
    wait_until(lambda: once.ctl('sweep') and
               once.state('k') == 'failed_retryable', 'k is released')


def wakes(t, old, pid):
    """It tries now; what its transaction came to."""
    before = len(t.ledger())
    old.open()
    wait_until(lambda: not proc.alive(pid), 'the old one has ended')
    line, = t.ledger()[before:]
    return line


def is_refused(t, once, old, pid):
    eq(wakes(t, old, pid), '1 error: lease lost')


def test_a_superseded_attempt_lands_nothing_while_the_key_is_unknown(t):
    once, old, pid = escaped(t)
    once.start()
    eq(once.state('k'), 'unknown')
    is_refused(t, once, old, pid)
    is_nothing(once)
    problem(once.post('k'), 'outcome-unknown')


def test_a_superseded_attempt_lands_nothing_after_a_resolve(t):
    once, old, pid = escaped(t)
    once.start()
    once.ctl('resolve', 'k', '--not-executed')
    is_refused(t, once, old, pid)
    is_nothing(once)
    first(once.post('k'), 201, b'order 1\n')
    is_taken(once)


def test_a_superseded_attempt_lands_nothing_beside_the_next_one(t):
    once, old, pid = escaped(t)
    gate = t.gate()
    once.defaults['handler'] = command(t, 'order.py', 'gate=gate', 'order')
    once.write_conf()
    once.start()
    once.ctl('resolve', 'k', '--not-executed')
    running = Background(lambda: once.post('k'))
    gate.wait()
    is_refused(t, once, old, pid)
    is_nothing(once)
    gate.open()
    first(running.result(), 201, b'order 1\n')
    is_taken(once)
    eq(t.ledger()[-1], '2 COMMIT')


def test_a_superseded_attempt_lands_nothing_after_the_next_one(t):
    once, old, pid = escaped(t, on_crash='resume')
    once.start()
    released(once)
    answer = once.post('k')
    first(answer, 201, b'order 1\n')
    is_refused(t, once, old, pid)
    is_taken(once)
    replay(once.post('k'), answer)


def test_a_superseded_attempt_lands_nothing_while_the_next_one_runs_on(t):
    once, old, pid = escaped(t, on_crash='resume')
    gate = t.gate()
    once.defaults['handler'] = command(t, 'order.py', 'order', 'gate=gate')
    once.write_conf()
    once.start()
    released(once)
    running = Background(lambda: once.post('k'))
    gate.wait()
    is_refused(t, once, old, pid)
    gate.open()
    first(running.result(), 201, b'order 1\n')
    is_taken(once)


def test_a_superseded_attempt_lands_nothing_in_a_key_of_the_same_name(t):
    once, old, pid = escaped(t)
    once.start()
    once.ctl('forget', 'k')
    first(once.post('k'), 201, b'order 1\n')
    is_refused(t, once, old, pid)
    is_taken(once)


def test_what_a_process_commits_while_its_lease_is_alive_counts(t):
    """No recovery has run yet, so the handler may still be the first."""
    once, old, pid = escaped(t)
    eq(wakes(t, old, pid), '1 COMMIT')
    once.start()
    answer = once.post('k')
    eq((answer.status, answer.body, answer.replayed),
       (201, b'order 1\n', 'true'), answer)
    is_taken(once)


# --- sizes --------------------------------------------------------------------

def of_size(t, n, language='order.py'):
    once = shared(t, 'size=%d' % n, 'order', handler=language)
    answer = once.post('k')
    first(answer, 201, b'order 1\n' + b'x' * n)
    replay(once.post('k'), answer)
    once.stop()
    once.start()
    replay(once.post('k'), answer)
    once.ctl('doctor')
    return once


def test_a_body_that_is_just_kept_with_its_key(t):
    of_size(t, 2040)


def test_a_body_that_is_just_kept_by_itself(t):
    of_size(t, 2041)


def test_a_body_above_64k(t):
    for language in LANGUAGES:
        once = of_size(t, 100000, language)
        once.stop()
        for suffix in ('', '-wal', '-shm'):
            if os.path.exists(once.database + suffix):
                os.unlink(once.database + suffix)


def test_the_longest_body(t):
    of_size(t, 16777216 - 8)


def test_a_body_that_is_too_long(t):
    once = shared(t, 'size=%d' % (16777217 - 8), 'order', 'print=200',
                  handler='order.py')
    first(once.post('k'), 200, b'printed\n')
    eq(t.ledger(), ['1 error: once_response.body: longer than 16777216 '
                    'bytes'])
    is_nothing(once)


def test_an_answer_without_fields_or_body(t):
    once = shared(t, script=PLAIN % '''
run("INSERT INTO once_response(token, status) VALUES (?, 204)", token)
''')
    answer = once.post('k')
    eq((answer.status, answer.body), (204, b''), answer)
    replay(once.post('k'), answer)


def test_fields_of_an_answer_that_a_replay_leaves_out(t):
    once = shared(t, script=PLAIN % '''
run("INSERT INTO once_response(token, status, headers) VALUES (?, 201, ?)",
    token, "Set-Cookie: a=1\\nX-Drop: x\\nX-Keep: y\\nDate: today")
''', replay_drop='X-Drop Set-Cookie')
    answer = once.post('k')
    first(answer, 201)
    eq([answer.get(name) for name in ('Set-Cookie', 'X-Drop', 'Date')],
       ['a=1', 'x', 'today'], answer)
    again = once.post('k')
    replay(again, answer, dropped=('set-cookie', 'x-drop'))
    eq([again.get(name) for name in ('Set-Cookie', 'X-Drop', 'X-Keep')],
       [None, None, 'y'], again)


PLAIN = '''
import json, shared, sqlite3
token = os.environ["ONCE_TOKEN"]
db = shared.connect()
def run(text, *values):
    return db.execute(text, values)
%s
'''


# --- what the views refuse ----------------------------------------------------

# Does in a transaction what the request says, line by line, and then tells
# what each came to.
TRY = PLAIN % '''
said = []
for text, *values in json.load(sys.stdin):
    db.execute("BEGIN IMMEDIATE")
    run("INSERT INTO orders(note) VALUES ('left')")
    try:
        run(text, *({"TOKEN": token, "LONG": "x" * 16777217}.get(v, v)
                    for v in values))
        why = None
    except sqlite3.Error as error:
        why = "%s: %s" % (type(error).__name__, error)
    said.append([why, db.in_transaction])
    if db.in_transaction:
        db.execute("ROLLBACK")
out(b"Content-Type: application/json\\r\\n\\r\\n" +
    json.dumps(said).encode())
'''

POINT = 'INSERT INTO once_checkpoint(token, recovery_point) VALUES (?, ?)'
EMIT = 'INSERT INTO once_outbox(token, topic, payload) VALUES (?, ?, ?)'
RESPOND = ('INSERT INTO once_response(token, status, headers, body) '
           'VALUES (?, ?, ?, ?)')
NO_POINT = 'once_checkpoint.recovery_point: '
NO_LINE = 'once_response.headers: a line is not "Name: value"'
NO_STATUS = 'once_response.status: not an integer from 200 to 599'


def tried(t, rows):
    """Each row is a statement, its values, and what it must come to."""
    once = shared(t, script=TRY)
    body = json.dumps([row[:-1] for row in rows])
    answer = once.post('k', body)
    first(answer, 200)
    for row, (why, going_on) in zip(rows, answer.json()):
        want = row[-1]
        if want is None:
            eq((why, going_on), (None, True), row)
            continue
        assert why and why.startswith('IntegrityError: ' + want), \
            'got %r, expected %r: %r' % (why, want, row)
        eq(going_on, False, row)
    is_nothing(once)
    eq(once.row('k')['recovery_point'], 'started')


def test_tokens_that_name_no_living_lease(t):
    token = '0123456789abcdef0123456789abcdef'
    bad = [None, '', token, token + '-1', token + '-', 'TOKEN ', 7,
           'x' * 100000]
    rows = []
    for value in bad:
        rows += [[POINT, value, 'p', 'lease lost'],
                 [EMIT, value, 'mail', 'p', 'lease lost'],
                 [RESPOND, value, 200, None, None, 'lease lost']]
    tried(t, rows)


def test_recovery_points(t):
    tried(t, [[POINT, 'TOKEN', value, want] for value, want in (
        ('p', None), ('x' * 63, None), ('a b~!', None),
        ('', NO_POINT), ('x' * 64, NO_POINT), ('a\n', NO_POINT),
        ('\x7f', NO_POINT), ('\u00e9', NO_POINT), ('a\x00b', NO_POINT),
        (None, NO_POINT), (7, NO_POINT))])


def test_topics_and_payloads(t):
    tried(t, [[EMIT, 'TOKEN', topic, payload, want]
              for topic, payload, want in (
        ('mail', 'p', None), ('mail', '', None),
        ('sms', 'p', 'once_outbox.topic: '),
        ('Mail', 'p', 'once_outbox.topic: '),
        ('', 'p', 'once_outbox.topic: '),
        (None, 'p', 'once_outbox.topic: '),
        ('mail', None, 'once_outbox.payload: '),
        ('mail', 7, 'once_outbox.payload: '),
        ('mail', 'LONG', 'once_outbox.payload: longer'))])


def test_statuses(t):
    tried(t, [[RESPOND, 'TOKEN', value, None, None, want]
              for value, want in (
        (200, None), (599, None), ('201', None),
        (199, NO_STATUS), (600, NO_STATUS), (100, NO_STATUS),
        (None, NO_STATUS), ('', NO_STATUS), ('201 Created', NO_STATUS),
        (201.0, NO_STATUS), ('0201', NO_STATUS), (-200, NO_STATUS))])


def test_header_fields(t):
    own = 'once_response.headers: a field that '
    tried(t, [[RESPOND, 'TOKEN', 200, value, None, want]
              for value, want in (
        (None, None), ('', None), ('A: b', None), ('A: b\r\nC:d\n', None),
        ('X-Empty:', None), ('A: \u00e9\t"', None),
        ('A: b\r\nA: c', None), ('A: b\n' * 256, None),
        ('no colon', NO_LINE), (': no name', NO_LINE), ('A : b', NO_LINE),
        ('A: b\n\nC: d', NO_LINE), ('\nA: b', NO_LINE),
        ('A: b\n folded: c', NO_LINE), ('A: b\rC: d', NO_LINE),
        ('A: \x01', NO_LINE), ('A: \x7f', NO_LINE), ('A: \x00', NO_LINE),
        ('[A: b', NO_LINE), ('A\u00e9: b', NO_LINE),
        ('A: b\n' * 257, 'once_response.headers: more than 256 lines'),
        ('A: ' + 'x' * 70000, 'once_response.headers: longer than'),
        (7, 'once_response.headers: neither text nor NULL'),
        ('Content-Length: 3', own), ('content-length: 3', own),
        ('A: b\r\nTransfer-Encoding: chunked', own),
        ('Connection: close', own), ('Status: 200', own),
        ('X-Sendfile: /etc/passwd', own), ('X-Accel-Redirect: /x', own),
        ('X-LIGHTTPD-send-file: /x', own), ('X-Sendfile2: /x', own),
        ('Idempotent-Replayed: true', own),
        ('Idempotency-Expires: never', own),
        ('Idempotency-Outcome: unknown', own))])


def test_values_of_another_type(t):
    tried(t, [[RESPOND.replace('?, ?, ?, ?', "?, 200, x'41', ''"), 'TOKEN',
               'once_response.headers: neither text nor NULL'],
              [RESPOND.replace('?, ?, ?, ?', "?, 200, '', 7"), 'TOKEN',
               'once_response.body: neither text nor a blob nor NULL']])


def test_a_second_answer_is_refused(t):
    once = shared(t, script=PLAIN % '''
run("BEGIN IMMEDIATE")
for status in (201, 202):
    try:
        run("INSERT INTO once_response(token, status) VALUES (?, ?)",
            token, status)
        db.execute("COMMIT")
    except sqlite3.Error as error:
        with open(D + "/ledger", "a") as f: f.write(str(error) + "\\n")
''')
    first(once.post('k'), 201)
    eq(t.ledger(), ['once_response: this attempt has answered already'])


def test_recovery_points_and_effects_after_the_answer(t):
    """The attempt still has its lease."""
    once = shared(t, script=PLAIN % '''
run("INSERT INTO once_response(token, status) VALUES (?, 201)", token)
run("INSERT INTO once_checkpoint(token, recovery_point) VALUES (?, 'after')",
    token)
run("INSERT INTO once_outbox(token, topic, payload) VALUES (?, 'mail', ?)",
    token, b"\\0\\xff")
''')
    first(once.post('k'), 201)
    eq(once.row('k')['recovery_point'], 'after')
    eq(once.effects(), [('mail', b'\0\xff')])


def test_the_next_attempt_is_told_the_last_recovery_point(t):
    once = shared(t, script=PLAIN % '''
run("INSERT INTO once_checkpoint(token, recovery_point) VALUES (?, ?)",
    token, "point " + os.environ["ONCE_ATTEMPT"])
out(b"Status: %s\\r\\n\\r\\n%s" %
    (b"503" if os.environ["ONCE_ATTEMPT"] == "1" else b"201",
     os.environb[b"ONCE_RECOVERY_POINT"]))
''')
    first(once.post('k'), 503, b'started')
    eq(once.row('k')['recovery_point'], 'point 1')
    first(once.post('k'), 201, b'point 1')
