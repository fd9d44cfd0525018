/*
 * A pool of connections to a real PostgreSQL server, straight or through a
 * proxy that the test disturbs.  Included by tests only.
 */
#ifndef TXN_FIXTURE_H
#define TXN_FIXTURE_H

#include "postgres.h"
#include "txn.h"

#define OWNER INT64_C(7)

static char primary[512], through[512];
static struct txn_pool *pool;

/* An owner of 0: it has none yet, so it only reads. */
static struct txn_pool *
open_pool(const char *database, int64_t owner, int64_t busy_timeout,
    unsigned connections)
{
	const struct txn_options o = { .database = database,
		.busy_timeout = busy_timeout,
		.connections = connections };
	struct txn_pool *p;
	char err[256] = "";

	if (txn_open(&p, &o, err, sizeof(err)) != RC_OK)
		fail_msg("%s", err);
	if (owner != 0)
		txn_set_owner(p, owner);
	return p;
}

/* How many numbers its transactions have taken. */
static long
numbers(void)
{
	return number("SELECT sum(seq) FROM once_session");
}

static int
make_primary(void **state)
{
	if (start_servers(state) != 0)
		return -1;
	snprintf(primary, sizeof(primary), "%s", control("make primary"));
	snprintf(through, sizeof(through), "%s", control("proxy net primary"));
	sql("CREATE TABLE once_session(owner bigint, slot bigint, "
	    "seq bigint NOT NULL, PRIMARY KEY(owner, slot, seq))");
	return 0;
}

static int
teardown(UNUSED void **state)
{
	txn_close(pool);
	return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

#endif
