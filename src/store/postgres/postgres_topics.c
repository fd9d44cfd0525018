/*
 * Topics: the names of effects that a handler may use.
 */
#include "config.h"

#include "postgres_impl.h"

struct topics {
	const struct store *s;
	char *const *add, *const *drop;
	size_t nadd, ndrop;
	bool first; /* if no other process has a row, all other topics go */
};

static enum rc
run_topics(struct pg *pg, void *arg)
{
	const struct topics *t = arg;
	enum rc rc;
	size_t n = t->first + t->ndrop + t->nadd;

	if (t->first)
		pg_send(pg, PG_QUERY_TOPIC_CLEAR, "i", t->s->owner);
	for (size_t i = 0; i < t->ndrop; i++)
		pg_send(pg, PG_QUERY_TOPIC_DROP, "s", t->drop[i]);
	for (size_t i = 0; i < t->nadd; i++)
		pg_send(pg, PG_QUERY_TOPIC_ADD, "s", t->add[i]);
	rc = pg_sync(pg);
	for (; n > 0 && rc == RC_OK; n--)
		rc = pg_done(pg);
	return rc;
}

static enum rc
topics_change(struct store *s, struct topics *t)
{
	enum rc rc = postgres_write(s, run_topics, t);

	if (rc == RC_OK)
		postgres_news_made(&s->news);
	return rc;
}

enum rc
postgres_topics(struct store *s, char *const *add, size_t nadd,
    char *const *drop, size_t ndrop)
{
	struct topics t = { s, add, drop, nadd, ndrop, false };

	return topics_change(s, &t);
}

static enum rc
run_any(struct pg *pg, void *arg)
{
	enum rc rc;

	(void)arg;
	pg_send(pg, PG_QUERY_TOPIC_ANY, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "-") : rc;
}

/* A start without effects writes nothing. */
enum rc
postgres_topics_first(struct store *s, char *const *add, size_t nadd)
{
	struct topics t = { s, add, NULL, nadd, 0, true };
	enum rc rc;

	if (nadd == 0 &&
	    (rc = txn_run(s->pool, TXN_LOOK, run_any, NULL)) != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	return topics_change(s, &t);
}
