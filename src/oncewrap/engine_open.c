/*
 * The engine itself: its helpers, lists and runs; how it stops.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "run.h"
#include "engine_impl.h"

/* So many calls of the store may wait besides those of programs that run. */
#define STORE_MORE 32

/* How many threads help, of each kind, and their name; those for the store are
 * its own. */
static const struct {
	const char *name;
	unsigned most;
} kinds[BY_N] = {
	[BY_SMALL] = { "parse", 1 },
	[BY_LARGE] = { "body", 2 },
	[BY_FILES] = { "file", 2 },
	[BY_START] = { "start", 4 },
	[BY_USER] = { "user", 4 },
	[BY_PAGE] = { "page", 2 },
	[BY_NAMES] = { "names", 2 },
};

enum rc
engine_open(struct engine **out, struct store *store, struct loop *loop,
    unsigned workers, const struct engine_owner *owner)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	enum rc rc = RC_OK;

	*out = engine;
	if (engine == NULL)
		return RC_NOMEM;
	engine->loop = loop;
	engine->store = store;
	engine->workers = workers;
	engine->owner = *owner;
	TAILQ_INIT(&engine->first);
	TAILQ_INIT(&engine->programs.waiting);
	TAILQ_INIT(&engine->memory);
	TAILQ_INIT(&engine->woken);
	engine->rate = rate_new();
	for (int by = 0; by < BY_N && rc == RC_OK; by++)
		if (kinds[by].most > 0)
			rc = helpers_open(&engine->helpers[by], loop,
			    kinds[by].name, kinds[by].most);
	if (rc == RC_OK && engine->rate == NULL)
		rc = RC_NOMEM;
	if (rc == RC_OK)
		rc = run_open_runs(&engine->runs, loop);
	return rc == RC_OK ? store_call_open(store, loop, workers + STORE_MORE)
			   : rc;
}

void
engine_close(struct engine *engine)
{
	assert(engine->jobs == 0);
	loop_clear(engine->loop, &engine->look);
	run_close_runs(engine->runs);
	engine->runs = NULL;
	store_call_close(engine->store);
	loop_round(engine->loop, 0);
}

struct helpers *
engine_helpers(struct engine *engine)
{
	return engine->helpers[BY_FILES];
}

struct runs *
engine_runs(struct engine *engine)
{
	return engine->runs;
}

bool
engine_is_idle(const struct engine *engine)
{
	return engine->jobs == 0;
}

void
engine_drain(struct engine *engine)
{
	struct job *job;

	engine->draining = true;
	while ((job = TAILQ_FIRST(&engine->first)) != NULL ||
	    (job = TAILQ_FIRST(&engine->memory)) != NULL)
		engine_wake(job);
	engine_drain_slots(engine);
}

void
engine_free(struct engine *engine)
{
	if (engine == NULL)
		return;
	for (int by = 0; by < BY_N; by++)
		helpers_close(engine->helpers[by]);
	engine_free_slots(engine);
	rate_free(engine->rate);
	free(engine);
}
