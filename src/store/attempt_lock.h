/*
 * The processes that an attempt has started: a file for each attempt, in the
 * folder "<database>-attempts".
 *
 * The handler inherits a read-only descriptor of the file, with an OFD read
 * lock.  Its children inherit that in turn, so the lock lasts as long as one of
 * them holds the descriptor.  Only the daemon's user may use the folder, so a
 * handler can keep its own attempt alive with the descriptor, and nothing else.
 * Some processes close the descriptor.  So the file also has the attempt's
 * token, which is in their environment, and its session (see process.h).
 *
 * The lock is a proof: while it is held, the attempt lives.  All else is a
 * clue.  Where /proc does not show the processes of the attempt, as in another
 * PID namespace, the attempt counts as alive although its lock is free.  No
 * process outlives a boot of the kernel.  So an attempt is gone if it was made
 * at a time since boot that is still to come.
 *
 * The file's name is in the store (attempt_lock).  Part of the name is the boot
 * in which the file was made, as /proc named it; a container may have a name of
 * its own.  If the file is missing, the attempt counts as alive, unless that
 * boot is another one: a power failure may have taken the file along.
 */
#ifndef ATTEMPT_LOCK_H
#define ATTEMPT_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"
#include "rc.h"
#include "record.h"

struct attempt_lock_note {
	int64_t owner;                    /* the process that made it */
	uint64_t space;                   /* its PID namespace */
	int64_t made;                     /* clock_boot() */
	char token[RECORD_TOKEN_LEN + 1]; /* "": its handler was not started */
	int64_t key;
	struct process_session session; /* .id 0: not known */
};

/*
 * Creates the file.  *held is the descriptor for the handler, *note another one
 * for the functions below; both are close-on-exec, and the caller closes them.
 * *name is the file's name as a number.  Errors are logged and name the file;
 * RC_BUSY: no free name was found.
 */
enum rc attempt_lock_new(
    const char *database, int64_t owner, int *held, int *note, int64_t *name);

/* Before the handler is started: adds the attempt's token and key. */
enum rc attempt_lock_begin(int note, const char *token, int64_t key);

/* After the handler was started: adds its session. */
void attempt_lock_started(int note, pid_t pid);

/* Reads the file.  RC_NOTFOUND: it does not exist, or lacks the owner's
 * name. */
enum rc attempt_lock_read(
    const char *database, int64_t name, struct attempt_lock_note *note);

/* Whether a process holds the descriptor; true if that cannot be determined,
 * and false if there is no file. */
bool attempt_lock_is_held(const char *database, int64_t name);

/*
 * Whether a process of that attempt may still live.  list: the result of
 * process_list() after the attempt was lost; NULL: not known.
 */
bool attempt_lock_lives(
    const char *database, int64_t name, const struct process_list *list);

/* A process of that attempt, by its token or session; 0: none is known.  A
 * process that only holds the descriptor has no number here. */
pid_t attempt_lock_process(
    const char *database, int64_t name, const struct process_list *list);

void attempt_lock_remove(const char *database, int64_t name);

/* --- processes that stay ------------------------------------------------- */

/*
 * A process that stays handles one attempt after another, so it cannot hold
 * each attempt's lock.  It has a file of its own, "NAME.process", with its own
 * token.  While it may act for an attempt, that attempt has a second name of
 * the process's file: "NAME.by".  The attempt then lives as long as its own
 * processes or those of the second file.
 */

/* Like attempt_lock_new() and then attempt_lock_begin() with key 0. */
enum rc attempt_lock_process_new(const char *database, int64_t owner,
    const char *token, int *held, int *note, int64_t *name);

/* Says that the process may act for the attempt from now on, until
 * attempt_file_remove() of ATTEMPT_FILE_BY.  Errors are logged. */
enum rc
attempt_lock_process_acts(const char *database, int64_t name, int64_t process);

/* Calls visit for each file of that kind ("" or ATTEMPT_FILE_PROCESS), until
 * visit returns a value other than RC_OK. */
enum rc attempt_lock_each(const char *database, const char *kind,
    enum rc (*visit)(void *, int64_t name, const struct attempt_lock_note *),
    void *arg);

#endif
