/*
 * Strings of a JSON text: read, written in canonical form, compared.
 */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include "buf.h"

/* The rest of the input. */
struct json_input {
	const unsigned char *p, *end;
};

/*
 * Reads the string with its opening quote at in->p and appends it to out, in
 * UTF-8 and escaped only as RFC 8785, section 3.2.2.2 requires.  RC_INVALID if
 * it is no string of I-JSON, or the result of buf_add(); on failure out may
 * hold a part.
 */
enum rc json_string(struct json_input *in, struct buf *out);

/* Returns the end of the string of a valid text that begins at p, behind its
 * closing quote. */
const char *json_string_end(const char *p);

/* Takes the next byte of the rest of a canonical string.  Returns its rank in
 * the order of json_string_order(), below JSON_STRING_RANKS; 0: the string
 * ends there. */
#define JSON_STRING_RANKS 0xf6
int json_string_rank(const char **p);

/* Compares two canonical strings by UTF-16 code units (RFC 8785, section
 * 3.2.3): < 0, 0 or > 0.  Both point to the opening quote. */
int json_string_order(const char *a, const char *b);

/* Compares a canonical string and plain text, by bytes. */
int json_string_order_text(const char *a, const char *text);

#endif
