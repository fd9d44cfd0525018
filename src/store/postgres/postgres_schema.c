/*
 * The schema of the store on PostgreSQL: its version, its secret, and making
 * it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "log.h"
#include "postgres_impl.h"

/* Of the store, what is found there goes into its struct. */
struct schema {
	struct store *store;
	bool exists, makes;
	int64_t version;
	bool sound;
	struct postgres_clock clock;
};

static const char *const statements[] = {
#define X(name, text, reason) text,
	PG_SCHEMA(X)
#ifdef RECORD_CHECKS
	    PG_CHECKS(X)
#endif
#undef X
};

static enum rc
schema_find(struct pg *pg, struct schema *m)
{
	struct store *s = m->store;
	char found[TXN_NAME_SIZE];
	bool usable;
	enum rc rc;

	pg_send(pg, PG_QUERY_CATALOG, "");
	pg_send(pg, PG_QUERY_META_PLACE, "");
	pg_send(pg, PG_QUERY_META_SCHEMA, "");
	if ((rc = pg_one(pg, "f", s->catalog, sizeof(s->catalog))) != RC_OK ||
	    (rc = pg_one(pg, "f", s->schema, sizeof(s->schema))) != RC_OK)
		return rc;
	rc = pg_one(pg, "f?", found, sizeof(found), &usable);
	m->exists = rc == RC_OK &&
	    (usable || !m->makes || strcmp(found, s->schema) == 0);
	if (m->exists)
		memcpy(s->schema, found, sizeof(found));
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
schema_make(struct pg *pg, const struct schema *m)
{
	enum rc rc = RC_OK;

	for (size_t i = 0;
	     rc == RC_OK && i < sizeof(statements) / sizeof(statements[0]);
	     i++) {
		rc = pg_exec(pg, statements[i]);
		FAULT(SCHEMA_STEP);
	}
	if (rc != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_META_NEW, "ib", (int64_t)PG_QUERY_VERSION,
	    m->store->secret, sizeof(m->store->secret));
	rc = pg_update(pg, NULL);
	FAULT(SCHEMA_READY);
	return rc;
}

static enum rc
schema_run(struct pg *pg, void *arg)
{
	struct schema *m = arg;
	struct store *s = m->store;
	int64_t losses = 0;
	const void *secret;
	enum rc rc;
	size_t n;

	m->sound = false;
	if ((rc = schema_find(pg, m)) != RC_OK || (!m->exists && !m->makes))
		return rc;
	if (!m->exists && (rc = schema_make(pg, m)) != RC_OK)
		return rc;
	pg_send(pg, PG_QUERY_META, "");
	rc = pg_one(pg, "ibi", &m->version, &secret, &n, &losses);
	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	s->losses = losses;
	m->sound = n == sizeof(s->secret);
	if (!m->sound || m->version != PG_QUERY_VERSION)
		return RC_OK;
	memcpy(s->secret, secret, n);
	postgres_clock_send(s, pg);
	return postgres_clock_read(pg, &m->clock);
}

/* --- rights --------------------------------------------------------------- */

enum rc
postgres_names_read(struct store *s, struct postgres_names *names)
{
	char *text = NULL;
	enum rc rc =
	    postgres_ask(s, TXN_READ, names->query, "", "is", &names->n, &text);

	snprintf(
	    names->text, sizeof(names->text), "%s", text != NULL ? text : "");
	free(text);
	return rc;
}

/* Without them a daemon would start, and find that no key can be reserved. */
static enum rc
schema_rights(struct store *s, char *err, size_t errsize)
{
	struct postgres_names missing = { .query = PG_QUERY_MISSING_RIGHTS },
			      owner = { .query = PG_QUERY_OWNING_ROLE };
	enum rc rc;

	if ((rc = postgres_names_read(s, &missing)) == RC_OK)
		rc = postgres_names_read(s, &owner);
	if (rc != RC_OK) {
		postgres_explain(s, err, errsize);
		return rc;
	}
	if (missing.n == 0)
		return RC_OK;
	snprintf(err, errsize,
	    "database %s: its role must be able to read and change %s: name "
	    "the role %s, which owns the tables",
	    txn_database(s->pool), missing.text, owner.text);
	return RC_INVALID;
}

static enum rc
grant_run(struct pg *pg, void *arg)
{
	const char *const *role = arg, *statement;
	enum rc rc;

	pg_send(pg, PG_QUERY_GRANT, "s", *role);
	rc = pg_one(pg, "p", &statement);
	return rc == RC_OK ? pg_exec(pg, statement) : rc;
}

enum rc
postgres_grant(struct store *s, const char *role, char *err, size_t errsize)
{
	enum rc rc = postgres_run(s, TXN_TWICE, grant_run, &role);

	if (rc != RC_OK)
		postgres_explain(s, err, errsize);
	return rc;
}

/* With the cure, if the role lacks a right. */
static void
schema_explain(
    struct store *s, const struct schema *m, char *err, size_t errsize)
{
	struct postgres_names owner = { .query = PG_QUERY_OWNING_ROLE };
	size_t n;

	postgres_explain(s, err, errsize);
	n = strlen(err);
	if (strstr(err, "permission denied") == NULL)
		return;
	if (m->exists && postgres_names_read(s, &owner) == RC_OK)
		snprintf(err + n, errsize - n,
		    ": name the role %s, which owns the tables", owner.text);
	else
		snprintf(err + n, errsize - n,
		    ": name a role that owns the database, or make one by "
		    "createdb -O");
}

enum rc
postgres_schema_open(struct store *s, bool make, char *err, size_t errsize)
{
	const char *database = txn_database(s->pool);
	struct schema m = { .store = s, .makes = make };
	enum rc rc;

	/* It is used only by the process that makes the schema. */
	if (make && getentropy(s->secret, sizeof(s->secret)) == -1)
		return RC_IO;
	/* Of two processes that make it at the same time one fails. */
	rc = postgres_run(s, TXN_TWICE, schema_run, &m);
	if (rc != RC_OK && make)
		rc = postgres_run(s, TXN_TWICE, schema_run, &m);
	if (rc != RC_OK) {
		schema_explain(s, &m, err, errsize);
		return rc;
	}
	if (!m.exists && !make) {
		snprintf(err, errsize,
		    "database %s: has no tables of oncewrap on the search_path "
		    "of this role: for a new store make them: "
		    "oncectl -d '%s' init; else mend the search_path",
		    database, database);
		return RC_NOTFOUND;
	}
	if (!m.sound) {
		snprintf(err, errsize,
		    "database %s: the row of table once_meta is missing or "
		    "makes no sense",
		    database);
		return RC_CORRUPT;
	}
	if (m.version != PG_QUERY_VERSION) {
		snprintf(err, errsize,
		    "database %s: another release of oncewrap made it: "
		    "version %d, and this release needs %d",
		    database, (int)m.version, PG_QUERY_VERSION);
		return RC_VERSION;
	}
	txn_pin(s->pool, s->schema, s->secret);
	postgres_clock_set(s, &m.clock);
	FAULT(SCHEMA_DONE);
	return make || s->daemon ? schema_rights(s, err, errsize) : RC_OK;
}

/* --- poolers -------------------------------------------------------------- */

/*
 * Prepared statements, lock_timeout and the other settings belong to a session.
 * With such a pooler (pgbouncer: pool_mode = transaction) they would be lost,
 * or another program's.  It is found by two connections: while the second one
 * is in a transaction, the first must keep its session, and the second must
 * have another one.
 */

struct sessions {
	struct pg *first;
	int64_t before, second, after; /* processes of the server */
};

/* Without a prepared statement, which a pooler may refuse. */
static enum rc
session_read(struct pg *pg, int64_t *process)
{
	enum rc rc = pg_exec(pg, pg_query_text(PG_QUERY_SESSION_PROCESS));

	return rc == RC_OK ? pg_row(pg, "i", process) : rc;
}

static enum rc
run_second(struct pg *pg, void *arg)
{
	struct sessions *c = arg;
	enum rc rc;

	if ((rc = pg_exec(pg, pg_query_text(PG_QUERY_BEGIN))) == RC_OK &&
	    (rc = session_read(pg, &c->second)) == RC_OK)
		rc = session_read(c->first, &c->after);
	return rc;
}

static enum rc
run_first(struct pg *pg, void *arg)
{
	struct store *s = arg;
	struct sessions c = { .first = pg };
	enum rc rc;

	if ((rc = session_read(pg, &c.before)) == RC_OK)
		rc = txn_apart(s->pool, run_second, &c);
	if (rc == RC_OK && (c.before == c.second || c.before != c.after))
		rc = RC_LOST;
	return rc;
}

bool
postgres_is_pooled(struct store *s)
{
	return txn_apart(s->pool, run_first, s) == RC_LOST;
}
