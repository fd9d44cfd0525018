/*
 * Configuration values: one item of a list, or a name that stands alone.  The
 * same contract as conf_value.h.
 */
#ifndef CONF_ITEM_H
#define CONF_ITEM_H

#include "conf_text.h"

/* False with a sentence that says what to write, if what was meant can be
 * told. */
bool conf_item_check(const char *, enum conf_text_item, struct conf_error *why);

#endif
