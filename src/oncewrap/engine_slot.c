/*
 * Slots: how many programs run for requests at once.  A request takes its slot
 * before its reservation, so one that waits has not run, and is free to be
 * tried again, whatever happens meanwhile.
 *
 * CGI programs, and the requests at addresses, share `workers`.  The processes
 * that stay of a route have as many of their own, or `processes` if that is
 * more: some requests have to be reserved while others run, so that one commit
 * serves many.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handler.h"
#include "log.h"
#include "metrics.h"
#include "respond.h"

#include "engine_impl.h"

/* The processes of that route.  NULL: no memory. */
static struct engine_slots *
find_slots(struct engine *engine, const char *route)
{
	struct engine_slots *s;

	LIST_FOREACH(s, &engine->processes, link)
	if (!s->retired && strcmp(s->route, route) == 0)
		return s;
	if ((s = calloc(1, sizeof(*s))) == NULL ||
	    (s->route = strdup(route)) == NULL) {
		free(s);
		return NULL;
	}
	TAILQ_INIT(&s->waiting);
	LIST_INSERT_HEAD(&engine->processes, s, link);
	return s;
}

static void
slot_give(struct job *job, struct engine_slots *s)
{
	job->slots = s;
	s->running++;
	metrics_add(METRICS_WORKERS_BUSY, 1);
}

/* No process has become free within the program's timeout. */
static enum place
refuse_late(struct job *job)
{
	const struct run_facts facts = { .end = RUN_NOT_STARTED,
		.error = ETIMEDOUT };

	log_event(LOG_ERROR, "handler-not-started", job->rq->log,
	    LOG_S("program", job->rule->handler.argv.item[0]),
	    LOG_S("why", "no process became free in time"));
	if (job->guarded) {
		(void)engine_refuse(job, PROBLEM_HANDLER_NOT_STARTED,
		    "No process of the program became free in time; nothing "
		    "ran.");
		job->problem.acted = job->acted_before;
	} else
		respond_not_started(&job->answer, &facts, job->rq);
	return PLACE_ANSWER;
}

/* Waits for one of the processes. */
static enum place
wait_for_process(struct job *job, struct engine_slots *s, enum place later)
{
	struct loop *loop = job->engine->loop;

	if (job->slot_until == 0)
		job->slot_until = loop_now(loop) + job->rule->handler.timeout;
	if (loop_now(loop) >= job->slot_until)
		return refuse_late(job);
	job->timer.due = engine_timer_due;
	loop_set(loop, &job->timer, job->slot_until);
	return engine_wait_in(job, &s->waiting, later);
}

enum place
engine_take_slot(struct job *job, enum place then, enum place later)
{
	const struct conf_program *program = &job->rule->handler;
	struct engine *engine = job->engine;
	struct engine_slots *s = &engine->programs;
	unsigned most = engine->workers;

	if (job->slots != NULL || job->later)
		return then;
	if (handler_is_app(program) && conf_program_address(program) == NULL) {
		s = find_slots(engine, program->route);
		if (most < program->processes)
			most = program->processes;
	}
	/* Without memory it asks the processes, and perhaps waits for one. */
	if (s == NULL)
		return then;
	if (s->running < most) {
		slot_give(job, s);
		return then;
	}
	return s == &engine->programs ? engine_wait_in(job, &s->waiting, later)
				      : wait_for_process(job, s, later);
}

static void
free_slots(struct engine_slots *s)
{
	LIST_REMOVE(s, link);
	free(s->route);
	free(s);
}

void
engine_free_slot(struct job *job)
{
	struct engine_slots *s = job->slots;
	struct job *next;

	if (s == NULL)
		return;
	job->slots = NULL;
	s->running--;
	metrics_add(METRICS_WORKERS_BUSY, -1);
	if ((next = TAILQ_FIRST(&s->waiting)) != NULL) {
		slot_give(next, s);
		/* The reservation reads the record again; but one that has
		 * become too old gets an answer that is there. */
		if (next->guarded && next->rule->max_request_age == 0)
			next->place = PLACE_DECIDE;
		engine_wake(next);
	} else if (s->retired && s->running == 0)
		free_slots(s);
}

static void
wake_all(struct engine_slots *s)
{
	struct job *job;

	while ((job = TAILQ_FIRST(&s->waiting)) != NULL)
		engine_wake(job);
}

void
engine_drain_slots(struct engine *engine)
{
	struct engine_slots *s;

	wake_all(&engine->programs);
	LIST_FOREACH(s, &engine->processes, link)
	wake_all(s);
}

/* The processes of before may be replaced: those that wait ask for the new
 * ones, and those that run go on. */
void
engine_reload(struct engine *engine)
{
	struct engine_slots *s, *next;

	for (s = LIST_FIRST(&engine->processes); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		s->retired = true;
		wake_all(s);
		if (s->running == 0)
			free_slots(s);
	}
}

void
engine_free_slots(struct engine *engine)
{
	struct engine_slots *s, *next;

	for (s = LIST_FIRST(&engine->processes); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		free_slots(s);
	}
}
