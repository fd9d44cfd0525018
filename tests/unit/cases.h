/*
 * What every test includes.  TEST(name) is the head of a test, which lists
 * itself; main() is here, and runs the tests of a file in their order.
 */
#ifndef CASES_H
#define CASES_H

#include <errno.h> /* program_invocation_short_name */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define UNUSED   __attribute__((unused))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define assert_ok(call) assert_int_equal((call), RC_OK)

/* Waits until that is so, for a minute and what it takes to look; or looks less
 * often than every 3 ms. */
#define AWAIT(condition) AWAIT_EVERY(3, condition)
#define AWAIT_EVERY(ms, condition)                                             \
	for (int looks = 0; !(condition); looks++) {                           \
		if (looks == 20000)                                            \
			fail_msg("not within a minute: %s", #condition);       \
		nanosleep(&(const struct timespec){ 0, (ms)*1000000L }, NULL); \
	}

/* That each value from first to last has a text, which no other one has. */
#define ALL_DIFFER(text, type, first, last)                                    \
	for (int v = (first); v <= (int)(last); v++) {                         \
		assert_true(text((type)v)[0] != '\0');                         \
		for (int w = (first); w < v; w++)                              \
			assert_string_not_equal(text((type)v), text((type)w)); \
	}

/* A copy of its exact size, so that a sanitizer sees each read beyond it; the
 * caller frees it. */
static UNUSED void *
exact_copy(const void *bytes, size_t n)
{
	void *copy = malloc(n > 0 ? n : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, n);
	return copy;
}

static UNUSED pthread_t
start_thread(void *(*act)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, act, arg), 0);
	return thread;
}

/* What the thread returned. */
static UNUSED void *
end_thread(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static struct CMUnitTest case_list[120];
static int case_lines[COUNT(case_list)];
static size_t ncases;
static CMFixtureFunction group_setup, group_teardown;
static CMFixtureFunction case_setup, case_teardown;

/* Constructors run in any order, so the line says where a test belongs. */
static void
add_case(struct CMUnitTest test, int line)
{
	size_t at = ncases++;

	if (ncases > COUNT(case_list))
		abort();
	for (; at > 0 && case_lines[at - 1] > line; at--) {
		case_list[at] = case_list[at - 1];
		case_lines[at] = case_lines[at - 1];
	}
	case_list[at] = test;
	case_lines[at] = line;
}

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* A test between a setup and a teardown of its own. */
#define TEST_WITH(name, setup, teardown)                                    \
	static void name(void **);                                          \
	static __attribute__((constructor)) void add_##name(void)           \
	{                                                                   \
		struct CMUnitTest test =                                    \
		    cmocka_unit_test_setup_teardown(name, setup, teardown); \
                                                                            \
		add_case(test, __LINE__);                                   \
	}                                                                   \
	static void name(UNUSED void **state)

/* What runs before the first test of the file, and after the last one. */
#define GROUP(setup, teardown)                                   \
	static __attribute__((constructor)) void set_group(void) \
	{                                                        \
		group_setup = setup;                             \
		group_teardown = teardown;                       \
	}

/* What runs before and after each test that TEST() begins. */
#define AROUND_EACH(setup, teardown)                            \
	static __attribute__((constructor)) void set_each(void) \
	{                                                       \
		case_setup = setup;                             \
		case_teardown = teardown;                       \
	}

/* How many there are, once those that this run skips are replaced; 0: an error.
 */
#ifdef SKIP_CASES
static size_t SKIP_CASES(struct CMUnitTest *, size_t);
#else
#define SKIP_CASES(tests, n) (n)
#endif

int
main(void)
{
	size_t n = SKIP_CASES(case_list, ncases);

	for (size_t i = 0; i < n; i++) {
		struct CMUnitTest *test = &case_list[i];

		if (test->setup_func == NULL && test->teardown_func == NULL) {
			test->setup_func = case_setup;
			test->teardown_func = case_teardown;
		}
	}
	return n == 0 ||
	    _cmocka_run_group_tests(program_invocation_short_name, case_list, n,
		group_setup, group_teardown) != 0;
}

#endif
