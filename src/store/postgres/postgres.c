/*
 * The key store on PostgreSQL: opening it, and its transactions.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "metrics.h"
#include "postgres_impl.h"
#include "store_admit.h"
#include "store_module.h"
#include "uuid.h"

const struct store_ops postgres_ops = {
#define X(type, name, parameters, arguments) .name = postgres_##name,
	STORE_OPS(X)
#undef X
	    .close = postgres_close,
	.outcome_size = sizeof(struct postgres_outcome),
	.admission_size = sizeof(struct store_admission),
};

/* The URI, and what of this host a daemon needs. */
static enum rc
postgres_check(const char *database, char *err, size_t errsize)
{
	struct pg_target *target;
	enum rc rc;

	snprintf(err, errsize, "%s", rc_text(RC_NOMEM));
	rc = pg_target_parse(&target, database, 0, err, errsize);
	pg_target_free(target);
	return rc == RC_OK ? postgres_host_check(err, errsize) : rc;
}

extern const struct store_module oncewrap_postgresql;
__attribute__((visibility("default")))
const struct store_module oncewrap_postgresql = {
	.version = PACKAGE_VERSION,
	.check = postgres_check,
	.open = postgres_open,
	.handler_api_say = postgres_handler_api_say,
	.init = postgres_init,
	.copy = postgres_copy,
	.accept_loss = postgres_accept_loss,
	.accept_clock = postgres_accept_clock,
};

/* --- transactions --------------------------------------------------------- */

/* What the statements found is no failure. */
static bool
has_failed(enum rc rc)
{
	const bool failed = rc != RC_OK && rc != RC_NOTFOUND && rc != RC_LOST &&
	    rc != RC_EXISTS && rc != RC_INVALID;

	if (failed)
		metrics_count(METRICS_STORE_ERRORS);
	return failed;
}

void
postgres_note(struct store *s, enum rc rc)
{
	lock_take(&s->lock);
	s->failed = rc;
	lock_give(&s->lock);
}

enum rc
postgres_share(struct store *s, enum txn_kind kind, struct txn_op *op,
    enum txn_shared *how)
{
	enum rc rc;

	rc = txn_share(s->pool, kind, op, how);
	/* Alone it may yet succeed. */
	if (*how == TXN_SHARED_ALONE)
		return rc;
	if (kind == TXN_WRITE && op->committed > 0)
		metrics_observe(METRICS_COMMIT_BATCH, op->committed);
	if (*how != TXN_SHARED_UNREAD && has_failed(rc) && kind == TXN_WRITE)
		postgres_note(s, rc);
	return rc;
}

enum rc
postgres_run(struct store *s, enum txn_kind kind, txn_body *body, void *arg)
{
	enum rc rc;

	if (s->copying != NULL) {
		postgres_copy_patience(s, s->copying);
		return body(s->copying, arg);
	}
	rc = txn_run(s->pool, kind, body, arg);
	if (kind != TXN_TWICE && has_failed(rc) && kind == TXN_WRITE)
		postgres_note(s, rc);
	return rc;
}

enum rc
postgres_write(struct store *s, txn_body *body, void *arg)
{
	const enum rc rc = postgres_run(s, TXN_WRITE, body, arg);

	if (rc == RC_OK)
		metrics_observe(METRICS_COMMIT_BATCH, 1);
	return rc;
}

struct ask {
	enum pg_query query;
	const char *parameters, *columns;
	va_list ap;
};

static enum rc
ask_run(struct pg *pg, void *arg)
{
	struct ask *a = arg;
	va_list ap;
	enum rc rc;

	va_copy(ap, a->ap);
	pg_vsend(pg, a->query, a->parameters, &ap);
	rc = a->columns[0] != '\0' ? pg_vone(pg, a->columns, &ap)
				   : pg_update(pg, NULL);
	va_end(ap);
	return rc;
}

enum rc
postgres_ask(struct store *s, enum txn_kind kind, enum pg_query query,
    const char *parameters, const char *columns, ...)
{
	struct ask a = {
		.query = query, .parameters = parameters, .columns = columns
	};
	enum rc rc;

	va_start(a.ap, columns);
	rc = postgres_run(s, kind, ask_run, &a);
	va_end(a.ap);
	return rc;
}

/* --- the files of a store ------------------------------------------------- */

static enum rc
open_host(struct store *s, char *err, size_t errsize)
{
	enum rc rc = postgres_host_open(&s->host, s->daemon, err, errsize);

	s->base.folder = s->host.folder;
	if (rc != RC_OK)
		return rc;
	rc = postgres_host_store(&s->host, s->secret, s->catalog);
	s->base.local = s->host.local;
	if (rc != RC_OK)
		snprintf(err, errsize, "%s", rc_text(rc));
	return rc;
}

/* An operator needs this host's files only now, and makes none. */
static enum rc
open_liveness(struct store *s, char *err, size_t errsize)
{
	enum rc rc;

	if (s->base.local == NULL && (rc = open_host(s, err, errsize)) != RC_OK)
		return rc;
	rc = liveness_open(&s->liveness, s->base.local, s->daemon ? 0600 : 0);
	if (rc == RC_NOTFOUND)
		snprintf(err, errsize, "%s-lock: there is no such file",
		    s->base.local);
	else if (rc != RC_OK)
		snprintf(err, errsize,
		    "%s-lock: %s: it tells which of this host's processes live",
		    s->base.local,
		    rc != RC_BUSY ? strerror(errno) : "cannot be locked");
	if (rc != RC_OK)
		return rc;
	rc = postgres_host_name(&s->host, s->liveness, s->daemon, err, errsize);
	if (rc != RC_OK) {
		liveness_close(s->liveness);
		s->liveness = NULL;
	}
	s->base.host = s->host.number;
	return rc;
}

enum rc
postgres_liveness_why(
    struct store *s, struct liveness **out, char *err, size_t errsize)
{
	enum rc rc = RC_OK;

	lock_take(&s->lock);
	if (s->liveness == NULL)
		rc = open_liveness(s, err, errsize);
	*out = s->liveness;
	lock_give(&s->lock);
	return rc;
}

enum rc
postgres_liveness(struct store *s, struct liveness **out)
{
	char why[512] = "";
	enum rc rc = postgres_liveness_why(s, out, why, sizeof(why));

	if (rc != RC_OK)
		txn_set_message(s->pool, why);
	return rc;
}

/* --- opening -------------------------------------------------------------- */

enum rc
postgres_check_server(struct store *s, char *err, size_t errsize)
{
	struct txn_server c;
	const char *off;
	enum rc rc;

	if ((rc = postgres_run(s, TXN_LOOK, txn_server_read, &c)) != RC_OK) {
		postgres_explain(s, err, errsize);
		return rc;
	}
	s->standby = c.standby;
	if (c.version < POSTGRES_VERSION) {
		snprintf(err, errsize,
		    "database %s: the server is of version %d.%d, and "
		    "oncewrap needs 13 or later",
		    txn_database(s->pool), (int)(c.version / 10000),
		    (int)(c.version % 100));
		return RC_VERSION;
	}
	if (c.off != NULL)
		txn_note_setting(s->pool, c.off);
	if ((off = txn_unsafe(s->pool)) == NULL)
		return RC_OK;
	txn_unsafe_text(s->pool, off, err, errsize);
	return RC_UNSAFE;
}

/* RC_LOST: a copy into the store has ended, and its secret is another one. */
static enum rc
open_owner(struct store *s, char *err, size_t errsize)
{
	struct liveness *liveness;
	enum rc rc;

	liveness_close(s->liveness);
	s->liveness = NULL;
	s->base.local = NULL;
	err[0] = '\0';
	if ((rc = postgres_liveness_why(s, &liveness, err, errsize)) != RC_OK)
		return rc;
	txn_pin(s->pool, s->schema, s->secret);
	txn_set_owner(s->pool, liveness_self(liveness));
	return postgres_owner_new(s);
}

/* A daemon, which will hold leases. */
static enum rc
open_daemon(struct store *s, char *err, size_t errsize)
{
	enum rc rc;

	do
		rc = open_owner(s, err, errsize);
	while (rc == RC_LOST);
	if (rc == RC_OK)
		rc = postgres_keeper_start(s);
	if (rc != RC_OK && err[0] == '\0')
		snprintf(err, errsize, "database %s: %s", txn_database(s->pool),
		    rc_text(rc));
	return rc;
}

/* Connects, and looks at the server. */
static enum rc
open_server(struct store **out, const struct store_options *o, char *err,
    size_t errsize)
{
	struct txn_options to = { .database = o->database,
		.busy_timeout = o->busy_timeout,
		.connections = o->workers < POSTGRES_CONNECTIONS
		    ? o->workers
		    : POSTGRES_CONNECTIONS,
		.durable = o->create && o->durability == CONF_DURABILITY_FULL };
	struct store *s = calloc(1, sizeof(*s));
	enum rc rc;

	*out = s;
	if (s == NULL) {
		snprintf(err, errsize, "%s", rc_text(RC_NOMEM));
		return RC_NOMEM;
	}
	s->base.ops = &postgres_ops;
	s->busy_timeout = o->busy_timeout;
	s->owner_timeout = o->owner_timeout;
	s->daemon = o->create;
	s->full = o->durability == CONF_DURABILITY_FULL;
	lock_init(&s->lock, LOCK_STORE);
	lock_cond_init(&s->beat);
	s->base.news = store_news_open();
	s->base.lock = &s->lock;
	s->base.secret = s->secret;
	if ((rc = txn_open(&s->pool, &to, err, errsize)) != RC_OK)
		return rc;
	s->base.database = txn_database(s->pool);
	rc = postgres_check_server(s, err, errsize);
	if (rc == RC_TIMEOUT || rc == RC_BUSY || !postgres_is_pooled(s))
		return rc;
	snprintf(err, errsize,
	    "database %s: a pooler gives each transaction another session of "
	    "the server: let it keep a session to its client (pgbouncer: "
	    "pool_mode = session), or name the server itself",
	    txn_database(s->pool));
	return RC_INVALID;
}

enum rc
postgres_open(struct store **out, const struct store_options *o, char *err,
    size_t errsize)
{
	struct store *s;
	enum rc rc;

	*out = NULL;
	rc = open_server(&s, o, err, errsize);
	if (rc == RC_OK)
		rc = postgres_schema_open(s, false, err, errsize);
	if (rc == RC_OK && o->create) {
		rc = open_daemon(s, err, errsize);
	} else if (rc == RC_OK) {
		/* random, as the number of a daemon is */
		s->owner = (int64_t)uuid_bits() << 31 | uuid_bits();
		txn_set_owner(s->pool, s->owner);
	}
	if (rc == RC_OK)
		*out = s;
	else
		postgres_close(s);
	return rc;
}

enum rc
postgres_init(
    const struct store_options *o, const char *role, char *err, size_t errsize)
{
	struct store *s;
	enum rc rc;

	rc = open_server(&s, o, err, errsize);
	if (rc == RC_OK)
		rc = postgres_schema_open(s, true, err, errsize);
	if (rc == RC_OK && role != NULL)
		rc = postgres_grant(s, role, err, errsize);
	postgres_close(s);
	return rc;
}

void
postgres_close(struct store *s)
{
	if (s == NULL)
		return;
	postgres_keeper_stop(s);
	if (s->pool != NULL)
		postgres_owner_end(s);
	txn_close(s->pool);
	postgres_former_free(s->former);
	liveness_close(s->liveness);
	postgres_watched_free(s->watched);
	postgres_host_free(&s->host);
	if (s->base.news != -1)
		close(s->base.news);
	pthread_cond_destroy(&s->beat);
	postgres_spec_free(s);
	lock_destroy(&s->lock);
	free(s);
}

void
postgres_explain(const struct store *s, char *err, size_t errsize)
{
	char why[512];

	txn_message(s->pool, why, sizeof(why));
	snprintf(err, errsize, "database %s: %s", txn_database(s->pool), why);
}

void
postgres_tell_standby(const struct store *s, char *out, size_t size)
{
	const size_t len = strlen(out);

	if (s->standby)
		snprintf(out + len, size - len,
		    "; or no standby confirms (synchronous_standby_names, "
		    "pg_stat_replication)");
}

/* Other codes may have no message, and the last one is of something else. */
const char *
postgres_why(struct store *s, enum rc rc, char *out, size_t size)
{
	struct txn_health health;

	txn_health(s->pool, &health);
	if (rc == RC_IO || rc == RC_TIMEOUT ||
	    (rc == RC_BUSY && !health.connected))
		txn_message(s->pool, out, size);
	else
		*out = '\0';
	if (*out == '\0')
		snprintf(out, size, "%s", rc_text(rc));
	if (rc == RC_BUSY || rc == RC_TIMEOUT || rc == RC_PENDING)
		postgres_tell_standby(s, out, size);
	return out;
}
