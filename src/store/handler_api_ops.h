/*
 * A kind of store, for handlers: the functions that implement handler_api.h,
 * whose comments hold for them.  handler_api.c calls them.
 */
#ifndef HANDLER_API_OPS_H
#define HANDLER_API_OPS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "handler_api.h"

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
