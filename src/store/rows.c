/*
 * See rows.h.
 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "clock.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "rows.h"

/* Number of bad rows that are remembered as logged, and the most lines about
 * bad rows in one period (ms): a pass may skip any number of them. */
#define REMEMBERED 64
#define PERIOD     60000

static bool
has_length(const char *text, size_t min, size_t max)
{
	size_t n = text != NULL ? strlen(text) : 0;

	return text != NULL && n >= min && n <= max;
}

bool
rows_identity_is_sound(const char *scope, const char *path, const char *key)
{
	return has_length(scope, 0, LIMIT_SCOPE) &&
	    has_length(path, 1, LIMIT_PATH) && *path == '/' &&
	    has_length(key, 1, LIMIT_KEY);
}

bool
rows_state(const char *word, int *value)
{
	enum record_state state;
	bool found = record_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

bool
rows_effect_state(const char *word, int *value)
{
	enum store_effect_state state;
	bool found = store_effect_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

void
rows_change(struct record *r, struct store_change *c)
{
	memset(c, 0, sizeof(*c));
	c->id = r->id;
	c->from = r->state;
	c->scope = r->scope;
	c->path = r->path;
	c->key = r->key;
	r->scope = r->path = r->key = NULL;
}

/* --- bad rows ------------------------------------------------------------- */

/* Whether there may be one more line in this period, and whether it is the last
 * one. */
static bool
may_log(bool *last)
{
	static _Atomic int64_t since;
	static atomic_uint lines;
	const int64_t now = clock_mono();
	int64_t began = atomic_load(&since);
	unsigned line;

	/* One thread begins the next period. */
	if ((began == 0 || now - began >= PERIOD) &&
	    atomic_compare_exchange_strong(&since, &began, now))
		atomic_store(&lines, 0);
	line = atomic_fetch_add(&lines, 1) + 1;
	*last = line == REMEMBERED;
	return line <= REMEMBERED;
}

/* A number that stands for the row, and is not 0. */
static uint64_t
mark_of(const char *table, int64_t id)
{
	uint64_t mark = (uint64_t)id;

	for (; *table != '\0'; table++)
		mark = mark * 31 + (unsigned char)*table;
	return mark != 0 ? mark : 1;
}

void
rows_bad(const char *database, const char *table, int64_t id)
{
	static _Atomic uint64_t seen[REMEMBERED];
	static atomic_uint next;
	const uint64_t mark = mark_of(table, id);
	bool last;

	for (unsigned i = 0; i < REMEMBERED; i++) {
		if (atomic_load(&seen[i]) == mark)
			return;
	}
	atomic_store(&seen[atomic_fetch_add(&next, 1) % REMEMBERED], mark);
	metrics_count(METRICS_BAD_ROWS);
	if (!may_log(&last))
		return;
	log_event(LOG_ERROR, "bad-row", NULL, LOG_S("database", database),
	    LOG_S("table", table), LOG_I("id", id),
	    LOG_S("message",
		last ? "it makes no sense, and is skipped; so may be more "
		       "rows: oncectl doctor counts them"
		     : "it makes no sense, and is skipped"));
}
