/*
 * The writes of the store.  Each write is an operation that the committer runs
 * within its transaction, together with others.
 *
 * An operation holds what it needs.  What it points to belongs to a caller that
 * waits for it.  Only a settlement may be left behind by its caller, so a
 * settlement owns all its memory.
 *
 * The body of a response is in the row of its key up to STORE_INLINE bytes.
 * Larger ones are in once_piece, or in once_body (see schema.sql).
 */
#ifndef STORE_OPS_H
#define STORE_OPS_H

#include <semaphore.h>
#include <stdatomic.h>

#include "db.h"
#include "store_outbox.h"

/* About two pages (bytes): one commit then writes no more pages than it would
 * for a separate row. */
#define STORE_INLINE 2048

/* A body of this size (bytes) is written only if the disk has room. */
#define STORE_LARGE (64 * 1024)

/* Bytes of a large response written in one transaction.  Other operations wait
 * for that transaction. */
#define STORE_PIECE (128 * 1024)

/* Bytes that new keys leave free on a full disk, so that outcomes can be
 * written. */
#define STORE_ROOM (256 * 1024)

/* How headers are stored: as they are sent, or as the lines that a handler
 * wrote (see schema.sql). */
#define STORE_RESPONSE_VERSION 1
#define STORE_RESPONSE_LINES   2

/* SQLite may refuse a larger body (bytes) for good: the key then completes
 * without a stored response. */
#define STORE_MAX_BODY (768 * 1024 * 1024)

/* Upper limits for one transaction: dead owners recovered, and bytes of large
 * bodies deleted.  Either takes some 5 ms. */
#define STORE_SWEEP_OWNERS 64
#define STORE_REAP_BYTES   (8 * 1024 * 1024)

/* Rows that make no sense, or have to wait, and that one transaction skips:
 * their number must not decide how long it takes. */
#define STORE_BAD_ROWS 1000

/* Deleting a delivered effect takes as long as this many of those bytes. */
#define STORE_REAP_EFFECT 8192

/*
 * A database with more free pages than this, and more than half of all, gives
 * some of them back to the file system at each reaping, for this long (ms):
 * finding the place of one page took from 0.1 to 3 ms.
 */
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
	/* bytes of the body: committed; including the last run */
	size_t stored, written;
	bool more; /* the last run wrote a piece, and more are left */
};

struct op_sweep {
	const struct liveness *liveness;
	const char *database;
	/* read after the owners died; NULL: it is not known which processes
	 * live */
	const struct process_list *processes;
	int64_t only; /* one attempt; 0: all */
	const int64_t *dead;
	size_t ndead;
	size_t from; /* begins at dead[from], after that row */
	int64_t from_id;
	size_t at; /* ended at dead[at], after that row; ndead: at the end */
	int64_t after;
	int limit, n;
	struct store_change *changes; /* room for limit */
	bool sealed;
	int effects; /* number freed, and due again */
};

/* A key's place in the index of keys that end by age. */
struct store_place {
	bool is; /* false: before the first key */
	int64_t expires_at, id;
	enum record_state state;
};

struct op_reap {
	struct store_place after; /* begins after this row */
	int limit, n;
	struct store_change *changes; /* room for limit */
	int bad;                      /* number of rows that were skipped */
	bool more;                    /* it ended at the limit of bad rows */
	struct store_place last;      /* the last row that was read */
};

/* Binds the parameters ?3 to ?5 of QUERY_REAP_ROWS and QUERY_REAP_AHEAD. */
void store_ops_bind_place(struct db_stmt *, const struct store_place *);

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
	const struct liveness *liveness; /* if alone, the others go */
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
	/* BEGIN, END: those of the try */
	int64_t key_id, owner;
	int attempts; /* BEGIN: tries before this one */
	const struct store_effect_end *end;
};

struct op_clock {
	int64_t grain; /* ms: skipped if it was done less than that ago */
	bool touch;    /* only to make a commit */
	bool harden;   /* also makes others' commits durable */
};

enum op_stage { OP_QUEUED, OP_BEGUN, OP_DONE };

struct op {
	enum op_kind kind;
	enum rc rc; /* set when done */
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
	bool left; /* its caller has left: free it when done */
	bool late; /* a settlement that counts as unrecorded */
	int64_t retry_at, pause;
	/*
	 * The thread sets told, then posts wake, without the lock: a caller
	 * that sees either also sees all results of the run in the operation.
	 */
	atomic_bool told;
	sem_t wake;
	struct op *next;
};

void store_op_init(struct op *, enum op_kind);

/* Frees what the operation owns, and what its runs left in it; not the
 * operation itself. */
void store_op_release(struct op *);

/*
 * Runs the operation in the open transaction; now is store time.  RC_OK; or
 * RC_LOST: a settlement without its lease, which is a result too.  For any
 * other value the transaction must be rolled back; the operation may be run
 * again after that.
 */
enum rc store_op_run(struct op *, struct db *, int64_t now);

/* Whether the operation is written alone; or whether it writes a piece of a
 * large response, of which a transaction has one at most. */
bool store_op_is_large(const struct op *);
bool store_op_is_piece(const struct op *);

/* Whether a committed run was not the last one: run the operation again. */
bool store_op_goes_on(struct op *);

/* Whether the operation begins something new.  Such operations are refused
 * while the log is too long, or outcomes cannot be recorded. */
bool store_op_is_new(const struct op *);

/* Whether a request waits for the operation and holds a worker, and may be told
 * to come again, because nothing has run for it. */
bool store_op_holds_request(const struct op *);
bool store_op_may_be_refused(const struct op *);

/*
 * Called when a settlement found no room twice, before and after the log was
 * truncated: drops its response, unless that is so small that this would gain
 * nothing.  The key is safe without it, and the caller gets the response.
 * Returns whether it was dropped.
 */
bool store_op_drop_answer(struct op *);

/* Whether its commit must also make durable what other connections have
 * committed. */
bool store_op_hardens(const struct op *);

/* Whether it changed something that store_wait(), or store_wait_work(), waits
 * for.  The second leaves out what a handler wrote before its settlement. */
bool store_op_has_settled(const struct op *);
bool store_op_makes_work(const struct op *);

/* --- what the files of the store share ---------------------------------- */

/* RC_OK, RC_NOTFOUND, or the reason why the record cannot be read.  lease, and
 * small (see store_look()), may be NULL. */
enum rc store_ops_find(struct db *, const struct store_identity *,
    struct record *, struct store_lease *, struct store_small *);

/* The response in a row of QUERY_FIND, if it is small.  If it makes no sense,
 * store_answer() will say so. */
void store_read_small(struct db_stmt *, int status, struct store_small *);

/* The operations themselves, within a transaction, like store_op_run(). */
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
 * Ends the lease of an attempt that has stored its own response, which stands
 * until *expires_at.  RC_LOST: it has not, or has no lease.
 */
enum rc store_ops_seal(struct db *, int64_t id, const char *token, int64_t now,
    int64_t *expires_at);

/* RC_FULL: the disk has no room for a body of that size. */
enum rc store_ops_room(struct db *, size_t body);

/* Deletes a key in state `from` that is past its retention, its body, and its
 * request. */
enum rc store_ops_delete_past(
    struct db *, int64_t id, enum record_state from, int64_t now);

/* Deletes what is stored with a key: the body, the request, the delivered
 * effects; or one of these. */
enum rc store_ops_delete_kept(struct db *, int64_t id);
enum rc store_ops_delete_pieces(struct db *, int64_t id);
enum rc store_ops_delete_request(struct db *, int64_t id);

/* Bytes of all stored requests; bytes of the request of that key (0: none); and
 * a change of the first number. */
enum rc store_ops_kept(struct db *, int64_t *bytes);
enum rc store_ops_kept_with(struct db *, int64_t id, int64_t *bytes);
enum rc store_ops_add_kept(struct db *, int64_t bytes);

/* Makes the effects that a dead owner was trying due again, and adds their
 * number. */
enum rc store_ops_free_effects(struct db *, int64_t owner, int64_t now, int *n);

/* For a released key: deletes the request, unless a worker will need it. */
enum rc store_ops_released(struct db *, int64_t id);

/* Steps a statement that changes one row; returns lost if it changed none. */
enum rc store_ops_change_one(struct db_stmt *, enum rc lost);

/*
 * The same for a change of state, which record.c's table must allow;
 * RC_INVALID: it does not.  RECORD_NONE is the state before an insertion, and
 * after a deletion.
 */
enum rc store_ops_change_state(struct db_stmt *, enum record_state from,
    enum record_state to, enum rc lost);

/* Reads the record from a row with the columns of QUERY_FIND; lease may be
 * NULL.  RC_CORRUPT: the row makes no sense. */
enum rc
store_ops_read_record(struct db_stmt *, struct record *, struct store_lease *);

/* Copies a text of a row into a field of fixed size; false if it is too
 * long. */
bool store_ops_copy(struct db_stmt *, int, char *out, size_t size);

/* Makes 32 random hexadecimal digits, for a token or a resource. */
bool store_ops_token(char out[RECORD_TOKEN_LEN + 1]);
_Static_assert(RECORD_RESOURCE_LEN == RECORD_TOKEN_LEN, "both are random");

#endif
