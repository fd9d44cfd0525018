/*
 * Lists of keys and of effects, for operators.
 *
 * Reads are short: a list of a million keys into a pager holds no transaction
 * open meanwhile.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "kept.h"
#include "rows.h"
#include "store_operator.h"
#include "store_impl.h"
#include "store_row.h"

/* Rows that a list reads at a time. */
#define PAGE 64

struct store_cursor {
	struct store *store;
	enum query query;
	char *key, *scope, *path;
	const char *state;
	int64_t created_before, since, last_id, until_id;
	union {
		struct store_listed key[PAGE];
		struct store_effect effect[PAGE];
	} rows;
	size_t next, n;
	bool end;
};

/* Copies the text; false: no memory. */
static bool
list_copy(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return *out != NULL || text == NULL;
}

static enum rc
new_cursor(struct store *store, enum query query, int64_t id, int64_t since,
    struct store_cursor **out)
{
	struct store_cursor *c;

	*out = c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->store = store;
	c->query = query;
	c->since = since;
	c->last_id = id != 0 ? id - 1 : 0;
	c->until_id = id != 0 ? id : INT64_MAX;
	return RC_OK;
}

enum rc
sqlite_list(struct store *store, const struct store_filter *f,
    struct store_cursor **out)
{
	struct store_cursor *c;
	enum rc rc;

	rc = new_cursor(store, f->key != NULL ? QUERY_LIST_KEY : QUERY_LIST,
	    f->id, f->since, out);
	if (rc != RC_OK)
		return rc;
	c = *out;
	if (f->state != RECORD_NONE)
		c->state = record_state_name(f->state);
	c->created_before =
	    f->older_ms > 0 ? clock_wall() - f->older_ms : INT64_MAX;
	if (list_copy(f->key, &c->key) && list_copy(f->scope, &c->scope) &&
	    list_copy(f->path, &c->path))
		return RC_OK;
	sqlite_list_free(c);
	*out = NULL;
	return RC_NOMEM;
}

enum rc
sqlite_list_all(struct store *store, struct store_cursor **out)
{
	return new_cursor(store, QUERY_LIST_ALL, 0, 0, out);
}

enum rc
sqlite_outbox_list(struct store *store, const struct store_effect_filter *f,
    struct store_cursor **out)
{
	struct store_cursor *c;
	enum rc rc;

	rc = new_cursor(store, QUERY_EFFECT_LIST, f->id, f->since, out);
	if (rc != RC_OK)
		return rc;
	c = *out;
	if (f->state != STORE_EFFECT_NONE)
		c->state = store_effect_state_name(f->state);
	if (list_copy(f->scope, &c->scope) && list_copy(f->path, &c->path))
		return RC_OK;
	sqlite_list_free(c);
	*out = NULL;
	return RC_NOMEM;
}

static bool
is_of_effects(const struct store_cursor *c)
{
	return c->query == QUERY_EFFECT_LIST;
}

void
sqlite_list_free(struct store_cursor *c)
{
	for (; c->next < c->n; c->next++) {
		if (is_of_effects(c))
			store_effect_free(&c->rows.effect[c->next]);
		else
			store_listed_free(&c->rows.key[c->next]);
	}
	free(c->key);
	free(c->scope);
	free(c->path);
	free(c);
}

static struct db_stmt *
bind(const struct store_cursor *c, struct db *db)
{
	struct db_stmt *s = db_stmt(db, c->query);
	int64_t first, last;

	if (is_of_effects(c))
		db_bindf(s, "isssi", c->last_id, c->scope, c->path, c->state,
		    c->since);
	else if (c->query == QUERY_LIST_ALL)
		db_bindf(s, "i", c->last_id);
	else if (c->query == QUERY_LIST)
		db_bindf(s, "isssii", c->last_id, c->scope, c->path, c->state,
		    c->since, c->created_before);
	else {
		identity_range(&c->store->seed, c->key, &first, &last);
		db_bindf(s, "isssiisii", c->last_id, c->scope, c->path,
		    c->state, c->since, c->created_before, c->key, first, last);
	}
	return s;
}

/* Reads the next sound row of a key. */
static enum rc
read_key(struct store_cursor *c, struct db *db, struct db_stmt *s,
    struct store_listed *l)
{
	struct kept_head h;
	enum rc rc;

	memset(l, 0, sizeof(*l));
	store_inline_answer_init(&l->answer);
	rc = store_row_next(db, s, &l->key);
	if (rc != RC_OK || c->query != QUERY_LIST_ALL)
		return rc;
	rc = db_members(s, rows_listed, rows_nlisted, l);
	if (rc == RC_OK && l->key.kept &&
	    db_members(s, kept_head, kept_nhead, &h) == RC_OK)
		kept_head_small(&h, &l->key, &l->answer);
	return rc;
}

/* Reads the next row into the page. */
static enum rc
read_next(struct store_cursor *c, struct db *db, struct db_stmt *s)
{
	struct store_effect *e = &c->rows.effect[c->n];
	struct store_listed *l = &c->rows.key[c->n];
	enum rc rc;

	rc = is_of_effects(c) ? store_row_next_effect(db, s, e)
			      : read_key(c, db, s, l);
	if (rc != RC_OK)
		return rc;
	c->n++;
	c->last_id = is_of_effects(c) ? e->id : l->key.id;
	if (c->last_id <= c->until_id)
		return RC_OK;
	c->n--;
	if (is_of_effects(c))
		store_effect_free(e);
	else
		store_listed_free(l);
	return RC_NOTFOUND;
}

static enum rc
read_page(struct store_cursor *c)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	c->next = c->n = 0;
	rc = store_reader_take(c->store, &reader);
	if (rc != RC_OK)
		return rc;
	s = bind(c, reader->db);
	while (c->n < PAGE && c->last_id < c->until_id && rc == RC_OK)
		rc = read_next(c, reader->db, s);
	db_reset(s);
	store_reader_give(c->store, reader);
	c->end = rc == RC_NOTFOUND || c->last_id >= c->until_id;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* RC_OK: the row at c->next is there. */
static enum rc
advance(struct store_cursor *c)
{
	enum rc rc = RC_OK;

	if (c->next == c->n && !c->end)
		rc = read_page(c);
	if (rc == RC_OK && c->next == c->n)
		rc = RC_NOTFOUND;
	return rc;
}

enum rc
sqlite_list_next(struct store_cursor *c, struct store_listed *l)
{
	enum rc rc = advance(c);

	if (rc == RC_OK)
		*l = c->rows.key[c->next++];
	return rc;
}

enum rc
sqlite_outbox_next(struct store_cursor *c, struct store_effect *e)
{
	enum rc rc = advance(c);

	if (rc == RC_OK)
		*e = c->rows.effect[c->next++];
	return rc;
}
