/*
 * One process: started with nothing of ours but what it is given, watched by
 * a pidfd, signalled as a group, reaped once.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "user.h"

/* The descriptor whose lock an attempt's process tree holds. */
#define CHILD_HELD 3

struct child_spec {
	char *const *argv; /* argv[0] is the program's path */
	char *const *envp;
	const char *directory;
	int umask;               /* -1: inherited */
	const struct user *user; /* NULL: unchanged */
	bool no_new_privs;       /* setuid programs give it nothing */
	int fd[3];               /* become 0, 1, 2; each above 2 */
	int held;                /* becomes CHILD_HELD; above that, or -1 */
};

struct child {
	pid_t pid; /* also its process group and session */
	int pidfd; /* readable once it has exited; close-on-exec */
};

/*
 * Once, before the first thread: descriptors 0-2 are open, all others are
 * close-on-exec, no signal is ignored.  Children get the limit of descriptors
 * that holds now, whatever we raise ours to.  0 or an errno.
 */
int child_init(void);

/*
 * Starts it in a session and process group of its own, with default signals
 * and without capabilities of ours, to be killed when the calling thread ends.
 * 0, or the errno of the step that failed, which *step then names: "clone",
 * "chdir", "exec", ...
 */
int child_start(struct child *, const struct child_spec *, const char **step);

/* Signals the whole group.  Not after child_reap(). */
void child_signal(const struct child *, int sig);

/* Whether it has exited; does not reap it. */
bool child_exited(const struct child *);

/*
 * Gives up one that cannot be ended: it became another user's, or the kernel
 * does not let it die.  A later child_start() or child_abandon() reaps it, when
 * it has ended.
 */
void child_abandon(struct child *);

/*
 * Waits for its end, frees the descriptor.  The exit status, or minus the
 * signal that ended it.
 */
int child_reap(struct child *);

#endif
