/*
 * What an operator asks the store: counts, the callers, an answer that was not
 * accepted, and a backup, which is PostgreSQL's own business.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "postgres_count.h"
#include "postgres_impl.h"
#include "store_operator.h"

/* --- counts --------------------------------------------------------------- */

struct stats {
	struct postgres_count keys[RECORD_NSTATES];
	int64_t key_rows, effect_rows, bytes;
};

static enum rc
stats_run(struct pg *pg, void *arg)
{
	struct stats *st = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_COUNTS, "");
	pg_send(pg, PG_QUERY_ALL_ROWS, "");
	pg_send(pg, PG_QUERY_DATABASE_BYTES, "");
	if ((rc = pg_sync(pg)) == RC_OK &&
	    (rc = postgres_count_keys(pg, st->keys)) == RC_OK &&
	    (rc = pg_one(pg, "ii", &st->key_rows, &st->effect_rows)) == RC_OK)
		rc = pg_one(pg, "i", &st->bytes);
	return rc;
}

enum rc
postgres_stats(struct store *s, struct store_counts *c)
{
	struct stats st;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	if ((rc = postgres_read(s, stats_run, &st)) != RC_OK)
		return rc;
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		c->keys[i] = st.keys[i].n;
		c->answer_bytes += st.keys[i].bytes;
	}
	c->key_rows = st.key_rows;
	c->effect_rows = st.effect_rows;
	c->oldest_unknown_wall = st.keys[RECORD_UNKNOWN].oldest;
	c->database_bytes = st.bytes;
	c->wal_bytes = -1; /* the log is the whole server's */
	return RC_OK;
}

/* --- by scope ------------------------------------------------------------- */

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

struct scopes {
	const char *after;
	struct store_scope *scopes;
	size_t max, n;
};

static enum rc
scopes_run(struct pg *pg, void *arg)
{
	struct scopes *l = arg;
	struct store_scope *sc;
	enum rc rc;

	store_scopes_free(l->scopes, l->n);
	l->n = 0;
	pg_send(pg, PG_QUERY_SCOPES, "si", l->after, (int64_t)l->max);
	rc = pg_sync(pg);
	if (rc == RC_OK)
		rc = pg_result(pg);
	while (rc == RC_OK && l->n < l->max && (rc = pg_next(pg)) == RC_OK) {
		sc = &l->scopes[l->n];
		memset(sc, 0, sizeof(*sc));
		rc = pg_members(pg, scope_columns, NSCOPE, sc);
		if (rc == RC_OK)
			l->n++;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
postgres_scopes(struct store *s, const char *after, struct store_scope *scopes,
    size_t max, size_t *n)
{
	struct scopes l = { after, scopes, max, 0 };
	enum rc rc = postgres_read(s, scopes_run, &l);

	if (rc != RC_OK) {
		store_scopes_free(scopes, l.n);
		l.n = 0;
	}
	*n = l.n;
	return rc;
}

/* --- an answer that was not accepted -------------------------------------- */

struct output {
	int64_t id;
	struct store_output *output;
};

static enum rc
output_run(struct pg *pg, void *arg)
{
	const struct output *find = arg;
	struct store_output *o = find->output;
	int64_t exit_status = 0;
	const void *bytes;
	size_t n;
	enum rc rc;

	buf_free(&o->bytes);
	buf_init(&o->bytes, LIMIT_REFUSED);
	pg_send(pg, PG_QUERY_REFUSED, "i", find->id);
	if ((rc = pg_sync(pg)) != RC_OK ||
	    (rc = pg_one(pg, "didmb", &o->attempt, &exit_status, &o->signal,
		 &o->length, &bytes, &n)) != RC_OK)
		return rc;
	rc = buf_add(&o->bytes, bytes, n);
	o->exit_status = (int)exit_status;
	if (rc == RC_LIMIT || exit_status < -1 || exit_status > INT_MAX ||
	    (uint64_t)o->length < n)
		rc = RC_CORRUPT;
	return rc;
}

enum rc
postgres_output(struct store *s, int64_t id, struct store_output *output)
{
	struct output find = { id, output };
	enum rc rc;

	memset(output, 0, sizeof(*output));
	buf_init(&output->bytes, LIMIT_REFUSED);
	rc = postgres_look(s, output_run, &find);
	if (rc != RC_OK)
		buf_free(&output->bytes);
	return rc;
}

/* --- backup --------------------------------------------------------------- */

enum rc
postgres_backup(struct store *s, const struct store_backup *what,
    struct store_copied *copied, char *why, size_t size)
{
	(void)what;
	memset(copied, 0, sizeof(*copied));
	snprintf(why, size,
	    "%s: a copy of a PostgreSQL database is made by pg_dump(1), which "
	    "copies all of one moment",
	    txn_database(s->pool));
	return RC_INVALID;
}
