/*
 * Idempotency-Key field value -> key, or the error in it.  The value is an RFC
 * 9651 String (section 3.3.3), with parameters that are ignored, or a bare
 * token: visible ASCII without '"', ',', ';' and '\'.
 */
#ifndef KEY_H
#define KEY_H

#include "conf.h"
#include "limit.h"

enum key_verdict {
	KEY_OK,
	KEY_ABSENT, /* there is none */
	KEY_EMPTY,
	KEY_TOO_SHORT,
	KEY_TOO_LONG,
	KEY_LIST,       /* a joined value: more than one item */
	KEY_NOT_STRING, /* a bare token where key_syntax = string */
	KEY_MALFORMED,
	/* of a key from elsewhere than a header */
	KEY_TWICE,     /* two members of that name */
	KEY_NOT_TEXT,  /* not UTF-8, or with control characters */
	KEY_NOT_A_KEY, /* JSON: neither a string nor an integer */
	KEY_BAD_FORM,  /* the body is no multipart/form-data */
	KEY_BAD_JSON,  /* the body is not I-JSON */
	KEY_NOT_GIVEN  /* once_key: ONCE_FORM_KEY never had that value */
};

struct key {
	char text[LIMIT_KEY + 1]; /* quotes and escapes removed */
	size_t len;
};

/* On any verdict but KEY_OK, *out is empty. */
enum key_verdict
key_parse(const char *value, const struct conf_route *route, struct key *out);

/* The same of any length from 1 to LIMIT_KEY. */
enum key_verdict
key_read(const char *value, enum conf_key_syntax syntax, struct key *out);

/*
 * Checks a key, or a part of one, from elsewhere than a header, which is taken
 * as it is: UTF-8 without control characters, and not empty.
 */
enum key_verdict key_check_text(const char *s, size_t len);

/* Checks the length of a key. */
enum key_verdict key_check_length(const struct conf_route *route, size_t len);

/* A sentence for the problem's detail; static storage. */
const char *key_verdict_text(enum key_verdict verdict);

#endif
