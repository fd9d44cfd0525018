/*
 * Handlers that write the database of a running store themselves: the list of
 * them, gaps for them between this process's commits, and the process that
 * holds the write lock.
 */
#ifndef SHARE_H
#define SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock.h"
#include "store.h"

struct share {
	const char *file; /* the database; set before the committer starts */
	atomic_uint n;
	atomic_bool used;  /* n was ever more than 0 */
	struct lock *lock; /* guards what follows */
	struct store_sharer *first;

	/* used by the committer's thread only */
	int64_t begun; /* mono: when it took the lock; 0: no sharers */
	pid_t holder;  /* the process that has the lock; 0: unknown */
	int64_t since; /* mono: when that was first seen; 0: never */
	bool reported;
};

/* The lock stays the caller's. */
void share_init(struct share *share, struct lock *lock);

/* A handler begins to share the database, and ends: see store_share_begin(). */
void share_add(struct share *share, struct store_sharer *sharer);
void share_remove(struct share *share, struct store_sharer *sharer);

/*
 * The committer calls these: when the write lock is contended; when it has
 * acquired the lock; and when it has released it, which sleeps if handlers
 * share the database.
 */
void share_blocked(struct share *share);
void share_locked(struct share *share);
void share_unlocked(struct share *share);

#endif
