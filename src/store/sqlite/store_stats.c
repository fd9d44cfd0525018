/*
 * Counts of the key store, for an operator.
 */
#include "config.h"

#include <sys/stat.h>

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
count(struct db *db, struct store_counts *c)
{
	struct db_stmt *s = db_stmt(db, QUERY_COUNTS);
	enum record_state state;
	const char *name;
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK) {
		name = db_column_text(s, 0);
		if (name == NULL || !record_state_parse(name, &state))
			continue; /* doctor names it */
		c->keys[state] = db_column_int(s, 1);
		if (state == RECORD_UNKNOWN)
			c->oldest_unknown_wall = db_column_int(s, 2);
		c->answer_bytes += db_column_int(s, 3);
	}
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_stats(struct store *store, struct store_counts *c)
{
	struct store_reader *reader;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = count(reader->db, c);
	store_reader_give(store, reader);
	c->database_bytes = store_file_size(store, "");
	c->wal_bytes = store_file_size(store, "-wal");
	return rc;
}

/* --- by scope ----------------------------------------------------------- */

void
store_scopes_free(struct store_scope *scopes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(scopes[i].scope);
		scopes[i].scope = NULL;
	}
}

enum rc
store_scopes(struct store *store, const char *after, struct store_scope *scopes,
    size_t max, size_t *n)
{
	struct store_reader *reader;
	struct store_scope *sc;
	struct db_stmt *s;
	enum rc rc;

	*n = 0;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, QUERY_SCOPES);
	if (after != NULL)
		db_bind_text(s, 1, after);
	db_bind_int(s, 2, (int64_t)max);
	while (*n < max && (rc = db_step_row(s)) == RC_OK) {
		sc = &scopes[*n];
		memset(sc, 0, sizeof(*sc));
		rc = db_column_strdup(s, 0, &sc->scope);
		if (rc != RC_OK)
			break;
		for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++)
			sc->keys[i] = db_column_int(s, i);
		(*n)++;
	}
	db_reset(s);
	store_reader_give(store, reader);
	if (rc == RC_OK || rc == RC_NOTFOUND)
		return RC_OK;
	store_scopes_free(scopes, *n);
	*n = 0;
	return rc;
}
