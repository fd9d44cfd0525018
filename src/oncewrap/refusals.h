/*
 * What limits refuse now, and to whom, for health and the page.
 */
#ifndef REFUSALS_H
#define REFUSALS_H

#include "conf.h"
#include "store.h"

/*
 * Calls say for each line of refused.h: for what this process refused in the
 * last minute, and for callers with max_open_keys open outcomes, whichever
 * process refused them last, and when.
 */
void refusals(struct store *store, const struct conf *conf,
    void (*say)(void *arg, const char *line), void *arg);

#endif
