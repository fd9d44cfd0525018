/*
 * A walk along an index whose entries are a number, a state and the number of a
 * row.  A row whose state is no word of ours ends it: doctor names it.
 */
#include "config.h"

#include "rows.h"
#include "store_impl.h"

static const char *
state_name(const struct store_walk *w)
{
	return w->effects ? effect_state_name((enum effect_state)w->state)
			  : record_state_name((enum record_state)w->state);
}

static void
count(struct store_walk *w)
{
	if (w->effects) {
		w->sum.delivered += w->state == EFFECT_DELIVERED;
		return;
	}
	w->sum.completed += w->state == RECORD_COMPLETED;
	w->sum.failed_retryable += w->state == RECORD_FAILED_RETRYABLE;
	w->sum.expired += w->state == RECORD_EXPIRED;
}

static enum rc
walk(struct db *db, struct store_walk *w, int n)
{
	bool (*const parse)(const char *, int *) =
	    w->effects ? rows_effect_state : rows_state;
	struct db_stmt *s =
	    db_stmt(db, w->effects ? QUERY_TALLY_EFFECTS : QUERY_TALLY);
	const char *word;
	enum rc rc = RC_OK;

	db_bindf(s, "isid", w->at, state_name(w), w->id, n);
	for (; n > 0 && rc == RC_OK; n--) {
		if ((rc = db_step_row(s)) != RC_OK)
			break;
		rc = db_rowf(s, "ipi", &w->at, &word, &w->id);
		if (rc == RC_OK && (word == NULL || !parse(word, &w->state)))
			rc = RC_CORRUPT;
		if (rc == RC_OK)
			count(w);
	}
	db_reset(s);
	return rc;
}

enum rc
sqlite_walk(struct store *store, struct store_walk *w, int n)
{
	struct store_reader *reader;
	enum rc rc = store_reader_take(store, &reader);

	if (rc != RC_OK)
		return rc;
	rc = walk(reader->db, w, n);
	store_reader_give(store, reader);
	return rc;
}
