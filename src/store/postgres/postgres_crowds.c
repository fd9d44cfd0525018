/*
 * The callers that have keys which limits count.
 */
#include "config.h"

#include <string.h>

#include "crowds.h"
#include "postgres_impl.h"

static enum rc
crowds_run(struct pg *pg, void *arg)
{
	static const enum pg_query query[] = {
		[CROWDS_OPEN] = PG_QUERY_CROWDS_OPEN,
		[CROWDS_ACTIVE] = PG_QUERY_CROWDS_ACTIVE,
		[CROWDS_QUEUED] = PG_QUERY_CROWDS_QUEUED,
	};
	struct crowds *c = arg;
	struct crowd *one;
	enum rc rc;

	crowds_clear(c); /* of a try before this one */
	pg_send(
	    pg, query[c->of], "iii", c->after, (int64_t)CROWDS_MAX, c->most);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_result(pg);
	while (rc == RC_OK && c->n < CROWDS_MAX) {
		one = &c->item[c->n];
		memset(one, 0, sizeof(*one));
		rc = pg_row(pg, "iisss", &one->caller, &one->keys, &one->path,
		    &one->scope, &one->peer);
		if (rc != RC_NOTFOUND)
			c->n++;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
postgres_crowds(struct store *s, struct crowds *c)
{
	enum rc rc = postgres_read(s, crowds_run, c);

	if (rc == RC_OK && c->n > 0)
		c->after = c->item[c->n - 1].caller;
	return rc;
}
