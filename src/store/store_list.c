/*
 * Lists of keys and of effects, for operators.
 *
 * Reads are short: a list of a million keys into a pager holds no transaction
 * open meanwhile.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "store_operator.h"
#include "store_ops.h"

/* Rows that a list reads at a time; and rows of one statement. */
#define PAGE STORE_BROWSE_ROWS
#define SOME 16

struct store_cursor {
	struct store *store;
	/* TX_BROWSE_ROWS: those that .browse finds, from .position on */
	enum tx_query query;
	struct store_browse browse;
	char position[STORE_POSITION];
	struct store_found found;
	struct store_effect_filter effects; /* of TX_EFFECT_LIST */
	int64_t after_id, last_id;          /* of rows that were read */
	union {
		struct store_listed key[PAGE];
		struct effect effect[PAGE];
	} rows;
	size_t next, n;
	bool end;
};

static enum rc
list_new(struct store *store, enum tx_query query, struct store_cursor **out)
{
	struct store_cursor *c;

	*out = c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->store = store;
	c->query = query;
	return RC_OK;
}

enum rc
store_list(struct store *store, const struct store_filter *f,
    struct store_cursor **out)
{
	enum rc rc = list_new(store, TX_BROWSE_ROWS, out);

	if (rc != RC_OK)
		return rc;
	(*out)->browse.filter = *f;
	(*out)->browse.oldest = (*out)->browse.every = true;
	return RC_OK;
}

enum rc
store_list_all(struct store *store, struct store_cursor **out)
{
	return list_new(store, TX_LIST_ALL, out);
}

enum rc
store_outbox_list(struct store *store, const struct store_effect_filter *f,
    struct store_cursor **out)
{
	enum rc rc = list_new(store, TX_EFFECT_LIST, out);

	if (rc == RC_OK)
		(*out)->effects = *f;
	return rc;
}

static bool
is_of_effects(const struct store_cursor *c)
{
	return c->query == TX_EFFECT_LIST;
}

/* Frees the rows that were read, and not taken. */
static void
list_drop(struct store_cursor *c)
{
	for (; c->next < c->n; c->next++) {
		if (is_of_effects(c))
			effect_free(&c->rows.effect[c->next]);
		else
			store_listed_free(&c->rows.key[c->next]);
	}
	c->next = c->n = 0;
}

void
store_list_free(struct store_cursor *c)
{
	if (c == NULL)
		return;
	list_drop(c);
	free(c);
}

static void
list_send(const struct store_cursor *c, struct tx *tx)
{
	const struct store_effect_filter *f = &c->effects;
	const int64_t rows = PAGE;

	if (is_of_effects(c))
		tx_send(tx, c->query, "isssii", c->after_id, f->scope, f->path,
		    f->state != EFFECT_NONE ? effect_state_name(f->state)
					    : NULL,
		    f->since, rows);
	else
		tx_send(tx, c->query, "ii", c->after_id, rows);
}

/* Reads the current row of a key. */
static enum rc
list_read_key(
    const struct store_cursor *c, struct tx *tx, struct store_listed *l)
{
	struct rows_head h;
	enum rc rc;

	memset(l, 0, sizeof(*l));
	store_inline_answer_init(&l->answer);
	rc = tx_this_record(tx, &l->key);
	if (rc != RC_OK || c->query != TX_LIST_ALL)
		return rc;
	rc = tx_members(tx, rows_listed, rows_nlisted, l);
	if (rc == RC_OK && l->key.replayable &&
	    tx_members(tx, rows_head, rows_nhead, &h) == RC_OK)
		rows_head_small(&h, &l->key, &l->answer);
	return rc;
}

/* Reads the next row into the page, unless it makes no sense. */
static enum rc
list_read(struct store_cursor *c, struct tx *tx)
{
	struct effect *e = &c->rows.effect[c->n];
	struct store_listed *l = &c->rows.key[c->n];
	const bool effects = is_of_effects(c);
	enum rc rc;

	rc = effects ? tx_this_effect(tx, e) : list_read_key(c, tx, l);
	if (rc != RC_OK && rc != RC_CORRUPT)
		return rc;
	c->last_id = effects ? e->id : l->key.id;
	if (rc == RC_CORRUPT)
		rows_bad(tx->database, effects ? "once_effect" : "once_key",
		    c->last_id);
	else
		c->n++;
	return RC_OK;
}

/* --- the keys of a search ------------------------------------------------- */

/* Puts a key where its number was found. */
static void
list_put(struct store_cursor *c, struct record *r)
{
	for (size_t i = 0; i < c->found.n; i++)
		if (c->found.id[i] == r->id) {
			c->rows.key[i].key = *r;
			return;
		}
	record_free(r);
}

static enum rc
list_read_some(struct store_cursor *c, struct tx *tx, size_t first)
{
	int64_t id[SOME] = { 0 };
	struct record r;
	enum rc rc;

	for (size_t i = 0; i < SOME && first + i < c->found.n; i++)
		id[i] = c->found.id[first + i];
	tx_send(tx, TX_BROWSE_ROWS, "iiiiiiiiiiiiiiii", id[0], id[1], id[2],
	    id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
	    id[12], id[13], id[14], id[15]);
	rc = tx_result(tx);
	while (rc == RC_OK && (rc = tx_record(tx, &r)) == RC_OK)
		list_put(c, &r);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* Rows that make no sense were skipped: closes the gaps. */
static void
list_pack(struct store_cursor *c)
{
	for (size_t i = 0; i < c->found.n; i++)
		if (c->rows.key[i].key.id != 0)
			c->rows.key[c->n++] = c->rows.key[i];
}

static enum rc
list_search(struct tx *tx, void *arg)
{
	struct store_cursor *c = arg;
	struct store_browsing b;
	enum rc rc;

	list_drop(c);
	memset(&c->rows, 0, sizeof(c->rows));
	rc = store_browse_begin(&b, c->store, &c->browse, &c->found);
	if (rc == RC_OK)
		rc = store_browse_run(tx, &b);
	for (size_t i = 0; i < c->found.n && rc == RC_OK; i += SOME)
		rc = list_read_some(c, tx, i);
	list_pack(c);
	c->end = c->found.next[0] == '\0';
	return rc;
}

/* --- any list ------------------------------------------------------------- */

static enum rc
list_run(struct tx *tx, void *arg)
{
	struct store_cursor *c = arg;
	size_t rows = 0;
	enum rc rc;

	if (c->query == TX_BROWSE_ROWS)
		return list_search(tx, c);
	list_drop(c);
	c->last_id = c->after_id;
	list_send(c, tx);
	rc = tx_result(tx);
	while (rc == RC_OK && (rc = tx_next(tx)) == RC_OK) {
		rows++;
		rc = list_read(c, tx);
	}
	c->end = rc == RC_NOTFOUND && rows < PAGE;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* RC_OK: the row at c->next is there.  A page may be empty although rows
 * follow, because those that make no sense are skipped. */
static enum rc
list_advance(struct store_cursor *c)
{
	enum rc rc = RC_OK;

	while (rc == RC_OK && c->next == c->n && !c->end) {
		rc = store_tx(c->store, TX_READ, list_run, c);
		if (rc != RC_OK) {
			list_drop(c);
			break;
		}
		c->after_id = c->last_id;
		memcpy(c->position, c->found.next, sizeof(c->position));
		c->browse.after = c->position;
	}
	if (rc == RC_OK && c->next == c->n)
		rc = RC_NOTFOUND;
	return rc;
}

enum rc
store_list_all_next(struct store_cursor *c, struct store_listed *l)
{
	enum rc rc = list_advance(c);

	if (rc == RC_OK)
		*l = c->rows.key[c->next++];
	return rc;
}

enum rc
store_list_next(struct store_cursor *c, struct record *key)
{
	struct store_listed listed;
	enum rc rc = store_list_all_next(c, &listed);

	if (rc == RC_OK)
		*key = listed.key;
	return rc;
}

enum rc
store_outbox_next(struct store_cursor *c, struct effect *e)
{
	enum rc rc = list_advance(c);

	if (rc == RC_OK)
		*e = c->rows.effect[c->next++];
	return rc;
}
