/*
 * See postgres_count.h.
 */
#include "config.h"

#include <string.h>

#include "rows.h"
#include "postgres_count.h"

static enum rc
count_states(struct pg *pg, bool (*parse)(const char *, int *),
    struct postgres_count *counts, size_t n)
{
	struct postgres_count c;
	const char *word;
	enum rc rc;
	int state;

	memset(counts, 0, n * sizeof(counts[0]));
	if ((rc = pg_result(pg)) != RC_OK)
		return rc;
	while ((rc = pg_row(pg, "piii", &word, &c.n, &c.oldest, &c.bytes)) ==
	    RC_OK)
		if (word != NULL && parse(word, &state))
			counts[state] = c;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
postgres_count_keys(struct pg *pg, struct postgres_count counts[RECORD_NSTATES])
{
	return count_states(pg, rows_state, counts, RECORD_NSTATES);
}

enum rc
postgres_count_effects(
    struct pg *pg, struct postgres_count counts[STORE_EFFECT_NSTATES])
{
	return count_states(
	    pg, rows_effect_state, counts, STORE_EFFECT_NSTATES);
}

enum rc
postgres_count_aged(
    struct pg *pg, int64_t *at, int64_t n, struct postgres_aged *sum)
{
	struct postgres_aged c;
	int64_t last;
	enum rc rc;

	pg_send(pg, PG_QUERY_TALLY, "ii", *at, n);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "iiii", &last, &c.completed,
		    &c.failed_retryable, &c.expired);
	if (rc != RC_OK || last <= 0)
		return rc == RC_OK ? RC_NOTFOUND : rc;
	*at = last;
	sum->completed += c.completed;
	sum->failed_retryable += c.failed_retryable;
	sum->expired += c.expired;
	return RC_OK;
}

enum rc
postgres_count_delivered(
    struct pg *pg, int64_t *at, int64_t n, int64_t *delivered)
{
	int64_t last, count;
	enum rc rc;

	pg_send(pg, PG_QUERY_TALLY_EFFECTS, "ii", *at, n);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "ii", &last, &count);
	if (rc != RC_OK || last <= 0)
		return rc == RC_OK ? RC_NOTFOUND : rc;
	*at = last;
	*delivered += count;
	return RC_OK;
}
