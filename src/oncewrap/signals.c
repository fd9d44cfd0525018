/*
 * In a reload, what may fail comes first: users are looked up, memory and files
 * are had, and then the store is written.  All of it can be taken back without
 * fail, but for the store, where the topics are put back as well as that goes.
 * The loop comes last, because then requests begin that need the others.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "conf_option.h"
#include "log.h"
#include "mux.h"
#include "outbox.h"
#include "serve.h"
#include "spool.h"
#include "thread.h"
#include "workers.h"
#include "signals.h"

void
signals_reopen_log(const char *target)
{
	int error = log_open(target);

	if (error != 0)
		log_event(LOG_ERROR, "log-not-opened", NULL,
		    LOG_S("file", target), LOG_S("error", strerror(error)));
}

static void
reload_warn_of_start_options(const struct conf *old, const struct conf *new)
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
reload_store(const struct signals_reload *r, struct workers_pool **pools)
{
	enum rc rc;

	if ((rc = outbox_topics(r->store, r->old, r->new)) != RC_OK)
		return rc;
	if (workers_prepare(r->new, pools))
		return RC_OK;
	(void)outbox_topics(r->store, r->new, r->old);
	return RC_NOMEM;
}

bool
signals_reload(const struct signals_reload *r, struct conf_error *err)
{
	const struct conf *old = r->old, *new = r->new;
	const bool log = strcmp(old->log, new->log) != 0;
	struct workers_pool *pools = NULL;
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
		rc = reload_store(r, &pools);
	if (rc != RC_OK) {
		peers_free(&peers);
		(void)spool_setup(old->spool_dir, old->spool_total);
		if (log)
			signals_reopen_log(old->log);
		(void)snprintf(err->text, sizeof(err->text), "%s", rc_text(rc));
		return false;
	}
	if (conf_shares_database(new))
		store_share_files(r->store);
	reload_warn_of_start_options(old, new);
	serve_reload(r->serve, r->new, &peers, pools);
	return true;
}

/* --- a stop --------------------------------------------------------------- */

/* A thread of its own waits for the end, because the other threads may wait for
 * a disk, a lock or a server, for any time.  To the store this end is a crash:
 * what is not recorded counts as lost. */

/* Time (us) for the last line to reach the reader of the log. */
#define LAST_LINE 50000

static int64_t until;

static void *
stop_main(void *unused)
{
	struct timespec ts;
	sigset_t signals;
	int64_t left;

	(void)unused;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	while ((left = until - clock_mono()) > 0) {
		ts.tv_sec = (time_t)(left / 1000);
		ts.tv_nsec = (long)(left % 1000) * 1000000;
		if (sigtimedwait(&signals, NULL, &ts) != -1)
			_exit(EXIT_SUCCESS);
	}
	log_event(LOG_WARN, "stop-forced", NULL,
	    LOG_S("note",
		"drain_timeout is over: what is not recorded by now counts as "
		"lost"));
	usleep(LAST_LINE);
	_exit(EXIT_SUCCESS);
}

void
signals_stop_until(int64_t drained_mono)
{
	pthread_t thread;
	int error;

	until = drained_mono + STOP_GRACE;
	error = thread_start(&thread, "stop", THREAD_STACK, stop_main, NULL);
	if (error == 0)
		(void)pthread_detach(thread);
	else
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
}
