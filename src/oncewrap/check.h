/*
 * -t: what is well-formed in a configuration, and will fail or surprise later.
 */
#ifndef CHECK_H
#define CHECK_H

#include "conf.h"

/* Writes a warning to stderr, with file and line, for each such thing, once, in
 * the order of the file. */
void check_warn(const struct conf *conf);

#endif
