/*
 * What deletes keys.  Expire: keys past their retention, oldest first, are
 * deleted or become markers; a batch is bounded, because other writes wait for
 * its locks meanwhile.  Forget: an operator deletes keys and everything stored
 * with them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "rows.h"
#include "store_change.h"
#include "store_ops.h"

/* Deleting a delivered effect takes as long as this many bytes of a body. */
#define EFFECT_BYTES 8192

/* The columns of EXPIRE_ROWS after $row: the place of the row in the list, even
 * if the row makes no sense. */
struct also {
	int64_t last_at;
	const char *last_state;
	int64_t effects;
};

static const struct row_member also[] = {
	ROW_MEMBER('i', also, last_at),
	ROW_MEMBER('p', also, last_state),
	ROW_MEMBER('i', also, effects),
};

static void
send_due(struct tx *tx, enum tx_query query, const struct expire_batch *b)
{
	const struct expire_place *from = &b->from;

	tx_send(tx, query, "isiiz", from->expires_at,
	    record_state_name(from->state), from->id, (int64_t)STORE_EXPIRE_MAX,
	    tx->at.now);
}

/*
 * If memory is short, the rows that a batch deletes come from the disk, page by
 * page.  This read waits for them before the lock is taken, not under it.  In
 * ten million keys that was 20 ms of the 25 ms that a batch of 100 took.
 */
enum rc
store_expire_ahead(struct tx *tx, void *batch)
{
	bool any = false;
	enum rc rc;

	send_due(tx, TX_EXPIRE_AHEAD, batch);
	if ((rc = tx_result(tx)) != RC_OK)
		return rc;
	while ((rc = tx_next(tx)) == RC_OK)
		any = true;
	return rc == RC_NOTFOUND && any ? RC_OK : rc;
}

/* Reads the current row, and moves b->to there; adds its bytes if it is to be
 * deleted.  RC_CORRUPT: it makes no sense. */
static enum rc
read_due(
    struct tx *tx, struct expire_batch *b, struct record *r, int64_t *bytes)
{
	struct also a = { 0 };
	struct expire_place at;
	enum rc rc = tx_this_record(tx, r);

	if (rc != RC_OK && rc != RC_CORRUPT)
		return rc;
	at.id = r->id;
	if (tx_members(tx, also, sizeof(also) / sizeof(also[0]), &a) == RC_OK &&
	    a.last_state != NULL &&
	    record_state_parse(a.last_state, &at.state)) {
		at.expires_at = a.last_at;
		b->to = at;
	}
	if (rc == RC_OK)
		*bytes += r->body_length + a.effects * EFFECT_BYTES;
	return rc;
}

/* Reads what is due, up to the limits of one transaction. */
static enum rc
list_due(struct tx *tx, struct expire_batch *b, struct record *due, int *n)
{
	int64_t bytes = 0;
	int rows = 0;
	enum rc rc;

	send_due(tx, TX_EXPIRE_ROWS, b);
	rc = tx_result(tx);
	while (rc == RC_OK && *n < b->limit && bytes < STORE_EXPIRE_BYTES &&
	    (rc = tx_next(tx)) == RC_OK) {
		rows++;
		rc = read_due(tx, b, &due[*n], &bytes);
		if (rc == RC_OK) {
			++*n;
		} else if (rc == RC_CORRUPT) {
			rows_bad(tx->database, "once_key", due[*n].id);
			rc = RC_OK;
		}
	}
	b->more = rows == STORE_EXPIRE_MAX && b->to.id != b->from.id;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
expire_one(struct tx *tx, struct expire_batch *b, struct record *r)
{
	struct store_change *c = &b->changes[b->n];
	const struct record was = *r;
	struct step s = { 0 };
	enum rc rc = step_expire(r, tx->at, &s);

	if (rc == RC_LOST) /* it was due a moment later */
		return RC_OK;
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, r, &s, NULL);
	if (rc != RC_OK)
		return rc;
	rows_change(r, c);
	c->from = was.state;
	c->to = r->state;
	b->n++;
	FAULT(EXPIRE_KEY);
	return RC_OK;
}

enum rc
store_expire_batch(struct tx *tx, void *batch)
{
	struct expire_batch *b = batch;
	struct record *due;
	int n = 0;
	enum rc rc;

	store_changes_free(b->changes, b->n);
	b->n = 0;
	b->to = b->from;
	if ((due = calloc(STORE_EXPIRE_MAX, sizeof(*due))) == NULL)
		return RC_NOMEM;
	rc = list_due(tx, b, due, &n);
	for (int i = 0; i < n && rc == RC_OK; i++)
		rc = expire_one(tx, b, &due[i]);
	for (int i = 0; i < n; i++)
		record_free(&due[i]);
	free(due);
	return rc;
}

/* Rows that make no sense stay, and keep no key after them from its end. */
enum rc
store_expire(struct store *s, int limit, struct store_change *changes, int *n)
{
	struct expire_batch b = {
		.limit = limit < STORE_EXPIRE_MAX ? limit : STORE_EXPIRE_MAX,
		.from.expires_at = INT64_MIN,
		.changes = changes,
	};
	unsigned how;
	bool damaged;
	enum rc rc;

	*n = 0;
	if (limit < 0)
		return RC_INVALID;
	rc = store_tx(s, TX_LOOK, store_expire_ahead, &b);
	if (rc == RC_NOTFOUND)
		return RC_OK;
	/* Where a page is damaged, the write finds a way around it. */
	if (rc != RC_OK && rc != RC_CORRUPT && rc != RC_IO)
		return rc;
	do {
		how = TX_WRITE | TX_SEARCHES | (b.limit > 1 ? TX_WHOLE : 0);
		rc = store_tx(s, how, store_expire_batch, &b);
		damaged = rc == RC_CORRUPT && b.limit > 1;
		if (damaged)
			b.limit = 1; /* only the damaged body stays */
		else
			b.from = b.to;
	} while (damaged || (rc == RC_OK && b.n == 0 && b.more));
	if (rc == RC_OK)
		*n = b.n; /* the caller owns them now */
	else
		store_changes_free(changes, b.n);
	return rc;
}

/* --- forget --------------------------------------------------------------- */

struct forget {
	struct store_chosen *keys;
	/* by their numbers: in that order each transaction locks them */
	size_t order[STORE_CHOSEN_MAX], n;
};

static enum rc
forget_key(struct tx *tx, const struct store_chosen *key)
{
	struct step s = { 0 };
	struct record r;
	enum rc rc = store_change_read(tx, key->id, true, &r);

	if (rc != RC_OK)
		return rc;
	rc = key->attempt == 0 || key->attempt == r.attempt
	    ? step_forget(&r, key->from, &s)
	    : RC_LOST;
	if (rc == RC_OK)
		rc = store_change_write(tx, &r, &r, &s, NULL);
	record_free(&r);
	return rc;
}

/* RC_LOST: none of the keys could be deleted. */
static enum rc
forget_keys(struct tx *tx, void *arg)
{
	const struct forget *f = arg;
	struct store_chosen *key;
	enum rc rc = RC_OK;
	bool any = false;

	for (size_t i = 0; i < f->n; i++)
		f->keys[i].done = false;
	for (size_t i = 0; i < f->n && rc == RC_OK; i++) {
		key = &f->keys[f->order[i]];
		rc = forget_key(tx, key);
		if (rc == RC_OK)
			any = key->done = true;
		else if (rc == RC_LOST)
			rc = RC_OK;
	}
	return rc == RC_OK && !any ? RC_LOST : rc;
}

/* By insertion: they are few. */
static void
forget_sort(struct forget *f)
{
	size_t at;

	for (size_t i = 0; i < f->n; i++) {
		for (at = i;
		     at > 0 && f->keys[f->order[at - 1]].id > f->keys[i].id;
		     at--)
			f->order[at] = f->order[at - 1];
		f->order[at] = i;
	}
}

enum rc
store_forget_some(struct store *s, struct store_chosen *keys, size_t n)
{
	struct forget f = { .keys = keys, .n = n };
	enum rc rc;

	if (n > STORE_CHOSEN_MAX)
		return RC_INVALID;
	forget_sort(&f);
	rc = store_tx(s, TX_WRITE, forget_keys, &f);
	for (size_t i = 0; i < n && rc != RC_OK; i++)
		keys[i].done = false;
	return rc == RC_LOST ? RC_OK : rc;
}

enum rc
store_forget(struct store *s, int64_t id, enum record_state from)
{
	struct store_chosen key = { .id = id, .from = from };
	enum rc rc = store_forget_some(s, &key, 1);

	return rc == RC_OK && !key.done ? RC_LOST : rc;
}
