/*
 * Runs an attempt from its lease to a durable outcome.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "attention.h"
#include "cgienv.h"
#include "clock.h"
#include "fault.h"
#include "handler.h"
#include "stored_request.h"
#include "limit.h"
#include "log.h"
#include "mended.h"
#include "metrics.h"
#include "attempt.h"

/* Pauses (ms) between two looks for processes that a handler left behind.  The
 * attempt waits for their end until its deadline at most. */
#define ATTEMPT_LOCK_LOOK     5  /* doubled after each */
#define ATTEMPT_LOCK_LOOK_MAX 80 /* reading all processes takes a while */
#define ATTEMPT_LOCK_GRACE    200

void
attempt_init(struct attempt *at)
{
	memset(at, 0, sizeof(*at));
	at->held.fd = at->held.note = -1;
	response_init(&at->response);
	buf_init(&at->environment, LIMIT_ENV);
	buf_init(&at->errors, LIMIT_ERRORS);
}

bool
attempt_alloc(struct attempt *at)
{
	if (at->record == NULL)
		at->record = store_outcome_new(at->store);
	if (at->output == NULL)
		at->output = spool_new();
	return at->record != NULL && at->output != NULL;
}

void
attempt_terms(const struct conf_route *rule, struct store_reservation *rv)
{
	rv->lease = rule->handler.timeout + rule->handler.kill_after;
	rv->retention = rule->retention;
	rv->on_crash = rule->on_crash;
	rv->on_expired = rule->on_expired;
	rv->expired_retention = rule->expired_retention;
	rv->resource = rule->concurrent == CONF_CONCURRENT_ACCEPT;
	rv->max_active = rule->max_active_keys;
	rv->max_open = rule->max_open_keys;
	if (rule->reconcile.argv.n > 0)
		rv->reconcile_delay = rule->reconcile_after;
}

enum rc
attempt_prepare(struct attempt *at, struct store_reservation *rv)
{
	enum rc rc;

	if (!attempt_alloc(at))
		return RC_NOMEM;
	if (at->held.fd == -1 &&
	    (rv->on_crash == CONF_CRASH_RESUME || rv->reconcile_delay > 0)) {
		if ((rc = store_attempt_lock(at->store, &at->held)) != RC_OK)
			return rc;
		rv->attempt = &at->held;
	}
	return RC_OK;
}

enum rc
attempt_keep_request(struct attempt *at, struct store_reservation *rv)
{
	enum rc rc;

	if (at->environment.len == 0 &&
	    ((rc = cgienv_keep(at->rq, &at->environment)) != RC_OK ||
		(rc = buf_addf(&at->environment, KEPT_INSTANCE "=%s",
		     at->rq->instance)) != RC_OK ||
		(rc = buf_addc(&at->environment, '\0')) != RC_OK))
		return rc;
	rv->environment = at->environment.data;
	rv->environment_len = at->environment.len;
	rv->body = at->rq->body;
	rv->body_len = at->rq->body_len;
	return RC_OK;
}

void
attempt_free(struct attempt *at)
{
	response_free(&at->response);
	store_outcome_free(at->record);
	spool_free(at->output);
	buf_free(&at->environment);
	buf_free(&at->errors);
	store_attempt_release(&at->held);
	if (at->held.lock != 0 && !at->lock_named)
		store_attempt_forget(at->store, &at->held);
}

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
		at->sharer.pid = run_pid(at->run);
		at->sharer.log = at->rq->log;
		store_share_begin(at->store, &at->sharer);
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
		store_share_end(at->store, &at->sharer);
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

/* Cuts a body that is longer than its Content-Length: a client would read no
 * more of it. */
static void
measure_body(struct attempt *at)
{
	struct response *response = &at->response;
	const int64_t length = at->head.content_length;

	if (length == -1)
		return;
	at->facts.body_broken = response->body_len < (uint64_t)length;
	if (response->body_len > (uint64_t)length) {
		response->body_len = (size_t)length;
		at->head.mended |= 1U << CGIHEAD_MENDED_BODY;
	}
}

/* The name of the program for the log. */
static const char *
program_of(const struct attempt *at)
{
	const char *script = request_param(at->rq, "SCRIPT_FILENAME");

	if (at->rule->handler.argv.n > 0)
		return at->rule->handler.argv.item[0];
	return script != NULL ? script : at->rq->path;
}

void
attempt_read(struct attempt *at)
{
	struct outcome_facts *facts = &at->facts;
	struct response *response = &at->response;
	const char *bytes = NULL;
	size_t len = 0;
	enum rc rc = RC_OK;

	facts->head = CGIHEAD_EMPTY;
	if (facts->run.end != RUN_EXITED)
		return;
	bytes = spool_bytes(at->output, &rc);
	len = (size_t)spool_length(at->output);
	if (rc != RC_OK) {
		facts->run.end = RUN_CAPTURE_FAILED;
		return;
	}
	facts->head = cgihead_parse(bytes, len, true, response, &at->head);
	if (facts->head != CGIHEAD_OK)
		return;
	response_remove_own(response);
	len -= at->head.body_start;
	response->body = len > 0 ? bytes + at->head.body_start : NULL;
	response->body_len = len;
	if (strcmp(at->rq->method, "HEAD") == 0)
		response->body_len = 0;
	else
		measure_body(at);
	facts->status = response->status;
	facts->says = at->head.outcome;
	facts->doubt = at->head.doubt;
}

void
attempt_judge(struct attempt *at)
{
	attempt_read(at);
	if (at->facts.head == CGIHEAD_OK)
		mended_log(program_of(at), at->rq, at->head.mended);
	at->outcome = outcome_judge(&at->facts, at->rule);
}

void
attempt_keep(struct attempt *at)
{
	struct store_outcome *st = at->record;
	const struct response *from = &at->response;
	const struct conf_list *drop = &at->rule->replay_drop;

	st->response.kind = from->kind;
	st->response.status = from->status;
	if (at->head.not_replayable ||
	    from->body_len > at->rule->max_response ||
	    buf_add(&st->response.fields, from->fields.data,
		from->fields.len) != RC_OK)
		return;
	st->keep = true;
	memcpy(st->response.reason, from->reason, sizeof(from->reason));
	response_remove(
	    &st->response, (const char *const *)drop->item, drop->n);
	st->response.body = from->body;
	st->response.body_len = from->body_len;
}

/* Puts what the program printed into the record, for people, if its client got
 * a problem instead; and the end of what it wrote to stderr. */
static void
keep_refused(struct attempt *at)
{
	const struct run_facts *run = &at->facts.run;
	struct store_refused *r = &at->record->refused;
	enum rc rc = RC_OK;

	at->record->errors = at->errors;
	buf_init(&at->errors, LIMIT_ERRORS);
	r->exit_status = run->end == RUN_EXITED ? run->exit_status : -1;
	r->signal = run->signal;
	if (at->outcome.problem == PROBLEM_NONE || run->end == RUN_NOT_STARTED)
		return;
	r->is = true;
	r->bytes = spool_bytes(at->output, &rc);
	if (rc == RC_OK)
		r->length = (uint64_t)spool_length(at->output);
}

/* The status of the answer to the request that made the attempt. */
static int
answer_status(const struct attempt *at)
{
	const struct problem problem = { .status = at->outcome.status,
		.code = at->recorded == RC_OK ? at->outcome.problem
					      : PROBLEM_OUTCOME_NOT_RECORDED };

	return problem.code == PROBLEM_NONE
	    ? at->facts.status
	    : problem_status(&problem, at->conf->dialect);
}

/* What became of the key, as the store has it. */
static const char *
recorded_state(const struct attempt *at)
{
	return at->recorded == RC_LOST ? "lost"
	    : at->recorded == RC_OK    ? record_state_name(at->outcome.state)
				       : record_state_name(RECORD_IN_PROGRESS);
}

static void
log_run(const struct attempt *at)
{
	const struct outcome_facts *facts = &at->facts;

	/* A handler that stored its answer: respond.c logs that one's. */
	if (at->rq->log != NULL && !at->answered)
		at->rq->log->status = answer_status(at);
	log_event(at->outcome.state == RECORD_UNKNOWN ? LOG_WARN : LOG_INFO,
	    "run", at->rq->log, LOG_I("attempt", at->lease.attempt),
	    LOG_S("state", recorded_state(at)), LOG_S("why", at->outcome.why),
	    LOG_S("head", cgihead_verdict_text(facts->head)),
	    LOG_I("handler_status", facts->status),
	    LOG_I("exit", facts->run.exit_status),
	    LOG_I("signal", facts->run.signal),
	    LOG_I("ms", facts->run.milliseconds));
}

/*
 * Gives the output to the record, because the store may go on trying after
 * the attempt has given up waiting.
 */
void
attempt_settle(struct attempt *at)
{
	struct store_outcome *st = at->record;

	FAULT(JUDGED);
	st->state = at->outcome.state;
	if (at->rq->log != NULL)
		log_request_copy(&st->log, at->rq->log);
	if (*at->outcome.why != '\0' && at->outcome.problem == PROBLEM_NONE)
		snprintf(st->last_error, sizeof(st->last_error),
		    "%s (status %d)", at->outcome.why, at->facts.status);
	else
		snprintf(st->last_error, sizeof(st->last_error), "%s",
		    at->outcome.why);
	st->nothing_happened = at->outcome.nothing_happened;
	if (st->state == RECORD_COMPLETED)
		attempt_keep(at);
	keep_refused(at);
	st->body = at->output;
	at->output = NULL;
}

void
attempt_settled(struct attempt *at)
{
	at->answered = at->done.answered;
	if (at->record != NULL) {
		at->output = at->record->body;
		at->record->body = NULL;
	}
	if (at->answered) {
		at->outcome = (struct outcome){ .state = RECORD_COMPLETED,
			.why = "answered" };
	}
	log_run(at);
	/* What is not recorded yet becomes unknown, or the process dies and it
	 * does so then. */
	if (at->recorded == RC_OK || at->recorded == RC_PENDING)
		attention_key(at->outcome.state, at->rq->log, at->outcome.why);
	if (at->recorded == RC_OK) {
		at->lock_named = at->held.lock != 0 &&
		    at->outcome.state == RECORD_UNKNOWN &&
		    at->rule->reconcile.argv.n > 0;
		/* A process that stays has answered, and goes on to the next
		 * request. */
		if (at->lock_named && at->facts.run.end == RUN_EXITED)
			store_attempt_by_none(at->store, &at->held);
		FAULT(SETTLED);
		return;
	}
	FAULT(SETTLE_LEFT);
	log_event(LOG_ERROR, "outcome-not-recorded", at->rq->log,
	    LOG_S("why", rc_text(at->recorded)));
}
