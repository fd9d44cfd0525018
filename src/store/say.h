/*
 * Writes for a handler that shares the key store and has no SQL of its own: a
 * recovery point, an effect, its response, or effects that must be committed
 * together with one of these.
 *
 * Each call is one transaction through the view that SQL would use, so the same
 * rules and messages apply.  No call creates the database, or keeps
 * a lock after its transaction.  The process needs only the right to read and
 * write the database.
 */
#ifndef SAY_H
#define SAY_H

#include <stddef.h>
#include <stdint.h>

#include "rc.h"

/* The views refuse a payload or a body that is larger than this (bytes). */
#define SAY_MAX 16777216

struct say;

struct say_effect {
	const char *topic;
	const void *payload;
	size_t len;
};

/* Each call waits at most patience (ms) for the write lock.  On failure err (of
 * errsize bytes) gets a sentence that names the file. */
enum rc say_open(struct say **, const char *database, int64_t patience,
    char *err, size_t errsize);
void say_close(struct say *);

/*
 * token is the handler's ONCE_TOKEN.
 *
 * RC_OK: the change is committed and durable.  RC_INVALID: the view refused it.
 * RC_BUSY, RC_FULL, RC_NOMEM: nothing was written, and the caller may try
 * again.  Any other value: the write failed.  say_why() returns the reason.
 */
enum rc say_emit(struct say *, const char *token, const struct say_effect *);
enum rc say_checkpoint(struct say *, const char *token, const char *point,
    const struct say_effect *, size_t neffects);
/* headers: "Name: value" lines, each with its line end. */
enum rc
say_respond(struct say *, const char *token, int status, const char *headers,
    const void *body, size_t len, const struct say_effect *, size_t neffects);

/* The reason why the last call failed. */
const char *say_why(const struct say *);

#endif
