/*
 * record: every pair of states against the rule written out as text, names,
 * and the invariants, each broken in turn.
 */
#include "config.h"

#include "cases.h"
#include "aborts.h"

#include "record.h"

/*
 * Rows: from; columns: to, in the order of the enum: none, pending,
 * in_progress, completed, failed_retryable, unknown, dead_letter, expired.
 * a: by age, or in the course of things; o: by an operator; b: both.
 */
static const char *const allowed[RECORD_NSTATES] = {
	/* none */ ".aa.....",
	/* pending */ "o.aa....",
	/* in_progress */ "...aaa..",
	/* completed */ "b......a",
	/* failed_retryable */ "b.a....a",
	/* unknown */ "o..aa.a.",
	/* dead_letter */ "o..aa...",
	/* expired */ "b.......",
};

TEST(every_pair_of_states)
{
	for (int from = 0; from < RECORD_NSTATES; from++) {
		for (int to = 0; to < RECORD_NSTATES; to++) {
			char c = allowed[from][to];

			assert_int_equal(
			    record_may_change((enum record_state)from,
				(enum record_state)to, false),
			    c == 'a' || c == 'b');
			assert_int_equal(
			    record_may_change((enum record_state)from,
				(enum record_state)to, true),
			    c == 'o' || c == 'b');
		}
	}
}

TEST(names_go_both_ways)
{
	enum record_state s;

	for (int i = 0; i < RECORD_NSTATES; i++) {
		s = RECORD_EXPIRED;
		assert_true(record_state_parse(
		    record_state_name((enum record_state)i), &s));
		assert_int_equal(s, i);
	}
	assert_string_equal(
	    record_state_name(RECORD_IN_PROGRESS), "in_progress");
	assert_string_equal(
	    record_state_name(RECORD_FAILED_RETRYABLE), "failed_retryable");
	assert_string_equal(
	    record_state_name(RECORD_DEAD_LETTER), "dead_letter");
}

TEST(other_names_are_no_states)
{
	static const char *const bad[] = { "", "Completed", "complete",
		"completed ", "in-progress", "NONE" };
	enum record_state s = RECORD_UNKNOWN;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(record_state_parse(bad[i], &s));
	assert_int_equal(s, RECORD_UNKNOWN);
}

TEST(free_takes_the_fingerprint_spec_and_nothing)
{
	struct record r = { .fingerprint_spec = strdup("x") };

	record_free(&r);
	assert_null(r.fingerprint_spec);
	record_free(&r);
	record_free(NULL);
}

#define UUID  "123e4567-e89b-12d3-a456-426614174000"
#define TOKEN "0123456789abcdef0123456789abcdef"

/* A record of that state that is sound. */
static struct record
sound(enum record_state state)
{
	static char fingerprint_spec[] = "v1";
	struct record r = {
		.id = 1,
		.state = state,
		.attempt = state != RECORD_PENDING,
		.fingerprint_spec = fingerprint_spec,
		.downstream = UUID,
	};

	if (state == RECORD_IN_PROGRESS)
		memcpy(r.token, TOKEN, sizeof(r.token));
	else if (state != RECORD_UNKNOWN && state != RECORD_DEAD_LETTER)
		r.expires_at = 9;
	if (state == RECORD_COMPLETED) {
		r.status = 200;
		r.replayable = true;
	}
	return r;
}

static int
check(const void *r)
{
	record_check(r);
	return 0;
}

/* A sound record of that state with these changes is sound, or is not. */
#define IS(holds, st, ...)                                     \
	do {                                                   \
		struct record r = sound(RECORD_##st);          \
                                                               \
		__VA_ARGS__;                                   \
		if (aborts(check, &r) == (holds))              \
			fail_msg("%s", #st ": " #__VA_ARGS__); \
	} while (0)
#define SOUND(...)  IS(true, __VA_ARGS__)
#define BROKEN(...) IS(false, __VA_ARGS__)

TEST(each_state_is_sound)
{
	char none[] = "";

	SOUND(PENDING, (void)0);
	SOUND(PENDING, r.accepted = r.queued = true);
	SOUND(IN_PROGRESS, (void)0);
	SOUND(COMPLETED, r.attempt = 2, r.status = 201);
	SOUND(COMPLETED, r.replayable = false, r.status = 599);
	SOUND(COMPLETED, r.attempt = 0, r.status = 408, r.accepted = true);
	SOUND(COMPLETED, r.unconfirmed = true, strcpy(r.token, TOKEN));
	SOUND(FAILED_RETRYABLE, (void)0);
	SOUND(FAILED_RETRYABLE, r.accepted = r.queued = true, r.attempt = 3);
	SOUND(FAILED_RETRYABLE, r.fingerprint_spec = none);
	SOUND(UNKNOWN, (void)0);
	SOUND(DEAD_LETTER, (void)0);
	SOUND(EXPIRED, (void)0);
	SOUND(EXPIRED, r.attempt = 0, r.accepted = true);
	SOUND(EXPIRED, r.fingerprint_spec = none);
}

TEST(every_invariant)
{
	char none[] = "";

	/* 1 */
	BROKEN(UNKNOWN, r.id = 0);
	BROKEN(UNKNOWN, r.state = RECORD_NONE);
	BROKEN(UNKNOWN, r.state = (enum record_state)RECORD_NSTATES);
	BROKEN(UNKNOWN, r.fingerprint_spec = NULL);
	BROKEN(UNKNOWN, strcpy(r.downstream, ""));
	/* 2 */
	BROKEN(COMPLETED, r.attempt = 0);
	BROKEN(FAILED_RETRYABLE, r.attempt = 0, r.accepted = true);
	BROKEN(UNKNOWN, r.attempt = 0);
	BROKEN(PENDING, r.attempt = -1);
	/* 3 */
	BROKEN(IN_PROGRESS, strcpy(r.token, ""));
	BROKEN(IN_PROGRESS, r.token[16] = '\0');
	BROKEN(COMPLETED, strcpy(r.token, TOKEN));
	BROKEN(COMPLETED, r.unconfirmed = true);
	/* 4 */
	BROKEN(IN_PROGRESS, r.unconfirmed = true);
	BROKEN(COMPLETED, r.status = 0);
	BROKEN(COMPLETED, r.status = 103);
	BROKEN(COMPLETED, r.status = 600);
	BROKEN(UNKNOWN, r.status = 200, r.replayable = true);
	/* 5 */
	BROKEN(IN_PROGRESS, r.expires_at = 9);
	BROKEN(UNKNOWN, r.expires_at = 9);
	BROKEN(DEAD_LETTER, r.expires_at = 9);
	/* 6 */
	BROKEN(COMPLETED, r.expires_at = -1);
	/* 7 */
	BROKEN(FAILED_RETRYABLE, r.queued = true, r.attempt = 3);
	BROKEN(IN_PROGRESS, r.accepted = r.queued = true);
	/* 8 */
	BROKEN(FAILED_RETRYABLE, r.fingerprint_spec = none,
	    r.accepted = r.queued = true);
	BROKEN(IN_PROGRESS, r.fingerprint_spec = none);
	BROKEN(COMPLETED, r.fingerprint_spec = none);
	BROKEN(UNKNOWN, r.fingerprint_spec = none);
}
