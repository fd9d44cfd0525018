/*
 * Processes, as /proc shows them: which of them an attempt has started.
 *
 * A process keeps its session until it begins one of its own, and the
 * environment that its program was started with until it starts another with
 * a different one.  A process that has shed both, and every descriptor, cannot
 * be found, nor one that /proc does not show to this user (hidepid, another
 * PID namespace).
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

/* The variable that each process of an attempt inherits, and the digits of its
 * value that are looked at. */
#define PROCESS_VARIABLE  "ONCE_TOKEN="
#define PROCESS_TOKEN_LEN 32

/* A session: its number may be used again once no process is left in it. */
struct process_session {
	pid_t id;         /* 0: not known */
	uint64_t started; /* of its leader: clock ticks since boot */
	uint64_t space;   /* the PID namespace that the number is of */
};

/*
 * The session of which pid is the leader or about to be it; pid is a child
 * that has not been reaped.  False: /proc does not tell.
 */
bool process_session(pid_t pid, struct process_session *);

struct process_list;

/*
 * All processes that have not ended.  Reads /proc twice, because a process
 * that forks and ends while it is read may be missed once.  RC_IO, which is
 * logged: /proc cannot be read, or a process that it shows cannot.
 */
enum rc process_list(struct process_list **);
void process_list_free(struct process_list *);

/* Whether one of them is in that session (NULL: not asked), or has that token
 * in its environment. */
bool process_list_has(const struct process_list *,
    const struct process_session *, const char token[PROCESS_TOKEN_LEN]);

#endif
