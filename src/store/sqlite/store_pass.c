/*
 * The writes of passes: leases of dead owners, keys past their retention, time.
 * Each is bounded, because other operations wait for the lock meanwhile.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fault.h"
#include "liveness.h"
#include "uuid.h"
#include "store_row.h"
#include "store_ops.h"
#include "tree.h"

/* Copies scope, path and key, from column i on. */
static enum rc
read_identity(struct db_stmt *s, int i, struct store_change *c)
{
	char *scope = NULL, *path = NULL, *key = NULL;
	enum rc rc;

	if ((rc = db_column_strdup(s, i, &scope)) == RC_OK &&
	    (rc = db_column_strdup(s, i + 1, &path)) == RC_OK)
		rc = db_column_strdup(s, i + 2, &key);
	c->scope = scope;
	c->path = path;
	c->key = key;
	return rc;
}

/* An attempt of a dead owner. */
struct lost {
	char token[RECORD_TOKEN_LEN + 1];
	int attempt;
	bool resume, answered, lives;
	int64_t lock, file, locked_until;
};

static enum rc
release(struct db *db, int64_t id, const struct lost *lost, int64_t now)
{
	const int64_t pause = decide_requeue(lost->attempt, uuid_bits());
	struct db_stmt *s = db_stmt(db, QUERY_SWEEP_RELEASED);
	enum rc rc;

	db_bind_int(s, 1, id);
	db_bind_text(s, 2, lost->token);
	db_bind_int(s, 3, clock_wall());
	db_bind_int(s, 4, now);
	db_bind_text(s, 5, "oncewrap was lost; it may be resumed");
	if (pause >= 0)
		db_bind_int(s, 6, now + pause);
	rc = store_ops_change_state(
	    s, RECORD_IN_PROGRESS, RECORD_FAILED_RETRYABLE, RC_CORRUPT);
	return rc == RC_OK ? store_ops_released(db, id) : rc;
}

/*
 * Whether processes of the attempt may still act; true if that cannot be
 * determined.  If the lock file was replaced, the owner may be alive after all.
 */
static bool
tree_may_live(const struct op_sweep *op, const struct lost *lost)
{
	return lost->file != liveness_file(op->liveness) ||
	    tree_lives(op->database, lost->lock, op->processes);
}

/* The next attempt of that owner after *id; RC_NOTFOUND: none. */
static enum rc
next_lost(struct db *db, int64_t owner, int64_t *id, struct lost *lost,
    struct store_change *c)
{
	struct db_stmt *s = db_stmt(db, QUERY_SWEEP_ROW);
	const char *state;
	enum rc rc;

	db_bind_int(s, 1, owner);
	db_bind_int(s, 2, *id);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc;
	memset(c, 0, sizeof(*c));
	*id = c->id = db_column_int(s, 0);
	lost->resume = db_column_int(s, 5) != 0;
	lost->lock = db_column_int(s, 6);
	lost->file = db_column_int(s, 7);
	lost->locked_until = db_column_int(s, 8);
	lost->attempt = (int)db_column_int(s, 9);
	state = db_column_text(s, 10);
	if (!store_ops_copy(s, 1, lost->token, sizeof(lost->token)) ||
	    strlen(lost->token) != RECORD_TOKEN_LEN || state == NULL ||
	    !record_state_parse(state, &c->from) ||
	    (c->from != RECORD_IN_PROGRESS && c->from != RECORD_COMPLETED) ||
	    !store_row_is_identity(s, 2, 3, 4) || !store_row_is_time(s, 8) ||
	    !store_row_is_count(s, 9) || !store_row_is_time(s, 11) ||
	    !store_row_is_time(s, 12))
		rc = RC_CORRUPT;
	else
		rc = read_identity(s, 2, c);
	lost->answered = c->from == RECORD_COMPLETED;
	db_reset(s);
	if (rc != RC_OK)
		store_changes_free(c, 1);
	return rc;
}

static enum rc
become_unknown(struct db *db, int64_t id, const struct lost *lost, int64_t now)
{
	struct db_stmt *s;
	enum rc rc;

	rc = store_ops_unknown(db, id, lost->token, "oncewrap was lost", now);
	if (rc != RC_OK || lost->lives)
		return rc;
	s = db_stmt(db, QUERY_ATTEMPT_GONE);
	db_bind_int(s, 1, id);
	return db_step_done(s);
}

/* Changes the key of one lost attempt by its on_crash. */
static enum rc
settle_lost(struct op_sweep *op, struct db *db, const struct lost *lost,
    struct store_change *c, int64_t now)
{
	int64_t unused;
	enum rc rc;

	switch (c->to) {
	case RECORD_COMPLETED:
		op->sealed = true;
		return store_ops_seal(db, c->id, lost->token, now, &unused);
	case RECORD_FAILED_RETRYABLE:
		rc = release(db, c->id, lost, now);
		return rc == RC_OK ? store_ops_delete_pieces(db, c->id) : rc;
	case RECORD_UNKNOWN:
		rc = become_unknown(db, c->id, lost, now);
		return rc == RC_OK ? store_ops_delete_pieces(db, c->id) : rc;
	case RECORD_NONE:
	case RECORD_PENDING:
	case RECORD_IN_PROGRESS:
	case RECORD_DEAD_LETTER:
	case RECORD_EXPIRED:
		break;
	}
	assert(!"a lost attempt does not become that");
	return RC_INVALID;
}

/*
 * Recovers the attempts of an owner after op->after.  Reads one attempt at a
 * time, because the change of a row changes the index by which it was found.
 * *skipped counts the rows that stay as they are.  Returns RC_PENDING if the
 * transaction has to end before the owner's last attempt.
 */
static enum rc
sweep_owner(struct op_sweep *op, struct db *db, int64_t owner, int *skipped,
    int64_t now)
{
	struct store_change *c;
	struct lost lost;
	int64_t *id = &op->after, before;
	enum rc rc;

	while (op->n < op->limit && *skipped < STORE_BAD_ROWS) {
		c = &op->changes[op->n];
		before = *id;
		rc = next_lost(db, owner, id, &lost, c);
		if (rc == RC_CORRUPT && *id != before) {
			store_row_bad(db, "once_key", *id);
			++*skipped;
			continue;
		}
		if (rc != RC_OK)
			return rc == RC_NOTFOUND ? RC_OK : rc;
		if (op->only > 0 && *id != op->only) {
			store_changes_free(c, 1);
			return RC_OK;
		}
		op->n++;
		lost.lives = !lost.answered && tree_may_live(op, &lost);
		if (lost.resume && lost.lives && now < lost.locked_until) {
			store_changes_free(c, 1); /* later */
			op->n--;
			++*skipped;
			continue;
		}
		c->to = lost.answered            ? RECORD_COMPLETED
		    : lost.resume && !lost.lives ? RECORD_FAILED_RETRYABLE
						 : RECORD_UNKNOWN;
		rc = settle_lost(op, db, &lost, c, now);
		if (rc != RC_OK)
			return rc == RC_LOST ? RC_CORRUPT : rc;
		FAULT(SWEEP_KEY);
	}
	return RC_PENDING;
}

enum rc
store_ops_sweep(struct op_sweep *op, struct db *db, int64_t now)
{
	enum rc rc = RC_OK;
	int skipped = 0;
	size_t i;

	store_changes_free(op->changes, op->n);
	op->n = 0;
	op->sealed = false;
	op->effects = 0;
	op->after = op->only > 0 ? op->only - 1 : op->from_id;
	for (op->at = op->from; op->at < op->ndead; op->at++) {
		rc = sweep_owner(op, db, op->dead[op->at], &skipped, now);
		if (rc != RC_OK)
			break;
		op->after = 0;
	}
	if (rc == RC_PENDING)
		rc = RC_OK;
	for (i = 0; i < op->ndead && rc == RC_OK && op->only == 0; i++)
		rc = store_ops_free_effects(db, op->dead[i], now, &op->effects);
	return rc;
}

/* Gives some free pages at the end of the file back to the file system. */
static enum rc
give_back(struct db *db)
{
	int64_t unused, all, until;
	struct db_stmt *s;
	enum rc rc;

	s = db_stmt(db, QUERY_FREE_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	unused = db_column_int(s, 0);
	db_reset(s);
	s = db_stmt(db, QUERY_ALL_PAGES);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	all = db_column_int(s, 0);
	db_reset(s);
	if (unused <= STORE_FREE_PAGES || unused <= all / 2)
		return RC_OK;
	until = clock_mono() + STORE_FREE_TIME;
	s = db_stmt(db, QUERY_VACUUM_STEP);
	do
		rc = db_step_row(s); /* one page */
	while (rc == RC_OK && clock_mono() < until);
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

void
store_ops_bind_place(struct db_stmt *s, const struct store_place *place)
{
	db_bind_int(s, 3, place->is ? place->expires_at : INT64_MIN);
	db_bind_text(s, 4, record_state_name(place->state));
	db_bind_int(s, 5, place->id);
}

static enum rc
reap_one(struct db *db, const struct store_change *c, int64_t now)
{
	struct db_stmt *s;
	enum rc rc;

	if (c->to == RECORD_NONE)
		return store_ops_delete_past(db, c->id, c->from, now);
	s = db_stmt(db, QUERY_EXPIRE);
	db_bind_int(s, 1, c->id);
	db_bind_int(s, 2, now);
	db_bind_int(s, 3, clock_wall());
	rc = store_ops_change_state(s, c->from, c->to, RC_CORRUPT);
	return rc == RC_OK ? store_ops_delete_kept(db, c->id) : rc;
}

/* Reads one row of the list.  RC_CORRUPT: it makes no sense. */
static enum rc
reap_row(struct db_stmt *s, struct store_change *c, struct store_place *place)
{
	const char *state = db_column_text(s, 3);

	memset(c, 0, sizeof(*c));
	c->id = db_column_int(s, 0);
	if (state == NULL || !record_state_parse(state, &c->from))
		return RC_CORRUPT;
	place->is = true;
	place->expires_at = db_column_int(s, 9);
	place->state = c->from;
	place->id = c->id;
	if (!store_row_is_identity(s, 4, 5, 6) || !store_row_is_time(s, 1) ||
	    !store_row_is_time(s, 8))
		return RC_CORRUPT;
	c->to = db_column_int(s, 2) != 0 ? RECORD_EXPIRED : RECORD_NONE;
	return read_identity(s, 4, c);
}

/* Reads what is due, oldest first, up to the limits of one transaction. */
static enum rc
reap_list(struct op_reap *op, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_REAP_ROWS);
	struct store_change *c;
	int64_t bytes = 0;
	enum rc rc = RC_OK;

	db_bind_int(s, 1, now);
	db_bind_int(s, 2, op->limit + STORE_BAD_ROWS);
	store_ops_bind_place(s, &op->after);
	while (op->n < op->limit && op->bad < STORE_BAD_ROWS &&
	    bytes < STORE_REAP_BYTES && (rc = db_step_row(s)) == RC_OK) {
		c = &op->changes[op->n];
		rc = reap_row(s, c, &op->last);
		if (rc == RC_CORRUPT) {
			store_row_bad(db, "once_key", c->id);
			op->bad++;
			rc = RC_OK;
			continue;
		}
		op->n++;
		if (rc != RC_OK)
			break;
		bytes += db_column_int(s, 1) +
		    db_column_int(s, 7) * STORE_REAP_EFFECT;
	}
	op->more = op->bad == STORE_BAD_ROWS;
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_ops_reap(struct op_reap *op, struct db *db, int64_t now)
{
	enum rc rc;
	int i;

	store_changes_free(op->changes, op->n);
	op->n = op->bad = 0;
	op->last = op->after;
	rc = reap_list(op, db, now);
	if (rc == RC_OK && op->n > 0)
		rc = db_step_done(db_stmt(db, QUERY_REAP_MARK));
	if (rc != RC_OK)
		return rc;
	for (i = 0; i < op->n; i++) {
		if ((rc = reap_one(db, &op->changes[i], now)) != RC_OK)
			return rc;
		FAULT(REAP_KEY);
	}
	return give_back(db);
}

enum rc
store_ops_claim(struct op_claim *op, struct db *db, int64_t now)
{
	struct db_stmt *s = db_stmt(db, QUERY_RECONCILE_CLAIM);

	db_bind_int(s, 1, op->id);
	db_bind_int(s, 2, op->tries.tries);
	db_bind_int(s, 3, op->count);
	db_bind_int(s, 4, now + op->after);
	db_bind_int(s, 5, op->tries.attempt);
	return store_ops_change_one(s, RC_LOST);
}

/* RC_INVALID, or RC_CORRUPT: the key is deleted all the same, until the
 * rollback. */
static enum rc
forget_key(struct db *db, int64_t id)
{
	struct db_stmt *s = db_stmt(db, QUERY_FORGET);
	enum record_state from;
	const char *state;
	enum rc rc;

	db_bind_int(s, 1, id);
	rc = db_step_row(s);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_LOST : rc;
	state = db_column_text(s, 0);
	if (state == NULL || !record_state_parse(state, &from))
		rc = RC_CORRUPT;
	else if (!record_may_change(from, RECORD_NONE, true))
		rc = RC_INVALID;
	db_reset(s);
	return rc;
}

enum rc
store_ops_forget(const struct op_forget *op, struct db *db)
{
	enum rc rc;

#ifdef RECORD_CHECKS
	rc = db_exec(db, queries_checks_operator(true));
	if (rc != RC_OK)
		return rc;
#endif
	rc = db_step_done(db_stmt(db, QUERY_REAP_MARK));
	if (rc == RC_OK)
		rc = forget_key(db, op->id);
	if (rc == RC_OK)
		rc = store_ops_delete_kept(db, op->id);
#ifdef RECORD_CHECKS
	(void)db_exec(db, queries_checks_operator(false));
#endif
	return rc;
}

static enum rc
change_topic(struct db *db, enum query query, const char *name)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bind_text(s, 1, name);
	return db_step_done(s);
}

enum rc
store_ops_topics(const struct op_topics *op, struct db *db)
{
	enum rc rc = RC_OK;
	size_t i;

	/* A process that starts meanwhile has its lock already, or adds its
	 * topics later. */
	if (op->liveness != NULL && liveness_is_alone(op->liveness))
		rc = db_step_done(db_stmt(db, QUERY_TOPIC_CLEAR));
	for (i = 0; i < op->ndrop && rc == RC_OK; i++)
		rc = change_topic(db, QUERY_TOPIC_DROP, op->drop[i]);
	for (i = 0; i < op->nadd && rc == RC_OK; i++)
		rc = change_topic(db, QUERY_TOPIC_ADD, op->add[i]);
	return rc;
}

enum rc
store_ops_clock(const struct op_clock *op, struct db *db, int64_t now)
{
	struct db_stmt *s;

	s = db_stmt(db, op->touch ? QUERY_CLOCK_TOUCH : QUERY_CLOCK_LAST);
	db_bind_int(s, 1, now);
	if (!op->touch)
		db_bind_int(s, 2, op->grain);
	return db_step_done(s);
}
