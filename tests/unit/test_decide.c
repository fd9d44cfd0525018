/*
 * decide: every state, with the same fingerprint and another, before its
 * retention has passed and after.
 */
#include "config.h"

#include "cases.h"

#include "decide.h"

#define NOW 1000

static const struct row {
	enum record_state state;
	bool kept;
	int64_t expires_at;
	enum decision same, other;
	bool past;
	int64_t marker; /* 0: on_expired = run */
} rows[] = {
	/* pending */
	{ RECORD_PENDING, false, NOW + 1, DECIDE_BUSY, DECIDE_MISMATCH, false,
	    0 },
	{ RECORD_PENDING, false, NOW, DECIDE_BUSY, DECIDE_MISMATCH, false, 0 },
	{ RECORD_IN_PROGRESS, false, 0, DECIDE_BUSY, DECIDE_MISMATCH, false,
	    0 },
	/* completed */
	{ RECORD_COMPLETED, true, NOW + 1, DECIDE_REPLAY, DECIDE_MISMATCH,
	    false, 0 },
	{ RECORD_COMPLETED, false, NOW + 1, DECIDE_NOT_KEPT, DECIDE_MISMATCH,
	    false, 0 },
	{ RECORD_COMPLETED, true, 0, DECIDE_REPLAY, DECIDE_MISMATCH, false, 0 },
	/* at its end, and past it */
	{ RECORD_COMPLETED, true, NOW, DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ RECORD_COMPLETED, true, NOW - 1, DECIDE_RUN, DECIDE_RUN, true, 0 },
	{ RECORD_COMPLETED, false, 1, DECIDE_RUN, DECIDE_RUN, true, 0 },
	/* released */
	{ RECORD_FAILED_RETRYABLE, false, NOW + 1, DECIDE_RUN, DECIDE_MISMATCH,
	    false, 0 },
	{ RECORD_FAILED_RETRYABLE, false, NOW, DECIDE_RUN, DECIDE_RUN, true,
	    0 },
	/* unknown, for which a time counts for nothing */
	{ RECORD_UNKNOWN, false, 0, DECIDE_UNKNOWN, DECIDE_MISMATCH, false, 0 },
	{ RECORD_UNKNOWN, false, NOW - 1, DECIDE_UNKNOWN, DECIDE_MISMATCH,
	    false, 0 },
	{ RECORD_DEAD_LETTER, false, 0, DECIDE_UNKNOWN, DECIDE_MISMATCH, false,
	    0 },
	/* expired, and its marker over */
	{ RECORD_EXPIRED, false, NOW + 1, DECIDE_GONE, DECIDE_MISMATCH, false,
	    0 },
	{ RECORD_EXPIRED, false, NOW - 1, DECIDE_RUN, DECIDE_RUN, true, 0 },
	/* to be a marker; one but for the pass; past that */
	{ RECORD_COMPLETED, true, NOW + 1, DECIDE_REPLAY, DECIDE_MISMATCH,
	    false, 10 },
	{ RECORD_COMPLETED, true, NOW - 1, DECIDE_GONE, DECIDE_MISMATCH, false,
	    10 },
	{ RECORD_COMPLETED, true, NOW - 10, DECIDE_RUN, DECIDE_RUN, true, 10 },
	{ RECORD_FAILED_RETRYABLE, false, NOW, DECIDE_GONE, DECIDE_MISMATCH,
	    false, 10 },
};

TEST(no_record_runs)
{
	assert_int_equal(decide(NULL, true, true, NOW), DECIDE_RUN);
	assert_int_equal(decide(NULL, false, false, NOW), DECIDE_RUN);
}

TEST(every_state)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct record r = {
			.state = w->state,
			.replayable = w->kept,
			.expires_at = w->expires_at,
			.expired_retention = w->marker,
		};

		if (decide(&r, true, true, NOW) != w->same)
			fail_msg("row %zu: same fingerprint", i);
		if (decide(&r, true, false, NOW) != w->other)
			fail_msg("row %zu: other fingerprint", i);
		/* Of another's key nothing is told, whatever it is. */
		for (int same = 0; same < 2; same++)
			if (decide(&r, false, same, NOW) !=
			    (w->past ? DECIDE_RUN : DECIDE_OF_ANOTHER))
				fail_msg("row %zu: of another", i);
		if (decide_is_past(&r, NOW) != w->past)
			fail_msg("row %zu: past", i);
	}
}

TEST(key_is_of_the_browser_with_the_same_address_or_cookies)
{
	static const struct {
		const char *peer, *cookie; /* of the record; "": none */
		const char *by_peer, *by_cookie;
		bool mine;
	} cases[] = {
		/* neither is of a page: whatever the address */
		{ "a", "", "b", NULL, true },
		{ NULL, "", NULL, NULL, true },
		{ "a", "x", "a", "x", true },
		{ "a", "x", "b", "x", true },
		{ "a", "x", "a", "y", true },
		{ "a", "x", "b", "y", false },
		{ NULL, "x", NULL, "y", false },
		{ NULL, "x", NULL, "x", true },
		/* one of the two came in a header */
		{ "a", "x", "a", NULL, true },
		{ "a", "x", "b", NULL, false },
		{ "a", "x", NULL, NULL, false },
		{ "a", "", "a", "y", true },
		{ "a", "", "b", "y", false },
		{ NULL, "", NULL, "y", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct record r = { .peer = (char *)(uintptr_t)cases[i].peer };

		snprintf(r.cookie, sizeof(r.cookie), "%s", cases[i].cookie);
		if (decide_is_mine(&r, cases[i].by_peer, cases[i].by_cookie) !=
		    cases[i].mine)
			fail_msg("case %zu", i);
	}
}

TEST(unsealed_it_does_not_age)
{
	struct record r = { .id = 1,
		.state = RECORD_COMPLETED,
		.replayable = true,
		.unconfirmed = true,
		.expires_at = NOW - 1 };

	for (int marker = 0; marker < 2; marker++) {
		r.expired_retention = marker;
		r.unconfirmed = true;
		assert_false(decide_is_past(&r, NOW));
		assert_int_equal(decide(&r, true, true, NOW), DECIDE_REPLAY);
		assert_int_equal(decide(&r, true, false, NOW), DECIDE_MISMATCH);
		r.unconfirmed = false;
		assert_true(decide_is_past(&r, NOW));
	}
}

TEST(a_lost_attempt_is_made_up_for_after_a_pause)
{
	static const struct {
		int attempt;
		int64_t least, most;
	} pauses[] = {
		{ 0, 0, 0 },
		{ 1, 0, 0 },
		{ 2, 1000, 1500 },
		{ 3, 2000, 3000 },
		{ 12, 1024000, 1536000 },
		{ 13, 2048000, 3072000 },
		{ 14, 2400000, 3600000 },
		{ DECIDE_REQUEUE_MAX - 1, 2400000, 3600000 },
	};
	size_t i;

	for (i = 0; i < COUNT(pauses); i++) {
		assert_int_equal(
		    decide_requeue(pauses[i].attempt, 0), pauses[i].least);
		assert_in_range(decide_requeue(pauses[i].attempt, UINT32_MAX),
		    pauses[i].least, pauses[i].most);
	}
	assert_int_equal(decide_requeue(DECIDE_REQUEUE_MAX, 0), -1);
	assert_int_equal(decide_requeue(INT32_MAX, UINT32_MAX), -1);
}

TEST(how_fingerprints_compare)
{
	static const struct {
		const char *name, *stored, *spec;
		unsigned char first;
		enum decide_match want;
	} pairs[] = {
		{ "the same", "2 value\n", "2 value\n", 1, DECIDE_SAME },
		{ "another", "2 value\n", "2 value\n", 2, DECIDE_DIFFERS },
		{ "another way", "2 value\n", "1 exact\n", 1,
		    DECIDE_OTHER_SPEC },
		{ "none is stored", "", "2 value\n", 1, DECIDE_SAME },
		{ "none is stored, other bytes", "", "3 none\n", 2,
		    DECIDE_SAME },
	};
	unsigned char fingerprint[FINGERPRINT_LEN] = { 0 };
	char spec[16];

	for (size_t i = 0; i < COUNT(pairs); i++) {
		struct record r = { .fingerprint_spec = spec,
			.fingerprint = { 1 } };

		snprintf(spec, sizeof(spec), "%s", pairs[i].stored);
		fingerprint[0] = pairs[i].first;
		if (decide_match(&r, pairs[i].spec, fingerprint) !=
		    pairs[i].want)
			fail_msg("%s", pairs[i].name);
	}
}

/* --- limits --- */

TEST(the_first_limit_that_is_met_is_told)
{
	static const struct {
		struct decide_limits l;
		enum decision want;
	} met[] = {
		{ { .is_new = true }, DECIDE_RUN },
		{ { .is_new = true, .used = 9 }, DECIDE_RUN },
		{ { .is_new = true, .used = 9, .max = 9 }, DECIDE_RUN },
		{ { .is_new = true, .used = 9, .max = 8 }, DECIDE_FULL },
		{ { .used = 9, .max = 8 }, DECIDE_RUN },
		{ { .is_new = true, .open = true }, DECIDE_OPEN },
		{ { .open = true }, DECIDE_RUN },
		{ { .no_room = true }, DECIDE_NO_ROOM },
		{ { .active = true }, DECIDE_CROWDED },
		{ { .waits = true, .active = true, .no_room = true },
		    DECIDE_RUN },
		{ { .is_new = true, .waits = true, .active = true },
		    DECIDE_CROWDED },
		{ { .is_new = true,
		      .active = true,
		      .open = true,
		      .used = 9,
		      .max = 8,
		      .no_room = true },
		    DECIDE_CROWDED },
		{ { .is_new = true,
		      .open = true,
		      .used = 9,
		      .max = 8,
		      .no_room = true },
		    DECIDE_FULL },
		{ { .is_new = true, .open = true, .no_room = true },
		    DECIDE_OPEN },
	};

	for (size_t i = 0; i < COUNT(met); i++)
		if (decide_limit(&met[i].l) != met[i].want)
			fail_msg("row %zu", i);
}

TEST(one_caller_fills_at_most_half)
{
	assert_int_equal(decide_share(1), 1);
	assert_int_equal(decide_share(7), 3);
	assert_false(decide_is_queue_full(0, 0, 1));
	assert_true(decide_is_queue_full(1, 0, 1));
	assert_false(decide_is_queue_full(9, 4, 10));
	assert_true(decide_is_queue_full(9, 5, 10));
	assert_true(decide_is_queue_full(10, 0, 10));
	assert_false(decide_is_no_room(90, 40, 10, 100));
	assert_true(decide_is_no_room(90, 41, 10, 100));
	assert_true(decide_is_no_room(91, 0, 10, 100));
	assert_false(decide_is_no_room(0, 0, 100, 100)); /* a single one */
	assert_true(decide_is_no_room(1, 1, 99, 100));
	assert_false(decide_is_no_room(1, 1, 49, 100));
}
