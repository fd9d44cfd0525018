/*
 * Accepted requests: stored with their keys, answered with 202, and run here.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "confbox.h"
#include "pass.h"

struct pending;

/* The store and the configuration must outlive it.  NULL: no memory. */
struct pending *pending_new(struct store *, struct confbox *);
void pending_free(struct pending *);

/*
 * Runs due requests, one after the other, until pending_halt().  Any number of
 * threads may call this; the programs die with the thread.
 */
void pending_run(struct pending *);

/* Begins no more requests; does not wait for those under way. */
void pending_halt(struct pending *);

/*
 * The pass over requests that no worker has begun within their retention: each
 * is completed, with a problem as its response.  Runs one turn; logs each key.
 */
enum rc pending_expire(struct store *, const struct conf *, struct pass *);

#endif
