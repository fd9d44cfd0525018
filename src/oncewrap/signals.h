/*
 * What the daemon does on SIGHUP and SIGTERM: a new configuration replaces the
 * old one in all parts, or in none; and a stop has a latest end.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "serve.h"
#include "store.h"

struct signals_reload {
	struct store *store;
	struct serve *serve;
	struct conf *old, *new;
};

/* False, with a sentence in err: the old configuration stays, whole. */
bool signals_reload(const struct signals_reload *r, struct conf_error *err);

/* Opens the log; a file is opened anew.  After an error, which is logged, the
 * log stays as it was. */
void signals_reopen_log(const char *target);

/* Time (ms) after drain_timeout for all that is left. */
#define STOP_GRACE 3000

/*
 * To be called once, when the stop begins, with SIGTERM and SIGINT blocked in
 * all threads; drained_mono: when drain_timeout is over.  The process ends at
 * once, with status 0, at another of these signals, or STOP_GRACE after that
 * time, whatever its threads wait for.
 */
void signals_stop_until(int64_t drained_mono);

#endif
