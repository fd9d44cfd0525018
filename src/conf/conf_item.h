/*
 * Configuration values: one item of a list, or a single name.  The same
 * contract as conf_value.h.
 */
#ifndef CONF_ITEM_H
#define CONF_ITEM_H

#include "conf_text.h"

/* False with a sentence in why, which says what to write instead where that is
 * known. */
bool conf_item_check(
    const char *s, enum conf_text_item kind, struct conf_error *why);

#endif
