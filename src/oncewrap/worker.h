/*
 * A worker takes a complete request from mux, has the engine handle it, and
 * sends the answer or streams the handler's output.  No other file knows both.
 */
#ifndef WORKER_H
#define WORKER_H

#include "engine.h"
#include "mux.h"

struct worker_pool;

/*
 * Starts n threads.  Handlers die with the thread that started them, so the
 * threads live until mux_next() returns NULL.  If not all threads can be
 * started, mux is stopped.
 */
enum rc worker_start(struct worker_pool **out, struct mux *mux,
    struct engine *engine, unsigned n);

/* Whether all workers have ended; the last one sends this process SIGUSR1. */
bool worker_ended(const struct worker_pool *pool);

/* Waits for all workers and frees the pool. */
void worker_join(struct worker_pool *pool);

#endif
