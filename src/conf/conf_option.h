/*
 * The one table of options: their names, their allowed values, their defaults;
 * and what else the files share that make a configuration.
 */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "buf.h"
#include "conf_value.h"

enum conf_section {
	CONF_SERVER, /* options of a struct conf */
	CONF_ROUTE,  /* options of a struct conf_route: [defaults] as well */
	CONF_EFFECT  /* options of a struct conf_effect */
};

struct conf_option;

/* NULL if there is none. */
const struct conf_option *
conf_option_find(enum conf_section section, const char *name);

size_t conf_option_index(const struct conf_option *option);

/* The line at which the option was set, which must exist; 0: it was not set. */
conf_line conf_option_line(const struct conf_origin *origin,
    enum conf_section section, const char *name);

/*
 * Sets an option of base, a struct conf, route or effect.  False with a
 * message that begins with the option's name; base is then unchanged.
 */
bool conf_option_set(const struct conf_option *option, void *base,
    const char *value, struct conf_arena *arena, struct conf_error *why);

/* Sets all options of a zeroed base to their defaults. */
bool conf_option_defaults(enum conf_section section, void *base,
    struct conf_arena *arena, struct conf_error *why);

/* Copies the options of a route that its origin does not have as set. */
void
conf_option_inherit(struct conf_route *route, const struct conf_route *from);

/* Adds the names of the options of [server] that a reload does not change and
 * that differ in the two, with blanks; as many as there is room for. */
void conf_option_at_start(
    const struct conf *a, const struct conf *b, struct buf *names);

/* --- how a configuration is made -------------------------------------- */

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
