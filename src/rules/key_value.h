/*
 * The value of one source of a key: for key_search.c.
 *
 * A source that is there twice is wrong, whichever of the two the program would
 * take.  Each function that reads returns RC_OK or RC_NOMEM.
 */
#ifndef KEY_VALUE_H
#define KEY_VALUE_H

#include "buf.h"
#include "conf.h"
#include "json.h"
#include "key.h"
#include "request.h"

struct key_value {
	const struct conf_source *source;
	enum key_verdict verdict; /* KEY_ABSENT: it is not there */
	struct buf text;          /* KEY_OK */
};

/* Takes a text as the value. */
enum rc key_value_take(struct key_value *v, const char *text, size_t len);

/* Notes what is wrong with the value. */
void key_value_refuse(struct key_value *v, enum key_verdict verdict);

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
