/*
 * What the verbs that record an outcome share: finish, for a key with a lease;
 * resolve, for a key whose outcome is open; abandon, for a key that no worker
 * ran.
 *
 * The outcome is tried in its caller's thread until busy_timeout has passed.
 * Then the keeper takes it, and tries for as long as the process lives.
 */
#ifndef POSTGRES_OUTCOME_H
#define POSTGRES_OUTCOME_H

#include "kept.h"
#include "postgres_impl.h"

struct postgres_outcome {
	struct store_outcome outcome; /* first: see store_outcome_new() */
	struct postgres_outcome *next;
	txn_body *run; /* its argument is this struct */
	int64_t id;
	/* a COMMIT was sent, and it is not known whether it took place */
	bool unsure;
	/* a transaction of the handler's has locked the key.  That says nothing
	 * of other keys */
	bool held;
	/* the first try is in a group; op.send is NULL: it is alone */
	struct txn_op op;
	/* the group took place, but its results were lost */
	bool unread;
	/* finish */
	char token[RECORD_TOKEN_LEN + 1];
	int attempt;
	bool no_request; /* see struct store_lease */
	int64_t retention;
	struct store_finished done;
	/* resolve */
	struct store_tries tries;
	bool by_operator;
};

/* The outcome that postgres_outcome_new() has made, ready to be recorded by
 * that transaction. */
struct postgres_outcome *postgres_outcome_begin(
    struct store_outcome *outcome, txn_body *run, int64_t id);

/* Runs the transaction once. */
enum rc postgres_outcome_try(struct store *s, struct postgres_outcome *o);

/* Whether another transaction has locked the key, so that a try would wait. */
bool
postgres_outcome_is_held(struct store *s, const struct postgres_outcome *o);

/* Whether the result of a try is the last one: a further try gives no other. */
bool postgres_outcome_is_final(enum rc rc);

/* Runs it, and gives it to the keeper if it is not done in time: then
 * RC_PENDING, and *outcome is NULL. */
enum rc postgres_outcome_do(struct store *s, struct postgres_outcome *o,
    struct store_outcome **outcome);

/* Takes an outcome to record. */
void postgres_keeper_take(struct store *s, struct postgres_outcome *o);

/*
 * Takes a lease to release: it is not known whether the database has it, or
 * gets it later, and no handler runs.  requeue: see struct store_outcome.
 */
void postgres_keeper_release(struct store *s, const struct store_lease *lease,
    int64_t retention, int64_t requeue);

/* The same for anything that a transaction takes back.  Its argument is a
 * struct postgres_outcome with that id and attempt.  RC_LOST: there is nothing
 * to take back. */
void
postgres_keeper_undo(struct store *s, txn_body *undo, int64_t id, int attempt);

/*
 * Sends the statement, which is queued, and reads when the key expires.
 * RC_LOST: the statement changed no key.  RC_INVALID: record.c does not allow
 * the change.
 */
enum rc postgres_outcome_changed(struct pg *pg, enum record_state from,
    enum record_state to, int64_t *expires_at);

/* Stores the body of the response in pieces. */
enum rc
postgres_outcome_pieces(struct pg *pg, const struct postgres_outcome *o);

/* Logs that there is no memory for one of these. */
void postgres_keeper_failed(int64_t id);

#endif
