/*
 * A run as a FastCGI request to a process that stays (workers.h).
 *
 * One thread sends the request and reads the answer in turn, as either is
 * possible, so that neither side can wait for the other.  The run is over at
 * FCGI_END_REQUEST.  Without it the run is lost; the process is then ended, as
 * its group, and replaced.
 *
 * This process has a descriptor of the listening socket too.  If the process
 * is dead and its connection is still in the queue there, it has not read a
 * byte of the request: the run was not started.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "fcgi.h"
#include "fcgi_client.h"
#include "limit.h"
#include "log.h"
#include "run_impl.h"
#include "workers.h"

/* Time (ms) for a process that has closed its connection to end by itself. */
#define CLOSE_GRACE 200

/* While there is output, the interval (ms) of checks for all other events. */
#define LOOK 100

#define INPUT (16 * 1024)

struct run_app {
	struct workers_process *process;
	struct fcgi_client client;
	int fd; /* -1: closed */
	/* what is sent now, and the body that follows */
	struct buf send;
	size_t sent;
	const char *body;
	size_t body_left;
	bool body_ended, all_sent;
	/* what has come, and the output in it */
	unsigned char in[INPUT];
	size_t in_at, in_len;
	const unsigned char *out;
	size_t out_len;
	bool any_output;
	bool ended;   /* FCGI_END_REQUEST has come */
	bool closing; /* the connection is closed; the process should end */
};

/* --- the start ---------------------------------------------------------- */

static enum rc
encode_request(struct run_app *app, const struct run_spec *spec)
{
	enum rc rc;

	buf_init(&app->send, (size_t)2 * LIMIT_ENV + FCGI_CONTENT_MAX + 64);
	fcgi_client_init(&app->client);
	app->body = spec->body;
	app->body_left = spec->body_len;
	if ((rc = fcgi_client_begin(&app->send, spec->envp, NULL)) != RC_OK)
		return rc;
	/* A request with a short body, or none, is one write(2). */
	if (app->body_left > 0 && app->body_left <= FCGI_CONTENT_MAX / 4) {
		rc = fcgi_client_stdin(&app->send, app->body, app->body_left);
		app->body_left = 0;
	}
	if (rc == RC_OK && app->body_left == 0) {
		rc = fcgi_client_stdin(&app->send, NULL, 0);
		app->body_ended = true;
	}
	return rc;
}

static void
app_free(struct run *run)
{
	struct run_app *app = run->app;

	if (app != NULL) {
		buf_free(&app->send);
		if (app->fd != -1)
			close(app->fd);
	}
	free(app);
	errlog_free(&run->errlog);
	free(run);
}

struct run *
run_start_app(const struct run_spec *spec, const struct conf_program *program,
    struct run_facts *facts)
{
	struct workers_process *process = NULL;
	struct run *run;
	const char *why = "";
	int error = ENOMEM;

	memset(facts, 0, sizeof(*facts));
	if ((run = run_new(spec)) == NULL)
		goto fail;
	if ((run->app = calloc(1, sizeof(*run->app))) == NULL)
		goto fail;
	run->app->fd = -1;
	if (encode_request(run->app, spec) != RC_OK)
		goto fail;
	process = workers_take(
	    program, clock_mono() + program->timeout, &error, &why);
	if (process == NULL)
		goto fail;
	if ((run->app->fd = workers_connect(process)) == -1) {
		error = errno;
		why = "no connection to its socket";
		goto fail;
	}
	run->app->process = process;
	run->child = *workers_child(process);
	run->started = run->looked = clock_mono();
	run->deadline = run->started + run->timeout;
	FAULT(HANDLER_STARTED);
	return run;
fail:
	log_event(LOG_ERROR, "handler-not-started", spec->log,
	    LOG_S("program", program->argv.item[0]), LOG_S("step", "process"),
	    LOG_S("error", strerror(error)), LOG_S("why", why));
	if (process != NULL)
		workers_give(process);
	if (run != NULL)
		app_free(run);
	facts->end = RUN_NOT_STARTED;
	facts->error = error;
	return NULL;
}

int64_t
run_app_lock(const struct run *run)
{
	return workers_lock(run->app->process);
}

void
run_app_cancel(struct run *run)
{
	struct workers_process *process = run->app->process;

	assert(run->app->sent == 0);
	app_free(run);
	workers_give(process);
}

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
		run->over = app->ended || run->exited;
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
	pfd[1].fd = workers_stderr(app->process);
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
	if (run->output > run->max_output)
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

	while (workers_read_stderr(process, &run->errlog))
		continue;
	/* No process of a terminated handler's group may go on. */
	if (run->stage != STAGE_RUNNING && !run->facts.left)
		child_signal(&run->child, SIGKILL);
	workers_unwatch(process);
	if (!run->facts.left)
		return child_reap(workers_child(process));
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
	} else if (facts->end == RUN_EXITED)
		facts->end = RUN_CUT;
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
		if (run->exited) {
			(void)app_bury(run);
			workers_lost(process, true);
		} else
			workers_give(process);
	} else {
		status = app_bury(run);
		app_lost(run, facts, status);
	}
	errlog_end(&run->errlog);
	app_free(run);
}
