/*
 * What conf.c and conf_clash.c offer to conf_parse.c, and to nobody else.
 */
#ifndef CONF_BUILD_H
#define CONF_BUILD_H

#include "conf_option.h"

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

/* Where the options of a file were set. */
struct conf_lines {
	struct conf_origin server, defaults;
	struct conf_origin *routes; /* of conf->routes, in their order */
};

/* The first thing, by its line, that does not hold between options; NULL: all
 * does. */
const char *
conf_clash(const struct conf *, const struct conf_lines *, conf_line *where);

#endif
