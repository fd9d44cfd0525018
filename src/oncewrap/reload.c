/*
 * What may fail comes first: users are looked up, memory and files are had,
 * and then the store is written.  All of it can be taken back without fail,
 * but for the store, where the topics are put back as well as that goes.
 * mux comes last, because then requests begin that need the others.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "conf_option.h"
#include "log.h"
#include "outbox.h"
#include "spool.h"
#include "reload.h"

void
reload_log(const char *target)
{
	int error = log_open(target);

	if (error != 0)
		log_event(LOG_ERROR, "log-not-opened", NULL,
		    LOG_S("file", target), LOG_S("error", strerror(error)));
}

static void
warn_of_start_options(const struct conf *old, const struct conf *new)
{
	struct buf names;

	buf_init(&names, 1024);
	conf_option_at_start(old, new, &names);
	if (names.len > 0 && buf_addc(&names, '\0') == RC_OK)
		log_event(LOG_WARN, "reload", NULL,
		    LOG_S("options", (const char *)names.data),
		    LOG_S(
			"note", "changed, and take effect at the next start"));
	buf_free(&names);
}

/* The store, and the processes that stay. */
static enum rc
change_store(const struct reload *r)
{
	enum rc rc;

	if ((rc = outbox_topics(r->store, r->old, r->new)) != RC_OK)
		return rc;
	rc = keeper_reload(r->keeper, r->store, r->new);
	if (rc != RC_OK)
		(void)outbox_topics(r->store, r->new, r->old);
	return rc;
}

bool
reload_apply(const struct reload *r, struct conf_error *err)
{
	const struct conf *old = r->old, *new = r->new;
	const bool log = strcmp(old->log, new->log) != 0;
	struct peers peers;
	int error;
	enum rc rc;

	if (log && (error = log_open(new->log)) != 0) {
		(void)snprintf(err->text, sizeof(err->text), "log %.300s: %s",
		    new->log, strerror(error));
		return false;
	}
	rc = mux_peers(new, &peers);
	if (rc == RC_OK)
		rc = spool_setup(new->spool_dir, new->spool_total);
	if (rc == RC_OK)
		rc = change_store(r);
	if (rc != RC_OK) {
		peers_free(&peers);
		(void)spool_setup(old->spool_dir, old->spool_total);
		if (log)
			reload_log(old->log);
		(void)snprintf(err->text, sizeof(err->text), "%s", rc_text(rc));
		return false;
	}
	if (conf_shares_database(new))
		store_share_files(r->store);
	warn_of_start_options(old, new);
	mux_reload(r->mux, r->new, &peers);
	return true;
}
