/*
 * What the store's own files share; nobody else includes it.
 */
#ifndef STORE_IMPL_H
#define STORE_IMPL_H

#include <pthread.h>

#include "committer.h"
#include "liveness.h"
#include "store.h"
#include "store_guard.h"
#include "store_share.h"

/* No deadline is further away, so that sums do not overflow: 30,000 years. */
#define STORE_LONGEST 1000000000000000

struct store_reader {
	struct db *db;
	bool large; /* its cache: it is for looking up keys */
	struct store_reader *next;
};

/* A count of the keys that end by age, under way: see store_gauge.c. */
struct store_tally {
	int64_t expires_at, id; /* the last row that was counted */
	enum record_state state;
	int64_t sum[RECORD_NSTATES];
	/* then the outbox */
	bool effects;
	int64_t key_id, effect_id;
	enum store_effect_state effect_state;
	int64_t delivered_sum;
	/* the last whole one; under the lock */
	int64_t keys[RECORD_NSTATES], delivered;
	bool counted;
};

struct store {
	char *file; /* what the database's name stands for */
	struct store_guard guard;
	unsigned mode;
	bool keeper; /* opened to create: a daemon's, not an operator's */
	bool full;   /* a commit is synced */
	int64_t busy_timeout;
	unsigned char secret[SCOPE_SECRET_LEN];
	int64_t shift; /* store time is clock_boot() plus that */
	struct db *writer;
	struct committer *committer;
	struct store_share share;

	pthread_mutex_t mutex; /* guards what follows */
	struct store_reader *idle;
	struct store_reader *looker; /* the large one, while nobody has it */
	bool has_looker;             /* there is a large one */
	struct liveness *liveness;   /* NULL until somebody needs it */
	struct store_tally tally;
};

/*
 * A connection to read with, for one thread; the last one used comes first,
 * for its cache is warm.  Who takes one ends his read before he gives it back,
 * lest the write-ahead log grow.
 */
enum rc store_reader_take(struct store *, struct store_reader **);
void store_reader_give(struct store *, struct store_reader *);
void store_reader_close_all(struct store *); /* all were given back */

/*
 * A statement of that key, which has that number.  By the number alone another
 * key's row may be found, where another database was copied over this one.
 */
struct db_stmt *store_stmt_of(
    struct db *, enum query, const struct store_identity *, int64_t id);

/* Copies the body of that row, length bytes, into a spool. */
enum rc store_read_blob(
    struct db *, const char *table, int64_t id, size_t length, struct spool *);

/* This process's lock; taken at the first call. */
enum rc store_liveness(struct store *, struct liveness **);

/* Whether a lease can be taken as the reservation says (NULL: at all), and by
 * whom. */
enum rc store_may_lease(
    struct store *, const struct store_reservation *, struct liveness **);

/* Whether it makes sense; leased: there is to be an attempt now. */
bool store_reservation_is_sound(const struct store_reservation *, bool leased);

/* Owners of leases that are gone: the next max in the order of their names,
 * after that one (0: the first). */
enum rc store_dead_owners(
    struct store *, int64_t after, int64_t *dead, size_t max, size_t *n);

#endif
