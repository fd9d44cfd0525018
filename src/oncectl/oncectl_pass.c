/*
 * oncectl sweep, reap and reconcile: one pass now, by this process instead of
 * oncewrap.  The changes are in the log, which is stderr.
 */
#include "config.h"

#include <err.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "maintenance.h"
#include "reconcile.h"
#include "words.h"
#include "oncectl.h"

/* A pass ends between two batches, or between two tries. */
static atomic_bool stop;

static void
pass_on_signal(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

const atomic_bool *
oncectl_stop(bool kept)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = pass_on_signal;
	sa.sa_flags = SA_RESTART | (kept ? 0 : (int)SA_RESETHAND);
	for (size_t i = 0; i < (kept ? 3U : 2U); i++)
		sigaction(signals[i], &sa, NULL);
	return &stop;
}

static int
end_pass(struct oncectl *ctl, enum rc rc, const char *done, int n)
{
	struct json_write *o;

	oncectl_log(ctl,
	    &(struct oncectl_act){
		.act = ctl->command, .rc = rc, .more = LOG_I("keys", n) });
	if (ctl->json) {
		o = oncectl_print_object();
		json_write_text(o, "pass", ctl->command);
		json_write_number(o, "keys", n);
		oncectl_print_json(o);
	} else
		printf("%d %s %s\n", n, PLURAL(n, "key", "keys"), done);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (!atomic_load(&stop))
		return ONCECTL_DONE;
	return oncectl_refuse(ONCECTL_REFUSED, "%s: interrupted", ctl->command);
}

/* The most keys that are named. */
#define WAITING_MAX 10

/* A key whose process is gone, and which the pass has left as it is. */
static void
say_waits(struct oncectl *ctl, const struct record *r)
{
	const struct store_attempt at = { .fd = -1,
		.note = -1,
		.lock = r->attempt_lock,
		.file = r->lock_file };
	const pid_t pid = store_attempt_process(ctl->store, &at);
	char *name = oncectl_row_name(r), until[ONCECTL_PRINT_TIME],
	     process[32];

	(void)snprintf(process, sizeof(process),
	    pid != 0 ? "process %ld" : "a process", (long)pid);
	warnx("%s waits for %s that its lost attempt started: it is settled "
	      "when that has ended, or after %s",
	    name, process,
	    oncectl_print_time(store_wall(ctl->store, r->locked_until), until));
	free(name);
}

/* Says which keys still wait, and for what. */
static enum rc
sweep_say_rest(struct oncectl *ctl)
{
	const struct store_filter filter = { .state = RECORD_IN_PROGRESS };
	struct store_cursor *cursor = NULL;
	struct record row;
	size_t n = 0;
	enum rc rc;

	rc = store_list(ctl->store, &filter, &cursor);
	while (rc == RC_OK && (rc = store_list_next(cursor, &row)) == RC_OK) {
		if (store_owner_is_dead(ctl->store, row.owner) &&
		    ++n <= WAITING_MAX)
			say_waits(ctl, &row);
		record_free(&row);
	}
	store_list_free(cursor);
	if (n > WAITING_MAX)
		warnx("%zu more wait", n - WAITING_MAX);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

int
oncectl_sweep(struct oncectl *ctl)
{
	struct maintenance_pass pass = { .until = INT64_MAX };
	enum rc rc;

	log_set_level(LOG_INFO);
	rc = maintenance_recover(ctl->store, &pass);
	if (rc == RC_OK)
		rc = sweep_say_rest(ctl);
	return end_pass(ctl, rc, "settled", pass.n);
}

int
oncectl_reap(struct oncectl *ctl)
{
	struct maintenance_pass pass = { .stop = oncectl_stop(false),
		.until = INT64_MAX };
	enum rc rc;

	log_set_level(LOG_INFO);
	rc = maintenance_expire(ctl->store, &pass);
	return end_pass(ctl, rc, "past their retention", pass.n);
}

/* Only the configuration names the programs. */
int
oncectl_reconcile(struct oncectl *ctl)
{
	enum rc rc;
	int n;

	if (ctl->config == NULL)
		return oncectl_refuse(
		    ONCECTL_USAGE, "reconcile: needs a configuration: -f");
	log_set_level(LOG_INFO);
	rc = reconcile_all(ctl->store, ctl->conf, oncectl_stop(false), &n);
	return end_pass(ctl, rc, "tried", n);
}
