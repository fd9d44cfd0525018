/*
 * The store as a whole: how oncectl opens it, and its stats, doctor, metrics,
 * backup, sweep, reap and reconcile.
 */
#include "config.h"

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_value.h"
#include "limit.h"
#include "maintenance.h"
#include "metrics.h"
#include "reconcile.h"
#include "spool.h"
#include "store_doctor.h"
#include "words.h"
#include "oncectl.h"

/* --- opening it --------------------------------------------------------- */

bool
oncectl_name_database(struct oncectl *ctl)
{
	const struct conf *conf = ctl->conf;
	const char *environment = getenv("ONCE_DATABASE");

	if (ctl->database == NULL && ctl->config != NULL)
		ctl->database = conf->database;
	else if (ctl->database == NULL)
		ctl->database = environment;
	if (ctl->database == NULL || ctl->database[0] == '\0') {
		warnx("no database is named: -d, -f or ONCE_DATABASE");
		return false;
	}
	if (conf_text_is_nearly_postgresql(ctl->database)) {
		warnx("a PostgreSQL database is named by a URI, which begins "
		      "with postgresql://");
		return false;
	}
	if (spool_setup(conf->spool_dir, UINT64_MAX) == RC_OK)
		return true;
	warnx("%s", rc_text(RC_NOMEM));
	return false;
}

void
oncectl_store_options(const struct oncectl *ctl, struct store_options *so)
{
	const struct conf *conf = ctl->conf;

	*so = (struct store_options){ .database = ctl->database,
		.mode = 0600,
		.durability = conf->durability,
		.busy_timeout = conf->busy_timeout,
		.owner_timeout = conf->owner_timeout,
		.max_wal = conf->max_wal };
}

bool
oncectl_open_store(struct oncectl *ctl)
{
	struct store_options so;
	char why[512];

	oncectl_store_options(ctl, &so);
	if (store_open(&ctl->store, &so, why, sizeof(why)) == RC_OK) {
		/* Messages show it, without a password. */
		if (conf_text_is_postgresql(ctl->database))
			ctl->database = store_database(ctl->store);
		return true;
	}
	warnx("%s", why);
	return false;
}

/* --- stats and doctor ---------------------------------------------------- */

/* The most findings of one check; the store has a dozen at most. */
#define MAX_FINDINGS 64

/* The columns of struct store_scope: by state, and then the others.  No key is
 * in the first state, RECORD_NONE. */
#define NSTATES (RECORD_NSTATES - 1)
#define NUMBER(name, position, offset)                                         \
	{                                                                      \
		name, name, position, sizeof(name) - 1, offset, ONCECTL_NUMBER \
	}
#define STATE(state, name)  \
	NUMBER(name, state, \
	    offsetof(struct store_scope, keys) + (state) * sizeof(int64_t)),
static const struct oncectl_column all_columns[] = {
	RECORD_STATES(STATE){ "scope", "SCOPE", RECORD_NSTATES, 0,
	    offsetof(struct store_scope, scope), ONCECTL_TEXT },
};
#define NCOLUMNS (sizeof(all_columns) / sizeof(all_columns[0]) - 1)
static const struct oncectl_column *const columns = all_columns + 1;

static void
json_counts(struct json_write *o, const struct store_scope *counts)
{
	json_write_name(o, "keys");
	json_write_raw(o, "{");
	oncectl_print_members(o, columns, NSTATES, counts);
	json_write_raw(o, "}");
}

#define AT(member) offsetof(struct store_counts, member)
static const struct oncectl_column sizes[] = {
	{ "oldest_unknown", NULL, 0, 0, AT(oldest_unknown_wall), ONCECTL_TIME },
	{ "answer_bytes", NULL, 0, 0, AT(answer_bytes), ONCECTL_NUMBER },
	{ "database_bytes", NULL, 0, 0, AT(database_bytes), ONCECTL_NUMBER },
	{ "wal_bytes", NULL, 0, 0, AT(wal_bytes), ONCECTL_NUMBER },
};
#undef AT
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static void
print_stats(const struct oncectl *ctl, const struct store_counts *c)
{
	const size_t nsizes = c->wal_bytes >= 0 ? NSIZES : NSIZES - 1;
	struct store_scope all = { .scope = NULL };
	struct json_write *o;

	memcpy(all.keys, c->keys, sizeof(all.keys));
	if (!ctl->json) {
		oncectl_print_lines(columns, NSTATES, &all);
		oncectl_print_lines(sizes, nsizes, c);
		return;
	}
	o = oncectl_print_object();
	json_counts(o, &all);
	oncectl_print_members(o, sizes, nsizes, c);
	oncectl_print_json(o);
}

/* Scopes read at a time; each reading counts all keys. */
#define SCOPES 1000

static void
print_scope(struct oncectl_table *table, const struct store_scope *sc)
{
	struct json_write *o;

	if (table->file != NULL) {
		oncectl_print_row(table, sc);
		return;
	}
	o = oncectl_print_object();
	json_write_text(o, "scope", sc->scope);
	json_counts(o, sc);
	oncectl_print_json(o);
}

static int
stats_by_scope(struct oncectl *ctl)
{
	static struct store_scope scopes[SCOPES];
	struct oncectl_table table = { ctl->json ? NULL : stdout, columns,
		NCOLUMNS, false };
	const char *last = NULL;
	size_t n;
	enum rc rc;

	do {
		rc = store_scopes(ctl->store, last, scopes, SCOPES, &n);
		for (size_t i = 0; i < n; i++)
			print_scope(&table, &scopes[i]);
		if (n > 0)
			last = oncectl_print_keep(strdup(scopes[n - 1].scope));
		store_scopes_free(scopes, n);
	} while (rc == RC_OK && n == SCOPES);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

int
oncectl_stats(struct oncectl *ctl)
{
	struct store_counts counts;
	enum rc rc;

	if ((ctl->given & ONCECTL_BY_SCOPE) != 0)
		return stats_by_scope(ctl);
	memset(&counts, 0, sizeof(counts));
	rc = store_stats(ctl->store, &counts);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	print_stats(ctl, &counts);
	return ONCECTL_DONE;
}

#define AT(member) offsetof(struct store_finding, member)
static const struct oncectl_column findings_columns[] = {
	{ "ok", "", 1, 3, AT(ok), ONCECTL_BOOL },
	{ "name", "CHECK", 2, 15, AT(name), ONCECTL_ARRAY },
	{ "text", "FOUND", 3, 0, AT(text), ONCECTL_ARRAY },
};
#undef AT

/* Makes one line for an operator: whether there is something to do, and
 * where. */
static void
summarize(const struct store_finding *findings, size_t n,
    struct store_finding *summary)
{
	size_t bad = 0, len;

	memset(summary, 0, sizeof(*summary));
	snprintf(summary->name, sizeof(summary->name), "summary");
	for (size_t i = 0; i < n; i++) {
		if (findings[i].ok)
			continue;
		len = strlen(summary->text);
		snprintf(summary->text + len, sizeof(summary->text) - len,
		    "%s%s",
		    bad++ > 0 ? ", " : "needs attention: ", findings[i].name);
	}
	summary->ok = bad == 0;
	if (bad == 0)
		snprintf(summary->text, sizeof(summary->text),
		    "all is well, nothing to do");
}

int
oncectl_doctor(struct oncectl *ctl)
{
	const struct conf *conf = ctl->config != NULL ? ctl->conf : NULL;
	struct store_finding findings[MAX_FINDINGS];
	struct findings all = { findings, MAX_FINDINGS - 1, 0 };
	struct oncectl_table table = { ctl->json ? NULL : stdout,
		findings_columns, 3, false };
	enum rc rc;

	rc = store_doctor(ctl->store, conf, findings, MAX_FINDINGS - 1, &all.n);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	store_callers_doctor(ctl->store, conf, &all);
	summarize(findings, all.n, &findings[all.n]);
	for (size_t i = 0; i <= all.n; i++)
		oncectl_print_row(&table, &findings[i]);
	return findings[all.n].ok ? ONCECTL_DONE : ONCECTL_REFUSED;
}

/* --- metrics -------------------------------------------------------------- */

/* The gauges as text for Prometheus, for when no oncewrap runs or can be
 * asked. */
int
oncectl_metrics(struct oncectl *ctl)
{
	struct metrics_gauges gauges;
	struct buf text;
	enum rc rc;
	bool done;

	buf_init(&text, LIMIT_METRICS);
	do
		rc = store_tally(ctl->store, &done);
	while (rc == RC_OK && !done);
	if (rc == RC_OK)
		rc = store_gauges(ctl->store, &gauges);
	if (rc == RC_OK)
		rc = metrics_text(&gauges, true, &text);
	if (rc == RC_OK)
		fwrite(text.data, 1, text.len, stdout);
	buf_free(&text);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

/* --- a pass now ----------------------------------------------------------- */

/* By this process instead of oncewrap.  The changes are in the log, which is
 * stderr. */

/* A pass ends between two batches, or between two tries. */
static atomic_bool stop;

static void
pass_on_signal(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

const atomic_bool *
oncectl_stop(bool never_kills)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = pass_on_signal;
	sa.sa_flags = SA_RESTART | (never_kills ? 0 : (int)SA_RESETHAND);
	for (size_t i = 0; i < (never_kills ? 3U : 2U); i++)
		sigaction(signals[i], &sa, NULL);
	return &stop;
}

static int
end_pass(struct oncectl *ctl, enum rc rc, const char *done, int n)
{
	struct json_write *o;

	oncectl_log(ctl, ctl->command, rc, NULL, &LOG_I("keys", n));
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
warn_waits(struct oncectl *ctl, const struct record *r)
{
	const struct store_attempt at = { .fd = -1,
		.note = -1,
		.lock = r->attempt_lock,
		.file = r->lock_file };
	const pid_t pid = store_attempt_process(ctl->store, &at);
	char until[ONCECTL_PRINT_TIME], process[32];

	(void)snprintf(process, sizeof(process),
	    pid != 0 ? "process %ld" : "a process", (long)pid);
	warnx("%s waits for %s that its lost attempt started: it is settled "
	      "when that has ended, or after %s",
	    oncectl_row_name(r), process,
	    oncectl_print_time(store_wall(ctl->store, r->locked_until), until));
}

/* Says which keys still wait, and for what. */
static enum rc
sweep_warn_rest(struct oncectl *ctl)
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
			warn_waits(ctl, &row);
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
		rc = sweep_warn_rest(ctl);
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

/* --- backup --------------------------------------------------------------- */

int
oncectl_backup(struct oncectl *ctl)
{
	struct store_backup what;
	struct store_copied copied;
	char why[1024], at[ONCECTL_PRINT_TIME];
	struct json_write *o;
	enum rc rc;

	if (ctl->nargs != 1)
		return oncectl_refuse(
		    ONCECTL_USAGE, "backup: name the FILE to make");
	memset(&what, 0, sizeof(what));
	what.file = ctl->arg[0];
	what.replace = (ctl->given & ONCECTL_YES) != 0;
	what.stop = oncectl_stop(true);
	/* A quarter is left for what is written until the daemon can reset
	 * its log. */
	what.max_log = ctl->conf->max_wal / 4 * 3;
	/* Then a limit of the file size is an error of write(2). */
	(void)signal(SIGXFSZ, SIG_IGN);
	rc = store_backup(ctl->store, &what, &copied, why, sizeof(why));
	if (rc != RC_OK)
		return oncectl_refuse(ONCECTL_REFUSED, "backup: %s", why);
	if (!ctl->json) {
		printf("%s: %ju bytes, as of %s\n", what.file,
		    (uintmax_t)copied.bytes,
		    oncectl_print_time(copied.at_wall, at));
		return ONCECTL_DONE;
	}
	o = oncectl_print_object();
	json_write_text(o, "file", what.file);
	json_write_number(o, "bytes", (int64_t)copied.bytes);
	json_write_time(o, "as_of", copied.at_wall);
	oncectl_print_json(o);
	return ONCECTL_DONE;
}
