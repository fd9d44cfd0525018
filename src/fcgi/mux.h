/*
 * All connections to web servers: mux accepts, reads requests without ever
 * waiting for one peer, hands whole requests to workers, and sends answers.
 *
 * One thread at a time does this, the leader (leader.h).  Any worker may
 * become leader, within mux_next(), and hands the lead on before it waits.  A
 * peer that is silent, stalls, trickles or keeps its connection costs a
 * descriptor and no thread.  A peer that stalls for io_timeout in mid-request,
 * or does not take its answer, is dropped.
 */
#ifndef MUX_H
#define MUX_H

#include "conf.h"
#include "peers.h"

struct mux;
struct exchange; /* see exchange.h */

/*
 * Starts the standby thread.  Takes a reference to the configuration; the
 * caller keeps the listening socket.  RC_INVALID: allow_peers names a user that
 * does not exist; this is logged, as other errors are.
 */
enum rc mux_open(struct mux **out, struct conf *conf, int listen_fd);

/* Looks the users of allow_peers up, for mux_reload().  RC_INVALID as above,
 * RC_NOMEM: it is logged, and *peers is empty. */
enum rc mux_peers(const struct conf *conf, struct peers *peers);

/*
 * Replaces the configuration; takes a reference to it, and takes *peers over.
 * Requests that have begun keep the one that they began with.
 */
void mux_reload(struct mux *m, struct conf *conf, struct peers *peers);

/*
 * Accepts no more connections; returns when the listening socket is not used
 * any more.  take_waiting: the connections in the backlog are accepted first,
 * because no other process will accept them.
 */
void mux_refuse(struct mux *m, bool take_waiting);

/*
 * Accepts no more connections, and begins no more requests but those that are
 * arriving: some of their bytes are here, or their connection is new.  Closes
 * the other connections.  At the latest at arrive_until_mono it drops the
 * requests that are not whole, and lets mux_next() return NULL once the queue
 * is empty.  Does not wait.
 */
void mux_stop(struct mux *m, int64_t arrive_until_mono);

/* From now on exchange_write() waits for no peer. */
void mux_stop_waiting(struct mux *m);

/* To be called after the workers have ended: sends the remaining answers, at
 * most until until_mono, and ends the standby thread. */
void mux_close(struct mux *m, int64_t until_mono);

/* Returns the next whole request, its body read or drained.  Blocks, and
 * meanwhile may serve connections.  NULL: mux_stop() was called and the queue
 * is empty. */
struct exchange *mux_next(struct mux *m);

#endif
