/*
 * What all passes do with the keys that they changed.
 */
#ifndef PASS_H
#define PASS_H

#include "log.h"
#include "store.h"

/* One line for each of n changes. */
void
pass_log(enum log_level, const char *event, const struct store_change *, int n);

#endif
