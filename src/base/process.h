/*
 * Processes, as /proc shows them: which of them belong to an attempt.
 *
 * A process keeps its session until it begins a session of its own.  It keeps
 * the environment of its program until it starts a program with another
 * environment.  A process that has left both, and has closed every descriptor,
 * cannot be found.
 *
 * While a process starts a program (execve()), /proc shows no environment of
 * it.  A list waits for such processes, for 100 ms in all.  It may miss a chain
 * of processes, each of which ends when it has started the next.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

/* The variable that each process of an attempt inherits, and the number of
 * digits of its value that are compared. */
#define PROCESS_VARIABLE  "ONCE_TOKEN="
#define PROCESS_TOKEN_LEN 32

/* A session.  Its number may be used again once no process is left in it. */
struct process_session {
	pid_t id;         /* 0: not known */
	uint64_t started; /* start of its leader: clock ticks since boot */
};

/* This process's PID namespace, by the number of its file; 0: not known.  While
 * a process lives in a namespace, no other one has that number. */
uint64_t process_space(void);

/*
 * Finds the session that pid leads or is about to lead.  pid is a child that
 * has not been reaped.  False: /proc does not tell.
 */
bool process_session(pid_t pid, struct process_session *session);

struct process_list;

/*
 * Lists all processes that have not ended.  Reads /proc twice, because a
 * process that forks and ends during one reading may be missed by it.  RC_IO,
 * which is logged: /proc cannot be read, or a process in it cannot.  The
 * caller frees the list with process_list_free().
 */
enum rc process_list(struct process_list **out);
void process_list_free(struct process_list *list);

/*
 * Whether the list has all processes of that PID namespace.  /proc does not
 * show those of another namespace, and it may hide those of other users
 * (hidepid).
 */
bool process_list_shows(const struct process_list *list, uint64_t space);

/* A process of the list that is in that session (NULL: any session is ignored),
 * or has that token in its environment; 0: none. */
pid_t process_list_find(const struct process_list *list,
    const struct process_session *session, const char token[PROCESS_TOKEN_LEN]);

#endif
