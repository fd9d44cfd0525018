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
	KEY_EMPTY,
	KEY_TOO_SHORT,
	KEY_TOO_LONG,
	KEY_LIST,       /* a joined value: more than one item */
	KEY_NOT_STRING, /* a bare token where key_syntax = string */
	KEY_MALFORMED
};

struct key {
	char text[LIMIT_KEY + 1]; /* quotes and escapes removed */
	size_t len;
};

/* On any verdict but KEY_OK, *out is empty. */
enum key_verdict
key_parse(const char *value, const struct conf_route *, struct key *out);

/* A sentence for the problem's detail; static storage. */
const char *key_verdict_text(enum key_verdict);

#endif
