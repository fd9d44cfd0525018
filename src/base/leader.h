/*
 * Which thread leads: one thread at a time receives requests, and handles
 * them.
 *
 * The leader waits for connections, reads requests, and handles the next one
 * itself.  A request that is only looked up and answered stays in one thread,
 * and no other thread is woken for it.  Before the leader waits for a commit,
 * a program or another request, it hands the lead on.  The waiting calls of
 * store and run do that by leader_yield(), not their callers.
 *
 * One thread stands by: it handles no requests, and leads while all workers
 * are busy.  It also takes the lead from a worker that handles one request for
 * longer than a few milliseconds.
 */
#ifndef LEADER_H
#define LEADER_H

#include <stdbool.h>

#include "rc.h"

struct leader;

enum leader_task {
	LEADER_RECEIVE, /* this thread leads: it receives, then asks again */
	LEADER_HANDLE,  /* this thread handles one of the posted requests */
	LEADER_STOP     /* nothing is left; this thread does not lead */
};

/* leader_open() returns RC_OK or RC_NOMEM.  leader_close() is called after all
 * threads have stopped using it. */
enum rc leader_open(struct leader **out);
void leader_close(struct leader *l);

/*
 * Returns the worker's next task; waits until there is one.  A worker that
 * still leads after handling a request stays leader.
 */
enum leader_task leader_next(struct leader *l);

/* Posts one more request to be handled.  Only the leader calls it. */
void leader_post(struct leader *l);

/*
 * The calling thread is about to wait: if it leads while it handles a request,
 * it hands the lead on.  Any thread may call this at any time while it holds
 * no lock.  In a thread that does not lead, the call costs next to nothing.
 */
void leader_yield(void);

/* For the standby thread: waits until it leads.  It then receives once and
 * calls again. */
void leader_stand_by(struct leader *l);

/* Whether this thread leads. */
bool leader_leads(struct leader *l);

/* After this call no worker becomes leader: leader_next() gives the posted
 * requests, then LEADER_STOP.  The standby thread leads as soon as no other
 * thread does. */
void leader_stop(struct leader *l);

#endif
