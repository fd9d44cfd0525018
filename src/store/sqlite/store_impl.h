/*
 * Private to the store's own files.
 */
#ifndef STORE_IMPL_H
#define STORE_IMPL_H

#include "committer.h"
#include "identity.h"
#include "liveness.h"
#include "lock.h"
#include "share.h"
#include "store.h"
#include "store_guard.h"
#include "store_ops.h"
#include "tx.h"

/* The functions of the store on SQLite, by their names in store_ops.h. */
extern const struct store_ops sqlite_ops;

#define X(type, name, parameters, arguments) type sqlite_##name parameters;
STORE_OPS(X)
#undef X
void sqlite_close(struct store *store);

struct store_reader {
	struct db *db;
	bool begun; /* by store_reader_begin() */
	/* The round of the loop in which the glancer last found the files good:
	 * it looks at them once a round. */
	uint64_t checked_in;
	struct store_reader *next;
};

struct store {
	struct store_base base;
	char *file; /* the resolved name of the database */
	struct store_guard guard;
	unsigned mode;
	bool daemon;     /* opened with create, and not by an operator */
	bool full;       /* a commit is synced */
	bool distrusted; /* a sync failed before the committer was started */
	int64_t busy_timeout;
	struct identity_seed seed;
	struct db *writer;
	struct committer *committer;
	struct share share;
	atomic_bool damaged;          /* the last new key met a damaged page */
	struct store_reader *glancer; /* the loop's, which glances; or NULL */

	struct lock lock; /* guards what follows */
	struct store_reader *idle;
	/* NULL until it is needed; set under the lock, and read without */
	struct liveness *_Atomic liveness;
};

/*
 * A connection to read with, for one thread.  The connection used last is taken
 * first, because its cache is warm.  The caller must end its read before it
 * gives the connection back, so that the write-ahead log does not grow.
 */
enum rc store_reader_take(struct store *store, struct store_reader **out);
/* The same in a transaction, so that all reads are of one state of the
 * database; give ends it. */
enum rc store_reader_begin(struct store *store, struct store_reader **out);
void store_reader_give(struct store *store, struct store_reader *r);
void store_reader_close_all(struct store *store); /* all must be given back */

/* Opens it, as store->glancer, if reads can be made so here. */
enum rc store_reader_glancer(struct store *store);

/* The same for the one of the loop's thread, whose reads wait for nothing: see
 * db_glance_begin(). */
enum rc store_reader_glance(struct store *store, struct store_reader **out);

/* The result of a read that had rc, or why nothing of it may be used: a file
 * that was copied over the database may also look damaged.  Counts failures. */
enum rc store_reader_after(
    struct store *store, struct store_reader *reader, enum rc rc);

/* This process's lock; the first call takes it. */
enum rc sqlite_liveness(struct store *store, struct liveness **out);

/* Logs a folder in which other users can rename or remove the store's files,
 * with the cure. */
void store_warn_of_folder(const struct store *store);

/* Writes down the time, unless that was done less than grain (ms) ago. */
enum rc store_clock_note(struct store *store, int64_t grain);

/* --- transactions of tx.h ------------------------------------------------- */

/* Statements that wait for tx_result(), at most. */
#define SQLITE_TX_QUEUE 8

struct sqlite_tx {
	struct tx tx;
	struct db *db;
	struct db_stmt *queue[SQLITE_TX_QUEUE], *now;
	unsigned first, n;
	bool marked; /* the highest number of a key is noted */
	bool leaves; /* what is stored beside rows: see WRITE_LEAVES */
};

/* Its connection, for statements of this store only. */
struct db *sqlite_tx_db(struct tx *tx);

/* In the open transaction of db; now: store time, of one that writes. */
void sqlite_tx_begin(struct sqlite_tx *t, struct db *db, int64_t now);

/* Ends the statement that was read last, not the transaction. */
void sqlite_tx_end(struct sqlite_tx *t);

#endif
