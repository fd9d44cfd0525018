/*
 * The program: started, reached, its output taken, its outcome judged and made
 * durable.  The output of a guarded request is captured; that of another one is
 * streamed.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "handler.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "prefer.h"
#include "respond.h"
#include "run.h"

#include "engine_impl.h"

/* --- the start ------------------------------------------------------------ */

enum place
engine_place_of_start(const struct job *job)
{
	const struct conf_program *program = &job->rule->handler;

	if (!handler_is_app(program))
		return program->user != NULL || program->group != NULL
		    ? PLACE_SPAWN_AS
		    : PLACE_SPAWN;
	if (handler_waits(program))
		return PLACE_START_NAMED;
	return attempt_has_files(&job->attempt) ? PLACE_START_FILES
						: PLACE_START;
}

enum place
engine_start(struct job *job)
{
	const struct handler_call call = { NULL, -1,
		store_secret(job->engine->store), NULL };
	struct attempt *at = &job->attempt;

	if (job->guarded) {
		attempt_begin(at);
		return attempt_start(at, &job->rule->handler) ? PLACE_BEGIN_RUN
							      : PLACE_JUDGE;
	}
	at->run =
	    handler_start(&job->rule->handler, job->rq, &call, &at->facts.run);
	if (at->run != NULL)
		return PLACE_BEGIN_RUN;
	respond_not_started(&job->answer, &at->facts.run, job->rq);
	return PLACE_ANSWER;
}

static void
run_moved(void *arg)
{
	struct job *job = arg;

	if (!job->waits_for_run)
		return;
	job->waits_for_run = false;
	engine_go(job, job->place);
}

static enum place
wait_for_run(struct job *job, enum place then)
{
	job->waits_for_run = true;
	job->place = then;
	return PLACE_WAIT;
}

enum place
engine_begin_run(struct job *job)
{
	run_begin_in(job->attempt.run, job->engine->runs, run_moved, job);
	return PLACE_REACH;
}

enum place
engine_reach(struct job *job)
{
	struct run *run = job->attempt.run;

	if (run_is_reached(run))
		return !job->guarded                   ? PLACE_SEND
		    : attempt_has_files(&job->attempt) ? PLACE_NAME_FILES
						       : PLACE_NAME;
	if (!run_is_over(run))
		return wait_for_run(job, PLACE_REACH);
	attempt_ran(&job->attempt);
	if (job->guarded)
		return PLACE_JUDGE;
	respond_not_started(&job->answer, &job->attempt.facts.run, job->rq);
	return PLACE_ANSWER;
}

enum place
engine_name(struct job *job)
{
	return attempt_name(&job->attempt) ? PLACE_SEND : PLACE_CANCEL;
}

enum place
engine_cancel(struct job *job)
{
	run_cancel(job->attempt.run);
	job->attempt.run = NULL;
	return PLACE_JUDGE;
}

enum place
engine_send(struct job *job)
{
	run_send(job->attempt.run);
	return job->guarded ? PLACE_OUTPUT : PLACE_STREAM;
}

/* --- output that is captured ---------------------------------------------- */

enum place
engine_output(struct job *job)
{
	struct attempt *at = &job->attempt;
	struct engine *engine = job->engine;

	attempt_check_output(at);
	for (int i = 0; i < ENGINE_PARTS; i++) {
		job->part_len = run_take(at->run, engine->part, ENGINE_PART);
		if (job->part_len == 0)
			return run_is_over(at->run)
			    ? PLACE_RAN
			    : wait_for_run(job, PLACE_OUTPUT);
		/* A file may have to wait for its disk. */
		if (spool_length(at->output) + job->part_len >
			LIMIT_SPOOL_MEMORY &&
		    (job->part != NULL ||
			(job->part = malloc(ENGINE_PART)) != NULL)) {
			memcpy(job->part, engine->part, job->part_len);
			return PLACE_SPOOL;
		}
		attempt_output(at, engine->part, job->part_len);
		attempt_check_output(at);
	}
	job->place = PLACE_OUTPUT;
	engine_wake(job);
	return PLACE_WAIT;
}

enum place
engine_spool(struct job *job)
{
	attempt_output(&job->attempt, job->part, job->part_len);
	return PLACE_OUTPUT;
}

/* --- output that is streamed ---------------------------------------------- */

/* Sends a part of the output, in which the head may end. */
static enum rc
send_part(struct job *job, const char *part, size_t len)
{
	struct cgistream *head = &job->head;
	char out[2 * ENGINE_PART];

	if (cgistream_is_body(head))
		return exchange_write(job->exchange, part, len);
	len = cgistream_pass(head, part, len, out);
	if (head->state == CGISTREAM_REFUSED)
		return RC_CLOSED;
	return len > 0 ? exchange_write(job->exchange, out, len) : RC_OK;
}

static void
peer_has_room(void *arg)
{
	struct job *job = arg;

	engine_go(job, job->place);
}

/* Logs the end of a program whose output was streamed. */
static void
log_end(const struct request *rq, const struct run_facts *facts)
{
	log_event(LOG_INFO, "unguarded", rq->log,
	    LOG_S("end", run_end_name(facts->end)),
	    LOG_I("exit", facts->exit_status), LOG_I("signal", facts->signal),
	    LOG_I("ms", facts->milliseconds));
}

static enum place
stream_over(struct job *job)
{
	struct run_facts *facts = &job->attempt.facts.run;
	const struct request *rq = job->rq;

	attempt_ran(&job->attempt);
	engine_free_slot(job);
	if (job->streamed && job->head.state != CGISTREAM_REFUSED) {
		log_end(rq, facts);
		exchange_end(job->exchange, facts->exit_status,
		    facts->end != RUN_EXITED);
		return PLACE_END;
	}
	if (facts->end == RUN_NOT_STARTED)
		respond_not_started(&job->answer, facts, rq);
	else
		respond_no_answer(&job->answer, facts, rq);
	log_end(rq, facts);
	return PLACE_ANSWER;
}

/* The handler runs to its end even if the client has gone. */
enum place
engine_stream(struct job *job)
{
	char *const output = job->engine->part;
	struct run *run = job->attempt.run;
	enum rc rc;
	size_t n;

	job->place = PLACE_STREAM;
	for (int i = 0; i < ENGINE_PARTS; i++) {
		if ((n = run_take(run, output, ENGINE_PART)) == 0)
			return run_is_over(run)
			    ? stream_over(job)
			    : wait_for_run(job, PLACE_STREAM);
		if (!job->streamed)
			job->rq->log->status = cgistream_status(output, n);
		job->streamed = true;
		if (job->gone)
			continue;
		rc = send_part(job, output, n);
		if (rc == RC_PENDING) {
			exchange_on_room(job->exchange, peer_has_room, job);
			return PLACE_WAIT;
		}
		if (rc == RC_OK)
			continue;
		job->gone = true;
		run_discard(run);
	}
	engine_wake(job);
	return PLACE_WAIT;
}

/* --- the end of the program ----------------------------------------------- */

enum place
engine_ran(struct job *job)
{
	struct attempt *at = &job->attempt;

	attempt_ran(at);
	metrics_observe_route(job->rule->metrics, METRICS_HANDLER_SECONDS,
	    at->facts.run.milliseconds);
	FAULT(HANDLER_EXITED);
	return outcome_is_lost(&at->facts.run) &&
		job->rule->on_crash == CONF_CRASH_RESUME
	    ? PLACE_LEFT
	    : PLACE_JUDGE;
}

enum place
engine_left(struct job *job)
{
	return attempt_left(&job->attempt) > 0 ? PLACE_PAUSE : PLACE_JUDGE;
}

enum place
engine_pause(struct job *job)
{
	struct loop *loop = job->engine->loop;

	job->place = PLACE_LEFT;
	job->timer.due = engine_timer_due;
	loop_set(loop, &job->timer, loop_now(loop) + job->attempt.pause);
	return PLACE_WAIT;
}

enum place
engine_judge(struct job *job)
{
	struct attempt *at = &job->attempt;

	engine_free_slot(job);
	attempt_judge(at);
	attempt_settle(at);
	return engine_called(job,
	    store_call_finish(job->engine->store, &job->call, &at->lease,
		job->rule->retention, &at->record, &at->done),
	    PLACE_FINISHED);
}

enum place
engine_finished(struct job *job)
{
	job->attempt.recorded = job->call.rc;
	return attempt_has_files(&job->attempt) ? PLACE_SETTLED_FILES
						: PLACE_SETTLED;
}

enum place
engine_settled(struct job *job)
{
	attempt_settled(&job->attempt);
	return PLACE_RESULT;
}

enum place
engine_result(struct job *job)
{
	struct attempt *at = &job->attempt;

	engine_wake_same(job);
	if (at->answered ||
	    (engine_wants_page(job) &&
		(at->recorded != RC_OK || at->outcome.problem != PROBLEM_NONE)))
		return PLACE_TELL_FILES;
	return PLACE_TELL;
}

enum place
engine_tell(struct job *job)
{
	respond_attempt(&job->attempt, &job->answer);
	return PLACE_ANSWER;
}
