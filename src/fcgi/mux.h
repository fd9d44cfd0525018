/*
 * All connections to web servers: mux accepts, reads requests without ever
 * waiting for one peer, gives whole requests to its owner, and sends answers.
 *
 * All of this is done in the thread of one loop (loop.h), which calls every
 * function below but mux_peers(); mux_open() may also come before that thread
 * begins, and mux_free() after it has ended.  A peer that is silent, stalls,
 * trickles or keeps its connection costs a descriptor and no more.  A peer that
 * stalls for io_timeout in mid-request, or does not take its answer, is
 * dropped.
 */
#ifndef MUX_H
#define MUX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "conf.h"
#include "helpers.h"
#include "loop.h"

struct mux;
struct exchange; /* see exchange.h */

/* How far the end is: each comes once, in this order. */
enum mux_event {
	MUX_REFUSED, /* the listening socket is not used any more */
	MUX_STOPPED, /* no request begins any more */
	MUX_CLOSED   /* no connection is left: mux_free() may be called */
};

struct mux_owner {
	struct loop *loop;
	/* These write and free the files of large bodies; NULL: the loop does.
	 * None of their tasks is mux's once it is closed. */
	struct helpers *helpers;
	/* The most connections at once; 0: LIMIT_CONNECTIONS. */
	unsigned connections;
	/* Gets a whole request, its body read or drained, and ends it by a
	 * function of exchange.h: at once, or later. */
	void (*take)(void *arg, struct exchange *x);
	/* Is told how far the end is; never within a call of mux. */
	void (*told)(void *arg, enum mux_event event);
	void *arg;
};

/* The users that may connect: those that allow_peers names. */
struct peers {
	bool anyone;
	uid_t *uid; /* n of them */
	size_t n;
};

/*
 * Begins to accept.  Takes a reference to the configuration, and copies *owner;
 * the caller keeps the listening socket.  RC_INVALID: allow_peers names a user
 * that does not exist; this is logged, as other errors are.
 */
enum rc mux_open(struct mux **out, const struct mux_owner *owner,
    struct conf *conf, int listen_fd);

/* No connection is left, or none was accepted.  NULL is allowed. */
void mux_free(struct mux *m);

/* Looks the users of allow_peers up, for mux_reload(); any thread.  RC_INVALID
 * as above, RC_NOMEM: it is logged, and *peers is empty. */
enum rc mux_peers(const struct conf *conf, struct peers *peers);

/*
 * Replaces the configuration; takes a reference to it, and takes *peers over.
 * Requests that have begun keep the one that they began with.
 */
void mux_reload(struct mux *m, struct conf *conf, struct peers *peers);

/* Accepts no more connections: MUX_REFUSED comes.  take_waiting: the
 * connections in the backlog are accepted first, because no other process will
 * accept them. */
void mux_refuse(struct mux *m, bool take_waiting);

/*
 * Accepts no more connections, and begins no more requests but those that are
 * arriving: some of their bytes are here, or their connection is new.  Closes
 * the other connections.  At the latest at arrive_until_mono it drops the
 * requests that are not whole: MUX_STOPPED comes.
 */
void mux_stop(struct mux *m, int64_t arrive_until_mono);

/* From now on exchange_write() waits for no peer. */
void mux_stop_waiting(struct mux *m);

/* Stops at once, if that has not been done, and sends the remaining answers, at
 * most until until_mono: MUX_CLOSED comes once the owner has ended all of its
 * exchanges as well. */
void mux_close(struct mux *m, int64_t until_mono);

#endif
