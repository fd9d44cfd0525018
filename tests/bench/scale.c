/*
 * Databases with millions of keys, and reaping at that scale: how long a batch
 * holds the write lock when all of them are past their retention.
 *
 *	scale make FILE KEYS [BODY]  a database of that many keys, with bodies
 *	                             of so many bytes, all past their retention
 *	scale reap FILE ROWS BATCHES [cold]
 *	                             reaps that many batches of at most ROWS
 *	scale like FILE KEYS SET     makes that many keys like the one that is
 *	                             in FILE, alive if it is, with the names of
 *	                             SET (see keyname.h)
 *
 * cold: before each batch the file is dropped from the page cache, so all that
 * the batch needs comes from the disk: less memory than any limit leaves.
 *
 * A batch is what the committer makes of one: BEGIN IMMEDIATE, the batch,
 * COMMIT with a sync; then the log is moved into the database if it is due,
 * without the lock.  The lock is held from after BEGIN until after COMMIT; on
 * a machine that has other things to do, look at the processor time of it.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "keyname.h"
#include "schema.h"
#include "store_ops.h"
#include "store_impl.h"
#include "store_body.h"

#define CHECKPOINT (4 * 1024 * 1024) /* as in committer_thread.c */

static double
read_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double
now_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

static void
must(enum rc rc, const char *what)
{
	if (rc == RC_OK)
		return;
	fprintf(stderr, "scale: %s: %s\n", what, rc_text(rc));
	exit(1);
}

static void
run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return;
	fprintf(stderr, "scale: %s: %s\n", sql, sqlite3_errmsg(db));
	exit(1);
}

static struct schema_options
options(const char *file)
{
	struct schema_options o;

	memset(&o, 0, sizeof(o));
	o.file = file;
	o.mode = 0600;
	o.create = true;
	o.full = true;
	o.busy_timeout = 60000;
	return o;
}

/* --- making it ---------------------------------------------------------- */

/* Keys as clients make them: in no order.  Two thousand end each second. */
static const char fill[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
    "WHERE i < %lld) "
    "INSERT INTO once_key(id, identity, key, path, scope, state, attempt, "
    "fingerprint, "
    "fingerprint_spec, downstream, peer, instance, retention, created_at, "
    "updated_at, "
    "expires_at, replayable, status, kind, response_version, body_length, "
    "headers, "
    "body, listed) SELECT i, random() >> 16, lower(hex(randomblob(16))), "
    "'/payments', "
    "'customer-' || (i %% 1000), 'completed', 1, randomblob(16), 1, "
    "randomblob(16), '192.0.2.1', randomblob(16), 0, 1700000000000 + i / 2, "
    "1700000000100 + i / 2, 86400000 + i / 2, 1, 201, 0, 1, %d, "
    "CAST('Content-Type: application/json' || char(13, 10) AS BLOB), "
    "%s, 1 FROM n";

/* The one row of a query, in memory of its own. */
static char *
ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;
	char *text;

	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW ||
	    sqlite3_column_text(s, 0) == NULL) {
		fprintf(stderr, "scale: %s: %s\n", sql, sqlite3_errmsg(db));
		exit(1);
	}
	text = strdup((const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	if (text == NULL)
		exit(1);
	return text;
}

static void
number_key(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct store_identity identity = {
		(const char *)sqlite3_value_text(values[2]),
		(const char *)sqlite3_value_text(values[1]),
		(const char *)sqlite3_value_text(values[0]),
	};

	(void)n;
	sqlite3_result_int64(
	    context, identity_number(sqlite3_user_data(context), &identity));
}

static struct identity_seed
seed_of(sqlite3 *db)
{
	struct identity_seed seed;
	sqlite3_stmt *s;

	if (sqlite3_prepare_v2(db, "SELECT secret FROM once_meta", -1, &s,
		NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW ||
	    sqlite3_column_bytes(s, 0) != SCOPE_SECRET_LEN)
		exit(1);
	identity_seed_make(&seed, sqlite3_column_blob(s, 0));
	sqlite3_finalize(s);
	return seed;
}

/* Registers number(), of an identity. */
static void
add_number(sqlite3 *db, struct identity_seed *seed)
{
	*seed = seed_of(db);
	if (sqlite3_create_function(db, "number", 3, SQLITE_UTF8, seed,
		number_key, NULL, NULL) != SQLITE_OK)
		exit(1);
}

/*
 * Indexes are made anew when all rows are there: that is a sort.  Returns how
 * to make them.  But not the identities', which come in no order: its pages
 * would all be full, and each new key would split one.
 */
static char *
begin_rows(const char *file, sqlite3 **db)
{
	static const char of[] = "FROM sqlite_schema WHERE type = 'index' AND "
				 "tbl_name = 'once_key' AND sql IS NOT NULL "
				 "AND name <> 'once_key_identity'";
	char query[256], *drop, *indexes;

	if (sqlite3_open(file, db) != SQLITE_OK)
		exit(1);
	snprintf(query, sizeof(query), "SELECT group_concat(sql, ';') %s", of);
	indexes = ask(*db, query);
	snprintf(query, sizeof(query),
	    "SELECT group_concat('DROP INDEX ' || name, ';') %s", of);
	drop = ask(*db, query);
	run(*db,
	    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
	    "PRAGMA cache_size = -2000000; BEGIN");
	run(*db, drop);
	free(drop);
	return indexes;
}

static void
end_rows(sqlite3 *db, char *indexes)
{
	run(db, "UPDATE once_meta SET recent = (SELECT max(id) FROM once_key)");
	run(db, indexes);
	run(db, "COMMIT; PRAGMA journal_mode = WAL");
	sqlite3_close(db);
	free(indexes);
}

static void
make(const char *file, long long keys, int body)
{
	struct schema_options o = options(file);
	char err[256], sql[2048], bytes[64], *indexes;
	struct identity_seed seed;
	struct db *db;
	sqlite3 *raw;
	double begin = now_ms();

	must(schema_open(&db, &o, err, sizeof(err)), "make");
	db_close(db);
	indexes = begin_rows(file, &raw);
	run(raw,
	    "INSERT INTO once_fingerprint_spec(id, text) VALUES (1, '1 json')");
	snprintf(bytes, sizeof(bytes),
	    body <= STORE_INLINE ? "randomblob(%d)" : "NULL", body);
	snprintf(sql, sizeof(sql), fill, keys, body, bytes);
	run(raw, sql);
	/* The store compares the oldest ones with its secret. */
	add_number(raw, &seed);
	run(raw,
	    "UPDATE once_key SET identity = number(key, path, scope) "
	    "WHERE id <= 8");
	if (body > STORE_INLINE) {
		snprintf(sql, sizeof(sql),
		    "INSERT INTO once_piece(id, body) "
		    "SELECT 65536 * id + 1, randomblob(%d) FROM once_key",
		    body);
		run(raw, sql);
	}
	end_rows(raw, indexes);
	printf("%lld keys made in %.0f s\n", keys, (now_ms() - begin) / 1e3);
}

/* --- making it of one --------------------------------------------------- */

static void
name_key(sqlite3_context *context, int n, sqlite3_value **values)
{
	char name[KEYNAME_LENGTH];

	(void)n;
	keyname(name, (uint64_t)sqlite3_value_int64(values[0]),
	    (uint64_t)sqlite3_value_int64(values[1]));
	sqlite3_result_text(context, name, sizeof(name), SQLITE_TRANSIENT);
}

/* What is different for each key; all else is as in the one. */
static const char names[] = "SELECT group_concat(name) FROM "
			    "pragma_table_info('once_key')";
static const char values[] =
    "SELECT group_concat(CASE name WHEN 'id' THEN 'id + i' "
    "WHEN 'key' THEN 'keyname(%s, i - 1)' "
    "WHEN 'identity' THEN 'number(keyname(%s, i - 1), path, scope)' "
    "WHEN 'listed' THEN '1' WHEN 'downstream' "
    "THEN 'randomblob(16)' ELSE name END) "
    "FROM pragma_table_info('once_key')";

static void
make_like(const char *file, long long keys, const char *set)
{
	char sql[4096], query[1024], *to, *from, *indexes;
	double begin = now_ms();
	struct identity_seed seed;
	sqlite3 *raw;

	indexes = begin_rows(file, &raw);
	add_number(raw, &seed);
	if (sqlite3_create_function(raw, "keyname", 2, SQLITE_UTF8, NULL,
		name_key, NULL, NULL) != SQLITE_OK)
		exit(1);
	to = ask(raw, names);
	snprintf(query, sizeof(query), values, set, set);
	from = ask(raw, query);
	run(raw,
	    "CREATE TEMP TABLE one AS SELECT * FROM once_key "
	    "WHERE state = 'completed' LIMIT 1");
	snprintf(sql, sizeof(sql),
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	    "WHERE i < %lld) INSERT INTO once_key(%s) SELECT %s FROM n, one",
	    keys, to, from);
	run(raw, sql);
	if (sqlite3_changes64(raw) != keys) {
		fprintf(stderr, "scale: %s: no completed key\n", file);
		exit(1);
	}
	free(to);
	free(from);
	end_rows(raw, indexes);
	printf("%lld keys made in %.0f s\n", keys, (now_ms() - begin) / 1e3);
}

/* --- reaping it --------------------------------------------------------- */

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
show(const char *what, double *ms, int n)
{
	double sum = 0;
	int i;

	if (n == 0)
		return;
	qsort(ms, (size_t)n, sizeof(*ms), ascending);
	for (i = 0; i < n; i++)
		sum += ms[i];
	printf("%-10s ms: median %.2f  99%% %.2f  most %.2f  mean %.2f (%d)\n",
	    what, ms[n / 2], ms[n * 99 / 100], ms[n - 1], sum / n, n);
}

static enum rc
run_batch(struct db *db, tx_body *body, struct expire_batch *b)
{
	struct sqlite_tx t;
	enum rc rc;

	sqlite_tx_begin(&t, db, INT64_MAX / 2);
	rc = body(&t.tx, b);
	sqlite_tx_end(&t);
	return rc;
}

/* As store_expire() does before it asks for the lock. */
static double
read_ahead(struct db *db, struct expire_batch *b)
{
	double begin = now_ms();
	enum rc rc = run_batch(db, store_expire_ahead, b);

	must(rc == RC_NOTFOUND ? RC_OK : rc, "read ahead");
	return now_ms() - begin;
}

static void
reap(const char *file, int rows, int batches, bool cold)
{
	struct schema_options o = options(file);
	double *ahead, *held, *cpu, *moved, begin, all = 0;
	int i, nheld = 0, nmoved = 0, keys = 0;
	struct store_change *changes;
	struct expire_batch batch;
	char err[256], command[600];
	struct db *db, *reader;
	enum rc rc;

	must(schema_open(&db, &o, err, sizeof(err)), "open");
	must(db_open(&reader, file, 60000), "open");
	must(db_setup_reader(reader, 512), "open");
	ahead = calloc((size_t)batches, sizeof(*ahead));
	cpu = calloc((size_t)batches, sizeof(*cpu));
	held = calloc((size_t)batches, sizeof(*held));
	moved = calloc((size_t)batches, sizeof(*moved));
	changes = calloc((size_t)rows, sizeof(*changes));
	if (ahead == NULL || cpu == NULL || held == NULL || moved == NULL ||
	    changes == NULL)
		exit(1);
	/* Another process: closing the file here would drop SQLite's locks. */
	snprintf(command, sizeof(command),
	    "dd of='%s' oflag=nocache conv=notrunc,fdatasync count=0 "
	    "status=none",
	    file);
	for (i = 0; i < batches; i++) {
		if (cold && system(command) != 0)
			exit(1);
		batch = (struct expire_batch){
			.from.expires_at = INT64_MIN,
			.limit = rows,
			.changes = changes,
		};
		all += ahead[i] = read_ahead(reader, &batch);
		begin = now_ms();
		must(db_begin(db), "begin");
		cpu[i] = read_ms(CLOCK_THREAD_CPUTIME_ID);
		rc = run_batch(db, store_expire_batch, &batch);
		must(rc, "reap");
		must(db_commit(db), "commit");
		cpu[i] = read_ms(CLOCK_THREAD_CPUTIME_ID) - cpu[i];
		held[nheld++] = now_ms() - begin;
		all += held[nheld - 1];
		keys += batch.n;
		store_changes_free(changes, batch.n);
		if (batch.n == 0)
			break;
		if (db_wal_bytes(db) < CHECKPOINT)
			continue;
		begin = now_ms();
		(void)db_checkpoint(db, false);
		moved[nmoved++] = now_ms() - begin;
		all += moved[nmoved - 1];
	}
	printf("%d keys in batches of %d%s: %.0f keys/s\n", keys, rows,
	    cold ? ", cold" : "", keys / all * 1e3);
	show("read ahead", ahead, nheld);
	show("lock held", held, nheld);
	show("of it cpu", cpu, nheld);
	show("log moved", moved, nmoved);
	free(ahead);
	free(cpu);
	free(held);
	free(moved);
	free(changes);
	db_close(reader);
	db_close(db);
}

int
main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "make") == 0)
		make(argv[2], atoll(argv[3]), argc > 4 ? atoi(argv[4]) : 100);
	else if (argc >= 5 && strcmp(argv[1], "reap") == 0)
		reap(argv[2], atoi(argv[3]), atoi(argv[4]),
		    argc > 5 && strcmp(argv[5], "cold") == 0);
	else if (argc == 5 && strcmp(argv[1], "like") == 0)
		make_like(argv[2], atoll(argv[3]), argv[4]);
	else {
		fputs("usage: scale make FILE KEYS [BODY]\n"
		      "       scale reap FILE ROWS BATCHES [cold]\n"
		      "       scale like FILE KEYS SET\n",
		    stderr);
		return 2;
	}
	return 0;
}
