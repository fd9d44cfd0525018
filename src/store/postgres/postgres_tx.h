/*
 * A transaction on PostgreSQL that writes, for code that has a connection: see
 * tx.h.
 */
#ifndef POSTGRES_TX_H
#define POSTGRES_TX_H

#include "postgres_impl.h"

struct postgres_tx {
	struct tx tx;
	struct pg *pg;
	bool writes, asked, timed; /* asked: for the time, which is .timed */
	/* The rows that are changed were read without a lock: RC_LOST if one is
	 * no longer as it was. */
	bool unlocked;
	int unread; /* results of one row each, or of one changed row */
	/* Numbers of keys that ERASE is to be told, with spaces: it takes as
	 * long for many as for one. */
	char erased[2000];
	size_t nerased;
};

void
postgres_tx_begin(struct postgres_tx *t, const struct store *s, struct pg *pg);

/* The time, which the transaction has not asked for itself. */
void postgres_tx_time(struct postgres_tx *t, int64_t now, int64_t clock);

/* Sends and reads what is left. */
enum rc postgres_tx_end(struct postgres_tx *t);

#endif
