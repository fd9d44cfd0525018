/*
 * What the verbs that record an outcome share: finish, for a key with a lease;
 * resolve, for a key whose outcome is open; abandon, for a key that no worker
 * ran.  The transaction of all three is store_outcome_run(), and the store
 * repeats it as long as the process lives.
 *
 * The caller allocates the outcome early, as a part of the change, so that
 * recording it needs no memory.  The change owns all that it points to, because
 * its caller may leave it behind.
 */
#ifndef STORE_OUTCOME_H
#define STORE_OUTCOME_H

#include "step.h"
#include "store_ops.h"

/* A verb: changes the record by a function of step.h. */
typedef enum rc outcome_step(const struct outcome_change *o, struct record *r,
    struct step_time at, struct step *s);

struct store_body;

struct outcome_change {
	struct store_outcome outcome; /* first: see store_outcome_new() */
	outcome_step *step;
	int64_t id;
	/* finish; "": the key has no lease */
	char token[RECORD_TOKEN_LEN + 1];
	int attempt;
	bool no_request; /* see struct store_lease */
	int64_t retention;
	struct store_finished done;
	/* resolve */
	struct store_tries tries;
	bool by_operator;
	struct store_body *body; /* SQLite's */
};

/* Begins and ends an outcome, which its store has allocated. */
void store_outcome_init(struct outcome_change *o, struct store *s);
void store_outcome_clear(struct outcome_change *o);

/*
 * There is no room for the outcome of that key: drops its response, and logs
 * that, unless the response is so small that this would gain nothing.  The key
 * is safe without it, and the caller gets the response.  Returns whether it was
 * dropped.
 */
bool store_outcome_drop(struct store_outcome *outcome, int64_t id);

/* The change for the end of an attempt, which the outcome is a part of. */
struct outcome_change *store_finish_begin(struct store_outcome *outcome,
    const struct store_lease *lease, int64_t retention);

/* The transaction; its argument is a struct outcome_change. */
tx_body store_outcome_run;

#endif
