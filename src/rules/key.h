/*
 * Idempotency-Key field value -> key, or the error in it.  The value is an RFC
 * 9651 String (section 3.3.3), with parameters that are ignored, or a bare
 * token: visible ASCII without '"', ',', ';' and '\'.
 */
#ifndef KEY_H
#define KEY_H

#include "conf.h"
#include "limit.h"
#include "words.h"

/* Each verdict with its sentence for the problem's detail: see words.h.
 * KEY_NOT_STRING: a bare token where key_syntax = string.  Those from KEY_TWICE
 * on are of a key from elsewhere than a header; KEY_NOT_GIVEN: ONCE_FORM_KEY
 * never had that value. */
/* clang-format off */
#define KEY_VERDICTS(X) \
	X(KEY_OK, "The key is well-formed.") \
	X(KEY_ABSENT, "There is no key.") \
	X(KEY_EMPTY, "The key is empty.") \
	X(KEY_TOO_SHORT, "The key is shorter than this resource allows.") \
	X(KEY_TOO_LONG, "The key is longer than this resource allows.") \
	X(KEY_LIST, "There is more than one key.") \
	X(KEY_NOT_STRING, "The key must be a quoted String (RFC 9651).") \
	X(KEY_MALFORMED, "The key is neither a quoted String (RFC 9651) nor " \
	    "a token of visible ASCII characters.") \
	X(KEY_TWICE, "It is there more than once.") \
	X(KEY_NOT_TEXT, "The key is not UTF-8 text, or has control " \
	    "characters.") \
	X(KEY_NOT_A_KEY, "The value is neither a string nor an integer.") \
	X(KEY_BAD_FORM, "The body is not a complete multipart/form-data.") \
	X(KEY_BAD_JSON, "The body is not valid JSON (I-JSON, RFC 7493), or " \
	    "longer than 16M.") \
	X(KEY_NOT_GIVEN, "The value is not one that this server has put " \
	    "into a form.")
/* clang-format on */

enum key_verdict { KEY_VERDICTS(WORDS_ENUMERATOR) };

struct key {
	char text[LIMIT_KEY + 1]; /* quotes and escapes removed */
	size_t len;
};

/* Counts every character, and stores those that fit. */
void key_add(struct key *key, char c);

/* Reads a key of any length from 1 to LIMIT_KEY.  On any verdict but KEY_OK,
 * *out is empty. */
enum key_verdict
key_read(const char *value, enum conf_key_syntax syntax, struct key *out);

/*
 * Checks a key, or a part of one, from elsewhere than a header, which is taken
 * as it is: UTF-8 without control characters, and not empty.
 */
enum key_verdict key_check_text(const char *s, size_t len);

/* Checks the length of a key as the route has it. */
enum key_verdict key_check_length(const struct conf_route *route, size_t len);

/* A sentence for the problem's detail; static storage. */
const char *key_verdict_text(enum key_verdict verdict);

#endif
