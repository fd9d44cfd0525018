"""The statements of the PostgreSQL store where several processes use it at the
same time; and what they count and leave behind."""
from answer import eq
from pgsql import (OWNER, TOKEN, admit, digest, ended, grant, lose, record,
                   reserve, store)

OTHER = 'f' * 32


def is_whole(once):
    """Nothing is left behind, and the bytes are counted right."""
    for name, n in (('doctor_bodies', 2), ('doctor_requests', 5),
                    ('doctor_effects', 4)):
        eq(once.run(name), [['0'] * n], name)


def kept(once):
    return int(once.run('kept_bytes')[0][0])


def state(once, id=1):
    return once.value('SELECT state FROM once_key WHERE id = %d' % id)


def accept(once, id, key, caller=11):
    admit(once, key)
    once.run('record_new', *record(id, key, 'pending', caller, queued=True))
    once.run('request_new', id, b'E=1\0', b'body', 4, 0)


# --- reserving ------------------------------------------------------------

def test_one_of_two_reservations_wins(t):
    server, once = store(t)
    boss = server.session('postgres')
    second = server.session(prepare=server.queries)
    second.text('record_new', *record(3, 'k'))
    once.do('BEGIN')
    reserve(once, id=2)
    second.send(second.text('record_new', *record(3, 'k', token=OTHER)))
    second.waits(boss)
    once.do('COMMIT')
    eq(second.answer(), [])
    # Its request is not stored either.
    second.run('request_new', 3, b'E', b'x', 1, 0)
    eq(once.value('SELECT id FROM once_key'), '2')
    is_whole(once)


def test_what_limits_are_for_is_counted(t):
    _, once = store(t)
    for key in 'ab':
        reserve(once, key)
    eq(admit(once, 'a')['id'], '1')
    eq(admit(once, 'c')['id'], '')
    eq(once.run('active_beyond', 11, 3, 0), [])
    eq(once.run('active_beyond', 12, 1, 0), [])
    eq(once.run('active_beyond', 11, 2, 0), [['1']])
    lose(once, 1)
    eq(once.run('active_beyond', 11, 2, 0), [])
    eq(admit(once, 'c', max_open=1)['open'], '1')
    eq(admit(once, 'c', max_open=1, caller=12)['open'], '')
    eq(admit(once, 'c', max_open=2)['open'], '')


def room(once, key, more, half):
    return once.run('kept_room', digest(key), key.encode(), b'/payments',
                    b'alice', 0, more, half)


def test_requests_are_counted_once(t):
    _, once = store(t)
    reserve(once, 'a', request=(b'E', b'x' * 99))
    eq(kept(once), 100)
    eq(room(once, 'b', 5, 105), [['100', '']])
    eq(room(once, 'b', 6, 105), [['100', '100']])
    eq(room(once, 'a', 6, 0), [['0', '0']])
    once.run('request_new', 1, b'E', b'x', 1, 0)
    eq(kept(once), 2)
    is_whole(once)


def test_what_waits_is_counted(t):
    _, once = store(t)
    for i in (1, 2):
        accept(once, i, 'k%d' % i)
    accept(once, 3, 'k3', caller=12 << 22)
    eq(once.run('queue_length', None, 11, 0), [['3', '2']])
    eq(once.run('queue_length', 1, 11, 0), [['0', '0']])
    eq(kept(once), 3 * 8)
    is_whole(once)


# --- suspicion ------------------------------------------------------------

def suspect(once):
    """As step_suspect() does."""
    once.do("UPDATE once_key SET state = 'unknown', late_token = token, "
            "token = NULL, owner = NULL, locked_until = NULL WHERE id = 1")


def test_a_process_that_has_moved_is_not_suspected(t):
    _, once = store(t)
    once.do(once.text('owner_new', OWNER, 'machine', 'boot', 1))
    once.run('owner_beat', OWNER, 'machine', 'boot', 1)
    eq(once.run('owner_still', OWNER, 1), [])
    eq(once.run('owner_still', OWNER, 2), [['1']])


def test_a_process_moves_while_another_one_suspects_it(t):
    server, once = store(t)
    suspected = server.session(prepare=server.queries)
    once.do(once.text('owner_new', OWNER, 'machine', 'boot', 1))
    once.do('BEGIN')
    eq(once.run('owner_still', OWNER, 1), [['1']])
    suspected.do('SET lock_timeout = 1000')
    suspected.run('owner_beat', OWNER, 'machine', 'boot', 1)
    once.do('COMMIT')
    eq(once.run('owner_still', OWNER, 1), [])


def test_the_row_of_a_process_stays_as_long_as_it_has_a_lease(t):
    _, once = store(t)
    reserve(once)
    once.do(once.text('owner_new', OWNER, 'machine', 'boot', 1))
    once.do(once.text('session_new', OWNER, 0))
    rows = 'SELECT (SELECT count(*) FROM once_owner) + count(*) ' \
        'FROM once_session'
    for _ in range(2):
        once.do(once.text('owner_delete', OWNER))
        once.do(once.text('session_delete', OWNER))
        eq(once.value(rows), '2')
        once.do('UPDATE once_owner SET beat = beat + 1')
    once.run('record_write_answer', *ended(1))
    once.do(once.text('owner_delete', OWNER))
    once.do(once.text('session_delete', OWNER))
    eq(once.value(rows), '0')


# --- handlers -------------------------------------------------------------

def test_a_handler_in_its_transaction_keeps_its_lease(t):
    server, once = store(t)
    grant(once)
    app, boss = server.session('app'), server.session('postgres')
    other = server.session(prepare=server.queries)
    reserve(once)
    app.do('BEGIN')
    app.do("SELECT once_outbox('%s-1', 'mail', 'x')" % TOKEN)
    # A pass leaves the key for later; the end of the attempt waits.
    eq(once.run('recover_rows', OWNER, 0, 10, 0), [])
    other.text('record_read', 1)
    other.send(other.text('record_read', 1))
    other.waits(boss)
    app.do("SELECT once_response('%s-1', 201, '', 'x')" % TOKEN)
    app.do('COMMIT')
    eq(other.answer()[0].split('|')[9], 'completed')
    eq(state(once), 'completed')
    is_whole(once)


def test_a_handler_whose_lease_ends_meanwhile_has_written_nothing(t):
    server, once = store(t)
    grant(once)
    app, boss = server.session('app'), server.session('postgres')
    reserve(once)
    words = ("outbox('%s-1', 'mail', 'x')", "checkpoint('%s-1', 'x')",
             "response('%s-1', 201, '', 'x')")
    for level, word in [(level, word) for word in words for level in (
            'read committed', 'repeatable read')]:
        app.do('BEGIN ISOLATION LEVEL ' + level)
        app.do('SELECT 1')
        once.do('BEGIN')
        suspect(once)
        app.send('SELECT once_' + word % TOKEN)
        app.waits(boss)
        once.do('COMMIT')
        assert 'ERROR' in app.answer()[0], word
        app.lines('COMMIT')
        eq(once.do("SELECT state || coalesce(recovery_point, '') || (SELECT "
                   'count(*) FROM once_effect) FROM once_key'), ['unknown0'])
        once.do('DELETE FROM once_key')
        reserve(once, id=1)


# What the steps of an effect write.
FOUND = ('pending', 0, None)
BEGUN = ('pending', 1, False, 0, OWNER, None, None, 1, True)
TRIED = ('pending', 1, OWNER)
ENDED = ('delivered', 1, False, 0, None, b'ok', None, 1, False)
DUE = ('pending', 0, True, 1, None, None, None, 1, True)


def test_an_effect_that_comes_while_the_last_one_ends_gets_its_turn(t):
    server, once = store(t)
    grant(once)
    app, boss = server.session('app'), server.session('postgres')
    other = server.session(prepare=server.queries)
    emit = "SELECT once_outbox('%s-1', 'mail', 'x')" % TOKEN
    reserve(once)
    app.do(emit)
    once.run('effect_write', 1, *FOUND, *BEGUN)
    # The effect ends first: the handler waits, and gives the turn itself.
    once.do('BEGIN')
    eq([row[0] for row in once.run('effect_read', 1)], ['1'])
    eq(once.run('effect_first', 1), [])
    once.run('effect_write', 1, *TRIED, *ENDED)
    app.send(emit)
    app.waits(boss)
    once.do('COMMIT')
    eq(app.answer(), [''])
    is_whole(once)
    # The handler is first: the end of the effect waits, and passes it on.
    once.run('effect_write', 2, *FOUND, *BEGUN)
    other.run('effect_first', 2)
    app.do('BEGIN')
    app.do(emit)
    other.text('effect_read', 2)
    other.do('BEGIN')
    other.send(other.text('effect_read', 2))
    other.waits(boss)
    app.do('COMMIT')
    eq(len(other.answer()), 1)
    eq([row[0] for row in other.run('effect_first', 2)], ['3'])
    other.run('effect_write', 2, *TRIED, *ENDED)
    other.run('effect_write', 3, *FOUND, *DUE)
    other.do('COMMIT')
    is_whole(once)
    eq(once.do('SELECT id FROM once_effect WHERE next_at IS NOT NULL'), ['3'])


# --- passes ---------------------------------------------------------------

def test_a_job_that_another_process_takes_is_not_waited_for(t):
    server, once = store(t)
    other = server.session(prepare=server.queries)
    accept(once, 1, 'k')
    accept(once, 2, 'o')
    once.do('BEGIN')
    eq([row[0] for row in once.run('record_read_free', 1)], ['1'])
    # As step_start() does.
    once.do("UPDATE once_key SET state = 'in_progress', attempt = 1, "
            "token = '%s', owner = %d, locked_until = 1000, "
            "expires_at = NULL, queued_at = NULL WHERE id = 1" %
            (TOKEN, OWNER))
    eq(other.run('record_read_free', 1), [])
    eq([row[0] for row in other.run('job_next', 1, 0, None)], ['2'])
    once.do('COMMIT')
    eq([row[0] for row in other.run('job_next', 0, 0, None)], ['2'])
    eq([row[0] for row in other.run('record_read_free', 2)], ['2'])
    is_whole(once)


def test_two_passes_take_different_keys(t):
    server, once = store(t)
    other = server.session(prepare=server.queries)
    for i in range(1, 7):
        token = '%032x' % i
        reserve(once, 'k%d' % i, token=token)
        once.run('record_write_answer', *ended(i, token, 0))
        once.do('UPDATE once_key SET expires_at = %d WHERE id = %d' %
                (7 - i, i))
    once.do('BEGIN')
    first = once.run('expire_rows', 0, 'none', 0, 3, None)
    second = other.run('expire_rows', 0, 'none', 0, 10, None)
    once.do('COMMIT')
    eq([[row[0] for row in rows] for rows in (first, second)],
       [['6', '5', '4'], ['3', '2', '1']])
    eq([row[0] for row in
        once.run('expire_rows', 3, 'completed', 4, 10, None)],
       ['3', '2', '1'])


def test_doctor_sees_what_is_missing_and_what_is_foreign(t):
    server, once = store(t)
    eq(once.run('missing_parts'), [['0', '']])
    eq(once.run('foreign_parts'), [['0', '']])
    once.do('CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS '
            "'BEGIN RETURN NULL; END'")
    once.do('CREATE TRIGGER planted BEFORE INSERT ON once_key FOR EACH ROW '
            'EXECUTE FUNCTION f()')
    once.do('GRANT SELECT ON once_meta TO app')
    eq(once.run('foreign_parts'), [
        ['2', 'rights of role app on once_meta, trigger planted']])
    once.do('DROP INDEX once_key_queue')
    eq(once.run('missing_parts'), [['1', 'once_key_queue']])
    eq(once.run('meta')[0][0], '1')
