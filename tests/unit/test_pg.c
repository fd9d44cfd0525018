/*
 * pg: values of each letter go to a real PostgreSQL server and come back; its
 * failures, and those of the connection, are told apart.
 */
#include "config.h"

#include <limits.h>

#include "pg.h"
#include "postgres.h"
#include "aborts.h"

/* Statements of this test stand in for the store's. */
#define ONE   PG_QUERY_SESSION_SET
#define TWO   PG_QUERY_SESSION_NEW
#define THREE PG_QUERY_SESSION_SEQ

static const char *texts[PG_QUERY_COUNT];
static char uri[512];
static struct pg_target *target;
static struct pg *pg;

const char *__real_pg_query_text(enum pg_query q);
const char *__wrap_pg_query_text(enum pg_query q);
const char *
__wrap_pg_query_text(enum pg_query q)
{
	return texts[q] != NULL ? texts[q] : __real_pg_query_text(q);
}

static struct pg_target *
parse(const char *conninfo)
{
	struct pg_target *t;
	char err[256] = "";

	if (pg_target_parse(&t, conninfo, 10000, err, sizeof(err)) != RC_OK)
		fail_msg("%s: %s", conninfo, err);
	return t;
}

static struct pg *
connect_to(struct pg_target *t)
{
	struct pg *new;

	if (pg_open(&new, t, clock_mono() + 20000) != RC_OK)
		fail_msg("%s", pg_message(new));
	pg_set_deadline(new, clock_mono() + 20000);
	return new;
}

static int
setup(UNUSED void **state)
{
	memset(texts, 0, sizeof(texts));
	target = parse(uri);
	pg = connect_to(target);
	return 0;
}

static int
teardown(UNUSED void **state)
{
	pg_close(pg);
	pg_target_free(target);
	return 0;
}

static int
setup_group(void **state)
{
	if (start_servers(state) != 0)
		return -1;
	snprintf(uri, sizeof(uri), "%s", control("make primary"));
	return 0;
}

/* Statements ONE and its only row. */
#define SEND(sql, ...)                         \
	do {                                   \
		texts[ONE] = (sql);            \
		pg_send(pg, ONE, __VA_ARGS__); \
		assert_ok(pg_sync(pg));        \
	} while (0)

/* A connection prepares a text once: a new one for each text. */
static void
again(void)
{
	pg_close(pg);
	pg = connect_to(target);
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(numbers_and_texts)
{
	static const char sql[] =
	    "SELECT $1::bigint, $2::bigint, ($3::bigint)::integer, "
	    "$4::boolean, $5::text, $6::text";
	char *text = NULL, field[6];
	int64_t low, high, small;
	bool flag;

	SEND(sql, "iid?ss", INT64_MIN, INT64_MAX, -7, 1, "hello", "");
	assert_ok(pg_one(pg, "iii?sf", &low, &high, &small, &flag, &text, field,
	    sizeof(field)));
	assert_true(low == INT64_MIN);
	assert_true(high == INT64_MAX);
	assert_int_equal(small, -7);
	assert_true(flag);
	assert_string_equal(text, "hello");
	assert_string_equal(field, "");
	free(text);
}

CASE(bytes_with_nul_and_pointers_into_the_row)
{
	static const char sql[] =
	    "SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bytea";
	static unsigned char all[70000];
	const void *data, *empty;
	const char *text, *path;
	char name[8];
	size_t n, none;

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)(i * 7 + i / 256);
	SEND(sql, "bbbsb", all, sizeof(all), NULL, (size_t)0, "a\\x\n",
	    (size_t)4, "here", "a\0b", (size_t)3);
	assert_ok(pg_result(pg));
	assert_int_equal(pg_rows(pg), 1);
	assert_ok(pg_row(
	    pg, "bbppb", &data, &n, &empty, &none, &path, &text, &data, &n));
	assert_int_equal(n, 3);
	assert_memory_equal(data, "a\0b", 3);
	assert_int_equal(none, 0);
	assert_string_equal(path, "a\\x\n");
	assert_string_equal(text, "here");
	assert_int_equal(pg_row(pg, "-----"), RC_NOTFOUND);

	SEND(sql, "bbbsb", all, sizeof(all), NULL, (size_t)0, "\\134",
	    (size_t)4, "here", "a\0b", (size_t)3);
	assert_ok(pg_one(pg, "b-f--", &data, &n, name, sizeof(name)));
	assert_int_equal(n, sizeof(all));
	assert_memory_equal(data, all, n);
	assert_string_equal(name, "\\134"); /* no escape */

	SEND(sql, "bbbsb", NULL, (size_t)0, NULL, (size_t)0, NULL, (size_t)0,
	    "", "a\0b", (size_t)3);
	assert_int_equal(pg_one(pg, "----p", &text), RC_CORRUPT);
}

/* As texts for bytea: the bytes, and no escapes. */
CASE(a_text_for_bytea_is_its_bytes)
{
	const void *data;
	size_t n;

	SEND("SELECT $1::bytea", "s", "\\x41\xff");
	assert_ok(pg_one(pg, "b", &data, &n));
	assert_int_equal(n, 5);
	assert_memory_equal(data, "\\x41\xff", 5);
}

CASE(a_uuid_is_a_text_on_both_sides)
{
	static const char uuid[] = "01234567-89ab-1def-0123-456789abcdef";
	char out[37], none[37], zeros[37];

	SEND("SELECT $1::uuid, $2::uuid, $3::uuid", "uuu", uuid, NULL, "x'");
	assert_ok(pg_one(pg, "uuu", out, sizeof(out), none, sizeof(none), zeros,
	    (size_t)37));
	assert_string_equal(out, uuid);
	assert_string_equal(none, "");
	assert_string_equal(zeros, "00000000-0000-0000-0000-000000000000");
}

CASE(nothing_is_null)
{
	static const char sql[] =
	    "SELECT $1::bigint, $2::text, $3::bytea, $4::text, $5::bigint, "
	    "$6::uuid, 5::smallint";
	int64_t number = 1, five;
	const char *text = sql;
	const void *data = sql;
	bool flag = true, is = true;
	size_t n = 1;

	SEND(sql, "ztosnu", INT64_C(0), "", "x", (size_t)0, NULL, NULL);
	assert_ok(pg_one(
	    pg, "ipbv?-i", &number, &text, &data, &n, &is, &flag, &five));
	assert_int_equal(number, 0);
	assert_null(text);
	assert_null(data);
	assert_int_equal(n, 0);
	assert_false(is);
	assert_false(flag);
	assert_int_equal(five, 5);
}

CASE(a_value_out_of_range_is_corrupt)
{
	static const char sql[] = "SELECT $1::bigint, $2::text";
	char field[4];
	int64_t time;
	int count;

	SEND(sql, "is", INT64_C(-1), "abcd");
	assert_int_equal(pg_one(pg, "m-", &time), RC_CORRUPT);
	SEND(sql, "is", INT64_C(-1), "abcd");
	assert_int_equal(pg_one(pg, "d-", &count), RC_CORRUPT);
	SEND(sql, "is", (int64_t)INT_MAX, "abcd");
	assert_int_equal(pg_one(pg, "d-", &count), RC_CORRUPT);
	SEND(sql, "is", (int64_t)ROW_TIME_MAX, "abcd");
	assert_int_equal(
	    pg_one(pg, "mf", &time, field, sizeof(field)), RC_CORRUPT);
	SEND(sql, "is", (int64_t)ROW_TIME_MAX, "abc");
	assert_ok(pg_one(pg, "mf", &time, field, sizeof(field)));
}

struct thing {
	int64_t id;
	char name[8];
	unsigned char tag[3];
	struct buf bytes;
	int word;
};

static bool
parse_word(const char *text, int *out)
{
	*out = 42;
	return strcmp(text, "answer") == 0;
}

CASE(columns_become_members)
{
	static const struct row_member members[] = {
		ROW_MEMBER('i', thing, id),
		ROW_MEMBER('f', thing, name),
		ROW_MEMBER('x', thing, tag),
		ROW_MEMBER('a', thing, bytes),
		{ "word", 'e', offsetof(struct thing, word), sizeof(int),
		    parse_word },
	};
	struct thing thing;

	texts[ONE] = "SELECT 0 AS other, n AS id, 'joe' AS name, "
		     "'\\x010203'::bytea AS tag, '\\x00ff'::bytea AS bytes, "
		     "$1::text AS word FROM generate_series(1, 2) n";
	pg_send(pg, ONE, "s", "answer");
	assert_ok(pg_sync(pg));
	assert_ok(pg_result(pg));
	for (int i = 1; i <= 2; i++) {
		assert_ok(pg_next(pg));
		assert_ok(pg_members(pg, members, 5, &thing));
		assert_int_equal(thing.id, i);
		assert_string_equal(thing.name, "joe");
		assert_memory_equal(thing.tag, "\1\2\3", 3);
		assert_int_equal(thing.bytes.len, 2);
		assert_int_equal(thing.word, 42);
		buf_free(&thing.bytes);
	}
	assert_int_equal(pg_next(pg), RC_NOTFOUND);
	pg_send(pg, ONE, "s", "question");
	assert_ok(pg_sync(pg));
	assert_ok(pg_result(pg));
	assert_ok(pg_next(pg));
	assert_int_equal(pg_members(pg, members, 5, &thing), RC_CORRUPT);
	buf_free(&thing.bytes);
}

/* --- pipelines ------------------------------------------------------------ */

CASE(results_come_in_the_order_of_the_statements)
{
	int64_t n;
	int changed;

	assert_ok(pg_exec(pg, "CREATE TEMP TABLE t(n bigint)"));
	texts[ONE] = "INSERT INTO t SELECT generate_series(1, $1::bigint)";
	texts[TWO] = "SELECT count(*) + $1::bigint FROM t";
	for (int i = 0; i < 500; i++) {
		pg_send(pg, ONE, "i", INT64_C(3));
		pg_send_quietly(pg, TWO, "i", INT64_C(0));
		pg_send(pg, TWO, "i", INT64_C(1000000));
	}
	assert_ok(pg_sync(pg));
	for (int i = 1; i <= 500; i++) {
		assert_ok(pg_update(pg, &changed));
		assert_int_equal(changed, 3);
		assert_ok(pg_one(pg, "i", &n));
		assert_int_equal(n, 1000000 + 3 * i);
	}
	assert_int_equal(pg_failure(pg), PG_NONE);
}

/* The server does not read on while nobody reads its answers. */
CASE(megabytes_go_both_ways_at_once)
{
	enum { SIZE = 1 << 20, TIMES = 16 };
	char *big = calloc(1, SIZE);
	const void *data;
	size_t n;

	assert_non_null(big);
	texts[ONE] = "SELECT $1::bytea";
	for (int i = 0; i < TIMES; i++) {
		pg_send(pg, ONE, "b", big, (size_t)SIZE);
		pg_send(pg, ONE, "b", big, (size_t)SIZE);
	}
	assert_ok(pg_sync(pg));
	for (int i = 0; i < 2 * TIMES; i++) {
		assert_ok(pg_one(pg, "b", &data, &n));
		assert_int_equal(n, SIZE);
	}
	free(big);
}

CASE(after_a_failure_the_rest_of_the_group_fails)
{
	int64_t n;

	texts[ONE] = "SELECT $1::bigint";
	texts[TWO] = "SELECT $1::text::bigint + 1";
	texts[THREE] = "SELECT nothing FROM nowhere";
	pg_send(pg, ONE, "i", INT64_C(1));
	pg_send(pg, TWO, "s", "10000000000000000000");
	pg_send(pg, ONE, "i", INT64_C(2));
	pg_send(pg, THREE, "");
	assert_ok(pg_sync(pg));
	pg_send(pg, ONE, "i", INT64_C(3));
	assert_ok(pg_sync(pg));
	assert_ok(pg_one(pg, "i", &n));
	assert_int_equal(n, 1);
	assert_int_equal(pg_one(pg, "i", &n), RC_CORRUPT);
	assert_string_equal(pg_sqlstate(pg), "22003");
	assert_int_equal(pg_failure(pg), PG_OTHER);
	assert_int_equal(pg_one(pg, "i", &n), RC_CORRUPT);
	assert_int_equal(pg_result(pg), RC_CORRUPT);
	assert_ok(pg_result(pg)); /* of the next group */
	assert_ok(pg_clear(pg));
	assert_int_equal(pg_failure(pg), PG_NONE);
	/* THREE was not prepared, and is now refused for its own reason. */
	pg_send(pg, THREE, "");
	assert_ok(pg_sync(pg));
	assert_int_equal(pg_result(pg), RC_CORRUPT);
	assert_string_equal(pg_sqlstate(pg), "42P01");
	assert_ok(pg_clear(pg));
}

CASE(results_that_nobody_reads_are_cleared)
{
	int64_t n;

	texts[ONE] = "SELECT $1::bigint";
	pg_send(pg, ONE, "i", INT64_C(1));
	pg_send(pg, ONE, "i", INT64_C(2));
	assert_ok(pg_clear(pg)); /* not even sent */
	pg_begin(pg);
	pg_send(pg, ONE, "i", INT64_C(3));
	pg_rollback(pg);
	assert_ok(pg_clear(pg));
	pg_send(pg, ONE, "i", INT64_C(4)); /* the result is asked for: sent */
	assert_ok(pg_one(pg, "i", &n));
	assert_int_equal(n, 4);
}

CASE(classes_of_failures)
{
	static const struct {
		const char *state;
		enum pg_failure failure;
		enum rc rc;
	} rows[] = {
		{ "40001", PG_AGAIN, RC_BUSY },
		{ "40P01", PG_AGAIN, RC_BUSY },
		{ "55P03", PG_AGAIN, RC_BUSY },
		{ "53100", PG_OTHER, RC_FULL },
		{ "53300", PG_LOST, RC_BUSY },
		{ "57P03", PG_LOST, RC_BUSY },
		{ "25006", PG_LOST, RC_IO },
		{ "40003", PG_LOST, RC_IO },
		{ "23505", PG_OTHER, RC_CORRUPT },
		{ "42P01", PG_OTHER, RC_CORRUPT },
		{ "42501", PG_OTHER, RC_IO },
		{ "P0001", PG_OTHER, RC_INVALID },
		{ "58030", PG_OTHER, RC_IO },
	};
	char sql[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(sql, sizeof(sql),
		    "DO $$ BEGIN RAISE SQLSTATE '%s'; END $$", rows[i].state);
		again();
		assert_int_equal(pg_exec(pg, sql), rows[i].rc);
		assert_int_equal(pg_failure(pg), rows[i].failure);
		assert_string_equal(pg_sqlstate(pg), rows[i].state);
	}
}

CASE(a_lock_that_is_not_free_is_busy)
{
	struct pg *other = connect_to(target);

	assert_ok(pg_exec(pg, "CREATE TABLE IF NOT EXISTS locked(n integer)"));
	pg_begin(other);
	assert_ok(pg_exec(other, "LOCK TABLE locked"));
	assert_ok(pg_exec(pg, "SET lock_timeout = 50"));
	pg_begin(pg);
	assert_int_equal(pg_exec(pg, "SELECT 1 FROM locked"), RC_BUSY);
	assert_int_equal(pg_failure(pg), PG_AGAIN);
	/* What follows in the transaction has the same reason. */
	assert_int_equal(pg_exec(pg, "SELECT 1"), RC_BUSY);
	assert_int_equal(pg_commit(pg), RC_BUSY);
	pg_rollback(pg);
	assert_ok(pg_clear(pg));
	pg_close(other);
	assert_ok(pg_exec(pg, "SELECT 1 FROM locked"));
}

/* --- connections ---------------------------------------------------------- */

/* target_session_attrs=read-write goes on to the primary, and so does a host
 * that is not there. */
CASE(the_host_that_writes_is_found)
{
	char list[1024], folder[256], port[8];
	struct pg_target *t;
	struct pg *found;

	control("make standby primary");
	snprintf(port, sizeof(port), "%d",
	    atoi(strstr(control("proxy frozen standby"), "0.0.1:") + 6));
	control("frozen freeze");
	snprintf(folder, sizeof(folder), "%s", strstr(uri, "host=") + 5);
	*strchr(folder, '&') = '\0';
	*strrchr(folder, '/') = '\0';
	snprintf(list, sizeof(list),
	    "host=%s/nobody,%s/standby,127.0.0.1,%s/primary "
	    "port=5432,5432,%s,5432 user=postgres dbname=postgres",
	    folder, folder, folder, port);
	t = parse(list);
	assert_ok(pg_open(&found, t, clock_mono() + 2000));
	pg_set_deadline(found, clock_mono() + 20000);
	assert_ok(pg_exec(found, "CREATE TEMP TABLE here(n integer)"));
	pg_close(found);
	pg_target_free(t);
	control("standby stop");
}

/* --- secrets -------------------------------------------------------------- */

CASE(no_password_is_in_names_and_messages)
{
	static const char *const broken[] = {
		"postgresql://u:sec%zzret@h/db",
		"postgresql://u:secret@h:x:y/db?secret",
		"password=secret secret",
		"postgresql://u:secret@[::1/db",
		"password='secret",
	};
	struct pg_target *t;
	struct pg *none;
	char err[256];

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		err[0] = '\0';
		assert_int_equal(
		    pg_target_parse(&t, broken[i], 1, err, sizeof(err)),
		    RC_INVALID);
		assert_true(strlen(err) > 10);
		assert_null(strstr(err, "secret"));
		assert_null(strstr(err, "sec%"));
	}
	t = parse("postgresql://joe:s3%20kr@a,b:77/shop?sslpassword=s3%20kr&"
		  "sslmode=require&application_name=s3%20kr");
	assert_string_equal(pg_target_name(t),
	    "postgresql://joe@a,b:77/shop?sslmode=require&"
	    "application_name=s3%20kr");
	pg_target_free(t);
	t = parse("postgresql://:s3kr@/shop?pass%77ord=s3kr&user=joe");
	assert_string_equal(pg_target_name(t), "postgresql://@/shop?user=joe");
	pg_target_free(t);
	/* libpq names the host that it does not find. */
	t = parse("host=/s3kr:tt/there user=joe password=s3kr:tt");
	assert_int_equal(pg_open(&none, t, clock_mono() + 20000), RC_IO);
	assert_non_null(strstr(pg_message(none), "there"));
	assert_null(strstr(pg_message(none), "s3kr:tt"));
	pg_close(none);
	pg_target_free(t);
}

/* --- mistakes ------------------------------------------------------------- */

enum mistake {
	TOO_FEW_COLUMNS,
	ANOTHER_TYPE,
	NO_SUCH_PARAMETER,
	A_RESULT_TOO_MANY,
	MISTAKES
};

static enum rc
make(enum mistake mistake)
{
	const char *text;

	switch (mistake) {
	case TOO_FEW_COLUMNS:
		return pg_row(pg, "i");
	case ANOTHER_TYPE:
		return pg_row(pg, "p-", &text);
	case NO_SUCH_PARAMETER:
		pg_send(pg, ONE, "q", 1);
		return pg_result(pg);
	case A_RESULT_TOO_MANY:
		return pg_result(pg);
	case MISTAKES:
		break;
	}
	return RC_OK;
}

/* A build with checks aborts; any other returns RC_INVALID. */
static int
passes(const void *mistake)
{
	return make(*(const enum mistake *)mistake) != RC_INVALID;
}

CASE(a_format_that_does_not_fit_is_refused)
{
	for (enum mistake m = 0; m < MISTAKES; m++) {
		again();
		assert_ok(pg_exec(pg, "SELECT 1, 'x'"));
		assert_int_equal(aborts(passes, &m), HAS_CHECKS);
	}
	again();
	SEND("SELECT $1::text, $2::text", "s", "one");
	assert_int_equal(pg_result(pg), RC_INVALID);
}

GROUP(setup_group, stop_servers)
