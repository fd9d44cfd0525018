/*
 * All writes of a store go through the committer: one thread with the only
 * connection that writes.  The thread takes the write lock, runs all queued
 * writes one after the other, commits them together, and wakes their
 * callers.  Where syncs are slow it first waits a little for more writes.
 *
 * The failure of one write does not affect the others: a group that failed
 * is rolled back, and its writes are tried again singly.  A group has at
 * most one write that is WRITE_LARGE.
 */
#ifndef COMMITTER_H
#define COMMITTER_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db.h"
#include "loop.h"
#include "store_guard.h"
#include "share.h"
#include "tx.h"

/* --- writes --------------------------------------------------------------- */

/*
 * A write: a change of the database that the committer makes for a caller, in
 * a transaction together with other writes.  Each verb of the store embeds
 * struct write first in a struct of its own and sets run and flags; the rest
 * belongs to the committer.
 *
 *	struct claim_write {
 *		struct write w;
 *		... what the verb needs, and what it found out
 *	} claim = { .w = { .run = claim_run }, ... };
 *
 *	rc = committer_do(store->committer, &claim.w);
 *
 * What the struct points to belongs to the caller, which waits; or, after
 * committer_submit(), keeps it until it is told.
 */

/* Bytes that new keys leave free on a full disk, so that outcomes can be
 * written. */
#define WRITE_ROOM (256 * 1024)

/* --- flags: set by the verb before the write is queued -------------------- */

/* Begins something.  It is refused while the log is too long, or outcomes
 * cannot be recorded. */
#define WRITE_NEW 0x01

/* A request waits for it.  Nothing has run for the request, so it may be told
 * to come again. */
#define WRITE_REFUSABLE 0x02

/* It may write a large body, or a piece of one.  A transaction has one of them
 * at most. */
#define WRITE_LARGE 0x04

/*
 * Records an outcome, so the committer never gives it up.  After busy_timeout
 * its caller leaves it behind: then the committer owns it, and calls left()
 * when it is done.
 */
#define WRITE_FINISHES 0x08

/*
 * It can do without deleting what is stored beside a row.  A damaged page there
 * must keep no outcome from being recorded, and no key from its end: what is
 * left is found by doctor.
 */
#define WRITE_LEAVES 0x40

/* --- did: set by the committer -------------------------------------------- */

/* The disk had no room for it, before and after the log was truncated.  A write
 * that can do with less must now do so. */
#define WRITE_NO_ROOM 0x10

/* With WRITE_LEAVES: it failed with RC_CORRUPT, and must do without now. */
#define WRITE_DAMAGED 0x20

/* --- did: set by run(), about this run; cleared before each run: tx.did --- */

#define WRITE_DID (TX_ENDED | TX_WORK | TX_SYNC_FIRST | TX_AGAIN)

enum write_state { WRITE_QUEUED, WRITE_BEGUN, WRITE_DONE };

struct write {
	/*
	 * Makes the change in the open transaction; now is store time.  RC_OK;
	 * or RC_LOST: another process has changed the record first, which is a
	 * result too.  For any other value the transaction is rolled back.  So
	 * it is for RC_LOST, if the run has changed something.  After a
	 * rollback the write may be run again.
	 */
	enum rc (*run)(struct write *, struct db *, int64_t now);
	/* with WRITE_FINISHES: logs and frees a write whose caller has left */
	void (*left)(struct write *);
	unsigned flags; /* the verb's, constant while it is queued */
	int64_t since;  /* mono: its caller waits since then; 0: since now */

	/* the thread's alone, with what the runs and the committer have set */
	unsigned did;

	/* the committer's, under its lock */
	enum rc rc; /* of the last run */
	enum write_state state;
	bool is_left;
	bool late;         /* it counts as unrecorded */
	int64_t queued_at; /* mono: when it was queued last */
	int64_t retry_at, pause;
	/*
	 * How the caller is told, without the lock.  The thread sets told, then
	 * posts wake: a caller that sees either also sees all results of the
	 * run.  Or, after committer_submit(), it sends the message.
	 */
	atomic_bool told;
	sem_t wake;
	struct loop *loop; /* NULL: the caller waits */
	struct loop_message message;
	void *caller; /* of committer_submit(), for itself */
	struct write *next;
};

/* --- the committer -------------------------------------------------------- */

struct committer;

struct committer_options {
	struct db *db; /* db, share and guard stay the caller's */
	struct share *share;
	struct store_guard *guard;
	int news;             /* store_news() */
	int64_t shift;        /* store time is clock_boot() + shift */
	int64_t busy_timeout; /* ms */
	uint64_t max_wal;     /* bytes */
	bool distrusted;      /* a sync of the log has failed */
};

enum rc
committer_start(struct committer **out, const struct committer_options *o);

/* Runs the queued writes, tries outcomes that failed once more, gives up
 * the rest, and frees the committer. */
void committer_stop(struct committer *c);

/*
 * Queues a write and waits until it is durable, or has failed and will not
 * appear; returns what its run returned.  RC_BUSY: the lock was not free
 * within busy_timeout; or the write is WRITE_REFUSABLE, and the lock has not
 * been free for busy_timeout: then the call returns almost at once.
 * RC_REPLACED, RC_WENT_BACK: the database is not the one that was opened.  For
 * WRITE_NEW also RC_LIMIT: the write-ahead log is too long; and RC_UNRECORDED:
 * outcomes cannot be recorded.  RC_CLOSED: committer_stop() was called.
 *
 * An outcome is not given up: after busy_timeout the call returns RC_PENDING,
 * and the committer owns the write: see WRITE_FINISHES.
 */
enum rc committer_do(struct committer *c, struct write *w);

/*
 * The same for a loop, whose thread calls both functions.  RC_OK: w->message
 * will come, and w->rc is the result then.  *until is the time (mono) at which
 * committer_late() is to be called, if the message has not come.  Any other
 * value is the result at once.
 */
enum rc committer_submit(
    struct committer *c, struct write *w, struct loop *loop, int64_t *until);

/* True: the message still comes, and *until is the new time.  False: it does
 * not come, and *rc is the result: RC_BUSY, or RC_PENDING as above. */
bool committer_late(
    struct committer *c, struct write *w, int64_t *until, enum rc *rc);

/* The health of writing, from the results that callers got. */
struct committer_health {
	enum rc last; /* the last write */
	/*
	 * why there are no reservations: RC_LIMIT, the log is longer than
	 * max_wal; RC_FULL, the disk has no room to move the log into the
	 * database; RC_UNRECORDED, outcomes cannot be recorded; else RC_OK
	 */
	enum rc closed;
	unsigned unrecorded; /* outcomes that failed, or took too long */
	unsigned overdue;    /* of these: took longer than busy_timeout */
	bool locked;         /* another process holds the write lock, */
	bool distrusted;     /* or the log, which is to begin anew */
};
void committer_health(struct committer *c, struct committer_health *health);

#endif
