/*
 * A loop: one thread that waits for descriptors, times and messages of other
 * threads, and calls one function for each.  No such function may wait for
 * anything.
 *
 * The structs below are parts of their owners: nothing is allocated, so nothing
 * can fail but the kernel's list of descriptors.  All functions but loop_send()
 * belong to the thread of the loop.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "rc.h"

/* The struct of that type whose member p points to. */
#define OWNER(p, type, member) \
	((type *)(void *)((char *)(p)-offsetof(type, member)))

struct loop;

/* A descriptor that is watched. */
struct loop_watch {
	/* Is called with events that have come: EPOLLIN, EPOLLOUT, EPOLLERR,
	 * EPOLLHUP.  It may end any watch, and free its owner. */
	void (*ready)(struct loop_watch *w, unsigned events);
	int fd; /* the loop's; -1: it is not watched */
	unsigned events;
};

/* A time. */
struct loop_timer {
	void (*due)(struct loop_timer *t);
	int64_t at; /* clock_mono() (ms) */
	bool is_set;
	struct loop_timer *child, *next, *back; /* the loop's */
};

/* Something that another thread has to say, or that can wait until the other
 * calls of this round have returned. */
struct loop_message {
	void (*come)(struct loop_message *m);
	struct loop_message *next; /* the loop's */
};

/* RC_NOMEM, RC_IO: logged. */
enum rc loop_open(struct loop **out);
/* Nothing is watched or set, and all messages have come; NULL is allowed.  A
 * sender of such a message may still be in loop_send(). */
void loop_close(struct loop *l);

/* Serves what has come, and waits before that if there is nothing; but not
 * beyond that time of clock_mono() (ms). */
void loop_round(struct loop *l, int64_t until);

/* Rounds until loop_end(). */
void loop_run(struct loop *l);
void loop_end(struct loop *l);

/* The time when this round began: clock_mono() (ms). */
int64_t loop_now(const struct loop *l);
/* The number of this round; not 0. */
uint64_t loop_round_number(const struct loop *l);

/*
 * Watches a descriptor for EPOLLIN, EPOLLOUT or both; with EPOLLET each change
 * is told once.  w->ready is set, and w->fd is -1 unless it is watched already:
 * then its events change.  RC_NOMEM, RC_IO (logged): the kernel refused it.
 */
enum rc
loop_watch(struct loop *l, struct loop_watch *w, int fd, unsigned events);

/* Ends a watch, if there is one; before its descriptor is closed.  No call
 * comes afterwards. */
void loop_unwatch(struct loop *l, struct loop_watch *w);

/* Sets a timer, which may be set already.  The call comes once, at that time or
 * later. */
void loop_set(struct loop *l, struct loop_timer *t, int64_t at);
void loop_clear(struct loop *l, struct loop_timer *t);

/* Sends a message; any thread.  It is the loop's until it comes. */
void loop_send(struct loop *l, struct loop_message *m);

/*
 * Within a call: what it does from now on; a constant.  A test build
 * (--enable-record-checks) logs a call of the loop, or a part of it that this
 * begins, that takes longer than 50 ms; the tests fail then.
 */
void loop_doing(const char *what);

#endif
