/*
 * The key store, for passes and operators: sweep, reap, list.
 *
 * Reads are short: a list of a million keys into a pager holds no transaction
 * open meanwhile.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "store_operator.h"
#include "store_impl.h"
#include "store_row.h"

/* Rows that a list reads at a time. */
#define LIST_PAGE 64

/* --- passes ------------------------------------------------------------- */

void
store_changes_free(struct store_change *changes, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		free((void *)(uintptr_t)changes[i].scope);
		free((void *)(uintptr_t)changes[i].path);
		free((void *)(uintptr_t)changes[i].key);
		memset(&changes[i], 0, sizeof(changes[i]));
	}
}

/* --- list --------------------------------------------------------------- */

struct store_cursor {
	struct store *store;
	char *key, *scope, *path;
	const char *state;
	int64_t created_before, since, last_id, until_id;
	struct store_row rows[LIST_PAGE];
	size_t next, n;
	bool end;
};

void
store_row_free(struct store_row *row)
{
	if (row == NULL)
		return;
	free(row->scope);
	free(row->path);
	free(row->key);
	free(row->recovery_point);
	free(row->last_error);
	memset(row, 0, sizeof(*row));
}

static char *
copy_or_null(const char *s, bool *failed)
{
	char *copy;

	if (s == NULL)
		return NULL;
	copy = strdup(s);
	if (copy == NULL)
		*failed = true;
	return copy;
}

enum rc
store_list(struct store *store, const struct store_filter *f,
    struct store_cursor **out)
{
	struct store_cursor *c;
	bool failed = false;

	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->store = store;
	c->key = copy_or_null(f->key, &failed);
	c->scope = copy_or_null(f->scope, &failed);
	c->path = copy_or_null(f->path, &failed);
	if (f->state != RECORD_NONE)
		c->state = record_state_name(f->state);
	c->created_before =
	    f->older_ms > 0 ? clock_wall() - f->older_ms : INT64_MAX;
	c->since = f->since;
	c->until_id = INT64_MAX;
	if (f->id != 0) {
		c->last_id = f->id - 1;
		c->until_id = f->id;
	}
	if (failed) {
		store_list_free(c);
		return RC_NOMEM;
	}
	*out = c;
	return RC_OK;
}

void
store_list_free(struct store_cursor *c)
{
	if (c == NULL)
		return;
	for (; c->next < c->n; c->next++)
		store_row_free(&c->rows[c->next]);
	free(c->key);
	free(c->scope);
	free(c->path);
	free(c);
}

static int64_t
wall_or_none(const struct store *store, struct db_stmt *s, int i)
{
	return db_column_null(s, i) ? 0
				    : store_wall(store, db_column_int(s, i));
}

static enum rc
read_row(const struct store *store, struct db_stmt *s, struct store_row *row)
{
	const char *text;
	enum rc rc;

	memset(row, 0, sizeof(*row));
	row->id = db_column_int(s, 0);
	row->attempt = (int)db_column_int(s, 5);
	row->status = (int)db_column_int(s, 6);
	row->created_at = db_column_int(s, 9);
	row->updated_at = db_column_int(s, 10);
	row->locked_until = wall_or_none(store, s, 11);
	row->expires_at = wall_or_none(store, s, 12);
	row->reconcile_after = wall_or_none(store, s, 14);
	text = db_column_text(s, 8);
	if (text != NULL)
		snprintf(row->downstream, sizeof(row->downstream), "%s", text);
	text = db_column_text(s, 4);
	if (text == NULL || !record_state_parse(text, &row->state) ||
	    !store_row_is_identity(s, 1, 2, 3) || !store_row_is_count(s, 5) ||
	    !store_row_is_count(s, 6) || !store_row_is_time(s, 11) ||
	    !store_row_is_time(s, 12) || !store_row_is_time(s, 14))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 1, &row->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 2, &row->path)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &row->key)) == RC_OK &&
	    (rc = db_column_strdup(s, 7, &row->recovery_point)) == RC_OK)
		rc = db_column_strdup(s, 13, &row->last_error);
	return rc;
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
	s = db_stmt(reader->db, c->key != NULL ? QUERY_LIST_KEY : QUERY_LIST);
	db_bind_int(s, 1, c->last_id);
	db_bind_text(s, 2, c->scope);
	db_bind_text(s, 3, c->path);
	db_bind_text(s, 4, c->state);
	db_bind_int(s, 5, c->created_before);
	db_bind_int(s, 6, LIST_PAGE);
	db_bind_int(s, 7, c->since);
	if (c->key != NULL)
		db_bind_text(s, 8, c->key);
	while (c->n < LIST_PAGE && (rc = db_step_row(s)) == RC_OK) {
		if (db_column_int(s, 0) > c->until_id) {
			rc = RC_NOTFOUND;
			break;
		}
		rc = read_row(c->store, s, &c->rows[c->n]);
		c->last_id = db_column_int(s, 0);
		if (rc == RC_CORRUPT) {
			store_row_bad(reader->db, "once_key", c->last_id);
			store_row_free(&c->rows[c->n]);
			continue;
		}
		c->n++;
		if (rc != RC_OK)
			break;
	}
	db_reset(s);
	store_reader_give(c->store, reader);
	c->end = rc == RC_NOTFOUND;
	return c->end ? RC_OK : rc;
}

enum rc
store_list_next(struct store_cursor *c, struct store_row *row)
{
	enum rc rc;

	if (c->next == c->n && !c->end) {
		rc = read_page(c);
		if (rc != RC_OK)
			return rc;
	}
	if (c->next == c->n)
		return RC_NOTFOUND;
	*row = c->rows[c->next];
	memset(&c->rows[c->next], 0, sizeof(*row));
	c->next++;
	return RC_OK;
}
