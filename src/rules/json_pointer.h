/*
 * JSON Pointers (RFC 6901): a set of them, followed all at once while a text
 * is read from its outside to its inside.
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
	char *tokens; /* of all of them */
};

/*
 * The pointers whose first tokens are the path of the value at hand.  They
 * are sorted, so these stand side by side: [lo, hi); off is how many bytes of
 * each are used up.
 */
struct json_span {
	size_t lo, hi, off;
};

/* All of list must be valid.  RC_OK or RC_NOMEM; json_pointer_free() is due
 * in either case. */
enum rc json_pointer_init(struct json_pointers *, const struct conf_list *list);
void json_pointer_free(struct json_pointers *);

/* All of them: the path of the whole text. */
struct json_span json_pointer_all(const struct json_pointers *);

/* Those of the span whose next token is name, a canonical string.  None of
 * the span may end where it stands. */
struct json_span json_pointer_descend(
    const struct json_pointers *, struct json_span, const char *name);

/* The same for an element: its index in decimal digits is the token. */
struct json_span json_pointer_descend_index(
    const struct json_pointers *, struct json_span, size_t index);

/* Whether one of the span ends where it stands. */
bool json_pointer_ends(const struct json_pointers *, struct json_span);

#endif
