/*
 * Runs of one loop.  Included by tests only.
 */
#ifndef RUN_FIXTURE_H
#define RUN_FIXTURE_H

#include "cases.h"

#include "clock.h"
#include "run.h"

static struct loop *loop;
static struct runs *runs;

static const struct log_request request_log = { .instance = "urn:uuid:test" };

/* A run, and what came of it. */
struct
try {
	struct run_spec spec;
	char *argv[4];
	char what[16], *envp[2];
	struct buf errors;
	struct run *run;
	struct run_facts facts;
	bool paused, finished;
	bool pauses; /* after the first output */
	unsigned moves;
	size_t output;
	char first[32]; /* bytes of the output */
};

static void
take(struct try *t)
{
	char bytes[4096];
	size_t n;

	while ((n = run_take(t->run, bytes, sizeof(bytes))) > 0) {
		if (t->output == 0)
			snprintf(
			    t->first, sizeof(t->first), "%.*s", (int)n, bytes);
		t->output += n;
		if ((t->paused = t->pauses))
			break;
	}
}

static void
moved(void *arg)
{
	struct try *t = arg;

	t->moves++;
	assert_false(t->finished);
	if (run_is_reached(t->run) && !t->paused) {
		run_send(t->run);
		take(t);
	}
	if (!t->paused && run_is_over(t->run)) {
		run_finish(t->run, &t->facts);
		t->finished = true;
	}
}

/* Begins the run, which may be NULL. */
static void
go(struct try *t)
{
	if (t->run == NULL) {
		t->finished = true;
		return;
	}
	run_begin_in(t->run, runs, moved, t);
	moved(t);
}

/* Serves the loop until the run is finished. */
static void
end(struct try *t)
{
	while (!t->finished)
		loop_round(loop, INT64_MAX);
}

static int
open_loop(UNUSED void **state)
{
	return run_init() != RC_OK || loop_open(&loop) != RC_OK ||
		run_open_runs(&runs, loop) != RC_OK
	    ? -1
	    : 0;
}

static int
close_loop(UNUSED void **state)
{
	run_close_runs(runs);
	loop_close(loop);
	return 0;
}

#endif
