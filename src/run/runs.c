/*
 * The runs of a loop.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "run_impl.h"
#include "run.h"

/* Each is ended by its own timer, for the end of one may free it. */
static void
drained(struct loop_watch *w, unsigned events)
{
	struct runs *runs = OWNER(w, struct runs, drain);
	struct run *run;

	(void)events;
	loop_unwatch(runs->loop, w);
	for (run = runs->first; run != NULL; run = run->next)
		loop_set(runs->loop, &run->late, 0);
}

enum rc
runs_open(struct runs **out, struct loop *loop)
{
	struct runs *runs = calloc(1, sizeof(*runs));
	enum rc rc;

	*out = NULL;
	if (runs == NULL)
		return RC_NOMEM;
	runs->loop = runs->workers.loop = loop;
	runs->drain = (struct loop_watch){ .ready = drained, .fd = -1 };
	rc = loop_watch(loop, &runs->drain, run_drain_fd(), EPOLLIN);
	if (rc != RC_OK) {
		free(runs);
		return rc;
	}
	*out = runs;
	return RC_OK;
}

void
runs_close(struct runs *runs)
{
	if (runs == NULL)
		return;
	assert(runs->first == NULL);
	while (atomic_load(&runs->workers.coming) > 0)
		loop_round(runs->loop, INT64_MAX);
	loop_unwatch(runs->loop, &runs->drain);
	free(runs);
}
