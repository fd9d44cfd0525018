/*
 * See store_change.h.
 */
#include "config.h"

#include <string.h>

#include "store_change.h"

/* The parameters of $record_was, in the queries of each store. */
#define WAS "isdt"
#define WAS_ARGUMENTS(was) \
	(was)->id, record_state_name((was)->state), (was)->attempt, (was)->token

enum rc
store_change_read(struct tx *tx, int64_t id, bool wait, struct record *r)
{
	enum rc rc;

	memset(r, 0, sizeof(*r));
	tx_send(tx, wait ? TX_RECORD_READ : TX_RECORD_READ_FREE, "i", id);
	if ((rc = tx_result(tx)) == RC_OK)
		rc = tx_record(tx, r);
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

enum rc
store_change_insert(struct tx *tx, const struct store_identity *identity,
    const struct row_value *number, int64_t spec, const struct record *r)
{
	record_check(r);
	tx_send(tx, TX_RECORD_NEW, "isssiwu" STORE_CHANGE_SET, r->id,
	    identity->key, identity->path, identity->scope, spec, number,
	    r->downstream, STORE_CHANGE_ARGUMENTS(r));
	return tx_must_change(tx);
}

static enum rc
change_send(struct tx *tx, const struct record *was, const struct record *r,
    const struct rows_answer *answer)
{
	int64_t spec = -1; /* it stays */
	enum rc rc;

	if (r->fingerprint_spec != was->fingerprint_spec &&
	    (rc = tx->ops->spec(tx, r->fingerprint_spec, &spec)) != RC_OK)
		return rc;
	if (answer == NULL)
		tx_send(tx, TX_RECORD_WRITE, WAS "i" STORE_CHANGE_SET,
		    WAS_ARGUMENTS(was), spec, STORE_CHANGE_ARGUMENTS(r));
	else
		tx_send(tx, TX_RECORD_WRITE_ANSWER,
		    WAS "iddtoo" STORE_CHANGE_SET, WAS_ARGUMENTS(was), spec,
		    answer->kind, STORE_RESPONSE_VERSION, answer->reason,
		    answer->fields, answer->nfields, answer->body,
		    answer->nbody, STORE_CHANGE_ARGUMENTS(r));
	return RC_OK;
}

enum rc
store_change_write(struct tx *tx, const struct record *was,
    const struct record *r, const struct step *s,
    const struct rows_answer *answer)
{
	static const struct rows_answer none = { 0 };
	enum rc rc = RC_OK;

	if (s->ended)
		tx->did |= TX_ENDED;
	if (s->work)
		tx->did |= TX_WORK;
	if (s->confirmed)
		tx->did |= TX_SYNC_FIRST;
	if (s->gone) {
		tx_send(tx, TX_RECORD_DELETE, WAS, WAS_ARGUMENTS(was));
	} else {
		record_check(r);
		rc = change_send(tx, was, r,
		    s->answer == STEP_SET           ? answer
			: s->answer == STEP_DELETED ? &none
						    : NULL);
	}
	if (rc == RC_OK && (s->gone || s->answer == STEP_DELETED))
		rc = tx->ops->erase(tx, was->id, TX_ALL, r->state);
	else if (rc == RC_OK && s->request == STEP_DELETED)
		rc = tx->ops->erase(tx, was->id, TX_REQUEST, r->state);
	return rc == RC_OK ? tx_must_change(tx) : rc;
}
