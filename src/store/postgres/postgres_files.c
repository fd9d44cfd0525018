/*
 * The files of this host's processes: a daemon makes them when it starts, an
 * operator finds them when it needs them.
 */
#include "config.h"

#include <stdio.h>

#include "postgres_impl.h"

static enum rc
open_host(struct store *s, char *err, size_t errsize)
{
	const struct postgres_host_store store = { s->secret, s->catalog };
	enum rc rc;

	rc = postgres_host_open(&s->host, &store, s->keeper, err, errsize);
	s->base.local = rc == RC_OK ? s->host.local : NULL;
	s->base.folder = s->host.folder;
	return rc;
}

/* An operator needs this host's files only now, and makes none. */
static enum rc
open_liveness(struct store *s, char *err, size_t errsize)
{
	enum rc rc;

	if (s->base.local == NULL && (rc = open_host(s, err, errsize)) != RC_OK)
		return rc;
	rc = liveness_open(&s->liveness, s->base.local, s->keeper ? 0600 : 0);
	if (rc == RC_NOTFOUND)
		snprintf(err, errsize, "%s-lock: there is no such file",
		    s->base.local);
	else if (rc != RC_OK)
		postgres_host_explain(&s->host, err, errsize);
	if (rc != RC_OK)
		return rc;
	rc = postgres_host_name(&s->host, s->liveness, s->keeper, err, errsize);
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
		txn_remember(s->pool, why);
	return rc;
}
