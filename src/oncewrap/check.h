/*
 * -t: what is well-formed in a configuration, and will fail or surprise later.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "conf.h"

/* Writes a warning to stderr, with file and line, for each such thing, once, in
 * the order of the file. */
void check_warn(const struct conf *conf);

/*
 * misspelt.c: whether no request is likely to have the name: an item of
 * `methods`, one of `scope`, or the name of a header field.  True: why is a
 * sentence that names the cure.  A field of any name may be sent, so only one
 * that is near a known field is misspelt.
 */
bool misspelt_method(const char *name, char *why, size_t size);
bool misspelt_scope(const char *name, char *why, size_t size);
bool misspelt_field(const char *name, char *why, size_t size);

#endif
