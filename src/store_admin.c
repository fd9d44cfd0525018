/*
 * The key store, for passes and operators: sweep, reap, list, stats, doctor.
 *
 * Reads are short: who lists a million keys into a pager holds no transaction
 * open meanwhile.
 */
#include "config.h"

#include <sys/stat.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "migrate.h"
#include "store_impl.h"

/* The time last seen is written down at a sweep, but not more often: ms. */
#define CLOCK_GRAIN 30000

/* Rows read at a time by a list. */
#define LIST_PAGE 64

/* --- passes ------------------------------------------------------------- */

void
store_changes_free(struct store_change *changes, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		free((void *)(uintptr_t)changes[i].scope);
		free((void *)(uintptr_t)changes[i].path);
		free((void *)(uintptr_t)changes[i].key);
		memset(&changes[i], 0, sizeof(changes[i]));
	}
}

/* The next owner of leases after that one, in the order of their names. */
static enum rc
next_owner(struct db *db, int64_t *owner)
{
	struct db_stmt *s = db_stmt(db, QUERY_SWEEP_OWNER);
	enum rc rc;

	db_bind_int(s, 1, *owner);
	rc = db_step_row(s);
	if (rc == RC_OK)
		*owner = db_column_int(s, 0);
	db_reset(s);
	return rc;
}

/* Owners that are gone, at most max.  A dead one stays dead, so this need not
 * be done within the transaction that settles its attempts. */
static enum rc
find_dead(struct store *store, int64_t *dead, size_t max, size_t *n)
{
	struct liveness *liveness;
	struct store_reader *reader;
	int64_t owner = 0;
	enum rc rc;
	bool alive;

	*n = 0;
	rc = store_liveness(store, &liveness);
	if (rc != RC_OK)
		return rc;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	while (*n < max && (rc = next_owner(reader->db, &owner)) == RC_OK) {
		rc = liveness_alive(liveness, owner, &alive);
		if (rc != RC_OK)
			break;
		if (!alive)
			dead[(*n)++] = owner;
	}
	store_reader_give(store, reader);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_sweep(
    struct store *store, int limit, struct store_change *changes, int *n)
{
	int64_t dead[STORE_SWEEP_OWNERS];
	enum rc rc, clock;
	struct op op;
	size_t ndead;

	*n = 0;
	op_init(&op, OP_CLOCK);
	op.clock.grain = CLOCK_GRAIN;
	clock = committer_do(store->committer, &op);
	op_release(&op);

	rc = find_dead(store, dead, STORE_SWEEP_OWNERS, &ndead);
	if (rc != RC_OK)
		return rc;
	if (ndead == 0 || limit <= 0)
		return clock;
	op_init(&op, OP_SWEEP);
	op.sweep.dead = dead;
	op.sweep.ndead = ndead;
	op.sweep.limit = limit;
	op.sweep.changes = changes;
	rc = committer_do(store->committer, &op);
	if (rc == RC_OK) {
		*n = op.sweep.n;
		op.sweep.n = 0; /* they are the caller's now */
	}
	op_release(&op);
	return rc;
}

enum rc
store_reap(struct store *store, int limit, int *n)
{
	struct op op;
	enum rc rc;
	int batch;

	*n = 0;
	do {
		batch =
		    limit - *n < STORE_REAP_ROWS ? limit - *n : STORE_REAP_ROWS;
		if (batch <= 0)
			return RC_OK;
		op_init(&op, OP_REAP);
		op.reap.limit = batch;
		rc = committer_do(store->committer, &op);
		if (rc == RC_OK)
			*n += op.reap.n;
		batch = op.reap.n;
		op_release(&op);
	} while (rc == RC_OK && batch > 0);
	return rc;
}

/* --- list --------------------------------------------------------------- */

struct store_cursor {
	struct store *store;
	char *key, *scope, *path;
	const char *state;
	int64_t created_before, last_id;
	struct store_row rows[LIST_PAGE];
	size_t next, n;
	bool end;
};

void
store_row_free(struct store_row *row)
{
	if (row == NULL)
		return;
	free(row->scope);
	free(row->path);
	free(row->key);
	free(row->recovery_point);
	free(row->last_error);
	memset(row, 0, sizeof(*row));
}

static char *
copy_or_null(const char *s, bool *failed)
{
	char *copy;

	if (s == NULL)
		return NULL;
	copy = strdup(s);
	if (copy == NULL)
		*failed = true;
	return copy;
}

enum rc
store_list(struct store *store, const struct store_filter *f,
    struct store_cursor **out)
{
	struct store_cursor *c;
	bool failed = false;

	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RC_NOMEM;
	c->store = store;
	c->key = copy_or_null(f->key, &failed);
	c->scope = copy_or_null(f->scope, &failed);
	c->path = copy_or_null(f->path, &failed);
	if (f->state != RECORD_NONE)
		c->state = record_state_name(f->state);
	c->created_before =
	    f->older_ms > 0 ? clock_wall() - f->older_ms : INT64_MAX;
	if (failed) {
		store_list_free(c);
		return RC_NOMEM;
	}
	*out = c;
	return RC_OK;
}

void
store_list_free(struct store_cursor *c)
{
	if (c == NULL)
		return;
	for (; c->next < c->n; c->next++)
		store_row_free(&c->rows[c->next]);
	free(c->key);
	free(c->scope);
	free(c->path);
	free(c);
}

static int64_t
wall_or_none(const struct store *store, struct db_stmt *s, int i)
{
	return db_column_null(s, i) ? 0
				    : store_wall(store, db_column_int(s, i));
}

static enum rc
read_row(const struct store *store, struct db_stmt *s, struct store_row *row)
{
	const char *text;
	enum rc rc;

	memset(row, 0, sizeof(*row));
	row->id = db_column_int(s, 0);
	row->attempt = (int)db_column_int(s, 5);
	row->status = (int)db_column_int(s, 6);
	row->created_at = db_column_int(s, 9);
	row->updated_at = db_column_int(s, 10);
	row->locked_until = wall_or_none(store, s, 11);
	row->expires_at = wall_or_none(store, s, 12);
	text = db_column_text(s, 8);
	if (text != NULL)
		snprintf(row->downstream, sizeof(row->downstream), "%s", text);
	text = db_column_text(s, 4);
	if (text == NULL || !record_state_parse(text, &row->state))
		return RC_CORRUPT;
	if ((rc = db_column_strdup(s, 1, &row->scope)) == RC_OK &&
	    (rc = db_column_strdup(s, 2, &row->path)) == RC_OK &&
	    (rc = db_column_strdup(s, 3, &row->key)) == RC_OK &&
	    (rc = db_column_strdup(s, 7, &row->recovery_point)) == RC_OK)
		rc = db_column_strdup(s, 13, &row->last_error);
	return rc;
}

static enum rc
read_page(struct store_cursor *c)
{
	struct store_reader *reader;
	struct db_stmt *s;
	enum rc rc;

	c->next = c->n = 0;
	rc = store_reader_take(c->store, &reader);
	if (rc != RC_OK)
		return rc;
	s = db_stmt(reader->db, c->key != NULL ? QUERY_LIST_KEY : QUERY_LIST);
	db_bind_int(s, 1, c->last_id);
	db_bind_text(s, 2, c->scope);
	db_bind_text(s, 3, c->path);
	db_bind_text(s, 4, c->state);
	db_bind_int(s, 5, c->created_before);
	db_bind_int(s, 6, LIST_PAGE);
	if (c->key != NULL)
		db_bind_text(s, 7, c->key);
	while (c->n < LIST_PAGE && (rc = db_step_row(s)) == RC_OK) {
		rc = read_row(c->store, s, &c->rows[c->n]);
		c->last_id = c->rows[c->n].id;
		c->n++;
		if (rc != RC_OK)
			break;
	}
	db_reset(s);
	store_reader_give(c->store, reader);
	c->end = rc == RC_NOTFOUND;
	return c->end ? RC_OK : rc;
}

enum rc
store_list_next(struct store_cursor *c, struct store_row *row)
{
	enum rc rc;

	if (c->next == c->n && !c->end) {
		rc = read_page(c);
		if (rc != RC_OK)
			return rc;
	}
	if (c->next == c->n)
		return RC_NOTFOUND;
	*row = c->rows[c->next];
	memset(&c->rows[c->next], 0, sizeof(*row));
	c->next++;
	return RC_OK;
}

/* --- stats -------------------------------------------------------------- */

static int64_t
file_size(const char *file, const char *suffix)
{
	struct stat st;
	char *name;
	int64_t size = 0;

	if (asprintf(&name, "%s%s", file, suffix) == -1)
		return 0;
	if (stat(name, &st) == 0)
		size = st.st_size;
	free(name);
	return size;
}

static enum rc
count(struct db *db, struct store_counts *c)
{
	struct db_stmt *s = db_stmt(db, QUERY_COUNTS);
	enum record_state state;
	const char *name;
	enum rc rc;

	while ((rc = db_step_row(s)) == RC_OK) {
		name = db_column_text(s, 0);
		if (name == NULL || !record_state_parse(name, &state)) {
			rc = RC_CORRUPT;
			break;
		}
		c->keys[state] = db_column_int(s, 1);
		if (state == RECORD_UNKNOWN)
			c->oldest_unknown_wall = db_column_int(s, 2);
		c->answer_bytes += db_column_int(s, 3);
	}
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_stats(struct store *store, struct store_counts *c)
{
	struct store_reader *reader;
	enum rc rc;

	memset(c, 0, sizeof(*c));
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	rc = count(reader->db, c);
	store_reader_give(store, reader);
	c->database_bytes = file_size(store->file, "");
	c->wal_bytes = file_size(store->file, "-wal");
	return rc;
}

/* --- doctor ------------------------------------------------------------- */

struct findings {
	struct store_finding *item;
	size_t max, n;
};

static void __attribute__((format(printf, 4, 5)))
found(struct findings *f, const char *name, bool ok, const char *fmt, ...)
{
	struct store_finding *item;
	va_list ap;

	if (f->n == f->max)
		return;
	item = &f->item[f->n++];
	item->ok = ok;
	snprintf(item->name, sizeof(item->name), "%s", name);
	va_start(ap, fmt);
	vsnprintf(item->text, sizeof(item->text), fmt, ap);
	va_end(ap);
}

/* The one number that a statement gives. */
static enum rc
number(struct db *db, enum query q, int64_t *value)
{
	struct db_stmt *s = db_stmt(db, q);
	enum rc rc = db_step_row(s);

	if (rc == RC_OK)
		*value = db_column_int(s, 0);
	db_reset(s);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

static void
check_integrity(struct db *db, struct findings *f)
{
	struct db_stmt *s = db_stmt(db, QUERY_INTEGRITY);
	const char *text;
	enum rc rc = db_step_row(s);

	text = rc == RC_OK ? db_column_text(s, 0) : rc_text(rc);
	if (text != NULL && strcmp(text, "ok") == 0)
		found(f, "integrity", true, "pages, rows and indexes agree");
	else
		found(f, "integrity", false, "%s",
		    text != NULL ? text : "no answer");
	db_reset(s);
}

static void
check_bodies(struct db *db, struct findings *f)
{
	int64_t orphans, missing;

	if (number(db, QUERY_ORPHAN_BODIES, &orphans) != RC_OK ||
	    number(db, QUERY_MISSING_BODIES, &missing) != RC_OK)
		found(f, "bodies", false, "cannot be counted");
	else if (orphans != 0 || missing != 0)
		found(f, "bodies", false,
		    "%" PRId64 " without a key, %" PRId64
		    " keys without their body",
		    orphans, missing);
	else
		found(f, "bodies", true, "each belongs to its key");
}

static void
check_owners(struct store *store, struct db *db, struct findings *f)
{
	int64_t dead[STORE_SWEEP_OWNERS], sum = 0, rows;
	struct db_stmt *s;
	size_t n, i;
	enum rc rc;

	rc = find_dead(store, dead, STORE_SWEEP_OWNERS, &n);
	for (i = 0; i < n && rc == RC_OK; i++) {
		s = db_stmt(db, QUERY_OWNER_COUNT);
		db_bind_int(s, 1, dead[i]);
		rc = db_step_row(s);
		rows = rc == RC_OK ? db_column_int(s, 0) : 0;
		db_reset(s);
		sum += rows;
	}
	if (rc != RC_OK)
		found(f, "leases", false, "cannot tell who is alive: %s",
		    rc_text(rc));
	else if (sum > 0)
		found(f, "leases", false,
		    "%" PRId64 " held by processes that are gone; a sweep "
		    "settles them",
		    sum);
	else
		found(f, "leases", true, "all held by living processes");
}

static void
check_states(struct store *store, struct findings *f)
{
	struct store_counts c;
	int64_t open;

	if (store_stats(store, &c) != RC_OK) {
		found(f, "outcomes", false, "keys cannot be counted");
		return;
	}
	open = c.keys[RECORD_UNKNOWN] + c.keys[RECORD_DEAD_LETTER];
	if (open > 0)
		found(f, "outcomes", false,
		    "%" PRId64 " keys whose outcome is unknown", open);
	else
		found(f, "outcomes", true, "no key's outcome is unknown");
	found(f, "log", true, "%" PRId64 " bytes in the write-ahead log",
	    c.wal_bytes);
}

static void
check_mode(struct store *store, struct findings *f)
{
	struct stat st;

	if (stat(store->file, &st) == -1)
		found(
		    f, "file", false, "%s is not there any more", store->file);
	else if ((st.st_mode & 07) != 0)
		found(f, "file", false,
		    "mode %04o: answers can be read by anyone",
		    (unsigned)st.st_mode & 07777);
	else
		found(
		    f, "file", true, "mode %04o", (unsigned)st.st_mode & 07777);
}

enum rc
store_doctor(
    struct store *store, struct store_finding *items, size_t max, size_t *n)
{
	struct findings f = { items, max, 0 };
	struct store_reader *reader;
	int64_t version;
	enum rc rc;

	*n = 0;
	rc = store_reader_take(store, &reader);
	if (rc != RC_OK)
		return rc;
	check_integrity(reader->db, &f);
	if (db_pragma(reader->db, "user_version", &version) == RC_OK)
		found(&f, "schema", version == MIGRATE_VERSION,
		    "version %" PRId64, version);
	check_bodies(reader->db, &f);
	check_owners(store, reader->db, &f);
	store_reader_give(store, reader);
	check_states(store, &f);
	check_mode(store, &f);
	*n = f.n;
	return RC_OK;
}
