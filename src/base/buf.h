/*
 * Bounded bytes.  No buffer without a maximum: an append that would exceed it
 * fails and leaves the buffer as it was.  The bytes are always followed by a
 * NUL that is not counted, so that text can be used as a C string.
 *
 * A struct buf is plain data: read .data and .len, change them only here.
 * .data is never NULL after buf_init(), and moves when the buffer grows.
 */
#ifndef BUF_H
#define BUF_H

#include <stddef.h>

#include "rc.h"

struct buf {
	char *data;
	size_t len;
	size_t cap; /* bytes allocated, 0 while .data is static */
	size_t max; /* .len never exceeds this */
};

/* An empty buffer of at most max bytes; allocates nothing, cannot fail. */
void buf_init(struct buf *, size_t max);

/* Frees the bytes and leaves an empty buffer with the same maximum. */
void buf_free(struct buf *);

/* Forgets the bytes, keeps the memory. */
void buf_clear(struct buf *);

/* RC_OK, RC_LIMIT or RC_NOMEM; on failure the buffer is unchanged.  What is
 * added may not lie in the buffer itself. */
enum rc buf_add(struct buf *, const void *, size_t);
enum rc buf_addc(struct buf *, char);
enum rc buf_adds(struct buf *, const char *);
enum rc
buf_addf(struct buf *, const char *, ...) __attribute__((format(printf, 2, 3)));

/* Room for n more bytes at .data + .len, for a caller that reads into it. */
enum rc buf_reserve(struct buf *, size_t n);

/* Counts n bytes, put into reserved room, as part of the buffer. */
void buf_commit(struct buf *, size_t n);

/* Drops the first n bytes; n <= .len. */
void buf_consume(struct buf *, size_t n);

/* Shortens to n bytes; n <= .len. */
void buf_truncate(struct buf *, size_t n);

#endif
