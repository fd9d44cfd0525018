/*
 * See store_row.h.
 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
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
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static int64_t since;
	static unsigned lines;
	const int64_t now = clock_mono();
	bool may;

	pthread_mutex_lock(&mutex);
	if (lines == 0 || now - since >= PERIOD) {
		since = now;
		lines = 0;
	}
	may = lines < REMEMBERED;
	lines += may;
	*last = lines == REMEMBERED;
	pthread_mutex_unlock(&mutex);
	return may;
}

void
store_row_bad(const struct db *db, const char *table, int64_t id)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static struct {
		const char *table;
		int64_t id;
	} seen[REMEMBERED];
	static unsigned next;
	bool known = false, last;

	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < REMEMBERED && !known; i++)
		known = seen[i].id == id && seen[i].table != NULL &&
		    strcmp(seen[i].table, table) == 0;
	if (!known) {
		seen[next].table = table;
		seen[next].id = id;
		next = (next + 1) % REMEMBERED;
	}
	pthread_mutex_unlock(&mutex);
	if (known)
		return;
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
	sound = store_ops_read_record(s, &r, &lease) == RC_OK &&
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
