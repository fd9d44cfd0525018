/*
 * Return codes of all functions with effects.  Pure code returns verdicts of
 * its own; effects return enum rc, where 0 is success.  The function that has
 * errno or SQLite's message logs it, once, and returns rc to its caller.
 *
 *	RC_LIMIT	a maximum of limit.h, or of the caller
 *	RC_IO		read, write or sync failed; errno was logged
 *	RC_READONLY	by its permissions, or the mount
 *	RC_CORRUPT	the data read cannot be the data that was written
 *	RC_REPLACED	a file of the store is not the one that was opened
 *	RC_WENT_BACK	the store lacks what this process has seen in it
 *	RC_LOST		the lease named is no longer the current one
 *	RC_PENDING	it goes on without the caller
 *	RC_UNRECORDED	not begun: outcomes cannot be recorded now
 *	RC_TIMEOUT	the peer was silent for too long
 *	RC_CLOSED	the peer is gone, or this process is shutting down
 *	RC_INVALID	malformed input or an argument out of range
 */
#ifndef RC_H
#define RC_H

#include <assert.h>
#include <stddef.h>

#include "words.h"

/* clang-format off */
#define RC_LIST(X) \
	X(RC_OK, "ok") \
	X(RC_NOMEM, "out of memory") \
	X(RC_LIMIT, "limit reached") \
	X(RC_IO, "input/output error") \
	X(RC_FULL, "no space left") \
	X(RC_READONLY, "a file may not be written") \
	X(RC_BUSY, "locked by another process") \
	X(RC_CORRUPT, "corrupt data") \
	X(RC_REPLACED, "a file was removed or replaced") \
	X(RC_WENT_BACK, "store-went-back") \
	X(RC_VERSION, "written by a newer release") \
	X(RC_NOTFOUND, "not found") \
	X(RC_EXISTS, "exists already") \
	X(RC_LOST, "lease lost") \
	X(RC_PENDING, "not done yet") \
	X(RC_UNRECORDED, "outcomes are not recorded yet") \
	X(RC_UNSAFE, "the database server may lose commits") \
	X(RC_TIMEOUT, "timed out") \
	X(RC_CLOSED, "closed") \
	X(RC_INVALID, "invalid")
/* clang-format on */
enum rc { RC_LIST(WORDS_ENUMERATOR) };

/* A short lower-case text in static storage; never NULL. */
static inline const char *
rc_text(enum rc rc)
{
	static const char *const texts[] = { RC_LIST(WORDS_WORD) };

	assert((size_t)rc < sizeof(texts) / sizeof(texts[0]));
	return texts[rc];
}

#endif
