/*
 * The views that a handler writes to, from its own connection with whatever
 * settings that has: what is taken, what is refused with which words, and that
 * of a refused transaction nothing is left.
 */
#include "config.h"

#include "limit.h"
#include "queries.h"
#include "store_fixture.h"
#include "store_body.h"
#include "say.h"

static const char *const settings[] = {
	"PRAGMA synchronous = OFF",
	"PRAGMA synchronous = NORMAL",
	"PRAGMA synchronous = FULL",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA trusted_schema = ON",
	"PRAGMA recursive_triggers = ON",
	"PRAGMA recursive_triggers = OFF",
	"PRAGMA trusted_schema = OFF; PRAGMA recursive_triggers = ON;"
	"PRAGMA foreign_keys = ON; PRAGMA case_sensitive_like = ON;"
	"PRAGMA reverse_unordered_selects = ON; PRAGMA count_changes = OFF",
};

#define LOST    "lease lost"
#define POINT   "once_checkpoint.recovery_point: not 1-63 printable ASCII bytes"
#define TOPIC   "once_outbox.topic: no effect of that name is configured"
#define PAYLOAD "once_outbox.payload: "
#define STATUS  "once_response.status: not an integer from 200 to 599"
#define HEADERS "once_response.headers: "
#define LINE    HEADERS "a line is not \"Name: value\""
#define FIELD   HEADERS "a field that a handler must not send"
#define BODY    "once_response.body: "

#define REPEATED(text, n) "replace(hex(zeroblob(" #n ")), '00', " text ")"

TOPICS_TEST(what_is_wrong_is_refused_by_its_column)
{
	static const struct {
		const char *sql, *message;
	} rows[] = {
		{ CHECKPOINT "NULL)", POINT },
		{ CHECKPOINT "'')", POINT },
		{ CHECKPOINT "7)", POINT },
		{ CHECKPOINT "x'61')", POINT },
		{ CHECKPOINT REPEATED("'a'", 64) ")", POINT },
		{ CHECKPOINT "'sch\u00f6n')", POINT },
		{ CHECKPOINT "'a' || char(10))", POINT },
		{ CHECKPOINT "'a' || char(127))", POINT },
		{ CHECKPOINT "'a' || char(0) || 'b')", POINT },
		{ OUTBOX "'Mail', 'x')", TOPIC },
		{ OUTBOX "'post', 'x')", TOPIC },
		{ OUTBOX "NULL, 'x')", TOPIC },
		{ OUTBOX "x'6d61696c', 'x')", TOPIC },
		{ OUTBOX "'mail', NULL)", PAYLOAD "neither text nor a blob" },
		{ OUTBOX "'mail', 1)", PAYLOAD "neither text nor a blob" },
		{ OUTBOX "'mail', 1.5)", PAYLOAD "neither text nor a blob" },
		{ OUTBOX "'mail', zeroblob(16777217))",
		    PAYLOAD "longer than 16777216 bytes" },
		{ RESPONSE "NULL, NULL, NULL)", STATUS },
		{ RESPONSE "199, NULL, NULL)", STATUS },
		{ RESPONSE "600, NULL, NULL)", STATUS },
		{ RESPONSE "-200, NULL, NULL)", STATUS },
		{ RESPONSE "200.0, NULL, NULL)", STATUS },
		{ RESPONSE "200.5, NULL, NULL)", STATUS },
		{ RESPONSE "x'323030', NULL, NULL)", STATUS },
		{ RESPONSE "'', NULL, NULL)", STATUS },
		{ RESPONSE "'0200', NULL, NULL)", STATUS },
		{ RESPONSE "' 200', NULL, NULL)", STATUS },
		{ RESPONSE "'200 OK', NULL, NULL)", STATUS },
		{ RESPONSE "'+200', NULL, NULL)", STATUS },
		{ RESPONSE "'2e2', NULL, NULL)", STATUS },
		{ RESPONSE "200, 7, NULL)", HEADERS "neither text nor NULL" },
		{ RESPONSE "200, x'413a2062', NULL)",
		    HEADERS "neither text nor NULL" },
		{ RESPONSE "200, 'A', NULL)", LINE },
		{ RESPONSE "200, ': b', NULL)", LINE },
		{ RESPONSE "200, 'A b: c', NULL)", LINE },
		{ RESPONSE "200, 'A : c', NULL)", LINE },
		{ RESPONSE "200, '[A: c', NULL)", LINE },
		{ RESPONSE "200, 'A]: c', NULL)", LINE },
		{ RESPONSE "200, 'A\\: c', NULL)", LINE },
		{ RESPONSE "200, '\u00c4: c', NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(10) || ' folded', NULL)",
		    LINE },
		{ RESPONSE "200, 'A: b' || char(10) || 'c', NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(10, 10) || 'C: d', NULL)",
		    LINE },
		{ RESPONSE "200, 'A: b' || char(13, 10, 13, 10), NULL)", LINE },
		{ RESPONSE "200, char(10), NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(13) || 'C: d', NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(13), NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(0), NULL)", LINE },
		{ RESPONSE "200, 'A: b' || char(0) || 'c: d', NULL)", LINE },
		{ RESPONSE "200, 'A: ' || char(1), NULL)", LINE },
		{ RESPONSE "200, 'A: ' || char(8), NULL)", LINE },
		{ RESPONSE "200, 'A: ' || char(11), NULL)", LINE },
		{ RESPONSE "200, 'A: ' || char(31), NULL)", LINE },
		{ RESPONSE "200, 'A: ' || char(127), NULL)", LINE },
		{ RESPONSE
		    "200, 'A:b' || " REPEATED("char(10)||'A:b'", 256) ", NULL)",
		    HEADERS "more than 256 lines" },
		{ RESPONSE "200, 'A: ' || " REPEATED("'a'", 65531) ", NULL)",
		    HEADERS "longer than 65536 bytes" },
		{ RESPONSE
		    "200, 'A: ' || " REPEATED("'\u00e4'", 32767) ", NULL)",
		    HEADERS "longer than 65536 bytes" },
		{ RESPONSE "200, 'Status: 404', NULL)", FIELD },
		{ RESPONSE "200, 'A: b' || char(10) || 'STATUS:404', NULL)",
		    FIELD },
		{ RESPONSE "200, 'A: b' || char(13, 10) || 'Status:', NULL)",
		    FIELD },
		{ RESPONSE "200, 'X-Sendfile: /etc/passwd', NULL)", FIELD },
		{ RESPONSE "200, 'X-LIGHTTPD-send-file: /f', NULL)", FIELD },
		{ RESPONSE "200, 'X-Accel-Redirect: /f', NULL)", FIELD },
		{ RESPONSE "200, 'Content-Length: 7', NULL)", FIELD },
		{ RESPONSE "200, 'Transfer-Encoding: chunked', NULL)", FIELD },
		{ RESPONSE "200, 'Connection: close', NULL)", FIELD },
		{ RESPONSE "200, 'Idempotent-Replayed: true', NULL)", FIELD },
		{ RESPONSE "200, 'Idempotency-Expires: x', NULL)", FIELD },
		{ RESPONSE "200, 'Idempotency-Outcome: unknown', NULL)",
		    FIELD },
		{ RESPONSE "200, NULL, 7)",
		    BODY "neither text nor a blob nor NULL" },
		{ RESPONSE "200, NULL, 7.5)",
		    BODY "neither text nor a blob nor NULL" },
		{ RESPONSE "200, NULL, zeroblob(16777217))",
		    BODY "longer than 16777216 bytes" },
	};
	struct store_lease lease = reserve("k");
	sqlite3 *db;

	for (size_t j = 0; j < COUNT(settings); j++) {
		db = handler_open();
		raw_run(db, settings[j]);
		for (size_t i = 0; i < COUNT(rows); i++)
			refuses(
			    db, token_of(&lease), rows[i].sql, rows[i].message);
		sqlite3_close(db);
	}
	assert_int_equal(state_of("k"), RECORD_IN_PROGRESS);
	assert_int_equal(raw_number("SELECT count(*) FROM once_effect"), 0);
	assert_int_equal(raw_number("SELECT count(*) FROM once_piece"), 0);
	assert_int_equal(
	    raw_number("SELECT recovery_point IS NULL FROM once_key"), 1);
}

static void
text_is(const char *sql, const char *wanted)
{
	char text[256];

	raw_text(sql, text, sizeof(text));
	if (strcmp(text, wanted) != 0)
		fail_msg("%s: %s, not %s", sql, text, wanted);
}

/* Of the one key or effect that there is. */
#define ANSWER                                                                 \
	"SELECT printf('%s %d %d %s %d|%s', state, replayable, status, kind, " \
	"body_length, CAST(headers AS TEXT)) FROM once_key"
#define EFFECT                                                        \
	"SELECT printf('%s %s %s %s %s %d %d %s', scope, path, key, " \
	"topic, state, attempts, next_at, payload) FROM once_effect"
#define RECOVERY              "SELECT recovery_point FROM once_key"
#define LENGTH(column, table) "SELECT length(" column ") FROM " table
#define ANSWER_PIECES                                                 \
	"SELECT sum(length(p.body)) FROM once_piece p JOIN once_key " \
	"k ON p.id / 65536 = k.id WHERE k.body IS NULL"
#define PAYLOAD_PIECES                                                   \
	"SELECT sum(length(p.body)) FROM once_piece p JOIN once_effect " \
	"e ON p.id / 65536 = 70368744177664 + e.id "                     \
	"WHERE e.payload IS NULL"

TOPICS_TEST(what_is_right_is_taken)
{
	static const struct {
		const char *sql, *check, *is;
	} rows[] = {
		{ CHECKPOINT "'charged')", RECOVERY, "charged" },
		{ CHECKPOINT "' ~ 1 of 2 ')", RECOVERY, " ~ 1 of 2 " },
		{ CHECKPOINT REPEATED("'a'", 63) ")",
		    LENGTH("recovery_point", "once_key"), "63" },
		{ OUTBOX "'mail', 'to bob')", EFFECT,
		    "alice /payments k mail pending 0 0 to bob" },
		{ OUTBOX "'sms', x'746f20626f62')", EFFECT,
		    "alice /payments k sms pending 0 0 to bob" },
		{ OUTBOX "'mail', '')", EFFECT,
		    "alice /payments k mail pending 0 0 " },
		{ OUTBOX "'mail', x'')", EFFECT,
		    "alice /payments k mail pending 0 0 " },
		{ OUTBOX "'mail', zeroblob(2048))",
		    LENGTH("payload", "once_effect"), "2048" },
		{ OUTBOX "'mail', zeroblob(2049))", PAYLOAD_PIECES, "2049" },
		{ OUTBOX "'mail', zeroblob(16777216))", PAYLOAD_PIECES,
		    "16777216" },
		{ RESPONSE "201, NULL, NULL)", ANSWER, "completed 1 201 0 0|" },
		{ RESPONSE "'201', '', '')", ANSWER, "completed 1 201 0 0|" },
		{ RESPONSE "200, 'A: b', x'')", ANSWER,
		    "completed 1 200 0 0|A: b" },
		{ RESPONSE "599, 'A:', 'abc')", ANSWER,
		    "completed 1 599 0 3|A:" },
		{ RESPONSE "201, '!#$%&''*+-.^_`|~09azAZ:' || char(9), "
			   "x'616263')",
		    ANSWER, "completed 1 201 0 3|!#$%&'*+-.^_`|~09azAZ:\t" },
		{ RESPONSE "201, 'A: \u00e4', '\u00e4')", ANSWER,
		    "completed 1 201 0 2|A: \u00e4" },
		{ RESPONSE "201, 'A: b:c]' || char(13, 10) || 'A: d' || "
			   "char(10), NULL)",
		    ANSWER, "completed 1 201 0 0|A: b:c]\r\nA: d\n" },
		{ RESPONSE "201, 'X-Status: 1', NULL)", ANSWER,
		    "completed 1 201 0 0|X-Status: 1" },
		{ RESPONSE "201, 'A: status: 1', NULL)", ANSWER,
		    "completed 1 201 0 0|A: status: 1" },
		{ RESPONSE "201, " REPEATED("'A:b'||char(10)", 256) ", NULL)",
		    LENGTH("headers", "once_key"), "1024" },
		{ RESPONSE "200, 'A:' || " REPEATED("'a'", 65531) ", NULL)",
		    LENGTH("headers", "once_key"), "65533" },
		{ RESPONSE "200, NULL, zeroblob(16777216))", ANSWER_PIECES,
		    "16777216" },
	};
	struct store_lease lease;
	sqlite3 *db;

	for (size_t j = 0; j < COUNT(settings); j++) {
		db = handler_open();
		raw_run(db, settings[j]);
		for (size_t i = 0; i < COUNT(rows); i++) {
			/* 16 MB are written once */
			if (j > 0 && strstr(rows[i].sql, "16777216") != NULL)
				continue;
			raw("PRAGMA synchronous = OFF;"
			    "DELETE FROM once_key; DELETE FROM sale;"
			    "DELETE FROM once_piece; DELETE FROM once_effect");
			lease = reserve("k");
			say(db, &lease, rows[i].sql);
			text_is(rows[i].check, rows[i].is);
			assert_int_equal(
			    raw_number("SELECT count(*) FROM sale"), 1);
		}
		sqlite3_close(db);
	}
}

TOPICS_TEST(each_effect_has_a_key_of_its_own)
{
	struct store_lease lease = reserve("k");
	sqlite3 *db = handler_open();

	for (int i = 0; i < 50; i++)
		say(db, &lease, OUTBOX "'mail', 'x')");
	assert_int_equal(
	    raw_number("SELECT count(DISTINCT effect_key) FROM once_effect "
		       "WHERE effect_key LIKE '________-____-4___-____-"
		       "____________' AND substr(effect_key, 20, 1) IN "
		       "('8', '9', 'a', 'b') "
		       "AND NOT effect_key GLOB '*[^-0-9a-f]*'"),
	    50);
	assert_int_equal(raw_number("SELECT count(*) FROM once_effect e JOIN "
				    "once_key k ON k.id = e.key_id"),
	    50);
	sqlite3_close(db);
}

TOPICS_TEST(every_word_needs_the_lease)
{
	static const char *const words[] = {
		CHECKPOINT "'charged')",
		OUTBOX "'mail', 'x')",
		RESPONSE "201, NULL, NULL)",
		/* whatever else is wrong */
		CHECKPOINT "NULL)",
		OUTBOX "'post', NULL)",
		RESPONSE "7, 7, 7)",
	};
	struct store_lease lease = reserve("k"), other = reserve("o");
	char wrong[12][80];
	sqlite3 *db = handler_open();
	size_t i, j, n = 0;

	snprintf(wrong[n++], 80, "%s", "");
	snprintf(wrong[n++], 80, "%s", lease.token);
	snprintf(wrong[n++], 80, "%s-", lease.token);
	snprintf(wrong[n++], 80, "%s-%d", lease.token, (int)other.id);
	snprintf(wrong[n++], 80, "%s-0%d", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, "%s-%d ", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, "%s_%d", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, "%s-%dx", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, " %s-%d", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, "%.31s-%d", lease.token, (int)lease.id);
	snprintf(wrong[n++], 80, "%032d-%d", 0, (int)lease.id);
	snprintf(wrong[n++], 80, "-%d", (int)lease.id);
	assert_int_equal(n, COUNT(wrong));
	for (i = 0; i < COUNT(words); i++) {
		for (j = 0; j < n; j++)
			refuses(db, wrong[j], words[i], LOST);
		refuses(db, NULL, words[i], LOST);
	}
	refuses(db, token_of(&lease),
	    "INSERT INTO once_response VALUES (CAST(?1 AS BLOB), 201, '', '')",
	    LOST);
	say(db, &lease, words[0]);
	say(db, &lease, words[1]);
	say(db, &lease, words[2]);
	sqlite3_close(db);
}

TOPICS_TEST(the_views_show_nothing_and_change_nothing)
{
	static const char *const words[] = {
		"UPDATE once_response SET status = 200",
		"UPDATE once_checkpoint SET recovery_point = 'x'",
		"DELETE FROM once_outbox",
	};
	struct store_lease lease = reserve("k");
	sqlite3 *db = handler_open();
	sqlite3_stmt *s;

	say(db, &lease, OUTBOX "'mail', 'x')");
	for (size_t i = 0; i < COUNT(words); i++)
		assert_int_not_equal(
		    sqlite3_prepare_v2(db, words[i], -1, &s, NULL), SQLITE_OK);
	assert_int_equal(
	    raw_number("SELECT (SELECT count(*) FROM once_checkpoint) + "
		       "(SELECT count(*) FROM once_outbox) + "
		       "(SELECT count(*) FROM once_response)"),
	    0);
	sqlite3_close(db);
}

/* A topic is there from when it is configured until it is not any more. */
TOPICS_TEST(topics_come_and_go)
{
	char mail[] = "mail", fax[] = "fax", none[] = "none";
	char *drop[] = { mail, none }, *add[] = { fax };
	struct store_lease lease = reserve("k");
	sqlite3 *db = handler_open();

	say(db, &lease, OUTBOX "'mail', 'x')");
	refuses(db, token_of(&lease), OUTBOX "'fax', 'x')", TOPIC);
	assert_ok(store_topics(store, add, 1, drop, 2));
	say(db, &lease, OUTBOX "'fax', 'x')");
	refuses(db, token_of(&lease), OUTBOX "'mail', 'x')", TOPIC);
	/* both are asked for twice, and one is dropped and added */
	drop[0] = fax;
	assert_ok(store_topics(store, add, 1, drop, 2));
	assert_ok(store_topics(store, add, 1, add, 0));
	say(db, &lease, OUTBOX "'fax', 'x')");
	assert_int_equal(raw_number("SELECT count(*) FROM once_topic"), 2);
	sqlite3_close(db);
}

/* --- plans and numbers --------------------------------------------------- */

/*
 * The triggers find the row by its number, whatever else there is: no program
 * that the statement is made of walks through once_key.  (A query plan does
 * not show what triggers do.)
 */
TOPICS_TEST(no_word_looks_at_every_key)
{
	static const char *const words[] = { CHECKPOINT "'charged')",
		OUTBOX "'mail', 'x')", RESPONSE "201, 'A: b', 'x')" };
	int64_t root = raw_number("SELECT rootpage FROM sqlite_schema "
				  "WHERE name = 'once_key'");
	sqlite3 *db = handler_open();
	bool is_key[64];
	const char *code;
	sqlite3_stmt *s;
	char sql[200];
	int sought, p1;

	for (size_t i = 0; i < COUNT(words); i++) {
		snprintf(sql, sizeof(sql), "EXPLAIN %s", words[i]);
		assert_int_equal(
		    sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
		for (sought = 0; sqlite3_step(s) == SQLITE_ROW;) {
			if (sqlite3_column_int(s, 0) == 0) /* a program */
				memset(is_key, 0, sizeof(is_key));
			code = (const char *)sqlite3_column_text(s, 1);
			p1 = sqlite3_column_int(s, 2);
			if (strcmp(code, "OpenRead") == 0 ||
			    strcmp(code, "OpenWrite") == 0) {
				assert_in_range(p1, 0, COUNT(is_key) - 1);
				is_key[p1] = sqlite3_column_int(s, 3) == root;
			} else if (strcmp(code, "SeekRowid") == 0)
				sought += is_key[p1];
			else if ((strcmp(code, "Rewind") == 0 ||
				     strcmp(code, "Last") == 0) &&
			    is_key[p1])
				fail_msg("%s looks at every key", words[i]);
		}
		sqlite3_finalize(s);
		assert_true(sought >= 2);
	}
	sqlite3_close(db);
}

static int
occurrences(const char *number)
{
	const char *const *text;
	const char *p;
	int found = 0;
	size_t n;

	text = queries_schema(&n);
	for (size_t i = 0; i < n; i++)
		for (p = text[i]; (p = strstr(p, number)) != NULL; p++)
			found++;
	return found;
}

/* SQL has no names for numbers. */
TOPICS_TEST(the_numbers_in_sql_are_those_of_the_headers)
{
	static const struct {
		size_t number;
		const char *before, *after;
		int times;
	} rows[] = {
		{ LIMIT_SAID, "> ", ";", 2 },
		{ LIMIT_SAID, "longer than ", " bytes", 2 },
		{ LIMIT_HEAD, "> ", ";", 1 },
		{ LIMIT_HEAD, "longer than ", " bytes", 1 },
		{ LIMIT_FIELDS, "> ", ";", 1 },
		{ LIMIT_FIELDS, "more than ", " lines", 1 },
		{ LIMIT_RECOVERY_POINT, "BETWEEN 1 AND ", " ", 1 },
		{ LIMIT_RECOVERY_POINT, "not 1-", " printable", 1 },
		{ STORE_INLINE, "BETWEEN 1 AND ", " ", 1 },
		{ STORE_INLINE, "> ", " UNION", 2 },
		{ STORE_PIECE, ", ", ")", 2 },
		{ STORE_PIECE, "", " * ", 4 },
		{ STORE_INLINE, "<= ", " THEN", 1 },
		{ STORE_RESPONSE_LINES, "response_version = ", ",", 1 },
		{ RECORD_TOKEN_LEN + 2, "substr(NEW.token, ", ")", 8 },
	};
	char text[64];

	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(text, sizeof(text), "%s%zu%s", rows[i].before,
		    rows[i].number, rows[i].after);
		if (occurrences(text) != rows[i].times)
			fail_msg("%s: %d times", text, occurrences(text));
	}
}
