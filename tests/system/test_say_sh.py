"""What a handler says without SQLite: oncectl checkpoint, emit, respond; and
with its shell."""
import os
import shutil
import signal
import sqlite3

import base
import proc
from answer import eq, first, replay
from base import wait_until
from once import Background, Lock
from test_say import EFFECTS, is_nothing, is_taken, prepare, released
from test_store import fill, mount

ALL = (('checkpoint', 'point'), ('emit', 'mail'), ('respond',))
ANSWER = b'Status: 201\nContent-Type: text/plain\n\nsaid\n'


def shared(t, body, database=None, **defaults):
    once = t.once(handler=t.sh(body), conf=EFFECTS, database=database,
                  defaults=dict(defaults, share_database='yes'))
    prepare(once)
    return once


def say(t, once, token, *args, input=ANSWER, database=None, status=None):
    """Runs oncectl as a handler does; its stderr, or the status too."""
    env = dict(os.environ, ONCE_DATABASE=database or once.database)
    env.pop('ONCE_TOKEN', None)
    if token is not None:
        env['ONCE_TOKEN'] = token
    run = t.run([base.ONCECTL] + list(args), input=input, env=env)
    eq(run.stdout, b'')
    error = run.stderr.decode()
    if status is not None:
        eq(run.returncode, status, error)
        return error
    return run.returncode, error


class Running:
    """A handler that waits while the test speaks for it."""

    def __init__(self, t, **defaults):
        self.gate = t.gate()
        self.t = t
        self.once = shared(t, 'echo "$ONCE_TOKEN" > "$D/token"; gate gate; '
                           'status 200; echo printed', **defaults)
        self.answer = Background(lambda: self.once.post('k'))
        self.gate.wait()
        self.token = t.read('token').decode().strip()

    def say(self, *args, **kw):
        return say(self.t, self.once, self.token, *args, **kw)

    def end(self):
        self.gate.open()
        return self.answer.result()


# --- a whole handler ----------------------------------------------------------

def test_an_order_is_taken_with_oncectl(t):
    once = shared(t, '''
PATH="%s:$PATH"
ledger start
oncectl checkpoint ordered || exit 75
printf thanks | oncectl emit mail || exit 75
printf 'Status: 201 Made\\r\\nContent-Type: text/plain\\r\\nX-Twice: 1\\r\\n\
X-Twice: 2\\r\\nContent-Length: 5\\r\\n\\r\\nsaid\\n' |
    oncectl respond || exit 75
status 500
kill -9 $$''' % t.handlers)
    answer = once.post('k')
    first(answer, 201, b'said\n')
    eq(answer.all('X-Twice'), ['1', '2'], answer)
    replay(once.post('k'), answer)
    eq(once.effects(), [('mail', b'thanks')])
    eq(once.row('k')['recovery_point'], 'ordered')
    eq(t.ledger(), ['1 start'])


SHELL = '''
sqlite3 -batch -bail -cmd '.timeout 5000' "$ONCE_DATABASE" >&2 <<EOF
BEGIN IMMEDIATE;
INSERT INTO once_checkpoint(token, recovery_point)
    VALUES ('$%s', 'ordered');
INSERT INTO orders(note) VALUES ('$ONCE_KEY');
INSERT INTO once_outbox(token, topic, payload)
    VALUES ('$ONCE_TOKEN', 'mail', 'thanks');
INSERT INTO once_response(token, status, headers, body)
    VALUES ('$ONCE_TOKEN', '201', 'Content-Type: text/plain
X-By: sqlite3', 'said
');
COMMIT;
EOF
ledger $?'''


def test_an_order_is_taken_with_the_shell_of_sqlite3(t):
    base.need('sqlite3')
    once = shared(t, SHELL % 'ONCE_TOKEN' + '\nstatus 500\nexit 1')
    answer = once.post('k')
    first(answer, 201, b'said\n')
    eq(answer.get('X-By'), 'sqlite3', answer)
    is_taken(once)
    replay(once.post('k'), answer)
    eq(t.ledger(), ['1 0'])


def test_the_shell_of_sqlite3_stops_at_what_is_refused(t):
    base.need('sqlite3')
    once = shared(t, SHELL % 'ONCE_KEY' + '\nstatus 200')
    first(once.post('k'), 200)
    is_nothing(once)
    eq(t.ledger(), ['1 1'])
    once.wait_log('lease lost')


# --- what is refused ----------------------------------------------------------

def test_a_lease_that_is_lost(t):
    once = shared(t, 'status 201; echo "$ONCE_TOKEN"')
    answer = once.post('k')
    token = answer.body.decode().strip()
    before = once.row('k')
    for args in ALL:
        eq(say(t, once, token, *args, status=1),
           'oncectl: %s: lease lost\n' % args[0])
    replay(once.post('k'), answer)
    eq(once.row('k'), before)
    is_nothing(once)


def test_a_handler_that_was_superseded_says_nothing_more(t):
    old = t.gate('old')
    once = shared(t, '''
[ "$ONCE_ATTEMPT" = 1 ] || { status 201; exit; }
export PATH="%s:$PATH"
setsid env -i PATH="$PATH" sh -c '
    echo $$ > "$0/old.here"; read -r _ < "$0/old.open"
    export ONCE_TOKEN="$1" ONCE_DATABASE="$2"
    for what in "checkpoint late" "emit mail" respond
    do  printf "Status: 200\\n\\nlate" | oncectl $what 2>> "$0/said"
        echo $? >> "$0/said"
    done
    echo end > "$0/ended"' "$D" "$ONCE_TOKEN" "$ONCE_DATABASE" \
    3>&- >/dev/null 2>&1 &
exec sleep 1000''' % t.handlers, on_crash='resume')
    once.begin('k')
    pid = old.wait()
    t.defer(lambda: proc.kill(pid, signal.SIGKILL))
    once.kill()
    once.start()
    released(once)
    answer = once.post('k')
    first(answer, 201)
    old.open()
    t.wait_file('ended')
    wait_until(lambda: not proc.alive(pid), 'the old one has ended')
    eq(t.read('said').decode().splitlines(),
       [line for args in ALL
        for line in ('oncectl: %s: lease lost' % args[0], '1')])
    is_nothing(once)
    replay(once.post('k'), answer)


def test_bad_values(t):
    running = Running(t)
    for args, input, message in (
            (('checkpoint', ''), b'', 'checkpoint: once_checkpoint.'
             'recovery_point: '),
            (('checkpoint', 'x' * 64), b'', 'checkpoint: once_checkpoint.'
             'recovery_point: '),
            (('checkpoint', 'a\nb'), b'', 'checkpoint: once_checkpoint.'
             'recovery_point: '),
            (('emit', 'sms'), b'p', 'emit: once_outbox.topic: '),
            (('emit', 'mail'), b'x' * 16777217,
             'emit: once_outbox.payload: longer than 16777216 bytes'),
            (('respond',), b'Status: 200\n\n' + b'x' * 16777217,
             'respond: once_response.body: longer than 16777216 bytes'),
            (('respond',), b'Status: 200\n\n' + b'x' * 20000000,
             'respond: once_response.body: longer than 16777216 bytes')):
        error = running.say(*args, input=input, status=1)
        assert error.startswith('oncectl: ' + message), error
    is_nothing(running.once)
    eq(running.once.state('k'), 'in_progress')
    first(running.end(), 200, b'printed\n')


def test_heads_that_are_none(t):
    running = Running(t)
    for head, message in (
            (b'', 'empty: give a CGI response'),
            (b'Status: 200\n', 'head has no end'),
            (b'Status 200\n\n', 'no field'),
            (b'X-A: b\n\n', 'neither Content-Type, Location nor Status'),
            (b'Status: 199\n\n', 'Status is no final status'),
            (b'Status: 200\nStatus: 201\n\n', 'two different'),
            (b'Content-Type: a/b\nContent-Type: a/c\n\n', 'two different'),
            (b'Status: 200\nContent-Length: 3\n\nfour', 'has 4 bytes'),
            (b'Status: 200\nContent-Length: x\n\n', 'is no number'),
            (b'Status: 200\nIdempotency-Outcome: unknown\n\n',
             'its Idempotency-Outcome is not "completed"'),
            (b'Location: /other\n\n', 'local redirect'),
            (b'Status: 200\nX-Sendfile: /etc/passwd\n\n', 'X-Sendfile'),
            (b'Status: 200\nX-A: ' + b'x' * 70000 + b'\n\n',
             'head is too long')):
        error = running.say('respond', input=head, status=1)
        assert error.startswith('oncectl: standard input: ') and \
            message in error, '%r: %r' % (head[:80], error)
    eq(running.once.state('k'), 'in_progress')
    first(running.end(), 200, b'printed\n')


def said(t, input, status, body):
    running = Running(t)
    running.say('respond', input=input, status=0)
    answer = running.end()
    first(answer, status, body)
    replay(running.once.post('k'), answer)
    return answer


def test_fields_that_are_not_handed_on(t):
    answer = said(t, b'HTTP/1.1 404 Lost\r\nContent-Length: 4\r\n'
                  b'Connection: X-Gone\r\nX-Gone: 1\r\nX-CGI-A: 1\r\n'
                  b'Idempotent-Replayed: true\r\n'
                  b'Idempotency-Outcome: completed\r\nX-Kept: 1\r\n\r\n'
                  b'gone', 404, b'gone')
    names = {n.lower() for n, _ in answer.fields}
    for name in ('connection', 'x-gone', 'x-cgi-a', 'idempotency-outcome'):
        assert name not in names, str(answer)
    eq(answer.get('X-Kept'), '1', answer)


def test_a_field_that_is_not_utf_8(t):
    head = b'Status: 200\r\nX-Latin: \xe9\r\n\r\n'
    if base.POSTGRES:
        running = Running(t)
        error = running.say('respond', input=head, status=1)
        eq(error, 'oncectl: respond: text that is not UTF-8, which '
           'PostgreSQL does not store\n')
        running.end()
    else:
        answer = said(t, head, 200, b'')
        eq(answer.get('X-Latin'), '\u00e9', answer)


def test_a_field_that_is_utf_8(t):
    answer = said(t, b'Status: 200\r\nX-Name: \xc3\xa9\r\n\r\n', 200, b'')
    eq(answer.get('X-Name'), '\u00c3\u00a9', answer)


def test_a_redirect(t):
    answer = said(t, b'Location: https://example.org/\n\n', 302, b'')
    eq(answer.get('Location'), 'https://example.org/', answer)


def test_a_body_of_any_bytes(t):
    body = bytes(range(256)) * 1000
    said(t, b'Content-Type: a/b\n\n' + body, 200, body)


def test_the_longest_body_and_payload(t):
    running = Running(t)
    body = b'\0' * 16777216
    running.say('emit', 'mail', input=body, status=0)
    running.say('respond', input=b'Status: 200\n\n' + body, status=0)
    answer = running.end()
    first(answer, 200)
    assert answer.body == body
    (topic, payload), = running.once.effects()
    assert (topic, payload) == ('mail', body)


def test_a_second_answer(t):
    running = Running(t)
    running.say('respond', status=0)
    eq(running.say('respond', status=1), 'oncectl: respond: once_response: '
       'this attempt has answered already\n')
    running.say('checkpoint', 'after', status=0)
    running.say('emit', 'mail', input=b'', status=0)
    answer = running.end()
    first(answer, 201, b'said\n')
    eq(running.once.effects(), [('mail', b'')])
    eq(running.once.row('k')['recovery_point'], 'after')


def test_effects_do_not_come_apart_from_what_they_belong_to(t):
    running = Running(t)
    t.write('one', b'1\0\n')
    t.write('two')
    running.say('checkpoint', 'far', '--emit', 'mail=' + t.path('one'),
                status=0)
    running.say('respond', '--emit', 'mail=' + t.path('two'), '--emit',
                'mail=' + t.path('one'), status=0)
    first(running.end(), 201, b'said\n')
    eq(running.once.effects(), [('mail', b'1\0\n'), ('mail', b''),
                               ('mail', b'1\0\n')])
    eq(running.once.row('k')['recovery_point'], 'far')


def test_effect_that_is_refused_takes_all_of_it_along(t):
    running = Running(t)
    t.write('one', b'1')
    t.write('long', b'x' * 16777217)
    for first_words in (('checkpoint', 'far'), ('respond',)):
        for emit, message in (
                (('sms=' + t.path('one'),), 'once_outbox.topic: no effect of '
                 'that name is configured (topic "sms")'),
                (('mail=' + t.path('one'), 'sms=' + t.path('one')),
                 'is configured (topic "sms")'),
                (('mail=' + t.path('long'),),
                 'once_outbox.payload: longer than 16777216 bytes (topic '
                 '"mail")'),
                (('mail=' + t.path('missing'),),
                 'missing: No such file or directory'),
                (('mail=' + t.dir,), 'Is a directory')):
            args = [word for e in emit for word in ('--emit', e)]
            error = running.say(*first_words, *args, status=1)
            assert message in error, error
    first(running.end(), 200, b'printed\n')
    eq(running.once.effects(), [])
    eq(running.once.row('k')['recovery_point'], 'started')


# --- what can be tried again, and what is used wrongly ------------------------

def waits(once):
    """Whether oncectl waits for the lock."""
    if base.POSTGRES:
        return once.sql("SELECT 1 FROM pg_stat_activity WHERE datname = "
                        "current_database() AND wait_event_type = 'Lock'")
    # It has the database open.
    return any(once.database in link
               for pid in proc.descendants(os.getpid())
               if 'respond' in proc.describe(pid)
               for link in proc.open_files(pid))


def test_the_lock_is_waited_for(t):
    running = Running(t)
    lock = Lock(t, running.once.database)
    for args in ALL:
        eq(running.say(*args, '--wait', '50ms', status=75),
           'oncectl: %s: database is locked\n' % args[0])
        eq(running.say(*args, '--wait', '0', status=75),
           'oncectl: %s: database is locked\n' % args[0])
    waiting = Background(lambda: running.say('respond', '--wait', '1h'))
    wait_until(lambda: waits(running.once), 'it waits')
    lock.release()
    eq(waiting.result(), (0, ''))
    first(running.end(), 201, b'said\n')


def test_a_full_disk(t):
    os.mkdir(t.path('disk'))
    mount(t, t.path('disk'), 'size=4m')
    running = Running(t, database=t.path('disk/once.db'))
    fill(t)
    eq(running.say('emit', 'mail', input=b'x' * 1000000, status=75),
       'oncectl: emit: database or disk is full\n')
    is_nothing(running.once)
    os.unlink(t.path('disk/filler'))
    running.say('emit', 'mail', input=b'x' * 1000000, status=0)
    running.say('respond', status=0)
    first(running.end(), 201, b'said\n')
    eq(running.once.effects(), [('mail', b'x' * 1000000)])


def test_a_database_that_is_not_shared_with_that_user(t):
    base.need_root()
    once = t.once(handler=t.sh('status 201'))
    shutil.copy(base.ONCECTL, t.path('oncectl'))
    os.chmod(t.path('oncectl'), 0o755)
    for args in ALL:
        run = t.run([t.path('oncectl')] + list(args), input=ANSWER, user=1,
                    group=1, extra_groups=[], env=dict(
                        ONCE_DATABASE=once.database, ONCE_TOKEN='t'))
        eq((run.returncode, run.stdout), (1, b''))
        assert b': Permission denied: ' in run.stderr, run.stderr


def test_wrong_usage(t):
    running = Running(t)
    for args in (('checkpoint',), ('checkpoint', 'a', 'b'), ('emit',),
                 ('emit', 'a', 'b'), ('respond', 'a'),
                 ('checkpoint', 'a', '--wait', '5'),
                 ('checkpoint', 'a', '--wait'),
                 ('checkpoint', 'a', '--scope', 's'),
                 ('respond', '--emit', 'mail'), ('respond', '--emit', '=x'),
                 ('respond', '--emit', 'mail='),
                 ('respond',) + ('--emit', 'mail=/dev/null') * 17,
                 ('emit', 'mail', '--emit', 'mail=/dev/null'),
                 ('ls', '--wait', '5s')):
        running.say(*args, status=2)
    for args in ALL:
        error = say(t, running.once, None, *args, status=2)
        assert 'ONCE_TOKEN is not set' in error, error
        # Whatever its input is.
        run = t.run([base.ONCECTL, '-d', running.once.database] + list(args) +
                    ['--emit', 'mail=/nowhere'][:2 * (args[0] != 'emit')],
                    input=b'')
        eq(run.returncode, 2, run.stderr)
        env = dict(os.environ, ONCE_TOKEN=running.token)
        run = t.run([base.ONCECTL] + list(args), input=ANSWER, env=env)
        eq(run.returncode, 2)
        assert b'no database is named' in run.stderr, run.stderr
        # An option wins.
        eq(say(t, running.once, running.token, '-d', running.once.database,
               *args, database='/nowhere'), (0, ''))
    first(running.end(), 201, b'said\n')


def test_databases_that_are_none(t):
    running = Running(t)
    t.write('text', 'no database, and rather long for a text' * 50)
    t.write('empty')
    foreign = sqlite3.connect(t.path('foreign'))
    foreign.execute('CREATE TABLE t(a)')
    foreign.close()
    for name, message in (('missing', 'No such file'), ('text', 'not a '
                          'database'), ('empty', 'empty'),
                          ('foreign', 'belongs to another program')):
        for args in ALL:
            before = t.exists(name) and t.read(name)
            error = running.say(*args, database=t.path(name), status=1)
            assert message in error and name in error, error
            eq(t.exists(name) and t.read(name), before)
    running.end()


def test_nothing_else_is_touched(t):
    """Neither the lock file, nor the schema of an older release."""
    running = Running(t)
    running.say('respond', status=0)
    running.end()
    once = running.once
    once.stop()
    os.unlink(once.database + '-lock')
    eq(running.say('checkpoint', 'late', status=1),
       'oncectl: checkpoint: lease lost\n')
    assert not os.path.exists(once.database + '-lock')
    once.sql('PRAGMA user_version = 2')
    error = running.say('checkpoint', 'late', status=1)
    assert 'older release' in error, error
    eq(once.sql('PRAGMA user_version'), [(2,)])
    once.sql('PRAGMA user_version = 99')
    error = running.say('checkpoint', 'late', status=1)
    assert 'newer release' in error, error
