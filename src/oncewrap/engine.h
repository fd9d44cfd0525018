/*
 * The request path:
 *
 *   request -> route -> key -> fingerprint -> reserve -> decide
 *           -> run handler -> judge outcome -> complete -> answer
 *
 * It knows no FastCGI, no SQL and no clock but through its rooms.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"

struct engine;
struct run;

/* The store must outlive the engine.  NULL: no memory. */
struct engine *engine_new(struct store *store, unsigned workers);
void engine_free(struct engine *engine);

/* From now on no request waits for another request to finish, and none is
 * reserved. */
void engine_drain(struct engine *engine);

/*
 * Handles one request; any thread may call it.  NULL: answer, which the caller
 * has initialised, is complete.  Otherwise the caller sends what this run
 * writes, and calls run_finish().  The request gets another instance when its
 * key is known: its Reference (see store_reference()).
 */
struct run *engine_handle(struct engine *engine, const struct conf *conf,
    struct request *rq, struct answer *answer);

#endif
