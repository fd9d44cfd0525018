/*
 * A thread that waits for a run.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "run_impl.h"
#include "run_wait.h"

/* The caller asks after each round. */
static void
no_move(void *arg)
{
	(void)arg;
}

static enum rc
open_loop(struct runs **runs)
{
	struct loop *loop;
	enum rc rc = loop_open(&loop);

	if (rc == RC_OK && (rc = runs_open(runs, loop)) != RC_OK)
		loop_close(loop);
	return rc;
}

/* After its run. */
static void
close_loop(struct runs *runs)
{
	struct loop *loop = runs->loop;

	runs_close(runs);
	loop_close(loop);
}

/* There is no loop for it in all its time: what was started is killed. */
static struct run *
give_up(struct run *run, struct run_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	facts->end =
	    run->child.pid == -1 ? RUN_NOT_STARTED : RUN_CAPTURE_FAILED;
	facts->error = ENOMEM;
	if (run->child.pid != -1) {
		child_signal(&run->child, SIGKILL);
		(void)child_reap(&run->child);
	}
	run_free(run);
	return NULL;
}

static void
serve_round(struct run *run)
{
	loop_round(run->runs->loop, INT64_MAX);
}

struct run *
run_wait_begin(struct run *run, struct run_facts *facts)
{
	struct runs *runs;

	if (run == NULL)
		return NULL;
	while (open_loop(&runs) != RC_OK) {
		if (clock_mono() >= run->deadline)
			return give_up(run, facts);
		sleep(1); /* a descriptor may become free */
	}
	run_begin_in(run, runs, no_move, NULL);
	while (!run_is_reached(run) && !run_is_over(run))
		serve_round(run);
	if (run_is_reached(run))
		return run;
	run_wait_finish(run, facts);
	return NULL;
}

size_t
run_wait_read(struct run *run, void *p, size_t size)
{
	size_t n;

	run_send(run);
	while ((n = run_take(run, p, size)) == 0 && !run_is_over(run))
		serve_round(run);
	return n;
}

void
run_wait_finish(struct run *run, struct run_facts *facts)
{
	struct runs *runs = run->runs;
	char bytes[4096];

	/* If the caller has read enough: a full pipe must not stop the
	 * handler. */
	while (run_wait_read(run, bytes, sizeof(bytes)) > 0)
		continue;
	run_finish(run, facts);
	close_loop(runs);
}

void
run_wait_capture(struct run *run, struct spool *spool, struct run_facts *facts)
{
	char bytes[16 * 1024];
	enum rc rc = RC_OK;
	size_t n;

	while ((n = run_wait_read(run, bytes, sizeof(bytes))) > 0) {
		FAULT(HANDLER_OUTPUT);
		if (rc == RC_OK && !run_wrote_too_much(run))
			rc = spool_write(spool, bytes, n);
		if (rc != RC_OK)
			run_fail_capture(run);
	}
	run_wait_finish(run, facts);
}

void
run_wait_cancel(struct run *run)
{
	struct runs *runs = run->runs;

	run_cancel(run);
	close_loop(runs);
}

/* --- a connection alone --------------------------------------------------- */

static void
told_connected(struct run_connect *c)
{
	c->told = NULL;
}

int
run_wait_connect(
    const char *address, int64_t until, int *error, const char **why)
{
	struct run_connect c = {
		.told = told_connected, .fd = -1, .error = ENOMEM
	};

	if (loop_open(&c.loop) == RC_OK) {
		if ((c.error = run_connect_find(&c, address)) == 0)
			run_connect_begin(&c);
		else
			c.told = NULL;
		while (c.told != NULL && clock_mono() < until)
			loop_round(c.loop, until);
		if (c.told != NULL) {
			run_connect_cancel(&c);
			c.error = ETIMEDOUT;
		}
		run_connect_free(&c);
		loop_close(c.loop);
	}
	*error = c.error;
	*why = run_connect_why(c.error);
	return c.fd;
}
