/*
 * queries: every statement of sql/ prepares, and finds its rows by an index;
 * the checks allow just what record.c allows.
 */
#include "config.h"

#include "cases.h"
#include <sqlite3.h>

#include "queries.h"
#include "record.h"

/* The database of a case. */
static sqlite3 *db;

static void
run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static int
close_database(UNUSED void **state)
{
	int rc = sqlite3_close(db);

	db = NULL;
	return rc;
}

/* Makes it anew. */
static int
new_database(UNUSED void **state)
{
	const char *const *text;
	size_t n, i;

	(void)close_database(NULL);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	text = queries_schema(&n);
	assert_true(n >= 20);
	for (i = 0; i < n; i++)
		run(text[i]);
	return 0;
}

AROUND_EACH(new_database, close_database)

static void
load_checks(void)
{
	const char *const *text;
	size_t n, i;

	text = queries_checks(&n);
	assert_true(n >= 4);
	for (i = 0; i < n; i++)
		run(text[i]);
}

/* The statement, which must be only one. */
static sqlite3_stmt *
prepare(const char *sql)
{
	sqlite3_stmt *s;
	const char *rest;

	if (sqlite3_prepare_v2(db, sql, -1, &s, &rest) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_non_null(s);
	if (*rest != '\0')
		fail_msg("%s: left over: %s", sql, rest);
	return s;
}

/* What EXPLAIN, or the like, has in that column: a line for each row. */
static const char *
explain(const char *how, int column, enum query q)
{
	static char out[20000];
	sqlite3_stmt *s;
	size_t len = 0;
	char *sql;
	int code;

	sql = sqlite3_mprintf("%s %s", how, queries_text(q));
	s = prepare(sql);
	out[0] = '\0';
	while ((code = sqlite3_step(s)) == SQLITE_ROW) {
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s\n",
		    (const char *)sqlite3_column_text(s, column));
		assert_true(len < sizeof(out));
	}
	assert_int_equal(code, SQLITE_DONE);
	sqlite3_finalize(s);
	sqlite3_free(sql);
	return out;
}

static const char *
plan_of(enum query q)
{
	return explain("EXPLAIN QUERY PLAN", 3, q);
}

TEST(each_statement_is_one_and_prepares)
{
	for (enum query q = 0; q < QUERY_COUNT; q++)
		sqlite3_finalize(prepare(queries_text(q)));
}

static bool
has_word(const char *text, const char *word)
{
	static const char in_word[] = "abcdefghijklmnopqrstuvwxyz_";
	const size_t n = strlen(word);
	const char *p;

	for (p = strstr(text, word); p != NULL; p = strstr(p + 1, word))
		if ((p == text || strchr(in_word, p[-1]) == NULL) &&
		    (p[n] == '\0' || strchr(in_word, p[n]) == NULL))
			return true;
	return false;
}

/* A column that is added to a table must be added to the list of its reader,
 * which compares the list with the members of its struct. */
TEST(readers_have_all_columns_of_their_tables)
{
	static const struct {
		const char *table, *but;
		enum query query;
	} rows[] = {
		{ "once_key", "identity listed", QUERY_ANSWER },
		{ "once_effect", "payload", QUERY_EFFECT_LIST },
	};
	sqlite3_stmt *s = prepare("SELECT name FROM pragma_table_info(?)");
	const char *column;
	size_t i, n;

	for (i = 0; i < COUNT(rows); i++) {
		sqlite3_reset(s);
		sqlite3_bind_text(s, 1, rows[i].table, -1, SQLITE_STATIC);
		for (n = 0; sqlite3_step(s) == SQLITE_ROW; n++) {
			column = (const char *)sqlite3_column_text(s, 0);
			if (!has_word(rows[i].but, column) &&
			    !has_word(queries_text(rows[i].query), column))
				fail_msg("%s: %s has no %s", rows[i].table,
				    queries_name(rows[i].query), column);
		}
		assert_true(n >= 16);
	}
	sqlite3_finalize(s);
}

/* The line of its plan that walks through a whole table or index, or sorts, and
 * so reads all to find the first; NULL: there is none. */
static const char *
scan(enum query q)
{
	static char plan[20000];
	char *line, *rest;

	snprintf(plan, sizeof(plan), "%s", plan_of(q));
	for (rest = plan; (line = strsep(&rest, "\n")) != NULL;)
		if ((strncmp(line, "SCAN", 4) == 0 &&
			strncmp(line, "SCAN CONSTANT", 13) != 0 &&
			strstr(line, "VIRTUAL TABLE") == NULL) ||
		    strstr(line, "TEMP B-TREE FOR ORDER") != NULL)
			return line;
	return NULL;
}

TEST(no_statement_scans_without_a_reason)
{
	for (enum query q = 0; q < QUERY_COUNT; q++) {
		const char *line = scan(q);

		if ((line != NULL) != (queries_scan_reason(q) != NULL))
			fail_msg("%s: %s", queries_name(q),
			    line != NULL ? line
					 : "a reason to scan, and it does not");
	}
}

static int
times(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

/* A state that is not a literal would leave the partial indexes unused. */
TEST(passes_use_the_partial_indexes)
{
	static const struct {
		enum query query;
		const char *index;
	} rows[] = {
		{ QUERY_RECOVER_OWNER,
		    "COVERING INDEX once_key_running (listed=? AND owner>?)" },
		{ QUERY_RECOVER_ROWS,
		    "once_key_running (listed=? AND owner=? AND rowid>?)" },
		{ QUERY_OWNER_COUNT,
		    "COVERING INDEX once_key_running (listed=? AND owner=?)" },
		{ QUERY_ATTEMPT_OF_OWNER,
		    "COVERING INDEX once_key_running (listed=? AND owner=?)" },
		{ QUERY_ACTIVE_BEYOND, "once_key_running" },
		{ QUERY_EXPIRE_ROWS,
		    "once_key_expiry (listed=? AND "
		    "(expires_at,state)>(?,?) AND expires_at<?)" },
		{ QUERY_JOB_ABANDONED,
		    "once_key_expiry (listed=? AND expires_at<?)" },
		{ QUERY_FIND, "once_key_identity (identity=?)" },
		{ QUERY_BROWSE_RANGE, "once_key_identity (identity>?" },
		{ QUERY_BROWSE_OPEN,
		    "once_key_open (state=? AND updated_at>?)" },
		{ QUERY_BROWSE_RUNNING, "once_key_running" },
		{ QUERY_BROWSE_NEWEST,
		    "INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
		{ QUERY_BROWSE_OLDEST,
		    "INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
		{ QUERY_BROWSE_AT, "INTEGER PRIMARY KEY (rowid>?)" },
		{ QUERY_GAUGE_RUNNING, "once_key_running" },
		{ QUERY_GAUGE_OPEN, "COVERING INDEX once_key_open" },
		{ QUERY_TALLY,
		    "COVERING INDEX once_key_expiry (listed=? AND "
		    "(expires_at,state)>(?,?))" },
		{ QUERY_EFFECT_NEXT,
		    "once_effect_open (state=? AND topic=? "
		    "AND next_at>?)" },
		{ QUERY_RECOVER_OWNER, "COVERING INDEX once_effect_owner" },
		{ QUERY_EFFECT_OF_OWNER,
		    "once_effect_owner (owner=? AND rowid>?)" },
		{ QUERY_EFFECT_FIRST,
		    "once_effect_of_key (key_id=? AND state=?" },
		{ QUERY_EFFECT_HOLDER,
		    "once_effect_of_key (key_id=? AND state=?" },
		{ QUERY_DELETE_DELIVERED, "once_effect_of_key" },
		{ QUERY_GAUGE_OUTBOX, "COVERING INDEX once_effect_open" },
		{ QUERY_TALLY_EFFECTS, "COVERING INDEX once_effect_of_key" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *plan = plan_of(rows[i].query);

		if (strstr(plan, rows[i].index) == NULL ||
		    times(plan, "TEMP B-TREE") >
			(queries_scan_reason(rows[i].query) != NULL))
			fail_msg("%s: %s", queries_name(rows[i].query), plan);
	}
}

/* A handler with tables in the same file may run ANALYZE while there are few
 * keys.  A plan made from these figures must not read all keys later. */
TEST(figures_change_no_plan_that_finds_recent_keys)
{
	static const enum query rows[] = { QUERY_RECENT_PART, QUERY_RECENT_LIST,
		QUERY_EXPIRE_ROWS, QUERY_EXPIRE_AHEAD, QUERY_TALLY,
		QUERY_JOB_ABANDONED, QUERY_RECOVER_OWNER, QUERY_RECOVER_ROWS,
		QUERY_ATTEMPT_OF_OWNER, QUERY_ACTIVE_BEYOND,
		QUERY_GAUGE_RUNNING, QUERY_BROWSE_RUNNING, QUERY_OWNER_COUNT };
	static const int keys[] = { 1, 5, 50, 150, 1000, 5000 };
	static const char *const kinds[] = { "'completed', NULL, NULL, n",
		"'in_progress', n % 3, 1, NULL", "'completed', NULL, 1, n" };
	char sql[640], before[COUNT(rows)][2000];
	const char *after;
	size_t k, i, q;

	for (q = 0; q < COUNT(rows); q++)
		snprintf(before[q], sizeof(before[q]), "%s", plan_of(rows[q]));
	for (i = 0; i < 3 * COUNT(keys); i++) {
		k = i / 3;
		snprintf(sql, sizeof(sql),
		    "DELETE FROM once_key;"
		    "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL "
		    "SELECT n + 1 FROM i WHERE n < %d) INSERT INTO once_key("
		    "identity, key, path, scope, attempt, fingerprint, "
		    "fingerprint_spec, "
		    "downstream, retention, created_at, updated_at, state, "
		    "owner, listed, expires_at) SELECT n, 'k' || n, '/', '', "
		    "1, x'00', 1, x'00', 1, 0, 0, %s FROM i; ANALYZE;",
		    keys[k], kinds[i % 3]);
		run(sql);
		for (q = 0; q < COUNT(rows); q++) {
			after = plan_of(rows[q]);
			if (strcmp(before[q], after) != 0)
				fail_msg(
				    "%s, %d keys, %s:\n%s, and it was:\n%s",
				    queries_name(rows[q]), keys[k],
				    kinds[i % 3], after, before[q]);
		}
	}
}

/* A list of more than two constants becomes a table each time it is looked at,
 * be it in the statement, or in the condition of an index. */
TEST(statements_of_a_request_make_no_table)
{
	static const enum query rows[] = { QUERY_FIND, QUERY_ADMIT,
		QUERY_FINGERPRINT_SPEC_FIND, QUERY_RECORD_NEW,
		QUERY_RECORD_READ, QUERY_RECORD_WRITE,
		QUERY_RECORD_WRITE_ANSWER, QUERY_DELETE_REQUEST };

	run("PRAGMA ignore_check_constraints = ON"); /* as the writer */
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *program = explain("EXPLAIN", 1, rows[i]);

		assert_true(times(program, "\n") > 3);
		if (strstr(program, "OpenEphemeral") != NULL)
			fail_msg("%s", queries_name(rows[i]));
	}
}

/* --- checks ------------------------------------------------------------- */

/* The columns that a row in that state must have to be one. */
static const char *
shape(enum record_state s)
{
	switch (s) {
	case RECORD_IN_PROGRESS:
		return "token = '0123', owner = 7, expires_at = NULL, "
		       "replayable = 0, status = NULL";
	case RECORD_COMPLETED:
		return "token = NULL, owner = NULL, expires_at = 5, "
		       "replayable = 1, status = 200";
	case RECORD_PENDING:
		return "token = NULL, owner = NULL, expires_at = 5, "
		       "replayable = 0, status = NULL, resource = 'r'";
	case RECORD_FAILED_RETRYABLE:
	case RECORD_EXPIRED:
		return "token = NULL, owner = NULL, expires_at = 5, "
		       "replayable = 0, status = NULL";
	case RECORD_UNKNOWN:
	case RECORD_DEAD_LETTER:
	case RECORD_NONE:
		break;
	}
	return "token = NULL, owner = NULL, expires_at = NULL, replayable = 0, "
	       "status = NULL";
}

static void
insert_row(char *sql, size_t size, enum record_state s)
{
	snprintf(sql, size,
	    "INSERT INTO once_key(id, identity, key, path, scope, state, "
	    "attempt, "
	    "token, owner, fingerprint, fingerprint_spec, downstream, "
	    "resume, "
	    "retention, created_at, updated_at) VALUES (1, 1, 'k', '/', 's', "
	    "'%s', 1, %s, x'00', 1, x'dd', 0, 1, 1, 1)",
	    record_state_name(s),
	    s == RECORD_IN_PROGRESS ? "'0123', 7" : "NULL, NULL");
}

/* Makes it anew with one row in that state, and the checks. */
static void
new_row(enum record_state s)
{
	char sql[1024];

	(void)new_database(NULL);

	if (s != RECORD_NONE) {
		insert_row(sql, sizeof(sql), s);
		run(sql);
		snprintf(sql, sizeof(sql), "UPDATE once_key SET %s", shape(s));
		run(sql);
	}
	load_checks();
}

/* Whether the checks let it through; undone in either case. */
static bool
tried(enum record_state from, enum record_state to)
{
	char sql[1024];
	int code;

	if (from == RECORD_NONE)
		insert_row(sql, sizeof(sql), to);
	else if (to == RECORD_NONE)
		snprintf(sql, sizeof(sql), "DELETE FROM once_key");
	else
		snprintf(sql, sizeof(sql),
		    "UPDATE once_key SET state = '%s', %s",
		    record_state_name(to), shape(to));
	run("BEGIN");
	code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (code != SQLITE_OK)
		assert_int_equal(code, SQLITE_CONSTRAINT);
	else
		assert_int_equal(sqlite3_changes(db), 1);
	run("ROLLBACK");
	return code == SQLITE_OK;
}

static void
compare(enum record_state from, enum record_state to)
{
	/* The checks do not know who deletes a key. */
	const bool may = record_may_change(from, to, false) ||
	    (to == RECORD_NONE && record_may_change(from, to, true));
	bool is;

	new_row(from);
	is = tried(from, to);
	if (is != may)
		fail_msg("%s -> %s: checks.sql says %d, record.c %d",
		    record_state_name(from), record_state_name(to), is, may);
}

/* The number of the parameter before those of the record's values. */
#define VALUE 7

/* The index of identities is not unique. */
TEST(a_second_row_of_an_identity_is_not_inserted)
{
	static const struct {
		const char *key, *path, *scope;
		int code;
	} rows[] = {
		{ "k", "/", "s", SQLITE_DONE },
		{ "k", "/", "s", SQLITE_CONSTRAINT },
		{ "k2", "/", "s", SQLITE_DONE },
		{ "k", "/2", "s", SQLITE_DONE },
		{ "k", "/", "s2", SQLITE_DONE },
	};
	sqlite3_stmt *s = prepare(queries_text(QUERY_RECORD_NEW));

	for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++)
		sqlite3_bind_int(s, i, 1);
	sqlite3_bind_zeroblob(s, 7, 16); /* downstream */
	sqlite3_bind_text(s, VALUE + 2, "in_progress", -1, SQLITE_STATIC);
	sqlite3_bind_text(s, VALUE + 4, "0123", -1, SQLITE_STATIC);
	sqlite3_bind_null(s, VALUE + 17);         /* resource */
	sqlite3_bind_zeroblob(s, VALUE + 24, 16); /* fingerprint */
	sqlite3_bind_null(s, VALUE + 27);         /* cookie */
	sqlite3_bind_text(s, VALUE + 28, "POST", -1, SQLITE_STATIC);
	sqlite3_bind_zeroblob(s, VALUE + 29, 16); /* instance */
	sqlite3_bind_null(s, VALUE + 1);          /* late token */
	for (size_t i = 0; i < COUNT(rows); i++) {
		sqlite3_bind_int(s, 1, 10 + (int)i);
		sqlite3_bind_text(s, 2, rows[i].key, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 3, rows[i].path, -1, SQLITE_STATIC);
		sqlite3_bind_text(s, 4, rows[i].scope, -1, SQLITE_STATIC);
		if (sqlite3_step(s) != rows[i].code)
			fail_msg("row %zu: %s", i, sqlite3_errmsg(db));
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
}

TEST(the_checks_allow_what_record_allows)
{
	int from, to, allowed = 0;

	for (from = 0; from < RECORD_NSTATES; from++)
		for (to = 0; to < RECORD_NSTATES; to++) {
			if (from == to)
				continue;
			compare((enum record_state)from, (enum record_state)to);
			allowed += record_may_change((enum record_state)from,
			    (enum record_state)to, false);
		}
	assert_int_equal(allowed, 18);
}

/* --- compare and set ------------------------------------------------------ */

/* The statements that write a key, and how each names what was read:
 * $record_was in queries.sql. */
static const enum query writes[] = {
	QUERY_RECORD_WRITE,
	QUERY_RECORD_WRITE_ANSWER,
	QUERY_RECORD_DELETE,
};

enum was { WAS_ID = 1, WAS_STATE, WAS_ATTEMPT, WAS_TOKEN, WAS_ALL };

/* Whether it would change the row: what it sets is missing here, so that it may
 * be refused.  wrong: the parameter that is not right, or WAS_ALL. */
static bool
touches(enum query q, enum record_state state, enum was wrong)
{
	const char *other = record_state_name(
	    state == RECORD_PENDING ? RECORD_UNKNOWN : RECORD_PENDING);
	const char *token = state == RECORD_IN_PROGRESS ? "0123" : NULL;
	sqlite3_stmt *s = prepare(queries_text(q));
	int n, code;

	sqlite3_bind_int(s, WAS_ID, wrong == WAS_ID ? 2 : 1);
	sqlite3_bind_text(s, WAS_STATE,
	    wrong == WAS_STATE ? other : record_state_name(state), -1,
	    SQLITE_STATIC);
	sqlite3_bind_int(s, WAS_ATTEMPT, wrong == WAS_ATTEMPT ? 2 : 1);
	sqlite3_bind_text(s, WAS_TOKEN, wrong == WAS_TOKEN ? "0124" : token, -1,
	    SQLITE_STATIC);
	run("BEGIN");
	code = sqlite3_step(s);
	if (code != SQLITE_DONE)
		assert_int_equal(code & 0xff, SQLITE_CONSTRAINT);
	n = sqlite3_changes(db);
	sqlite3_finalize(s);
	run("ROLLBACK");
	return code != SQLITE_DONE || n == 1;
}

TEST(each_write_compares_what_was_read)
{
	enum record_state from;
	enum was wrong;
	size_t n;

	for (n = 0; n < COUNT(writes); n++)
		for (from = RECORD_PENDING; from < RECORD_NSTATES; from++) {
			/* The checks refuse its deletion. */
			if (writes[n] == QUERY_RECORD_DELETE &&
			    from == RECORD_IN_PROGRESS)
				continue;
			new_row(from);
			for (wrong = WAS_ID; wrong <= WAS_ALL; wrong++)
				if (touches(writes[n], from, wrong) !=
				    (wrong == WAS_ALL))
					fail_msg("%s of %s: ?%d",
					    queries_name(writes[n]),
					    record_state_name(from), wrong);
		}
}

TEST(the_checks_refuse_rows_that_break_an_invariant)
{
	static const struct {
		const char *name;
		enum record_state state;
		const char *set;
	} rows[] = {
		{ "a lease without a token", RECORD_IN_PROGRESS,
		    "token = NULL, owner = NULL" },
		{ "a token without an owner", RECORD_IN_PROGRESS,
		    "owner = NULL" },
		{ "a lease that ends by age", RECORD_IN_PROGRESS,
		    "expires_at = 5" },
		{ "a token outside of a lease", RECORD_FAILED_RETRYABLE,
		    "token = '0123', owner = 7" },
		{ "a token for what is sealed", RECORD_COMPLETED,
		    "token = '0123', owner = 7" },
		{ "a worker to wait for, and not accepted", RECORD_PENDING,
		    "queued_at = 7" },
		{ "a worker to wait for, and it is done", RECORD_COMPLETED,
		    "accepted = 1, queued_at = 7" },
		{ "completed without a status", RECORD_COMPLETED,
		    "status = NULL" },
		{ "completed with an interim status", RECORD_COMPLETED,
		    "status = 100" },
		{ "an answer of a released key", RECORD_FAILED_RETRYABLE,
		    "replayable = 1" },
		{ "an unknown outcome that ends by age", RECORD_UNKNOWN,
		    "expires_at = 5" },
		{ "another key", RECORD_UNKNOWN, "key = 'other'" },
		{ "another number", RECORD_UNKNOWN, "identity = 2" },
		{ "another fingerprint", RECORD_UNKNOWN,
		    "fingerprint = x'01'" },
		{ "another downstream key", RECORD_UNKNOWN,
		    "downstream = x'ee'" },
		{ "an attempt less", RECORD_UNKNOWN, "attempt = 0" },
		{ "another resource", RECORD_PENDING, "resource = 'other'" },
		{ "no resource any more", RECORD_PENDING, "resource = NULL" },
	};
	char sql[256];

	for (size_t i = 0; i < COUNT(rows); i++) {
		new_row(rows[i].state);
		run("UPDATE once_key SET last_error = 'as it is'");
		snprintf(
		    sql, sizeof(sql), "UPDATE once_key SET %s", rows[i].set);
		if (sqlite3_exec(db, sql, NULL, NULL, NULL) !=
		    SQLITE_CONSTRAINT)
			fail_msg("%s", rows[i].name);
	}
}

/* A row that is as its state must be, and what must not become of it. */
TEST(the_checks_refuse_effects_that_break_an_invariant)
{
	static const char pending[] = "'pending', 1, 0, NULL, NULL, x'00'";
	static const char tried[] = "'pending', 1, NULL, 7, NULL, x'00'";
	static const char delivered[] = "'delivered', 1, NULL, NULL, x'', NULL";
	static const char dead[] = "'dead_letter', 1, NULL, NULL, NULL, x'00'";
	static const struct {
		const char *row, *set;
		bool allowed;
	} rows[] = {
		{ pending, "owner = 7, next_at = NULL, attempts = 2", true },
		{ pending, "next_at = NULL", true },
		{ pending, "owner = 7", false },
		{ pending, "state = 'delivered', next_at = NULL", false },
		{ pending, "state = 'dead_letter'", false },
		{ pending, "topic = 'sms'", false },
		{ pending, "effect_key = 'f'", false },
		{ pending, "key_id = 2", false },
		{ tried, "owner = NULL, next_at = 0", true },
		{ tried, "owner = NULL, state = 'dead_letter'", true },
		{ tried,
		    "owner = NULL, state = 'delivered', payload = NULL, "
		    "reference = x'00'",
		    true },
		{ tried, "owner = NULL, state = 'delivered'", false },
		{ tried, "owner = NULL, reference = x'00'", false },
		{ tried, "attempts = 0", false },
		{ delivered, "state = 'pending'", false },
		{ delivered, "state = 'dead_letter'", false },
		{ dead, "state = 'pending', attempts = 0, next_at = 0", true },
		{ dead, "state = 'delivered', payload = NULL", false },
		{ dead, "next_at = 0", false },
	};
	char sql[512];
	int code;

	for (size_t i = 0; i < COUNT(rows); i++) {
		(void)new_database(NULL);
		snprintf(sql, sizeof(sql),
		    "INSERT INTO once_effect(key_id, effect_key, scope, path, "
		    "key, topic, created_at, updated_at, state, attempts, "
		    "next_at, owner, reference, payload) VALUES (1, 'e', 's', "
		    "'/', 'k', 'mail', 1, 1, %s)",
		    rows[i].row);
		run(sql);
		load_checks();
		snprintf(
		    sql, sizeof(sql), "UPDATE once_effect SET %s", rows[i].set);
		code = sqlite3_exec(db, sql, NULL, NULL, NULL);
		if (code != (rows[i].allowed ? SQLITE_OK : SQLITE_CONSTRAINT))
			fail_msg("%s: %s: %d", rows[i].row, rows[i].set, code);
	}
}
