/*
 * The request path, from top to bottom.  The table of places is the product:
 * each place adds one thing to struct job, or refuses the request, and says
 * where the request goes on.  engine_respond() has one response for each
 * decision.
 *
 *  1. Nothing runs before its reservation is durable.
 *  2. No byte of an answer leaves before its outcome is durable.
 *  3. A failure between the two leaves the key taken, never free.
 *  4. A job is in one place: the loop has it, or a helper, or a list, or the
 *     store or a run that will call.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "page.h"
#include "prefer.h"
#include "respond.h"
#include "status.h"
#include "engine_impl.h"

/* Tests know it by this name. */
#if defined(FAULT_POINTS) || defined(LOCK_CHECKS)
#define PLACE_NAME(id) "PLACE_" #id
#else
#define PLACE_NAME(id) NULL
#endif

/* The life of a request, from the first row to the last.  One that is refused
 * goes to ANSWER. */
#define ROW(id, function, by) [PLACE_##id] = { PLACE_NAME(id), function, by }

/* clang-format off */
static const struct {
	const char *name;
	enum place (*go)(struct job *);
	enum engine_by by;
} places[] = {
	/* what kind of request it is; its key, scope and fingerprint */
	ROW(BEGIN, engine_begin, BY_LOOP),         /* what is it? */
	ROW(PAGE, engine_page, BY_PAGE),           /* an operator's */
	ROW(STATUS, engine_status, BY_STORE),      /* of one accepted */
	ROW(MEMORY, engine_memory, BY_LOOP),       /* wait: to read JSON */
	ROW(CHECK, engine_check, BY_LOOP),         /* whole? key? scope? */
	ROW(CHECK_SMALL, engine_check, BY_SMALL),
	ROW(CHECK_LARGE, engine_check, BY_LARGE),
	ROW(CHECK_STORE, engine_check, BY_STORE),
	ROW(CHECKED, engine_checked, BY_LOOP),
	/* what is stored under the key */
	ROW(LOOK, engine_look, BY_LOOP),           /* up the record */
	ROW(LOOKED, engine_looked, BY_LOOP),       /* read */
	ROW(COMPARE, engine_compare, BY_LOOP),     /* by the record's spec */
	ROW(COMPARE_LARGE, engine_compare, BY_LARGE),
	ROW(DECIDE, engine_decide, BY_LOOP),       /* run, replay, refuse */
	ROW(RECOVER, engine_recover, BY_STORE),    /* a dead owner's key */
	ROW(FETCH, engine_fetch, BY_LOOP),         /* the stored answer */
	ROW(FETCH_STORE, engine_fetch, BY_STORE),
	ROW(FIRST, engine_first, BY_LOOP),         /* it runs: wait for it */
	ROW(WAITED, engine_waited, BY_LOOP),       /* wait: it has ended */
	/* a slot, and a lease or a place in the queue */
	ROW(SLOT, engine_slot, BY_LOOP),           /* wait: for a free one */
	ROW(PREPARE, engine_prepare, BY_LOOP),     /* what is stored */
	ROW(PREPARE_FILES, engine_prepare, BY_STORE),
	ROW(TAKE, engine_take, BY_LOOP),           /* the lease, or queue up */
	ROW(TAKEN, engine_taken, BY_LOOP),         /* wait: it is durable */
	ROW(RESPOND, engine_respond, BY_LOOP),     /* by the decision */
	ROW(RESPOND_STORE, engine_respond, BY_STORE),
	ROW(SHOW, engine_show, BY_STORE),          /* 202 */
	/* the program */
	ROW(START, engine_start, BY_LOOP),         /* the program */
	ROW(START_NAMED, engine_start, BY_NAMES),
	ROW(START_FILES, engine_start, BY_STORE),
	ROW(SPAWN, engine_start, BY_START),
	ROW(SPAWN_AS, engine_start, BY_USER),
	ROW(BEGIN_RUN, engine_begin_run, BY_LOOP), /* in the loop */
	ROW(REACH, engine_reach, BY_LOOP),         /* wait: for a process */
	ROW(NAME, engine_name, BY_LOOP),           /* it in the lease */
	ROW(NAME_FILES, engine_name, BY_STORE),
	ROW(CANCEL, engine_cancel, BY_LOOP),       /* the lease is lost */
	ROW(SEND, engine_send, BY_LOOP),           /* it the request */
	ROW(OUTPUT, engine_output, BY_LOOP),       /* wait: to capture it */
	ROW(SPOOL, engine_spool, BY_FILES),        /* to a file */
	ROW(STREAM, engine_stream, BY_LOOP),       /* wait: to send it on */
	ROW(RAN, engine_ran, BY_LOOP),             /* it has ended */
	ROW(LEFT, engine_left, BY_STORE),          /* do its children live? */
	ROW(PAUSE, engine_pause, BY_LOOP),         /* wait: for them */
	/* its outcome */
	ROW(JUDGE, engine_judge, BY_LOOP),         /* the outcome; store it */
	ROW(FINISHED, engine_finished, BY_LOOP),   /* wait: it is durable */
	ROW(SETTLED, engine_settled, BY_LOOP),     /* log it; remove files */
	ROW(SETTLED_FILES, engine_settled, BY_STORE),
	ROW(RESULT, engine_result, BY_LOOP),       /* tell those that wait */
	ROW(TELL, engine_tell, BY_LOOP),           /* its answer */
	ROW(TELL_FILES, engine_tell, BY_STORE),
	/* the answer */
	ROW(ANSWER, engine_answer, BY_LOOP),       /* give the slot back */
	ROW(REFUSE, engine_refuse_now, BY_LOOP),   /* with a problem */
	ROW(REFUSE_FILES, engine_refuse_now, BY_STORE),
	ROW(REPLY, engine_reply, BY_LOOP),         /* to the web server */
	ROW(CLEAN, engine_clean, BY_STORE),        /* remove files first */
};
/* clang-format on */

/* --- from place to place -------------------------------------------------- */

static void
store_called(struct store_call *call)
{
	struct job *job = OWNER(call, struct job, call);

	engine_go(job, job->place);
}

static struct job *
job_new(struct engine *engine, struct exchange *x)
{
	struct job *job = calloc(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->engine = engine;
	job->exchange = x;
	job->conf = exchange_conf(x);
	job->rq = exchange_request(x);
	job->rule = route_find(job->conf, job->rq->path);
	job->may_have_acted = true;
	job->later = job->rule->async == CONF_ASYNC_ALWAYS ||
	    (job->rule->async == CONF_ASYNC_PREFER &&
		prefer_respond_async(job->rq));
	answer_init(&job->answer);
	buf_init(&job->scope, LIMIT_SCOPE);
	buf_init(&job->detail, 1024);
	buf_init(&job->fingerprint_spec, LIMIT_FINGERPRINT_SPEC);
	store_inline_answer_init(&job->inline_answer);
	attempt_init(&job->attempt);
	job->attempt.store = engine->store;
	job->attempt.conf = job->conf;
	job->attempt.rule = job->rule;
	job->attempt.rq = job->rq;
	job->call.done = store_called;
	return job;
}

/* Frees it in any place. */
static void
job_free(struct job *job)
{
	assert(job->list == NULL && !job->timer.is_set && job->slots == NULL);
	engine_drop_json(job);
	engine_give_memory(job);
	answer_free(&job->answer);
	buf_free(&job->scope);
	buf_free(&job->detail);
	buf_free(&job->fingerprint_spec);
	record_free(&job->record);
	store_inline_answer_free(&job->inline_answer);
	attempt_free(&job->attempt);
	free(job->key);
	free(job->part);
	free(job);
}

static void
help_job(struct helpers_task *t)
{
	struct job *job = OWNER(t, struct job, task);

	job->place = places[job->place].go(job);
}

static enum rc
help_with_store(void *arg)
{
	struct job *job = arg;

	job->place = places[job->place].go(job);
	return RC_OK;
}

static void
job_helped(struct helpers_task *t)
{
	struct job *job = OWNER(t, struct job, task);

	engine_go(job, job->place);
}

void
engine_go(struct job *job, enum place place)
{
	struct engine *engine = job->engine;

	while (place != PLACE_WAIT && place != PLACE_END) {
		job->place = place;
		loop_doing(places[place].name);
		FAULT_NAMED(places[place].name);
		switch (places[place].by) {
		case BY_LOOP:
			place = places[place].go(job);
			continue;
		case BY_STORE:
			store_call_work(
			    engine->store, &job->call, help_with_store, job);
			return;
		default:
			job->task.work = help_job;
			job->task.done = job_helped;
			helpers_ask(
			    engine->helpers[places[place].by], &job->task);
			return;
		}
	}
	if (place == PLACE_END) {
		job_free(job);
		metrics_add(METRICS_REQUESTS, -1);
		if (--engine->jobs == 0)
			engine->owner.idle(engine->owner.arg);
	}
}

/* --- the beginning -------------------------------------------------------- */

/* A longer body is parsed by a helper: all requests wait for the loop. */
#define SMALL_BODY 4096

/* The place of the checks of a request that is guarded, or may be. */
static enum place
place_of_checks(struct job *job)
{
	const struct request *rq = job->rq;
	enum place next;

	if (rq->body_state != BODY_WHOLE)
		return PLACE_CHECK_STORE;
	if (rq->body_len <= SMALL_BODY)
		return PLACE_CHECK;
	if (rq->body_len <= LIMIT_SPOOL_MEMORY)
		return PLACE_CHECK_SMALL;
	return !engine_may_read_json(job) ||
		engine_take_memory(job, PLACE_CHECK_LARGE, &next)
	    ? PLACE_CHECK_LARGE
	    : next;
}

enum place
engine_begin(struct job *job)
{
	const struct request *rq = job->rq;

	FAULT(REQUEST_TAKEN);
	if (rq->invalid != NULL) {
		(void)engine_refuse(job, PROBLEM_REQUEST_INVALID, rq->invalid);
		return PLACE_ANSWER;
	}
	if (route_is_admin(job->conf, rq->path))
		return PLACE_PAGE;
	if (job->engine->jobs > LIMIT_REQUESTS) {
		engine_note_refused(job, PROBLEM_OVERLOADED, "requests", true);
		(void)engine_refusef(job, PROBLEM_OVERLOADED,
		    "%d requests are under way or wait; this one was not "
		    "begun.",
		    LIMIT_REQUESTS);
		return PLACE_ANSWER;
	}
	if (route_is_status(job->conf, rq->path))
		return PLACE_STATUS;
	engine_make_scope(job);
	if (route_guards(job->rule, rq) != ROUTE_UNGUARDED)
		return place_of_checks(job);
	job->may_have_acted = false;
	return engine_check_body(job) ? PLACE_CHECKED : PLACE_ANSWER;
}

enum place
engine_page(struct job *job)
{
	page_handle(job->engine->store, job->conf, job->rq, &job->answer);
	return PLACE_ANSWER;
}

enum place
engine_status(struct job *job)
{
	status_handle(job->engine->store, job->conf, job->rq, &job->answer);
	return PLACE_ANSWER;
}

/* Whether a request is guarded that brings a key or needs none.  A body that is
 * not whole is refused as well without a guard.  If the search fails, the
 * checks fail: never unguarded. */
static bool
is_guarded(struct job *job)
{
	return route_guards(job->rule, job->rq) == ROUTE_GUARDED ||
	    (job->rq->body_state == BODY_WHOLE &&
		(engine_find_key(job) != RC_OK || job->verdict != KEY_ABSENT));
}

enum place
engine_check(struct job *job)
{
	job->guarded = is_guarded(job);
	if (!job->guarded) {
		job->may_have_acted = job->rq->body_state != BODY_WHOLE;
		return engine_check_body(job) ? PLACE_CHECKED : PLACE_ANSWER;
	}
	engine_note_key(job);
	engine_make_reference(job);
	return engine_check_body(job) && engine_check_size(job) &&
		engine_check_key(job) && engine_check_scope(job) &&
		engine_take_fingerprint(job)
	    ? PLACE_CHECKED
	    : PLACE_ANSWER;
}

enum place
engine_checked(struct job *job)
{
	engine_drop_json(job);
	engine_give_memory(job);
	return job->guarded ? PLACE_LOOK : PLACE_SLOT;
}

/* --- the answer ----------------------------------------------------------- */

bool
engine_wants_page(const struct job *job)
{
	return job->conf->problem_pages != NULL && prefer_html(job->rq);
}

enum place
engine_answer(struct job *job)
{
	engine_free_slot(job);
	return job->problem.code == PROBLEM_NONE ? PLACE_REPLY
	    : engine_wants_page(job)             ? PLACE_REFUSE_FILES
						 : PLACE_REFUSE;
}

enum place
engine_refuse_now(struct job *job)
{
	respond_problem(&job->answer, &job->problem, job->conf, job->rq);
	return PLACE_REPLY;
}

/* Whether it takes a disk to free its attempt: a large file takes a while. */
static bool
is_to_be_cleaned(const struct job *job)
{
	const struct attempt *at = &job->attempt;

	return attempt_has_files(at) ||
	    (at->output != NULL && spool_fd(at->output) != -1);
}

enum place
engine_reply(struct job *job)
{
	if (is_to_be_cleaned(job))
		return PLACE_CLEAN;
	exchange_answer(job->exchange, &job->answer);
	return PLACE_END;
}

enum place
engine_clean(struct job *job)
{
	attempt_free(&job->attempt);
	attempt_init(&job->attempt);
	return PLACE_REPLY;
}

void
engine_handle(struct engine *engine, struct exchange *x)
{
	struct job *job = job_new(engine, x);
	struct answer none;

	if (job == NULL) {
		answer_init(&none);
		none.response.status = 503;
		exchange_answer(x, &none);
		return;
	}
	engine->jobs++;
	metrics_add(METRICS_REQUESTS, 1);
	engine_go(job, PLACE_BEGIN);
}
