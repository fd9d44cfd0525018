/*
 * An exchange (RFC 9113, section 8.1): a whole request, and its answer.  All
 * functions belong to the thread of the loop, and none waits.  An exchange is
 * gone after exchange_answer() and exchange_end().
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "answer.h"
#include "conf.h"
#include "request.h"

struct exchange;

struct request *exchange_request(struct exchange *x);
const struct conf *exchange_conf(const struct exchange *x);

/* Sends the whole answer and ends the exchange.  Takes over *answer, which is
 * reset.  What the peer does not take at once is sent later.  The response to
 * HEAD gets no body. */
void exchange_answer(struct exchange *x, struct answer *answer);

/*
 * Sends a part of a handler's output unchanged.  RC_OK: the peer has taken it.
 * RC_PENDING: some of it is still unsent, and the next part must wait until
 * there is room.  RC_CLOSED: the peer is gone; this is logged once.
 */
enum rc exchange_write(struct exchange *x, const void *data, size_t len);

/* After RC_PENDING: room is called once, when the peer has taken all of it,
 * or is gone: it took nothing for io_timeout, or mux_stop_waiting() was
 * called. */
void exchange_on_room(struct exchange *x, void (*room)(void *arg), void *arg);

/* Ends an exchange after exchange_write(), of which some may be unsent: then
 * room is not called any more.  broken: the output is not whole, so the
 * connection is closed without FCGI_END_REQUEST. */
void exchange_end(struct exchange *x, int app_status, bool broken);

#endif
