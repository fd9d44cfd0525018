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

#include "conf.h"
#include "request.h"
#include "response.h"
#include "run.h"
#include "store.h"

struct engine;

/* spool_dir and store must outlive it. */
struct engine *engine_new(struct store *, unsigned workers);
void engine_free(struct engine *);

/*
 * What goes back.  Either response is the whole answer, or stream is a
 * running handler whose output is to be handed on as it comes.
 */
struct answer {
	struct response response;
	struct spool *spool; /* what response.body points into, or NULL */
	struct buf text;     /* or this */
	struct run *stream;  /* the reader calls run_finish() */
};

void answer_init(struct answer *);
void answer_free(struct answer *);

/* Handles one request, from any thread; always leaves an answer. */
void engine_handle(struct engine *, const struct conf *, const struct request *,
    struct answer *);

/* The answer to a stream that ended before its first byte. */
void engine_stream_failed(const struct conf *, const struct request *,
    const struct run_facts *, struct answer *);

#endif
