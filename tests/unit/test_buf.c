/*
 * buf: growth up to the maximum and not a byte further; what a failure leaves
 * behind; the NUL that is not counted.  And rc: every code has a text.
 */
#include "config.h"

#include "cases.h"

#include "out.h"

static void
assert_holds(const char *text)
{
	assert_int_equal(out.len, strlen(text));
	assert_string_equal(out.data, text);
}

TEST(new_one_is_an_empty_string)
{
	out_new(10);
	assert_holds("");
	assert_int_equal(out.cap, 0);
	buf_clear(&out);
	buf_truncate(&out, 0);
	buf_consume(&out, 0);
	buf_commit(&out, 0);
	buf_free(&out);
	buf_free(&out);
	buf_free(NULL);
	assert_holds("");
	assert_int_equal(out.max, 10);
}

TEST(appends_of_every_kind)
{
	out_new(100);
	assert_ok(buf_add(&out, "abc", 2));
	assert_ok(buf_addc(&out, '-'));
	assert_ok(buf_adds(&out, "cd"));
	assert_ok(buf_addf(&out, "%d%s", 42, "x"));
	assert_ok(buf_addf(&out, "%s", ""));
	assert_ok(buf_add(&out, NULL, 0));
	assert_holds("ab-cd42x");
}

TEST(maximum_is_reached_but_not_passed)
{
	static const size_t maxima[] = { 0, 1, 63, 64, 65, 1000 };
	size_t i, n;

	for (i = 0; i < COUNT(maxima); i++) {
		out_new(maxima[i]);
		for (n = 0; n < maxima[i]; n++)
			assert_ok(buf_addc(&out, 'x'));
		assert_int_equal(buf_addc(&out, 'y'), RC_LIMIT);
		assert_int_equal(buf_adds(&out, "y"), RC_LIMIT);
		assert_int_equal(buf_addf(&out, "%c", 'y'), RC_LIMIT);
		assert_int_equal(buf_reserve(&out, 1), RC_LIMIT);
		assert_int_equal(out.len, maxima[i]);
		assert_int_equal(strlen(out.data), maxima[i]);
		assert_null(strchr(out.data, 'y'));
		assert_true(out.cap <= maxima[i] + 1);
	}
}

TEST(append_that_fails_changes_nothing)
{
	out_new(5);
	assert_ok(buf_adds(&out, "abc"));
	assert_int_equal(buf_adds(&out, "def"), RC_LIMIT);
	assert_int_equal(buf_addf(&out, "%d", 123), RC_LIMIT);
	assert_int_equal(buf_add(&out, "x", SIZE_MAX), RC_LIMIT);
	assert_holds("abc");
}

TEST(failure_stays_until_bytes_are_dropped)
{
	out_new(3);
	assert_int_equal(buf_adds(&out, "abcd"), RC_LIMIT);
	assert_int_equal(buf_addc(&out, 'a'), RC_LIMIT);
	assert_int_equal(buf_add(&out, NULL, 0), RC_LIMIT);
	assert_int_equal(buf_addf(&out, "%c", 'a'), RC_LIMIT);
	assert_holds("");
	buf_clear(&out);
	assert_ok(buf_adds(&out, "abc"));
	assert_int_equal(buf_addc(&out, 'd'), RC_LIMIT);
	buf_truncate(&out, 2);
	assert_ok(buf_addc(&out, 'd'));
	assert_int_equal(buf_addc(&out, 'e'), RC_LIMIT);
	buf_free(&out);
	assert_ok(buf_adds(&out, "abc"));
	assert_holds("abc");
}

TEST(lengths_that_would_overflow_are_no_memory)
{
	out_new(SIZE_MAX);
	assert_ok(buf_adds(&out, "abc"));
	assert_int_equal(buf_reserve(&out, SIZE_MAX - 3), RC_NOMEM);
	assert_int_equal(buf_reserve(&out, SIZE_MAX / 2), RC_NOMEM);
	assert_int_equal(buf_reserve(&out, SIZE_MAX), RC_LIMIT);
	assert_holds("abc");
}

TEST(reserved_room_is_counted_when_committed)
{
	out_new(300);
	assert_ok(buf_reserve(&out, 200));
	memset(out.data, 'z', 200);
	buf_commit(&out, 3);
	assert_holds("zzz");
	assert_ok(buf_reserve(&out, 297));
	memset(out.data + out.len, 'z', 297);
	buf_commit(&out, 297);
	assert_int_equal(strlen(out.data), 300);
}

TEST(consume_takes_from_the_front)
{
	out_new(10);
	assert_ok(buf_adds(&out, "abcdef"));
	buf_consume(&out, 2);
	assert_holds("cdef");
	buf_consume(&out, 4);
	assert_holds("");
	assert_ok(buf_adds(&out, "0123456789"));
	assert_holds("0123456789");
}

TEST(truncate_takes_from_the_end)
{
	out_new(10);
	assert_ok(buf_adds(&out, "abcdef"));
	buf_truncate(&out, 6);
	assert_holds("abcdef");
	buf_truncate(&out, 2);
	assert_holds("ab");
	buf_clear(&out);
	assert_holds("");
	assert_true(out.cap > 0);
}

TEST(bytes_may_be_nul)
{
	out_new(10);
	assert_ok(buf_add(&out, "a\0b", 3));
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.data, "a\0b", 4);
}

TEST(every_return_code_has_a_text_of_its_own)
{
	ALL_DIFFER(rc_text, enum rc, RC_OK, RC_INVALID);
}
