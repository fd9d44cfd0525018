/*
 * One process: started with nothing of this process but what its spec gives
 * it, watched by a pidfd, signalled as a group, reaped once.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "user.h"

/* The descriptor with the lock that an attempt's process tree holds. */
#define CHILD_HELD 3

struct child_spec {
	char *const *argv; /* argv[0] is the program's path */
	char *const *envp;
	const char *directory;
	int umask;               /* -1: inherited */
	const struct user *user; /* NULL: unchanged */
	bool no_new_privs;       /* setuid programs give it no privileges */
	int fd[3];               /* become 0, 1, 2; each is above 2 */
	int held;                /* becomes CHILD_HELD; above that, or -1 */
};

struct child {
	pid_t pid; /* also its process group and session */
	int pidfd; /* readable once it has exited; close-on-exec */
};

/*
 * Call it once, before the first thread: opens descriptors 0-2, makes all
 * others close-on-exec, and ignores no signal.  Children get the descriptor
 * limit that holds now, even if this process raises its own later.  0 or an
 * errno value.
 */
int child_init(void);

/*
 * Starts a process in a session and process group of its own, with default
 * signals and without capabilities of the daemon.  It is killed when the
 * calling thread ends.  0, or the errno value of the failed step, which *step
 * then names: "clone", "chdir", "exec", ...
 */
int child_start(
    struct child *child, const struct child_spec *spec, const char **step);

/* Signals the whole group.  Not allowed after child_reap(). */
void child_signal(const struct child *child, int sig);

/* Whether the process has exited; does not reap it. */
bool child_exited(const struct child *child);

/*
 * Gives up a process that cannot be ended: it runs as another user now, or the
 * kernel does not let it die.  A later child_start() or child_abandon() reaps
 * it when it has ended.
 */
void child_abandon(struct child *child);

/*
 * Waits for the end of the process and frees the descriptor.  Returns the exit
 * status, or minus the signal that ended the process.
 */
int child_reap(struct child *child);

#endif
