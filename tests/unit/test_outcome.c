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

/* What a row does not name is a program that has exited with 0, a whole head
 * and body, and no word about the outcome. */
static const struct row {
	const char *name;
	enum run_end end;
	int exit;
	enum cgihead_verdict head;
	bool body_broken;
	int status;
	enum cgihead_outcome says;
	enum conf_exit_status check;
	enum record_state to;
	enum problem_code problem;
	int sends; /* another status than the problem's */
} rows[] = {
	{ "not started", .end = RUN_NOT_STARTED, .head = CGIHEAD_EMPTY,
	    .to = FREE, .problem = PROBLEM_HANDLER_NOT_STARTED },
	{ "timeout without output", .end = RUN_TIMEOUT, .head = CGIHEAD_EMPTY,
	    .to = UNKNOWN, .problem = PROBLEM_HANDLER_TIMEOUT },
	{ "timeout after a whole response", .end = RUN_TIMEOUT, .status = 200,
	    .to = UNKNOWN, .problem = PROBLEM_HANDLER_TIMEOUT },
	{ "timeout after not-executed", .end = RUN_TIMEOUT, .status = 503,
	    .says = NO, .to = UNKNOWN, .problem = PROBLEM_HANDLER_TIMEOUT },
	{ "signal after a whole response", .end = RUN_SIGNALED, .status = 201,
	    .to = UNKNOWN, .problem = FAILED },
	{ "signal after completed, exit_status ignored", .end = RUN_SIGNALED,
	    .status = 201, .says = YES, .check = IGNORE, .to = UNKNOWN,
	    .problem = FAILED },
	{ "signal, stale exit status 75", .end = RUN_SIGNALED, .exit = 75,
	    .status = 503, .says = NO, .to = UNKNOWN, .problem = FAILED },
	{ "no END_REQUEST after a whole response", .end = RUN_CUT,
	    .status = 201, .says = YES, .to = UNKNOWN, .problem = FAILED },
	{ "max_output", .end = RUN_OUTPUT_LIMIT, .status = 200, .to = UNKNOWN,
	    .problem = FAILED },
	{ "drain deadline", .end = RUN_DRAINED, .status = 200, .to = UNKNOWN,
	    .problem = FAILED },
	{ "output could not be kept", .end = RUN_CAPTURE_FAILED, .status = 200,
	    .to = UNKNOWN, .problem = FAILED },
	{ "no output", .head = CGIHEAD_EMPTY, .to = UNKNOWN,
	    .problem = FAILED },
	{ "no output, exit 1", .exit = 1, .head = CGIHEAD_EMPTY, .to = UNKNOWN,
	    .problem = FAILED },
	{ "no output, exit_status ignored", .exit = 1, .head = CGIHEAD_EMPTY,
	    .check = IGNORE, .to = UNKNOWN, .problem = FAILED },
	{ "no output, exit 75", .exit = 75, .head = CGIHEAD_EMPTY, .to = FREE,
	    .problem = FAILED, .sends = 503 },
	{ "malformed head", .head = CGIHEAD_MALFORMED, .to = UNKNOWN,
	    .problem = FAILED },
	{ "malformed head, exit 75", .exit = 75, .head = CGIHEAD_MALFORMED,
	    .to = FREE, .problem = FAILED, .sends = 503 },
	{ "head without end", .head = CGIHEAD_NO_END, .to = UNKNOWN,
	    .problem = FAILED },
	{ "short body", .body_broken = true, .status = 200, .to = UNKNOWN,
	    .problem = FAILED },
	{ "short body, says not-executed", .body_broken = true, .status = 503,
	    .says = NO, .to = UNKNOWN, .problem = FAILED },
	{ "short body, exit 75", .exit = 75, .body_broken = true, .status = 200,
	    .to = FREE, .problem = FAILED, .sends = 503 },
	{ "exit 1 after a whole response", .exit = 1, .status = 200,
	    .to = UNKNOWN, .problem = FAILED },
	{ "exit 1 after a status in release", .exit = 1, .status = 500,
	    .to = UNKNOWN, .problem = FAILED },
	{ "exit 1 after not-executed", .exit = 1, .status = 200, .says = NO,
	    .to = UNKNOWN, .problem = FAILED },
	{ "exit 255", .exit = 255, .status = 200, .says = YES, .to = UNKNOWN,
	    .problem = FAILED },
	{ "exit 1, to be released", .exit = 1, .status = 200, .check = RELEASE,
	    .to = FREE, .problem = FAILED },
	{ "exit 1, to be released, says completed", .exit = 1, .status = 200,
	    .says = YES, .check = RELEASE, .to = UNKNOWN, .problem = FAILED },
	{ "exit 1, to be released, says unknown", .exit = 1, .status = 200,
	    .says = DUNNO, .check = RELEASE, .to = UNKNOWN, .problem = FAILED },
	{ "no output, to be released", .head = CGIHEAD_EMPTY, .check = RELEASE,
	    .to = FREE, .problem = FAILED },
	{ "short body, to be released", .body_broken = true, .status = 200,
	    .check = RELEASE, .to = FREE, .problem = FAILED },
	{ "signal, to be released", .end = RUN_SIGNALED, .status = 200,
	    .check = RELEASE, .to = UNKNOWN, .problem = FAILED },
	{ "exit 0, to be released", .status = 200, .check = RELEASE,
	    .to = DONE },
	{ "exit 1, exit_status ignored", .exit = 1, .status = 200,
	    .check = IGNORE, .to = DONE },
	{ "exit 1, exit_status ignored, in release", .exit = 1, .status = 500,
	    .check = IGNORE, .to = FREE },
	{ "exit 75", .exit = 75, .status = 200, .to = FREE },
	{ "exit 75, status ambiguous", .exit = 75, .status = 502, .to = FREE },
	{ "exit 75, says completed", .exit = 75, .status = 200, .says = YES,
	    .to = FREE },
	{ "exit 75, says unknown", .exit = 75, .status = 200, .says = DUNNO,
	    .to = FREE },
	{ "exit 75, exit_status ignored", .exit = 75, .status = 200,
	    .check = IGNORE, .to = FREE },
	{ "says not-executed with 200", .status = 200, .says = NO, .to = FREE },
	{ "says not-executed with 502", .status = 502, .says = NO, .to = FREE },
	{ "says unknown with 200", .status = 200, .says = DUNNO,
	    .to = UNKNOWN },
	{ "says unknown with 500", .status = 500, .says = DUNNO,
	    .to = UNKNOWN },
	{ "says completed with 500", .status = 500, .says = YES, .to = DONE },
	{ "says completed with 504", .status = 504, .says = YES, .to = DONE },
	{ "ambiguous and in release: 502", .status = 502, .to = UNKNOWN },
	{ "504", .status = 504, .to = UNKNOWN },
	{ "500", .status = 500, .to = FREE },
	{ "599", .status = 599, .to = FREE },
	{ "429", .status = 429, .to = FREE },
	{ "425", .status = 425, .to = FREE },
	{ "200", .status = 200, .to = DONE },
	{ "302", .status = 302, .to = DONE },
	{ "404", .status = 404, .to = DONE },
	{ "424", .status = 424, .to = DONE },
	{ "499", .status = 499, .to = DONE },
};

TEST(every_row)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct conf_route rt = route(w->check);
		struct outcome_facts f = {
			.run = { .end = w->end, .exit_status = w->exit },
			.head = w->head,
			.body_broken = w->body_broken,
			.status = w->status,
			.says = w->says,
		};
		struct outcome o = outcome_judge(&f, &rt);

		if (o.state != w->to || o.problem != w->problem ||
		    o.status != w->sends)
			fail_msg("%s: state %d problem %d status %d", w->name,
			    (int)o.state, (int)o.problem, o.status);
		/* Why a key did not complete is kept with it and logged. */
		if ((o.state == DONE) != (o.why[0] == '\0'))
			fail_msg("%s: why \"%s\"", w->name, o.why);
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
		struct outcome_facts f = { .run = { .end = RUN_EXITED },
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
		    (f.run.end == RUN_EXITED &&
			(f.run.exit_status == 75 || f.says == NO ||
			    f.status == 429 || f.status == 500));
		if (o.state == FREE)
			assert_true(may_release);
		if (o.state == DONE) {
			assert_int_equal(o.problem, NONE);
			assert_int_equal(f.run.end, RUN_EXITED);
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
		const char *name;
		enum run_end end;
		int exit_status, status;
		enum cgihead_verdict head;
		enum cgihead_outcome says;
		enum conf_exit_status check;
		bool nothing;
	} want[] = {
		{ "not started", RUN_NOT_STARTED, 0, 0, CGIHEAD_EMPTY, NOTHING,
		    CHECK, true },
		{ "exit 75", RUN_EXITED, 75, 200, OK, NOTHING, CHECK, true },
		{ "exit 75, no output", RUN_EXITED, 75, 0, CGIHEAD_EMPTY,
		    NOTHING, CHECK, true },
		{ "not-executed", RUN_EXITED, 0, 200, OK, NO, CHECK, true },
		{ "401", RUN_EXITED, 0, 401, OK, NOTHING, CHECK, true },
		{ "500", RUN_EXITED, 0, 500, OK, NOTHING, CHECK, false },
		{ "503", RUN_EXITED, 0, 503, OK, NOTHING, RELEASE, false },
		{ "404, not released", RUN_EXITED, 0, 404, OK, NOTHING, CHECK,
		    false },
		{ "exit 1", RUN_EXITED, 1, 200, OK, NOTHING, CHECK, false },
		{ "exit 1, to be released", RUN_EXITED, 1, 200, OK, NOTHING,
		    RELEASE, true },
		{ "no output, to be released", RUN_EXITED, 0, 0, CGIHEAD_EMPTY,
		    NOTHING, RELEASE, true },
		{ "signal", RUN_SIGNALED, 0, 401, OK, NO, RELEASE, false },
	};
	struct record r = { .state = RECORD_PENDING };
	char none[] = "", spec[] = "2 value\n";

	for (size_t i = 0; i < COUNT(want); i++) {
		struct conf_route rt = route(want[i].check);
		struct outcome_facts f = {
			.run = { .end = want[i].end,
			    .exit_status = want[i].exit_status },
			.head = want[i].head,
			.status = want[i].status,
			.says = want[i].says,
		};

		if (outcome_judge(&f, &rt).nothing_happened != want[i].nothing)
			fail_msg("%s", want[i].name);
		/* An earlier attempt may have acted. */
		f.acted_before = true;
		if (outcome_judge(&f, &rt).nothing_happened)
			fail_msg("%s, again", want[i].name);
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
