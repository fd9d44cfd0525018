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
#define HANDLER_API_MAX 16777216

struct handler_api_effect {
	const char *topic;
	const void *payload;
	size_t len;
};

/* What one transaction writes: a recovery point, a response, or neither; and
 * effects. */
struct handler_api_write {
	const char *token; /* the handler's ONCE_TOKEN */
	const char *point; /* NULL: none */
	bool responds;
	int status;
	const char *headers; /* "Name: value" lines, each with its line end */
	const void *body;
	size_t len;
	const struct handler_api_effect *effects;
	size_t neffects;
};

/*
 * Opens the database, writes that, and closes it; waits at most patience (ms)
 * for the write lock.
 *
 * RC_OK: the change is committed and durable.  RC_INVALID: the view refused it.
 * RC_BUSY, RC_FULL, RC_NOMEM: nothing was written, and the caller may try
 * again.  Any other value: it failed.  why (of size bytes) gets the reason.
 */
enum rc handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size);

/* The same, of the store on SQLite. */
enum rc sqlite_handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size);

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
