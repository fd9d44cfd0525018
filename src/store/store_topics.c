/*
 * Topics: the names of effects that a handler may use.
 */
#include "config.h"

#include "store_ops.h"

struct topics {
	/* this process's, at its start: if no other process uses the store, all
	 * other topics go; else NULL */
	const struct liveness *first;
	char *const *add, *const *drop;
	size_t nadd, ndrop;
};

static enum rc
topics_each(struct tx *tx, enum tx_query q, char *const *names, size_t n)
{
	enum rc rc = RC_OK;
	int changed;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		tx_send(tx, q, "s", names[i]);
		rc = tx_changed(tx, &changed);
	}
	return rc;
}

static enum rc
topics_change(struct tx *tx, void *arg)
{
	const struct topics *t = arg;
	enum rc rc = RC_OK;
	int changed;

	/* A process that starts meanwhile is seen already, or adds its topics
	 * later.  The statement sees those of other hosts. */
	if (t->first != NULL && liveness_is_alone(t->first)) {
		tx_send(tx, TX_TOPIC_CLEAR, "i", liveness_self(t->first));
		rc = tx_changed(tx, &changed);
	}
	if (rc == RC_OK)
		rc = topics_each(tx, TX_TOPIC_DROP, t->drop, t->ndrop);
	if (rc == RC_OK)
		rc = topics_each(tx, TX_TOPIC_ADD, t->add, t->nadd);
	tx->did |= TX_WORK;
	return rc;
}

static enum rc
topics_any(struct tx *tx, void *arg)
{
	(void)arg;
	tx_send(tx, TX_TOPIC_ANY, "");
	return tx_one(tx, "-");
}

enum rc
store_topics(struct store *s, char *const *add, size_t nadd, char *const *drop,
    size_t ndrop)
{
	struct topics t = { NULL, add, drop, nadd, ndrop };
	struct liveness *liveness = NULL;
	enum rc rc = RC_OK;

	/* A start without effects writes nothing. */
	if (drop == NULL && nadd == 0)
		rc = store_tx(s, TX_LOOK, topics_any, NULL);
	if (drop == NULL && rc == RC_OK)
		rc = store_liveness(s, &liveness);
	t.first = liveness;
	if (rc == RC_OK)
		rc = store_tx(s, TX_WRITE, topics_change, &t);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
