/*
 * Reads for pages.  A window of an index, or of the newest rows, is walked for
 * a bounded number of rows and a bounded time.  So a page costs the same on a
 * store of any size, and no long read keeps a write-ahead log from being reset.
 */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "clock.h"
#include "downstream.h"
#include "kept.h"
#include "limit.h"
#include "rows.h"
#include "store_operator.h"
#include "store_ops.h"

#include "store_browse.h"

/* Rows and time (ms) of one walk.  The clock is read every CHECK rows. */
#define WINDOW INT64_C(20000)
#define TIME   15
#define CHECK  64

/* Walks the rows (id, whether it matches) of the statement that was sent. */
static enum rc
walk_window(struct tx *tx, struct store_found *found)
{
	const int64_t until = clock_mono() + TIME;
	int64_t id = 0, rows = 0;
	bool matches;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = tx_result(tx);
	for (; rc == RC_OK; rows++) {
		if (rows % CHECK == CHECK - 1 && clock_mono() >= until)
			break;
		if ((rc = tx_row(tx, "i?", &id, &matches)) != RC_OK)
			break;
		if (matches && found->n < STORE_BROWSE_ROWS)
			found->id[found->n++] = id;
		found->count += matches;
	}
	found->all = rc == RC_NOTFOUND && rows < WINDOW;
	if (!found->all)
		found->next = id;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- keys ----------------------------------------------------------------- */

struct browse {
	struct store *store;
	const struct store_browse *what;
	struct row_value range[2]; /* of what->key */
	struct store_found *found;
};

/* The first of these that applies decides: the rows that an index finds are
 * few. */
static enum rc
browse_keys(struct tx *tx, struct browse *b)
{
	const struct store_browse *w = b->what;
	const char *state =
	    w->state != RECORD_NONE ? record_state_name(w->state) : NULL;
	bool by_number = false;
	enum rc rc;

	if (w->key != NULL) {
		tx_send(tx, TX_BROWSE_KEY, "sssuwwi", w->key, w->path, state,
		    w->downstream, &b->range[0], &b->range[1], WINDOW);
	} else if (w->downstream == NULL && w->state == RECORD_IN_PROGRESS) {
		tx_send(tx, TX_BROWSE_RUNNING, "si", w->path, WINDOW);
	} else if (w->downstream == NULL &&
	    (w->state == RECORD_PENDING || w->state == RECORD_UNKNOWN ||
		w->state == RECORD_DEAD_LETTER)) {
		tx_send(tx, TX_BROWSE_OPEN, "ssi", state, w->path, WINDOW);
	} else {
		by_number = true;
		tx_send(tx, TX_BROWSE_ALL, "issui",
		    w->before > 0 ? w->before : INT64_MAX, w->path, state,
		    w->downstream, WINDOW);
	}
	rc = walk_window(tx, b->found);
	/* Only numbers of keys are a place from which to look further. */
	if (!by_number)
		b->found->next = 0;
	return rc;
}

/* The key with that downstream key, if that is told by the downstream key
 * itself, or its outcome is open.  RC_NOTFOUND. */
static enum rc
find_told(
    struct store *store, struct tx *tx, const char *downstream, int64_t *id)
{
	enum rc rc;

	tx_send(tx, TX_FIND_TOLD, "iu",
	    downstream_id(store_secret(store), downstream), downstream);
	tx_send(tx, TX_FIND_OPEN, "u", downstream);
	if ((rc = tx_one(tx, "i", id)) == RC_OK)
		return tx_result(tx);
	return rc == RC_NOTFOUND ? tx_one(tx, "i", id) : rc;
}

/* Reads the key that was told. */
static enum rc
browse_told(struct tx *tx, struct browse *b)
{
	const struct store_browse *w = b->what;
	struct store_found *found = b->found;
	struct record r;
	enum rc rc;

	memset(found, 0, sizeof(*found));
	rc = find_told(b->store, tx, w->downstream, &found->id[0]);
	if (rc != RC_OK)
		return rc;
	tx_send(tx, TX_BROWSE_ROW, "i", found->id[0]);
	if ((rc = tx_result(tx)) != RC_OK || (rc = tx_record(tx, &r)) != RC_OK)
		return rc;
	found->all = true;
	found->n = (w->key == NULL || strcmp(w->key, r.key) == 0) &&
	    (w->path == NULL || strcmp(w->path, r.path) == 0) &&
	    (w->state == RECORD_NONE || w->state == r.state);
	found->count = (int64_t)found->n;
	record_free(&r);
	return RC_OK;
}

static enum rc
browse_run(struct tx *tx, void *arg)
{
	struct browse *b = arg;
	enum rc rc = RC_NOTFOUND;

	if (b->what->downstream != NULL && b->what->before == 0)
		rc = browse_told(tx, b);
	return rc == RC_NOTFOUND ? browse_keys(tx, b) : rc;
}

enum rc
store_browse(
    struct store *s, const struct store_browse *what, struct store_found *found)
{
	struct browse b = { .store = s, .what = what, .found = found };
	enum rc rc = RC_OK;

	memset(found, 0, sizeof(*found));
	if (what->key != NULL)
		rc = store_tx_range(s, what->key, b.range);
	return rc == RC_OK ? store_tx_read(s, browse_run, &b) : rc;
}

struct by_downstream {
	struct store *store;
	const char *downstream;
	int64_t id;
};

static enum rc
downstream_run(struct tx *tx, void *arg)
{
	struct by_downstream *d = arg;
	enum rc rc = find_told(d->store, tx, d->downstream, &d->id);

	if (rc != RC_NOTFOUND)
		return rc;
	tx_send(tx, TX_FIND_DOWNSTREAM, "u", d->downstream);
	return tx_one(tx, "i", &d->id);
}

enum rc
store_find_downstream(struct store *s, const char *downstream, int64_t *id)
{
	struct by_downstream d = { s, downstream, 0 };
	enum rc rc = store_tx_read(s, downstream_run, &d);

	if (rc == RC_OK)
		*id = d.id;
	return rc;
}

/* --- one row -------------------------------------------------------------- */

struct one_key {
	int64_t id;
	struct record *key;
	struct response *head; /* NULL: not wanted */
};

static enum rc
key_run(struct tx *tx, void *arg)
{
	const struct one_key *b = arg;
	struct kept_head h;
	enum rc rc;

	tx_send(tx, TX_BROWSE_ROW, "i", b->id);
	if ((rc = tx_result(tx)) != RC_OK ||
	    (rc = tx_record(tx, b->key)) != RC_OK)
		return rc;
	if (b->head == NULL || !b->key->kept)
		return RC_OK;
	if (tx_members(tx, kept_head, kept_nhead, &h) != RC_OK ||
	    kept_head_read(&h, b->key, b->head) != RC_OK) {
		response_free(b->head);
		response_init(b->head);
	}
	return RC_OK;
}

enum rc
store_browse_key(
    struct store *s, int64_t id, struct record *key, struct response *head)
{
	struct one_key b = { .id = id, .key = key, .head = head };

	memset(key, 0, sizeof(*key));
	return store_tx_look(s, key_run, &b);
}

struct one_resource {
	const char *resource;
	struct record *key;
};

static enum rc
status_run(struct tx *tx, void *arg)
{
	const struct one_resource *b = arg;
	enum rc rc;

	tx_send(tx, TX_STATUS, "s", b->resource);
	if ((rc = tx_result(tx)) != RC_OK || (rc = tx_next(tx)) != RC_OK)
		return rc;
	if ((rc = tx_this_record(tx, b->key)) == RC_CORRUPT)
		rows_bad(tx->database, "once_key", b->key->id);
	return rc;
}

enum rc
store_status(struct store *s, const char *resource, struct record *key)
{
	struct one_resource b = { resource, key };

	memset(key, 0, sizeof(*key));
	return store_tx_look(s, status_run, &b);
}

/* --- an answer that was not accepted -------------------------------------- */

struct one_output {
	int64_t id;
	struct store_output *output;
};

static enum rc
output_run(struct tx *tx, void *arg)
{
	const struct one_output *find = arg;
	struct store_output *o = find->output;
	int64_t exit_status = 0;
	const void *bytes;
	size_t n;
	enum rc rc;

	buf_free(&o->bytes);
	buf_init(&o->bytes, LIMIT_REFUSED);
	tx_send(tx, TX_REFUSED, "i", find->id);
	rc = tx_one(tx, "didmb", &o->attempt, &exit_status, &o->signal,
	    &o->length, &bytes, &n);
	if (rc != RC_OK)
		return rc;
	rc = buf_add(&o->bytes, bytes, n);
	o->exit_status = (int)exit_status;
	/* Any program that can write the store may have written the row. */
	if (rc == RC_LIMIT || exit_status < -1 || exit_status > INT_MAX ||
	    (uint64_t)o->length < n)
		rc = RC_CORRUPT;
	return rc;
}

enum rc
store_output(struct store *s, int64_t id, struct store_output *output)
{
	struct one_output find = { id, output };
	enum rc rc;

	memset(output, 0, sizeof(*output));
	buf_init(&output->bytes, LIMIT_REFUSED);
	rc = store_tx_look(s, output_run, &find);
	if (rc != RC_OK)
		buf_free(&output->bytes);
	return rc;
}

/* --- effects -------------------------------------------------------------- */

struct effects_of {
	int64_t key_id; /* 0: those that were given up */
	struct store_found *found;
};

static enum rc
effects_run(struct tx *tx, void *arg)
{
	const struct effects_of *b = arg;
	enum rc rc;

	if (b->key_id == 0)
		tx_send(tx, TX_BROWSE_DEAD_EFFECTS, "i", WINDOW);
	else
		tx_send(tx, TX_BROWSE_EFFECTS, "ii", b->key_id, WINDOW);
	rc = walk_window(tx, b->found);
	b->found->next = 0;
	return rc;
}

enum rc
store_browse_effects(struct store *s, int64_t key_id, struct store_found *found)
{
	struct effects_of b = { key_id, found };

	memset(found, 0, sizeof(*found));
	return store_tx_look(s, effects_run, &b);
}

struct one_effect {
	int64_t id;
	struct effect *effect;
};

static enum rc
effect_run(struct tx *tx, void *arg)
{
	const struct one_effect *b = arg;
	enum rc rc;

	tx_send(tx, TX_BROWSE_EFFECT, "i", b->id);
	rc = tx_result(tx);
	return rc == RC_OK ? tx_effect(tx, b->effect) : rc;
}

enum rc
store_browse_effect(struct store *s, int64_t id, struct effect *e)
{
	struct one_effect b = { id, e };

	memset(e, 0, sizeof(*e));
	return store_tx_look(s, effect_run, &b);
}
