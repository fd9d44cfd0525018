/*
 * Runs an attempt from its lease to a durable outcome.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "attention.h"
#include "clock.h"
#include "fault.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "attempt.h"

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

/* --- what it has printed ------------------------------------------------ */

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

/* How the response was mended. */
static void
mended_text(unsigned bits, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < CGIHEAD_MENDINGS && n < size; i++)
		if ((bits & 1U << i) != 0)
			n += (size_t)snprintf(out + n, size - n, "%s%s",
			    n > 0 ? ", " : "",
			    cgihead_mending_text((enum cgihead_mending)i));
}

static void
log_run(const struct attempt *at)
{
	const struct outcome_facts *facts = &at->facts;
	char mended[512];
	const struct log_value values[] = {
		LOG_I("attempt", at->lease.attempt),
		LOG_S("state", recorded_state(at)),
		LOG_S("why", at->outcome.why),
		LOG_S("head", cgihead_verdict_text(facts->head)),
		LOG_I("handler_status", facts->status),
		LOG_I("exit", facts->run.exit_status),
		LOG_I("signal", facts->run.signal),
		LOG_I("ms", facts->run.milliseconds),
		LOG_S("mended", mended),
	};
	const bool is_mended =
	    facts->head == CGIHEAD_OK && at->head.mended != 0;

	if (is_mended)
		mended_text(at->head.mended, mended, sizeof(mended));
	/* A handler that stored its answer: respond.c logs that one's. */
	if (at->rq->log != NULL && !at->answered)
		at->rq->log->status = answer_status(at);
	log_values(at->outcome.state == RECORD_UNKNOWN ? LOG_WARN : LOG_INFO,
	    "run", at->rq->log, values, is_mended ? 9 : 8);
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
