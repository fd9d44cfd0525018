/*
 * The processes that an attempt has started: a file for each attempt, in the
 * folder "<database>-attempts".
 *
 * The handler inherits a read-only descriptor of it, with an OFD read lock;
 * what it starts inherits that in turn, so the lock is there as long as one of
 * them is.  The folder is ours alone: with its descriptor a handler can keep
 * its own attempt alive, and nothing else.  Not every process keeps that
 * descriptor.  So the file also says what the attempt is called in
 * environments, and what session it runs in (see process.h).
 *
 * The file's name is in the store (attempt_lock).  Part of it is the boot that
 * it was made in: nothing of an attempt outlives a boot.  A file that is
 * missing says nothing, and its attempt counts as alive.
 */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"
#include "rc.h"
#include "record.h"

struct tree_note {
	int64_t owner;                    /* the process that made it */
	char token[RECORD_TOKEN_LEN + 1]; /* "": its handler was not started */
	int64_t key;
	struct process_session session; /* .id is 0 if it is not known */
};

/*
 * Makes the file: *held is the descriptor for the handler, *note another one
 * for the functions below, both close-on-exec and the caller's; *name is what
 * the file is called.  Errors are logged and name the file; RC_BUSY: no name
 * was free.
 */
enum rc tree_new(
    const char *database, int64_t owner, int *held, int *note, int64_t *name);

/* Adds what the attempt is called; before its handler is started. */
enum rc tree_begin(int note, const char *token, int64_t key);

/* Adds the session; after. */
void tree_started(int note, pid_t);

/* What the file says.  RC_NOTFOUND: there is none, or it says less than the
 * owner's name. */
enum rc tree_read(const char *database, int64_t name, struct tree_note *);

/* Whether the file was made in another boot of this host. */
bool tree_is_past(int64_t name);

/* Whether a process holds the descriptor; true if it cannot be told. */
bool tree_is_held(const char *database, int64_t name);

/*
 * Whether a process of that attempt may still be there.  list: what
 * process_list() gave after the attempt was lost; NULL: it cannot be told.
 */
bool
tree_lives(const char *database, int64_t name, const struct process_list *list);

void tree_remove(const char *database, int64_t name);

/* Calls visit for each file, until it returns something else than RC_OK. */
enum rc tree_each(const char *database,
    enum rc (*visit)(void *, int64_t name, const struct tree_note *), void *);

#endif
