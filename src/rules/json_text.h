/*
 * Private to json: a text that was read, and its strings and numbers.
 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "limit.h"

/*
 * A member of an object.  Members are numbered in the order of their names in
 * the text: those inside a member's value come next after it.
 *
 * The members of one object are a ring, in the order of their names.
 */
struct json_member {
	uint32_t name; /* offset of the opening quote */
	uint32_t next; /* in the ring; with JSON_LAST in the last member */
};

#define JSON_LAST UINT32_C(0x80000000)
_Static_assert(LIMIT_JSON < JSON_LAST, "offsets and numbers have 31 bits");

struct json {
	/* The text without blanks, with canonical strings and numbers, and the
	 * members in the order in which they came; then a NUL. */
	char *text;
	size_t len;
	struct json_member *member;
};

/* What is left to read, and where what was read is written: the caller has
 * made room for as much as there is to read, and for one byte more. */
struct json_text {
	const unsigned char *p, *end;
	char *out, *limit;
};

static inline void
json_put(struct json_text *t, const void *bytes, size_t n)
{
	assert(n <= (size_t)(t->limit - t->out));
	memcpy(t->out, bytes, n);
	t->out += n;
}

/*
 * Reads the string with its opening quote at t->p, and writes it in UTF-8,
 * escaped only as RFC 8785, section 3.2.2.2 requires.  False: it is no string
 * of I-JSON.
 */
bool json_text_string(struct json_text *t);

/*
 * Reads the number that begins at t->p, and writes the shorter of 150 and 15e1,
 * and the first of these if both are as short.  False: it
 * is no number.
 */
bool json_text_number(struct json_text *t);

/* Returns the end of the string of a text that was read, behind its closing
 * quote. */
const char *json_text_end(const char *p);

/* Takes the next byte that the rest of a canonical string stands for; -1: the
 * string ends there. */
int json_text_byte(const char **p);

/* Compares two canonical strings in the order of RFC 8785, section 3.2.3
 * (UTF-16 code units): < 0, 0 or > 0.  Both point to
 * the opening quote. */
int json_text_order(const char *a, const char *b);

#endif
