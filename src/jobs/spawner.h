/*
 * The spawner: the helper that starts the processes that stay, with a lock
 * each, and lives as long as they do.  run/workers.h says what is kept.
 */
#ifndef SPAWNER_H
#define SPAWNER_H

#include "conf.h"
#include "rc.h"
#include "run.h"
#include "store.h"

/* workers_open(), and workers_set() with that configuration. */
enum rc spawner_open(struct store *store, struct runs *runs, struct conf *conf);

#endif
