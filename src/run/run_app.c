/*
 * A run as a FastCGI request: to a process that stays (workers.h), or to an
 * application that oncewrap does not start.
 *
 * The request is sent and the answer read as either is possible, so that
 * neither side can wait for the other.  The run is over at
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
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "fcgi.h"
#include "limit.h"
#include "log.h"
#include "run.h"
#include "run_impl.h"
#include "workers.h"
#include "workers_impl.h"

/* Time (ms) for a process that has closed its connection to end by itself. */
#define CLOSE_GRACE 200

/* So many records are sent in a row, before others have their turn: the
 * application may read as fast as it is sent to. */
#define RECORDS 8

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
	if (fcgi_client_stdin(&app->send, app->body, n) != RC_OK) {
		/* Without memory nothing is sent until the timeout. */
		app->body_ended = true;
		return false;
	}
	app->body_ended = n == 0;
	app->body_left -= n;
	app->body += n;
	return true;
}

/* An application may answer before it has read all, and close the connection:
 * that is no error until its answer is read. */
void
run_app_send(struct run *run)
{
	struct run_app *app = run->app;
	ssize_t n;

	for (int i = 0; i < RECORDS && !app->all_sent && run->out != -1; i++) {
		if (app->sent == app->send.len && !next_record(app)) {
			app->all_sent = true;
			break;
		}
		n = send(run->out, app->send.data + app->sent,
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
	run_watch_out(run);
}

void
run_send(struct run *run)
{
	if (run->app != NULL && !run->over && !run->app->any_sent)
		run_app_send(run);
}

/* --- the answer --------------------------------------------------------- */

static void
close_connection(struct run *run)
{
	loop_unwatch(run->runs->loop, &run->watch_out);
	run_close(&run->out, 1);
	run->out = -1;
}

/* Handles the records that have come into p, and leaves their output there,
 * in a row.  Returns its length. */
static size_t
decode_records(struct run *run, unsigned char *p, size_t len)
{
	struct run_app *app = run->app;
	struct fcgi_client *c = &app->client;
	size_t at, used, n = 0;

	for (at = 0; at < len && !c->over; at += used) {
		switch (fcgi_client_feed(c, p + at, len - at, &used)) {
		case FCGI_CLIENT_MORE:
			break;
		case FCGI_CLIENT_STDOUT:
			memmove(p + n, c->bytes, c->len);
			n += c->len;
			app->any_output = true;
			break;
		case FCGI_CLIENT_STDERR:
			errlog_add(
			    &run->errlog, (const char *)c->bytes, c->len);
			break;
		case FCGI_CLIENT_END:
			app->ended = true;
			close_connection(run);
			break;
		case FCGI_CLIENT_ERROR:
			log_event(LOG_WARN, "handler-protocol", run->log,
			    LOG_S("why", c->why));
			close_connection(run);
			run_end(run, RUN_CUT);
			break;
		}
	}
	return n;
}

size_t
run_app_take(struct run *run, void *p, size_t size)
{
	size_t taken = 0;
	ssize_t n;

	while (taken == 0 && run->out_ready) {
		n = run->out == -1 ? 0 : recv(run->out, p, size, MSG_DONTWAIT);
		/* A process that has exited writes no more: what it wrote is
		 * there, and after it this process's end of the connection
		 * finds the end. */
		run->out_ready = n > 0 && run->exited;
		if (n > 0)
			taken = decode_records(run, p, (size_t)n);
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			close_connection(run);
		run_watch_out(run);
	}
	return taken;
}

bool
run_app_is_over(struct run *run)
{
	struct run_app *app = run->app;

	if (run->over || !run->reached)
		return run->over;
	switch (run->phase) {
	case PHASE_RUNNING:
		if (!app->ended && run->out == -1 && app->ask.process != NULL &&
		    !run->exited && !run->closing) {
			/* Its end, if it is dying, says more than the end of
			 * its connection. */
			run->closing = true;
			run_set_deadline(run, CLOSE_GRACE);
			run->exited = child_exited(&run->child);
		}
		run->over = app->ended || (run->exited && !run->out_ready) ||
		    (run->out == -1 && app->ask.process == NULL);
		break;
	case PHASE_TERMINATED:
		/* Other processes of its group may still work. */
		run->over = run->facts.left ||
		    (run->exited && run->out == -1 &&
			app->ask.process->err == -1);
		break;
	case PHASE_KILLED:
		run->over = run->facts.left || run->exited;
		break;
	}
	return run->over;
}

/* --- the end ------------------------------------------------------------ */

/* Ends what is left of it.  Returns its exit status, or minus a signal; 0 if it
 * was given up. */
static int
app_bury(struct run *run)
{
	struct workers_process *process = run->app->ask.process;
	int status;

	workers_read_stderr(process, &run->errlog);
	/* No process of its group may go on. */
	if (!run->facts.left)
		child_signal(&run->child, SIGKILL);
	workers_leave(process);
	status = run_reap(&process->child, run->facts.left, run->log);
	if (!run->facts.left)
		workers_log_end(process, run->child.pid, status,
		    run->phase == PHASE_RUNNING ? "it ended by itself" : "",
		    run->log);
	return status;
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
		/* An exit status is an int; all its bits must not become 0. */
		facts->exit_status = app->client.status <= INT_MAX
		    ? (int)app->client.status
		    : INT_MAX;
}

/* The process is lost. */
static void
app_lost(struct run *run, struct run_facts *facts, int status)
{
	struct workers_process *process = run->app->ask.process;
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
	struct workers_process *process = app->ask.process;

	close_connection(run);
	if (app->ended && run->phase == PHASE_RUNNING) {
		app_answered(run, facts);
		/* What it printed meanwhile. */
		if (process != NULL)
			workers_read_stderr(process, &run->errlog);
		if (process != NULL && run->exited) {
			(void)app_bury(run);
			workers_lost(process, true);
		} else if (process != NULL && app->client.refused)
			workers_reject(process, "it refused the request");
		else if (process != NULL)
			workers_give(process);
	} else if (process != NULL)
		app_lost(run, facts, app_bury(run));
	else if (!app->any_sent)
		app_not_started(run, facts, "nothing of it could be written");
	else if (facts->end == RUN_EXITED)
		facts->end = RUN_CUT;
}

/* --- the start ---------------------------------------------------------- */

static enum rc
encode_request(struct run_app *app, const struct run_spec *spec)
{
	enum rc rc;

	fcgi_client_init(&app->client);
	app->body = spec->body;
	app->body_left = spec->body_len;
	/* PATH is this process's, for programs that it starts. */
	rc = fcgi_client_begin(&app->send, spec->envp,
	    conf_program_address(&spec->program) != NULL ? "PATH" : NULL);
	if (rc != RC_OK)
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

struct run *
run_start_app(const struct run_spec *spec, const struct conf_program *program,
    struct run_facts *facts)
{
	const char *address = conf_program_address(program);
	const char *why = "there is no memory for the request";
	int error = ENOMEM;
	struct run *run;

	memset(facts, 0, sizeof(*facts));
	if ((run = run_new(spec)) != NULL &&
	    (run->app = calloc(1, sizeof(*run->app))) != NULL) {
		run->app->run = run;
		run->app->program = program;
		buf_init(&run->app->send,
		    (size_t)2 * LIMIT_ENV + FCGI_CONTENT_MAX + 64);
		if (encode_request(run->app, spec) == RC_OK) {
			error = address == NULL
			    ? 0
			    : run_connect_find(&run->app->connect, address);
			if (error == 0)
				return run;
			why = run_connect_why(error);
		}
	}
	(void)run_not_started(program, "process", error, why, spec->log);
	run_free(run);
	facts->end = RUN_NOT_STARTED;
	/* Nothing is missing that a client could name. */
	facts->error = address != NULL ? ECONNREFUSED : error;
	return NULL;
}

bool
run_stays(const struct run *run)
{
	return run->app != NULL;
}

int64_t
run_lock(const struct run *run)
{
	return run->app != NULL && run->app->ask.process != NULL
	    ? run->app->ask.process->lock
	    : 0;
}

void
run_cancel(struct run *run)
{
	assert(run->app != NULL && run->reached && !run->app->any_sent);
	close_connection(run);
	if (run->app->ask.process != NULL)
		workers_give(run->app->ask.process);
	run_free(run);
}
