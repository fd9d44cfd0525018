/*
 * Writes a JSON object, member after member.  cJSON is not used: every
 * duplicate of a request gets a problem, and a tree of cJSON's took longer than
 * the lookup of the key.
 */
#ifndef JSON_WRITE_H
#define JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

/* An object that is being written; the first failure stays. */
struct json_write {
	struct buf *out;
	enum rc rc;
};

/* Appends text as it is: braces. */
void json_write_raw(struct json_write *o, const char *text);

/* Writes the name of a member, after a comma if it is not the first of its
 * object. */
void json_write_name(struct json_write *o, const char *name);

/* Writes a member.  A byte of a text that is no UTF-8 becomes U+FFFD. */
void json_write_text(struct json_write *o, const char *name, const char *value);
void json_write_number(struct json_write *o, const char *name, int64_t value);
void json_write_bool(struct json_write *o, const char *name, bool value);

#endif
