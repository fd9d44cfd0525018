/*
 * A new connection: its settings, and whether it leads to the same store.
 */
#include "config.h"

#include <string.h>

#include "pg_impl.h"
#include "txn_impl.h"

static enum rc
compare_secret(struct txn_pool *pool, struct pg *pg)
{
	const void *secret = NULL;
	size_t n = 0;
	enum rc rc;

	pg_send(pg, PG_QUERY_SESSION_SECRET, "");
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "b", &secret, &n);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		return rc;
	pool->other = rc != RC_OK || n != sizeof(pool->secret) ||
	    memcmp(secret, pool->secret, n) != 0;
	return pool->other ? pg_lost(pg, RC_IO, "connect", TXN_OTHER) : RC_OK;
}

enum rc
txn_session_begin(struct txn_pool *pool, struct pg *pg)
{
	const char *schema = pool->schema[0] != '\0' ? pool->schema : NULL;
	enum rc rc;

	rc = pg_set_session(pg, pool->busy_timeout, TXN_GRACE, schema);
	return rc == RC_OK && pool->compares ? compare_secret(pool, pg) : rc;
}
