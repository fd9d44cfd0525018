/*
 * What the verbs that write an outcome share: finish, for a key with a lease;
 * resolve, for a key whose outcome is open; abandon, for a key that no worker
 * ran.
 *
 * The caller allocates the outcome early, together with the write, so that
 * writing it needs no memory.  The write owns all that it points to, because
 * its caller may leave it behind.
 */
#ifndef STORE_OUTCOME_H
#define STORE_OUTCOME_H

#include "db.h"
#include "kept.h"
#include "step.h"
#include "store.h"
#include "store_stage.h"
#include "write.h"

struct outcome_write {
	struct write w;
	struct store_outcome outcome;
	int64_t id;
	/* finish */
	char token[RECORD_TOKEN_LEN + 1];
	int attempt;
	int64_t retention;
	struct store_finished done;
	/* resolve */
	struct store_tries tries;
	bool by_operator;
	struct stage stage; /* of a large answer */
	bool lost;          /* the last run lost, and deleted what was staged */
	/* finish: bytes of the body in pieces: committed; including the last
	 * run */
	size_t stored, written;
};

/* The write of an outcome from store_outcome_new(), ready for the committer. */
struct outcome_write *store_outcome_write(struct store_outcome *outcome,
    enum rc (*run)(struct write *, struct db *, int64_t now), int64_t id);

/* Queues the write and waits; *outcome becomes NULL if the committer keeps
 * it. */
struct committer;
enum rc store_outcome_do(struct committer *committer, struct outcome_write *o,
    struct store_outcome **outcome);

/* At the start of each run: prepares for what the runs before it have done. */
void store_outcome_begin_run(struct outcome_write *o);

/* Whether a run must not yet write the outcome, but only a piece of it; and
 * that run.  The key must be one that the write may change. */
bool store_outcome_has_more(const struct outcome_write *o);
enum rc store_outcome_piece(struct outcome_write *o, struct db *db);

/* The answer of the outcome, for step.h; c: its columns. */
struct step_answer store_outcome_answer(const struct kept_columns *c);

/* Writes the record that a function of step.h has changed from *was to *r; for
 * STEP_SET with the answer, of which the rest of the body is written. */
enum rc store_outcome_change(struct outcome_write *o, struct db *db,
    const struct record *was, const struct record *r, const struct step *s);

#endif
