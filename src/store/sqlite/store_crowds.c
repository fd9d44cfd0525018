/*
 * The callers that have keys which limits count.
 */
#include "config.h"

#include <string.h>

#include "crowds.h"
#include "store_impl.h"

static enum rc
crowds_run(struct db_stmt *s, struct crowds *c)
{
	struct crowd *one;
	enum rc rc = RC_OK;

	while (c->n < CROWDS_MAX && (rc = db_step_row(s)) == RC_OK) {
		one = &c->item[c->n++];
		memset(one, 0, sizeof(*one));
		rc = db_rowf(s, "iisss", &one->caller, &one->keys, &one->path,
		    &one->scope, &one->peer);
		if (rc != RC_OK)
			break;
		c->after = one->caller;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
sqlite_crowds(struct store *store, struct crowds *c)
{
	static const enum query query[] = {
		[CROWDS_OPEN] = QUERY_CROWDS_OPEN,
		[CROWDS_ACTIVE] = QUERY_CROWDS_ACTIVE,
		[CROWDS_QUEUED] = QUERY_CROWDS_QUEUED,
	};
	const int64_t max = CROWDS_MAX;
	struct store_reader *reader;
	enum rc rc;

	rc = store_reader_query(store, query[c->of], &reader);
	if (rc != RC_OK)
		return rc;
	if (c->of == CROWDS_QUEUED)
		db_bindf(reader->s, "iiii", c->after, max, c->most,
		    sqlite_now(store));
	else
		db_bindf(reader->s, "iii", c->after, max, c->most);
	rc = crowds_run(reader->s, c);
	store_reader_give(store, reader);
	return rc;
}
