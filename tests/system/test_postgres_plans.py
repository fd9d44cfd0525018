"""The plans of the PostgreSQL store's statements, with many rows in each table:
before the server has statistics of them, and with them."""
import json

from pgsql import Server, digest, ended, record, statements

ROWS = 100000
LATE = 1 << 49      # not yet (ms)
# Tables that grow with the keys.
LARGE = {'once_key', 'once_request', 'once_piece', 'once_refused',
         'once_effect'}
# Their indexes that have all rows.
WHOLE = {'once_key_pkey', 'once_key_digest_key', 'once_key_expiry',
         'once_request_pkey', 'once_piece_pkey', 'once_refused_pkey',
         'once_effect_pkey', 'once_effect_of_key'}
# Asks whether there is any row, and reads no second one.
FIRST_ROW = {'copy_target'}
FILL = (
    # every hundredth key is unknown
    "INSERT INTO once_key(id, caller, digest, fingerprint_spec, retention, "
    "created_at,"
    " updated_at, downstream, attempt, fingerprint, key, path, scope, state,"
    " status, replayable, expires_at)"
    " SELECT g, g %% 1000, decode(lpad(to_hex(g), 32, '0'), 'hex'), 1, 1000,"
    " 1, 1, gen_random_uuid(), 1, 'f', g::text::bytea, '/', 's',"
    " CASE WHEN g %% 100 = 0 THEN 'unknown' ELSE 'completed' END, 200,"
    " g %% 100 <> 0, CASE WHEN g %% 100 <> 0 THEN g + %d END"
    " FROM generate_series(1, %d) g" % (LATE, ROWS),
    "INSERT INTO once_request(key_id, environment, body, body_length, pieces)"
    " SELECT g, 'A=b', 'body', 4, 0 FROM generate_series(1, %d) g" % ROWS,
    "INSERT INTO once_piece(number, piece, body)"
    " SELECT g, 1, 'body' FROM generate_series(1, %d) g" % ROWS,
    "INSERT INTO once_refused(key_id, attempt, exit_status, signal, length,"
    " output, errors)"
    " SELECT g, 1, 0, 0, 2, 'no', '' FROM generate_series(1, %d) g" % ROWS,
    "INSERT INTO once_effect(key_id, created_at, updated_at, effect_key,"
    " state, scope, path, key, topic)"
    " SELECT g, 1, 1, gen_random_uuid(), 'delivered', 's', '/',"
    " g::text::bytea, 'mail' FROM generate_series(1, %d) g" % ROWS,
)
# What requests wait for, with values: the server plans a statement for its
# values at first.
FREQUENT = (
    ('find', (digest('x'), b'x', b'/', b's')),
    ('answer', (7, b'7', b'/', b's')),
    ('admit', (digest('x'), b'x', b'/', b's', 11, 1000)),
    ('active_beyond', (11, 5, 0)),
    ('kept_room', (digest('x'), b'x', b'/', b's', 11 << 22, 5, 0)),
    ('queue_length', (None, 11, 0)),
    ('record_new', record(1 << 40, 'x')),
    ('request_new', (7, b'A=b', b'body', 4, 0)),
    ('record_write_answer', ended(7)),
    ('request_erase', (7, 'completed')),
    ('record_read', (7,)),
    ('record_look', (7,)),
    ('finished', (7, True, 201, None, b'h', b'ok')),
    ('expire_rows', (0, 'none', 0, 100, None)),
    ('status', ('0' * 32,)),
    ('recover_rows', (7, 0, 10, 0)),
    ('job_next', (0, 0, None)),
)


def empty(t):
    """A session with the schema; without autovacuum, so without statistics."""
    once = Server(t).session(prepare={
        name: text for name, text, _ in statements('queries.sql')})
    once.do('BEGIN')
    for _, text, _ in statements('schema.sql'):
        once.do(text)
    once.do('COMMIT')
    # as txn_slot.c does
    for setting in ('enable_seqscan', 'enable_bitmapscan',
                    'max_parallel_workers_per_gather'):
        once.do('SET %s = 0' % setting)
    return once


def filled(t):
    once = empty(t)
    for statement in FILL:
        once.do(statement)
    return once


def read_whole(node, limited=False):
    """The large tables, and their indexes, that a plan reads from end to
    end."""
    found = set()
    if node.get('Relation Name') in LARGE and not limited and (
            node['Node Type'] == 'Seq Scan' or
            node.get('Index Name') in WHOLE and 'Index Cond' not in node):
        found.add(node.get('Index Name', node['Relation Name']))
    # All of a range is read before the first row is there.
    if node['Node Type'] == 'Bitmap Index Scan' and \
            node['Index Name'] in WHOLE and \
            ' = ' not in node.get('Index Cond', ''):
        found.add(node['Index Name'])
    for child in node.get('Plans', []):
        found |= read_whole(child, node['Node Type'] == 'Limit')
    return found


def plan(once, explain):
    return json.loads('\n'.join(once.do(explain)))[0]['Plan']


def generic_plans(once):
    """Statements that read a large table, though they do not say so."""
    once.do('SET plan_cache_mode = force_generic_plan')
    bad = {}
    for name, text, reason in statements('queries.sql'):
        once.do('PREPARE p AS ' + text)
        n = int(once.value(
            'SELECT cardinality(parameter_types) FROM pg_prepared_statements '
            "WHERE name = 'p'"))
        values = '(%s)' % ', '.join(['NULL'] * n) if n else ''
        found = read_whole(plan(
            once, 'EXPLAIN (FORMAT JSON) EXECUTE p' + values))
        if found and not reason and name not in FIRST_ROW:
            bad[name] = found
        once.do('DEALLOCATE p')
    return bad


def custom_plans(once):
    once.do('SET plan_cache_mode = force_custom_plan')
    return {name: found for name, values in FREQUENT
            for found in [read_whole(plan(
                once, 'EXPLAIN (FORMAT JSON) ' + once.text(name, *values)))]
            if found}


def test_no_statement_reads_a_large_table(t):
    once = filled(t)
    for when in 'without statistics', 'with statistics':
        for plans in generic_plans, custom_plans:
            bad = plans(once)
            assert not bad, (when, plans.__name__, bad)
        once.do('ANALYZE')


def test_a_plan_made_for_an_empty_store_stays_good(t):
    """A connection may have prepared its statements before there were keys."""
    once = empty(t)
    once.do('SET plan_cache_mode = force_generic_plan')
    for name, values in FREQUENT:
        once.do('EXPLAIN ' + once.text(name, *values))
    for statement in FILL:
        once.do(statement)
    for name, values in FREQUENT:
        found = read_whole(plan(
            once, 'EXPLAIN (FORMAT JSON) ' + once.text(name, *values)))
        assert not found, (name, found)
