/*
 * How a run reaches its application: a process that stays, or an address.  From
 * then on the spawner tells of a process that it prints, or that it has exited.
 */
#include "config.h"

#include <errno.h>

#include "fault.h"
#include "run.h"
#include "run_impl.h"
#include "workers.h"
#include "workers_impl.h"

/* It cannot be reached. */
static void
unreached(struct run *run, int error, const char *why)
{
	const struct conf_program *program = run->app->program;

	(void)run_not_started(program, "process", error, why, run->log);
	run->facts.end = RUN_NOT_STARTED;
	/* Nothing is missing that a client could name. */
	run->facts.error =
	    conf_program_address(program) != NULL ? ECONNREFUSED : error;
	run->over = true;
	run_moved(run);
}

static void
reached(struct run *run)
{
	run_begin(run);
	loop_set(
	    run->runs->loop, &run->late, run_is_draining() ? 0 : run->deadline);
	FAULT(HANDLER_STARTED);
	run_moved(run);
}

static void
connection_made(struct run_connect *c)
{
	struct run *run = OWNER(c, struct run_app, connect)->run;

	if ((run->out = c->fd) != -1)
		reached(run);
	else
		unreached(run, c->error, run_connect_why(c->error));
}

/* There is a process, or none. */
static void
asked(struct workers_ask *ask)
{
	struct run *run = OWNER(ask, struct run_app, ask)->run;
	int error;

	if (ask->process == NULL)
		unreached(run, ask->error, workers_why(ask->error));
	else if ((run->out = workers_connect(ask->process)) != -1) {
		run->child = ask->process->child;
		reached(run);
	} else if ((error = errno) == ECONNREFUSED || error == EAGAIN) {
		workers_reject(ask->process, "it took no connection");
		/* Its time may have ended while this was on the way. */
		loop_set(run->runs->loop, &run->late,
		    run_is_draining() ? 0 : run->deadline);
		workers_ask(ask, run->app->program);
	} else {
		/* The process is not the cause. */
		workers_give(ask->process);
		ask->process = NULL;
		unreached(run, error, "no connection to its socket");
	}
}

/* The process has printed something, or has exited. */
static void
news_of_process(struct workers_ask *ask, bool exited)
{
	struct run *run = OWNER(ask, struct run_app, ask)->run;

	workers_read_stderr(ask->process, &run->errlog);
	if (exited) {
		run->exited = true;
		/* What it wrote last is still to be read. */
		run->out_ready = true;
	}
	run_moved(run);
}

void
run_reach(struct run *run)
{
	struct run_app *app = run->app;
	const char *address = conf_program_address(app->program);

	app->connect.loop = run->runs->loop;
	app->connect.told = connection_made;
	app->ask.loop = &run->runs->workers;
	app->ask.told = asked;
	app->ask.news = news_of_process;
	if (run_is_draining())
		unreached(run, ESHUTDOWN,
		    address != NULL ? run_connect_why(ESHUTDOWN)
				    : workers_why(ESHUTDOWN));
	else if (address != NULL)
		run_connect_begin(&app->connect);
	else
		workers_ask(&app->ask, app->program);
}

void
run_reach_not(struct run *run, int error)
{
	struct run_app *app = run->app;

	if (conf_program_address(app->program) != NULL) {
		run_connect_cancel(&app->connect);
		unreached(run, error, run_connect_why(error));
	} else if (workers_withdraw(&app->ask))
		unreached(run, error, workers_why(error));
}
