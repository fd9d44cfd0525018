/*
 * Recent keys: the last ones, which are in no index of owners or of age (see
 * once_meta in schema.sql).  A search for leases or for keys that end by age
 * reads their rows.
 */
#ifndef STORE_RECENT_H
#define STORE_RECENT_H

#include "db.h"
#include "write.h"

struct store;

/*
 * Lists keys that are no longer recent, if they are many, in the open
 * transaction.  newest: the highest number of a key; recent: that of once_meta.
 * RC_CORRUPT and RC_IO: perhaps a row cannot be read or changed.  Then SQLite
 * may have rolled back the transaction, and the caller must.
 */
enum rc store_recent_list(struct db *db, int64_t newest, int64_t recent);

/* The same; reads both numbers.  New keys do that too, but perhaps there is
 * none for long. */
enum rc store_recent_look(struct db *db);

/*
 * After a write or a search failed with rc: if a row that is recent may be the
 * cause, lists all keys, in transactions of its own, and passes over the rows
 * where that fails.  Returns whether the caller should try again.  No sweep
 * finds a row that was passed over; it is logged, and doctor reports it.
 */
bool store_recent_mend(struct store *store, enum rc rc);

/* committer_do() for a write that lists or searches recent keys; the second try
 * included. */
enum rc store_recent_do(struct store *store, struct write *w);

#endif
