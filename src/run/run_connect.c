/*
 * A connection to an application that oncewrap does not start.
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

#include "clock.h"
#include "run_impl.h"

/* Pauses (ms) between two tries at a full queue: doubled after each. */
#define QUEUE_PAUSE      1
#define QUEUE_PAUSE_MOST 50

static void
drop(struct run_connect *c)
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
		drop(c);
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
	drop(c);
	c->next = c->next->ai_next;
	run_connect_begin(c);
}

/* host:port, or [address]:port, as the configuration has checked -> the host.
 * Returns the port. */
static const char *
split(const char *where, char host[256])
{
	const char *port = strrchr(where, ':');
	const int brackets = *where == '[';

	snprintf(host, 256, "%.*s", (int)(port - where) - 2 * brackets,
	    where + brackets);
	return port + 1;
}

bool
run_connect_waits(const char *address)
{
	struct in6_addr number;
	char host[256];

	if (strncmp(address, "unix:", 5) == 0)
		return false;
	(void)split(address + 4, host);
	return inet_pton(AF_INET, host, &number) != 1 &&
	    inet_pton(AF_INET6, host, &number) != 1;
}

int
run_connect_find(struct run_connect *c, const char *address)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	char host[256];
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
	port = split(address + 4, host);
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
	drop(c);
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
