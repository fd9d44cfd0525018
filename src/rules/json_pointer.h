/*
 * JSON Pointers (RFC 6901): a set of them, all followed at once while a text
 * is read from the outside to the inside.
 */
#ifndef JSON_POINTER_H
#define JSON_POINTER_H

#include <stdbool.h>
#include <stddef.h>

#include "conf.h"

struct json_pointer {
	const char *tokens; /* unescaped, each followed by NUL */
	size_t len;
};

struct json_pointers {
	struct json_pointer *item; /* sorted */
	size_t n;
	char *tokens; /* the tokens of all pointers */
};

/*
 * The pointers that begin with the path of the current value.  They are
 * sorted, so these stand side by side: [lo, hi).  off is the number of bytes
 * of each that are used up.
 */
struct json_span {
	size_t lo, hi, off;
};

/* Makes the set.  All pointers of list must be valid.  RC_OK or RC_NOMEM; in
 * both cases the caller calls json_pointer_free(). */
enum rc
json_pointer_init(struct json_pointers *set, const struct conf_list *list);
void json_pointer_free(struct json_pointers *set);

/* All pointers: the path of the whole text. */
struct json_span json_pointer_all(const struct json_pointers *set);

/* The pointers of the span with name, a canonical string, as the next token.
 * No pointer of the span may end at the current value. */
struct json_span json_pointer_descend(
    const struct json_pointers *set, struct json_span s, const char *name);

/* The same for an element: its index in decimal digits is the token. */
struct json_span json_pointer_descend_index(
    const struct json_pointers *set, struct json_span s, size_t index);

/* Whether a pointer of the span ends at the current value. */
bool json_pointer_ends(const struct json_pointers *set, struct json_span s);

#endif
