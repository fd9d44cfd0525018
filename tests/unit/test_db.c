/*
 * db: values of each letter go into a row and come out of it again; a format
 * that does not fit its statement is refused.
 */
#include "config.h"

#include <limits.h>

#include "cases.h"
#include "aborts.h"

#include "db.h"
#include "log.h"

static char file[64];
static struct db *db;

/* A table with the columns of once_clock, which take any value: CLOCK_NEW
 * binds three parameters, and CLOCK_GET reads them. */
static int
setup(UNUSED void **state)
{
	int fd;

	log_set_level(LOG_ERROR + 1);
	strcpy(file, "/tmp/test_db.XXXXXX");
	fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	assert_ok(db_open(&db, file, 1000));
	assert_ok(
	    db_exec(db, "CREATE TABLE once_clock(id, boot_id, shift, last)"));
	return 0;
}

static int
teardown(UNUSED void **state)
{
	db_close(db);
	unlink(file);
	return 0;
}

#define BIND(...)                                                  \
	do {                                                       \
		struct db_stmt *s_ = db_stmt(db, QUERY_CLOCK_NEW); \
		assert_ok(db_exec(db, "DELETE FROM once_clock"));  \
		db_bindf(s_, __VA_ARGS__);                         \
		assert_ok(db_step_done(s_));                       \
	} while (0)

#define READ(...) db_onef(db_stmt(db, QUERY_CLOCK_GET), __VA_ARGS__)

TEST(numbers_and_texts)
{
	char *text = NULL, field[6];
	int64_t number = 0;
	int count = 0;

	BIND("sid", "hello", INT64_MIN, -7);
	assert_ok(READ("sii", &text, &number, &number));
	assert_string_equal(text, "hello");
	assert_int_equal(number, -7);
	free(text);
	assert_ok(READ("fi-", field, sizeof(field), &number));
	assert_string_equal(field, "hello");
	assert_true(number == INT64_MIN);
	BIND("sid", "", ROW_TIME_MAX, INT_MAX - 1);
	assert_ok(READ("fmd", field, sizeof(field), &number, &count));
	assert_string_equal(field, "");
	assert_true(number == ROW_TIME_MAX);
	assert_int_equal(count, INT_MAX - 1);
}

TEST(blobs_and_pointers_into_the_row)
{
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_GET);
	const void *blob, *empty;
	const char *text;
	size_t n, none;

	BIND("bbs", "a\0b", (size_t)3, NULL, (size_t)0, "here");
	assert_ok(db_step_row(s));
	assert_ok(db_rowf(s, "bbp", &blob, &n, &empty, &none, &text));
	assert_int_equal(n, 3);
	assert_memory_equal(blob, "a\0b", 3);
	assert_int_equal(none, 0);
	assert_string_equal(text, "here");
	db_reset(s);
}

TEST(a_uuid_is_sixteen_bytes_and_a_text_again)
{
	static const char uuid[] = "01234567-89ab-1def-0123-456789abcdef";
	static const unsigned char bytes[16] = "\x01\x23\x45\x67\x89\xab\x1d"
					       "\xef\x01\x23\x45\x67\x89\xab"
					       "\xcd\xef";
	static const char *const none[] = { "",
		"01234567-89ab-1def-0123-456789abcde",
		"01234567-89ab-1def-0123-456789abcdef0",
		"01234567-89ab-1def-0123-456789abcdeg",
		"01234567-89ab-1def-0123-456789ABCDEF",
		"01234567089ab-1def-0123-456789abcdef",
		"01234567-89ab-1def0-123-456789abcdef" };
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_GET);
	char text[37], small[36];
	const void *blob;
	size_t n;

	BIND("udd", uuid, 0, 0);
	assert_ok(db_step_row(s));
	assert_ok(db_rowf(s, "b--", &blob, &n));
	assert_int_equal(n, sizeof(bytes));
	assert_memory_equal(blob, bytes, sizeof(bytes));
	db_reset(s);
	assert_ok(READ("u--", text, sizeof(text)));
	assert_string_equal(text, uuid);
	assert_int_equal(READ("u--", small, sizeof(small)), RC_CORRUPT);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		BIND("udd", none[i], 0, 0);
		assert_int_equal(READ("u--", text, sizeof(text)), RC_CORRUPT);
		assert_string_equal(text, "");
	}
	BIND("udd", NULL, 0, 0);
	assert_ok(READ("u--", text, sizeof(text)));
	assert_string_equal(text, "");
	BIND("bdd", bytes, sizeof(bytes) - 1, 0, 0);
	assert_int_equal(READ("u--", text, sizeof(text)), RC_CORRUPT);
}

TEST(nothing_is_null)
{
	bool a = true, b = true, c = true;
	char *text = file, field[2] = "x";
	int64_t number = 1;

	BIND("ztn", INT64_C(0), "");
	assert_ok(READ("vvv", &a, &b, &c));
	assert_true(!a && !b && !c);
	BIND("sto", NULL, NULL, "", (size_t)0);
	assert_ok(READ("vvv", &a, &b, &c));
	assert_true(!a && !b && !c);
	assert_ok(READ("smf", &text, &number, field, (size_t)2));
	assert_null(text);
	assert_int_equal(number, 0);
	assert_string_equal(field, "");
	/* An empty blob and an empty text are values, and so is a number that
	 * is not 0. */
	BIND("bsz", NULL, (size_t)0, "", INT64_C(1));
	assert_ok(READ("vv?", &a, &b, &c));
	assert_true(a && b && c);
	BIND("tod", "x", "y", (size_t)1, 0);
	assert_ok(READ("vv?", &a, &b, &c));
	assert_true(a && b && !c);
}

TEST(a_value_out_of_range_is_corrupt)
{
	char field[4], *text = NULL;
	int64_t number;
	int count = 5;

	BIND("iis", INT64_C(-1), (int64_t)ROW_TIME_MAX + 1, "four");
	assert_int_equal(READ("m--", &number), RC_CORRUPT);
	assert_int_equal(READ("-m-", &number), RC_CORRUPT);
	assert_int_equal(READ("d--", &count), RC_CORRUPT);
	assert_int_equal(count, 0);
	assert_int_equal(READ("--f", field, sizeof(field)), RC_CORRUPT);
	BIND("iin", (int64_t)INT_MAX, INT64_C(1) << 32);
	assert_int_equal(READ("d--", &count), RC_CORRUPT);
	assert_int_equal(READ("-d-", &count), RC_CORRUPT);
	/* C code would read this as a shorter text. */
	assert_ok(db_exec(
	    db, "UPDATE once_clock SET boot_id = 'a' || char(0) || 'b'"));
	assert_int_equal(READ("s--", &text), RC_CORRUPT);
	assert_null(text);
	assert_int_equal(READ("f--", field, sizeof(field)), RC_CORRUPT);
}

TEST(no_row_is_not_found)
{
	int64_t number = 3;

	assert_ok(db_exec(db, "DELETE FROM once_clock"));
	assert_int_equal(READ("--i", &number), RC_NOTFOUND);
	assert_int_equal(number, 3);
}

/* --- rows as structs ------------------------------------------------------ */

struct thing {
	char boot_id[8];
	int64_t shift;
	int last;
};

static const struct row_member thing[] = {
	ROW_MEMBER('f', thing, boot_id),
	ROW_MEMBER('m', thing, shift),
	ROW_MEMBER('d', thing, last),
};

static enum rc
read_thing(const struct row_member *members, size_t n, void *out)
{
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_GET);
	enum rc rc;

	assert_ok(db_step_row(s));
	rc = db_members(s, members, n, out);
	db_reset(s);
	return rc;
}

TEST(columns_become_members)
{
	struct thing t;

	BIND("sid", "hello", INT64_C(12), 7);
	for (int i = 0; i < 2; i++) {
		memset(&t, 0, sizeof(t));
		assert_ok(read_thing(thing, 3, &t));
		assert_string_equal(t.boot_id, "hello");
		assert_int_equal(t.shift, 12);
		assert_int_equal(t.last, 7);
	}
	/* some of the columns, wherever they are */
	memset(&t, 0, sizeof(t));
	assert_ok(read_thing(thing + 1, 2, &t));
	assert_int_equal(t.last, 7);
	BIND("sid", "hello", INT64_C(-12), 7);
	assert_int_equal(read_thing(thing, 3, &t), RC_CORRUPT);
	BIND("sid", "too long", INT64_C(12), 7);
	assert_int_equal(read_thing(thing, 3, &t), RC_CORRUPT);
}

static bool
parse_word(const char *word, int *value)
{
	*value = strcmp(word, "one") == 0;
	return *value == 1;
}

TEST(words_arrays_and_bytes_become_members)
{
	struct some {
		enum { NO, ONE } boot_id;
		unsigned char shift[3];
		struct buf last;
	} some;
	const struct row_member members[] = {
		{ "boot_id", 'e', offsetof(struct some, boot_id),
		    sizeof(some.boot_id), parse_word },
		ROW_MEMBER('x', some, shift),
		ROW_MEMBER('a', some, last),
	};

	BIND("sbb", "one", "a\0b", (size_t)3, "\0c", (size_t)2);
	assert_ok(read_thing(members, 3, &some));
	assert_int_equal(some.boot_id, ONE);
	assert_memory_equal(some.shift, "a\0b", 3);
	assert_int_equal(some.last.len, 2);
	assert_memory_equal(some.last.data, "\0c", 3);
	buf_free(&some.last);
	BIND("sbn", "two", "abc", (size_t)3);
	assert_int_equal(read_thing(members, 1, &some), RC_CORRUPT);
	BIND("nbn", "abc", (size_t)3);
	assert_int_equal(read_thing(members, 1, &some), RC_CORRUPT);
	BIND("sbn", "one", "abcd", (size_t)4);
	assert_int_equal(read_thing(members, 2, &some), RC_CORRUPT);
}

/* --- mistakes ------------------------------------------------------------- */

static const struct row_member other[] = {
	{ "boot_id", 'f', 0, 8, NULL },
	{ "last", 'd', 8, sizeof(int), NULL },
};

static const struct row_member more[] = {
	{ "last", 'd', 0, sizeof(int), NULL },
	{ "more", 'd', 0, sizeof(int), NULL },
};

enum mistake {
	TOO_FEW_PARAMETERS,
	TOO_MANY_PARAMETERS,
	NO_SUCH_PARAMETER,
	TOO_FEW_COLUMNS,
	TOO_MANY_COLUMNS,
	NO_SUCH_COLUMN,
	A_POINTER_THAT_WOULD_DANGLE,
	OTHER_COLUMNS,
	MORE_COLUMNS,
	MISTAKES
};

static enum rc
bind(const char *format)
{
	struct db_stmt *s = db_stmt(db, QUERY_CLOCK_NEW);

	db_bindf(s, format, "x", INT64_C(1), INT64_C(1));
	return db_step_done(s);
}

static enum rc
make(enum mistake mistake)
{
	const char *text;
	char out[16];

	switch (mistake) {
	case TOO_FEW_PARAMETERS:
		return bind("si");
	case TOO_MANY_PARAMETERS:
		return bind("siin");
	case NO_SUCH_PARAMETER:
		return bind("siq");
	case TOO_FEW_COLUMNS:
		return READ("--");
	case TOO_MANY_COLUMNS:
		return READ("----");
	case NO_SUCH_COLUMN:
		return READ("--q");
	case A_POINTER_THAT_WOULD_DANGLE:
		return READ("p--", &text);
	case OTHER_COLUMNS:
		return read_thing(other, 2, out);
	case MORE_COLUMNS:
		return read_thing(more, 2, out);
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

TEST(a_format_that_does_not_fit_is_refused)
{
	BIND("sid", "x", INT64_C(1), 1);
	for (enum mistake m = 0; m < MISTAKES; m++)
		assert_int_equal(aborts(passes, &m), HAS_CHECKS);
}

GROUP(setup, teardown)
