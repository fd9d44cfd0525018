/*
 * JSON texts, and their canonical bytes (RFC 7493: I-JSON).
 *
 * Two texts have the same canonical bytes exactly when they are the same
 * I-JSON value: members are sorted as in RFC 8785, strings are unescaped,
 * numbers are exact decimals (1, 1.0 and 10e-1 agree; -0 and 0 agree).
 * Numbers are never turned into binary floating point, and an exponent never
 * makes the output longer than the input by more than a 64th.
 *
 * A text is read once; its key and its canonical bytes come from what was
 * read.  For n bytes both take O(n log n) steps, whatever the depth and the
 * order of the members.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "conf.h"

/* A text that was read. */
struct json;

enum json_verdict {
	JSON_OK,
	JSON_NOT_IJSON, /* syntax, duplicate names, surrogates, UTF-8, depth,
			 * or longer than LIMIT_JSON */
	JSON_NO_MEMORY
};

/* The most memory (bytes) for a text of that length: that of json_read() and
 * of one canonical form.  0: such a text is not read. */
size_t json_cost(size_t len);

/* *out is NULL on any verdict but JSON_OK.  The caller frees it, and may free
 * the text before. */
enum json_verdict json_read(struct json **out, const void *text, size_t len);
void json_free(struct json *json);

/*
 * Appends the canonical form to out.  Members that a pointer of ignore (RFC
 * 6901) names are left out.  Elements that a pointer names are left out too,
 * and those behind them move up.  All pointers must be valid.  RC_OK, RC_NOMEM,
 * or RC_LIMIT if out may not grow so far; on failure out is unchanged.
 */
enum rc json_canonical(
    const struct json *json, const struct conf_list *ignore, struct buf *out);

/*
 * Appends the key that a JSON Pointer names to out: a string as it is, or an
 * integer in its decimal form (1, 1.0 and 10e-1 are the integer 1).
 * RC_NOTFOUND: the pointer leads nowhere; RC_INVALID: to neither a string nor
 * an integer; RC_LIMIT: out may not grow so far; RC_NOMEM.
 */
enum rc
json_find(const struct json *json, const char *pointer, struct buf *out);

/* --- written -------------------------------------------------------------- */

/*
 * An object that is being written, member after member; the first failure
 * stays.  No tree is made of it first: every duplicate of a request gets a
 * problem, and a tree took longer than the lookup of the key.
 */
struct json_write {
	struct buf *out;
	enum rc rc;
};

/* Appends text as it is: braces. */
void json_write_raw(struct json_write *o, const char *text);

/* Writes the name of a member, after a comma if it is not the first of its
 * object. */
void json_write_name(struct json_write *o, const char *name);

/* Writes a member.  A byte of a text that is no UTF-8 becomes U+FFFD.  A text
 * that is NULL and a time of the wall clock (ms) that is 0 become null. */
void json_write_text(struct json_write *o, const char *name, const char *value);
void json_write_time(struct json_write *o, const char *name, int64_t wall);
void json_write_number(struct json_write *o, const char *name, int64_t value);
void json_write_bool(struct json_write *o, const char *name, bool value);

#endif
