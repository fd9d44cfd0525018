/*
 * A try is counted before its program runs, so that a program which kills this
 * process counts too, and two processes never try the same key at once.  The
 * verdict names the try.  So a late verdict changes nothing if an operator or a
 * webhook has settled the key.
 *
 * The program gets the original request, without its credentials, and prints a
 * CGI response with the verdict in Idempotency-Outcome.  completed: that
 * response is stored.  not-executed: the key is released.  Anything else is a
 * failed try; after the last try the key becomes a dead letter.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "attention.h"
#include "backoff.h"
#include "clock.h"
#include "fault.h"
#include "log.h"
#include "maintenance.h"
#include "metrics.h"
#include "scope.h"
#include "uuid.h"
#include "reconcile.h"

/* The longest pause (ms) between two tries: a day, and half of it at random. */
#define BACKOFF_MAX INT64_C(129600000)

/* The shortest pause (ms) after a vain look. */
#define SKIP_PAUSE 500

/* Pause (ms) before a key without a program in its route is tried again. */
#define NO_PROGRAM_PAUSE INT64_C(3600000)

/* The pause (ms) before the next try. */
static int64_t
reconcile_backoff(const struct conf_route *rule, int tries)
{
	return backoff_pause(
	    rule->reconcile_after, tries, BACKOFF_MAX, uuid_bits());
}

/* What a line about the key names; it points into due. */
static struct log_request
reconcile_about(const struct record *due)
{
	struct log_request log = { .path = due->path, .key = due->key };

	scope_tag(due->scope, log.scope);
	return log;
}

static void
log_verdict(enum log_level level, const struct record *due,
    enum record_state to, const char *why)
{
	const struct log_request log = reconcile_about(due);

	log_event(level, "reconciled", &log,
	    LOG_I("try", due->reconcile_attempts),
	    LOG_S("to", record_state_name(to)), LOG_S("why", why));
}

/* Commits the verdict.  Another process may have settled the key meanwhile. */
static enum rc
reconcile_settle(struct attempt *at, const struct record *due,
    enum record_state state, const char *why)
{
	const struct store_tries tries = { due->attempt,
		due->reconcile_attempts };
	const struct log_request log = reconcile_about(due);
	struct store_outcome *st = at->record;
	enum rc rc;

	st->state = state;
	st->requeue = 0; /* an accepted key is queued again */
	snprintf(st->last_error, sizeof(st->last_error), "%s", why);
	if (state == RECORD_COMPLETED)
		attempt_keep(at);
	st->body = at->output;
	at->output = NULL;
	rc = store_resolve(at->store, due->id, &tries, &at->record);
	metrics_add(state == RECORD_DEAD_LETTER ? METRICS_RECONCILE_FAILED
						: METRICS_RECONCILE_RESOLVED,
	    1);
	if (rc == RC_LOST)
		log_verdict(LOG_INFO, due, state, "settled by others");
	else /* a dead letter waits for an operator, as one of the outbox */
		log_verdict(state == RECORD_DEAD_LETTER ? LOG_ERROR : LOG_INFO,
		    due, state, why);
	if (rc == RC_OK || rc == RC_PENDING)
		attention_key(state, &log, why);
	return rc == RC_LOST || rc == RC_PENDING ? RC_OK : rc;
}

/* Sets the next try: see store_claim(). */
static enum rc
reconcile_claim(
    struct store *store, struct record *due, bool count, int64_t after)
{
	struct store_tries tries = { due->attempt, due->reconcile_attempts };
	enum rc rc = store_claim(store, due->id, &tries, count, after);

	due->reconcile_attempts = tries.tries;
	return rc;
}

/* Records what a try has come to. */
static enum rc
reconcile_record(
    struct attempt *at, struct record *due, const struct outcome *o)
{
	enum rc rc;

	if (o->state != RECORD_UNKNOWN)
		return reconcile_settle(at, due, o->state, o->why);
	metrics_add(METRICS_RECONCILE_FAILED, 1);
	log_verdict(LOG_WARN, due, RECORD_UNKNOWN, o->why);
	rc = reconcile_claim(at->store, due, false,
	    reconcile_backoff(at->rule, due->reconcile_attempts));
	return rc == RC_LOST ? RC_OK : rc;
}

/* Runs the try, which is already counted, and judges it. */
static enum rc
try_it(struct attempt_request *q)
{
	struct attempt *at = &q->attempt;
	const int tries = q->key.reconcile_attempts;
	const unsigned most = at->rule->reconcile_attempts;
	struct outcome o;
	enum rc rc;

	metrics_add(METRICS_RECONCILE_SCHEDULED, 1);
	FAULT(RECONCILE_CLAIMED);
	rc = attempt_request_load(q);
	if (rc == RC_NOTFOUND || rc == RC_CORRUPT) {
		o = outcome_no_verdict(tries, most, "its request was not kept");
		rc = reconcile_record(at, &q->key, &o);
	} else if (rc == RC_OK) {
		if (attempt_capture(at, &at->rule->reconcile)) {
			attempt_read(at);
			FAULT(RECONCILE_RAN);
		}
		o = outcome_reconcile(&at->facts, tries, most);
		rc = reconcile_record(at, &q->key, &o);
	}
	attempt_request_free(q);
	return rc == RC_LOST ? RC_OK : rc;
}

/* Postpones the key while processes of its attempt may still act, because a
 * verdict could become wrong.  That is not counted as a try. */
static enum rc
wait_for_processes(
    const struct conf_route *rule, struct store *store, struct record *due)
{
	log_verdict(LOG_WARN, due, RECORD_UNKNOWN,
	    "processes of the attempt are still running");
	return reconcile_claim(store, due, false,
	    reconcile_backoff(rule, due->reconcile_attempts));
}

/* Whether processes of the lost attempt may still act. */
static bool
processes_may_live(struct store *store, const struct record *due)
{
	const struct store_attempt lost = { -1, -1, due->attempt_lock,
		due->lock_file };

	return lost.lock != 0 && !store_attempt_gone(store, &lost);
}

/* Counts a try at the key; *try: the program is to run.  Otherwise the key is
 * settled or postponed. */
static enum rc
reconcile_begin(struct attempt *at, struct record *due, bool *try)
{
	const struct conf_route *rule = at->rule;
	struct outcome o;
	enum rc rc;

	*try = false;
	if (rule->reconcile.argv.n == 0) {
		log_verdict(LOG_WARN, due, RECORD_UNKNOWN,
		    "its route has no reconciler");
		return reconcile_claim(at->store, due, false, NO_PROGRAM_PAUSE);
	}
	if (!attempt_alloc(at))
		return RC_NOMEM;
	if (processes_may_live(at->store, due))
		return wait_for_processes(rule, at->store, due);
	o = outcome_no_verdict(due->reconcile_attempts,
	    rule->reconcile_attempts,
	    "the last try to find out came to no end");
	if (o.state != RECORD_UNKNOWN)
		return reconcile_settle(at, due, o.state, o.why);
	/* The pause also applies if this process dies during the try. */
	rc = reconcile_claim(at->store, due, true,
	    rule->reconcile.timeout + rule->reconcile.kill_after +
		reconcile_backoff(rule, due->reconcile_attempts));
	*try = rc == RC_OK;
	return rc;
}

/* --- the kind of work ----------------------------------------------------- */

/* Each look takes a key of the next caller, so that none waits for another's
 * backlog: that of the last one. */
static _Atomic int64_t last_caller;

static struct work_terms
reconcile_terms(const struct conf *conf)
{
	bool any = conf->defaults.reconcile.argv.n > 0;

	for (size_t i = 0; i < conf->nroutes; i++)
		any = any || conf->routes[i].reconcile.argv.n > 0;
	return (struct work_terms){ any ? conf->reconcile_workers : 0, any };
}

/* Takes the next key, from the next caller.  RC_LOST: there is nothing to run
 * for it. */
static enum rc
reconcile_take(struct store *store, struct attempt_request *q)
{
	struct store_lease *lease = &q->attempt.lease;
	struct record *due = &q->key;
	bool counted = false;
	enum rc rc;

	if ((rc = store_due(store, last_caller, due)) != RC_OK)
		return rc;
	if (conf_is_retired(q->attempt.conf))
		return RC_LOST;
	last_caller = due->caller;
	attempt_request_begin(q);
	lease->attempt = due->attempt;
	memcpy(lease->downstream, due->downstream, sizeof(due->downstream));
	memcpy(lease->recovery_point, due->recovery_point,
	    sizeof(due->recovery_point));
	rc = reconcile_begin(&q->attempt, due, &counted);
	return rc == RC_OK && !counted ? RC_LOST : rc;
}

static enum rc
reconcile_next(void *self, const struct conf *conf, void **item, int64_t *wake)
{
	struct attempt_request *q = attempt_request_new(self, conf);
	enum rc rc;

	if (q == NULL)
		return RC_NOMEM;
	rc = reconcile_take(self, q);
	if (rc == RC_NOTFOUND && q->key.reconcile_after != 0) {
		*wake = work_wake(self, q->key.reconcile_after, *wake);
		/* A damaged row, which is skipped, may be due for ever. */
		if (*wake < clock_mono() + SKIP_PAUSE)
			*wake = clock_mono() + SKIP_PAUSE;
	}
	if (rc == RC_OK)
		*item = q;
	else
		attempt_request_free(q);
	return rc;
}

static void
reconcile_run(void *self, const struct conf *conf, void *item)
{
	const enum rc rc = try_it(item);

	(void)conf;
	if (rc != RC_OK)
		maintenance_failed(self, "reconcile", rc);
}

const struct work_kind reconcile_kind = {
	.name = "reconcile",
	.terms = reconcile_terms,
	.next = reconcile_next,
	.run = reconcile_run,
};

enum rc
reconcile_all(struct store *store, const struct conf *conf,
    const atomic_bool *stop, int *n)
{
	void *item;
	int64_t wake = INT64_MAX;
	enum rc rc = RC_OK;

	for (*n = 0; rc == RC_OK && !atomic_load(stop); *n += rc == RC_OK) {
		rc = reconcile_next(store, conf, &item, &wake);
		if (rc == RC_OK)
			rc = try_it(item);
		else if (rc == RC_LOST)
			rc = RC_OK;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
