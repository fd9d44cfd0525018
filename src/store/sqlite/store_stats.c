/*
 * Counts of the key store, for an operator.
 */
#include "config.h"

#include <sys/stat.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_operator.h"
#include "store_impl.h"

int64_t
store_file_size(const struct store *store, const char *suffix)
{
	struct stat st;
	char *name;
	int64_t size = 0;

	if (asprintf(&name, "%s%s", store->file, suffix) == -1)
		return 0;
	if (stat(name, &st) == 0)
		size = st.st_size;
	free(name);
	return size;
}

static enum rc
stats_count(struct db *db, struct store_counts *c)
{
	struct store_count keys[RECORD_NSTATES];
	enum rc rc = store_count_keys(db, QUERY_COUNTS, keys);

	for (int i = RECORD_PENDING; i < RECORD_NSTATES && rc == RC_OK; i++) {
		c->keys[i] = keys[i].n;
		c->answer_bytes += keys[i].bytes;
	}
	if (rc == RC_OK)
		rc = db_onef(db_stmt(db, QUERY_ALL_ROWS), "ii", &c->key_rows,
		    &c->effect_rows);
	if (rc == RC_OK)
		c->oldest_unknown_wall = keys[RECORD_UNKNOWN].oldest;
	return rc;
}

enum rc
sqlite_stats(struct store *store, struct store_counts *c)
{
	struct store_reader *reader;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = stats_count(reader->db, c);
	store_reader_give(store, reader);
	c->database_bytes = store_file_size(store, "");
	c->wal_bytes = store_file_size(store, "-wal");
	return rc;
}

/* --- by scope ----------------------------------------------------------- */

#define STATE(name, state)                               \
	{                                                \
		name, 'i',                               \
		    offsetof(struct store_scope, keys) + \
		    (state) * sizeof(int64_t),           \
		    sizeof(int64_t), NULL                \
	}

static const struct row_member scope_columns[] = {
	ROW_MEMBER('s', store_scope, scope),
	STATE("pending", RECORD_PENDING),
	STATE("in_progress", RECORD_IN_PROGRESS),
	STATE("completed", RECORD_COMPLETED),
	STATE("failed_retryable", RECORD_FAILED_RETRYABLE),
	STATE("unknown", RECORD_UNKNOWN),
	STATE("dead_letter", RECORD_DEAD_LETTER),
	STATE("expired", RECORD_EXPIRED),
};
#define NSCOPE (sizeof(scope_columns) / sizeof(scope_columns[0]))
_Static_assert(
    NSCOPE == RECORD_NSTATES, "a scope, and a column for each state");

enum rc
sqlite_scopes(struct store *store, const char *after,
    struct store_scope *scopes, size_t max, size_t *n)
{
	struct store_reader *reader;
	struct store_scope *sc;
	enum rc rc;

	*n = 0;
	rc = store_reader_query(store, QUERY_SCOPES, &reader);
	if (rc != RC_OK)
		return rc;
	db_bindf(reader->s, "si", after, (int64_t)max);
	while (*n < max && (rc = db_step_row(reader->s)) == RC_OK) {
		sc = &scopes[*n];
		memset(sc, 0, sizeof(*sc));
		rc = db_members(reader->s, scope_columns, NSCOPE, sc);
		if (rc != RC_OK)
			break;
		(*n)++;
	}
	store_reader_give(store, reader);
	if (rc == RC_OK || rc == RC_NOTFOUND)
		return RC_OK;
	store_scopes_free(scopes, *n);
	*n = 0;
	return rc;
}
