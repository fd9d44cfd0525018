/*
 * The request path:
 *
 *   request -> route -> key -> fingerprint -> reserve -> decide
 *           -> run handler -> judge outcome -> complete -> answer
 *
 * It knows no FastCGI, no SQL and no clock but through its rooms.  All of it
 * belongs to the thread of the loop.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "conf.h"
#include "helpers.h"
#include "store.h"

struct engine;
struct exchange;

struct engine_owner {
	/* is called whenever the last request under way has been answered */
	void (*idle)(void *arg);
	void *arg;
};

/* workers: programs that run for requests at once.  The store and the loop must
 * outlive the engine.  RC_NOMEM, or the store cannot be read. */
enum rc engine_open(struct engine **out, struct store *store, struct loop *loop,
    unsigned workers, const struct engine_owner *owner);

/* No request is under way, and none comes. */
void engine_close(struct engine *engine);

/* After that, when the loop does not go round any more; NULL is allowed. */
void engine_free(struct engine *engine);

/* Those for what a slow disk may delay. */
struct helpers *engine_helpers(struct engine *engine);

struct runs *engine_runs(struct engine *engine);

/* Begins to handle a request; its answer is sent some time. */
void engine_handle(struct engine *engine, struct exchange *x);

/* Whether no request is under way. */
bool engine_is_idle(const struct engine *engine);

/* The configuration, and perhaps the processes that stay, have changed. */
void engine_reload(struct engine *engine);

/* From now on no request waits for another one, and none is reserved. */
void engine_drain(struct engine *engine);

#endif
