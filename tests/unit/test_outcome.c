/*
 * outcome: each row of the table, and each row against those below it, for
 * the first that fits decides.
 */
#include "config.h"

#include "cases.h"

#include "conf.h"
#include "outcome.h"

/* The defaults: 425 429 5xx released, 502 504 ambiguous. */
static struct conf *conf;

static struct conf_route
route(enum conf_exit_status exit_status)
{
	struct conf_route rt = conf->defaults;

	rt.exit_status = exit_status;
	return rt;
}

#define DONE    RECORD_COMPLETED
#define FREE    RECORD_FAILED_RETRYABLE
#define UNKNOWN RECORD_UNKNOWN
#define CHECK   CONF_EXIT_CHECK
#define IGNORE  CONF_EXIT_IGNORE
#define RELEASE CONF_EXIT_RELEASE
#define NOTHING CGIHEAD_SAYS_NOTHING
#define YES     CGIHEAD_SAYS_COMPLETED
#define NO      CGIHEAD_SAYS_NOT_EXECUTED
#define DUNNO   CGIHEAD_SAYS_UNKNOWN
#define FAILED  PROBLEM_HANDLER_FAILED
#define NONE    PROBLEM_NONE
#define OK      CGIHEAD_OK
#define EMPTY   CGIHEAD_EMPTY
#define EXITED  RUN_EXITED

#define SHORT (-1) /* a whole head, and less of a body than it says */

struct facts {
	enum run_end end;
	int exit, head /* or SHORT */, status;
	enum cgihead_outcome says;
	enum conf_exit_status check;
};

static const struct row {
	struct facts facts;
	enum record_state to;
	enum problem_code problem;
	int sends; /* another status than the problem's */
} rows[] = {
	/* the end of a run */
	{ { RUN_NOT_STARTED, 0, EMPTY, 0, NOTHING, CHECK }, FREE,
	    PROBLEM_HANDLER_NOT_STARTED, 0 },
	{ { RUN_TIMEOUT, 0, EMPTY, 0, NOTHING, CHECK }, UNKNOWN,
	    PROBLEM_HANDLER_TIMEOUT, 0 },
	{ { RUN_TIMEOUT, 0, OK, 200, NOTHING, CHECK }, UNKNOWN,
	    PROBLEM_HANDLER_TIMEOUT, 0 },
	{ { RUN_TIMEOUT, 0, OK, 503, NO, CHECK }, UNKNOWN,
	    PROBLEM_HANDLER_TIMEOUT, 0 },
	{ { RUN_SIGNALED, 0, OK, 201, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { RUN_SIGNALED, 0, OK, 201, YES, IGNORE }, UNKNOWN, FAILED, 0 },
	{ { RUN_SIGNALED, 75, OK, 503, NO, CHECK }, UNKNOWN, FAILED, 0 },
	{ { RUN_CUT, 0, OK, 201, YES, CHECK }, UNKNOWN, FAILED, 0 },
	{ { RUN_OUTPUT_LIMIT, 0, OK, 200, NOTHING, CHECK }, UNKNOWN, FAILED,
	    0 },
	{ { RUN_DRAINED, 0, OK, 200, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { RUN_CAPTURE_FAILED, 0, OK, 200, NOTHING, CHECK }, UNKNOWN, FAILED,
	    0 },
	/* output that is no response */
	{ { EXITED, 0, EMPTY, 0, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 1, EMPTY, 0, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 1, EMPTY, 0, NOTHING, IGNORE }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 75, EMPTY, 0, NOTHING, CHECK }, FREE, FAILED, 503 },
	{ { EXITED, 0, CGIHEAD_MALFORMED, 0, NOTHING, CHECK }, UNKNOWN, FAILED,
	    0 },
	{ { EXITED, 75, CGIHEAD_MALFORMED, 0, NOTHING, CHECK }, FREE, FAILED,
	    503 },
	{ { EXITED, 0, CGIHEAD_NO_END, 0, NOTHING, CHECK }, UNKNOWN, FAILED,
	    0 },
	{ { EXITED, 0, SHORT, 200, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 0, SHORT, 503, NO, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 75, SHORT, 200, NOTHING, CHECK }, FREE, FAILED, 503 },
	/* exit statuses */
	{ { EXITED, 1, OK, 200, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 1, OK, 500, NOTHING, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 1, OK, 200, NO, CHECK }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 255, OK, 200, YES, CHECK }, UNKNOWN, FAILED, 0 },
	/* exit_status = release */
	{ { EXITED, 1, OK, 200, NOTHING, RELEASE }, FREE, FAILED, 0 },
	{ { EXITED, 1, OK, 200, YES, RELEASE }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 1, OK, 200, DUNNO, RELEASE }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 0, EMPTY, 0, NOTHING, RELEASE }, FREE, FAILED, 0 },
	{ { EXITED, 0, SHORT, 200, NOTHING, RELEASE }, FREE, FAILED, 0 },
	{ { RUN_SIGNALED, 0, OK, 200, NOTHING, RELEASE }, UNKNOWN, FAILED, 0 },
	{ { EXITED, 0, OK, 200, NOTHING, RELEASE }, DONE, NONE, 0 },
	/* exit_status = ignore */
	{ { EXITED, 1, OK, 200, NOTHING, IGNORE }, DONE, NONE, 0 },
	{ { EXITED, 1, OK, 500, NOTHING, IGNORE }, FREE, NONE, 0 },
	/* exit status 75 */
	{ { EXITED, 75, OK, 200, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 75, OK, 502, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 75, OK, 200, YES, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 75, OK, 200, DUNNO, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 75, OK, 200, NOTHING, IGNORE }, FREE, NONE, 0 },
	/* what the handler says */
	{ { EXITED, 0, OK, 200, NO, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 502, NO, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 200, DUNNO, CHECK }, UNKNOWN, NONE, 0 },
	{ { EXITED, 0, OK, 500, DUNNO, CHECK }, UNKNOWN, NONE, 0 },
	{ { EXITED, 0, OK, 500, YES, CHECK }, DONE, NONE, 0 },
	{ { EXITED, 0, OK, 504, YES, CHECK }, DONE, NONE, 0 },
	/* the status, of which 502 is ambiguous and in release */
	{ { EXITED, 0, OK, 502, NOTHING, CHECK }, UNKNOWN, NONE, 0 },
	{ { EXITED, 0, OK, 504, NOTHING, CHECK }, UNKNOWN, NONE, 0 },
	{ { EXITED, 0, OK, 500, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 599, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 429, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 425, NOTHING, CHECK }, FREE, NONE, 0 },
	{ { EXITED, 0, OK, 200, NOTHING, CHECK }, DONE, NONE, 0 },
	{ { EXITED, 0, OK, 302, NOTHING, CHECK }, DONE, NONE, 0 },
	{ { EXITED, 0, OK, 404, NOTHING, CHECK }, DONE, NONE, 0 },
	{ { EXITED, 0, OK, 424, NOTHING, CHECK }, DONE, NONE, 0 },
	{ { EXITED, 0, OK, 499, NOTHING, CHECK }, DONE, NONE, 0 },
};

static struct outcome
judge(const struct facts *w, bool acted_before)
{
	struct conf_route rt = route(w->check);
	struct outcome_facts f = {
		.run = { .end = w->end, .exit_status = w->exit },
		.head = w->head == SHORT ? OK : (enum cgihead_verdict)w->head,
		.body_broken = w->head == SHORT,
		.status = w->status,
		.says = w->says,
		.acted_before = acted_before,
	};

	return outcome_judge(&f, &rt);
}

TEST(every_row)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct outcome o = judge(&w->facts, false);

		if (o.state != w->to || o.problem != w->problem ||
		    o.status != w->sends)
			fail_msg("row %zu: state %d problem %d status %d", i,
			    (int)o.state, (int)o.problem, o.status);
		/* Why a key did not complete is kept with it and logged. */
		if ((o.state == DONE) != (o.why[0] == '\0'))
			fail_msg("row %zu: why \"%s\"", i, o.why);
	}
}

TEST(an_explicit_outcome_is_what_the_handler_says)
{
	static const struct {
		enum cgihead_outcome says;
		int status;
		enum record_state state;
	} want[] = {
		{ NOTHING, 200, UNKNOWN },
		{ NOTHING, 503, UNKNOWN },
		{ NOTHING, 504, UNKNOWN },
		{ YES, 503, DONE },
		{ NO, 200, FREE },
		{ DUNNO, 200, UNKNOWN },
	};
	struct conf_route rt = route(CHECK);

	rt.outcome = CONF_OUTCOME_EXPLICIT;
	for (size_t i = 0; i < COUNT(want); i++) {
		struct outcome_facts f = { .run = { .end = EXITED },
			.head = OK,
			.status = want[i].status,
			.says = want[i].says };
		struct outcome o = outcome_judge(&f, &rt);

		assert_int_equal(o.state, want[i].state);
		assert_int_equal(o.problem, NONE);
	}
}

/*
 * Every combination of facts: only what is known to have left nothing behind
 * releases, and a problem is never completed.
 */
TEST(no_combination_releases_by_mistake)
{
	static const int statuses[] = { 200, 302, 404, 429, 500, 502 };
	static const int exits[] = { 0, 1, 75, 255 };

	for (int n = 0; n < 8 * 4 * 11 * 2 * 6 * 4 * 2; n++) {
		int k = n;
		struct outcome_facts f = { 0 };
		struct conf_route rt;
		struct outcome o;
		bool may_release;

		f.run.end = (enum run_end)(k % 8), k /= 8;
		f.run.exit_status = exits[k % 4], k /= 4;
		f.head = (enum cgihead_verdict)(k % 11), k /= 11;
		f.body_broken = k % 2 != 0, k /= 2;
		f.status = statuses[k % 6], k /= 6;
		f.says = (enum cgihead_outcome)(k % 4), k /= 4;
		rt = route(k % 2 != 0 ? IGNORE : CHECK);
		o = outcome_judge(&f, &rt);

		may_release = f.run.end == RUN_NOT_STARTED ||
		    (f.run.end == EXITED &&
			(f.run.exit_status == 75 || f.says == NO ||
			    f.status == 429 || f.status == 500));
		if (o.state == FREE)
			assert_true(may_release);
		if (o.state == DONE) {
			assert_int_equal(o.problem, NONE);
			assert_int_equal(f.run.end, EXITED);
			assert_int_equal(f.head, OK);
			assert_false(f.body_broken);
		}
		assert_true(
		    o.state == FREE || o.state == DONE || o.state == UNKNOWN);
		assert_non_null(o.why);
	}
}

/* A key that was released so takes the fingerprint of the next request. */
TEST(what_is_known_to_have_done_nothing)
{
	static const struct {
		struct facts facts;
		bool nothing;
	} want[] = {
		{ { RUN_NOT_STARTED, 0, EMPTY, 0, NOTHING, CHECK }, true },
		{ { EXITED, 75, OK, 200, NOTHING, CHECK }, true },
		{ { EXITED, 75, EMPTY, 0, NOTHING, CHECK }, true },
		{ { EXITED, 0, OK, 200, NO, CHECK }, true },
		{ { EXITED, 0, OK, 401, NOTHING, CHECK }, true },
		{ { EXITED, 0, OK, 500, NOTHING, CHECK }, false },
		{ { EXITED, 0, OK, 503, NOTHING, RELEASE }, false },
		{ { EXITED, 0, OK, 404, NOTHING, CHECK }, false },
		{ { EXITED, 1, OK, 200, NOTHING, CHECK }, false },
		{ { EXITED, 1, OK, 200, NOTHING, RELEASE }, true },
		{ { EXITED, 0, EMPTY, 0, NOTHING, RELEASE }, true },
		{ { RUN_SIGNALED, 0, OK, 401, NO, RELEASE }, false },
	};
	struct record r = { .state = RECORD_PENDING };
	char none[] = "", spec[] = "2 value\n";

	for (size_t i = 0; i < COUNT(want); i++) {
		if (judge(&want[i].facts, false).nothing_happened !=
		    want[i].nothing)
			fail_msg("row %zu", i);
		/* An earlier attempt may have acted. */
		assert_false(judge(&want[i].facts, true).nothing_happened);
	}
	r.fingerprint_spec = spec;
	assert_false(outcome_may_have_acted(&r));
	r.attempt = 1;
	assert_true(outcome_may_have_acted(&r));
	r.state = FREE;
	assert_true(outcome_may_have_acted(&r));
	r.fingerprint_spec = none;
	assert_false(outcome_may_have_acted(&r));
}

/* --- reconcilers ---------------------------------------------------------- */

/* The verdict of the third try, of three and of four.  Whatever is no verdict
 * leaves the key unknown, or after the last try a dead letter. */
TEST(every_verdict_of_a_reconciler)
{
	static const struct {
		const char *name;
		struct outcome_facts facts;
		enum record_state to; /* UNKNOWN: it is no verdict */
		const char *why;
	} want[] = {
		{ "completed", { .status = 200, .says = YES }, DONE,
		    "the reconciler says completed" },
		{ "completed with 500", { .status = 500, .says = YES }, DONE,
		    "the reconciler says completed" },
		{ "not-executed", { .status = 200, .says = NO }, FREE,
		    "the reconciler says not-executed" },
		{ "not-executed, broken body",
		    { .status = 200, .says = NO, .body_broken = true }, FREE,
		    "the reconciler says not-executed" },
		{ "completed, broken body",
		    { .status = 200, .says = YES, .body_broken = true },
		    UNKNOWN, "the reconciler's answer is no verdict" },
		{ "unknown", { .status = 200, .says = DUNNO, .doubt = "" },
		    UNKNOWN, "the reconciler says unknown" },
		{ "unknown, with a reason",
		    { .status = 200, .says = DUNNO, .doubt = "no line" },
		    UNKNOWN, "no line" },
		{ "status", { .status = 200, .says = CGIHEAD_SAYS_STATUS },
		    UNKNOWN, "the reconciler's answer is no verdict" },
		{ "nothing, with a status that releases", { .status = 500 },
		    UNKNOWN, "the reconciler's answer is no verdict" },
		{ "completed, exit 1",
		    { .run.exit_status = 1, .status = 200, .says = YES },
		    UNKNOWN, "the reconciler failed" },
		{ "not-executed, exit 75",
		    { .run.exit_status = 75, .status = 200, .says = NO },
		    UNKNOWN, "the reconciler failed" },
		{ "completed, timeout",
		    { .run.end = RUN_TIMEOUT, .status = 200, .says = YES },
		    UNKNOWN, "the reconciler failed" },
		{ "not-executed, signal",
		    { .run.end = RUN_SIGNALED, .status = 200, .says = NO },
		    UNKNOWN, "the reconciler failed" },
		{ "not started",
		    { .run.end = RUN_NOT_STARTED, .head = CGIHEAD_EMPTY },
		    UNKNOWN, "the reconciler could not be started" },
		{ "malformed", { .head = CGIHEAD_MALFORMED, .says = YES },
		    UNKNOWN, NULL },
	};

	for (size_t i = 0; i < COUNT(want); i++)
		for (unsigned most = 2; most <= 4; most++) {
			struct outcome o =
			    outcome_reconcile(&want[i].facts, 3, most);
			enum record_state to = want[i].to;
			const char *why = want[i].why != NULL
			    ? want[i].why
			    : cgihead_verdict_text(want[i].facts.head);

			if (to == UNKNOWN && most <= 3)
				to = RECORD_DEAD_LETTER;
			if (o.state != to || strcmp(o.why, why) != 0)
				fail_msg("%s, of %u: %d, %s", want[i].name,
				    most, (int)o.state, o.why);
		}
}

static int
setup(UNUSED void **state)
{
	struct conf_error err;

	conf = conf_default(&err);
	return conf == NULL ? -1 : 0;
}

static int
teardown(UNUSED void **state)
{
	conf_unref(conf);
	return 0;
}

GROUP(setup, teardown)
