/*
 * The thread of the loop, which serves all requests, and has done what is due.
 * These functions are for
 * the main thread.
 */
#ifndef SERVE_H
#define SERVE_H

#include "acceptor.h"
#include "conf.h"
#include "store.h"

struct serve;
struct workers_pool;

/* Begins to serve.  The caller keeps listener and store.  RC_NOMEM, RC_IO,
 * RC_INVALID (see mux_open()): it is logged. */
enum rc serve_start(
    struct serve **out, struct conf *conf, int listener, struct store *store);

/* Replaces the configuration; takes a reference to it, and takes over *peers
 * (mux_peers()) and the pools (workers_prepare()). */
void serve_reload(struct serve *s, struct conf *conf, struct peers *peers,
    struct workers_pool *pools);

/* Returns when the listening socket is not used any more: mux_refuse(). */
void serve_refuse(struct serve *s, bool take_waiting);

/* mux_stop(); what is due does not begin any more. */
void serve_stop(struct serve *s, int64_t arrive_until_mono);

/* Whether serve_stop() was called, all requests have been answered, and what
 * was due has ended.  When that becomes true, this process gets SIGUSR1. */
bool serve_ended(const struct serve *s);

/* From now on no request is reserved, or waits for another one or for a
 * peer. */
void serve_drain(struct serve *s);

/* After serve_ended(): sends the rest of the answers, at most until then. */
void serve_close(struct serve *s, int64_t until_mono);

/* After that: ends the processes that stay, and the thread.  NULL is
 * allowed. */
void serve_end(struct serve *s);

#endif
