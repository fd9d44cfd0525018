"""The statements of the PostgreSQL store: that each prepares, by which plan it
runs, and that a change of state changes one key in its states only."""
import json
import os
import re

import base
from answer import eq
from pgsql import FILES, TOKEN, clear, digest, ended, statements, store

LATE = 1 << 49      # not yet (ms)
STATES = ('pending', 'in_progress', 'completed', 'failed_retryable', 'unknown',
          'dead_letter', 'expired')
# The types of parameters and of columns, but for "void" of functions.
TYPES = {'bigint', 'boolean', 'uuid', 'bytea', 'text', 'void'}


def nulls(text):
    n = max([int(i) for i in re.findall(r'\$(\d+)', text)] or [0])
    return '(%s)' % ', '.join(['NULL'] * n) if n else ''


def every_statement():
    """Those that PREPARE takes."""
    return [s for file in FILES for s in statements(file)
            if s[0] not in ('begin', 'begin_read', 'commit', 'rollback')]


def test_each_statement_prepares_and_its_types_are_few(t):
    _, once = store(t)
    for name, text, _ in every_statement():
        once.do('PREPARE p AS ' + text)
        types = once.do(
            "SELECT unnest(parameter_types)::text FROM pg_prepared_statements "
            "WHERE name = 'p'")
        types += [line.split('|')[1] for line in once.do(
            '%s \\gdesc' % text.rstrip(';'))
            if line.count('|') == 1]
        if name == 'copy_keys':     # it has arrays of them
            types = [each.removesuffix('[]') for each in types]
        assert set(types) <= TYPES, (name, types)
        assert types or '$' not in text, name
        once.do('DEALLOCATE p')


CATALOG = re.compile(r'\b(FROM|JOIN) pg_|has_\w+_privilege')


# --- plans ----------------------------------------------------------------

def scans(once, node):
    """The tables that a plan reads whole."""
    kind, index = node['Node Type'], node.get('Index Name')
    if kind == 'Seq Scan':
        return [node['Relation Name']]
    if index and not index.startswith('pg_'):
        partial, column = once.value(
            'SELECT indpred IS NOT NULL, pg_get_indexdef(indexrelid, 1, true) '
            "FROM pg_index WHERE indexrelid = '%s'::regclass" %
            index).split('|')
        # It begins somewhere in the index, or all of the index is short.
        if partial == 'f' and not re.search(r'\b%s\b' % column,
                                            node.get('Index Cond', '')):
            return [index]
    children = node.get('Plans', [])
    if kind == 'Limit' and 'Index Name' in children[0]:
        children = children[1:]     # some rows, in the order of the index
    return [scan for child in children for scan in scans(once, child)]


def test_no_statement_scans_without_a_reason(t):
    _, once = store(t)
    once.do('SET plan_cache_mode = force_generic_plan')
    once.do('SET enable_seqscan = off')
    for name, text, reason in every_statement():
        once.do('DEALLOCATE ALL')
        once.do('PREPARE q_%s AS %s' % (name, text))
        plan = json.loads('\n'.join(once.do(
            'EXPLAIN (FORMAT JSON) EXECUTE q_%s%s' % (name, nulls(text)))))
        found = scans(once, plan[0]['Plan'])
        if name in ('topic_any', 'copy_target') or CATALOG.search(text):
            continue        # one row of a few, or the catalog's tables
        assert bool(found) == reason, (name, found)


def test_passes_find_few_rows_among_many_keys(t):
    _, once = store(t)
    once.do('%s, expires_at, status) SELECT %s, g + %d, 200 '
            'FROM generate_series(1, 20000) g' % (INSERT, VALUES % (
                'g', "decode(lpad(to_hex(g), 32, '0'), 'hex')", 'completed'),
                LATE))
    once.do('ANALYZE once_key')
    for name, values in (
            ('find', (digest('x'), b'x', b'/', b's')),
            ('job_next', (0, 0, None)), ('job_abandoned', (5,)),
            ('reconcile_first', (None, 1)), ('reconcile_due', (None, 0, 1)),
            ('recover_rows', (7, 0, 10, 0)),
            ('expire_rows', (0, 'none', 0, 100, None)),
            ('expire_ahead', (0, 'none', 0, 100, None)), ('gauge_open', ()),
            ('gauge_running', (0,)), ('status', ('0' * 32,)),
            ('record_read', (1 << 40,)), ('record_look', (1 << 40,)),
            ('record_write_answer', ended(1 << 40)),
            ('tally', (0, 'none', 0, 100))):
        for mode in ('custom', 'generic'):
            once.do('SET plan_cache_mode = force_%s_plan' % mode)
            plan = '\n'.join(once.do('EXPLAIN ' + once.text(name, *values)))
            assert 'Seq Scan on once_key' not in plan, plan


# --- compare and set ------------------------------------------------------

INSERT = ('INSERT INTO once_key(id, caller, digest, fingerprint_spec, '
          'retention, '
          'created_at, updated_at, downstream, attempt, fingerprint, key, '
          'path, scope, state')
VALUES = ("%s, 11, %s, 1, 1000, 1, 1, "
          "'11111111-1111-4111-8111-111111111111', 1, 'f', 'k', '/', 's', "
          "'%s'")
SHAPES = {
    'pending': ('expires_at', '5'),
    'in_progress': ('token, owner, locked_until', "'%s', 7, 5" % TOKEN),
    'completed': ('expires_at, replayable, status', '5, true, 200'),
    'failed_retryable': ('expires_at', '5'),
    'expired': ('expires_at', '5'),
    'unknown': ('reconcile_delay', '5'),
    'dead_letter': ('reconcile_delay', '5'),
}


def with_row(once, state, also=None):
    """Key 1 in that state is all there is."""
    clear(once)
    columns, values = SHAPES[state]
    once.do('%s, %s) VALUES (%s, %s)' % (
        INSERT, columns, VALUES % (1, "'%s'" % ('d' * 16), state), values))
    if also:
        once.do('UPDATE once_key SET ' + also)


UNCONFIRMED = "token = '%s', owner = 7, locked_until = 5" % TOKEN
# What a record becomes: no new spec, and the values of $record_values.
RECORD = (-1, None, 'unknown', 1, None, None, None, False, 1000, 1, None, 0,
          None, None, 5, None, 0, None, False, None, False, None, None, None,
          b'f', 11, None, None, None, None)
# A statement; the states that it changes, and what such a row has besides; its
# parameters; and, for each that is compared, its place and a wrong value.
CHANGES = (
    ('record_write', 'in_progress', None,
     (1, 'in_progress', 1, TOKEN) + RECORD, {0: 2, 1: 'unknown', 2: 2,
                                             3: '0' * 32}),
    ('record_delete', 'completed', None, (1, 'completed', 1, None),
     {0: 2, 1: 'expired', 2: 2, 3: TOKEN}),
)
ROW = "SELECT id, xmin, ctid, k.* FROM once_key k"


def record_c():
    """The changes of state that record.c allows, those of an operator too."""
    with open(os.path.join(base.TOP, 'src', 'rules', 'record.c')) as f:
        return {(a.lower(), b.lower()) for a, b in re.findall(
            r'\{ RECORD_(\w+), RECORD_(\w+), BY', f.read())}


def changed(once, name, values):
    """(Whether it changes the key, the key's state then); it is undone."""
    before = once.do(ROW)
    once.do('BEGIN')
    once.do(once.text(name, *values))
    after = once.do(ROW)
    state = once.do('SELECT state FROM once_key')
    once.do('ROLLBACK')
    return before != after, state[0] if state else 'none'


def test_each_change_compares_before_it_sets(t):
    _, once = store(t)
    allowed = record_c()
    eq(len(allowed), 21)
    for name, states, also, values, compared in CHANGES:
        for state in STATES:
            if also:
                columns = set(re.findall(r'(\w+) =', also))
                fits = {'expires_at': ('pending', 'completed',
                                       'failed_retryable', 'expired'),
                        'token': ('completed',)}
                if any(state not in fits.get(c, STATES) for c in columns):
                    continue
            with_row(once, state, also)
            is_one = state in states.split()
            did, to = changed(once, name, values)
            assert did == is_one, (name, state, also)
            if did and to not in (state, 'none'):
                assert (state, to) in allowed, (name, state, to)
            for place, wrong in compared.items() if is_one else ():
                other = values[:place] + (wrong,) + values[place + 1:]
                did, _ = changed(once, name, other)
                assert not did, (name, state, place)


BROKEN = (
    ('in_progress', 'token = NULL, owner = NULL, locked_until = NULL'),
    ('in_progress', 'owner = NULL'), ('in_progress', 'expires_at = 5'),
    ('in_progress', 'locked_until = NULL'),
    ('failed_retryable', "token = 'x', owner = 7, locked_until = 5"),
    ('failed_retryable', "late_token = 'x'"),
    ('pending', 'queued_at = 7'),
    ('completed', 'accepted = true, queued_at = 7'),
    ('completed', 'status = NULL'), ('completed', 'status = 100'),
    ('failed_retryable', 'replayable = true'), ('unknown', 'expires_at = 5'),
    ('dead_letter', 'reconcile_after = 5'),
    ('failed_retryable', 'attempt_lock = 5'), ('unknown', "state = 'none'"),
    ('unknown', "digest = 'short'"), ('unknown', 'retention = -1'),
)


def test_the_schema_refuses_rows_that_break_an_invariant(t):
    _, once = store(t)
    for state, change in BROKEN:
        with_row(once, state)
        error = once.error('UPDATE once_key SET ' + change)
        assert error and 'violates check constraint' in error, (change, error)
