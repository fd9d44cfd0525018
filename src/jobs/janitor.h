/*
 * When which pass runs: one thread sweeps and reaps, by sweep_interval and
 * reap_interval, and has the store count its keys; reconcile_workers reconcile,
 * async_workers run what was accepted, and a few deliver effects: all these
 * wait for programs.
 */
#ifndef JANITOR_H
#define JANITOR_H

#include "confbox.h"
#include "store.h"

struct janitor;

/* Starts the threads.  Both must outlive them. */
enum rc janitor_start(struct janitor **, struct confbox *, struct store *);

/* Begins no more passes, batches or programs; does not wait. */
void janitor_halt(struct janitor *);

/* Whether all threads have ended; the last one sends this process SIGUSR1.  Of
 * none, or NULL, they have. */
bool janitor_ended(const struct janitor *);

/* Halts it, waits for what is under way, and frees it. */
void janitor_stop(struct janitor *);

#endif
