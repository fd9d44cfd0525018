/*
 * What the verbs that record an outcome share: finish, for a key with a lease;
 * resolve, for a key whose outcome is open; abandon, for a key that no worker
 * ran.  The transaction of all three is store_outcome_run(), and the store
 * repeats it as long as the process lives.  So it does with one that takes back
 * what was begun.
 *
 * The caller allocates the outcome early, as a part of the change, so that
 * recording it needs no memory.  The change owns all that it points to, because
 * its caller may leave it behind.
 */
#ifndef STORE_OUTCOME_H
#define STORE_OUTCOME_H

#include "step.h"
#include "store_ops.h"

/*
 * Finish: the outcome of an attempt that has a lease.  Every change names the
 * attempt's token: an attempt that has lost its lease changes nothing.
 *
 * Resolve: a reconciler, a webhook or an operator has found out what a lost
 * attempt did.  The key has no lease.  The change names the attempt, and a
 * reconciler's also the number of tries begun when it read the key: if another
 * try was begun since then, or the key was settled, nothing changes.  An
 * operator may resolve dead letters, too.
 *
 * Abandon: completes an accepted key that no worker has run within its
 * retention.  The response is one that oncewrap makes, and short.
 */
struct store_body;

struct outcome_change {
	struct store_outcome outcome; /* first: see store_outcome_new() */
	tx_body *run; /* the transaction, whose argument this is */
	enum step_verb verb;
	int64_t id;
	/* finish; "": the key has no lease */
	char token[RECORD_TOKEN_LEN + 1];
	int attempt;
	bool no_request; /* see struct store_lease */
	int64_t retention;
	struct store_finished done;
	/* resolve */
	struct store_tries tries;
	/* an earlier COMMIT was sent, and it is not known whether it took
	 * place: of this change, or of what this one takes back */
	bool unsure;
	int64_t owner;           /* store_outcome_undo() */
	struct store_body *body; /* SQLite's */
};

/*
 * There is no room for the outcome of that key: drops its response, and logs
 * that, unless the response is so small that this would gain nothing.  The key
 * is safe without it, and the caller gets the response.  Returns whether it was
 * dropped.
 */
bool store_outcome_drop(struct store_outcome *outcome, int64_t id);

/* What store_finish() records. */
struct outcome_change *store_finish_begin(struct store_outcome *outcome,
    const struct store_lease *lease, int64_t retention);

/* The transaction of an outcome. */
tx_body store_outcome_run;

/*
 * The same in two steps, as in store_admit.h: the row is read without a lock,
 * and the change must find it as it was.  Only of an outcome that is small: the
 * second step reads no other result.  RC_LOST: it must be run alone, because
 * the key is no longer in progress.
 */
bool store_outcome_is_small(const struct outcome_change *o);
void store_outcome_ask(struct tx *tx, const struct outcome_change *o);
enum rc store_outcome_take(struct tx *tx, struct outcome_change *o);

/*
 * Take back, later, what a transaction with the result RC_PENDING may have
 * begun: a lease, as whose handler none runs (requeue: see struct
 * store_outcome); or what `undo` finds by that attempt of that owner.
 */
void store_outcome_release(struct store *s, const struct store_lease *lease,
    int64_t retention, int64_t requeue);
void store_outcome_undo(
    struct store *s, tx_body *undo, int64_t id, int attempt, int64_t owner);

#endif
