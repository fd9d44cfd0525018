/*
 * A run as a FastCGI request: to a process that stays (workers.h), or to an
 * application that oncewrap does not start.
 *
 * One thread sends the request and reads the answer in turn, as either is
 * possible, so that neither side can wait for the other.  The run is over at
 * FCGI_END_REQUEST.  Without it the run is lost; the process is then ended, as
 * its group, and replaced.
 *
 * This process has a descriptor of the listening socket too.  If the process
 * is dead and its connection is still in the queue there, it has not read a
 * byte of the request: the run was not started.
 *
 * Of another's application less is known.  Its request was not started if none
 * of it could be written.  After that, without FCGI_END_REQUEST, it may run to
 * its end, or later.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "clock.h"
#include "fcgi.h"
#include "fcgi_client.h"
#include "log.h"
#include "workers.h"
#include "run_app.h"

/* Time (ms) for a process that has closed its connection to end by itself. */
#define CLOSE_GRACE 200

/* While there is output, the interval (ms) of checks for all other events. */
#define LOOK 100

/* --- the request -------------------------------------------------------- */

/* Puts the next record of the body into .send, which is sent.  False: there is
 * none. */
static bool
next_record(struct run_app *app)
{
	size_t n = app->body_left;

	if (app->body_ended)
		return false;
	if (n > FCGI_CONTENT_MAX)
		n = FCGI_CONTENT_MAX;
	buf_clear(&app->send);
	app->sent = 0;
	if (fcgi_client_stdin(&app->send, app->body, n) != RC_OK)
		return true; /* no memory: nothing is sent until the timeout */
	app->body_ended = n == 0;
	app->body_left -= n;
	app->body += n;
	return true;
}

/* Sends as much as goes.  An application may answer before it has read all,
 * and close the connection: that is no error until its answer is read. */
static void
send_some(struct run_app *app)
{
	ssize_t n;

	while (!app->all_sent && app->fd != -1) {
		if (app->sent == app->send.len && !next_record(app)) {
			app->all_sent = true;
			break;
		}
		n = send(app->fd, app->send.data + app->sent,
		    app->send.len - app->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1) {
			app->all_sent = errno != EAGAIN;
			break;
		}
		app->sent += (size_t)n;
		app->any_sent = true;
	}
}

/* --- the answer --------------------------------------------------------- */

static void
close_connection(struct run_app *app)
{
	if (app->fd != -1)
		close(app->fd);
	app->fd = -1;
}

/* Handles what has come, up to the next output.  False: all is handled. */
static bool
decode(struct run *run)
{
	struct run_app *app = run->app;
	struct fcgi_client *c = &app->client;
	enum fcgi_client_event event;
	size_t used;

	while (app->in_at < app->in_len && !c->over) {
		event = fcgi_client_feed(
		    c, app->in + app->in_at, app->in_len - app->in_at, &used);
		app->in_at += used;
		switch (event) {
		case FCGI_CLIENT_MORE:
			break;
		case FCGI_CLIENT_STDOUT:
			app->out = c->bytes;
			app->out_len = c->len;
			app->any_output = true;
			return true;
		case FCGI_CLIENT_STDERR:
			errlog_add(
			    &run->errlog, (const char *)c->bytes, c->len);
			break;
		case FCGI_CLIENT_END:
			app->ended = true;
			close_connection(app);
			break;
		case FCGI_CLIENT_ERROR:
			log_event(LOG_WARN, "handler-protocol", run->log,
			    LOG_S("why", c->why));
			close_connection(app);
			run_end(run, RUN_CUT);
			break;
		}
	}
	return false;
}

/* Reads from the connection once.  False: there is nothing now. */
static bool
receive_some(struct run_app *app)
{
	ssize_t n;

	if (app->fd == -1)
		return false;
	assert(app->in_at == app->in_len && app->out_len == 0);
	app->in_at = app->in_len = 0;
	n = recv(app->fd, app->in, sizeof(app->in), MSG_DONTWAIT);
	if (n > 0) {
		app->in_len = (size_t)n;
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_connection(app);
	return false;
}

/* --- while it runs ------------------------------------------------------ */

/* All that has come is handled. */
static bool
app_is_over(struct run *run)
{
	struct run_app *app = run->app;

	if (run->over)
		return true;
	switch (run->stage) {
	case STAGE_RUNNING:
		run->over = app->ended || run->exited ||
		    (app->fd == -1 && app->process == NULL);
		if (!run->over && app->fd == -1 && !app->closing) {
			/* Its end, if it is dying, says more than the end of
			 * its connection. */
			app->closing = true;
			run->deadline = clock_mono() + CLOSE_GRACE;
		}
		break;
	case STAGE_TERMINATED:
		/* Other processes of its group may still work. */
		run->over = run->facts.left ||
		    (run->exited && app->fd == -1 &&
			workers_stderr(app->process) == -1);
		break;
	case STAGE_KILLED:
		run->over = run->facts.left || run->exited;
		break;
	}
	return run->over;
}

/* Waits for an event, at most max ms (-1: without limit), and handles all but
 * input. */
static void
wait_app(struct run *run, int max)
{
	struct run_app *app = run->app;
	struct pollfd pfd[4];
	int n;

	pfd[0].fd = run->exited ? -1 : run->child.pidfd;
	pfd[1].fd = app->process != NULL ? workers_stderr(app->process) : -1;
	pfd[2].fd = app->fd;
	pfd[3].fd = run->stage == STAGE_RUNNING ? run_drain_fd() : -1;
	for (n = 0; n < 4; n++) {
		pfd[n].events = POLLIN;
		pfd[n].revents = 0;
	}
	if (!app->all_sent)
		pfd[2].events |= POLLOUT;
	if (poll(pfd, 4, max != -1 ? max : run_left(run)) == -1) {
		assert(errno == EINTR || errno == ENOMEM);
		return;
	}
	run->looked = clock_mono();
	if (pfd[1].revents != 0)
		(void)workers_read_stderr(app->process, &run->errlog);
	if ((pfd[2].revents & POLLOUT) != 0)
		send_some(app);
	run->out_ready = pfd[2].revents != 0;
	if (pfd[0].revents != 0) {
		run->exited = true;
		/* What it wrote last is still to be read. */
		run->out_ready = true;
	} else if (pfd[3].revents != 0)
		run_end(run, RUN_DRAINED);
	else if (run->looked >= run->deadline && app->closing &&
	    run->stage == STAGE_RUNNING)
		run_end(run, RUN_CUT);
	else if (run->looked >= run->deadline)
		run_late(run);
}

static size_t
put_out(struct run *run, void *p, size_t size)
{
	struct run_app *app = run->app;
	const size_t n = size < app->out_len ? size : app->out_len;

	memcpy(p, app->out, n);
	app->out += n;
	app->out_len -= n;
	run->output += n;
	if (run_wrote_too_much(run))
		run_end(run, RUN_OUTPUT_LIMIT);
	if (run->streaming && !run->discarding && run->stage == STAGE_RUNNING &&
	    !app->closing)
		run->deadline = clock_mono() + run->timeout;
	/* Output that never stops must not delay other events. */
	if (clock_mono() - run->looked >= LOOK)
		wait_app(run, 0);
	return n;
}

size_t
run_app_read(struct run *run, void *p, size_t size)
{
	struct run_app *app = run->app;

	if (app->sent == 0 && !app->all_sent)
		send_some(app);
	for (;;) {
		if (app->out_len > 0 || decode(run))
			return put_out(run, p, size);
		/* A process that has exited writes no more: what it wrote is
		 * there, and after it this process's end of the connection
		 * finds the end. */
		if (run->out_ready) {
			if (receive_some(app))
				continue;
			run->out_ready = false;
		}
		if (app_is_over(run))
			return 0;
		wait_app(run, -1);
	}
}

/* --- the end ------------------------------------------------------------ */

/* Ends what is left of it.  Returns its exit status, or minus a signal; 0 if it
 * was given up. */
static int
app_bury(struct run *run)
{
	struct workers_process *process = run->app->process;
	int status;

	while (workers_read_stderr(process, &run->errlog))
		continue;
	/* No process of its group may go on. */
	if (!run->facts.left)
		child_signal(&run->child, SIGKILL);
	workers_leave(process);
	if (!run->facts.left) {
		status = child_reap(workers_child(process));
		workers_log_end(process, run->child.pid, status,
		    run->stage == STAGE_RUNNING ? "it ended by itself" : "",
		    run->log);
		return status;
	}
	log_event(LOG_ERROR, "handler-left", run->log,
	    LOG_I("pid", run->child.pid),
	    LOG_S("why", "SIGKILL did not end it"));
	child_abandon(workers_child(process));
	return 0;
}

static void
app_not_started(struct run *run, struct run_facts *facts, const char *why)
{
	facts->end = RUN_NOT_STARTED;
	facts->error = ECONNREFUSED;
	log_event(LOG_ERROR, "handler-not-started", run->log,
	    LOG_I("pid", run->child.pid), LOG_S("step", "request"),
	    LOG_S("why", why));
}

/* The process has answered, and may get another request. */
static void
app_answered(struct run *run, struct run_facts *facts)
{
	const struct run_app *app = run->app;

	if (app->client.refused && !app->any_output)
		app_not_started(
		    run, facts, "the application refused the request");
	else if (app->client.refused)
		facts->end = RUN_CUT;
	else if (run_wrote_too_much(run))
		facts->end = RUN_OUTPUT_LIMIT;
	else
		facts->exit_status = (int)(app->client.status & 0x7fffffff);
}

/* The process is lost. */
static void
app_lost(struct run *run, struct run_facts *facts, int status)
{
	struct workers_process *process = run->app->process;
	const bool deaf = !facts->left && workers_was_deaf(process);

	if (deaf)
		app_not_started(run, facts,
		    "the process ended before it read a byte of the request");
	else if (facts->end == RUN_EXITED && status < 0) {
		facts->end = RUN_SIGNALED;
		facts->signal = -status;
	} else if (facts->end == RUN_EXITED) {
		facts->exit_status = status;
		/* Exit status 75 says the same as in FCGI_END_REQUEST, but for
		 * an answer that has begun. */
		if (status != EX_TEMPFAIL || run->app->any_output)
			facts->end = RUN_CUT;
	}
	workers_lost(process, !deaf);
}

void
run_app_finish(struct run *run, struct run_facts *facts)
{
	struct run_app *app = run->app;
	struct workers_process *process = app->process;
	char bytes[4096];
	int status;

	while (run_app_read(run, bytes, sizeof(bytes)) > 0)
		continue;
	*facts = run->facts;
	facts->milliseconds = clock_mono() - run->started;
	close_connection(app);
	if (app->ended && run->stage == STAGE_RUNNING) {
		app_answered(run, facts);
		if (process != NULL && run->exited) {
			(void)app_bury(run);
			workers_lost(process, true);
		} else if (process != NULL && app->client.refused)
			workers_reject(process, "it refused the request");
		else if (process != NULL)
			workers_give(process);
	} else if (process != NULL) {
		status = app_bury(run);
		app_lost(run, facts, status);
	} else if (!app->any_sent)
		app_not_started(run, facts, "nothing of it could be written");
	else if (facts->end == RUN_EXITED)
		facts->end = RUN_CUT;
	errlog_end(&run->errlog);
	run_app_free(run);
}
