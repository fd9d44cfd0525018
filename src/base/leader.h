/*
 * Which thread leads: one thread at a time receives, and handles what it has
 * received.
 *
 * The leader waits for connections, reads requests, and handles the next one
 * itself.  As long as a request is only looked up and answered, it stays in
 * one thread, and no thread is woken for it.  Before the leader waits for
 * anything - a commit, a program, another request - it hands the lead on.  The
 * calls of store and run that wait do that by leader_yield(), not their
 * callers.
 *
 * One thread stands by: it handles nothing, and leads while all workers are
 * busy.  It also takes the lead from a worker that handles one request for
 * longer than a few milliseconds.
 */
#ifndef LEADER_H
#define LEADER_H

#include <stdbool.h>

#include "rc.h"

struct leader;

enum leader_task {
	LEADER_RECEIVE, /* this thread leads: receive, then ask again */
	LEADER_HANDLE,  /* one of the requests that were posted */
	LEADER_STOP     /* nothing is left; this thread does not lead */
};

/* RC_OK or RC_NOMEM.  close: after all threads are through with it. */
enum rc leader_open(struct leader **);
void leader_close(struct leader *);

/*
 * What a worker does next; waits until there is something.  A worker that
 * still leads after handling a request stays leader.
 */
enum leader_task leader_next(struct leader *);

/* One more request is there to be handled.  Only the leader calls it. */
void leader_post(struct leader *);

/*
 * This thread is going to wait: hands the lead on if it leads while it handles
 * a request.  Any thread may call it at any time, holding no lock; it costs
 * next to nothing in a thread that does not lead.
 */
void leader_yield(void);

/* The standby thread: waits until it leads, to receive once; then it must call
 * again. */
void leader_stand_by(struct leader *);

/* Whether this thread leads. */
bool leader_leads(struct leader *);

/* No worker becomes leader any more: leader_next() gives what was posted, then
 * LEADER_STOP.  The standby thread leads as soon as no other does. */
void leader_stop(struct leader *);

#endif
