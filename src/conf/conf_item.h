/*
 * Configuration values: one item of a list, a single name, or a place
 * where a key can be.  The same contract as conf_value.h.
 */
#ifndef CONF_ITEM_H
#define CONF_ITEM_H

#include "conf_value.h"

enum conf_item {
	CONF_ITEM_METHOD,      /* token, RFC 9110, section 5.6.2; the one
				    word CONF_UNSAFE */
	CONF_ITEM_FIELD,       /* token: the name of a field */
	CONF_ITEM_SCOPE,       /* CGI variable, or cookie:NAME; the one word
				    none: no item */
	CONF_ITEM_ENVIRONMENT, /* NAME, to be handed on, or NAME=value */
	CONF_ITEM_POINTER,     /* JSON Pointer, RFC 6901 */
	CONF_ITEM_ACCOUNT,     /* user name or id */
	CONF_ITEM_USER,        /* REMOTE_USER: any name */
	CONF_ITEM_COOKIE       /* the name of a cookie */
};

/* False with a sentence in why, which says what to write instead where that is
 * known. */
bool
conf_item_check(const char *s, enum conf_item kind, struct conf_error *why);

/*
 * Reads alternatives separated by blanks or commas.  Each is header:NAME,
 * query:NAME, form:NAME, json:/pointer or cookie:NAME, or two of them joined
 * by '+'.  Within a name a blank is written as %20, a comma as %2C, a plus as
 * %2B, and a percent sign as itself or %25.
 */
bool conf_item_sources(const char *text, struct conf_arena *arena,
    struct conf_key_from *out, struct conf_error *why);

/* Reads one alternative. */
bool conf_item_source(const char *text, struct conf_arena *arena,
    struct conf_alternative *out, struct conf_error *why);

#endif
