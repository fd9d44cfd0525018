/*
 * -t: what is well-formed in a configuration, and will fail or surprise later.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>

#include "conf.h"

/* Writes a warning to stderr, with file and line, for each such thing, once, in
 * the order of the file. */
void check_warn(const struct conf *conf);

/* names.c: whether a request is likely to have the item of `methods`, or of
 * `scope`. */
bool names_method(const char *item);
bool names_variable(const char *item);

#endif
