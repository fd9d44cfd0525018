/*
 * The keeper: the thread that starts the processes that stay, with a lock each,
 * and lives as long as they do.  run/workers.h says what is kept.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "conf.h"
#include "rc.h"
#include "store.h"

struct keeper;

/* Starts the thread if the configuration has such a handler, and the processes.
 * *keeper is NULL as long as none is needed.  Errors are logged. */
enum rc
keeper_start(struct keeper **keeper, struct store *store, struct conf *conf);

/* Goes on with another configuration; may start the thread. */
enum rc
keeper_reload(struct keeper **keeper, struct store *store, struct conf *conf);

/* After the last run: ends all processes, and the thread. */
void keeper_stop(struct keeper *k);

#endif
