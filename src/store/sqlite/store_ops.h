/*
 * The writes of the store: each an operation that the committer runs within
 * its transaction, together with others.
 *
 * An operation is whole in itself: what it needs it holds, and what it points
 * to belongs to a caller who waits for it.  Only a settlement may be left
 * behind by its caller; it owns all it has.
 *
 * Where the body of an answer is: up to STORE_INLINE bytes in the row of its
 * key, larger ones in once_piece, or once_body (see migrate-004.sql).
 */
#ifndef STORE_OPS_H
#define STORE_OPS_H

#include <semaphore.h>
#include <stdatomic.h>

#include "db.h"
#include "store_outbox.h"

/* Two pages or so: one commit, no more pages than a row apart would cost. */
#define STORE_INLINE 2048

/* Bodies of this size are written only where the disk has room. */
#define STORE_LARGE (64 * 1024)

/* Bytes of a large answer that are written in one transaction, which others
 * wait for. */
#define STORE_PIECE (128 * 1024)

/* Bytes that outcomes have left on a disk that is full but for them. */
#define STORE_ROOM (256 * 1024)

/* How headers are stored: as they are sent, or as lines that a handler wrote
 * (see migrate-003.sql). */
#define STORE_RESPONSE_VERSION 1
#define STORE_RESPONSE_LINES   2

/* Above this SQLite may refuse it for good: the key completes, and its answer
 * is not kept. */
#define STORE_MAX_BODY (768 * 1024 * 1024)

/* At most so many dead owners are dealt with in one transaction, or so many
 * bytes of large bodies are deleted: that takes some 5 ms. */
#define STORE_SWEEP_OWNERS 64
#define STORE_REAP_BYTES   (8 * 1024 * 1024)

/* An effect that was delivered takes as long as so many of these bytes. */
#define STORE_REAP_EFFECT 8192

/* A database with more free pages than this, and more than half of all, gives
 * some back to the file system at each reaping, for so many ms: to find the
 * place of one page took from 0.1 to 3 ms. */
#define STORE_FREE_PAGES 8192
#define STORE_FREE_TIME  2

enum op_kind {
	OP_RESERVE,
	OP_ACCEPT,
	OP_START,
	OP_SETTLE,
	OP_SWEEP,
	OP_REAP,
	OP_CLAIM,
	OP_FORGET,
	OP_TOPICS,
	OP_EFFECT,
	OP_CLOCK
};

struct op_reserve {
	const struct store_reservation *what;
	int64_t owner;
	struct store_lease *lease; /* token and a new downstream filled in */
	enum decision decision;
	struct record found;
};

struct op_accept {
	const struct store_reservation *what;
	unsigned max_queue;
	struct store_ticket *ticket;
	enum decision decision;
	struct record found;
};

struct op_start {
	const struct store_job *job;
	const struct store_reservation *what;
	int64_t owner;
	struct store_lease *lease;
};

struct op_settle {
	struct store_settlement settlement;
	int64_t expires_at;
	/* of the body: in the database, and as the last run would have it */
	size_t stored, written;
	bool more; /* the last run has written a piece, and was not all */
};

struct op_sweep {
	const struct liveness *liveness;
	const char *database;
	/* since the owners are dead; NULL: it cannot be told who lives */
	const struct process_list *processes;
	int64_t only; /* one key; 0: all */
	const int64_t *dead;
	size_t ndead;
	int limit, n;
	struct store_change *changes; /* room for limit */
	bool sealed;
	int effects; /* that are due again */
};

struct op_reap {
	int limit, n;
	struct store_change *changes; /* room for limit */
};

struct op_claim {
	int64_t id, after;
	struct store_tries tries;
	bool count;
};

struct op_forget {
	int64_t id;
};

struct op_topics {
	char *const *add, *const *drop;
	size_t nadd, ndrop;
	const struct liveness *liveness; /* if alone, all others go */
};

enum op_effect_verb {
	OP_EFFECT_BEGIN,
	OP_EFFECT_END,
	OP_EFFECT_RETRY,
	OP_EFFECT_DROP
};

struct op_effect {
	enum op_effect_verb verb;
	int64_t id;
	/* BEGIN, END: of the try */
	int64_t key_id, owner;
	int attempts; /* BEGIN: before it */
	const struct store_effect_end *end;
};

struct op_clock {
	int64_t grain; /* ms: not if it was done less than that ago */
	bool touch;    /* only to have made a commit */
	bool harden;   /* and to make durable what others have committed */
};

enum op_stage { OP_QUEUED, OP_BEGUN, OP_DONE };

struct op {
	enum op_kind kind;
	enum rc rc; /* once done */
	union {
		struct op_reserve reserve;
		struct op_accept accept;
		struct op_start start;
		struct op_settle settle;
		struct op_sweep sweep;
		struct op_reap reap;
		struct op_claim claim;
		struct op_forget forget;
		struct op_topics topics;
		struct op_effect effect;
		struct op_clock clock;
	};
	/* the committer's, under its lock */
	enum op_stage stage;
	bool left; /* its caller is gone: free it when done */
	bool late; /* a settlement that counts as unrecorded */
	int64_t retry_at, pause;
	/* told is set, then wake is posted, without the lock: who waits finds
	 * all that the run left in the operation. */
	atomic_bool told;
	sem_t wake;
	struct op *next;
};

void store_op_init(struct op *, enum op_kind);

/* What it owns, and what a run of it left behind; not itself. */
void store_op_release(struct op *);

/*
 * Runs it within the transaction that is open; now is store time.  RC_OK, or
 * RC_LOST: a settlement whose lease is gone, which is an answer too.  Anything
 * else: the transaction must be rolled back.  May be run again after that.
 */
enum rc store_op_run(struct op *, struct db *, int64_t now);

/* Whether it is written alone; or writes a piece of a large answer, of which
 * there is one in a transaction. */
bool store_op_is_large(const struct op *);
bool store_op_is_piece(const struct op *);

/* Whether a run that was committed was not all of it: it is to be run again. */
bool store_op_goes_on(struct op *);

/* Whether it begins something: not while the log is too long, or outcomes
 * cannot be recorded. */
bool store_op_is_new(const struct op *);

/* Whether a request waits for it, holding a worker; and whether that request
 * may be told to come again, as nothing has run for it. */
bool store_op_holds_request(const struct op *);
bool store_op_may_be_refused(const struct op *);

/* There was twice no room for a settlement, before and after the log was cut:
 * its answer is not kept, unless it is so small that this would gain nothing.
 * The key is safe without it, and its caller gets the answer.  Whether it did.
 */
bool store_op_drop_answer(struct op *);

/* Whether its commit is to make durable what others have committed, too. */
bool store_op_hardens(const struct op *);

/* Whether it changed what store_wait() waits for, or what store_wait_work()
 * does, besides what a handler may have said before its settlement. */
bool store_op_has_settled(const struct op *);
bool store_op_makes_work(const struct op *);

/* --- what the files of the store share ---------------------------------- */

/* RC_OK, RC_NOTFOUND, or why it cannot be read.  lease and small, see
 * store_look(), may be NULL. */
enum rc store_ops_find(struct db *, const struct store_identity *,
    struct record *, struct store_lease *, struct store_small *);

/* The answer that a row of QUERY_FIND holds, if it is small; if it makes no
 * sense, store_answer() will say so. */
void store_read_small(struct db_stmt *, int status, struct store_small *);

/* The operations themselves, within a transaction, as store_op_run(). */
enum rc store_ops_reserve(struct op_reserve *, struct db *, int64_t now);
enum rc store_ops_accept(struct op_accept *, struct db *, int64_t now);
enum rc store_ops_start(const struct op_start *, struct db *, int64_t now);
enum rc store_ops_settle(struct op_settle *, struct db *, int64_t now);
enum rc store_ops_sweep(struct op_sweep *, struct db *, int64_t now);
enum rc store_ops_reap(struct op_reap *, struct db *, int64_t now);
enum rc store_ops_claim(struct op_claim *, struct db *, int64_t now);
enum rc store_ops_forget(const struct op_forget *, struct db *);
enum rc store_ops_topics(const struct op_topics *, struct db *);
enum rc store_ops_effect(const struct op_effect *, struct db *, int64_t now);
enum rc store_ops_clock(const struct op_clock *, struct db *, int64_t now);

/* Settles that attempt as unknown; RC_LOST if it has no lease. */
enum rc store_ops_unknown(struct db *, int64_t id, const char *token,
    const char *last_error, int64_t now);

/*
 * Ends the lease of an attempt that has answered itself; its answer stands
 * until *expires_at.  RC_LOST: it has not, or has no lease.
 */
enum rc store_ops_seal(struct db *, int64_t id, const char *token, int64_t now,
    int64_t *expires_at);

/* RC_FULL: a body of that size must not even be begun with. */
enum rc store_ops_room(struct db *, size_t body);

/* Deletes a key past its retention, which is in state from, its body, and its
 * request. */
enum rc store_ops_delete_past(
    struct db *, int64_t id, enum record_state from, int64_t now);

/* Deletes what is kept with a key: the body, the request, the effects that
 * were delivered; or one of these. */
enum rc store_ops_delete_kept(struct db *, int64_t id);
enum rc store_ops_delete_pieces(struct db *, int64_t id);
enum rc store_ops_delete_request(struct db *, int64_t id);

/* Bytes of all requests that are kept, of the one kept with that key (0: none
 * is), and a change of the first number. */
enum rc store_ops_kept(struct db *, int64_t *bytes);
enum rc store_ops_kept_with(struct db *, int64_t id, int64_t *bytes);
enum rc store_ops_add_kept(struct db *, int64_t bytes);

/* Effects that a dead owner was trying are due again; adds their number. */
enum rc store_ops_free_effects(struct db *, int64_t owner, int64_t now, int *n);

/* Of a released key: the request, unless a worker will need it. */
enum rc store_ops_released(struct db *, int64_t id);

/* Steps a statement that changes one row; if it changed none, lost. */
enum rc store_ops_change_one(struct db_stmt *, enum rc lost);

/* The same for a change of state, which record.c's table must allow;
 * RC_INVALID: it does not.  RECORD_NONE is what is before an insertion, and
 * after a deletion. */
enum rc store_ops_change_state(struct db_stmt *, enum record_state from,
    enum record_state to, enum rc lost);

/* The record of a row whose columns are those of QUERY_FIND; lease may be NULL.
 * RC_CORRUPT: it makes no sense. */
enum rc
store_ops_read_record(struct db_stmt *, struct record *, struct store_lease *);

/* A text of a row into a field of fixed size; false if it does not fit. */
bool store_ops_copy(struct db_stmt *, int, char *out, size_t size);

/* 32 hexadecimal digits, for a token or a resource. */
bool store_ops_token(char out[RECORD_TOKEN_LEN + 1]);
_Static_assert(RECORD_RESOURCE_LEN == RECORD_TOKEN_LEN, "both are random");

#endif
