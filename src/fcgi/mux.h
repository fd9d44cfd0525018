/*
 * All connections to web servers: accepts, reads requests without ever
 * waiting for one peer, hands whole requests to workers, and sends answers.
 *
 * One thread at a time does it, the leader (leader.h).  Any worker may
 * become leader, within mux_next(), and hands the lead on before it waits.
 * A peer that is silent, stalls, trickles or keeps its connection costs a
 * descriptor and no thread; one that stalls for io_timeout in mid-request, or
 * does not take its answer, is dropped.
 */
#ifndef MUX_H
#define MUX_H

#include "answer.h"
#include "confbox.h"
#include "request.h"

struct mux;
struct exchange; /* one request and the way back */

/* Starts the spare thread.  The listening socket stays the caller's. */
enum rc mux_open(struct mux **, struct confbox *, int listen_fd);

/*
 * No more connections; returns when the listening socket is not used any more.
 * take_waiting: those that wait to be accepted are, for nobody else will.
 */
void mux_refuse(struct mux *, bool take_waiting);

/*
 * No more connections, and no more requests but those that are arriving: bytes
 * of them are here, or their connection is new.  Closes the others; then, at
 * the latest at arrive_until, drops what is still half read, and lets
 * mux_next() return NULL once the queue is empty.  Does not wait.
 */
void mux_stop(struct mux *, int64_t arrive_until_mono);

/* From now on exchange_write() waits for no peer. */
void mux_hurry(struct mux *);

/* After the workers are gone: sends what is still to be sent, at most
 * until_mono, and ends the thread. */
void mux_close(struct mux *, int64_t until_mono);

/* The next whole request, body read or drained; blocks, and meanwhile may
 * serve connections.  NULL: mux_stop(). */
struct exchange *mux_next(struct mux *);

const struct request *exchange_request(const struct exchange *);
const struct conf *exchange_conf(const struct exchange *);

/* Sends the whole answer and ends the exchange.  Takes over *answer, which is
 * reset; never blocks: what the peer does not take at once, who has the turn
 * sends.  A HEAD request gets no body. */
void exchange_answer(struct exchange *, struct answer *);

/* Some output of a handler, as it is; blocks at most io_timeout without
 * progress, and not after mux_hurry().  RC_CLOSED: the peer is gone. */
enum rc exchange_write(struct exchange *, const void *, size_t);

/* Ends an exchange after exchange_write().  broken: the output is not whole,
 * so the connection is closed without FCGI_END_REQUEST. */
void exchange_end(struct exchange *, int app_status, bool broken);

#endif
