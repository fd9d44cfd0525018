/*
 * oncectl stats and doctor: how the store as a whole is doing.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "oncectl.h"
#include "oncectl_print.h"

/* Findings of one visit; the store has a dozen at most. */
#define MAX_FINDINGS 64

static void
print_stats_json(const struct store_counts *c)
{
	cJSON *o = oncectl_print_object(), *keys = oncectl_print_object();

	for (int s = RECORD_PENDING; s < RECORD_NSTATES; s++)
		oncectl_print_json_number(
		    keys, record_state_name((enum record_state)s), c->keys[s]);
	oncectl_print_json_object(o, "keys", keys);
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

int
oncectl_stats(struct oncectl *ctl)
{
	struct store_counts counts;
	enum rc rc;

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

int
oncectl_doctor(struct oncectl *ctl)
{
	static const char *const titles[] = { "", "CHECK", "FOUND" };
	struct store_finding findings[MAX_FINDINGS];
	struct oncectl_table *table = NULL;
	int status = ONCECTL_DONE;
	size_t n = 0;
	enum rc rc;

	rc = store_doctor(ctl->store, findings, MAX_FINDINGS, &n);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
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
