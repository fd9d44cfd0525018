/*
 * Helpers: a few threads that do what may wait, for a loop.  A task is a part
 * of its owner.  Threads are started when they are needed, and live until
 * helpers_close(): what they have started dies with them.
 */
#ifndef HELPERS_H
#define HELPERS_H

#include "loop.h"

struct helpers;

struct helpers_task {
	void (*work)(struct helpers_task *t); /* in a helper */
	void (*done)(struct helpers_task *t); /* in the loop, afterwards */
	bool first;                /* it does not wait for those that are not */
	struct helpers_thread *by; /* the helpers' */
	struct helpers_task *next;
	struct loop_message message;
};

/* At most that many threads, with that name: see thread_start().  RC_NOMEM. */
enum rc helpers_open(
    struct helpers **out, struct loop *l, const char *name, unsigned most);

/* Starts the first thread now, so that no task is done in a call.  RC_NOMEM: it
 * could not be started, which is logged. */
enum rc helpers_start(struct helpers *h);

/* Ends the threads; all tasks have come back.  NULL is allowed. */
void helpers_close(struct helpers *h);

/* Gives a task to a helper, in the order of the calls but for .first; by the
 * loop's thread.  Where no thread can be started, the task is done in the call.
 */
void helpers_ask(struct helpers *h, struct helpers_task *t);

#endif
