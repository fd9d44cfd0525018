/*
 * Configuration: options of a file that have no effect.
 */
#ifndef CONF_UNUSED_H
#define CONF_UNUSED_H

#include "conf.h"

/* No section has more of them. */
#define CONF_UNUSED_MAX 16

struct conf_unused {
	const char *option;
	conf_line line;
	char why[640]; /* names the section and the cure */
};

/*
 * Finds the options that a section sets and that no handler uses for which they
 * hold.  section: one of conf->routes, or &conf->defaults.  Returns how many
 * there are.
 */
size_t conf_unused(const struct conf *conf, const struct conf_route *section,
    struct conf_unused out[CONF_UNUSED_MAX]);

#endif
