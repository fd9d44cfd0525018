/*
 * The passes over the store, and when they run.
 *
 * A lease belongs to a process, and is dead when the kernel has dropped that
 * process's lock.  A deadline in the past alone frees nothing.
 *
 * Keys are deleted oldest first.  That pass sleeps between two batches, because
 * other processes that wait for the write lock try it only every 2 ms.  It logs
 * one line for all keys: a backlog may have hundreds of thousands.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attention.h"
#include "clock.h"
#include "fault.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "problem.h"
#include "scope.h"
#include "uuid.h"
#include "maintenance.h"

/* The longest slice of a pass (ms) while other work waits. */
#define SLICE 200

#define RECOVER_BATCH 64

/* Shortest time (ms) between two tallies for the metrics.  A long tally makes
 * the next one later, so that tallies take a hundredth of the time. */
#define TALLY_INTERVAL 60000
#define TALLY_REST     100

/* After each batch: whether the slice has time for another batch; sets more. */
static bool
goes_on(struct maintenance_pass *pass)
{
	if (pass->stop != NULL && atomic_load(pass->stop))
		return false;
	pass->more = clock_mono() >= pass->until;
	return !pass->more;
}

/* Logs one line for each of the n changes of an outcome. */
static void
log_changes(enum log_level level, const char *event,
    const struct store_change *changes, int n)
{
	struct log_request log = { .path = NULL };

	for (int i = 0; i < n; i++) {
		log.path = changes[i].path;
		log.key = changes[i].key;
		scope_tag(changes[i].scope, log.scope);
		log_event(level, event, &log,
		    LOG_S("from", record_state_name(changes[i].from)),
		    LOG_S("to", record_state_name(changes[i].to)));
		attention_key(changes[i].to, &log, "its process is gone");
	}
}

/* --- recovering and expiring -------------------------------------------- */

enum rc
maintenance_recover(struct store *store, struct maintenance_pass *pass)
{
	struct store_change changes[RECOVER_BATCH];
	enum rc rc;
	int changed;

	do {
		memset(changes, 0, sizeof(changes));
		changed = 0;
		FAULT(RECOVER_BEFORE);
		rc = store_recover(store, RECOVER_BATCH, changes, &changed);
		FAULT(RECOVER_AFTER);
		log_changes(LOG_WARN, "swept", changes, changed);
		store_changes_free(changes, changed);
		metrics_add(METRICS_SWEPT, changed);
		pass->n += changed;
	} while (rc == RC_OK && changed == RECOVER_BATCH && goes_on(pass));
	return rc;
}

enum rc
maintenance_recover_key(
    struct store *store, const struct record *record, int *n)
{
	struct store_change change;
	enum rc rc;

	memset(&change, 0, sizeof(change));
	rc = store_recover_key(store, record->id, record->owner, &change, n);
	log_changes(LOG_WARN, "swept", &change, *n);
	store_changes_free(&change, *n);
	metrics_add(METRICS_SWEPT, *n);
	return rc;
}

enum rc
maintenance_expire(struct store *store, struct maintenance_pass *pass)
{
	const struct timespec pause = { 0, 5000000 };
	struct store_change changes[STORE_EXPIRE_MAX];
	enum rc rc;
	int reaped;

	do {
		nanosleep(&pause, NULL);
		FAULT(EXPIRE_BEFORE);
		rc = store_expire(store, STORE_EXPIRE_MAX, changes, &reaped);
		FAULT(EXPIRE_AFTER);
		store_changes_free(changes, reaped);
		metrics_add(METRICS_EXPIRED, reaped);
		pass->n += reaped;
	} while (rc == RC_OK && reaped > 0 && goes_on(pass));
	if (pass->n > 0 && !pass->more)
		log_event(LOG_INFO, "reaped", NULL, LOG_I("keys", pass->n));
	return rc;
}

/* --- accepted requests that expired in the queue ------------------------- */

/* Makes the response to a request that expired in the queue, as it is
 * stored. */
static enum rc
make_answer(struct store_outcome *st, const struct conf *conf)
{
	struct problem problem;
	char instance[UUID_URN_LEN + 1];
	struct buf text;
	enum rc rc;

	uuid_urn(instance);
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
abandon_key(
    struct store *store, const struct conf *conf, const struct record *job)
{
	struct store_outcome *st;
	struct store_change change;
	enum rc rc;

	if ((st = store_outcome_new(store)) == NULL)
		return RC_NOMEM;
	st->state = RECORD_COMPLETED;
	st->keep = true;
	rc = make_answer(st, conf);
	if (rc == RC_OK)
		rc = store_abandon(store, job->id, &st);
	store_outcome_free(st);
	if (rc != RC_OK) /* RC_LOST: claimed, or completed meanwhile */
		return rc == RC_LOST ? RC_OK : rc;
	change.id = job->id;
	change.scope = job->scope;
	change.path = job->path;
	change.key = job->key;
	change.from = RECORD_PENDING;
	change.to = RECORD_COMPLETED;
	log_changes(LOG_WARN, "abandoned", &change, 1);
	return RC_OK;
}

/* Completes accepted requests that no worker has begun within their
 * retention. */
static enum rc
abandon_all(struct store *store, struct maintenance_pass *pass)
{
	struct record job;
	enum rc rc;

	do {
		rc = store_job_abandoned(store, &job);
		if (rc == RC_OK) {
			rc = abandon_key(store, pass->conf, &job);
			record_free(&job);
			pass->n++;
		}
	} while (rc == RC_OK && goes_on(pass));
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- the passes of a daemon ---------------------------------------------- */

/* Counts keys for the metrics. */
static enum rc
tally_keys(struct store *store, struct maintenance_pass *pass)
{
	bool done = false;
	enum rc rc;

	do
		rc = store_tally(store, &done);
	while (rc == RC_OK && !done && goes_on(pass));
	return rc;
}

enum { SWEEP, REAP, PENDING, TALLY, PASSES };

static const struct {
	const char *name;
	enum rc (*slice)(struct store *store, struct maintenance_pass *pass);
} passes[PASSES] = {
	[SWEEP] = { "sweep", maintenance_recover },
	[REAP] = { "reap", maintenance_expire },
	[PENDING] = { "pending", abandon_all },
	[TALLY] = { "tally", tally_keys },
};

/* The passes alternate by slices, so that a backlog of one does not hold up the
 * others. */
struct maintenance {
	struct store *store;
	const atomic_bool *stop;
	struct daemon_pass {
		struct maintenance_pass pass;
		int64_t ended;   /* mono: the last pass */
		int64_t took;    /* ms */
		enum rc failure; /* of the last slice, or RC_OK */
	} pass[PASSES];
};

struct maintenance *
maintenance_new(struct store *store, const atomic_bool *stop)
{
	struct maintenance *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->store = store;
	m->stop = stop;
	/* The start has recovered keys before the first request. */
	for (int i = 0; i < PASSES; i++) {
		m->pass[i].pass.stop = stop;
		m->pass[i].ended = clock_mono();
	}
	m->pass[TALLY].ended -= TALLY_INTERVAL;
	return m;
}

void
maintenance_failed(struct store *store, const char *pass, enum rc rc)
{
	char why[512];

	log_event(LOG_ERROR, "pass-failed", NULL, LOG_S("pass", pass),
	    LOG_S("why", store_why(store, rc, why, sizeof(why))));
}

/* Logs a failure when it begins, and when it becomes another one. */
static void
run_slice(struct maintenance *m, int i, const struct conf *conf)
{
	const int64_t began = clock_mono();
	struct daemon_pass *p = &m->pass[i];
	enum rc rc;

	if (!p->pass.more) {
		p->pass.n = 0;
		p->took = 0;
	}
	p->pass.more = false;
	p->pass.until = began + SLICE;
	p->pass.conf = conf;
	rc = passes[i].slice(m->store, &p->pass);
	if (rc != RC_OK && rc != p->failure)
		maintenance_failed(m->store, passes[i].name, rc);
	p->failure = rc;
	p->took += clock_mono() - began;
	if (!p->pass.more)
		p->ended = clock_mono();
}

void
maintenance_free(struct maintenance *m)
{
	free(m);
}

/* When the next slice is due (mono). */
static int64_t
slice_at(const struct maintenance *m, int i, const struct conf *conf)
{
	const struct daemon_pass *p = &m->pass[i];
	const int64_t rest = p->took * TALLY_REST;

	if (p->pass.more)
		return 0;
	if (i == TALLY)
		return p->ended +
		    (rest > TALLY_INTERVAL ? rest : TALLY_INTERVAL);
	return p->ended +
	    (i == SWEEP ? conf->sweep_interval : conf->reap_interval);
}

static struct work_terms
maintenance_terms(const struct conf *conf)
{
	(void)conf;
	return (struct work_terms){ 1, true };
}

static enum rc
maintenance_next(
    void *self, const struct conf *conf, void **item, int64_t *wake)
{
	for (int i = 0; i < PASSES; i++)
		if (slice_at(self, i, conf) < *wake)
			*wake = slice_at(self, i, conf);
	*item = self;
	return clock_mono() >= *wake ? RC_OK : RC_NOTFOUND;
}

static void
maintenance_run(void *self, const struct conf *conf, void *item)
{
	struct maintenance *m = item;
	const int64_t now = clock_mono();

	(void)self;
	for (int i = 0; i < PASSES; i++)
		if (now >= slice_at(m, i, conf) && !atomic_load(m->stop))
			run_slice(m, i, conf);
}

const struct work_kind maintenance_kind = {
	.name = "maintenance",
	.terms = maintenance_terms,
	.next = maintenance_next,
	.run = maintenance_run,
};
