/*
 * What a job waits for: lists, times, and calls of the store.
 */
#include "config.h"

#include <string.h>

#include "metrics.h"

#include "engine_impl.h"

/* FNV-1a. */
static unsigned
bucket_of(const char *key)
{
	uint32_t h = UINT32_C(2166136261);

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * UINT32_C(16777619);
	return h % ENGINE_HASHES;
}

/* Counts it in the gauge of its list: n is 1 or -1. */
static void
count_in_list(const struct job *job, int n)
{
	const struct engine *engine = job->engine;

	if (job->list == &engine->first)
		metrics_add(METRICS_REQUESTS_WAITING, n);
	else if (job->list == &engine->memory)
		metrics_add(METRICS_JSON_WAITING, n);
	else if (job->list != &engine->woken)
		metrics_add(METRICS_PROGRAMS_WAITING, n);
}

static void
leave_list(struct job *job)
{
	if (job->list == NULL)
		return;
	TAILQ_REMOVE(job->list, job, link);
	if (job->list == &job->engine->first)
		LIST_REMOVE(job, same);
	count_in_list(job, -1);
	job->list = NULL;
}

enum place
engine_wait_in(struct job *job, struct job_list *list, enum place then)
{
	leave_list(job);
	TAILQ_INSERT_TAIL(list, job, link);
	if (list == &job->engine->first)
		LIST_INSERT_HEAD(
		    &job->engine->same[bucket_of(job->key)], job, same);
	job->list = list;
	count_in_list(job, 1);
	job->place = then;
	return PLACE_WAIT;
}

/* So many jobs go on in a row, before what came meanwhile has its turn. */
#define TURN 64

static void go_on_with_woken(struct loop_message *m);

static void
send_wake(struct engine *engine)
{
	if (engine->waking)
		return;
	engine->waking = true;
	engine->wake.come = go_on_with_woken;
	loop_send(engine->loop, &engine->wake);
}

/* The jobs that are woken by those that go on now wait for the next call: so no
 * job is in the middle of another one's. */
static void
go_on_with_woken(struct loop_message *m)
{
	struct engine *engine = OWNER(m, struct engine, wake);
	struct job *job, *last = TAILQ_LAST(&engine->woken, job_list);
	bool more = true;

	engine->waking = false;
	for (int i = 0;
	     i < TURN && more && (job = TAILQ_FIRST(&engine->woken)) != NULL;
	     i++) {
		more = job != last;
		leave_list(job);
		engine_go(job, job->place);
	}
	if (!TAILQ_EMPTY(&engine->woken))
		send_wake(engine);
}

void
engine_wake(struct job *job)
{
	struct engine *engine = job->engine;

	loop_clear(engine->loop, &job->timer);
	(void)engine_wait_in(job, &engine->woken, job->place);
	send_wake(engine);
}

void
engine_timer_due(struct loop_timer *t)
{
	engine_wake(OWNER(t, struct job, timer));
}

enum place
engine_called(struct job *job, bool done, enum place then)
{
	if (done)
		return then;
	job->place = then;
	return PLACE_WAIT;
}

void
engine_wake_same(const struct job *ended)
{
	struct engine *engine = ended->engine;
	struct job *job, *next;

	for (job = LIST_FIRST(&engine->same[bucket_of(ended->key)]);
	     job != NULL; job = next) {
		next = LIST_NEXT(job, same);
		if (strcmp(job->key, ended->key) == 0)
			engine_wake(job);
	}
}
