/*
 * Configuration values: the places where a key can be.  The same contract as
 * conf_value.h.
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include "conf_value.h"

/*
 * Reads alternatives separated by blanks or commas.  Each is header:NAME,
 * query:NAME, form:NAME, json:/pointer or cookie:NAME, or two of them joined
 * by '+'.  Within a name a blank is written as %20, a comma as %2C, a plus as
 * %2B, and a percent sign as itself or %25.
 */
bool conf_source_list(const char *text, struct conf_arena *arena,
    struct conf_key_from *out, struct conf_error *why);

/* Reads one alternative. */
bool conf_source_read(const char *text, struct conf_arena *arena,
    struct conf_alternative *out, struct conf_error *why);

#endif
