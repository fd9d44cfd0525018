/*
 * Idempotency-Key field value -> key, or the error in it.  The value is an RFC
 * 9651 String (section 3.3.3), with parameters that are ignored, or a bare
 * token: visible ASCII without '"', ',', ';' and '\'.  A key from elsewhere is
 * UTF-8 without control characters, and not empty.
 */
#ifndef KEY_H
#define KEY_H

#include "conf.h"
#include "json.h"
#include "limit.h"
#include "request.h"
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

/* Reads a key of any length from 1 to LIMIT_KEY.  On any verdict but KEY_OK,
 * *out is empty. */
enum key_verdict
key_read(const char *value, enum conf_key_syntax syntax, struct key *out);

/* Checks a key, or a part of one, from elsewhere than a header. */
enum key_verdict key_check_text(const char *s, size_t len);

/* Checks the length of a key as the route has it. */
enum key_verdict key_check_length(const struct conf_route *route, size_t len);

/* A sentence for the problem's detail; static storage. */
const char *key_verdict_text(enum key_verdict verdict);

/* --- the value of one source ------------------------------------------ */

/*
 * The value of one source of a key.
 *
 * A source that is there twice is wrong, whichever of the two the program would
 * take.  Each function that reads returns RC_OK or RC_NOMEM.
 */
struct key_value {
	const struct conf_source *source;
	enum key_verdict verdict; /* KEY_ABSENT: it is not there */
	struct buf text;          /* KEY_OK */
};

/* Takes a text as the value. */
enum rc key_value_take(struct key_value *v, const char *text, size_t len);

/* Notes what is wrong with the value; RC_OK. */
enum rc key_value_refuse(struct key_value *v, enum key_verdict verdict);

enum rc key_value_header(
    struct key_value *v, enum conf_key_syntax syntax, const struct request *rq);
enum rc key_value_cookie(struct key_value *v, const struct request *rq);

enum rc key_value_member(struct key_value *v, const struct json *json);

/*
 * Makes a key of n values, those of one alternative.  *source: where the key
 * is, or what is wrong; NULL: the whole key.
 */
enum key_verdict key_value_make(const struct key_value *v, unsigned n,
    struct key *out, const struct conf_source **source);

#endif
