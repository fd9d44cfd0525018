"""The functions by which a handler writes to a store in PostgreSQL: they take
and refuse what the views of SQLite do, and give the handler's role no other
right."""
import ast
import os
import re
import subprocess

import base
from answer import eq
from pgsql import TOKEN, clear, grant, literal, reserve, store

LEASE_LOST = 'lease lost'
CALLS = ('-DCHECKPOINT="SELECT once_checkpoint(?1, "',
         '-DOUTBOX="SELECT once_outbox(?1, "',
         '-DRESPONSE="SELECT once_response(?1, "')

# Settings of the session that must not matter.
SETTINGS = (
    'SET standard_conforming_strings = on',
    "SET search_path = ''; SET transform_null_equals = on; "
    'SET bytea_output = escape; SET enable_indexscan = off; '
    "SET TimeZone = 'Pacific/Kiritimati'; SET DateStyle = 'German'; "
    'SET extra_float_digits = -15; SET plan_cache_mode = force_generic_plan',
    'SET default_transaction_isolation = serializable',
    "SET default_transaction_isolation = 'repeatable read'",
)


def table(name):
    """The rows of strings of a test of the views, in tests/unit."""
    path = os.path.join(base.TOP, 'tests', 'unit', 'test_views.c')
    with open(path) as f:
        source = re.sub(r'(?m)^#include.*$', '', f.read())
    source = subprocess.run(
        ['gcc', '-E', '-P', '-x', 'c', *CALLS, '-'], input=source, check=True,
        capture_output=True, text=True).stdout
    body = source[source.index(name):]
    body = body[body.index('rows[] = {') + 10:]
    string = r'"(?:[^"\\]|\\.)*"'
    rows = []
    for row in re.findall(r'\{((?:\s*%s\s*,?)+)\}' % string,
                          body[:body.index('};')]):
        rows.append([''.join(ast.literal_eval(s) for s in re.findall(
            string, column)) for column in re.findall(
                r'((?:%s\s*)+)' % string, row)])
    return rows


def translated(sql):
    """The same in PostgreSQL's words."""
    nested = r"((?:[^()']|'(?:[^']|'')*'|\([^()]*\))*)"
    sql = re.sub(r"replace\(hex\(zeroblob\((\d+)\)\), '00', %s\)" % nested,
                 r'repeat(\2, \1)', sql)
    sql = re.sub(r'zeroblob\((\d+)\)', r"decode(repeat('00', \1), 'hex')", sql)
    sql = re.sub(r'\bchar\(([0-9, ]+)\)', lambda m: '(%s)' % ' || '.join(
        'chr(%s)' % c for c in m.group(1).split(',')), sql)
    return re.sub(r"\bx'([0-9a-f]*)'", r"decode('\1', 'hex')", sql)


def token_of(lease):
    return '%s-%s' % (TOKEN, lease['id'])


TRY = '''CREATE FUNCTION shop.try(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text; message text;
BEGIN
    EXECUTE sql;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE,
        message = MESSAGE_TEXT;
    RETURN code || ' ' || message;
END $$'''


def handler(server, once):
    """A session of a handler, with a schema of its own."""
    boss = server.session('postgres')
    boss.do('CREATE SCHEMA shop AUTHORIZATION app')
    grant(once)
    app = server.session('app')
    app.do(TRY)
    app.do('CREATE TABLE shop.sale(n int)')
    return app


def said(app, token, sql):
    """'' or the SQLSTATE and the message."""
    sql = re.sub(r'\b(?<!\.)once_(?=checkpoint|outbox|response)',
                 'public.once_', translated(sql)).replace('?1', literal(token))
    return '\n'.join(app.do('SELECT shop.try(%s)' % literal(sql)))


# Arguments that no call has: the type of a parameter is fixed, a text has no
# NUL.  No function takes them (42883), or they are no such value.
NO_ARGUMENT = ('42883 ', '22P02 ', '54000 ', '22021 ')
# Numbers as SQL reads them; SQLite's view compares the text.
READ_AS_NUMBERS = ("'0200'", "' 200'", "'+200'")


def test_what_is_wrong_is_refused_as_by_the_views(t):
    server, once = store(t)
    app = handler(server, once)
    lease = reserve(once)
    rows = table('what_is_wrong_is_refused_by_its_column')
    assert len(rows) > 60, len(rows)
    for setting in SETTINGS:
        app.do('RESET ALL')
        app.do(setting)
        other = 0
        for sql, message in rows:
            if any('once_response(?1, %s,' % n in sql
                   for n in READ_AS_NUMBERS):
                continue
            answer = said(app, token_of(lease), sql)
            if answer.startswith(NO_ARGUMENT):
                other += 1
                assert re.search(r'char\(0\)|x\'|\(?1, 7\)|[ ,(][\d.]+[,)]'
                                 r'|2e2|200 OK|\'\'', sql), (sql, answer)
                continue
            eq(answer, 'P0001 ' + message, sql)
        assert 10 <= other <= 20, other
    eq(once.value("SELECT state || coalesce(recovery_point, '') || "
                  '(SELECT count(*) FROM once_effect) FROM once_key'),
       'in_progress0')


# What the tests of the views ask SQLite, by a word in it.
CHECKS = (
    ("printf('%s %d %d %s %d|%s'",
     "SELECT state || ' ' || replayable::int || ' ' || status || ' ' || kind"
     " || ' ' || body_length || '|'"
     " || coalesce(convert_from(headers, 'UTF8'), '') FROM once_key"),
    ("printf('%s %s %s %s %s %d %d %s'",
     "SELECT concat_ws(' ', encode(scope, 'escape'), encode(path, 'escape'), "
     "encode(key, 'escape'), encode(topic, 'escape'), state, attempts, "
     "next_at, encode(payload, 'escape')) FROM once_effect"),
    ('JOIN once_effect', 'SELECT sum(length(p.body)) FROM once_piece p '
     'JOIN once_effect e ON p.number = 70368744177664 + e.id '
     'WHERE e.payload IS NULL'),
    ('JOIN once_key', 'SELECT sum(length(p.body)) FROM once_piece p '
     'JOIN once_key k ON p.number = k.id WHERE k.body IS NULL'),
    ('', None))


def test_what_is_right_is_taken_as_by_the_views(t):
    server, once = store(t)
    app = handler(server, once)
    rows = table('what_is_right_is_taken')
    assert len(rows) > 20, len(rows)
    for setting in SETTINGS:
        app.do('RESET ALL')
        app.do(setting)
        for sql, check, wanted in rows:
            clear(once)
            lease = reserve(once)
            eq(said(app, token_of(lease), sql), '', sql)
            query = next(q for word, q in CHECKS if word in check) or check
            eq('\n'.join(once.do(query)), wanted, sql)


WORDS = ("SELECT public.once_checkpoint(?1, 'charged')",
         "SELECT public.once_outbox(?1, 'mail', 'x')",
         "SELECT public.once_response(?1, 201, NULL, NULL)",
         # whatever else is wrong
         'SELECT public.once_checkpoint(?1, NULL)',
         "SELECT public.once_outbox(?1, 'post', NULL)",
         "SELECT public.once_response(?1, 7, '7', '7')")


def test_every_word_needs_the_lease(t):
    server, once = store(t)
    app = handler(server, once)
    lease, other = reserve(once), reserve(once, 'o', token='f' * 32)
    id = lease['id']
    wrong = ['', TOKEN, TOKEN + '-', TOKEN + '-' + other['id'],
             TOKEN + '-0' + id, TOKEN + '-' + id + ' ', TOKEN + '_' + id,
             TOKEN + '-' + id + 'x', ' ' + TOKEN + '-' + id,
             TOKEN[:31] + '-' + id, '0' * 32 + '-' + id, '-' + id,
             TOKEN.upper() + '-' + id, TOKEN + '-' + id + '\n',
             TOKEN + '-' + '9' * 14, TOKEN + '-' + '9' * 30, None]
    for words in WORDS:
        for token in wrong:
            eq(said(app, token, words), 'P0001 ' + LEASE_LOST)
    for words in WORDS[:3]:
        eq(said(app, token_of(lease), words), '')
    eq(said(app, token_of(lease), WORDS[2]),
       'P0001 once_response: this attempt has answered already')
    # as long as oncewrap has not confirmed it
    for words in WORDS[:2]:
        eq(said(app, token_of(lease), words), '')
    # As step_complete() does.
    once.do('UPDATE once_key SET token = NULL, owner = NULL, '
            'locked_until = NULL, expires_at = 1000 WHERE id = ' + id)
    for words in WORDS[:3]:
        eq(said(app, token_of(lease), words), 'P0001 ' + LEASE_LOST)


def test_a_word_and_the_sale_are_committed_together_or_not_at_all(t):
    server, once = store(t)
    app = handler(server, once)
    token = literal(token_of(reserve(once)))

    def count():
        return once.value(
            'SELECT (SELECT count(*) FROM once_effect) + (SELECT count(*) '
            "FROM once_key WHERE recovery_point IS NOT NULL OR state <> "
            "'in_progress')"), app.value('SELECT count(*) FROM shop.sale')
    for last in ("once_response(%s, 201, '', 'x')", "once_response(%s, 1, '', "
                 "'x')"):
        app.do('BEGIN')
        app.do('INSERT INTO shop.sale VALUES (1)')
        app.do("SELECT once_checkpoint(%s, 'charged')" % token)
        app.do("SELECT once_outbox(%s, 'mail', 'x')" % token)
        app.lines('SELECT ' + last % token)
        # A handler that does not look at errors goes on.
        app.lines('COMMIT' if ', 1,' in last else 'ROLLBACK')
        eq(count(), ('0', '0'))
    app.do('BEGIN')
    app.do('INSERT INTO shop.sale VALUES (1)')
    app.do("SELECT once_outbox(%s, 'mail', 'x')" % token)
    app.do("SELECT once_response(%s, 201, '', 'x')" % token)
    app.do('COMMIT')
    eq(count(), ('2', '1'))


def test_the_role_of_a_handler_can_call_three_functions_and_nothing_else(t):
    server, once = store(t)
    app = server.session('app')
    for words in WORDS[:3]:
        assert 'permission denied for function' in app.error(
            words.replace('?1', "'x'"))
    app = handler(server, once)
    eq(said(app, token_of(reserve(once)), WORDS[0]), '')
    relations = once.do("SELECT relkind::text || relname FROM pg_class WHERE "
                        "relnamespace = 'public'::regnamespace")
    assert len(relations) > 30, relations
    for relation in relations:
        kind, name = relation[0], relation[1:]
        if kind == 'r':
            column = once.do("SELECT attname FROM pg_attribute WHERE attnum = "
                             "1 AND attrelid = '%s'::regclass" % name)[0]
            tries = ['TABLE ' + name, 'DELETE FROM ' + name,
                     'TRUNCATE ' + name, 'UPDATE %s SET %s = %s' %
                     (name, column, column),
                     'INSERT INTO %s DEFAULT VALUES' % name,
                     'ALTER TABLE %s ADD x int' % name, 'DROP TABLE ' + name,
                     'COPY %s TO STDOUT' % name,
                     'CREATE TRIGGER x BEFORE INSERT ON %s FOR EACH ROW '
                     'EXECUTE FUNCTION suppress_redundant_updates_trigger()'
                     % name, 'CREATE INDEX x ON %s(%s)' % (name, column)]
        elif kind == 'S':
            tries = ["SELECT nextval('%s')" % name, 'TABLE ' + name,
                     "SELECT setval('%s', 1)" % name, 'DROP SEQUENCE ' + name]
        else:
            tries = ['DROP INDEX ' + name]
        for sql in tries:
            error = app.error(sql) or ''
            assert error.startswith(('permission denied', 'must be owner')), \
                (sql, error)
    for function in once.do(
            "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = "
            "'public'::regnamespace"):
        for sql in ('DROP FUNCTION ' + function,
                    'ALTER FUNCTION %s SECURITY INVOKER' % function,
                    'ALTER FUNCTION %s RESET search_path' % function):
            assert app.error(sql).startswith('must be owner'), sql
    for sql in ('CREATE FUNCTION public.once_checkpoint(text, text) RETURNS '
                "void LANGUAGE sql AS ''",
                'CREATE OR REPLACE FUNCTION public.once_checkpoint(token text, '
                'recovery_point text) RETURNS void LANGUAGE sql AS \'\'',
                'CREATE TABLE public.once_x(x int)', 'DROP SCHEMA public'):
        assert app.error(sql).startswith(('permission denied',
                                          'must be owner')), sql
    # Nobody else can call them.
    server.session('postgres').do('CREATE ROLE stranger LOGIN')
    stranger = server.session('stranger')
    assert 'permission denied for function' in stranger.error(
        WORDS[0].replace('?1', "'x'"))


HIJACK = '''
CREATE SCHEMA shop2;
CREATE FUNCTION shop2.caught() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'hijacked by %', current_user; END $$;
'''
# Functions and operators that ours use, with the types they have there.
FUNCTIONS = (('convert_to', 'text, name', 'bytea'), ('left', 'text, integer',
             'text'), ('right', 'text, integer', 'text'),
             ('substr', 'text, integer', 'text'), ('length', 'text', 'integer'),
             ('replace', 'text, text, text', 'text'), ('chr', 'integer',
             'text'), ('octet_length', 'bytea', 'integer'),
             ('string_to_array', 'text, text', 'text[]'),
             ('lower', 'text', 'text'), ('strpos', 'text, text', 'integer'),
             ('gen_random_uuid', '', 'uuid'), ('clock_timestamp', '',
             'timestamptz'), ('floor', 'numeric', 'numeric'))
OPERATORS = (('=', 'bytea', 'bytea'), ('=', 'text', 'text'),
             ('=', 'bigint', 'bigint'), ('~', 'text', 'text'),
             ('!~', 'text', 'text'), ('<>', 'text', 'text'),
             ('>', 'integer', 'integer'), ('<', 'integer', 'integer'))


def test_a_handler_cannot_put_names_of_its_own_into_the_functions(t):
    server, once = store(t)
    app = handler(server, once)
    boss = server.session('postgres')
    boss.do('GRANT CREATE ON DATABASE once TO app')
    app.do(HIJACK)
    for name, types, result in FUNCTIONS:
        app.do('CREATE FUNCTION shop2.%s(%s) RETURNS %s LANGUAGE plpgsql AS '
               "$$ BEGIN RAISE EXCEPTION 'hijacked'; END $$" %
               (name, types, result))
    for i, (name, left, right) in enumerate(OPERATORS):
        app.do('CREATE FUNCTION shop2.o%d(%s, %s) RETURNS boolean LANGUAGE '
               "plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$" %
               (i, left, right))
        app.do('CREATE OPERATOR shop2.%s (FUNCTION = shop2.o%d, LEFTARG = %s, '
               'RIGHTARG = %s)' % (name, i, left, right))
    tables = ('once_key', 'once_topic', 'once_effect')
    for place in ('shop2.', 'pg_temp.'):
        for name in tables:
            app.do('CREATE TABLE %s%s(id bigint, token text, name bytea, '
                   'state text)' % (place, name))
    lease = reserve(once)
    app.do('SET search_path = pg_temp, shop2, pg_catalog, public')
    token = literal(token_of(lease))
    for call in ("once_checkpoint(%s, 'here')", "once_outbox(%s, 'mail', 'x')",
                 "once_response(%s, 201, 'A: b', 'x')"):
        pg = 'DO $$ BEGIN PERFORM public.%s; END $$' % (call % token)
        eq(app.error(pg), None)
    eq(once.value("SELECT state || ' ' || recovery_point FROM once_key"),
       'completed here')
    eq(once.value('SELECT count(*) FROM once_effect'), '1')
    # The names would be found without the path of the functions.
    reserve(once, 'o', token='f' * 32)
    once.do('ALTER FUNCTION once_checkpoint(text, text) RESET search_path')
    assert app.error("SELECT public.once_checkpoint('%s-2', 'x')" %
                     ('f' * 32))
    eq(once.run('schema_is_open')[0][0], '0')
    boss.do('GRANT CREATE ON SCHEMA public TO PUBLIC')
    eq(once.run('schema_is_open')[0][0], '1')


def test_no_word_scans_a_table(t):
    server, once = store(t)
    app = handler(server, once)
    lease = reserve(once)
    scans = ("SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables "
             "WHERE relname LIKE 'once_%'")
    app.do('SET enable_seqscan = off')

    def count():
        # Each session tells its numbers once a second at most, or when told.
        for session in (app, once):
            session.do('SELECT pg_stat_force_next_flush()')
            session.do('SELECT 1')
        return once.value(scans)
    before = count()
    for words in WORDS[:3]:
        eq(said(app, token_of(lease), words), '')
    eq(count(), before)
