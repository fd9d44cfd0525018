/*
 * The runs of a loop, and the end of all runs of this process.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "run_impl.h"
#include "run.h"

/* The same stop twice: the flag for readers, the descriptor for loops. */
static atomic_bool draining;
static int drain_fd = -1;

/* After run_drain() a program that ignores SIGTERM is killed so soon (ms). */
#define DRAIN_PATIENCE 1000

enum rc
run_init(void)
{
	int error;

	if ((error = child_init()) != 0) {
		log_event(LOG_ERROR, "run-init", NULL,
		    LOG_S("error", strerror(error)));
		return RC_IO;
	}
	drain_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (drain_fd == -1) {
		log_event(LOG_ERROR, "run-init", NULL,
		    LOG_S("error", strerror(errno)));
		return RC_IO;
	}
	return RC_OK;
}

void
run_drain(void)
{
	const uint64_t one = 1;

	atomic_store(&draining, true);
	/* Before run_resume() the descriptor is not read, so it stays readable
	 * for all loops. */
	if (write(drain_fd, &one, sizeof(one)) != sizeof(one))
		assert(errno == EAGAIN);
}

void
run_resume(void)
{
	uint64_t n;

	atomic_store(&draining, false);
	if (read(drain_fd, &n, sizeof(n)) == -1)
		assert(errno == EAGAIN);
}

bool
run_is_draining(void)
{
	return atomic_load(&draining);
}

int64_t
run_patience(int64_t kill_after)
{
	return run_is_draining() && kill_after > DRAIN_PATIENCE ? DRAIN_PATIENCE
								: kill_after;
}

/* --- of a loop ---------------------------------------------------------- */

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
run_open_runs(struct runs **out, struct loop *loop)
{
	struct runs *runs = calloc(1, sizeof(*runs));
	enum rc rc;

	*out = NULL;
	if (runs == NULL)
		return RC_NOMEM;
	runs->loop = loop;
	runs->drain = (struct loop_watch){ .ready = drained, .fd = -1 };
	rc = loop_watch(loop, &runs->drain, drain_fd, EPOLLIN);
	if (rc != RC_OK) {
		free(runs);
		return rc;
	}
	*out = runs;
	return RC_OK;
}

void
run_close_runs(struct runs *runs)
{
	if (runs == NULL)
		return;
	assert(runs->first == NULL);
	loop_unwatch(runs->loop, &runs->drain);
	free(runs);
}
