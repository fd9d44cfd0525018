/*
 * A new configuration takes the place of the old one in all parts, or in none.
 */
#ifndef RELOAD_H
#define RELOAD_H

#include <stdbool.h>

#include "conf.h"
#include "keeper.h"
#include "mux.h"
#include "store.h"

struct reload {
	struct store *store;
	struct keeper **keeper;
	struct mux *mux;
	struct conf *old, *new;
};

/* False, with a sentence in err: the old configuration stays, whole. */
bool reload_apply(const struct reload *r, struct conf_error *err);

/* Opens the log; a file is opened anew.  After an error, which is logged, the
 * log stays as it was. */
void reload_log(const char *target);

#endif
