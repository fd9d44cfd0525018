/*
 * A thread that waits for a run.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "run_impl.h"
#include "run_wait.h"

/*
 * What a thread waits for.  A run that needs a process that stays goes on in
 * the loop of the processes, which does each act for the thread; any other one
 * in a loop of the thread's own.
 */
struct errand {
	struct run *run;
	struct loop *own; /* NULL: the loop of the processes */
	struct runs *runs;
	struct loop_message message;
	bool under_way;                /* the loop's */
	bool (*act)(struct errand *e); /* true: it is done */
	sem_t done;
	/* what the act needs, and gives */
	void *bytes;
	size_t size, n;
	struct run_facts *facts;
	bool is_reached;
};

static void
try_errand(struct errand *e)
{
	if (e->under_way && e->act(e)) {
		e->under_way = false;
		sem_post(&e->done);
	}
}

static void
errand_comes(struct loop_message *m)
{
	struct errand *e = OWNER(m, struct errand, message);

	e->under_way = true;
	try_errand(e);
}

static void
errand_moved(void *arg)
{
	try_errand(arg);
}

static void
do_errand(struct errand *e, bool (*act)(struct errand *e))
{
	e->act = act;
	if (e->own != NULL) {
		while (!act(e))
			loop_round(e->own, INT64_MAX);
		return;
	}
	e->message.come = errand_comes;
	loop_send(e->runs->loop, &e->message);
	while (sem_wait(&e->done) == -1)
		continue; /* EINTR */
}

static bool
act_begin(struct errand *e)
{
	if (e->run->runs == NULL)
		run_begin_in(e->run, e->runs, errand_moved, e);
	e->is_reached = run_is_reached(e->run);
	return e->is_reached || run_is_over(e->run);
}

static bool
act_read(struct errand *e)
{
	run_send(e->run);
	e->n = run_take(e->run, e->bytes, e->size);
	return e->n > 0 || run_is_over(e->run);
}

static bool
act_finish(struct errand *e)
{
	run_finish(e->run, e->facts);
	return true;
}

static bool
act_cancel(struct errand *e)
{
	run_cancel(e->run);
	return true;
}

static bool
act_fail(struct errand *e)
{
	run_fail_capture(e->run);
	return true;
}

static enum rc
open_loop(struct errand *e)
{
	enum rc rc;

	if (e->run->app != NULL && workers_runs() != NULL &&
	    conf_program_address(e->run->app->program) == NULL) {
		e->runs = workers_runs();
		return RC_OK;
	}
	rc = loop_open(&e->own);
	if (rc == RC_OK && (rc = run_open_runs(&e->runs, e->own)) != RC_OK)
		loop_close(e->own);
	return rc;
}

/* After its run. */
static void
errand_free(struct errand *e)
{
	if (e->own != NULL) {
		run_close_runs(e->runs);
		loop_close(e->own);
	}
	sem_destroy(&e->done);
	free(e);
}

static struct errand *
errand_new(struct run *run)
{
	struct errand *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->run = run;
	sem_init(&e->done, 0, 0);
	if (open_loop(e) == RC_OK)
		return e;
	sem_destroy(&e->done);
	free(e);
	return NULL;
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

struct run *
run_wait_begin(struct run *run, struct run_facts *facts)
{
	struct errand *e;

	if (run == NULL)
		return NULL;
	while ((e = errand_new(run)) == NULL) {
		if (clock_mono() >= run->deadline)
			return give_up(run, facts);
		sleep(1); /* a descriptor may become free */
	}
	do_errand(e, act_begin);
	if (e->is_reached)
		return run;
	run_wait_finish(run, facts);
	return NULL;
}

size_t
run_wait_read(struct run *run, void *p, size_t size)
{
	struct errand *e = run->arg;

	e->bytes = p;
	e->size = size;
	do_errand(e, act_read);
	return e->n;
}

void
run_wait_finish(struct run *run, struct run_facts *facts)
{
	struct errand *e = run->arg;
	char bytes[4096];

	/* If the caller has read enough: a full pipe must not stop the
	 * handler. */
	while (run_wait_read(run, bytes, sizeof(bytes)) > 0)
		continue;
	e->facts = facts;
	do_errand(e, act_finish);
	errand_free(e);
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
			do_errand(run->arg, act_fail);
	}
	run_wait_finish(run, facts);
}

void
run_wait_cancel(struct run *run)
{
	struct errand *e = run->arg;

	do_errand(e, act_cancel);
	errand_free(e);
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
