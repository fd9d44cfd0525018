/*
 * oncectl stats and doctor: how the store as a whole is doing.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oncectl.h"
#include "oncectl_print.h"

/* Findings of one visit; the store has a dozen at most. */
#define MAX_FINDINGS 64

static cJSON *
json_counts(const int64_t keys[RECORD_NSTATES])
{
	cJSON *o = oncectl_print_object();

	for (int s = RECORD_PENDING; s < RECORD_NSTATES; s++)
		oncectl_print_json_number(
		    o, record_state_name((enum record_state)s), keys[s]);
	return o;
}

static void
print_stats_json(const struct store_counts *c)
{
	cJSON *o = oncectl_print_object();

	oncectl_print_json_object(o, "keys", json_counts(c->keys));
	oncectl_print_json_time(o, "oldest_unknown", c->oldest_unknown_wall);
	oncectl_print_json_number(o, "answer_bytes", c->answer_bytes);
	oncectl_print_json_number(o, "database_bytes", c->database_bytes);
	oncectl_print_json_number(o, "wal_bytes", c->wal_bytes);
	oncectl_print_json(o);
}

static void
print_stats(const struct store_counts *c)
{
	char oldest[ONCECTL_PRINT_TIME];

	for (int s = RECORD_PENDING; s < RECORD_NSTATES; s++)
		printf("%-16s  %" PRId64 "\n",
		    record_state_name((enum record_state)s), c->keys[s]);
	printf("%-16s  %s\n", "oldest unknown",
	    oncectl_print_time(c->oldest_unknown_wall, oldest));
	printf("%-16s  %" PRId64 " bytes\n", "stored answers", c->answer_bytes);
	printf("%-16s  %" PRId64 " bytes\n", "database", c->database_bytes);
	printf("%-16s  %" PRId64 " bytes\n", "write-ahead log", c->wal_bytes);
}

/* Scopes read at a time; each time all keys are counted. */
#define SCOPES 1000

/* The states, and a title for the scope. */
#define COLUMNS RECORD_NSTATES

static void
print_scope(struct oncectl_table *table, const struct store_scope *sc)
{
	char number[RECORD_NSTATES][24];
	const char *cells[COLUMNS];
	cJSON *o;
	int s;

	if (table == NULL) {
		o = oncectl_print_object();
		oncectl_print_json_text(o, "scope", sc->scope);
		oncectl_print_json_object(o, "keys", json_counts(sc->keys));
		oncectl_print_json(o);
		return;
	}
	for (s = RECORD_PENDING; s < RECORD_NSTATES; s++) {
		snprintf(number[s], sizeof(number[s]), "%" PRId64, sc->keys[s]);
		cells[s - 1] = number[s];
	}
	cells[COLUMNS - 1] = sc->scope[0] != '\0' ? sc->scope : NULL;
	oncectl_print_row(table, cells);
}

static int
stats_by_scope(struct oncectl *ctl)
{
	const char *titles[COLUMNS];
	struct store_scope *scopes;
	struct oncectl_table *table = NULL;
	char *last = NULL;
	size_t n;
	enum rc rc;

	scopes = calloc(SCOPES, sizeof(*scopes));
	if (scopes == NULL)
		return oncectl_fail(ctl, RC_NOMEM);
	for (int s = RECORD_PENDING; s < RECORD_NSTATES; s++)
		titles[s - 1] = record_state_name((enum record_state)s);
	titles[COLUMNS - 1] = "SCOPE";
	if (!ctl->json)
		table = oncectl_print_table(stdout, titles, COLUMNS);
	do {
		rc = store_scopes(ctl->store, last, scopes, SCOPES, &n);
		free(last);
		last = NULL;
		for (size_t i = 0; i < n; i++)
			print_scope(table, &scopes[i]);
		if (n > 0) {
			last = scopes[n - 1].scope;
			scopes[n - 1].scope = NULL;
		}
		store_scopes_free(scopes, n);
	} while (rc == RC_OK && n == SCOPES);
	free(last);
	free(scopes);
	oncectl_print_table_free(table);
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
	if (ctl->json)
		print_stats_json(&counts);
	else
		print_stats(&counts);
	return ONCECTL_DONE;
}

static void
print_finding_json(const struct store_finding *f)
{
	cJSON *o = oncectl_print_object();

	oncectl_print_json_bool(o, "ok", f->ok);
	oncectl_print_json_text(o, "name", f->name);
	oncectl_print_json_text(o, "text", f->text);
	oncectl_print_json(o);
}

/* One line for an operator: whether anything is to be done, and where. */
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
	static const char *const titles[] = { "", "CHECK", "FOUND" };
	struct store_finding findings[MAX_FINDINGS];
	struct oncectl_table *table = NULL;
	int status = ONCECTL_DONE;
	size_t n = 0;
	enum rc rc;

	rc = store_doctor(ctl->store, ctl->config != NULL ? ctl->conf : NULL,
	    findings, MAX_FINDINGS - 1, &n);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	summarize(findings, n, &findings[n]);
	n++;
	if (!ctl->json)
		table = oncectl_print_table(stdout, titles, 3);
	for (size_t i = 0; i < n; i++) {
		const struct store_finding *f = &findings[i];

		if (!f->ok)
			status = ONCECTL_REFUSED;
		if (ctl->json)
			print_finding_json(f);
		else
			oncectl_print_row(table,
			    (const char *const[]){
				f->ok ? "ok" : "BAD", f->name, f->text });
	}
	oncectl_print_table_free(table);
	return status;
}
