/*
 * Functions of conf_build.c and conf_clash.c for conf_parse.c and
 * conf_preset.c alone.
 */
#ifndef CONF_BUILD_H
#define CONF_BUILD_H

#include "conf_option.h"

/* Makes a configuration with all defaults; name may be NULL. */
struct conf *conf_new(const char *name, struct conf_error *err);

/* The arena for data that lives as long as the configuration. */
struct conf_arena *conf_arena(struct conf *conf);

/* Updates the members that follow from options: how a reconciler runs, and
 * form_key. */
void conf_derive(struct conf *conf);

/*
 * Puts "file:line: " before a text, which may be err's own.  Without a file:
 * the text alone; line 0: only the file before it.  Always returns false.
 */
bool conf_error_at(
    const char *file, conf_line line, const char *text, struct conf_error *err);

/* The lines at which the options of a file were set. */
struct conf_lines {
	struct conf_origin server, defaults;
	struct conf_origin plain;   /* defaults without its preset */
	struct conf_origin *routes; /* in the order of conf->routes */
};

/* Returns the message of the first broken rule between options, by its line;
 * NULL: no rule is broken. */
const char *conf_clash(
    const struct conf *conf, const struct conf_lines *lines, conf_line *where);

#endif
