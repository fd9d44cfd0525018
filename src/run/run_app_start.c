/*
 * The start of a FastCGI request: its bytes, and the process or application
 * that gets it.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "fcgi.h"
#include "leader.h"
#include "limit.h"
#include "log.h"
#include "run_connect.h"
#include "workers.h"
#include "run_app.h"

static enum rc
encode_request(struct run_app *app, const struct run_spec *spec)
{
	enum rc rc;

	buf_init(&app->send, (size_t)2 * LIMIT_ENV + FCGI_CONTENT_MAX + 64);
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

void
run_app_free(struct run *run)
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

/* Connects to a process or to the address; *error and *why if that failed. */
static bool
reach(struct run *run, const struct conf_program *program, int *error,
    const char **why)
{
	const int64_t until = clock_mono() + program->timeout;
	struct run_app *app = run->app;

	if (conf_program_address(program) != NULL) {
		leader_yield();
		app->fd = run_connect(
		    conf_program_address(program), until, error, why);
		return app->fd != -1;
	}
	while (
	    (app->process = workers_take(program, until, error, why)) != NULL) {
		if ((app->fd = workers_connect(app->process)) != -1) {
			run->child = *workers_child(app->process);
			return true;
		}
		*error = errno;
		*why = "no connection to its socket";
		if (*error != ECONNREFUSED && *error != EAGAIN) {
			/* The process is not the cause. */
			workers_give(app->process);
			break;
		}
		workers_reject(app->process, "it took no connection");
	}
	return false;
}

struct run *
run_start_app(const struct run_spec *spec, const struct conf_program *program,
    struct run_facts *facts)
{
	struct run *run;
	const char *why = "there is no memory for the request";
	int error = ENOMEM;

	memset(facts, 0, sizeof(*facts));
	if ((run = run_new(spec)) == NULL)
		goto fail;
	if ((run->app = malloc(sizeof(*run->app))) == NULL)
		goto fail;
	memset(run->app, 0, offsetof(struct run_app, in));
	run->app->fd = -1;
	if (encode_request(run->app, spec) != RC_OK)
		goto fail;
	if (!reach(run, program, &error, &why))
		goto fail;
	run->started = run->looked = clock_mono();
	run->deadline = run->started + run->timeout;
	FAULT(HANDLER_STARTED);
	return run;
fail:
	log_event(LOG_ERROR, "handler-not-started", spec->log,
	    LOG_S("program", program->argv.item[0]), LOG_S("step", "process"),
	    LOG_S("error", strerror(error)), LOG_S("why", why));
	if (run != NULL)
		run_app_free(run);
	facts->end = RUN_NOT_STARTED;
	/* Nothing is missing that a client could name. */
	facts->error =
	    conf_program_address(program) != NULL ? ECONNREFUSED : error;
	return NULL;
}

int64_t
run_app_lock(const struct run *run)
{
	return run->app->process != NULL ? workers_lock(run->app->process) : 0;
}

void
run_app_cancel(struct run *run)
{
	struct workers_process *process = run->app->process;

	assert(run->app->sent == 0);
	run_app_free(run);
	if (process != NULL)
		workers_give(process);
}
