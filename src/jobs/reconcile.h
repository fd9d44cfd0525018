/*
 * The pass that finds out what happened to unknown keys.  It runs the programs
 * that their routes name.
 */
#ifndef RECONCILE_H
#define RECONCILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "store.h"

/* The turns of the scopes: each turn takes a key of the next scope, so that no
 * scope waits for another's backlog.  Any number of threads may share it. */
struct reconciler {
	struct store *store;
	pthread_mutex_t lookout; /* guards what follows */
	char *scope;             /* the last scope; or NULL */
};
void reconcile_init(struct reconciler *, struct store *);
void reconcile_release(struct reconciler *);

/* Tries the next due key.  RC_OK; RC_NOTFOUND: no key is due; or the store
 * failed.  Logs the verdict. */
enum rc reconcile_next(struct reconciler *, const struct conf *);

/*
 * Tries each due key, one after the other, until none is left, the store fails,
 * or *stop is set.  Logs each verdict.  *n: the number of keys tried.
 */
enum rc reconcile_pass(
    struct store *, const struct conf *, const atomic_bool *stop, int *n);

#endif
