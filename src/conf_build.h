/*
 * What conf.c offers to conf_parse.c, and to nobody else.
 */
#ifndef CONF_BUILD_H
#define CONF_BUILD_H

#include "conf_value.h"

/* With what holds without a file; name may be NULL. */
struct conf *conf_new(const char *name, struct conf_error *err);

/* What lives as long as the configuration. */
struct conf_arena *conf_arena(struct conf *);

/* Brings up to date what follows from options: key_variable. */
void conf_derive(struct conf *);

/*
 * Puts "file:line: " before a text, which may be err's own.  No file: the text
 * alone; line 0: the file alone.  Always false.
 */
bool conf_error_at(
    const char *file, conf_line, const char *text, struct conf_error *err);

#endif
