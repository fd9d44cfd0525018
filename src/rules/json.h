/*
 * Canonical JSON bytes, or "not I-JSON" (RFC 7493).
 *
 * Two texts have the same canonical bytes exactly when they are the same
 * I-JSON value: members are sorted as in RFC 8785, strings are unescaped,
 * numbers are exact decimals (1, 1.0 and 10e-1 agree; -0 and 0 agree).
 * Numbers are never turned into binary floating point, and an exponent never
 * makes the output longer than the input.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "conf.h"
#include "json_pointer.h"

enum json_verdict {
	JSON_OK,
	JSON_NOT_IJSON, /* syntax, duplicate names, surrogates, UTF-8, depth,
			 * or longer than LIMIT_JSON */
	JSON_NO_MEMORY
};

/* The most memory (bytes) that json_canonical() needs for a text of that
 * length, out included. */
size_t json_cost(size_t len);

/*
 * Appends the canonical form of text to out.  Members that a pointer of ignore
 * (RFC 6901) names are left out.  They do not resolve duplicates: a text with
 * duplicate names is not I-JSON even there.  Elements that a pointer names are
 * left out too, and those behind them move up.  All pointers must be valid.
 * The form is never longer than the text; if out may not grow by that length,
 * JSON_NO_MEMORY.  On failure out is unchanged.
 */
enum json_verdict json_canonical(const void *text, size_t len,
    const struct conf_list *ignore, struct buf *out);

#endif
