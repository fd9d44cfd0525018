/*
 * Runs the passes.  One thread sweeps and reaps, by sweep_interval and
 * reap_interval, and tallies the keys.  reconcile_workers threads reconcile,
 * async_workers threads run accepted requests, and a few threads deliver
 * effects: all these wait for programs.
 */
#ifndef JANITOR_H
#define JANITOR_H

#include "confbox.h"
#include "store.h"

struct janitor;

/* Starts the threads.  The configuration and the store must outlive them. */
enum rc janitor_start(struct janitor **, struct confbox *, struct store *);

/* Begins no more passes, batches or programs; does not wait. */
void janitor_halt(struct janitor *);

/* Whether all threads have ended; true for NULL.  The last thread sends this
 * process SIGUSR1. */
bool janitor_ended(const struct janitor *);

/* Halts the janitor, waits for what is under way, and frees it. */
void janitor_stop(struct janitor *);

#endif
