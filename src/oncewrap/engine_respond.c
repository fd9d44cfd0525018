/*
 * The response to a guarded request, by the decision of its reservation.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>

#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "recent.h"
#include "respond.h"
#include "status.h"
#include "store_operator.h"

#include "engine_impl.h"

/* The metric of each decision; a released key that runs again is the
 * exception. */
static const enum metrics_id counted[] = {
	[DECIDE_RUN] = METRICS_RESERVE_CREATED,
	[DECIDE_REPLAY] = METRICS_RESERVE_REPLAY,
	[DECIDE_NOT_KEPT] = METRICS_RESERVE_REPLAY,
	[DECIDE_GONE] = METRICS_RESERVE_REPLAY,
	[DECIDE_BUSY] = METRICS_RESERVE_IN_PROGRESS,
	[DECIDE_OF_ANOTHER] = METRICS_RESERVE_KEY_MISUSE,
	[DECIDE_MISMATCH] = METRICS_RESERVE_KEY_MISUSE,
	[DECIDE_UNKNOWN] = METRICS_RESERVE_UNKNOWN,
};

/* Whether the requests of all callers, and not of this one, leave no room. */
static bool
is_kept_full(const struct job *job)
{
	const struct store_reservation *rv = &job->reservation;
	struct metrics_gauges g;

	return store_gauges(job->engine->store, &g) != RC_OK ||
	    (uint64_t)g.value[METRICS_KEPT_BYTES] + rv->environment_len +
		rv->body_len >
	    rv->max_kept;
}

/* Notes a limit that was reached. */
static void
note_limit(struct job *job, enum decision decision)
{
	if (decision == DECIDE_NO_ROOM)
		engine_note_refused(
		    job, PROBLEM_OVERLOADED, "max_kept", is_kept_full(job));
	else if (decision == DECIDE_FULL)
		engine_note_refused(job, PROBLEM_OVERLOADED, "max_store", true);
	else if (decision != DECIDE_OLD)
		engine_note_refused(job, PROBLEM_TOO_MANY_KEYS,
		    decision == DECIDE_OPEN ? "max_open_keys"
			: job->too_fast     ? "key_rate"
					    : "max_active_keys",
		    false);
}

/* A new key was taken. */
static void
note_taken(struct job *job)
{
	char caller[CALLER_NAME_LEN + 1];

	recent_count(RECENT_FIRST);
	if (!recent_refused_any())
		return;
	scope_caller_name(
	    job->scope.data, request_param(job->rq, "REMOTE_ADDR"), caller);
	recent_refused_over(job->rule->path, caller);
}

/* Refuses a request that a limit keeps from running. */
static bool
refuse_limit(struct job *job, enum decision decision)
{
	note_limit(job, decision);
	if (decision == DECIDE_OLD)
		return engine_refusef(job, PROBLEM_REQUEST_TOO_OLD,
		    "The field %s %s.", job->rule->request_timestamp,
		    route_age_text(job->age));
	if (decision == DECIDE_NO_ROOM)
		return engine_refusef(job, PROBLEM_OVERLOADED,
		    "Too many requests are kept; this one was not begun: "
		    "max_kept is %" PRIu64 " bytes, of which one caller may "
		    "fill half.",
		    job->conf->max_kept);
	if (decision == DECIDE_FULL)
		return engine_refusef(job, PROBLEM_OVERLOADED,
		    "The key store is full; this request was not begun: "
		    "max_store is %" PRIu64 " bytes.",
		    job->conf->max_store);
	if (decision == DECIDE_OPEN)
		return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
		    "Too many requests of this caller have an outcome that "
		    "is not known: max_open_keys is %u.",
		    job->rule->max_open_keys);
	if (job->too_fast)
		return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
		    "This caller uses new keys too fast: key_rate is %u a "
		    "second.",
		    job->rule->key_rate);
	return engine_refusef(job, PROBLEM_TOO_MANY_KEYS,
	    "This caller has too many requests in progress: "
	    "max_active_keys is %u.",
	    job->rule->max_active_keys);
}

static void
refuse_queue(struct job *job)
{
	engine_note_refused(job, PROBLEM_OVERLOADED, "async_queue", false);
	(void)engine_refusef(job, PROBLEM_OVERLOADED,
	    "Too many accepted requests wait to be run: async_queue is %u, and "
	    "one caller may fill half of it.",
	    job->conf->async_queue);
}

/* Counts the decision. */
static void
count_decision(struct job *job)
{
	const enum decision decision = job->decision;

	assert((size_t)decision < sizeof(counted) / sizeof(counted[0]));
	if (decision == DECIDE_RUN && !job->again)
		note_taken(job);
	else if (decision == DECIDE_REPLAY)
		recent_count(RECENT_REPLAY);
	metrics_count_route(job->rule->metrics,
	    decision == DECIDE_RUN && job->again ? METRICS_RESERVE_FAILED_RETRY
						 : counted[decision]);
}

static enum place
respond_busy(struct job *job)
{
	const struct record *record = &job->record;

	if (!record->accepted &&
	    (job->rule->concurrent != CONF_CONCURRENT_ACCEPT ||
		record->resource[0] == '\0')) {
		(void)engine_refuse(job, PROBLEM_KEY_IN_PROGRESS, NULL);
		return PLACE_ANSWER;
	}
	respond_log(job->rq, "in-progress", 202);
	return PLACE_SHOW;
}

static enum place
respond_run(struct job *job)
{
	if (!job->later) {
		FAULT(RESERVED);
		return engine_place_of_start(job);
	}
	FAULT(ACCEPTED);
	respond_log(job->rq, "accepted", 202);
	return PLACE_SHOW;
}

/* The response to a guarded request, by the decision of its reservation. */
enum place
engine_respond(struct job *job)
{
	if (job->ticket.full)
		refuse_queue(job);
	if (job->ticket.full || decide_is_limit(job->decision)) {
		if (!job->ticket.full)
			(void)refuse_limit(job, job->decision);
		return PLACE_ANSWER;
	}
	count_decision(job);
	switch (job->decision) {
	case DECIDE_RUN:
		return respond_run(job);
	case DECIDE_BUSY:
		return respond_busy(job);
	case DECIDE_REPLAY:
		respond_mark_replay(
		    job->engine->store, job->rule, &job->record, &job->answer);
		respond_log(job->rq, "replay", job->answer.response.status);
		break;
	case DECIDE_NOT_KEPT:
		(void)engine_refuse(job, PROBLEM_RESPONSE_NOT_KEPT, NULL);
		job->problem.original_status = job->record.status;
		job->problem.completed_at = job->record.updated_at;
		break;
	case DECIDE_OF_ANOTHER:
		(void)engine_refuse(job, PROBLEM_KEY_OF_ANOTHER, NULL);
		break;
	case DECIDE_MISMATCH:
		(void)engine_refuse_reused(job);
		break;
	case DECIDE_UNKNOWN:
		(void)engine_refuse(job, PROBLEM_OUTCOME_UNKNOWN, NULL);
		break;
	case DECIDE_GONE:
		(void)engine_refuse(job, PROBLEM_KEY_EXPIRED, NULL);
		break;
	case DECIDE_OLD:
	case DECIDE_CROWDED:
	case DECIDE_OPEN:
	case DECIDE_NO_ROOM:
	case DECIDE_FULL:
		assert(!"a limit has refused it");
		break;
	}
	return PLACE_ANSWER;
}

/* The status of an accepted request. */
enum place
engine_show(struct job *job)
{
	status_accepted(job->engine->store, job->conf, job->rq,
	    job->decision == DECIDE_RUN ? job->ticket.resource
					: job->record.resource,
	    &job->answer);
	return PLACE_ANSWER;
}
