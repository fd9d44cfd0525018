/*
 * A connection to an application that oncewrap does not start.
 *
 * A full queue of a unix socket refuses at once (EAGAIN), so it is tried again;
 * with TCP the kernel does that.  An address at which nothing listens is no
 * matter of time: the caller is told at once.
 */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "run.h"
#include "run_impl.h"

/* Pauses (ms) between two tries at a full queue: doubled after each. */
#define QUEUE_PAUSE      1
#define QUEUE_PAUSE_MOST 50

/* Closes it, and keeps errno. */
static int
give_up(int fd, int error)
{
	if (fd != -1)
		close(fd);
	errno = error;
	return -1;
}

/* Waits, at most ms.  False: all runs are to be ended, or the time is up. */
static bool
pause_for(int ms, int64_t until)
{
	struct pollfd pfd = { .fd = run_drain_fd(), .events = POLLIN };
	const int left = clock_left(until);

	errno = left == 0 ? ETIMEDOUT : ESHUTDOWN;
	return left > 0 && poll(&pfd, 1, ms < left ? ms : left) <= 0;
}

static int
connect_unix(const char *path, int64_t until)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, error, ms = QUEUE_PAUSE;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	for (;;) {
		fd = socket(
		    AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd == -1 ||
		    connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
			return fd;
		error = errno;
		(void)give_up(fd, error);
		if (error != EAGAIN || !pause_for(ms, until))
			return -1;
		if (ms < QUEUE_PAUSE_MOST)
			ms *= 2;
	}
}

/* Waits for the end of a connect(2) that has begun. */
static int
await(int fd, int64_t until)
{
	struct pollfd pfd[2] = { { .fd = fd, .events = POLLOUT },
		{ .fd = run_drain_fd(), .events = POLLIN } };
	socklen_t size = sizeof(int);
	int n, error = 0;

	do
		n = poll(pfd, 2, clock_left(until));
	while (n == -1 && errno == EINTR);
	if (n == 0)
		return ETIMEDOUT;
	if (n == -1)
		return errno;
	if (pfd[0].revents == 0)
		return ESHUTDOWN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1)
		return errno;
	return error;
}

static int
connect_one(const struct addrinfo *ai, int64_t until)
{
	int error,
	    fd = socket(
		ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1 || connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return fd;
	error = errno == EINPROGRESS ? await(fd, until) : errno;
	return error == 0 ? fd : give_up(fd, error);
}

/* where: host:port, or [address]:port, as the configuration has checked. */
static int
connect_tcp(const char *where, int64_t until)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL, *ai;
	const char *port = strrchr(where, ':');
	size_t n = (size_t)(port - where);
	char host[256];
	int fd = -1, error;

	if (*where == '[') {
		where++;
		n -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)n, where);
	error = getaddrinfo(host, port + 1, &hints, &found);
	if (error != 0) {
		errno = error == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
		return -1;
	}
	for (ai = found; ai != NULL && fd == -1; ai = ai->ai_next)
		fd = connect_one(ai, until);
	error = errno;
	freeaddrinfo(found);
	errno = error;
	return fd;
}

int
run_connect(const char *address, int64_t until, int *error, const char **why)
{
	int fd = -1;

	errno = ESHUTDOWN;
	if (run_is_draining())
		fd = -1;
	else if (strncmp(address, "unix:", 5) == 0)
		fd = connect_unix(address + 5, until);
	else
		fd = connect_tcp(address + 4, until);
	*error = errno;
	*why = fd != -1               ? ""
	    : *error == ETIMEDOUT     ? "it took no connection in time"
	    : *error == EADDRNOTAVAIL ? "its host has no address"
	    : *error == EACCES
	    ? "this user may not connect to the socket: see its mode"
	    : *error == ENOENT
	    ? "there is no such socket: is the application running?"
	    : *error == ECONNREFUSED
	    ? "nothing listens there: is the application running?"
	    : "no connection";
	return fd;
}
