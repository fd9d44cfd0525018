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

enum {
	NO_FINGERPRINT_SPEC = 1,
	UNCONFIRMED = 2,
	ACCEPTED = 4,
	QUEUED = 8,
	NO_FINGERPRINT = 16
};

static const struct check {
	const char *name;
	bool holds;
	enum record_state state;
	int64_t id;
	int attempt;
	const char *token;
	int status;
	bool kept;
	int64_t expires_at;
	const char *downstream;
	unsigned flags;
} checks[] = {
	{ "in progress", true, RECORD_IN_PROGRESS, 1, 1, TOKEN, 0, false, 0,
	    UUID, 0 },
	{ "completed and kept", true, RECORD_COMPLETED, 1, 2, "", 201, true, 9,
	    UUID, 0 },
	{ "completed, not kept", true, RECORD_COMPLETED, 1, 2, "", 599, false,
	    9, UUID, 0 },
	{ "released", true, RECORD_FAILED_RETRYABLE, 1, 1, "", 0, false, 9,
	    UUID, 0 },
	{ "unknown", true, RECORD_UNKNOWN, 1, 1, "", 0, false, 0, UUID, 0 },
	{ "pending before its first attempt", true, RECORD_PENDING, 1, 0, "", 0,
	    false, 9, UUID, 0 },
	{ "expired", true, RECORD_EXPIRED, 1, 1, "", 0, false, 9, UUID, 0 },
	{ "abandoned before its first attempt", true, RECORD_COMPLETED, 1, 0,
	    "", 408, true, 9, UUID, ACCEPTED },
	{ "a marker of that", true, RECORD_EXPIRED, 1, 0, "", 0, false, 9, UUID,
	    ACCEPTED },
	{ "2: completed without an attempt, and never accepted", false,
	    RECORD_COMPLETED, 1, 0, "", 201, true, 9, UUID, 0 },
	{ "2: released without an attempt", false, RECORD_FAILED_RETRYABLE, 1,
	    0, "", 0, false, 9, UUID, ACCEPTED },
	{ "1: no id", false, RECORD_UNKNOWN, 0, 1, "", 0, false, 0, UUID, 0 },
	{ "1: no state", false, RECORD_NONE, 1, 1, "", 0, false, 0, UUID, 0 },
	{ "1: a state beyond the last", false,
	    (enum record_state)RECORD_NSTATES, 1, 1, "", 0, false, 0, UUID, 0 },
	{ "1: no fingerprint_spec", false, RECORD_UNKNOWN, 1, 1, "", 0, false,
	    0, UUID, NO_FINGERPRINT_SPEC },
	{ "1: no downstream key", false, RECORD_UNKNOWN, 1, 1, "", 0, false, 0,
	    "", 0 },
	{ "2: unknown without an attempt", false, RECORD_UNKNOWN, 1, 0, "", 0,
	    false, 0, UUID, 0 },
	{ "2: a negative attempt", false, RECORD_PENDING, 1, -1, "", 0, false,
	    0, UUID, 0 },
	{ "3: in progress without a token", false, RECORD_IN_PROGRESS, 1, 1, "",
	    0, false, 0, UUID, 0 },
	{ "3: in progress with half a token", false, RECORD_IN_PROGRESS, 1, 1,
	    "0123456789abcdef", 0, false, 0, UUID, 0 },
	{ "3: completed with a token", false, RECORD_COMPLETED, 1, 1, TOKEN,
	    200, true, 9, UUID, 0 },
	{ "unconfirmed", true, RECORD_COMPLETED, 1, 1, TOKEN, 200, true, 9,
	    UUID, UNCONFIRMED },
	{ "3: unconfirmed without a token", false, RECORD_COMPLETED, 1, 1, "",
	    200, true, 9, UUID, UNCONFIRMED },
	{ "4: unconfirmed, and not completed", false, RECORD_IN_PROGRESS, 1, 1,
	    TOKEN, 0, false, 0, UUID, UNCONFIRMED },
	{ "waiting for its first attempt", true, RECORD_PENDING, 1, 0, "", 0,
	    false, 9, UUID, ACCEPTED | QUEUED },
	{ "waiting for another one", true, RECORD_FAILED_RETRYABLE, 1, 3, "", 0,
	    false, 9, UUID, ACCEPTED | QUEUED },
	{ "7: waiting, and never accepted", false, RECORD_FAILED_RETRYABLE, 1,
	    3, "", 0, false, 9, UUID, QUEUED },
	{ "7: waiting while it runs", false, RECORD_IN_PROGRESS, 1, 1, TOKEN, 0,
	    false, 0, UUID, ACCEPTED | QUEUED },
	{ "4: completed without a status", false, RECORD_COMPLETED, 1, 1, "", 0,
	    true, 9, UUID, 0 },
	{ "4: completed with an interim status", false, RECORD_COMPLETED, 1, 1,
	    "", 103, true, 9, UUID, 0 },
	{ "4: completed with status 600", false, RECORD_COMPLETED, 1, 1, "",
	    600, true, 9, UUID, 0 },
	{ "4: unknown with an answer to replay", false, RECORD_UNKNOWN, 1, 1,
	    "", 200, true, 0, UUID, 0 },
	{ "5: in progress, yet ends by age", false, RECORD_IN_PROGRESS, 1, 1,
	    TOKEN, 0, false, 9, UUID, 0 },
	{ "5: unknown, yet ends by age", false, RECORD_UNKNOWN, 1, 1, "", 0,
	    false, 9, UUID, 0 },
	{ "5: dead letter, yet ends by age", false, RECORD_DEAD_LETTER, 1, 1,
	    "", 0, false, 9, UUID, 0 },
	{ "released without a fingerprint", true, RECORD_FAILED_RETRYABLE, 1, 1,
	    "", 0, false, 9, UUID, NO_FINGERPRINT },
	{ "a marker of that", true, RECORD_EXPIRED, 1, 1, "", 0, false, 9, UUID,
	    NO_FINGERPRINT },
	{ "8: a stored request without a fingerprint", false,
	    RECORD_FAILED_RETRYABLE, 1, 1, "", 0, false, 9, UUID,
	    NO_FINGERPRINT | ACCEPTED | QUEUED },
	{ "8: in progress without a fingerprint", false, RECORD_IN_PROGRESS, 1,
	    1, TOKEN, 0, false, 0, UUID, NO_FINGERPRINT },
	{ "8: completed without a fingerprint", false, RECORD_COMPLETED, 1, 1,
	    "", 200, true, 9, UUID, NO_FINGERPRINT },
	{ "8: unknown without a fingerprint", false, RECORD_UNKNOWN, 1, 1, "",
	    0, false, 0, UUID, NO_FINGERPRINT },
	{ "6: expires before time began", false, RECORD_COMPLETED, 1, 1, "",
	    200, true, -1, UUID, 0 },
};

static int
check(const void *r)
{
	record_check(r);
	return 0;
}

TEST(every_invariant)
{
	char fingerprint_spec[] = "v1", none[] = "";

	for (size_t i = 0; i < COUNT(checks); i++) {
		const struct check *c = &checks[i];
		struct record r = {
			.id = c->id,
			.state = c->state,
			.attempt = c->attempt,
			.fingerprint_spec = c->flags & NO_FINGERPRINT_SPEC
			    ? NULL
			    : c->flags & NO_FINGERPRINT ? none
							: fingerprint_spec,
			.expires_at = c->expires_at,
			.status = c->status,
			.replayable = c->kept,
			.unconfirmed = c->flags & UNCONFIRMED,
			.accepted = c->flags & ACCEPTED,
			.queued = c->flags & QUEUED,
		};

		strcpy(r.downstream, c->downstream);
		strcpy(r.token, c->token);
		if (aborts(check, &r) == c->holds)
			fail_msg("%s", c->name);
	}
}
