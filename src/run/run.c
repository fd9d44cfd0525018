/*
 * One thread runs one handler: it waits in poll(2) for output, stderr, exit,
 * deadline and drain together, so none of them can delay another.  It does so
 * alike for a program of the run, a process that stays, and an application.
 *
 * A run is over when the program has exited and the bytes in its pipes at that
 * moment have been read.  A process that the program left behind may hold the
 * pipes without end.
 *
 * The first reason to end a run counts: a handler that exits 0 upon the
 * SIGTERM of its timeout has timed out.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "run_impl.h"
#include "workers.h"
#include "workers_impl.h"
#include "run.h"

/* The same stop twice: the flag for readers, the descriptor for poll(2). */
static atomic_bool draining;
static int drain_fd = -1;

/* After run_drain() a program that ignores SIGTERM is killed so soon (ms). */
#define DRAIN_PATIENCE 1000

/* While there is output, the interval (ms) of checks for all other events. */
#define LOOK 100

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
	workers_drain();
	/* Before run_resume() the descriptor is not read, so it stays readable
	 * for all runs. */
	if (write(drain_fd, &one, sizeof(one)) != sizeof(one))
		assert(errno == EAGAIN);
}

const char *
run_end_name(enum run_end end)
{
	static const char *const names[] = { [RUN_EXITED] = "exited",
		[RUN_SIGNALED] = "signaled",
		[RUN_CUT] = "cut",
		[RUN_TIMEOUT] = "timeout",
		[RUN_OUTPUT_LIMIT] = "output-limit",
		[RUN_DRAINED] = "drained",
		[RUN_CAPTURE_FAILED] = "capture-failed",
		[RUN_NOT_STARTED] = "not-started" };

	return names[end];
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

int
run_drain_fd(void)
{
	return drain_fd;
}

void
run_close(const int *fds, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (fds[i] != -1)
			close(fds[i]);
	}
}

/* --- stderr ------------------------------------------------------------- */

/* Reads at most max bytes, once.  At the end of the pipe, closes it. */
static size_t
read_stderr(struct run *run, size_t max)
{
	ssize_t n = errlog_read(&run->errlog, run->err, max);

	if (n == -1) {
		close(run->err);
		run->err = -1;
	}
	return n > 0 ? (size_t)n : 0;
}

static size_t
left_in(int fd)
{
	int n;

	if (fd == -1 || ioctl(fd, FIONREAD, &n) == -1 || n < 0)
		return 0;
	return (size_t)n;
}

/* --- while it runs ------------------------------------------------------ */

void
run_end(struct run *run, enum run_end why)
{
	if (run->exited || run->over || run->phase != PHASE_RUNNING)
		return;
	run->facts.end = why;
	run->phase = PHASE_TERMINATED;
	if (run->child.pid == -1) {
		run->over = true; /* nothing of ours is to be ended */
		return;
	}
	run->deadline = clock_mono() + run_patience(run->kill_after);
	child_signal(&run->child, SIGTERM);
}

bool
run_wrote_too_much(const struct run *run)
{
	return run->output > run->max_output;
}

/* The deadline is past. */
static void
run_late(struct run *run)
{
	switch (run->phase) {
	case PHASE_RUNNING:
		run_end(run, run->closing ? RUN_CUT : RUN_TIMEOUT);
		break;
	case PHASE_TERMINATED:
		run->phase = PHASE_KILLED;
		run->deadline = clock_mono() + RUN_GRACE;
		child_signal(&run->child, SIGKILL);
		break;
	case PHASE_KILLED:
		run->facts.left = true;
		break;
	}
}

/*
 * The bytes that are in the pipes now are the last ones.  If the program
 * exited by itself, the poll that saw the exit looked at the pipes after it: a
 * pipe that was not ready then is empty.
 */
static void
conclude(struct run *run)
{
	bool alone = run->phase == PHASE_RUNNING;
	size_t left, n;

	run->over = true;
	run->out_left = alone && !run->out_ready ? 0 : left_in(run->out);
	left = alone && !run->err_ready ? 0 : left_in(run->err);
	for (; left > 0; left -= n) {
		if ((n = read_stderr(run, left)) == 0)
			break;
	}
	/* No process of a terminated handler's group may go on. */
	if (run->phase != PHASE_RUNNING)
		child_signal(&run->child, SIGKILL);
}

/*
 * A program that exits by itself ends its run.  In a group that is being
 * terminated, other processes may still work: they have until the second
 * deadline, unless no process holds our pipes any more.
 */
static bool
conclude_if_over(struct run *run)
{
	if (!run->over && run->facts.left)
		conclude(run);
	if (!run->over && run->exited &&
	    (run->phase != PHASE_TERMINATED ||
		(run->out == -1 && run->err == -1)))
		conclude(run);
	return run->over;
}

/* Waits for an event, at most max ms (-1: until the deadline), and handles all
 * events but output. */
static void
wait_event(struct run *run, int max)
{
	struct run_app *app = run->app;
	struct workers_process *process = app != NULL ? app->process : NULL;
	struct pollfd pfd[4] = {
		{ .fd = run->exited ? -1 : run->child.pidfd },
		{ .fd = process != NULL ? process->err : run->err },
		{ .fd = run->out },
		{ .fd = run->phase == PHASE_RUNNING ? drain_fd : -1 },
	};

	if (app == NULL && conclude_if_over(run))
		return;
	for (int i = 0; i < 4; i++)
		pfd[i].events = POLLIN;
	if (app != NULL && !app->all_sent)
		pfd[2].events |= POLLOUT;
	if (poll(pfd, 4, max != -1 ? max : clock_left(run->deadline)) == -1) {
		assert(errno == EINTR || errno == ENOMEM);
		return;
	}
	run->looked = clock_mono();
	run->err_ready = pfd[1].revents != 0;
	run->out_ready = pfd[2].revents != 0;
	if (run->err_ready && process != NULL)
		(void)workers_read_stderr(process, &run->errlog);
	else if (run->err_ready)
		(void)read_stderr(run, SIZE_MAX);
	if ((pfd[2].revents & POLLOUT) != 0)
		run_app_send(run);
	if (pfd[0].revents != 0) {
		run->exited = true;
		/* What it wrote last is still to be read. */
		run->out_ready = run->out_ready || app != NULL;
	} else if (pfd[3].revents != 0)
		run_end(run, RUN_DRAINED);
	else if (run->looked >= run->deadline)
		run_late(run);
	if (app == NULL)
		conclude_if_over(run);
}

/* Reads output once.  0: there is none now, or it has ended. */
static size_t
read_output(struct run *run, void *p, size_t size)
{
	ssize_t n;

	if (run->out == -1 || (!run->out_ready && !run->over))
		return 0;
	if (run->over && size > run->out_left)
		size = run->out_left;
	n = size == 0 ? 0 : read(run->out, p, size);
	run->out_ready = n > 0 && (size_t)n == size;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close(run->out);
		run->out = -1;
		return 0;
	}
	if (run->over)
		run->out_left -= (size_t)n;
	return (size_t)n;
}

pid_t
run_pid(const struct run *run)
{
	return run->child.pid;
}

/* More output was read. */
static void
count_output(struct run *run, size_t n)
{
	run->output += n;
	if (run_wrote_too_much(run))
		run_end(run, RUN_OUTPUT_LIMIT);
	if (run->streaming && !run->discarding && !run->closing &&
	    run->phase == PHASE_RUNNING)
		run->deadline = clock_mono() + run->timeout;
	/* Output that never stops must not delay other events. */
	if (!run->over && clock_mono() - run->looked >= LOOK)
		wait_event(run, 0);
}

size_t
run_read(struct run *run, void *p, size_t size)
{
	size_t n;

	for (;;) {
		n = run->app != NULL ? run_app_take(run, p, size)
				     : read_output(run, p, size);
		if (n > 0) {
			count_output(run, n);
			return n;
		}
		if (run->app != NULL ? run_app_is_over(run) : run->out == -1)
			return 0;
		wait_event(run, -1);
	}
}

void
run_discard(struct run *run)
{
	if (run->discarding)
		return;
	run->discarding = true;
	if (run->phase == PHASE_RUNNING)
		run->deadline = clock_mono() + run->timeout;
}

int
run_reap(struct child *child, bool left, const struct log_request *log)
{
	if (!left)
		return child_reap(child);
	log_event(LOG_ERROR, "handler-left", log, LOG_I("pid", child->pid),
	    LOG_S("why", "SIGKILL did not end it"));
	child_abandon(child);
	return 0;
}

/* A program of the run's own: how it ended. */
static void
finish_program(struct run *run, struct run_facts *facts)
{
	int status = run_reap(&run->child, facts->left, run->log);

	if (facts->end != RUN_EXITED)
		return;
	if (status < 0) {
		facts->end = RUN_SIGNALED;
		facts->signal = -status;
	} else if (run_wrote_too_much(run))
		facts->end = RUN_OUTPUT_LIMIT;
	else
		facts->exit_status = status;
}

void
run_finish(struct run *run, struct run_facts *facts)
{
	char bytes[4096];

	/* If the caller has read enough: a full pipe must not stop the
	 * handler. */
	while (run_read(run, bytes, sizeof(bytes)) > 0)
		continue;
	while (!run->over)
		wait_event(run, -1);
	*facts = run->facts;
	facts->milliseconds = clock_mono() - run->started;
	if (run->app != NULL)
		run_app_finish(run, facts);
	else
		finish_program(run, facts);
	errlog_end(&run->errlog);
	run_free(run);
}

void
run_capture(struct run *run, struct spool *spool, struct run_facts *facts)
{
	char bytes[16 * 1024];
	enum rc rc = RC_OK;
	size_t n;

	while ((n = run_read(run, bytes, sizeof(bytes))) > 0) {
		FAULT(HANDLER_OUTPUT);
		if (rc == RC_OK && !run_wrote_too_much(run))
			rc = spool_write(spool, bytes, n);
		if (rc != RC_OK)
			run_end(run, RUN_CAPTURE_FAILED);
	}
	run_finish(run, facts);
	if (rc != RC_OK)
		facts->end = RUN_CAPTURE_FAILED;
}
