/*
 * Processes that stay: those of handlers with protocol = fastcgi.
 *
 * Each route has its own, `processes` of them.  Each process has a listening
 * socket of its own as descriptor 0, and gets one request at a time.  A run
 * takes a free process, and gives it back when the process has answered; or it
 * ends the process and says so, and the process is replaced.
 *
 * All this belongs to one loop, whose thread calls the functions below.  A
 * process dies with the thread that started it, so one helper starts them all
 * and stays: the spawner.
 *
 * A socket has no name: its file is removed before the process is started, and
 * this process connects by a descriptor of it.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "conf.h"
#include "errlog.h"
#include "loop.h"
#include "rc.h"

struct workers_pool;
struct workers_process;
struct runs;

/* --- for runs ----------------------------------------------------------- */

/* A run that asks for a process, or has one. */
struct workers_ask {
	/* set by the run */
	/* .process or .error is there */
	void (*told)(struct workers_ask *ask);
	/* the process has printed something, or it has exited */
	void (*news)(struct workers_ask *ask, bool exited);
	/* the result: a process; or NULL with an errno value: runs are being
	 * ended (ESHUTDOWN), the program cannot be started, or it ends at its
	 * start */
	struct workers_process *process;
	int error;
	/* its own */
	struct workers_pool
	    *pool; /* that it waits for; a reload may change it */
	struct workers_ask *next;
	struct loop_message message;
};

/* Asks for a free process of that handler; told() may come at once.  A run that
 * has one hears by news() of its end and of what it prints, until it gives the
 * process back. */
void workers_ask(struct workers_ask *ask, const struct conf_program *program);

/* Asks no more: told() does not come.  False: it is on its way. */
bool workers_withdraw(struct workers_ask *ask);

/* Why there is no process. */
const char *workers_why(int error);

/* Between workers_leave() and workers_lost() the run reaps its process; before,
 * it may only signal it. */
void workers_leave(struct workers_process *p);

/* Reads what has come from its descriptors 1 and 2.  After a lot of it, news
 * come again. */
void workers_read_stderr(struct workers_process *p, struct errlog *log);

/* Connects to it; -1 and errno.  Does not block, nor does the socket. */
int workers_connect(const struct workers_process *p);

/* After its end: whether it has not accepted the connection, so that no byte of
 * the request was read. */
bool workers_was_deaf(const struct workers_process *p);

/* Gives it back: it has answered. */
void workers_give(struct workers_process *p);

/* Gives it back, to be ended and replaced: it has not taken the request.  why
 * is static. */
void workers_reject(struct workers_process *p, const char *why);

/* Logs the end of a process: its exit status, or minus a signal.  log: of the
 * request that it had, or NULL. */
void workers_log_end(const struct workers_process *p, pid_t pid, int status,
    const char *why, const struct log_request *log);

/* Says that it was reaped, or given up.  heard: it had accepted a connection.
 */
void workers_lost(struct workers_process *p, bool heard);

/* --- for the daemon ------------------------------------------------------ */

struct workers_owner {
	struct runs *runs; /* of the loop */
	/* In the spawner: starts the process by workers_start(). */
	void (*start)(void *arg, struct workers_process *p);
	/* In the spawner: the process with that lock has ended. */
	void (*forget)(void *arg, int64_t lock);
	void *arg;
};

/* RC_NOMEM. */
enum rc workers_open(const struct workers_owner *owner);

/* No process is left, and the loop does not go round any more. */
void workers_close(void);

/* The owner's, for threads that wait (run_wait.c); NULL: no processes are
 * kept. */
struct runs *workers_runs(void);

/* Looks at the handlers of a configuration, and at their files, for
 * workers_set(); any thread.  False: no memory. */
bool workers_prepare(struct conf *conf, struct workers_pool **fresh);

/* Keeps processes for these handlers of the configuration from now on, and none
 * for others.  A program whose file has changed gets new processes, as each
 * process ends its request.  A run that waits gets one of its route's new
 * processes; if the route has none any more, one of those that it waits for. */
void workers_set(struct conf *conf, struct workers_pool *fresh);

/* After the last run.  From now on no process is started, and all are ended:
 * ended(arg) comes when none is left. */
void workers_stop(void (*ended)(void *arg), void *arg);

/* What workers_start() gets of the process's lock; all 0, -1 and "": none. */
struct workers_mark {
	int held;
	int64_t lock;
	const char *token; /* for its environment */
};

/* Whether the process must inherit a lock. */
bool workers_is_tracked(const struct workers_process *p);

/* Starts the process.  Returns its pid; or -1, which is logged: another start
 * comes later.  mark NULL: there is no lock. */
pid_t workers_start(struct workers_process *p, const struct workers_mark *mark);

#endif
