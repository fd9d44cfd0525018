/*
 * Copying all that another store has into this one, in one transaction: after a
 * kill at any point the target has all, or nothing.  Meanwhile no daemon can
 * start on the source, and none on the target.
 *
 * The numbers of keys and effects stay, and so does the secret: a scope or a
 * downstream key that was made before is good afterwards.  Leases are not
 * copied, so the source must have none.  Times are converted from the source's
 * store time to the server's clock.
 *
 * Before COMMIT both stores are read anew, by the functions that a daemon would
 * use, and compared.  So a change of the source during the copy is found, too.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "postgres_copy.h"

/* What a group of statements may take on top of busy_timeout (ms): some of
 * them read all rows. */
#define LONG 3600000

enum rc
postgres_copy_refuse(
    struct postgres_copy *c, enum rc rc, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, c->size, format, ap);
	va_end(ap);
	return rc;
}

void
postgres_copy_patience(const struct store *to, struct pg *pg)
{
	pg_set_deadline(pg, clock_mono() + to->busy_timeout + LONG);
}

/* --- both kinds of rows --------------------------------------------------- */

static int64_t
item_number(const struct postgres_item *it)
{
	return it->l.key.id != 0 ? it->l.key.id : it->effect.id;
}

/* The next row of the store, as the target is to have it, or has it. */
static enum rc
item_next(struct postgres_copy *c, const struct postgres_item_kind *k,
    struct store *s, struct store_cursor *cursor, struct postgres_item *it)
{
	enum rc rc;

	postgres_item_init(it);
	rc = k->read(s, cursor, it);
	if (s == c->to)
		return rc;
	if (rc == RC_OK)
		return k->convert(c, it);
	if (rc != RC_NOTFOUND)
		(void)postgres_copy_refuse(c, rc,
		    "%s: %s %" PRId64 " cannot be read: %s",
		    store_database(c->from), k->name, item_number(it),
		    rc_text(rc));
	return rc;
}

/* Reads all rows of a store; digest: NULL, and they are sent to the target; or
 * gets what all of them have. */
static enum rc
walk_rows(struct postgres_copy *c, const struct postgres_item_kind *k,
    struct store *s, struct digest *digest)
{
	struct store_cursor *cursor;
	struct postgres_item it;
	enum rc rc;

	if ((rc = k->open(s, &cursor)) != RC_OK)
		return rc;
	while (rc == RC_OK) {
		if ((rc = item_next(c, k, s, cursor, &it)) == RC_OK)
			rc = digest != NULL ? k->add(digest, &it)
					    : k->send(c, &it);
		postgres_item_free(&it);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
digest_rows(struct postgres_copy *c, const struct postgres_item_kind *k,
    struct store *s, unsigned char out[DIGEST_LEN])
{
	struct digest digest;
	enum rc rc;

	digest_begin(&digest);
	rc = walk_rows(c, k, s, &digest);
	digest_end(&digest, out);
	return rc;
}

static enum rc
compare_rows(struct postgres_copy *c, const struct postgres_item_kind *k)
{
	unsigned char from[DIGEST_LEN], to[DIGEST_LEN];
	enum rc rc = digest_rows(c, k, c->from, from);

	if (rc == RC_OK)
		rc = digest_rows(c, k, c->to, to);
	if (rc != RC_OK || memcmp(from, to, sizeof(from)) == 0)
		return rc;
	return postgres_copy_refuse(c, RC_CORRUPT,
	    "after the copy the %ss differ; nothing was kept.  If an operator "
	    "changed the source meanwhile, copy again",
	    k->name);
}

/* --- before and after ----------------------------------------------------- */

/*
 * Keeps other processes from the source.  A daemon that starts now fails; one
 * that runs is found.  Programs that handlers have left behind can change
 * nothing without a lease.
 */
static enum rc
source_take(struct postgres_copy *c)
{
	struct liveness *liveness;
	enum rc rc;

	if ((rc = store_liveness(c->from, &liveness)) == RC_OK)
		rc = liveness_take_all(liveness);
	if (rc == RC_BUSY)
		return postgres_copy_refuse(c, RC_BUSY,
		    "%s: a daemon uses it, or another oncectl: stop it "
		    "before",
		    store_database(c->from));
	if (rc != RC_OK)
		return postgres_copy_refuse(
		    c, rc, "%s: cannot be locked", store_database(c->from));
	return RC_OK;
}

static enum rc
target_is_empty(struct postgres_copy *c)
{
	bool empty, unused;
	enum rc rc;

	pg_send(c->pg, PG_QUERY_COPY_TARGET, "");
	if ((rc = pg_one(c->pg, "??", &empty, &unused)) != RC_OK)
		return rc;
	if (!empty)
		return postgres_copy_refuse(c, RC_EXISTS,
		    "%s: has keys or effects already: name a database "
		    "without any",
		    txn_database(c->to->pool));
	if (!unused)
		return postgres_copy_refuse(c, RC_BUSY,
		    "%s: a daemon uses it, or was killed: stop all of them, "
		    "and run oncectl sweep on each host",
		    txn_database(c->to->pool));
	return RC_OK;
}

static enum rc
count_kind(struct postgres_copy *c, const char *what, int64_t rows, int64_t n)
{
	if (rows == n)
		return RC_OK;
	return postgres_copy_refuse(c, RC_CORRUPT,
	    "%s: has %" PRId64 " %s, of which %" PRId64
	    " can be read: \"oncectl doctor\" names the others",
	    store_database(c->from), rows, what, n);
}

/* Rows that make no sense are not listed, and were not copied. */
static enum rc
count_source(struct postgres_copy *c)
{
	struct store_counts counts;
	enum rc rc;

	if ((rc = store_stats(c->from, &counts)) != RC_OK)
		return postgres_copy_refuse(
		    c, rc, "%s: %s", store_database(c->from), rc_text(rc));
	rc = count_kind(c, "keys", counts.key_rows, c->n.keys);
	return rc == RC_OK
	    ? count_kind(c, "effects", counts.effect_rows, c->n.effects)
	    : rc;
}

/* --- the transaction ------------------------------------------------------ */

static void
copy_reset(struct postgres_copy *c, struct pg *pg)
{
	c->pg = pg;
	memset(&c->n, 0, sizeof(c->n));
	c->tries++;
	c->last_key = c->last_effect = 0;
	c->sent = c->batch = 0;
	c->bytes = 0;
	c->ahead = clock_boot() + c->to->base.ahead - store_now(c->from);
}

/*
 * The update of once_meta comes first.  A daemon that starts reads that row
 * with a lock before it inserts its own in once_owner.  So this transaction
 * sees the daemon, or the daemon waits and gets the new secret.
 */
static enum rc
target_take(struct postgres_copy *c)
{
	enum rc rc;

	postgres_copy_patience(c->to, c->pg);
	pg_send(c->pg, PG_QUERY_COPY_PATIENCE, "");
	pg_send(c->pg, PG_QUERY_COPY_SECRET, "b", c->to->secret,
	    sizeof(c->to->secret));
	if ((rc = pg_result(c->pg)) == RC_OK)
		rc = pg_result(c->pg);
	return rc == RC_OK ? target_is_empty(c) : rc;
}

/* What was sent, as the target now has it. */
static enum rc
target_check(struct postgres_copy *c)
{
	enum rc rc;

	pg_send(
	    c->pg, PG_QUERY_COPY_NUMBERS, "ii", c->last_key, c->last_effect);
	if ((rc = pg_result(c->pg)) != RC_OK)
		return rc;
	c->to->copying = c->pg;
	if ((rc = compare_rows(c, &postgres_item_key)) == RC_OK)
		rc = compare_rows(c, &postgres_item_effect);
	c->to->copying = NULL;
	return rc == RC_OK ? count_source(c) : rc;
}

static enum rc
copy_run(struct pg *pg, void *arg)
{
	struct postgres_copy *c = arg;
	enum rc rc;

	copy_reset(c, pg);
	if ((rc = target_take(c)) == RC_OK &&
	    (rc = walk_rows(c, &postgres_item_key, c->from, NULL)) == RC_OK &&
	    (rc = walk_rows(c, &postgres_item_effect, c->from, NULL)) ==
		RC_OK &&
	    (rc = postgres_copy_batch(c, true)) == RC_OK &&
	    (rc = target_check(c)) == RC_OK)
		postgres_copy_patience(c->to, pg);
	return rc;
}

enum rc
postgres_copy(struct store *to, struct store *from, struct store_transfer *n,
    char *why, size_t size)
{
	struct postgres_copy c = {
		.from = from, .to = to, .why = why, .size = size
	};
	enum rc rc;

	why[0] = '\0';
	memcpy(to->secret, store_secret(from), sizeof(to->secret));
	txn_pin(to->pool, to->schema, NULL);
	if ((rc = source_take(&c)) == RC_OK)
		rc = postgres_write(to, copy_run, &c);
	*n = c.n;
	if (rc != RC_OK && why[0] == '\0')
		postgres_explain(to, why, size);
	return rc;
}
