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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* --- a kind of store, for handlers: what implements it -------------------- */

/* What one transaction writes: a recovery point, a response, or neither; and
 * effects. */
struct handler_api_write {
	const char *token;
	const char *point; /* NULL: none */
	bool responds;
	int status;
	const char *headers;
	const void *body;
	size_t len;
	const struct handler_api_effect *effects;
	size_t neffects;
};

struct handler_api_ops {
	enum rc (*write)(
	    struct handler_api *, const struct handler_api_write *);
	const char *(*why)(const struct handler_api *);
	void (*close)(struct handler_api *);
};

/* The struct handler_api of every store begins with this. */
struct handler_api_base {
	const struct handler_api_ops *ops;
};

/* handler_api_open() of the store on SQLite. */
enum rc sqlite_handler_api_open(struct handler_api **out, const char *database,
    int64_t patience, char *err, size_t errsize);

/* Names the effect in why, if that says that an effect was refused.  In a
 * header, because oncewrap has none of handler_api.c. */
static inline void
handler_api_name_effect(
    char *why, size_t size, const struct handler_api_effect *effect)
{
	const size_t n = strlen(why);

	if (strncmp(why, "once_outbox.", strlen("once_outbox.")) == 0)
		snprintf(
		    why + n, size - n, " (topic \"%.100s\")", effect->topic);
}

#endif
