/*
 * buf: growth up to the maximum and not a byte further; what a failure leaves
 * behind; the NUL that is not counted.  And rc: every code has a text.
 */
#include "config.h"

#include "cases.h"

#include "buf.h"

static void
assert_holds(const struct buf *b, const char *text)
{
	assert_int_equal(b->len, strlen(text));
	assert_string_equal(b->data, text);
}

TEST(new_one_is_an_empty_string)
{
	struct buf b;

	buf_init(&b, 10);
	assert_holds(&b, "");
	assert_int_equal(b.cap, 0);
	buf_clear(&b);
	buf_truncate(&b, 0);
	buf_consume(&b, 0);
	buf_commit(&b, 0);
	buf_free(&b);
	buf_free(&b);
	buf_free(NULL);
	assert_holds(&b, "");
	assert_int_equal(b.max, 10);
}

TEST(appends_of_every_kind)
{
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(buf_add(&b, "abc", 2), RC_OK);
	assert_int_equal(buf_addc(&b, '-'), RC_OK);
	assert_int_equal(buf_adds(&b, "cd"), RC_OK);
	assert_int_equal(buf_addf(&b, "%d%s", 42, "x"), RC_OK);
	assert_int_equal(buf_addf(&b, "%s", ""), RC_OK);
	assert_int_equal(buf_add(&b, NULL, 0), RC_OK);
	assert_holds(&b, "ab-cd42x");
	buf_free(&b);
}

TEST(maximum_is_reached_but_not_passed)
{
	static const size_t maxima[] = { 0, 1, 63, 64, 65, 1000 };
	struct buf b;
	size_t i, n;

	for (i = 0; i < COUNT(maxima); i++) {
		buf_init(&b, maxima[i]);
		for (n = 0; n < maxima[i]; n++)
			assert_int_equal(buf_addc(&b, 'x'), RC_OK);
		assert_int_equal(buf_addc(&b, 'y'), RC_LIMIT);
		assert_int_equal(buf_adds(&b, "y"), RC_LIMIT);
		assert_int_equal(buf_addf(&b, "%c", 'y'), RC_LIMIT);
		assert_int_equal(buf_reserve(&b, 1), RC_LIMIT);
		assert_int_equal(b.len, maxima[i]);
		assert_int_equal(strlen(b.data), maxima[i]);
		assert_null(strchr(b.data, 'y'));
		assert_true(b.cap <= maxima[i] + 1);
		buf_free(&b);
	}
}

TEST(append_that_fails_changes_nothing)
{
	struct buf b;

	buf_init(&b, 5);
	assert_int_equal(buf_adds(&b, "abc"), RC_OK);
	assert_int_equal(buf_adds(&b, "def"), RC_LIMIT);
	assert_int_equal(buf_addf(&b, "%d", 123), RC_LIMIT);
	assert_int_equal(buf_add(&b, "x", SIZE_MAX), RC_LIMIT);
	assert_holds(&b, "abc");
	buf_free(&b);
}

TEST(lengths_that_would_overflow_are_no_memory)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	assert_int_equal(buf_adds(&b, "abc"), RC_OK);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 3), RC_NOMEM);
	assert_int_equal(buf_reserve(&b, SIZE_MAX / 2), RC_NOMEM);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), RC_LIMIT);
	assert_holds(&b, "abc");
	buf_free(&b);
}

TEST(reserved_room_is_counted_when_committed)
{
	struct buf b;

	buf_init(&b, 300);
	assert_int_equal(buf_reserve(&b, 200), RC_OK);
	memset(b.data, 'z', 200);
	buf_commit(&b, 3);
	assert_holds(&b, "zzz");
	assert_int_equal(buf_reserve(&b, 297), RC_OK);
	memset(b.data + b.len, 'z', 297);
	buf_commit(&b, 297);
	assert_int_equal(strlen(b.data), 300);
	buf_free(&b);
}

TEST(consume_takes_from_the_front)
{
	struct buf b;

	buf_init(&b, 10);
	assert_int_equal(buf_adds(&b, "abcdef"), RC_OK);
	buf_consume(&b, 2);
	assert_holds(&b, "cdef");
	buf_consume(&b, 4);
	assert_holds(&b, "");
	assert_int_equal(buf_adds(&b, "0123456789"), RC_OK);
	assert_holds(&b, "0123456789");
	buf_free(&b);
}

TEST(truncate_takes_from_the_end)
{
	struct buf b;

	buf_init(&b, 10);
	assert_int_equal(buf_adds(&b, "abcdef"), RC_OK);
	buf_truncate(&b, 6);
	assert_holds(&b, "abcdef");
	buf_truncate(&b, 2);
	assert_holds(&b, "ab");
	buf_clear(&b);
	assert_holds(&b, "");
	assert_true(b.cap > 0);
	buf_free(&b);
}

TEST(bytes_may_be_nul)
{
	struct buf b;

	buf_init(&b, 10);
	assert_int_equal(buf_add(&b, "a\0b", 3), RC_OK);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	buf_free(&b);
}

TEST(every_return_code_has_a_text_of_its_own)
{
	int i, j;

	for (i = RC_OK; i <= RC_INVALID; i++) {
		assert_true(strlen(rc_text((enum rc)i)) > 0);
		for (j = RC_OK; j < i; j++)
			assert_string_not_equal(
			    rc_text((enum rc)i), rc_text((enum rc)j));
	}
}
