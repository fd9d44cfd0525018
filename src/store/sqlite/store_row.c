/*
 * See store_row.h.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "store_impl.h"
#include "store_row.h"

/* Number of bad rows that are remembered as logged, and the most lines about
 * bad rows in one period (ms): a pass may skip any number of them. */
#define REMEMBERED 64
#define PERIOD     60000

static bool
is_text(struct db_stmt *s, int i, size_t min, size_t max)
{
	const char *text = db_column_text(s, i);
	size_t n = text != NULL ? strlen(text) : 0;

	return text != NULL && n >= min && n <= max;
}

bool
store_row_is_identity(struct db_stmt *s, int scope, int path, int key)
{
	return is_text(s, scope, 0, LIMIT_SCOPE) &&
	    is_text(s, path, 1, LIMIT_PATH) &&
	    *db_column_text(s, path) == '/' && is_text(s, key, 1, LIMIT_KEY);
}

bool
store_row_is_time(struct db_stmt *s, int i)
{
	return db_column_null(s, i) ||
	    (db_column_int(s, i) >= 0 && db_column_int(s, i) <= STORE_LONGEST);
}

bool
store_row_is_count(struct db_stmt *s, int i)
{
	return db_column_int(s, i) >= 0 && db_column_int(s, i) < INT_MAX;
}

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
store_row_bad(const struct db *db, const char *table, int64_t id)
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
	log_event(LOG_ERROR, "bad-row", NULL, LOG_S("database", db_file(db)),
	    LOG_S("table", table), LOG_I("id", id),
	    LOG_S("message",
		last ? "it makes no sense, and is skipped; so may be more "
		       "rows: oncectl doctor counts them"
		     : "it makes no sense, and is skipped"));
}

/* --- records -------------------------------------------------------------- */

bool
store_row_copy(struct db_stmt *s, int i, char *out, size_t size)
{
	const char *text = db_column_text(s, i);
	size_t n = text != NULL ? strlen(text) : 0;

	if (n >= size)
		return false;
	memcpy(out, text != NULL ? text : "", n + 1);
	return true;
}

enum rc
store_row_record(struct db_stmt *s, struct record *r, struct store_lease *lease)
{
	const void *fingerprint;
	const char *state;
	enum rc rc;
	size_t n;

	memset(r, 0, sizeof(*r));
	r->id = db_column_int(s, 0);
	state = db_column_text(s, 1);
	r->attempt = (int)db_column_int(s, 2);
	fingerprint = db_column_blob(s, 4, &n);
	r->expires_at = db_column_int(s, 7);
	r->updated_at = db_column_int(s, 8);
	r->status = (int)db_column_int(s, 9);
	r->kept = db_column_int(s, 10) != 0;
	r->gone = db_column_int(s, 12) != 0;
	r->expired_retention = db_column_int(s, 13);
	r->accepted = db_column_int(s, 14) != 0;
	r->queued = db_column_int(s, 16) != 0;
	r->owner = db_column_int(s, 17);
	if (state == NULL || !record_state_parse(state, &r->state) ||
	    n != FINGERPRINT_LEN || !store_row_is_count(s, 2) ||
	    !store_row_is_time(s, 7) || !store_row_is_time(s, 13) ||
	    !store_row_is_count(s, 9) || db_column_text(s, 5) == NULL ||
	    !store_row_copy(s, 3, r->token, sizeof(r->token)) ||
	    !store_row_copy(s, 6, r->downstream, sizeof(r->downstream)) ||
	    !store_row_copy(s, 15, r->resource, sizeof(r->resource)))
		return RC_CORRUPT;
	r->unsealed = r->state == RECORD_COMPLETED && r->token[0] != '\0';
	if (lease != NULL &&
	    !store_row_copy(
		s, 11, lease->recovery_point, sizeof(lease->recovery_point)))
		return RC_CORRUPT;
	memcpy(r->fingerprint, fingerprint, n);
	if ((rc = db_column_strdup(s, 5, &r->recipe)) != RC_OK)
		return rc;
	if (record_is_sound(r))
		return RC_OK;
	record_free(r);
	return RC_CORRUPT;
}

enum rc
store_row_step(struct db *db, const struct store_identity *who,
    struct record *r, struct store_lease *lease, struct db_stmt **s)
{
	enum rc rc;

	*s = db_stmt(db, QUERY_FIND);
	db_bindf(*s, "sss", who->key, who->path, who->scope);
	rc = db_step_row(*s);
	if (rc != RC_OK)
		return rc;
	rc = store_row_record(*s, r, lease);
	if (rc == RC_CORRUPT)
		store_row_bad(db, "once_key", r->id);
	return rc;
}

enum rc
store_row_find(struct db *db, const struct store_identity *who,
    struct record *r, struct store_lease *lease)
{
	struct db_stmt *s;
	enum rc rc = store_row_step(db, who, r, lease, &s);

	db_reset(s);
	return rc;
}

/* --- all of them ---------------------------------------------------------- */

struct bad {
	int64_t n;
	char *names;
	size_t len, size;
};

static void
add_bad(struct bad *bad, const char *table, int64_t id)
{
	char name[64];
	int n;

	bad->n++;
	n = snprintf(name, sizeof(name), "%s%s %" PRId64,
	    bad->len > 0 ? ", " : "", table, id);
	if (bad->len + (size_t)n >= bad->size)
		return; /* the first one is enough */
	memcpy(bad->names + bad->len, name, (size_t)n + 1);
	bad->len += (size_t)n;
}

static bool
key_is_sound(struct db_stmt *s)
{
	struct store_lease lease;
	struct record r;
	bool sound;

	memset(&r, 0, sizeof(r));
	sound = store_row_record(s, &r, &lease) == RC_OK &&
	    store_row_is_identity(s, 17, 18, 19) && store_row_is_time(s, 20) &&
	    store_row_is_time(s, 21) && store_row_is_count(s, 22) &&
	    store_row_is_time(s, 23);
	record_free(&r);
	return sound;
}

static bool
effect_is_sound(struct db_stmt *s)
{
	return store_row_is_identity(s, 1, 2, 3) && store_row_is_count(s, 4) &&
	    store_row_is_time(s, 5) && db_column_int(s, 6) == 1;
}

enum rc
store_row_find_bad(struct db *db, int64_t *n, char *names, size_t size)
{
	struct bad bad = { .names = names, .size = size };
	struct db_stmt *s = db_stmt(db, QUERY_ROWS);
	enum rc rc;

	names[0] = '\0';
	while ((rc = db_step_row(s)) == RC_OK)
		if (!key_is_sound(s))
			add_bad(&bad, "once_key", db_column_int(s, 0));
	if (rc != RC_NOTFOUND)
		return rc;
	s = db_stmt(db, QUERY_EFFECT_ROWS);
	while ((rc = db_step_row(s)) == RC_OK)
		if (!effect_is_sound(s))
			add_bad(&bad, "once_effect", db_column_int(s, 0));
	*n = bad.n;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
