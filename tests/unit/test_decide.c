/*
 * decide: every state, with the same fingerprint and another, before its
 * retention has passed and after.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "decide.h"

#define NOW 1000

static const struct row {
	const char *name;
	enum record_state state;
	bool kept;
	int64_t expires_at;
	enum decision same, other;
	bool past;
	int64_t marker; /* 0: on_expired = run */
} rows[] = {
	{ "pending", RECORD_PENDING, false, NOW + 1, DECIDE_BUSY,
	    DECIDE_MISMATCH, false, 0 },
	{ "pending, its time over", RECORD_PENDING, false, NOW, DECIDE_BUSY,
	    DECIDE_MISMATCH, false, 0 },
	{ "in progress", RECORD_IN_PROGRESS, false, 0, DECIDE_BUSY,
	    DECIDE_MISMATCH, false, 0 },
	{ "completed", RECORD_COMPLETED, true, NOW + 1, DECIDE_REPLAY,
	    DECIDE_MISMATCH, false, 0 },
	{ "completed, answer not kept", RECORD_COMPLETED, false, NOW + 1,
	    DECIDE_NOT_KEPT, DECIDE_MISMATCH, false, 0 },
	{ "completed, never ends by age", RECORD_COMPLETED, true, 0,
	    DECIDE_REPLAY, DECIDE_MISMATCH, false, 0 },
	{ "completed, at its end", RECORD_COMPLETED, true, NOW, DECIDE_RUN,
	    DECIDE_RUN, true, 0 },
	{ "completed, past its end", RECORD_COMPLETED, true, NOW - 1,
	    DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ "completed, not kept, past its end", RECORD_COMPLETED, false, 1,
	    DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ "released", RECORD_FAILED_RETRYABLE, false, NOW + 1, DECIDE_RUN,
	    DECIDE_MISMATCH, false, 0 },
	{ "released, past its end", RECORD_FAILED_RETRYABLE, false, NOW,
	    DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ "unknown", RECORD_UNKNOWN, false, 0, DECIDE_UNKNOWN, DECIDE_MISMATCH,
	    false, 0 },
	{ "unknown with a time, which counts for nothing", RECORD_UNKNOWN,
	    false, NOW - 1, DECIDE_UNKNOWN, DECIDE_MISMATCH, false, 0 },
	{ "dead letter", RECORD_DEAD_LETTER, false, 0, DECIDE_UNKNOWN,
	    DECIDE_MISMATCH, false, 0 },
	{ "expired", RECORD_EXPIRED, false, NOW + 1, DECIDE_GONE,
	    DECIDE_MISMATCH, false, 0 },
	{ "expired, its marker's time over", RECORD_EXPIRED, false, NOW - 1,
	    DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ "completed, to be a marker", RECORD_COMPLETED, true, NOW + 1,
	    DECIDE_REPLAY, DECIDE_MISMATCH, false, 10 },
	{ "completed, a marker but for the pass", RECORD_COMPLETED, true,
	    NOW - 1, DECIDE_GONE, DECIDE_MISMATCH, false, 10 },
	{ "completed, past its marker's time too", RECORD_COMPLETED, true,
	    NOW - 10, DECIDE_RUN, DECIDE_RUN, true, 10 },
	{ "released, a marker but for the pass", RECORD_FAILED_RETRYABLE, false,
	    NOW, DECIDE_GONE, DECIDE_MISMATCH, false, 10 },
};

static void
no_record_runs(void **state)
{
	(void)state;
	assert_int_equal(decide(NULL, true, NOW), DECIDE_RUN);
	assert_int_equal(decide(NULL, false, NOW), DECIDE_RUN);
}

static void
every_state(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *w = &rows[i];
		struct record r = {
			.state = w->state,
			.kept = w->kept,
			.expires_at = w->expires_at,
			.gone = w->marker != 0,
			.expired_retention = w->marker,
		};

		if (decide(&r, true, NOW) != w->same)
			fail_msg("%s: same fingerprint", w->name);
		if (decide(&r, false, NOW) != w->other)
			fail_msg("%s: other fingerprint", w->name);
		if (decide_is_past(&r, NOW) != w->past)
			fail_msg("%s: past", w->name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_record_runs),
		cmocka_unit_test(every_state),
	};

	return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
