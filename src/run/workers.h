/*
 * Processes that stay: those of handlers with protocol = fastcgi.
 *
 * Each route has its own, `processes` of them.  Each process has a listening
 * socket of its own as descriptor 0, and gets one request at a time.  A run
 * takes a free process, and gives it back when the process has answered; or it
 * ends the process and says so, and the process is replaced.
 *
 * A process dies with the thread that started it, so one thread starts them all
 * and stays: the spawner.  It also ends those that are not needed any more, and
 * logs what they print between two requests.
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
#include "rc.h"

struct workers_process;

/* --- for runs ----------------------------------------------------------- */

/*
 * Takes a free process of that handler; waits for one until until (clock_mono()
 * ms).  NULL with an errno value in *error, and a text in *why, if there is
 * none: the time is up (ETIMEDOUT), runs are being ended (ESHUTDOWN), the
 * program cannot be started, or it ends at its start.
 */
struct workers_process *workers_take(const struct conf_program *program,
    int64_t until, int *error, const char **why);

/* Between workers_leave() and workers_lost() the run reaps its process; before,
 * it may only signal it. */
void workers_leave(struct workers_process *p);

/* Reads its descriptors 1 and 2 once.  False: there is nothing more now. */
bool workers_read_stderr(struct workers_process *p, struct errlog *log);

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

/* No run waits for a process any more; none gets one. */
void workers_drain(void);

/* --- for the spawner ----------------------------------------------------- */

enum rc workers_open(void);

/* Keeps processes for the handlers of that configuration from now on, and none
 * for others.  A program whose file has changed gets new processes, as each
 * process ends its request.  A run that waits gets one of its route's new
 * processes; if the route has none any more, one of those that it waits for.
 * RC_NOMEM: nothing has changed. */
enum rc workers_set(struct conf *conf);

/* From now on no process is started, and all that are free are ended. */
void workers_stop(void);

enum workers_task {
	WORKERS_START,  /* call workers_start() for .process */
	WORKERS_FORGET, /* the process has ended: .lock is free */
	WORKERS_END     /* workers_stop() was called, and no process is left */
};

struct workers_job {
	struct workers_process *process;
	bool tracked; /* it must inherit a lock */
	int64_t lock; /* 0: none */
};

/* Does what is to be done, until it is something for the caller. */
enum workers_task workers_wait(struct workers_job *job);

/* What workers_start() gets of the process's lock; all 0, -1 and "": none. */
struct workers_mark {
	int held;
	int64_t lock;
	const char *token; /* for its environment */
};

/*
 * Starts the process.  The calling thread must live as long as the process.
 * Returns its pid; or -1, which is logged: another WORKERS_START comes later.
 * mark NULL: there is no lock, try again later.
 */
pid_t workers_start(struct workers_process *p, const struct workers_mark *mark);

/* Lets runs have the process that was started. */
void workers_ready(struct workers_process *p);

/* After WORKERS_END; workers_abort() instead, if there was never a spawner. */
void workers_close(void);
void workers_abort(void);

#endif
