/*
 * When which pass runs: one thread, by sweep_interval and reap_interval; and
 * when the store counts its keys.
 */
#ifndef JANITOR_H
#define JANITOR_H

#include "confbox.h"
#include "store.h"

struct janitor;

/* Starts the thread.  Both must outlive it. */
enum rc janitor_start(struct janitor **, struct confbox *, struct store *);

/* Ends the pass under way after its batch, and the thread. */
void janitor_stop(struct janitor *);

#endif
