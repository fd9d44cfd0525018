/*
 * Bytes in memory up to LIMIT_SPOOL_MEMORY, then in an unlinked file of
 * spool_dir.  Written once, from front to back; then read as often as needed.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"

struct spool;

/* dir must outlive it.  NULL when there is no memory. */
struct spool *spool_new(const char *dir);
void spool_free(struct spool *);

/* RC_OK, RC_NOMEM, RC_FULL or RC_IO; after a failure only spool_free(). */
enum rc spool_write(struct spool *, const void *, size_t);

uint64_t spool_length(const struct spool *);

/*
 * All bytes, contiguous; valid until spool_free() or the next spool_write().
 * NULL if there are none, or with *rc set if a file could not be mapped.
 */
const void *spool_bytes(struct spool *, enum rc *rc);

/* The file, or -1 while the bytes are in memory.  Its offset is not 0. */
int spool_fd(const struct spool *);

/* TMPDIR, or /tmp. */
const char *spool_default_dir(void);

#endif
