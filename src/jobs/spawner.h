/*
 * The spawner: the thread that starts the processes that stay, with a lock
 * each, and lives as long as they do.  run/workers.h says what is kept.
 */
#ifndef SPAWNER_H
#define SPAWNER_H

#include "conf.h"
#include "rc.h"
#include "store.h"

struct spawner;

/* Starts the thread if the configuration has such a handler, and the processes.
 * *spawner is NULL as long as none is needed.  Errors are logged. */
enum rc
spawner_start(struct spawner **spawner, struct store *store, struct conf *conf);

/* Goes on with another configuration; may start the thread. */
enum rc spawner_reload(
    struct spawner **spawner, struct store *store, struct conf *conf);

/* After the last run: ends all processes, and the thread. */
void spawner_stop(struct spawner *k);

#endif
