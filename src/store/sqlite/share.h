/*
 * Handlers that write the database of a running store themselves: gaps for them
 * between this process's commits, and the process that holds the write lock.
 */
#ifndef SHARE_H
#define SHARE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

struct store_base;

/* Used by the committer's thread only. */
struct share {
	const struct store_base *base; /* set before the committer starts */
	int64_t begun; /* mono: when it took the lock; 0: no sharers */
	pid_t holder;  /* the process that has the lock; 0: unknown */
	int64_t since; /* mono: when that was first seen; 0: never */
	bool reported;
};

/*
 * The committer calls these: when the write lock is contended; when it has
 * acquired the lock; and when it has released it, which sleeps if handlers
 * share the database.
 */
void share_blocked(struct share *share);
void share_locked(struct share *share);
void share_unlocked(struct share *share);

#endif
