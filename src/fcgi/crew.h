/*
 * Which thread does what: one has the turn, the others handle requests or are
 * free.
 *
 * Whoever has the turn waits for connections, reads requests, and handles the
 * next one himself: as long as a request is only looked up and answered, it
 * stays in one thread, and nobody is woken for it.  Who is going to wait for
 * anything - a commit, a program, another request - passes the turn on first.
 *
 * One thread is spare: it handles nothing, and has the turn while all workers
 * are busy.  It also takes the turn from a worker that does not come back with
 * it, whatever he may be waiting for.
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>

#include "rc.h"

struct crew;

enum crew_task {
	CREW_RECEIVE, /* has the turn: to receive, then to ask again */
	CREW_HANDLE,  /* one of the requests that were posted is his */
	CREW_STOP     /* there is nothing left, and he has not the turn */
};

enum rc crew_open(struct crew **);
void crew_close(struct crew *); /* after all threads are through with it */

/* What a worker does next; waits until there is something.  Who had the turn
 * before he went to handle a request, and still has, keeps it. */
enum crew_task crew_next(struct crew *);

/* One more request is there to be handled.  Only by whoever has the turn. */
void crew_post(struct crew *);

/* This thread is going to wait: lets go of the turn, if it has it. */
void crew_pass(struct crew *);

/* Of the spare thread: waits until it has the turn, to receive once; then it
 * must come back. */
void crew_spare(struct crew *);

/* Whether this thread has the turn. */
bool crew_has_turn(struct crew *);

/* No worker takes the turn any more: crew_next() gives what was posted, then
 * CREW_STOP.  The spare thread has the turn as soon as it is free. */
void crew_stop(struct crew *);

#endif
