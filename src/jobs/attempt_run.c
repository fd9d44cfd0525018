/*
 * Runs the program of an attempt, in a loop or in a thread that may wait.  Has
 * the request that is stored for one that runs without a client.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cgienv.h"
#include "clock.h"
#include "fault.h"
#include "handler.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "route.h"
#include "run_wait.h"
#include "scope.h"
#include "attempt.h"

/* Pauses (ms) between two looks for processes that a handler left behind.  The
 * attempt waits for their end until its deadline at most. */
#define ATTEMPT_LOCK_LOOK     5  /* doubled after each */
#define ATTEMPT_LOCK_LOOK_MAX 80 /* reading all processes takes a while */
#define ATTEMPT_LOCK_GRACE    200

int
attempt_left(struct attempt *at)
{
	const int64_t now = clock_mono();

	/* A process that could not be ended still lives, even if no mark shows
	 * it. */
	if (at->facts.run.left || (at->pause == 0 && at->held.fd == -1))
		return 0;
	store_attempt_release(&at->held);
	if (store_attempt_gone(at->store, &at->held)) {
		at->facts.attempt_lock_gone = true;
		return 0;
	}
	if (!at->left_told)
		log_event(LOG_INFO, "children-left", at->rq->log,
		    LOG_I("attempt", at->lease.attempt),
		    LOG_I("pid", store_attempt_process(at->store, &at->held)));
	at->left_told = true;
	if (run_is_draining() && !at->hurries) {
		at->hurries = true;
		if (at->until > now + ATTEMPT_LOCK_GRACE)
			at->until = now + ATTEMPT_LOCK_GRACE;
	}
	if (now >= at->until)
		return 0;
	at->pause = at->pause == 0              ? ATTEMPT_LOCK_LOOK
	    : at->pause < ATTEMPT_LOCK_LOOK_MAX ? at->pause * 2
						: at->pause;
	return at->pause;
}

bool
attempt_has_files(const struct attempt *at)
{
	return at->held.fd != -1 || at->held.lock != 0;
}

/* Says in the attempt's file which processes act for it. */
static bool
name_processes(struct attempt *at)
{
	const struct run *run = at->run;
	bool named = true;

	if (!run_stays(run)) {
		store_attempt_started(&at->held, run_pid(run));
		return true;
	}
	/* The processes of an application that oncewrap does not start are
	 * not known. */
	if (at->held.lock != 0 && run_pid(run) != -1)
		named = run_lock(run) != 0 &&
		    store_attempt_by(at->store, &at->held, run_lock(run)) ==
			RC_OK;
	FAULT(ATTEMPT_GIVEN);
	return named;
}

void
attempt_begin(struct attempt *at)
{
	const struct conf_program *program = &at->rule->handler;

	assert(at->lease.token[0] != '\0');
	at->lock_named = at->held.lock != 0;
	FAULT(HANDLER_START);
	/* After a timeout, processes need a moment to die of SIGKILL. */
	at->until = clock_mono() + program->timeout + program->kill_after +
	    ATTEMPT_LOCK_GRACE;
}

bool
attempt_start(struct attempt *at, const struct conf_program *program)
{
	const struct cgienv_once once = { .key = at->key,
		.scope = at->scope,
		.path = at->rq->path,
		.attempt = at->lease.attempt,
		.recovery_point = at->lease.recovery_point,
		.downstream_key = at->lease.downstream,
		.token = at->lease.token,
		.id = at->lease.id,
		.database = at->rule->share_database ? store_database(at->store)
						     : NULL };
	const struct handler_call call = { &once, at->held.fd,
		store_secret(at->store), &at->errors };

	at->facts.run.end = RUN_NOT_STARTED;
	if (store_attempt_begin(&at->held, once.token, once.id) == RC_OK)
		at->run = handler_start(program, at->rq, &call, &at->facts.run);
	return at->run != NULL;
}

bool
attempt_name(struct attempt *at)
{
	if (!name_processes(at)) {
		at->facts.run.end = RUN_NOT_STARTED;
		return false;
	}
	if (at->rule->share_database) {
		store_share_begin(at->store);
		at->shares = true;
	}
	return true;
}

void
attempt_output(struct attempt *at, const void *bytes, size_t n)
{
	FAULT(HANDLER_OUTPUT);
	if (at->captured == RC_OK && !run_wrote_too_much(at->run))
		at->captured = spool_write(at->output, bytes, n);
}

void
attempt_check_output(struct attempt *at)
{
	if (at->captured != RC_OK)
		run_fail_capture(at->run);
}

void
attempt_unshare(struct attempt *at)
{
	if (at->shares)
		store_share_end(at->store);
	at->shares = false;
}

void
attempt_ran(struct attempt *at)
{
	struct run_facts *facts = &at->facts.run;

	run_finish(at->run, facts);
	at->run = NULL;
	if (at->captured != RC_OK)
		facts->end = RUN_CAPTURE_FAILED;
	attempt_unshare(at);
}

/* --- threads that may wait: those of the scheduler ----------------------- */

bool
attempt_capture(struct attempt *at, const struct conf_program *program)
{
	struct run_facts *facts = &at->facts.run;

	if (!attempt_start(at, program) ||
	    (at->run = run_wait_begin(at->run, facts)) == NULL)
		return false;
	if (attempt_name(at))
		run_wait_capture(at->run, at->output, facts);
	else
		run_wait_cancel(at->run);
	at->run = NULL;
	attempt_unshare(at);
	return facts->end != RUN_NOT_STARTED;
}

void
attempt_run(struct attempt *at)
{
	struct timespec pause = { 0, 0 };
	int ms;

	attempt_begin(at);
	if (!attempt_capture(at, &at->rule->handler))
		return;
	metrics_observe_route(at->rule->metrics, METRICS_HANDLER_SECONDS,
	    at->facts.run.milliseconds);
	FAULT(HANDLER_EXITED);
	if (!outcome_is_lost(&at->facts.run) ||
	    at->rule->on_crash != CONF_CRASH_RESUME)
		return;
	while ((ms = attempt_left(at)) > 0) {
		pause.tv_nsec = ms * 1000000L;
		nanosleep(&pause, NULL);
	}
}

void
attempt_complete(struct attempt *at)
{
	attempt_settle(at);
	at->recorded = store_finish(
	    at->store, &at->lease, at->rule->retention, &at->record, &at->done);
	attempt_settled(at);
}

/* --- stored requests ------------------------------------------------------ */

enum rc
attempt_keep_request(struct attempt *at, struct store_reservation *rv)
{
	enum rc rc;

	if (at->environment.len == 0 &&
	    (rc = cgienv_keep(at->rq, &at->environment)) != RC_OK)
		return rc;
	rv->environment = at->environment.data;
	rv->environment_len = at->environment.len;
	rv->body = at->rq->body;
	rv->body_len = at->rq->body_len;
	return RC_OK;
}

/* Cuts NAME=VALUE strings, in place, into params. */
static enum rc
cut_params(struct attempt_request *stored)
{
	char *p = stored->text.data, *end = p + stored->text.len, *equals;
	size_t max = 0, n = 0;

	for (; p < end; p += strlen(p) + 1)
		max++;
	if ((stored->params = calloc(max + 1, sizeof(*stored->params))) == NULL)
		return RC_NOMEM;
	for (p = stored->text.data; p < end; p = equals + strlen(equals) + 1) {
		if ((equals = strchr(p, '=')) == NULL)
			return RC_CORRUPT;
		*equals++ = '\0';
		stored->params[n].name = p;
		stored->params[n++].value = equals;
	}
	stored->rq.params = stored->params;
	stored->rq.nparams = n;
	return RC_OK;
}

static const char *
kept_param_or_empty(const struct request *rq, const char *name)
{
	const char *value = request_param(rq, name);

	return value != NULL ? value : "";
}

struct attempt_request *
attempt_request_new(struct store *store, const struct conf *conf)
{
	struct attempt_request *stored = calloc(1, sizeof(*stored));

	if (stored == NULL)
		return NULL;
	attempt_init(&stored->attempt);
	stored->attempt.store = store;
	stored->attempt.conf = conf;
	buf_init(&stored->text, LIMIT_ENV);
	return stored;
}

void
attempt_request_begin(struct attempt_request *stored)
{
	struct attempt *at = &stored->attempt;

	at->rule = route_find(at->conf, stored->key.path);
	at->rq = &stored->rq;
	at->key = stored->key.key;
	at->scope = stored->key.scope;
}

enum rc
attempt_request_load(struct attempt_request *stored)
{
	const struct record *key = &stored->key;
	const struct store_identity identity = { key->scope, key->path,
		key->key };
	struct request *rq = &stored->rq;
	enum rc rc;

	rq->method = rq->query = "";
	rq->path = key->path;
	rq->body_state = BODY_WHOLE;
	rq->body_fd = -1;
	(void)snprintf(
	    rq->instance, sizeof(rq->instance), "urn:uuid:%s", key->instance);
	rq->log = &stored->log;
	stored->log.instance = rq->instance;
	stored->log.path = key->path;
	log_request_key(&stored->log, key->key);
	scope_tag(key->scope, stored->log.scope);
	if ((rc = store_request(stored->attempt.store, &identity, key->id,
		 &stored->text, &stored->body)) != RC_OK ||
	    (rc = cut_params(stored)) != RC_OK)
		return rc;
	rq->method = kept_param_or_empty(rq, "REQUEST_METHOD");
	rq->query = kept_param_or_empty(rq, "QUERY_STRING");
	stored->log.method = request_param(rq, "REQUEST_METHOD");
	stored->log.peer = request_param(rq, "REMOTE_ADDR");
	if (stored->body != NULL) {
		rq->body = spool_bytes(stored->body, &rc);
		rq->body_len = (size_t)spool_length(stored->body);
		rq->body_fd = spool_fd(stored->body);
	}
	return rc;
}

void
attempt_request_free(struct attempt_request *stored)
{
	attempt_free(&stored->attempt);
	log_request_clear(&stored->log);
	buf_free(&stored->text);
	free(stored->params);
	spool_free(stored->body);
	record_free(&stored->key);
	free(stored);
}
