/*
 * How a run reaches its application: an address, or a process that stays.
 *
 * A full queue of a unix socket refuses at once (EAGAIN), so it is tried again;
 * with TCP the kernel does that.  An address at which nothing listens is no
 * matter of time: the caller is told at once.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "clock.h"
#include "fault.h"
#include "run.h"
#include "run_impl.h"
#include "workers.h"
#include "workers_impl.h"

/* --- a connection ------------------------------------------------------- */

/* Pauses (ms) between two tries at a full queue: doubled after each. */
#define QUEUE_PAUSE      1
#define QUEUE_PAUSE_MOST 50

static void
drop_process(struct run_connect *c)
{
	if (c->fd != -1)
		close(c->fd);
	c->fd = -1;
}

/* Tries the next addresses. */
void
run_connect_begin(struct run_connect *c)
{
	const struct addrinfo *ai;

	for (; (ai = c->next) != NULL; c->next = ai->ai_next) {
		c->error = 0;
		c->fd = socket(ai->ai_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (c->fd != -1 &&
		    connect(c->fd, ai->ai_addr, ai->ai_addrlen) == 0)
			break;
		c->error = errno;
		if (c->fd != -1 && c->error == EINPROGRESS &&
		    loop_watch(c->loop, &c->watch, c->fd, EPOLLOUT) == RC_OK)
			return;
		drop_process(c);
		if (ai == &c->named && c->error == EAGAIN) {
			loop_set(c->loop, &c->pause, clock_mono() + c->ms);
			if (c->ms < QUEUE_PAUSE_MOST)
				c->ms *= 2;
			return;
		}
	}
	c->told(c);
}

static void
pause_over(struct loop_timer *t)
{
	run_connect_begin(OWNER(t, struct run_connect, pause));
}

/* connect(2) has ended. */
static void
connect_ended(struct loop_watch *w, unsigned events)
{
	struct run_connect *c = OWNER(w, struct run_connect, watch);
	socklen_t size = sizeof(int);

	(void)events;
	loop_unwatch(c->loop, w);
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &c->error, &size) == -1)
		c->error = errno;
	if (c->error == 0) {
		c->told(c);
		return;
	}
	drop_process(c);
	c->next = c->next->ai_next;
	run_connect_begin(c);
}

bool
run_connect_waits(const char *address)
{
	struct in6_addr number;
	char host[ADDRESS_HOST];

	if (strncmp(address, "unix:", 5) == 0)
		return false;
	(void)address_split(address + 4, host);
	return inet_pton(AF_INET, host, &number) != 1 &&
	    inet_pton(AF_INET6, host, &number) != 1;
}

int
run_connect_find(struct run_connect *c, const char *address)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	char host[ADDRESS_HOST];
	const char *port;
	int error;

	c->fd = -1;
	c->ms = QUEUE_PAUSE;
	c->pause = (struct loop_timer){ .due = pause_over };
	c->watch = (struct loop_watch){ .ready = connect_ended, .fd = -1 };
	c->found = NULL;
	if (strncmp(address, "unix:", 5) == 0) {
		c->path.sun_family = AF_UNIX;
		snprintf(c->path.sun_path, sizeof(c->path.sun_path), "%s",
		    address + 5);
		c->named = (struct addrinfo){ .ai_family = AF_UNIX,
			.ai_addr = (struct sockaddr *)&c->path,
			.ai_addrlen = sizeof(c->path) };
		c->next = &c->named;
		return 0;
	}
	port = address_split(address + 4, host);
	error = getaddrinfo(host, port, &hints, &c->found);
	if (error != 0) {
		c->found = NULL;
		return error == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
	}
	c->next = c->found;
	return 0;
}

void
run_connect_cancel(struct run_connect *c)
{
	loop_clear(c->loop, &c->pause);
	loop_unwatch(c->loop, &c->watch);
	drop_process(c);
}

void
run_connect_free(struct run_connect *c)
{
	if (c->found != NULL)
		freeaddrinfo(c->found);
	c->found = NULL;
}

const char *
run_connect_why(int error)
{
	return error == ETIMEDOUT    ? "it took no connection in time"
	    : error == EADDRNOTAVAIL ? "its host has no address"
	    : error == EACCES
	    ? "this user may not connect to the socket: see its mode"
	    : error == ENOENT
	    ? "there is no such socket: is the application running?"
	    : error == ECONNREFUSED
	    ? "nothing listens there: is the application running?"
	    : "no connection";
}

/* --- a run ---------------------------------------------------------------- */

/* It cannot be reached. */
static void
app_unreached(struct run *run, int error, const char *why)
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
app_reached(struct run *run)
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
		app_reached(run);
	else
		app_unreached(run, c->error, run_connect_why(c->error));
}

/* There is a process, or none. */
static void
process_asked(struct workers_ask *ask)
{
	struct run *run = OWNER(ask, struct run_app, ask)->run;
	int error;

	if (ask->process == NULL)
		app_unreached(run, ask->error, workers_why(ask->error));
	else if ((run->out = workers_connect(ask->process)) != -1) {
		run->child = ask->process->child;
		app_reached(run);
	} else if ((error = errno) == ECONNREFUSED || error == EAGAIN) {
		workers_reject(ask->process, "it took no connection");
		/* Its end may have been told by now. */
		run->exited = run->out_ready = false;
		/* Its time may have ended while this was on the way. */
		loop_set(run->runs->loop, &run->late,
		    run_is_draining() ? 0 : run->deadline);
		workers_ask(ask, run->app->program);
	} else {
		/* The process is not the cause. */
		workers_give(ask->process);
		ask->process = NULL;
		app_unreached(run, error, "no connection to its socket");
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
	app->ask.told = process_asked;
	app->ask.news = news_of_process;
	if (run_is_draining())
		app_unreached(run, ESHUTDOWN,
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
		app_unreached(run, error, run_connect_why(error));
	} else if (workers_withdraw(&app->ask))
		app_unreached(run, error, workers_why(error));
}
