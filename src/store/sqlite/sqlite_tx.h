/*
 * A transaction on SQLite, for code that has a connection: see tx.h.
 */
#ifndef SQLITE_TX_H
#define SQLITE_TX_H

#include "db.h"
#include "tx.h"

/* Statements that wait for tx_result(), at most. */
#define SQLITE_TX_QUEUE 8

struct sqlite_tx {
	struct tx tx;
	struct db *db;
	struct db_stmt *queue[SQLITE_TX_QUEUE], *now;
	unsigned first, n;
	bool marked; /* the highest number of a key is noted */
};

/* In the open transaction of db; now: store time, of one that writes. */
void sqlite_tx_begin(struct sqlite_tx *t, struct db *db, int64_t now);

/* Ends the statement that was read last, not the transaction. */
void sqlite_tx_end(struct sqlite_tx *t);

/* What it did, as flags of struct write. */
unsigned sqlite_tx_did(const struct sqlite_tx *t);

#endif
