/*
 * A transaction of a store, for the code that all stores share.  It knows
 * statements by the names that they have in the queries.sql of each store, and
 * writes parameters and columns by letters: those of db_bindf() and pg_send(),
 * db_rowf() and pg_row(), which are the same.
 */
#ifndef TX_H
#define TX_H

#include <stdarg.h>

#include "record.h"
#include "row_member.h"
#include "step.h"
#include "store_outbox.h"
#include "tx_table.h"

/* Statements by the names that each store has.  Those that are sent here have
 * the same parameters and columns in each. */
enum tx_query {
#define X(name) TX_##name,
	TX_QUERIES(X)
#undef X
};

struct tx;

/* The statements of a transaction.  May be called several times, each time for
 * a transaction that begins anew, so it initialises its results itself. */
typedef enum rc tx_body(struct tx *, void *arg);

/*
 * Queues a statement.  The parameters live until its result is read.  The same
 * statement is not queued twice before that.  Failures are those of
 * tx_result().
 */
void tx_send(struct tx *tx, enum tx_query q, const char *format, ...);

/* Goes to the result of the next statement, in the order of tx_send(). */
enum rc tx_result(struct tx *tx);

/* Goes to the next row of the result.  RC_NOTFOUND: there is none. */
enum rc tx_next(struct tx *tx);

/* Goes to the next row, and reads all its columns.  Pointers into the row live
 * until the next row or result. */
enum rc tx_row(struct tx *tx, const char *format, ...);

/* tx_result() and tx_row(). */
enum rc tx_one(struct tx *tx, const char *format, ...);

/* Reads the columns with the members' names from the current row. */
enum rc tx_members(
    struct tx *tx, const struct row_member *members, size_t n, void *out);

/*
 * Goes to the next sound row with the columns $row, or $effect, and reads it;
 * skips the others: see rows_bad().  The caller frees *r or *e.  RC_NOTFOUND:
 * there is none.
 */
enum rc tx_record(struct tx *tx, struct record *r);
enum rc tx_effect(struct tx *tx, struct effect *e);

/* The same for the current row, which may make no sense: RC_CORRUPT, and only
 * the number is set. */
enum rc tx_this_record(struct tx *tx, struct record *r);
enum rc tx_this_effect(struct tx *tx, struct effect *e);

/* How a transaction is run: as one that reads, and sees one state of the store;
 * or, without that promise, for one lookup; or as one that writes. */
#define TX_READ  0x1
#define TX_LOOK  0x2
#define TX_WRITE 0x4
/* What one that writes does besides. */
#define TX_BEGINS   0x10 /* something: not while the store is stuck */
#define TX_SEARCHES 0x20 /* all keys, for leases or by their age */
/* Leaves nothing where a page is damaged: RC_CORRUPT. */
#define TX_WHOLE 0x40
/* A request waits for it, and nothing has run: SQLite's WRITE_REFUSABLE. */
#define TX_REFUSABLE 0x80

/* --- transactions that write ---------------------------------------------- */

/* What a transaction has done, in tx->did. */
#define TX_ENDED 0x1 /* a key is no longer in progress */
#define TX_WORK  0x2 /* there is work: store_news() */
/* It depends on what a handler has committed: that must be durable before this
 * transaction is. */
#define TX_SYNC_FIRST 0x4
/* It has begun an attempt of a key that was there.  An earlier copy of the
 * store would not lack that key, but begin the attempt again. */
#define TX_AGAIN 0x8

/* tx_result() of a statement that changes rows; *n is their number. */
enum rc tx_changed(struct tx *tx, int *n);

/* The same for one that changes one row.  RC_CORRUPT: it did not; but if it
 * changed none, lost. */
enum rc tx_change_one(struct tx *tx, enum rc lost);

/* The same for a row that this transaction has locked: RC_CORRUPT if it was not
 * changed, at once or later, so that many such statements need not be waited
 * for one by one.  The results of all statements before it have been read. */
enum rc tx_must_change(struct tx *tx);

/* What is stored beside the row of a key, or of an effect. */
enum tx_beside { TX_REQUEST, TX_ALL, TX_PAYLOAD };

/* The number of the pieces of an effect's payload: see once_piece. */
#define TX_PAYLOAD_PIECES(effect) (RECORD_ID_MAX + (effect))

/* Reads a body of that length (bytes): what is in the row, or else the pieces
 * of that number.  *body is NULL if it is empty. */
enum rc tx_body_read(struct tx *tx, const struct row_bytes *row, int64_t number,
    int64_t length, struct spool **body);

struct outcome_change;
struct store_admit;

/* What a store does for them; see above. */
struct tx_ops {
	void (*send)(
	    struct tx *, enum tx_query, const char *format, va_list *ap);
	enum rc (*result)(struct tx *);
	enum rc (*next)(struct tx *);
	enum rc (*row)(struct tx *, const char *format, va_list *ap);
	enum rc (*members)(
	    struct tx *, const struct row_member *members, size_t n, void *out);
	enum rc (*changed)(struct tx *, int *n);
	enum rc (*must_change)(struct tx *);
	/* The number of the spec of a fingerprint, which gets one. */
	enum rc (*spec)(struct tx *, const char *spec, int64_t *number);
	/* Deletes that.  Its failure may be that of a later result.  Statements
	 * before it are left to tx_must_change(), or their results are read.
	 * state: a request is deleted only if that is what its key was changed
	 * to. */
	enum rc (*erase)(struct tx *, int64_t id, enum tx_beside what,
	    enum record_state state);
	/* Stores the body of that answer, if it does not go into the row, or
	 * deletes what was stored of it before; drop: in any case. */
	enum rc (*body)(struct tx *, struct outcome_change *o, bool drop);
	/* Stores the request for the key of that number, in the transaction
	 * that has admitted it.  The other one comes before that, and may set
	 * p->part, or is NULL. */
	enum rc (*request)(struct tx *, struct store_admit *p, int64_t id);
	enum rc (*request_part)(struct tx *, struct store_admit *p);
	/* RC_LOST: an owner that is suspected has moved since that beat.  NULL
	 * in a store of one host. */
	enum rc (*owner_still)(struct tx *, int64_t owner, int64_t beat);
};

struct tx {
	const struct tx_ops *ops;
	const char *database; /* its name, for the log */
	/* The time; where the server tells it, it is 0 until a transaction that
	 * writes has read a result. */
	struct step_time at;
	/* What a transaction that writes did. */
	unsigned did;
};

#endif
