/*
 * Private to the txn files.
 */
#ifndef TXN_IMPL_H
#define TXN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lock.h"
#include "txn.h"

/* What a wait for the server gets on top of busy_timeout (ms), so that the
 * server, which ends a wait for a lock after busy_timeout, can say so. */
#define TXN_GRACE 1000

/* A slot that has no row in once_session yet; and the place of the process's
 * own row. */
#define TXN_NO_ROW  (-1)
#define TXN_PROCESS (-1)

/* Only the thread that has taken the slot uses it, but for .taken, which the
 * lock guards, and .seq, which all threads read. */
struct txn_slot {
	int number;
	bool taken;
	struct pg *pg;    /* NULL: not connected */
	int64_t timeline; /* of its server, when it was connected */
	/* the last transaction that a COMMIT has confirmed */
	_Atomic int64_t seq;
	/* the COMMIT of the one after it was sent, and its outcome is not
	 * known */
	atomic_bool pending;
};

/* Operations that wait for a group; under the pool's lock. */
struct txn_queue {
	struct txn_op *first, *last;
	int waiting;      /* in that list */
	int groups, most; /* that are under way, and may be at a time */
	int64_t took;     /* by the last one (ms) */
};

struct txn_pool {
	struct pg_target *target;
	int64_t busy_timeout;
	int64_t owner;         /* 0: none yet */
	_Atomic int64_t epoch; /* the transaction that made its row; 0: none */
	_Atomic int64_t table; /* the server's number of the row's table */
	atomic_bool reached;   /* there was a connection */
	atomic_bool connected, went_back;
	_Atomic int64_t timeline; /* the newest one of a server; 0: none */
	/* of the server that has the store; 0: not known */
	_Atomic int64_t cluster;
	char schema[TXN_NAME_SIZE]; /* see txn_pin(); "": not known yet */
	unsigned char secret[SCOPE_SECRET_LEN];
	bool compares;     /* connections must have that secret */
	atomic_bool other; /* the newest one has not */
	bool durable;
	_Atomic(const char *) unsafe; /* txn_unsafe() */
	atomic_uint open;             /* connections */
	struct lock lock;
	char message[512]; /* of the last failure; under the lock */
	pthread_cond_t given;
	struct txn_queue writes, looks;
	int nslots;
	struct txn_slot slot[];
};

/* Makes a new connection one to the pinned store; else it fails, and
 * pg_message() tells why. */
enum rc txn_session_begin(struct txn_pool *pool, struct pg *pg);

/* Takes a free slot; RC_BUSY: there was none until that reading of
 * clock_mono() (ms). */
enum rc
txn_slot_take(struct txn_pool *pool, int64_t until, struct txn_slot **out);
void txn_slot_give(struct txn_pool *pool, struct txn_slot *s);

/* Makes the slot's connection ready for a transaction; connects again and
 * again until then.  A session, if wanted, gets its row. */
enum rc txn_slot_ready(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool session);

/* Before the statements of a read: they fail if the store went back. */
void txn_slot_check(const struct txn_pool *pool, struct pg *pg);

/* Before the COMMIT of a write: it fails if the names have come to stand for
 * another store's tables meanwhile. */
void txn_slot_stays(const struct txn_pool *pool, struct pg *pg);

/* After a failure PG_WENT_BACK: RC_WENT_BACK, from now on. */
enum rc txn_slot_went_back(struct txn_pool *pool, const struct txn_slot *s);

/* Finds out what has become of a COMMIT whose outcome is not known.  If it
 * fails, the slot is still pending, or the store went back. */
enum rc txn_slot_settle(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool *took_place);

/* After a lost connection: whether the COMMIT that was sent took place.
 * RC_PENDING: that is not known. */
enum rc txn_slot_look_up(
    struct txn_pool *pool, struct txn_slot *s, int64_t until, bool *done);

void txn_slot_disconnect(struct txn_pool *pool, struct txn_slot *s);

/* The same for a connection that has failed: txn_message() tells why.  The pool
 * is not locked. */
void txn_slot_fail(struct txn_pool *pool, struct txn_slot *s);

/* A transaction, of one caller or of a group. */
struct txn_call {
	enum txn_kind kind;
	txn_body *body;
	void *arg;
	int64_t until; /* a reading of clock_mono() (ms) */
	/* of a group, which is tried once.  If it writes, its body sends the
	 * COMMIT along, and reads the result of SESSION_SHARE first */
	bool shared;
	int64_t took; /* once it had a slot (ms) */
};

/* Runs it on a slot of the pool: see txn_run().  *how: what has become of it,
 * if it is shared; TXN_SHARED_DONE is RC_OK. */
enum rc
txn_call_run(struct txn_pool *pool, struct txn_call *c, enum txn_shared *how);

#endif
