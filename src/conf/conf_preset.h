/*
 * Presets: other defaults for the routes that name them.
 */
#ifndef CONF_PRESET_H
#define CONF_PRESET_H

#include "conf_build.h"

/*
 * Fills in what the sections of a parsed file leave open, in order of
 * authority: a route's own options, its preset, [defaults].  `preset` itself is
 * an option like any other: where a route has its own, that of [defaults] means
 * nothing to it.  Options that a preset sets get the preset's line in lines,
 * and lines->plain becomes the lines of [defaults] without its preset.
 *
 * False with a message, and its line in *where.
 */
bool conf_preset(struct conf *conf, struct conf_lines *lines, conf_line *where,
    struct conf_error *why);

/* The lines of the defaults that hold for a route. */
const struct conf_origin *conf_preset_defaults(
    const struct conf_lines *lines, const struct conf_origin *route);

/* Whether a preset has set the option, by the lines of its section. */
bool conf_preset_set(const struct conf_origin *origin, const char *option);

#endif
