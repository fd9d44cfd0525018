/*
 * What the files that make a configuration share: conf_build.c, conf_parse.c,
 * conf_preset.c and conf_check.c.
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

/* Returns the message of the first broken rule between options, by its line;
 * NULL: no rule is broken. */
const char *conf_clash(const struct conf *conf, conf_line *where);

/*
 * Presets: other defaults for the routes that name them.  Fills in what the
 * sections of a parsed file leave open, in order of authority: a route's own
 * options, its preset, [defaults].  `preset` itself is
 * an option like any other: where a route has its own, that of [defaults] means
 * nothing to it.  Options that a preset sets get the preset's line.
 *
 * False with a message, and its line in *where.
 */
bool conf_preset(struct conf *conf, conf_line *where, struct conf_error *why);

/* Whether a preset has set the option, by the lines of its section. */
bool conf_preset_set(const struct conf_origin *origin, const char *option);

#endif
