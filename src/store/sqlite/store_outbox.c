/*
 * The key store's outbox: effects that are due, the tries that deliver them,
 * and operators' reads and changes.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "log.h"
#include "store_impl.h"
#include "store_row.h"
#include "store_outbox.h"

/* Rows that a list reads at a time. */
#define LIST_PAGE 64

static const char *const names[STORE_EFFECT_NSTATES] = {
	[STORE_EFFECT_NONE] = "none",
	[STORE_EFFECT_PENDING] = "pending",
	[STORE_EFFECT_DELIVERED] = "delivered",
	[STORE_EFFECT_DEAD_LETTER] = "dead_letter",
};

const char *
store_effect_state_name(enum store_effect_state state)
{
	assert((unsigned)state < STORE_EFFECT_NSTATES);
	return names[state];
}

bool
store_effect_state_parse(const char *name, enum store_effect_state *state)
{
	int i;

	for (i = STORE_EFFECT_PENDING; i < STORE_EFFECT_NSTATES; i++) {
		if (strcmp(name, names[i]) == 0) {
			*state = (enum store_effect_state)i;
			return true;
		}
	}
	return false;
}

/* --- trying ------------------------------------------------------------- */

void
store_effect_free(struct store_effect *e)
{
	free(e->topic);
	free(e->scope);
	free(e->path);
	free(e->key);
	memset(e, 0, sizeof(*e));
}

static enum rc
read_effect(struct db_stmt *s, struct store_effect *e)
{
	enum rc rc;

	e->id = db_column_int(s, 0);
	e->key_id = db_column_int(s, 2);
	e->attempts = (int)db_column_int(s, 3);
	if (!store_row_copy(s, 4, e->effect_key, sizeof(e->effect_key)) ||
	    strlen(e->effect_key) != RECORD_UUID_LEN ||
	    !store_row_is_time(s, 1) || !store_row_is_count(s, 3) ||
	    db_column_text(s, 5) == NULL || !store_row_is_identity(s, 6, 7, 8))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 5, &e->topic)) == RC_OK &&
	    (rc = db_column_strdup(s, 6, &e->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 7, &e->path)) == RC_OK)
		rc = db_column_strdup(s, 8, &e->key);
	return rc;
}

enum rc
store_effect_next(
    struct store *store, const char *topic, struct store_effect *e, int64_t *at)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	memset(e, 0, sizeof(*e));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_EFFECT_NEXT);
	db_bind_text(s, 1, topic);
	while ((rc = db_step_row(s)) == RC_OK &&
	    (rc = read_effect(s, e)) == RC_CORRUPT) {
		store_row_bad(reader->db, "once_effect", e->id);
		store_effect_free(e);
	}
	if (rc == RC_OK)
		*at = db_column_int(s, 1);
	db_reset(s);
	store_reader_give(store, reader);
	if (rc != RC_OK)
		store_effect_free(e);
	return rc;
}

/* The caller holds a read transaction open. */
static enum rc
read_payload(
    struct db *db, const struct store_effect *e, struct spool **payload)
{
	struct db_stmt *s = db_stmt(db, QUERY_EFFECT_PAYLOAD);
	const void *bytes;
	size_t length;
	size_t n;
	enum rc rc;
	bool apart;

	db_bind_int(s, 1, e->id);
	db_bind_text(s, 2, e->effect_key);
	if ((rc = db_step_row(s)) != RC_OK)
		return rc;
	bytes = db_column_blob(s, 0, &n);
	apart = !db_column_null(s, 1);
	length = db_column_length(s, 1);
	if (db_column_null(s, 0) != apart)
		rc = RC_CORRUPT;
	else if (!apart && n == 0)
		rc = RC_OK;
	else if ((*payload = spool_new()) == NULL)
		rc = RC_NOMEM;
	else if (apart)
		rc = store_read_blob(
		    db, "once_payload", e->id, length, *payload);
	else
		rc = spool_write(*payload, bytes, n);
	db_reset(s);
	return rc;
}

enum rc
store_effect_payload(
    struct store *store, const struct store_effect *e, struct spool **payload)
{
	struct store_reader *reader;
	enum rc rc;

	*payload = NULL;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = db_begin_read(reader->db);
	if (rc == RC_OK)
		rc = read_payload(reader->db, e, payload);
	db_rollback(reader->db);
	store_reader_give(store, reader);
	if (rc != RC_OK) {
		spool_free(*payload);
		*payload = NULL;
	}
	return rc;
}

/* --- for operators ------------------------------------------------------ */

struct store_outbox {
	struct store *store;
	char *scope, *path;
	const char *state;
	int64_t since, last_id, until_id;
	struct store_effect_row rows[LIST_PAGE];
	size_t next, n;
	bool end;
};

void
store_effect_row_free(struct store_effect_row *row)
{
	free(row->key);
	free(row->scope);
	free(row->path);
	free(row->topic);
	free(row->last_error);
	free(row->reference);
	memset(row, 0, sizeof(*row));
}

enum rc
store_outbox_list(struct store *store, const struct store_effect_filter *f,
    struct store_outbox **out)
{
	struct store_outbox *o;

	*out = NULL;
	if ((o = calloc(1, sizeof(*o))) == NULL)
		return RC_NOMEM;
	o->store = store;
	o->since = f->since;
	o->until_id = INT64_MAX;
	if (f->id != 0) {
		o->last_id = f->id - 1;
		o->until_id = f->id;
	}
	if (f->state != STORE_EFFECT_NONE)
		o->state = names[f->state];
	if ((f->scope != NULL && (o->scope = strdup(f->scope)) == NULL) ||
	    (f->path != NULL && (o->path = strdup(f->path)) == NULL)) {
		store_outbox_free(o);
		return RC_NOMEM;
	}
	*out = o;
	return RC_OK;
}

void
store_outbox_free(struct store_outbox *o)
{
	if (o == NULL)
		return;
	for (; o->next < o->n; o->next++)
		store_effect_row_free(&o->rows[o->next]);
	free(o->scope);
	free(o->path);
	free(o);
}

/* Copies bytes of any value, with a NUL added. */
static enum rc
copy_reference(struct db_stmt *s, int i, struct store_effect_row *row)
{
	const void *bytes = db_column_blob(s, i, &row->reference_len);

	if (row->reference_len == 0)
		return RC_OK;
	row->reference = calloc(1, row->reference_len + 1);
	if (row->reference == NULL)
		return RC_NOMEM;
	memcpy(row->reference, bytes, row->reference_len);
	return RC_OK;
}

static enum rc
read_row(struct store *store, struct db_stmt *s, struct store_effect_row *row)
{
	const char *state = db_column_text(s, 5);
	struct liveness *liveness;
	bool alive = true;
	enum rc rc;

	memset(row, 0, sizeof(*row));
	row->id = db_column_int(s, 0);
	row->attempts = (int)db_column_int(s, 6);
	row->created_at = db_column_int(s, 11);
	row->updated_at = db_column_int(s, 12);
	/* A handler's insert has 0: due at once. */
	if (!db_column_null(s, 7))
		row->next_at = db_column_int(s, 7) == 0
		    ? row->created_at
		    : store_wall(store, db_column_int(s, 7));
	row->claimed = !db_column_null(s, 13);
	if (row->claimed && store_liveness(store, &liveness) == RC_OK &&
	    liveness_alive(liveness, db_column_int(s, 13), &alive) == RC_OK)
		row->lost = !alive;
	if (state == NULL || !store_effect_state_parse(state, &row->state) ||
	    !store_row_is_identity(s, 2, 3, 1) || !store_row_is_count(s, 6) ||
	    !store_row_is_time(s, 7) || db_column_text(s, 4) == NULL ||
	    !store_row_copy(s, 10, row->effect_key, sizeof(row->effect_key)))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 1, &row->key)) == RC_OK &&
	    (rc = db_column_strdup(s, 2, &row->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &row->path)) == RC_OK &&
	    (rc = db_column_strdup(s, 4, &row->topic)) == RC_OK &&
	    (rc = db_column_strdup(s, 9, &row->last_error)) == RC_OK)
		rc = copy_reference(s, 8, row);
	return rc;
}

static enum rc
read_page(struct store_outbox *o)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	o->next = o->n = 0;
	rc = store_reader_take(o->store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_EFFECT_LIST);
	db_bind_int(s, 1, o->last_id);
	db_bind_text(s, 2, o->scope);
	db_bind_text(s, 3, o->path);
	db_bind_text(s, 4, o->state);
	db_bind_int(s, 5, o->since);
	db_bind_int(s, 6, LIST_PAGE);
	while (o->n < LIST_PAGE && (rc = db_step_row(s)) == RC_OK) {
		if (db_column_int(s, 0) > o->until_id) {
			rc = RC_NOTFOUND;
			break;
		}
		rc = read_row(o->store, s, &o->rows[o->n]);
		o->last_id = db_column_int(s, 0);
		if (rc == RC_CORRUPT) {
			store_row_bad(reader->db, "once_effect", o->last_id);
			store_effect_row_free(&o->rows[o->n]);
			continue;
		}
		o->n++;
		if (rc != RC_OK)
			break;
	}
	db_reset(s);
	store_reader_give(o->store, reader);
	o->end = rc == RC_NOTFOUND;
	return o->end ? RC_OK : rc;
}

enum rc
store_outbox_next(struct store_outbox *o, struct store_effect_row *row)
{
	enum rc rc;

	if (o->next == o->n && !o->end && (rc = read_page(o)) != RC_OK)
		return rc;
	if (o->next == o->n)
		return RC_NOTFOUND;
	*row = o->rows[o->next];
	memset(&o->rows[o->next], 0, sizeof(*row));
	o->next++;
	return RC_OK;
}
