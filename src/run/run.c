/*
 * A run in its loop, which calls for output, stderr, exit, deadline and drain
 * alike, so none of them can delay another; and alike for a program of the run,
 * a process that stays, and an application.
 *
 * Output is read once for each event, so that a handler which never stops
 * writing has its turn as others do.  If the caller takes nothing, a second
 * event ends the watch until it does.
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
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "run_impl.h"
#include "run.h"

/* While the caller takes nothing, a deadline that is past is looked at again
 * (ms). */
#define UNTAKEN_PAUSE 200

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
run_close(const int *fds, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (fds[i] != -1)
			close(fds[i]);
	}
}

/* --- while it runs ------------------------------------------------------ */

void
run_set_deadline(struct run *run, int64_t ms)
{
	run->deadline = clock_mono() + ms;
	/* A timer that comes too early is set again. */
	if (!run->late.is_set || run->late.at > run->deadline)
		loop_set(run->runs->loop, &run->late, run->deadline);
}

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
	run_set_deadline(run, run_patience(run->kill_after));
	child_signal(&run->child, SIGTERM);
}

void
run_fail_capture(struct run *run)
{
	run->capture_failed = true;
	run_end(run, RUN_CAPTURE_FAILED);
}

bool
run_wrote_too_much(const struct run *run)
{
	return run->output > run->max_output;
}

/* Watches one of its descriptors.  Without memory for that the run is ended,
 * and its deadlines see its end. */
static void
watch_fd(struct run *run, struct loop_watch *w, int fd, unsigned events)
{
	if (fd == -1 || events == 0)
		loop_unwatch(run->runs->loop, w);
	else if (loop_watch(run->runs->loop, w, fd, events) != RC_OK) {
		run->capture_failed = true;
		loop_set(run->runs->loop, &run->late, 0);
	}
}

void
run_watch_out(struct run *run)
{
	const bool sends = run->app != NULL && !run->app->all_sent;

	watch_fd(run, &run->watch_out, run->out,
	    (run->out_ready ? 0 : EPOLLIN) | (sends ? EPOLLOUT : 0));
}

static void
unwatch_all(struct run *run)
{
	loop_clear(run->runs->loop, &run->late);
	loop_unwatch(run->runs->loop, &run->watch_out);
	loop_unwatch(run->runs->loop, &run->watch_err);
	loop_unwatch(run->runs->loop, &run->watch_exit);
}

/* Reads at most max bytes of stderr, once.  At the end of the pipe, closes
 * it. */
static size_t
read_stderr(struct run *run, size_t max)
{
	ssize_t n = errlog_read(&run->errlog, run->err, max);

	if (n == -1) {
		loop_unwatch(run->runs->loop, &run->watch_err);
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

/* The bytes that are in the pipes now are the last ones. */
static void
run_conclude(struct run *run)
{
	size_t left, n;

	run->over = true;
	unwatch_all(run);
	run->out_left = left_in(run->out);
	for (left = left_in(run->err); left > 0; left -= n) {
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
static void
conclude_if_over(struct run *run)
{
	if (run->app != NULL || run->over)
		return;
	if (run->facts.left ||
	    (run->exited &&
		(run->phase != PHASE_TERMINATED ||
		    (run->out == -1 && run->err == -1))))
		run_conclude(run);
}

/* --- events ------------------------------------------------------------- */

void
run_moved(struct run *run)
{
	conclude_if_over(run);
	if (run->moved != NULL)
		run->moved(run->arg);
}

static void
out_moved(struct loop_watch *w, unsigned events)
{
	struct run *run = OWNER(w, struct run, watch_out);

	if ((events & EPOLLOUT) != 0)
		run_app_send(run);
	if ((events & ~(unsigned)EPOLLOUT) == 0)
		return;
	if (!run->out_ready) {
		run->out_ready = true;
		run_moved(run);
	} else if ((events & (EPOLLERR | EPOLLHUP)) == 0)
		run_watch_out(run); /* the caller does not take it now */
	else
		loop_unwatch(run->runs->loop, w);
}

static void
err_moved(struct loop_watch *w, unsigned events)
{
	struct run *run = OWNER(w, struct run, watch_err);

	(void)events;
	(void)read_stderr(run, SIZE_MAX);
	if (run->err == -1 && run->exited)
		run_moved(run);
}

static void
has_exited(struct loop_watch *w, unsigned events)
{
	struct run *run = OWNER(w, struct run, watch_exit);

	(void)events;
	loop_unwatch(run->runs->loop, w);
	run->exited = true;
	run_moved(run);
}

/* The deadline is past. */
static void
end_late(struct run *run)
{
	switch (run->phase) {
	case PHASE_RUNNING:
		run_end(run, run->closing ? RUN_CUT : RUN_TIMEOUT);
		break;
	case PHASE_TERMINATED:
		run->phase = PHASE_KILLED;
		run_set_deadline(run, RUN_GRACE);
		child_signal(&run->child, SIGKILL);
		break;
	case PHASE_KILLED:
		run->facts.left = true;
		break;
	}
}

/* Whether there is output, or its end, that the caller does not take now. */
static bool
has_output(const struct run *run)
{
	return run->phase == PHASE_RUNNING && !run->closing &&
	    (run->out_ready || (run->app != NULL && run->app->ended));
}

static void
late_due(struct loop_timer *t)
{
	struct run *run = OWNER(t, struct run, late);
	const bool ends = run->phase == PHASE_RUNNING &&
	    (run->capture_failed || run_is_draining());

	if (run->over)
		return;
	if (run->deadline > loop_now(run->runs->loop) && !ends) {
		loop_set(run->runs->loop, t, run->deadline);
		return;
	}
	if (!run->reached) {
		run_reach_not(run, ends ? ESHUTDOWN : ETIMEDOUT);
		return;
	}
	/* A group that is being terminated may outlive its leader. */
	if (run->phase != PHASE_TERMINATED && run->child.pid != -1 &&
	    child_exited(&run->child))
		run->exited = run->out_ready = true;
	else if (ends)
		run_end(run,
		    run->capture_failed ? RUN_CAPTURE_FAILED : RUN_DRAINED);
	else if (has_output(run))
		loop_set(run->runs->loop, t,
		    loop_now(run->runs->loop) + UNTAKEN_PAUSE);
	else
		end_late(run);
	run_moved(run);
}

void
run_begin_in(
    struct run *run, struct runs *runs, void (*moved)(void *arg), void *arg)
{
	run->runs = runs;
	run->arg = arg;
	run->watch_out = (struct loop_watch){ .ready = out_moved, .fd = -1 };
	run->watch_err = (struct loop_watch){ .ready = err_moved, .fd = -1 };
	run->watch_exit = (struct loop_watch){ .ready = has_exited, .fd = -1 };
	run->late.due = late_due;
	if ((run->next = runs->first) != NULL)
		run->next->back = &run->next;
	run->back = &runs->first;
	runs->first = run;
	if (run->app != NULL) {
		run_set_deadline(run, run->timeout);
		run_reach(run);
	} else {
		loop_set(runs->loop, &run->late, run->deadline);
		watch_fd(run, &run->watch_exit, run->child.pidfd, EPOLLIN);
		watch_fd(run, &run->watch_err, run->err, EPOLLIN);
		run_watch_out(run);
	}
	run->moved = moved;
	if (run_is_draining())
		loop_set(runs->loop, &run->late, 0);
}

void
run_leave(struct run *run)
{
	if (run->runs == NULL)
		return;
	unwatch_all(run);
	if ((*run->back = run->next) != NULL)
		run->next->back = run->back;
}

/* --- for the caller ----------------------------------------------------- */

bool
run_is_reached(const struct run *run)
{
	return run->reached;
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
	run->out_ready = false;
	if (run->over && n > 0) {
		run->out_left -= (size_t)n;
		return (size_t)n;
	}
	if (!run->over &&
	    (n > 0 || (n == -1 && (errno == EAGAIN || errno == EINTR)))) {
		run_watch_out(run);
		return n > 0 ? (size_t)n : 0;
	}
	loop_unwatch(run->runs->loop, &run->watch_out);
	close(run->out);
	run->out = -1;
	run->out_left = 0;
	conclude_if_over(run);
	return 0;
}

pid_t
run_pid(const struct run *run)
{
	return run->child.pid;
}

size_t
run_take(struct run *run, void *p, size_t size)
{
	const size_t n = run->app != NULL ? run_app_take(run, p, size)
					  : read_output(run, p, size);

	if (n == 0)
		return 0;
	run->output += n;
	if (run_wrote_too_much(run))
		run_end(run, RUN_OUTPUT_LIMIT);
	if (run->streaming && !run->discarding && !run->closing &&
	    run->phase == PHASE_RUNNING && !run->over)
		run_set_deadline(run, run->timeout);
	return n;
}

bool
run_is_over(struct run *run)
{
	if (run->app != NULL)
		return run_app_is_over(run);
	return run->over && run->out_left == 0;
}

void
run_discard(struct run *run)
{
	if (run->discarding)
		return;
	run->discarding = true;
	if (run->phase == PHASE_RUNNING && !run->over)
		run_set_deadline(run, run->timeout);
}

/* --- its end ------------------------------------------------------------ */

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
	*facts = run->facts;
	if (run->reached) {
		facts->milliseconds = clock_mono() - run->started;
		if (run->app != NULL)
			run_app_finish(run, facts);
		else
			finish_program(run, facts);
	}
	if (run->capture_failed)
		facts->end = RUN_CAPTURE_FAILED;
	errlog_end(&run->errlog);
	run_free(run);
}
