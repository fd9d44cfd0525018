/*
 * The pass that finds out what happened to unknown keys, by the programs that
 * their routes name.
 */
#ifndef RECONCILE_H
#define RECONCILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "conf.h"
#include "store.h"

/* Whose turn it is: one scope after the other, so that none has to wait for
 * another's backlog.  For any number of threads. */
struct reconciler {
	struct store *store;
	pthread_mutex_t lookout; /* guards what follows */
	char *scope;             /* the last one; or NULL */
};
void reconcile_init(struct reconciler *, struct store *);
void reconcile_release(struct reconciler *);

/* Tries the next key that is due.  RC_OK, RC_NOTFOUND: none is; or the store
 * failed.  Logs what becomes of it. */
enum rc reconcile_next(struct reconciler *, const struct conf *);

/*
 * Tries each key that is due, one after the other, until none is, the store
 * fails, or *stop is set.  Logs what becomes of each.  *n: how many were tried.
 */
enum rc reconcile_pass(
    struct store *, const struct conf *, const atomic_bool *stop, int *n);

#endif
