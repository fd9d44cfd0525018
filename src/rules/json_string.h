/*
 * Strings of a JSON text: read, written in canonical form, compared.
 */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include "buf.h"

/* What is left to be read. */
struct json_input {
	const unsigned char *p, *end;
};

/*
 * Reads the string whose opening quote is at in->p and appends it to out, in
 * UTF-8 and escaped only as RFC 8785, section 3.2.2.2 says.  RC_INVALID if it
 * is no string of I-JSON, or what buf_add() says; out may then hold a part.
 */
enum rc json_string(struct json_input *in, struct buf *out);

/* The order of two canonical strings by UTF-16 code units (RFC 8785, section
 * 3.2.3): < 0, 0 or > 0.  Both point to the opening quote. */
int json_string_order(const char *, const char *);

/* The order of a canonical string and plain text, by bytes. */
int json_string_order_text(const char *, const char *text);

#endif
