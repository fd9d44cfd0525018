/*
 * Bounded bytes.  Every buffer has a maximum: an append that would exceed it
 * fails and leaves the buffer unchanged.  So does each append after that, until
 * the buffer is cleared, truncated or freed: a caller may check the last one
 * alone.  A NUL that is not counted always follows the bytes, so text can be
 * used as a C string.
 *
 * A struct buf is plain data: callers read .data and .len, and change them
 * only by these functions.  .data is never NULL after buf_init(), and moves
 * when the buffer grows.
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
	enum rc rc; /* RC_OK, or the first failure of buf_add*() */
};

/* Makes an empty buffer of at most max bytes.  Allocates nothing and cannot
 * fail. */
void buf_init(struct buf *b, size_t max);

/* Frees the bytes and leaves an empty buffer with the same maximum. */
void buf_free(struct buf *b);

/* Forgets the bytes, keeps the memory. */
void buf_clear(struct buf *b);

/* Each returns .rc: RC_OK, RC_LIMIT or RC_NOMEM.  The appended bytes must not
 * lie in the buffer itself. */
enum rc buf_add(struct buf *b, const void *bytes, size_t n);
enum rc buf_addc(struct buf *b, char c);
enum rc buf_adds(struct buf *b, const char *s);
enum rc buf_addf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes room for n more bytes at .data + .len, for a caller that reads into
 * it.  RC_OK, RC_LIMIT or RC_NOMEM. */
enum rc buf_reserve(struct buf *b, size_t n);

/* Adds n bytes, which the caller has put into reserved room, to .len. */
void buf_commit(struct buf *b, size_t n);

/* Drops the first n bytes; n <= .len. */
void buf_consume(struct buf *b, size_t n);

/* Shortens the buffer to n bytes; n <= .len. */
void buf_truncate(struct buf *b, size_t n);

#endif
