/*
 * An exchange (RFC 9113, section 8.1): a whole request, and its answer.
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
 * reset.  Never blocks: the leader sends the bytes that the peer does not take
 * at once.  The response to HEAD gets no body. */
void exchange_answer(struct exchange *x, struct answer *answer);

/* Sends some output of a handler unchanged.  Blocks at most io_timeout without
 * progress, and not after mux_stop_waiting().  RC_CLOSED: the peer is gone. */
enum rc exchange_write(struct exchange *x, const void *data, size_t len);

/* Ends an exchange after exchange_write().  broken: the output is not whole,
 * so the connection is closed without FCGI_END_REQUEST. */
void exchange_end(struct exchange *x, int app_status, bool broken);

/* For mux.c: sends the rest of an answer that the peer did not take at once.
 * Afterwards the connection is parked, at its next request, or ended. */
void exchange_send(struct exchange *x);

#endif
