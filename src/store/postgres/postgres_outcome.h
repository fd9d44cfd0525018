/*
 * Records outcomes: see store_outcome.h.  An outcome is tried in its caller's
 * thread until busy_timeout has passed.  Then the keeper takes it, and tries
 * for as long as the process lives.
 */
#ifndef POSTGRES_OUTCOME_H
#define POSTGRES_OUTCOME_H

#include "kept.h"
#include "postgres_impl.h"
#include "store_outcome.h"

struct postgres_outcome {
	struct outcome_change change; /* first: see store_outcome_new() */
	struct postgres_outcome *next;
	/* store_tx_undo(); NULL: the outcome is recorded */
	tx_body *undo;
	struct tx_undo undone;
	/* a COMMIT was sent, and it is not known whether it took place */
	bool unsure;
	/* a transaction of the handler's has locked the key.  That says nothing
	 * of other keys */
	bool held;
	/* the first try is in a group; op.send is NULL: it is alone */
	struct txn_op op;
	/* the group took place, but its results were lost */
	bool unread;
	unsigned did; /* see struct tx */
};

/* Runs the transaction once. */
enum rc postgres_outcome_try(struct store *s, struct postgres_outcome *o);

/* Whether another transaction has locked the key, so that a try would wait. */
bool
postgres_outcome_is_held(struct store *s, const struct postgres_outcome *o);

/* Whether the result of a try is the last one: a further try gives no other. */
bool postgres_outcome_is_final(enum rc rc);

/* Takes an outcome to record. */
void postgres_keeper_take(struct store *s, struct postgres_outcome *o);

/*
 * Takes a lease to release: it is not known whether the database has it, or
 * gets it later, and no handler runs.  requeue: see struct store_outcome.
 */
void postgres_keeper_release(struct store *s, const struct store_lease *lease,
    int64_t retention, int64_t requeue);

/* Logs that there is no memory for one of these. */
void postgres_keeper_failed(int64_t id);

#endif
