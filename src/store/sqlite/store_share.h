/*
 * Handlers that write the database of a running store themselves: who they
 * are, gaps for them between our own commits, and who holds the write lock.
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

	/* the committer's thread alone */
	int64_t begun; /* mono: since when it has the lock; 0: nobody shares */
	pid_t holder;  /* who has it instead, as of the last look; 0: unknown */
	int64_t since; /* mono: of the first look that saw him; 0: nobody has */
	bool reported;
};

void store_share_init(struct store_share *);
void store_share_free(struct store_share *);

/* For the committer.  The lock could not be had for a while; it is ours; it
 * was ours, and is no longer: here, if anybody shares, a pause is made. */
void store_share_blocked(struct store_share *);
void store_share_locked(struct store_share *);
void store_share_unlocked(struct store_share *);

#endif
