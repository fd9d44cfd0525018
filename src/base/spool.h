/*
 * Bytes in memory up to LIMIT_SPOOL_MEMORY, then in an unlinked file of the
 * process's spool directory.  They are written once, from front to back, and
 * then read as often as needed.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"

struct spool;

/*
 * Sets the directory of the files that are made from now on (NULL:
 * spool_default_dir()), and the maximum of all spools together (bytes).  dir
 * is copied, so the caller may free its configuration.  RC_OK, or RC_NOMEM:
 * nothing has changed.  Before the first call the directory is the default one
 * and the bytes are unlimited.
 */
enum rc spool_setup(const char *dir, uint64_t total);

/* Whether all spools together may take that many bytes more.  spool_write()
 * does not check: the output of a running handler must be read to its end. */
bool spool_has_room(uint64_t more);

/* The maximum of all spools together (bytes). */
uint64_t spool_total(void);

/* NULL when there is no memory. */
struct spool *spool_new(void);
void spool_free(struct spool *s);

/* The bytes do not count for spool_has_room() any more: for a spool that is
 * freed later. */
void spool_uncount(struct spool *s);

/* RC_OK, RC_NOMEM, RC_FULL or RC_IO, with errno.  After a failure only
 * spool_free() may be called. */
enum rc spool_write(struct spool *s, const void *data, size_t n);

uint64_t spool_length(const struct spool *s);

/*
 * Returns all bytes, contiguous; valid until spool_free() or the next
 * spool_write().  NULL if there are none, or with *rc set if a file could not
 * be mapped.
 */
const void *spool_bytes(struct spool *s, enum rc *rc);

/* The file, or -1 while the bytes are in memory.  Its offset is not 0. */
int spool_fd(const struct spool *s);

/* The directory of the files that are made now. */
const char *spool_dir(void);

/* Whether that directory may be written; if not, why gets a few words. */
bool spool_is_usable(char *why, size_t size);

/* TMPDIR, or /tmp. */
const char *spool_default_dir(void);

#endif
