/*
 * What a handler without SQL of its own says to a key store that it shares: a
 * recovery point, an effect, its answer; and effects that are not to come apart
 * from either.
 *
 * Each is one transaction through the view that SQL would use, so the same
 * rules hold, in the same words.  Nothing is made, upgraded or locked for
 * longer than that, and no more is needed than to read and write the database.
 */
#ifndef SAY_H
#define SAY_H

#include <stddef.h>
#include <stdint.h>

#include "rc.h"

/* What the views take at most of a payload or a body: bytes. */
#define SAY_MAX 16777216

struct say;

struct say_effect {
	const char *topic;
	const void *payload;
	size_t len;
};

/* patience (ms) is how long each waits for the write lock.  On failure err (of
 * errsize bytes) gets a sentence that names the file. */
enum rc say_open(struct say **, const char *database, int64_t patience,
    char *err, size_t errsize);
void say_close(struct say *);

/*
 * token is the handler's ONCE_TOKEN.
 *
 * RC_OK: it is in the database, and durable.  RC_INVALID: the view refused it.
 * RC_BUSY, RC_FULL, RC_NOMEM: nothing was written, and it may be tried again.
 * Others: it failed.  say_why() says more.
 */
enum rc say_emit(struct say *, const char *token, const struct say_effect *);
enum rc say_checkpoint(struct say *, const char *token, const char *point,
    const struct say_effect *, size_t neffects);
/* headers: "Name: value" lines, each with its end. */
enum rc
say_respond(struct say *, const char *token, int status, const char *headers,
    const void *body, size_t len, const struct say_effect *, size_t neffects);

/* Why the last one did not succeed. */
const char *say_why(const struct say *);

#endif
