/*
 * Topics: the names of effects that a handler may use.
 */
#include "config.h"

#include "store_impl.h"

struct topics_write {
	struct write w;
	char *const *add, *const *drop;
	size_t nadd, ndrop;
	const struct liveness *liveness; /* if alone, all others go */
};

static enum rc
change_topic(struct db *db, enum query query, const char *name)
{
	struct db_stmt *s = db_stmt(db, query);

	db_bindf(s, "s", name);
	return db_step_done(s);
}

static enum rc
topics_run(struct write *w, struct db *db, int64_t now)
{
	const struct topics_write *t = (struct topics_write *)w;
	enum rc rc = RC_OK;
	size_t i;

	(void)now;
	/* A process that starts meanwhile has its lock already, or adds its
	 * topics later. */
	if (t->liveness != NULL && liveness_is_alone(t->liveness))
		rc = db_step_done(db_stmt(db, QUERY_TOPIC_CLEAR));
	for (i = 0; i < t->ndrop && rc == RC_OK; i++)
		rc = change_topic(db, QUERY_TOPIC_DROP, t->drop[i]);
	for (i = 0; i < t->nadd && rc == RC_OK; i++)
		rc = change_topic(db, QUERY_TOPIC_ADD, t->add[i]);
	w->did |= WRITE_MADE_WORK;
	return rc;
}

enum rc
sqlite_topics(struct store *store, char *const *add, size_t nadd,
    char *const *drop, size_t ndrop)
{
	struct topics_write t = {
		.w.run = topics_run,
		.add = add,
		.drop = drop,
		.nadd = nadd,
		.ndrop = ndrop,
	};

	return committer_do(store->committer, &t.w);
}

/* Skips the write at a start without effects.  RC_NOTFOUND: no topics. */
static enum rc
any_topic(struct store *store)
{
	struct store_reader *reader;
	enum rc rc;
	bool any;

	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = db_onef(db_stmt(reader->db, QUERY_TOPIC_FIRST), "v", &any);
	if (rc == RC_OK && !any)
		rc = RC_NOTFOUND;
	store_reader_give(store, reader);
	return rc;
}

enum rc
sqlite_topics_first(struct store *store, char *const *add, size_t nadd)
{
	struct topics_write t = {
		.w.run = topics_run,
		.add = add,
		.nadd = nadd,
	};
	struct liveness *liveness;
	enum rc rc;

	if (nadd == 0 && (rc = any_topic(store)) != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	if ((rc = sqlite_liveness(store, &liveness)) != RC_OK)
		return rc;
	t.liveness = liveness;
	return committer_do(store->committer, &t.w);
}
