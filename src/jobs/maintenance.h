/*
 * Maintenance of the store: recovers the keys of dead owners, deletes keys past
 * their retention, completes accepted requests that expired in the queue, and
 * counts keys for the metrics.
 *
 * Each of these is a pass: it works in batches, so that no write transaction is
 * long, and logs each change of an outcome, because no request logs it.
 */
#ifndef MAINTENANCE_H
#define MAINTENANCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "store_operator.h"
#include "work.h"

/* One pass; it may take several slices. */
struct maintenance_pass {
	const atomic_bool *stop; /* ends it after a batch; or NULL */
	int64_t until; /* mono: the end of this slice; INT64_MAX: of the pass */
	int n;         /* keys changed, in all slices so far */
	bool more;     /* the slice ended, the pass did not */
	const struct conf *conf; /* of a daemon */
};

/* Logs that a pass over the store has failed. */
void maintenance_failed(struct store *store, const char *pass, enum rc rc);

/* Recovers the keys that dead owners left in progress: one slice, which ends
 * early if no key is left.  Logs each key. */
enum rc maintenance_recover(struct store *store, struct maintenance_pass *pass);

/*
 * The same for one key that a request found in progress, if the owner of its
 * lease is dead.  *n is 0 if the key cannot be recovered yet.
 */
enum rc maintenance_recover_key(
    struct store *store, const struct record *record, int *n);

/* Deletes keys past their retention: one slice, which ends early if no key is
 * left or a batch fails.  When the pass ends it logs the number of keys. */
enum rc maintenance_expire(struct store *store, struct maintenance_pass *pass);

/* The passes of a daemon, by sweep_interval and reap_interval.  Once *stop is
 * set, a pass ends after its batch.  NULL: no memory. */
struct maintenance;
struct maintenance *
maintenance_new(struct store *store, const atomic_bool *stop);
void maintenance_free(struct maintenance *m);
extern const struct work_kind maintenance_kind;

#endif
