/*
 * Calls of the store for a loop, which must not wait: store.h says what they
 * do.  SQLite's writes are the committer's, which tells the loop; a lookup is
 * done at once if what it reads is in memory; all else is done by a helper.
 *
 * All functions belong to the loop's thread.  Those of a call that return bool
 * return true if it is done already.  False: call->done() comes, never before
 * the function has returned.  What a call points to lives until the call is
 * done.  Then call->rc is the result, and the results are set.  There is one
 * such loop for a store.
 */
#ifndef STORE_CALL_H
#define STORE_CALL_H

#include "helpers.h"
#include "store.h"

struct write;

struct store_call {
	/* the caller sets these; first: it does not wait for a helper behind
	 * calls that are not */
	void (*done)(struct store_call *call);
	bool first;
	enum rc rc;

	/* the store's */
	struct store *store;
	enum rc (*work)(struct store_call *call); /* in a helper */
	void (*end)(struct store_call *call);     /* sets results; or NULL */
	struct helpers_task task;
	/* a write of SQLite's: what its result means, and when its caller has
	 * waited long enough */
	struct write *write;
	enum rc (*result)(struct store_call *call, enum rc rc);
	struct loop_timer late;
	union {
		struct {
			const struct store_identity *identity;
			struct record *key;
			struct store_inline_answer *small;
		} lookup;
		struct store_admission *admission;
		struct {
			struct store_outcome **outcome;
			struct store_finished *done;
		} finish;
		struct {
			enum rc (*run)(void *arg);
			void *arg;
		} work;
	} of;
};

/*
 * Lets that loop call the store, with at most that many helpers.  An outcome
 * that cannot be recorded may keep one for busy_timeout: so there are some more
 * than programs that run at once.  The call may wait.  RC_NOMEM, or the store
 * cannot be read.
 */
enum rc store_call_open(struct store *s, struct loop *l, unsigned helpers);

void store_call_close(struct store *s); /* no call is under way */

bool store_call_lookup(struct store *s, struct store_call *call,
    const struct store_identity *identity, struct record *key,
    struct store_inline_answer *small);

/*
 * Reserve: one write transaction reads the record again, calls decide(), and
 * takes the lease if the decision is DECIDE_RUN.  *decision is the decision
 * made there.  Unless it is DECIDE_RUN, found is the record (the caller frees
 * it with record_free()).
 *
 * If the record has another spec than the reservation, and its fingerprint
 * can therefore not be compared here, *decision is DECIDE_BUSY and found is
 * filled in.  The caller compares the fingerprints, and tries again with that
 * fingerprint_spec.
 *
 * decide_is_limit(): max_active, max_open, max_kept or max_store keeps it from
 * running.  If there is no record then, found->id is 0.
 *
 * RC_OK: durable.  RC_BUSY: another process held the write lock for
 * busy_timeout.  RC_FULL, RC_IO, RC_LIMIT (max_wal), RC_CORRUPT, RC_CLOSED.
 *
 * Accept: the same, but if the decision is DECIDE_RUN, the request is stored
 * and queued, and no lease is taken.  The reservation must have environment and
 * body.  A key that is already queued stays as it is: accepted.  RC_PENDING: it
 * is not known whether the request is stored.  If it is, it is run like any
 * other.
 */
bool store_call_admit(
    struct store *s, struct store_call *call, const struct store_asked *asked);

bool store_call_finish(struct store *s, struct store_call *call,
    const struct store_lease *lease, int64_t retention,
    struct store_outcome **outcome, struct store_finished *done);

/* Runs a function that may wait, in a helper.  It is never done at once. */
void store_call_work(struct store *s, struct store_call *call,
    enum rc (*run)(void *arg), void *arg);

#endif
