/*
 * A request is claimed by compare-and-set, so several processes may share the
 * queue.  It is then an attempt like any other.  If the attempt is lost, or its
 * handler cannot be started, and its key is released, the request is queued
 * again: no client would retry it.  A request that got a response from its
 * handler is not queued again, whatever the response: its client reads the
 * response, and may retry.
 *
 * One thread at a time holds the lookout, that is, looks for work; the others
 * wait for the lookout.  The thread leaves the lookout with a lease.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "clock.h"
#include "decide.h"
#include "fault.h"
#include "kept.h"
#include "limit.h"
#include "log.h"
#include "route.h"
#include "uuid.h"
#include "pending.h"

/* Poll interval (ms) for other processes' jobs and delayed retries. */
#define LOOK 500

struct pending {
	struct store *store;
	struct confbox *confbox;
	atomic_bool stop;
	pthread_mutex_t lookout; /* held by the thread that looks for work */
	uint64_t generation;     /* used under the lookout */
};

/* A claimed request. */
struct work {
	struct store_job job;
	struct conf *conf;
	struct attempt attempt;
};

static void
work_init(struct work *w, struct pending *p)
{
	memset(w, 0, sizeof(*w));
	attempt_init(&w->attempt);
	w->attempt.store = p->store;
	w->conf = confbox_get(p->confbox);
	w->attempt.conf = w->conf;
}

static void
work_free(struct work *w)
{
	attempt_free(&w->attempt);
	store_job_free(&w->job);
	conf_unref(w->conf);
}

/* --- claiming ----------------------------------------------------------- */

/* RC_NOTFOUND: nothing is due.  RC_LOST: another process claimed it. */
static enum rc
claim(struct work *w)
{
	struct attempt *at = &w->attempt;
	struct store_reservation rv;
	enum rc rc;

	if ((rc = store_job_next(at->store, &w->job)) != RC_OK)
		return rc;
	at->rule = route_find(w->conf, w->job.path);
	at->key = w->job.key;
	at->scope = w->job.scope;
	memset(&rv, 0, sizeof(rv));
	attempt_terms(at->rule, &rv);
	if ((rc = attempt_prepare(at, &rv)) != RC_OK)
		return rc;
	return store_job_start(at->store, &w->job, &rv, &at->lease);
}

static void
report(enum rc rc)
{
	if (rc != RC_OK && rc != RC_NOTFOUND && rc != RC_LOST)
		log_event(LOG_ERROR, "pass-failed", NULL,
		    LOG_S("pass", "pending"), LOG_S("why", rc_text(rc)));
}

/* Waits for work.  False: the threads are to end. */
static bool
look_out(struct pending *p, struct work *w)
{
	enum rc rc;

	while (!atomic_load(&p->stop)) {
		work_init(w, p);
		if ((rc = claim(w)) == RC_OK)
			return true;
		report(rc);
		work_free(w);
		if (rc != RC_LOST)
			(void)store_wait_work(
			    p->store, &p->generation, clock_mono() + LOOK);
	}
	return false;
}

/* --- running ------------------------------------------------------------ */

/* Whether the attempt ended without a response from the program. */
static bool
was_cut_off(const struct attempt *at)
{
	return at->facts.run.end == RUN_NOT_STARTED ||
	    outcome_is_lost(&at->facts.run);
}

static void
work(struct work *w)
{
	struct attempt *at = &w->attempt;
	const struct store_identity who = { w->job.scope, w->job.path,
		w->job.key };
	struct kept kept;
	enum rc rc;

	FAULT(JOB_CLAIMED);
	rc = kept_load(at->store, &who, w->job.id, &kept);
	at->rq = &kept.rq;
	if (rc == RC_OK)
		attempt_run(at);
	else {
		log_event(LOG_ERROR, "handler-not-started", kept.rq.instance,
		    LOG_S("path", w->job.path), LOG_S("key", w->job.key),
		    LOG_S("why", rc_text(rc)));
		at->facts.run.end = RUN_NOT_STARTED;
	}
	attempt_judge(at);
	if (was_cut_off(at))
		at->settlement->requeue =
		    decide_requeue(at->lease.attempt, uuid_bits());
	attempt_complete(at);
	at->rq = NULL; /* it was borrowed */
	kept_free(&kept);
}

void
pending_run(struct pending *p)
{
	struct work w;
	bool any = true;

	while (any) {
		pthread_mutex_lock(&p->lookout);
		any = look_out(p, &w);
		pthread_mutex_unlock(&p->lookout);
		if (any) {
			work(&w);
			work_free(&w);
		}
	}
}

/* --- requests that expired in the queue ---------------------------------- */

/* Makes the response to a request that expired in the queue, as it is
 * stored. */
static enum rc
make_answer(struct store_settlement *st, const struct conf *conf)
{
	struct problem problem;
	char instance[] = "urn:uuid:01234567-89ab-cdef-0123-456789abcdef";
	struct buf text;
	enum rc rc;

	uuid_random(instance + strlen(instance) - UUID_LEN);
	memset(&problem, 0, sizeof(problem));
	problem.code = PROBLEM_REQUEST_EXPIRED;
	problem.detail = "The request was accepted, "
			 "but not begun within its retention; it never ran.";
	problem.instance = instance;
	buf_init(&text, LIMIT_PROBLEM);
	rc = problem_make(
	    &problem, conf->link, conf->dialect, &st->response, &text);
	st->response.body = NULL;
	if (rc == RC_OK && (st->body = spool_new()) == NULL)
		rc = RC_NOMEM;
	if (rc == RC_OK)
		rc = spool_write(st->body, text.data, text.len);
	if (rc == RC_OK)
		st->response.body = spool_bytes(st->body, &rc);
	buf_free(&text);
	return rc;
}

static enum rc
expire_one(
    struct store *store, const struct conf *conf, const struct store_job *job)
{
	struct store_settlement *st;
	struct store_change change;
	int64_t expires_at;
	enum rc rc;

	if ((st = store_settlement_new()) == NULL)
		return RC_NOMEM;
	st->id = job->id;
	st->abandon = true;
	st->state = RECORD_COMPLETED;
	st->keep = true;
	rc = make_answer(st, conf);
	if (rc == RC_OK)
		rc = store_settle(store, &st, &expires_at);
	store_settlement_free(st);
	if (rc != RC_OK) /* RC_LOST: claimed, or completed meanwhile */
		return rc == RC_LOST ? RC_OK : rc;
	change.id = job->id;
	change.scope = job->scope;
	change.path = job->path;
	change.key = job->key;
	change.from = RECORD_PENDING;
	change.to = RECORD_COMPLETED;
	pass_log(LOG_WARN, "abandoned", &change, 1);
	return RC_OK;
}

enum rc
pending_expire(struct store *store, const struct conf *conf, struct pass *pass)
{
	struct store_job job;
	enum rc rc;

	do {
		rc = store_job_abandoned(store, &job);
		if (rc == RC_OK) {
			rc = expire_one(store, conf, &job);
			store_job_free(&job);
			pass->n++;
		}
	} while (rc == RC_OK && pass_goes_on(pass));
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- beginning and end -------------------------------------------------- */

struct pending *
pending_new(struct store *store, struct confbox *confbox)
{
	struct pending *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->store = store;
	p->confbox = confbox;
	pthread_mutex_init(&p->lookout, NULL);
	return p;
}

void
pending_halt(struct pending *p)
{
	atomic_store(&p->stop, true);
	store_wake(p->store);
}

void
pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	pthread_mutex_destroy(&p->lookout);
	free(p);
}
