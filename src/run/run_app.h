/*
 * A run as a FastCGI request, for run_app.c and run_app_start.c alone.
 */
#ifndef RUN_APP_H
#define RUN_APP_H

#include "buf.h"
#include "fcgi_client.h"
#include "run_impl.h"

struct workers_process;

#define RUN_APP_INPUT (16 * 1024)

struct run_app {
	struct workers_process *process; /* NULL: another's application */
	struct fcgi_client client;
	int fd; /* -1: closed */
	/* what is sent now, and the body that follows */
	struct buf send;
	size_t sent;
	const char *body;
	size_t body_left;
	bool body_ended, all_sent, any_sent;
	/* what has come, and the output in it */
	size_t in_at, in_len;
	const unsigned char *out;
	size_t out_len;
	bool any_output;
	bool ended;   /* FCGI_END_REQUEST has come */
	bool closing; /* the connection is closed; the process should end */
	unsigned char in[RUN_APP_INPUT]; /* last: it is not zeroed */
};

/* Frees the run, and closes its connection. */
void run_app_free(struct run *run);

#endif
