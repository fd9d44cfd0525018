/*
 * A kind of store: the functions that implement store.h, and the headers beside
 * it, whose comments hold for them.  store_ops.c calls them.
 */
#ifndef STORE_OPS_H
#define STORE_OPS_H

#include <stdatomic.h>

#include "lock.h"
#include "liveness.h"
#include "store_operator.h"
#include "tx.h"

struct findings;

/* A process that is not alive. */
struct store_gone {
	int64_t id;
	/* It may be alive after all, on another host: it only has not moved
	 * since that beat; 0: it never has. */
	bool suspected;
	int64_t beat;
};

/* Keys and effects that end by age. */
struct store_aged {
	int64_t completed, failed_retryable, expired;
	int64_t delivered; /* effects */
};

/* A walk over all keys that end by age, or over all effects, in parts. */
struct store_walk {
	bool effects;
	int64_t at, id; /* the place of the last row, as the store has it */
	int state;
	struct store_aged sum;
};

/* The walk under way, of the one thread that tallies; and the sums of the last
 * one. */
struct store_tally {
	struct store_walk walk;
	_Atomic int64_t completed, failed_retryable, expired, delivered;
	atomic_bool counted;
};

/*
 * A row for each function: its type, name, parameters and arguments.  Each
 * takes the store first.  X(type, name, parameters, arguments).
 */
/* clang-format off */
#define STORE_VALUE_OPS(X) \
	X(enum rc, tx_read, (struct store *s, tx_body *body, void *arg), \
	    (s, body, arg)) \
	X(enum rc, tx_look, (struct store *s, tx_body *body, void *arg), \
	    (s, body, arg)) \
	X(enum rc, tx_write, (struct store *s, unsigned how, tx_body *body, \
	    void *arg), (s, how, body, arg)) \
	X(enum rc, tx_number, (const struct store *s, \
	    const struct store_identity *identity, uint64_t *number), \
	    (s, identity, number)) \
	X(enum rc, tx_range, (const struct store *s, const char *key, \
	    uint64_t number, struct row_value range[2]), \
	    (s, key, number, range)) \
	X(enum rc, walk, (struct store *s, struct store_walk *w, int n), \
	    (s, w, n)) \
	X(int64_t, now, (const struct store *s), (s)) \
	X(int64_t, wall, (const struct store *s, int64_t store_time), \
	    (s, store_time)) \
	X(enum rc, lookup, (struct store *s, \
	    const struct store_identity *identity, struct record *key, \
	    struct store_inline_answer *small), (s, identity, key, small)) \
	X(enum rc, liveness, (struct store *s, struct liveness **liveness), \
	    (s, liveness)) \
	X(bool, expects_new, (const struct store *s), (s)) \
	X(enum rc, admit_do, (struct store *s, struct store_admit *p), (s, p)) \
	X(struct store_outcome *, outcome_new, (struct store *s), (s)) \
	X(enum rc, outcome_do, (struct store *s, struct outcome_change *o, \
	    struct store_outcome **outcome), (s, o, outcome)) \
	X(enum rc, make_durable, (struct store *s, \
	    const struct record *record), (s, record)) \
	X(enum rc, recover, (struct store *s, int limit, \
	    struct store_change *changes, int *n), (s, limit, changes, n)) \
	X(enum rc, lost_owners, (struct store *s, int64_t after, \
	    struct store_gone *gone, size_t max, size_t *n), \
	    (s, after, gone, max, n)) \
	X(bool, owner_gone, (struct store *s, int64_t owner, \
	    struct store_gone *gone), (s, owner, gone)) \
	X(int64_t, alone, (struct store *s), (s)) \
	X(const char *, why, (struct store *s, enum rc rc, char *out, \
	    size_t size), (s, rc, out, size)) \
	X(bool, health, (struct store *s, char *why, size_t size), \
	    (s, why, size)) \
	X(enum rc, backup, (struct store *s, const struct store_backup *what, \
	    struct store_copied *copied, char *why, size_t size), \
	    (s, what, copied, why, size)) \
	X(enum rc, examine, (struct store *s, struct findings *f), (s, f)) \
	X(enum rc, row_check, (const struct store *s, struct tx *tx, \
	    const struct record *key), (s, tx, key))

/* The same, without a result. */
#define STORE_VOID_OPS(X) \
	X(void, tx_undo, (struct store *s, tx_body *undo, \
	    const struct tx_undo *what), (s, undo, what)) \
	X(void, sharing, (struct store *s, struct store_sharer *sharer, \
	    bool begins), (s, sharer, begins))
/* clang-format on */

struct store_ops {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): the parts of a declaration */
#define X(type, name, parameters, arguments) type(*name) parameters;
	STORE_VALUE_OPS(X)
	STORE_VOID_OPS(X)
	void (*close)(struct store *s);
#undef X
	void (*outcome_free)(struct store_outcome *);
};

/* What this process's threads wait for: the end of a run, and work that was
 * made.  Other processes' news are found by polling, or by a watch. */
struct store_news {
	struct lock lock;
	pthread_cond_t ended, made;
	uint64_t runs, work; /* generations */
	int fd;              /* store_news_to() */
};

void store_news_init(struct store_news *n);
void store_news_destroy(struct store_news *n); /* no thread waits */

/* A run has ended; work was made. */
void store_news_ended(struct store_news *n);
void store_news_made(struct store_news *n);

/* The struct of every store begins with this. */
struct store_base {
	const struct store_ops *ops;
	const unsigned char *secret;
	const char *database, *folder; /* store_database(), store_folder() */
	const char *file; /* the database's; NULL: it is on a server */
	struct store_news news;
	/* the files about this host's processes have names that begin so: see
	 * attempt_lock.h and liveness.h */
	const char *local;
	/* of this host and its lock file: store_attempt.file; set by the first
	 * store_liveness() */
	int64_t host;
	atomic_int attempts; /* enum rc of the last store_attempt_lock() */
	struct store_tally tally;
	/* jobs, and effects, in a row that were lost to other processes */
	atomic_uint jobs_lost, effects_lost;
	/* No lease has a deadline before that, and no key is queued for an
	 * earlier time (store time). */
	_Atomic int64_t leases_from, queued_from;
};

static inline struct store_base *
store_base(struct store *s)
{
	return (struct store_base *)(void *)s;
}

static inline const struct store_base *
store_base_of(const struct store *s)
{
	return (const struct store_base *)(const void *)s;
}

/*
 * A transaction that reads, and sees one state of the store; or, without that
 * promise, one lookup.  Failures are those of the body, and RC_BUSY, RC_IO,
 * RC_TIMEOUT.
 */
enum rc store_tx_read(struct store *s, tx_body *body, void *arg);
enum rc store_tx_look(struct store *s, tx_body *body, void *arg);

/* One that writes; how: TX_BEGINS and so on.  Returns when it is durable.  What
 * the body returned other than RC_OK rolls it back. */
enum rc store_tx_write(struct store *s, unsigned how, tx_body *body, void *arg);

/* Records the outcome that is a part of *o by store_outcome_run(): see
 * store_finish(). */
enum rc store_outcome_do(
    struct store *s, struct outcome_change *o, struct store_outcome **outcome);

/* Admits a request by the transaction of store_admit.h: see store_reserve() and
 * store_accept(). */
enum rc store_admit_do(struct store *s, struct store_admit *p);

/* A handler begins to share the database, or ends: see store_share_begin(). */
void store_sharing(struct store *s, struct store_sharer *sharer, bool begins);

/* Whether the next key that is asked for is likely to be new, and a look at it
 * before would cost a round trip. */
bool store_expects_new(const struct store *s);

/* Runs that one, which has a copy of *what, later, as often as it fails: the
 * result of a transaction that began something was RC_PENDING. */
void store_tx_undo(struct store *s, tx_body *undo, const struct tx_undo *what);

/* The number of an identity for its References, below SEALED_REFERENCES. */
enum rc store_tx_number(const struct store *s,
    const struct store_identity *identity, uint64_t *number);

/* What the identities of a key, or (NULL) of such a number, have in the index,
 * from range[0] to range[1], as parameters.  RC_NOTFOUND: no identity has that
 * number. */
enum rc store_tx_range(const struct store *s, const char *key, uint64_t number,
    struct row_value range[2]);

/* The number that a Reference tells.  RC_INVALID: it is no UUID; RC_NOTFOUND:
 * it is none of this store. */
enum rc
store_referenced(struct store *s, const char *instance, uint64_t *number);

/* The read of what is due first, a job or an effect, begins with this. */
struct store_next {
	/* Reads the first one after some others, which are left to other
	 * processes; sets the time when it is due, and what time it is.  Frees
	 * what it has read before. */
	tx_body *body;
	atomic_uint *lost; /* in a row, to other processes */
	int64_t skip, at, now;
};

/* RC_NOTFOUND: there is none.  The one that is read may not be due yet. */
enum rc store_next(struct store *s, struct store_next *n);

/* Counts the one that was tried: RC_LOST, another process has it. */
void store_next_taken(atomic_uint *lost, enum rc rc);

/* A search under way. */
struct store_browsing {
	struct store *store;
	const struct store_browse *what;
	struct store_found *found;
	struct row_value range[2]; /* of a key, or of a Reference */
	char downstream[RECORD_UUID_LEN + 1];
	bool nothing; /* no key can have that UUID */
};

/* Begins it; then the transaction of store_browse(), whose argument it is. */
enum rc store_browse_begin(struct store_browsing *b, struct store *s,
    const struct store_browse *what, struct store_found *found);
enum rc store_browse_run(struct tx *tx, void *arg);

/* What TX_TOPIC_CLEAR is told, in its transaction: by it that sees whether this
 * process is the only one that uses the store. */
int64_t store_alone(struct store *s);

/* Counts the next n keys, or effects, of the walk; RC_NOTFOUND: these were the
 * last. */
enum rc store_walk(struct store *s, struct store_walk *w, int n);

/* Effects in each state that is not delivered. */
enum rc store_count_effects(struct store *s, int64_t counts[EFFECT_NSTATES]);

/* Adds what is found about files or server, schema and processes. */
enum rc store_examine(struct store *s, struct findings *f);

/* Checks the columns of the current row of ROWS that stand after those of its
 * record.  RC_CORRUPT: no request finds the row. */
enum rc
store_row_check(const struct store *s, struct tx *tx, const struct record *key);

/* This process's lock; the first call takes it. */
enum rc store_liveness(struct store *s, struct liveness **liveness);

/* The next owners that are gone after that one (0: from the first) and have
 * leases, or try effects: at most max, ordered by their numbers. */
enum rc store_lost_owners(struct store *s, int64_t after,
    struct store_gone *gone, size_t max, size_t *n);

/* Whether an owner is gone; false if that cannot be determined.  Cheap. */
bool store_owner_gone(struct store *s, int64_t owner, struct store_gone *gone);

/* The leases, and the tries of effects, for store_recover(): which is each
 * store's, because each has more to recover. */
enum rc store_recover_leases(
    struct store *s, int limit, struct store_change *changes, int *n);

/* Whether files for attempts can be made, if the last one could not. */
enum rc store_attempt_check(struct store *store);

/* --- a batch of keys past their retention, in a transaction --------------- */

/* Upper limit for the bodies that a batch deletes (bytes), which takes some
 * 5 ms. */
#define STORE_EXPIRE_BYTES (8 * 1024 * 1024)

/* The place of a key among those that end by age. */
struct expire_place {
	int64_t expires_at, id;
	enum record_state state; /* RECORD_NONE: before the first key */
};

struct expire_batch {
	struct expire_place from, to; /* of the rows that were read */
	int limit, n;
	struct store_change *changes; /* room for limit */
	bool more;                    /* there may be keys after that place */
};

/* Reads what the batch will read, without a lock: tx_body of a lookup.
 * RC_NOTFOUND: no key is due. */
enum rc store_expire_ahead(struct tx *tx, void *batch);

/* The batch.  Its changes are those of an earlier run, or none. */
enum rc store_expire_batch(struct tx *tx, void *batch);

/* store_open() of the store on SQLite. */
enum rc sqlite_open(struct store **out, const struct store_options *o,
    char *err, size_t errsize);

#endif
