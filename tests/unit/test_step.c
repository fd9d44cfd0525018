/*
 * step: each change of a record, from each state, against the table of
 * record.c and the invariants; and what a change means for what is stored
 * beside the row.
 */
#include "config.h"

#include "cases.h"

#include "step.h"

#define NOW   100000
#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define NAME  "00112233445566778899aabbccddeeff"
#define UUID  "01234567-89ab-4def-8123-456789abcdef"

static const struct step_time at = { .now = NOW, .wall = 7, .age = NOW };

static const unsigned char fingerprint[FINGERPRINT_LEN] = { 1, 2, 3 };

static const struct step_terms terms = {
	.fingerprint_spec = "v2",
	.fingerprint = fingerprint,
	.token = OTHER,
	.owner = 9,
	.lease = 30000,
	.retention = 5000,
	.reconcile_delay = 40,
	.attempt_lock = 11,
	.lock_file = 12,
	.resource = NAME,
	.resume = true,
	.keep_request = true,
};

static const struct step_answer answer = {
	.keep = true,
	.status = 201,
	.length = 10,
};

static const struct step_reason why = { .error = "why", .requeue = 500 };

/* The record of a case, and what its last change means. */
static struct record r;
static struct step s;

static int
forget(UNUSED void **state)
{
	record_free(&r);
	memset(&s, 0, sizeof(s));
	return 0;
}

AROUND_EACH(NULL, forget)

/* Makes it a sound record in that state, past its retention where it has one,
 * of which nothing has changed. */
static void
sample(enum record_state state)
{
	(void)forget(NULL);
	r = (struct record){
		.id = 5,
		.state = state,
		.attempt = 1,
		.fingerprint_spec = strdup("v1"),
		.downstream = UUID,
		.recovery_point = "charged",
		.retention = 1000,
		.reconcile_delay = 20,
		.created_at = 1,
		.updated_at = 1,
	};

	switch (state) {
	case RECORD_PENDING:
		r.attempt = 0;
		r.accepted = r.queued = true;
		r.queued_at = NOW - 10;
		r.expires_at = NOW;
		break;
	case RECORD_IN_PROGRESS:
		memcpy(r.token, TOKEN, sizeof(r.token));
		r.owner = 3;
		r.locked_until = NOW + 1;
		r.attempt_lock = 1;
		r.lock_file = 2;
		break;
	case RECORD_COMPLETED:
		r.replayable = true;
		r.status = 200;
		r.body_length = 3;
		r.expires_at = NOW;
		break;
	case RECORD_FAILED_RETRYABLE:
	case RECORD_EXPIRED:
		r.expires_at = NOW;
		break;
	case RECORD_UNKNOWN:
		r.reconcile_after = NOW;
		r.attempt_lock = 1;
		r.lock_file = 2;
		break;
	case RECORD_NONE:
		r.attempt = 0;
		break;
	case RECORD_DEAD_LETTER:
		break;
	}
	if (state != RECORD_NONE)
		record_check(&r);
}

/* --- every change from every state ---------------------------------------- */

typedef enum rc step_fn(void);

#define STEP(name, call)          \
	static enum rc name(void) \
	{                         \
		return call;      \
	}

STEP(reserve, step_reserve(&r, &terms, at, &s))
STEP(accept_it, step_accept(&r, &terms, at, &s))
STEP(complete, step_complete(&r, TOKEN, 77, &answer, at, &s))
STEP(release, step_release(&r, TOKEN, 77, &why, at, &s))
STEP(unknown, step_unknown(&r, TOKEN, &why, at, &s))
STEP(to_completed, step_resolve(&r, RECORD_COMPLETED, &answer, &why, at, &s))
STEP(to_released, step_resolve(&r, RECORD_FAILED_RETRYABLE, NULL, &why, at, &s))
STEP(to_dead, step_resolve(&r, RECORD_DEAD_LETTER, NULL, &why, at, &s))
STEP(abandon, step_abandon(&r, &answer, at, &s))
STEP(expire_gone, step_expire(&r, at, &s))

static enum rc
start(void)
{
	r.queued = r.accepted =
	    r.state == RECORD_PENDING || r.state == RECORD_FAILED_RETRYABLE;
	r.queued_at = r.queued ? NOW : 0;
	r.expires_at += r.queued;
	return step_start(&r, r.attempt, &terms, at, &s);
}

static enum rc
expire_marker(void)
{
	if (r.state != RECORD_EXPIRED) {
		r.expired_retention = 10;
	}
	return step_expire(&r, at, &s);
}

#define IN(s) (1u << RECORD_##s)

/* From which states each is possible, and to which it leads. */
static const struct row {
	const char *name;
	step_fn *step;
	unsigned from;
	enum record_state to;
} rows[] = {
	{ "reserve", reserve, IN(NONE) | IN(FAILED_RETRYABLE),
	    RECORD_IN_PROGRESS },
	{ "start", start, IN(PENDING) | IN(FAILED_RETRYABLE),
	    RECORD_IN_PROGRESS },
	{ "complete", complete, IN(IN_PROGRESS), RECORD_COMPLETED },
	{ "release", release, IN(IN_PROGRESS), RECORD_FAILED_RETRYABLE },
	{ "unknown", unknown, IN(IN_PROGRESS), RECORD_UNKNOWN },
	{ "resolve to completed", to_completed, IN(UNKNOWN) | IN(DEAD_LETTER),
	    RECORD_COMPLETED },
	{ "resolve to released", to_released, IN(UNKNOWN) | IN(DEAD_LETTER),
	    RECORD_FAILED_RETRYABLE },
	{ "resolve to dead", to_dead, IN(UNKNOWN), RECORD_DEAD_LETTER },
	{ "abandon", abandon, IN(PENDING), RECORD_COMPLETED },
	{ "expire", expire_gone,
	    IN(COMPLETED) | IN(FAILED_RETRYABLE) | IN(EXPIRED), RECORD_NONE },
	{ "expire to a marker", expire_marker,
	    IN(COMPLETED) | IN(FAILED_RETRYABLE), RECORD_EXPIRED },
};

TEST(each_change_is_one_of_the_table)
{
	const size_t n = COUNT(rows);
	enum record_state from;
	unsigned changes = 0;

	for (const struct row *row = rows; row < rows + n; row++)
		for (from = RECORD_NONE; from < RECORD_NSTATES; from++) {
			const bool may = (row->from & (1u << from)) != 0;

			sample(from);
			/* A marker's end is in the row before. */
			if (from == RECORD_EXPIRED && row->to == RECORD_EXPIRED)
				continue;
			if ((row->step() == RC_OK) != may)
				fail_msg("%s from %s", row->name,
				    record_state_name(from));
			if (!may)
				continue;
			changes++;
			assert_int_equal(r.state, row->to);
			assert_true(record_may_change(from, row->to, false));
			assert_int_equal(r.updated_at, 7);
			assert_true(s.gone || record_is_sound(&r));
			assert_int_equal(s.gone, row->to == RECORD_NONE);
		}
	assert_int_equal(changes, 18);
}

/* The change that an outcome is, by its verb and its state. */
TEST(each_outcome_is_one_change)
{
	static const struct {
		enum step_verb verb;
		enum record_state from, to;
		enum rc rc;
		int attempt, tries;
		const char *token;
	} outcomes[] = {
#define FINISHES(to) { STEP_FINISH, RECORD_IN_PROGRESS, to, RC_OK, 0, 0, TOKEN }
		FINISHES(RECORD_COMPLETED),
		FINISHES(RECORD_FAILED_RETRYABLE),
		FINISHES(RECORD_UNKNOWN),
		{ STEP_FINISH, RECORD_IN_PROGRESS, RECORD_COMPLETED, RC_LOST, 0,
		    0, OTHER },
		{ STEP_FINISH, RECORD_UNKNOWN, RECORD_COMPLETED, RC_LOST, 1, 0,
		    TOKEN },
#define RESOLVES(verb, from, to, rc, tries) \
	{ verb, RECORD_##from, RECORD_##to, rc, 1, tries, "" }
		RESOLVES(STEP_RESOLVE, UNKNOWN, COMPLETED, RC_OK, 0),
		RESOLVES(STEP_RESOLVE, UNKNOWN, FAILED_RETRYABLE, RC_OK, 0),
		RESOLVES(STEP_RESOLVE, UNKNOWN, DEAD_LETTER, RC_OK, 0),
		RESOLVES(STEP_RESOLVE, UNKNOWN, COMPLETED, RC_LOST, 1),
		RESOLVES(STEP_RESOLVE, DEAD_LETTER, COMPLETED, RC_LOST, 0),
		RESOLVES(
		    STEP_RESOLVE_BY_OPERATOR, UNKNOWN, COMPLETED, RC_OK, 1),
		RESOLVES(STEP_RESOLVE_BY_OPERATOR, DEAD_LETTER,
		    FAILED_RETRYABLE, RC_OK, 1),
		RESOLVES(STEP_RESOLVE_BY_OPERATOR, IN_PROGRESS, COMPLETED,
		    RC_LOST, 0),
		{ STEP_RESOLVE_BY_OPERATOR, RECORD_UNKNOWN, RECORD_COMPLETED,
		    RC_LOST, 2, 0, "" },
		{ STEP_ABANDON, RECORD_PENDING, RECORD_COMPLETED, RC_OK, 0, 0,
		    "" },
		{ STEP_ABANDON, RECORD_FAILED_RETRYABLE, RECORD_COMPLETED,
		    RC_LOST, 0, 0, "" },
	};

	for (size_t i = 0; i < COUNT(outcomes); i++) {
		const struct step_outcome end = {
			.verb = outcomes[i].verb,
			.state = outcomes[i].to,
			.token = outcomes[i].token,
			.retention = 77,
			.attempt = outcomes[i].attempt,
			.tries = outcomes[i].tries,
			.answer = answer,
			.why = why,
		};
		enum record_state from = outcomes[i].from;
		const bool resolves = end.verb == STEP_RESOLVE ||
		    end.verb == STEP_RESOLVE_BY_OPERATOR;

		sample(from);
		strcpy(r.recovery_point, "started");
		if (step_outcome(&r, &end, at, &s) != outcomes[i].rc ||
		    r.state != (outcomes[i].rc == RC_OK ? end.state : from))
			fail_msg("%zu: %s", i, record_state_name(r.state));
		/* It did nothing, if a verdict says so, or the attempt. */
		if (r.state != from && r.state == RECORD_FAILED_RETRYABLE)
			assert_int_equal(
			    r.fingerprint_spec[0] == '\0', resolves);
	}
}

TEST(an_operator_forgets_all_but_what_runs)
{
	enum record_state from;

	for (from = RECORD_PENDING; from < RECORD_NSTATES; from++) {
		sample(from);
		assert_int_equal(step_forget(&r, RECORD_NONE, &s),
		    from == RECORD_IN_PROGRESS ? RC_LOST : RC_OK);
		assert_int_equal(s.gone, from != RECORD_IN_PROGRESS);
		if (from != RECORD_IN_PROGRESS)
			assert_ok(step_forget(&r, from, &s));
		if (from != RECORD_UNKNOWN)
			assert_int_equal(
			    step_forget(&r, RECORD_UNKNOWN, &s), RC_LOST);
	}
}

/* --- the lease ------------------------------------------------------------ */

TEST(another_token_changes_nothing)
{
	sample(RECORD_IN_PROGRESS);
	assert_int_equal(step_complete(&r, OTHER, 1, &answer, at, &s), RC_LOST);
	assert_int_equal(step_release(&r, OTHER, 1, &why, at, &s), RC_LOST);
	assert_int_equal(step_unknown(&r, OTHER, &why, at, &s), RC_LOST);
	assert_int_equal(r.state, RECORD_IN_PROGRESS);
	assert_string_equal(r.token, TOKEN);
}

TEST(a_late_attempt_ends_its_own_unknown_only)
{
	sample(RECORD_IN_PROGRESS);
	assert_ok(step_suspect(&r, at, &s));
	assert_int_equal(r.state, RECORD_UNKNOWN);
	assert_int_equal(step_complete(&r, OTHER, 1, &answer, at, &s), RC_LOST);
	assert_int_equal(unknown(), RC_LOST);
	assert_ok(complete());
	assert_int_equal(complete(), RC_LOST);

	sample(RECORD_IN_PROGRESS);
	assert_ok(step_suspect(&r, at, &s));
	assert_ok(to_released());
	assert_int_equal(complete(), RC_LOST);
	assert_int_equal(r.state, RECORD_FAILED_RETRYABLE);
}

TEST(no_token_is_no_lease)
{
	sample(RECORD_UNKNOWN);
	assert_int_equal(step_complete(&r, "", 1, &answer, at, &s), RC_LOST);
}

TEST(a_lease_has_its_terms)
{
	sample(RECORD_FAILED_RETRYABLE);
	r.accepted = true;
	assert_ok(step_reserve(&r, &terms, at, &s));
	assert_int_equal(r.attempt, 2);
	assert_string_equal(r.token, OTHER);
	assert_int_equal(r.owner, 9);
	assert_int_equal(r.locked_until, NOW + 30000);
	assert_int_equal(r.attempt_lock, 11);
	assert_int_equal(r.lock_file, 12);
	assert_int_equal(r.expires_at, 0);
	assert_int_equal(r.retention, 5000);
	assert_int_equal(r.reconcile_delay, 40);
	assert_true(r.resume && !r.accepted && r.expired_retention == 0);
	assert_string_equal(r.resource, NAME);
	assert_string_equal(r.recovery_point, "charged");
	assert_int_equal(s.request, STEP_SET);
}

TEST(a_status_resource_keeps_its_name)
{
	sample(RECORD_FAILED_RETRYABLE);
	memcpy(r.resource, TOKEN, sizeof(r.resource));
	assert_ok(step_reserve(&r, &terms, at, &s));
	assert_string_equal(r.resource, TOKEN);
}

/* --- the end of an attempt ------------------------------------------------ */

TEST(an_answer_is_kept_for_the_retention)
{
	sample(RECORD_IN_PROGRESS);
	assert_ok(complete());
	assert_int_equal(r.expires_at, NOW + 77);
	assert_int_equal(r.retention, 0);
	assert_int_equal(r.status, 201);
	assert_int_equal(r.body_length, 10);
	assert_true(r.replayable && r.token[0] == '\0' && r.owner == 0);
	assert_int_equal(r.attempt_lock, 0);
	assert_int_equal(s.answer, STEP_SET);
	assert_int_equal(s.request, STEP_DELETED);
	assert_true(s.ended && !s.confirmed);
}

/* The pause before the next attempt of an accepted key is not part of its
 * retention; another key has no worker that waits. */
TEST(a_release_queues_only_an_accepted_key)
{
	sample(RECORD_IN_PROGRESS);
	assert_ok(release());
	assert_true(!r.queued && r.queued_at == 0 && !s.work);
	assert_int_equal(r.expires_at, NOW + 77);
	assert_int_equal(s.request, STEP_DELETED);
	assert_string_equal(r.last_error, "why");

	sample(RECORD_IN_PROGRESS);
	r.accepted = true;
	assert_ok(release());
	assert_true(r.queued && r.queued_at == NOW + 500 && s.work);
	assert_int_equal(r.expires_at, NOW + 500 + 77);
	assert_int_equal(s.request, STEP_STAYS);
}

/* Then any request may take the key, and its fingerprint is the key's. */
TEST(a_key_of_which_nothing_happened_takes_the_next_fingerprint)
{
	static const struct {
		bool nothing, accepted;
		int64_t requeue;
		const char *point;
		bool taken;
	} cases[] = {
		{ true, false, -1, "started", true },
		{ false, false, -1, "started", false },
		{ true, false, -1, "charged", false },
		{ true, true, 0, "started", false }, /* it runs again */
		{ true, true, -1, "started", true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct step_reason end = {
			.nothing_happened = cases[i].nothing,
			.requeue = cases[i].requeue,
		};

		sample(RECORD_IN_PROGRESS);
		r.accepted = cases[i].accepted;
		snprintf(r.recovery_point, sizeof(r.recovery_point), "%s",
		    cases[i].point);
		assert_ok(step_release(&r, TOKEN, 1, &end, at, &s));
		assert_int_equal(record_has_fingerprint(&r), !cases[i].taken);
		assert_ok(step_reserve(&r, &terms, at, &s));
		assert_string_equal(
		    r.fingerprint_spec, cases[i].taken ? "v2" : "v1");
		assert_int_equal(r.fingerprint[0], cases[i].taken);
	}
}

/* A reconciler waits for the processes of the attempt; without one nothing
 * does. */
TEST(an_unknown_key_names_its_processes_for_the_reconciler)
{
	sample(RECORD_IN_PROGRESS);
	assert_ok(unknown());
	assert_int_equal(r.reconcile_after, NOW + 20);
	assert_int_equal(r.attempt_lock, 1);
	assert_int_equal(r.expires_at, 0);
	assert_int_equal(s.request, STEP_STAYS);
	assert_true(s.work);

	sample(RECORD_IN_PROGRESS);
	r.reconcile_delay = 0;
	assert_ok(unknown());
	assert_int_equal(r.reconcile_after, 0);
	assert_int_equal(r.attempt_lock, 0);
}

/* Whatever its end is, and whether oncewrap was lost. */
TEST(an_answer_of_the_attempt_itself_stands)
{
	static step_fn *const ends[] = { complete, release, unknown };

	for (int i = 0; i < 4; i++) {
		sample(RECORD_COMPLETED);
		memcpy(r.token, TOKEN, sizeof(r.token));
		r.owner = 3;
		r.unconfirmed = true;
		assert_ok(
		    i < 3 ? ends[i]() : step_recover(&r, true, 0, at, &s));
		assert_int_equal(r.state, RECORD_COMPLETED);
		assert_int_equal(r.status, 200);
		assert_int_equal(r.expires_at, NOW + 1000);
		assert_true(!r.unconfirmed && r.token[0] == '\0');
		assert_true(s.confirmed && s.ended);
		assert_int_equal(s.answer, STEP_STAYS);
		assert_int_equal(s.request, STEP_DELETED);
		assert_true(record_is_sound(&r));
	}
}

TEST(a_lost_attempt_ends_by_its_processes_and_on_crash)
{
	static const struct {
		bool resume, lives;
		int64_t locked_until;
		enum rc rc;
		enum record_state to;
		int64_t lock;
	} cases[] = {
		{ false, false, NOW + 1, RC_OK, RECORD_UNKNOWN, 0 },
		{ false, true, NOW + 1, RC_OK, RECORD_UNKNOWN, 1 },
		{ true, false, NOW + 1, RC_OK, RECORD_FAILED_RETRYABLE, 0 },
		{ true, true, NOW + 1, RC_BUSY, RECORD_IN_PROGRESS, 1 },
		{ true, true, NOW, RC_OK, RECORD_UNKNOWN, 1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		sample(RECORD_IN_PROGRESS);
		r.resume = cases[i].resume;
		r.locked_until = cases[i].locked_until;
		assert_int_equal(
		    step_recover(&r, cases[i].lives, 0, at, &s), cases[i].rc);
		assert_int_equal(r.state, cases[i].to);
		assert_int_equal(r.attempt_lock, cases[i].lock);
	}
}

/* Its own host knows more than the one that has suspected it. */
TEST(a_suspected_attempt_is_released_once_its_processes_are_gone)
{
	static const struct {
		bool resume, lives;
		enum rc rc;
		enum record_state to;
	} cases[] = {
		{ true, false, RC_OK, RECORD_FAILED_RETRYABLE },
		{ true, true, RC_LOST, RECORD_UNKNOWN },
		{ false, false, RC_LOST, RECORD_UNKNOWN },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		sample(RECORD_IN_PROGRESS);
		r.resume = cases[i].resume;
		assert_ok(step_suspect(&r, at, &s));
		assert_int_equal(r.state, RECORD_UNKNOWN);
		assert_true(r.token[0] == '\0' && r.late_token[0] != '\0');
		assert_int_equal(
		    step_recover(&r, cases[i].lives, 0, at, &s), cases[i].rc);
		assert_int_equal(r.state, cases[i].to);
		assert_true(cases[i].rc != RC_OK || r.late_token[0] == '\0');
	}
}

/* --- an open outcome ------------------------------------------------------ */

TEST(a_try_is_for_what_was_read)
{
	sample(RECORD_UNKNOWN);
	r.reconcile_attempts = 2;
	assert_int_equal(step_claim(&r, 1, 1, true, 60, at), RC_LOST);
	assert_int_equal(step_claim(&r, 2, 2, true, 60, at), RC_LOST);
	assert_ok(step_claim(&r, 1, 2, false, 60, at));
	assert_int_equal(r.reconcile_attempts, 2);
	assert_int_equal(r.attempt_lock, 1);
	assert_ok(step_claim(&r, 1, 2, true, 60, at));
	assert_int_equal(r.reconcile_attempts, 3);
	assert_int_equal(r.reconcile_after, NOW + 60);
	assert_int_equal(r.attempt_lock, 0);
	assert_int_equal(r.updated_at, 1);
	assert_false(step_may_resolve(&r, 1, 2, false));
	assert_true(step_may_resolve(&r, 1, 3, false));
	assert_true(step_may_resolve(&r, 1, 0, true));
	assert_false(step_may_resolve(&r, 2, 3, true));
	sample(RECORD_DEAD_LETTER);
	assert_false(step_may_resolve(&r, 1, 0, false));
	assert_true(step_may_resolve(&r, 1, 0, true));
	sample(RECORD_COMPLETED);
	assert_false(step_may_resolve(&r, 1, 0, true));
}

/* --- accepted keys -------------------------------------------------------- */

TEST(an_accepted_key_waits_for_a_worker)
{
	sample(RECORD_NONE);
	assert_ok(accept_it());
	assert_int_equal(r.state, RECORD_PENDING);
	assert_true(r.accepted && r.queued && r.queued_at == NOW);
	assert_int_equal(r.expires_at, NOW + 5000);
	assert_int_equal(s.request, STEP_SET);
	assert_true(s.work && record_is_sound(&r));

	sample(RECORD_FAILED_RETRYABLE);
	memcpy(r.resource, TOKEN, sizeof(r.resource));
	assert_ok(accept_it());
	assert_int_equal(r.state, RECORD_FAILED_RETRYABLE);
	assert_true(r.accepted && r.queued);
	assert_string_equal(r.resource, TOKEN);
	assert_int_equal(r.expires_at, NOW + 5000); /* it begins anew */
	assert_int_equal(s.request, STEP_SET);

	/* Accepted once more, it keeps its place. */
	r.queued_at = NOW - 1;
	assert_ok(accept_it());
	assert_int_equal(r.queued_at, NOW - 1);

	sample(RECORD_UNKNOWN);
	assert_int_equal(accept_it(), RC_INVALID);
}

TEST(a_worker_starts_what_is_due)
{
	sample(RECORD_PENDING);
	assert_int_equal(step_start(&r, 0, &terms, at, &s), RC_LOST);
	r.expires_at = NOW + 1;
	assert_int_equal(step_start(&r, 1, &terms, at, &s), RC_LOST);
	r.queued_at = NOW + 1;
	assert_int_equal(step_start(&r, 0, &terms, at, &s), RC_LOST);
	r.queued_at = NOW;
	assert_ok(step_start(&r, 0, &terms, at, &s));
	assert_true(r.accepted && !r.queued && r.attempt == 1);
}

TEST(a_key_in_its_retention_is_not_expired)
{
	sample(RECORD_COMPLETED);
	r.expires_at = NOW + 1;
	assert_int_equal(step_expire(&r, at, &s), RC_LOST);
	r.expires_at = 0;
	assert_int_equal(step_expire(&r, at, &s), RC_LOST);
}

/* Reaped late, it ends no later. */
TEST(a_marker_stays_for_its_own_retention)
{
	for (int late = 0; late <= 10; late += 5) {
		sample(RECORD_COMPLETED);
		r.expires_at = NOW - late;
		r.expired_retention = 10;
		assert_ok(step_expire(&r, at, &s));
		assert_int_equal(s.gone, late == 10);
		if (s.gone)
			continue;
		assert_int_equal(r.state, RECORD_EXPIRED);
		assert_int_equal(r.expires_at, NOW - late + 10);
		assert_int_equal(s.answer, STEP_DELETED);
		assert_int_equal(s.request, STEP_DELETED);
	}
}
