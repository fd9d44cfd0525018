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
struct store_call;

/* A process that is not alive. */
struct store_gone {
	int64_t id;
	/* It may be alive after all, on another host: it only has not moved
	 * since that beat; 0: it never has. */
	bool suspected;
	int64_t beat;
};

/* Counted keys, of the states that end by age, and effects. */
struct store_aged {
	int64_t keys[RECORD_NSTATES];
	int64_t delivered; /* effects */
};

/* A walk over all keys that end by age, or over all effects, in parts. */
struct store_walk {
	bool effects;
	int rows;       /* of a part, at most */
	int64_t at, id; /* the last row, as the store orders them */
	int state;
	struct store_aged sum;
};

/* The walk under way, of the one thread that tallies; and the sums of the last
 * one, which the lock of the news guards. */
struct store_tally {
	struct store_walk walk;
	struct store_aged last;
	bool counted;
};

/*
 * A row for each function: its type, name, parameters and arguments.  Each
 * takes the store first.  X(type, name, parameters, arguments).
 */
/* clang-format off */
#define STORE_OPS(X) \
	X(enum rc, tx, (struct store *s, unsigned how, tx_body *body, \
	    void *arg), (s, how, body, arg)) \
	X(struct row_range, number, (const struct store *s, \
	    const struct store_identity *identity), (s, identity)) \
	X(enum rc, lookup, (struct store *s, \
	    const struct store_identity *identity, struct record *key, \
	    struct store_inline_answer *small), (s, identity, key, small)) \
	X(enum rc, liveness, (struct store *s, struct liveness **liveness), \
	    (s, liveness)) \
	X(enum rc, admit_do, (struct store *s, struct store_admit *p), (s, p)) \
	X(enum rc, outcome_do, (struct store *s, struct outcome_change *o, \
	    struct store_outcome **outcome), (s, o, outcome)) \
	X(enum rc, make_durable, (struct store *s, \
	    const struct record *record), (s, record)) \
	X(bool, is_durable, (struct store *s, \
	    const struct record *record), (s, record)) \
	X(enum rc, recover, (struct store *s, int limit, \
	    struct store_change *changes, int *n), (s, limit, changes, n)) \
	X(enum rc, lost_owners, (struct store *s, int64_t after, \
	    struct store_gone *gone, size_t max, size_t *n), \
	    (s, after, gone, max, n)) \
	X(bool, owner_gone, (struct store *s, int64_t owner, \
	    struct store_gone *gone), (s, owner, gone)) \
	X(bool, owner_may_be_gone, (struct store *s, int64_t owner), \
	    (s, owner)) \
	X(const char *, why, (struct store *s, enum rc rc, char *out, \
	    size_t size), (s, rc, out, size)) \
	X(bool, health, (struct store *s, char *why, size_t size), \
	    (s, why, size)) \
	X(enum rc, examine, (struct store *s, struct findings *f), (s, f))
/* clang-format on */

struct store_ops {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): the parts of a declaration */
#define X(type, name, parameters, arguments) type(*name) parameters;
	STORE_OPS(X)
	void (*close)(struct store *s);
#undef X
	size_t outcome_size;   /* of what begins with a struct outcome_change */
	size_t admission_size; /* the same, a struct store_admission */
};

/* See store_news().  The caller closes it. */
int store_news_open(void);

/* The call is done: tells its caller, in the loop. */
void store_call_ended(struct store_call *call);

/* Work was made. */
void store_news_made(int news);

/* The struct of every store begins with this. */
struct store_base {
	const struct store_ops *ops;
	const unsigned char *secret;
	const char *database, *folder; /* store_database(), store_folder() */
	const char *file;  /* the database's; NULL: it is on a server */
	int news;          /* store_news() */
	struct lock *lock; /* LOCK_STORE */
	/* store_call_open() */
	struct loop *loop;
	struct helpers *helpers;
	/* the files about this host's processes have names that begin so: see
	 * attempt_lock.h and liveness.h */
	const char *local;
	/* of this host and its lock file: store_attempt.file; set by the first
	 * store_liveness() */
	int64_t host;
	atomic_int attempts; /* enum rc of the last store_attempt_lock() */
	/* Store time is clock_boot() + ahead (ms), unless it stands still at a
	 * time; 0: it goes on. */
	_Atomic int64_t ahead, stands;
	atomic_uint sharing; /* handlers that share the database now */
	atomic_bool shared;  /* there was one */
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
 * Runs a transaction; how: TX_LOOK, TX_READ or TX_WRITE, see tx.h.  One that
 * writes returns when it is durable; what the body returned other than RC_OK
 * rolls it back.  Failures are those of the body, and RC_BUSY, RC_IO,
 * RC_TIMEOUT.
 */
enum rc store_tx(struct store *s, unsigned how, tx_body *body, void *arg);

/* Records the outcome that is a part of *o, by o->run(): see store_finish(). */
enum rc store_outcome_do(
    struct store *s, struct outcome_change *o, struct store_outcome **outcome);

/* Admits a request by the transaction of store_admit.h: see store_reserve() and
 * store_accept(). */
enum rc store_admit_do(struct store *s, struct store_admit *p);

/* Where the index of identities has that one; without a path and a scope: all
 * identities with that key. */
struct row_range
store_number(const struct store *s, const struct store_identity *identity);

/* Makes a random UUID one of that kind, which tells where the index of
 * identities has a key; false: the UUID is unchanged. */
bool store_seal(const unsigned char *secret, enum sealed_kind kind,
    const struct row_value *number, char uuid[RECORD_UUID_LEN + 1]);

/* Where the index of identities has the one that such a UUID tells.
 * RC_INVALID: it is no UUID; RC_NOTFOUND: it is none of that kind of this
 * store. */
enum rc store_sealed_range(struct store *s, enum sealed_kind kind,
    const char *text, struct row_range *range);

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
	struct row_range range; /* of a key, or of a Reference */
	char downstream[RECORD_UUID_LEN + 1];
	bool nothing; /* no key can have that UUID */
};

/* Begins it; then the transaction of store_browse(), whose argument it is. */
enum rc store_browse_begin(struct store_browsing *b, struct store *s,
    const struct store_browse *what, struct store_found *found);
enum rc store_browse_run(struct tx *tx, void *arg);

/* Adds what is found about files or server, schema and processes. */
enum rc store_examine(struct store *s, struct findings *f);

/* This process's lock; the first call takes it. */
enum rc store_liveness(struct store *s, struct liveness **liveness);

/* The next owners that are gone after that one (0: from the first) and have
 * leases, or try effects: at most max, ordered by their numbers. */
enum rc store_lost_owners(struct store *s, int64_t after,
    struct store_gone *gone, size_t max, size_t *n);

/* Whether an owner is gone; false if that cannot be determined.  With
 * PostgreSQL it may wait. */
bool store_owner_gone(struct store *s, int64_t owner, struct store_gone *gone);

/* The leases, and the tries of effects, for store_recover(): which is each
 * store's, because each has more to recover. */
enum rc store_recover_leases(
    struct store *s, int limit, struct store_change *changes, int *n);

/* Removes the files of attempts and processes of this host that are no longer
 * needed.  After store_recover_leases(): keys that it recovers no longer name
 * their attempts. */
enum rc store_attempt_clean(struct store *s);

/* Whether files for attempts can be made, if the last one could not; else why
 * gets a sentence.  Only routes with on_crash = resume or a reconciler need
 * them. */
bool store_attempt_check(struct store *store, char *why, size_t size);

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

/* --- what only the store on SQLite has ------------------------------------ */

/* store_open() */
enum rc sqlite_open(struct store **out, const struct store_options *o,
    char *err, size_t errsize);

/* store_backup() */
enum rc sqlite_backup(struct store *s, const struct store_backup *what,
    struct store_copied *copied, char *why, size_t size);

/* store_call_open(): lets the loop's thread look up without waiting, where that
 * can be. */
enum rc sqlite_call_open(struct store *s);

/* store_lookup(), if that needs no wait; else false. */
bool sqlite_glance(struct store *s, const struct store_identity *identity,
    struct record *key, struct store_inline_answer *small, enum rc *rc);

/* Begin store_admit_do(), of call->of.admission, and store_outcome_do(), for
 * bodies that are not stored in pieces.  True: done, with call->rc. */
bool sqlite_call_admit(struct store *s, struct store_call *call);
bool sqlite_call_outcome(
    struct store *s, struct store_call *call, struct outcome_change *o);

#endif
