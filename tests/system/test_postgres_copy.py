"""oncectl copy: all of an SQLite store into a PostgreSQL database, or nothing.

Where it says `at a lock`, another session holds a lock that the copy needs, so
that the copy waits at a known place.
"""
import contextlib
import email.utils
import json
import os
import signal
import sqlite3
import subprocess

import base
from answer import eq, first, problem, replay
from base import wait_until
from clocks import HOUR, Clocks
from lib.postgres import account, program
from once import Background
from test_outbox import section
from test_postgres_ops import ctl, daemon, environment, has, refused, servers

HELLO = 'printf "Content-Type: text/plain\\n\\nhello $ONCE_KEY"'
LOST = 'echo "Content-Type: text/plain"; echo; kill -9 $$'
BIG = ('printf "Status: 201\\nX-A: b\\n\\n"; '
       'head -c 500000 /dev/zero | tr "\\0" x')


def emitter(t):
    return t.sh('printf "%%s pays" "$ONCE_KEY" | %s emit mail && '
                ': | %s emit later && (printf "Status: 201\\nX-Own: yes\\n'
                '\\n"; head -c 5000 /dev/zero) | %s respond'
                % (3 * (base.ONCECTL,)))


def routes(t):
    return {
        '/big': {'handler': t.sh(BIG), 'fingerprint_headers': 'X-B'},
        '/lost': {'handler': t.sh(LOST), 'reconcile': '/bin/false',
                  'reconcile_after': '1h'},
        '/refused': {'handler': t.sh('echo "no head"; exit 3')},
        '/gone': {'handler': t.sh(HELLO), 'retention': '1ms',
                  'on_expired': 'gone', 'expired_retention': '2h'},
        '/emit': {'handler': emitter(t), 'share_database': 'yes'},
        '/free': {'handler': t.sh(
            'status 200; [ "$ONCE_ATTEMPT" != 1 ] || exit 75')},
    }


def source(t):
    """A stopped daemon whose store has something of each kind."""
    mail = section('mail', t.sh('cat >> "$D/mails"; echo ref-1', name='mail'))
    later = section('later', t.sh('exit 75', name='later'), backoff='1h')
    old = t.once(t.sh(HELLO), routes=routes(t), name='old',
                 conf=mail + later)
    old.answers = {'k1': old.post('k1')}
    first(old.answers['k1'])
    old.answers['k2'] = old.post('k2', path='/big')
    eq(len(old.answers['k2'].body), 500000)
    problem(old.post('k3', path='/lost', body=b'body of k3'),
            'handler-failed', unknown=True)
    old.post('k4', path='/refused')
    first(old.post('k5', path='/gone'))
    first(old.post('k6', path='/emit'), 201)
    old.answers['k6'] = old.post('k6', path='/emit')
    old.post('k8', path='/free')
    # An attempt is counted when it begins.
    wait_until(lambda: {(r['state'], r['last_error'] is None)
                        for r in outbox(old)} == {('delivered', True),
                                                  ('pending', False)},
               'each effect was tried')
    old.ctl('reap')
    old.before = old.ls(), outbox(old)
    eq(len(old.before[0]), 7)
    old.stop()
    return old


def outbox(once):
    return [json.loads(line) for line in
            once.ctl('outbox', 'ls', '--json').splitlines()]


def arguments(t, database, uri, patience='60s'):
    conf = t.write('normal.conf', '[server]\ndurability = normal\n'
                   'busy_timeout = %s\n' % patience)
    return ['-f', conf, '-d', database, '--json', 'copy', '--to', uri]


def copy(t, old, uri, **kw):
    return ctl(t, *arguments(t, old.database, uri, **kw))


def init(t, server):
    eq(ctl(t, '-f', arguments(t, '', '')[1], '-d', server.uri(),
           'init').returncode, 0)


def both(t):
    """A server with an empty store, and a source."""
    server = servers(t).make('a')
    init(t, server)
    return server, source(t)


def counted(run):
    eq((run.returncode, run.stderr), (0, b''), run)
    return json.loads(run.stdout)


def rows(server):
    return server.sql(
        'SELECT (SELECT count(*) FROM once_key), '
        '(SELECT count(*) FROM once_effect), '
        '(SELECT count(*) FROM once_fingerprint_spec), '
        '(SELECT count(*) FROM once_request)')


class Held:
    """A session that has run some statements in a transaction."""

    def __init__(self, t, server, text):
        self.process = subprocess.Popen(
            [program('psql'), '-XAtq', '-d', server.uri()], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **account())
        t.defer(self.release)
        self.process.stdin.write('BEGIN; %s; SELECT 1;\n' % text)
        self.process.stdin.flush()
        while self.process.stdout.readline().strip() != '1':
            assert self.process.poll() is None, 'psql has ended'

    def release(self):
        if self.process.poll() is None:
            self.process.communicate('ROLLBACK;\n')


def waits(server, n=1):
    wait_until(lambda: int(server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname IS NOT NULL")) >= n, '%d sessions wait' % n)


def begin(t, old, server, **kw):
    """A copy, for which another session holds a lock."""
    process = t.popen([base.ONCECTL] + arguments(t, old.database,
                                                 server.uri(), **kw),
                      'copy.log', stdout=subprocess.PIPE)
    waits(server)
    return process


def copied(answer, original):
    """A replay; the copy has another clock, so a second may be the next one."""
    replay(answer, original, ('set-cookie', 'date', 'idempotency-expires'))
    was, now = (email.utils.parsedate_to_datetime(a.get('Idempotency-Expires'))
                for a in (original, answer))
    assert abs((now - was).total_seconds()) <= 1, answer


def check_copy(t, old, server):
    """The target has all, and a daemon goes on with it."""
    new = daemon(t, server, HELLO, routes=old.routes, conf=old.conf)
    keys, effects = old.before
    for was, now in zip(keys, new.ls()):
        for name in ('key', 'path', 'scope', 'state', 'attempt', 'status',
                     'downstream', 'created_at', 'updated_at', 'last_error',
                     'recovery_point'):
            eq(now[name], was[name], name)
        for name in ('expires_at', 'reconcile_after'):
            eq(bool(now[name]), bool(was[name]), name)
    eq([{**e, 'next_at': 0} for e in outbox(new)],
       [{**e, 'next_at': 0} for e in effects])
    copied(new.post('k1'), old.answers['k1'])
    copied(new.post('k2', path='/big'), old.answers['k2'])
    problem(new.post('k3', path='/lost', body=b'body of k3'),
            'outcome-unknown', unknown=True)
    eq(new.post('k5', path='/gone').status, 410)
    copied(new.post('k6', path='/emit'), old.answers['k6'])
    first(new.post('k7'))
    # Nothing happened: it takes another request.
    first(new.post('k8', path='/free', body=b'another'))
    bad = [line.split()[1] for line in
           new.ctl('doctor', status=1).splitlines()
           if line.startswith('BAD')]
    assert 'rows' not in bad and 'bodies' not in bad and \
        'requests' not in bad and 'effects' not in bad, bad
    return new


def test_everything_comes_along_counted_and_compared(t):
    server = servers(t).make('a')
    old = source(t)
    counts = counted(copy(t, old, server.uri()))
    eq({k: counts[k] for k in ('keys', 'requests', 'outputs', 'effects')},
       {'keys': 7, 'requests': 1, 'outputs': 2, 'effects': 2})
    check_copy(t, old, server)


def test_a_daemon_that_runs_on_the_source_or_the_target_refuses_it(t):
    server = servers(t).make('a')
    old = t.once(t.sh(HELLO), name='old')
    refused(copy(t, old, server.uri()), 'a daemon uses it')
    old.stop()
    new = daemon(t, server)
    refused(copy(t, old, server.uri()), 'a daemon uses it')
    new.stop()
    counted(copy(t, old, server.uri()))


def test_a_target_with_keys_is_refused(t):
    server = servers(t).make('a')
    old = source(t)
    counted(copy(t, old, server.uri()))
    refused(copy(t, old, server.uri()), 'has keys or effects already')


def test_no_daemon_starts_on_the_source_during_a_copy(t):
    server, old = both(t)
    held = Held(t, server, 'LOCK TABLE once_key IN EXCLUSIVE MODE')
    process = begin(t, old, server)
    early = t.run([base.ONCEWRAP, '-f', old.file])
    assert early.returncode != 0, early
    has(early.stderr.decode(), 'oncectl copy')
    held.release()
    eq(process.wait(60), 0, t.read('copy.log'))
    check_copy(t, old, server)


def test_a_daemon_that_starts_on_the_target_waits_and_finds_all_keys(t):
    server, old = both(t)
    held = Held(t, server, 'LOCK TABLE once_effect IN EXCLUSIVE MODE')
    process = begin(t, old, server)
    new = t.once(t.sh(HELLO), server={'durability': 'normal',
                                      'busy_timeout': '60s'},
                 database=server.uri(), env=environment(t), start=False)
    new.start(wait=False)
    waits(server, 2)
    held.release()
    eq(process.wait(60), 0, t.read('copy.log'))
    new.wait_listening()
    # It has found the secret of the source, and so the key.
    copied(new.post('k1'), old.answers['k1'])


def test_a_source_that_is_slow_to_read_is_waited_for(t):
    server, old = both(t)
    held = Held(t, server, 'LOCK TABLE once_effect IN EXCLUSIVE MODE')
    process = begin(t, old, server, patience='4s')
    process.send_signal(signal.SIGSTOP)
    held.release()
    # A daemon's transaction may be idle for half of busy_timeout.
    wait_until(lambda: server.sql(
        "SELECT bool_and(state = 'idle in transaction' AND "
        "now() - state_change > '3 s') IS NOT FALSE FROM pg_stat_activity "
        "WHERE datname IS NOT NULL AND pid <> pg_backend_pid()"
    ) == 't', 'it was idle for long, or is gone')
    process.send_signal(signal.SIGCONT)
    eq(process.wait(60), 0, t.read('copy.log'))
    assert b'store-error' not in t.read('copy.log'), 'it began again'
    check_copy(t, old, server)


def killed_at(t, lock):
    server, old = both(t)
    nothing = rows(server)
    held = Held(t, server, lock)
    process = begin(t, old, server)
    process.kill()
    process.wait()
    held.release()
    wait_until(lambda: server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname IS NOT NULL") == '0', 'the server has noticed')
    eq(rows(server), nothing)
    counted(copy(t, old, server.uri()))
    check_copy(t, old, server)


def test_a_kill_before_the_first_row_leaves_nothing(t):
    killed_at(t, 'SELECT * FROM once_meta FOR UPDATE')


def test_a_kill_among_the_keys_leaves_nothing(t):
    killed_at(t, 'LOCK TABLE once_request IN EXCLUSIVE MODE')


def test_a_kill_among_the_effects_leaves_nothing(t):
    killed_at(t, 'LOCK TABLE once_effect IN EXCLUSIVE MODE')


def test_a_kill_after_all_rows_leaves_nothing(t):
    # The numbers that go on after theirs are set then.
    killed_at(t, 'ALTER SEQUENCE once_key_id CACHE 1')


def test_a_server_that_dies_during_a_copy_leaves_nothing(t):
    server = servers(t).make('a')
    for name in ('fsync', 'full_page_writes'):
        server.set(name, 'on')
    old = source(t)
    eq(ctl(t, '-d', server.uri(), 'init').returncode, 0)
    nothing = rows(server)
    Held(t, server, 'LOCK TABLE once_effect IN EXCLUSIVE MODE')
    process = begin(t, old, server, patience='5s')
    server.kill()
    eq(process.wait(), 1)
    server.start()
    eq(rows(server), nothing)
    counted(copy(t, old, server.uri()))
    check_copy(t, old, server)


def test_a_copy_whose_connection_is_lost_begins_again(t):
    group = servers(t)
    server = group.make('a')
    proxy = group.proxy('p', 'a')
    old = source(t)
    init(t, server)
    held = Held(t, server, 'ALTER SEQUENCE once_key_id CACHE 1')
    process = t.popen([base.ONCECTL] + arguments(t, old.database,
                                                 proxy.uri()), 'copy.log',
                      stdout=subprocess.PIPE)
    waits(server)
    proxy.cut()
    held.release()
    eq(process.wait(120), 0, t.read('copy.log'))
    eq(json.loads(process.stdout.read())['keys'], 7)
    check_copy(t, old, server)


def test_an_operator_who_changes_the_source_during_the_copy_is_noticed(t):
    server, old = both(t)
    nothing = rows(server)
    held = Held(t, server, 'LOCK TABLE once_effect IN EXCLUSIVE MODE')
    process = begin(t, old, server)
    eq(ctl(t, '-d', old.database, 'forget', 'k1', '--yes').returncode, 0)
    held.release()
    eq(process.wait(60), 1)
    has(t.read('copy.log').decode(), 'nothing was kept')
    eq(rows(server), nothing)


def test_a_row_that_makes_no_sense_refuses_the_copy(t):
    server, old = both(t)
    nothing = rows(server)
    for table, change, says in (
            ('once_key', "state = 'nonsense'",
             'has 7 keys, of which 6 can be read'),
            ('once_effect', "state = 'nonsense'",
             'has 2 effects, of which 1 can be read'),
            ('once_effect', 'id = -id',
             'has 2 effects, of which 1 can be read')):
        with contextlib.closing(sqlite3.connect(old.database)) as db:
            db.execute('PRAGMA ignore_check_constraints = 1')
            before = db.execute('SELECT id, state FROM %s ORDER BY id LIMIT 1'
                                % table).fetchone()
            db.execute('UPDATE %s SET %s WHERE id = ?' % (table, change),
                       before[:1])
            db.commit()
            refused(copy(t, old, server.uri()), says)
            eq(rows(server), nothing)
            db.execute('UPDATE %s SET id = abs(id), state = ? WHERE '
                       'abs(id) = ?' % table, before[::-1])
            db.commit()
    counted(copy(t, old, server.uri()))


CHANGE = """
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN NEW.%s = %s; RETURN NEW; END';
CREATE TRIGGER change BEFORE INSERT ON %s FOR EACH ROW %s
    EXECUTE FUNCTION change()"""


def changed(t, table, column, value, says):
    server, old = both(t)
    nothing = rows(server)
    server.sql(CHANGE % (column, value, table, ''))
    refused(copy(t, old, server.uri()), says)
    eq(rows(server), nothing)
    server.sql('DROP FUNCTION change CASCADE')
    counted(copy(t, old, server.uri()))


def test_a_byte_of_a_body_that_arrives_changed_undoes_the_copy(t):
    changed(t, 'once_piece', 'body',
            'CASE WHEN NEW.number = 2 THEN set_byte(NEW.body, 7, 7) '
            'ELSE NEW.body END',
            'the keys differ; nothing was kept')


def test_an_effect_that_arrives_changed_undoes_the_copy(t):
    changed(t, 'once_effect', 'attempts', '9',
            'the effects differ; nothing was kept')


PAGE = 64       # rows that each store is read by


def pages(t, handler=HELLO):
    """A server with an empty store, and a source of more than two pages."""
    server = servers(t).make('a')
    init(t, server)
    old = t.once(t.sh(handler), name='old')
    answers = {}
    for n in range(1, 2 * PAGE + 3):
        answers[n] = old.post('k%d' % n)
        first(answers[n])
    old.stop()
    return server, old, answers


def test_a_small_answer_that_arrives_changed_is_found_on_each_page(t):
    server, old, answers = pages(t)
    nothing = rows(server)
    for column in 'body', 'headers':
        for n in 1, PAGE, PAGE + 1, 2 * PAGE + 1, 2 * PAGE + 2:
            server.sql(CHANGE % (column, 'set_byte(NEW.%s, 0, 88)' % column,
                                 'once_key', 'WHEN (NEW.id = %d)' % n))
            refused(copy(t, old, server.uri()),
                    'the keys differ; nothing was kept')
            eq(rows(server), nothing)
            server.sql('DROP FUNCTION change CASCADE')
    counted(copy(t, old, server.uri()))


def test_small_and_large_answers_come_along_side_by_side(t):
    server, old, answers = pages(
        t, 'n=${ONCE_KEY#k}; '
        'printf "X-N: $n\\nContent-Type: text/plain\\n\\n"; '
        'head -c $((2041 + n % 16)) /dev/zero | tr "\\0" x')
    eq({len(answer.body) for answer in answers.values()},
       set(range(2041, 2057)))
    counted(copy(t, old, server.uri()))
    new = daemon(t, server)
    for n, answer in answers.items():
        again = new.post('k%d' % n)
        eq(again.replayed, 'true')
        eq((again.get('X-N'), again.body), (str(n), answer.body))


def test_a_key_with_a_status_resource_comes_along(t):
    server = servers(t).make('a')
    init(t, server)
    old = t.once(t.sh('exit 75'), name='old', server={'status_path': '/jobs'},
                 defaults={'async': 'always'})
    answer = old.post('k1')
    eq(answer.status, 202)
    wait_until(lambda: old.ls()[0]['state'] == 'failed_retryable',
               'its program was not able to run')
    old.stop()
    eq(counted(copy(t, old, server.uri()))['requests'], 1)
    eq(server.sql('SELECT state, accepted, resource FROM once_key'
                  ).split('|'),
       ['failed_retryable', 't', answer.json()['id']])


def test_a_stored_request_that_arrives_changed_undoes_the_copy(t):
    changed(t, 'once_request', 'body', 'set_byte(NEW.body, 0, 7)',
            'the keys differ; nothing was kept')


def test_what_is_left_of_a_retention_does_not_depend_on_the_hosts_clock(t):
    server = servers(t).make('a')
    clocks = Clocks(t)
    old = t.once(t.sh(HELLO), name='old', defaults={'retention': '3h'})
    first(old.post('k1'))
    clocks.passes(HOUR)
    first(old.post('k2'))
    old.stop()
    clocks.jump(1000 * HOUR)        # the host's clock is wrong, the server's
    counted(copy(t, old, server.uri()))             # is right
    left = server.sql(
        'SELECT round((expires_at / 1000.0 - '
        'extract(epoch FROM clock_timestamp())) / 600) FROM once_key '
        'ORDER BY key').split('\n')
    eq(left, ['12', '18'])


def test_keys_whose_scope_and_text_are_any_bytes_come_along(t):
    server = servers(t).make('a')
    old = t.once(t.sh(HELLO), name='old', defaults={
        'scope': 'REMOTE_USER'})
    odd = {'REMOTE_USER': 'J\xf6rg'}
    answer = old.post('k1', params=odd)
    first(answer)
    old.stop()
    counted(copy(t, old, server.uri()))
    new = daemon(t, server, defaults={'scope': 'REMOTE_USER'})
    replay(new.post('k1', params=odd), answer)


def test_a_source_that_is_not_a_store_is_refused(t):
    server = servers(t).make('a')
    refused(ctl(t, *arguments(t, t.path('none.db'), server.uri())),
            'none.db')
    init(t, server)
    refused(ctl(t, *arguments(t, server.uri(), server.uri())), 'pg_dump(1)')
    refused(ctl(t, *arguments(t, t.path('none.db'), t.path('x.db'))),
            'none.db')
