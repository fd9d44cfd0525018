/*
 * The one table of options: their names, their allowed values, their defaults.
 */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "buf.h"
#include "conf_value.h"

enum conf_place {
	CONF_SERVER, /* options of a struct conf */
	CONF_ROUTE,  /* options of a struct conf_route: [defaults] as well */
	CONF_EFFECT  /* options of a struct conf_effect */
};

/* No place has as many options as this. */
#define CONF_OPTION_MAX 64

struct conf_option;

/* The line at which each option of a section was set, by
 * conf_option_index(). */
struct conf_origin {
	conf_line line[CONF_OPTION_MAX];
};

/* NULL if there is none. */
const struct conf_option *
conf_option_find(enum conf_place place, const char *name);

size_t conf_option_index(const struct conf_option *option);

/* The line at which the option was set, which must exist; 0: it was not set, or
 * origin is NULL. */
conf_line conf_option_line(
    const struct conf_origin *origin, enum conf_place place, const char *name);

/*
 * Sets an option of base, a struct conf, route or effect.  False with a
 * message that begins with the option's name; base is then unchanged.
 */
bool conf_option_set(const struct conf_option *option, void *base,
    const char *value, struct conf_arena *arena, struct conf_error *why);

/* Sets all options of a zeroed base to their defaults. */
bool conf_option_defaults(enum conf_place place, void *base,
    struct conf_arena *arena, struct conf_error *why);

/* Copies the options of a route that its origin does not have as set. */
void
conf_option_inherit(struct conf_route *route, const struct conf_route *from);

/* Adds the names of the options of [server] that a reload does not change and
 * that differ in the two, with blanks; as many as there is room for. */
void conf_option_at_start(
    const struct conf *a, const struct conf *b, struct buf *names);

#endif
