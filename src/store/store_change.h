/*
 * Changes of a key's record, in a transaction that writes: a verb reads the
 * row, a function of step.h changes the record, and the row is written with all
 * that the change means for what is stored beside it.
 */
#ifndef STORE_CHANGE_H
#define STORE_CHANGE_H

#include "rows.h"
#include "step.h"
#include "tx.h"

/* The parameters of $record_values, the last ones of a statement: rows.sql. */
#define STORE_CHANGE_SET "tsdtzz?iizizzzzdt?z?zztbisusu"
/* clang-format off */
#define STORE_CHANGE_ARGUMENTS(r) \
	(r)->late_token, record_state_name((r)->state), (r)->attempt, \
	(r)->token, (r)->owner, (r)->locked_until, (int)(r)->resume, \
	(r)->retention, (r)->updated_at, (r)->expires_at, \
	(r)->expired_retention, (r)->attempt_lock, (r)->lock_file, \
	(r)->reconcile_delay, \
	(r)->reconcile_after, (r)->reconcile_attempts, (r)->resource, \
	(int)(r)->accepted, (r)->queued_at, (int)(r)->replayable, \
	(int64_t)(r)->status, (r)->body_length, (r)->last_error, \
	(r)->fingerprint, sizeof((r)->fingerprint), (r)->caller, (r)->peer, \
	(r)->cookie[0] != '\0' ? (r)->cookie : NULL, (r)->method, \
	(r)->instance[0] != '\0' ? (r)->instance : NULL
/* clang-format on */

/*
 * Reads the record of that number, which the caller frees, so that nothing else
 * changes it before the transaction ends.  RC_LOST: there is no such key, or
 * its row makes no sense, which is logged: outcomes that could not be recorded
 * because of such a row would stop new runs.  wait: for another transaction
 * that has locked the row; else that is RC_LOST, too.
 */
enum rc
store_change_read(struct tx *tx, int64_t id, bool wait, struct record *r);

/* Inserts the row of a record that was RECORD_NONE; number: what the store
 * finds its identity by; spec: that of the fingerprint's spec. */
enum rc
store_change_insert(struct tx *tx, const struct store_identity *identity,
    const struct row_value *number, int64_t spec, const struct record *r);

/*
 * Writes the record that a function of step.h has changed from *was to *r, or
 * deletes it, and deletes what the change lets go.  answer: its columns, if
 * s->answer is STEP_SET.
 */
enum rc store_change_write(struct tx *tx, const struct record *was,
    const struct record *r, const struct step *s,
    const struct rows_answer *answer);

/* For recover: the tries of an owner that is lost are due again; adds their
 * number to *n.  One that another transaction has locked is left. */
enum rc store_effects_free(struct tx *tx, int64_t owner, int *n);

#endif
