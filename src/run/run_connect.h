/*
 * A connection to a FastCGI application that oncewrap does not start, made in a
 * loop.
 */
#ifndef RUN_CONNECT_H
#define RUN_CONNECT_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/un.h>

#include "loop.h"

struct run_connect {
	/* set by the caller */
	struct loop *loop;
	void (*told)(struct run_connect *c); /* it is made, or has failed */
	/* the result: a descriptor, or -1 and an errno value */
	int fd, error;
	/* its own */
	struct addrinfo *found; /* of a host */
	struct sockaddr_un path;
	struct addrinfo named; /* of the path */
	const struct addrinfo *next;
	struct loop_timer pause;
	int ms;
	struct loop_watch watch;
};

/* Whether run_connect_find() may wait: the address has the name of a host. */
bool run_connect_waits(const char *address);

/* Finds "unix:/path" or "tcp:host:port"; any thread.  0, or an errno value. */
int run_connect_find(struct run_connect *c, const char *address);

/* Begins, after run_connect_find().  told() may come at once. */
void run_connect_begin(struct run_connect *c);

/* Gives up: told() does not come. */
void run_connect_cancel(struct run_connect *c);

/* Frees what was found.  The connection stays. */
void run_connect_free(struct run_connect *c);

/* Why there is no connection. */
const char *run_connect_why(int error);

#endif
