/*
 * Handlers that write the database of a running store themselves: the list of
 * them, gaps for them between this process's commits, and the process that
 * holds the write lock.
 */
#ifndef STORE_SHARE_H
#define STORE_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#include "store.h"

struct store_share {
	const char *file; /* the database; set before the committer starts */
	atomic_uint n;
	atomic_bool used;      /* n was ever more than 0 */
	pthread_mutex_t mutex; /* guards what follows */
	struct store_sharer *first;

	/* used by the committer's thread only */
	int64_t begun; /* mono: when it took the lock; 0: no sharers */
	pid_t holder;  /* the process that has the lock; 0: unknown */
	int64_t since; /* mono: when that was first seen; 0: never */
	bool reported;
};

void store_share_init(struct store_share *);
void store_share_free(struct store_share *);

/*
 * The committer calls these: when the write lock is contended; when it has
 * acquired the lock; and when it has released it, which sleeps if handlers
 * share the database.
 */
void store_share_blocked(struct store_share *);
void store_share_locked(struct store_share *);
void store_share_unlocked(struct store_share *);

#endif
