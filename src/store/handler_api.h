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
#ifndef HANDLER_API_H
#define HANDLER_API_H

#include <stddef.h>
#include <stdint.h>

#include "rc.h"

/* The views refuse a payload or a body that is larger than this (bytes). */
#define SAY_MAX 16777216

struct handler_api;

struct handler_api_effect {
	const char *topic;
	const void *payload;
	size_t len;
};

/* Each call waits at most patience (ms) for the write lock.  On failure err (of
 * errsize bytes) gets a sentence that names the file. */
enum rc handler_api_open(struct handler_api **api, const char *database,
    int64_t patience, char *err, size_t errsize);
void handler_api_close(struct handler_api *api);

/*
 * token is the handler's ONCE_TOKEN.
 *
 * RC_OK: the change is committed and durable.  RC_INVALID: the view refused it.
 * RC_BUSY, RC_FULL, RC_NOMEM: nothing was written, and the caller may try
 * again.  Any other value: the write failed.  handler_api_why() returns the
 * reason.
 */
enum rc handler_api_emit(struct handler_api *api, const char *token,
    const struct handler_api_effect *effect);
enum rc handler_api_checkpoint(struct handler_api *api, const char *token,
    const char *point, const struct handler_api_effect *effects,
    size_t neffects);
/* headers: "Name: value" lines, each with its line end. */
enum rc handler_api_respond(struct handler_api *api, const char *token,
    int status, const char *headers, const void *body, size_t len,
    const struct handler_api_effect *effects, size_t neffects);

/* The reason why the last call failed. */
const char *handler_api_why(const struct handler_api *api);

#endif
