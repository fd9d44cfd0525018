/*
 * A run of the handler: start it, take its output, learn how it ended.  run.h
 * says how a handler ended, not what its outcome was.
 *
 * The program gets its own session and process group, the body as a file on
 * stdin, only descriptors 0-2, default signals, and dies with the thread that
 * started it.  Its stderr goes to the log, line by line.  The run is over when
 * the program exits, even if other processes still hold its pipes.  At its
 * deadline the group gets SIGTERM, and SIGKILL after kill_after.  A process
 * that still exists RUN_GRACE later is given up, and its facts say so.
 *
 * A run goes on in the thread of a loop, and nothing here waits but its start
 * (handler_waits()):
 *
 * 	run_start() or run_start_app(), in any thread
 * 	run_begin_in()  then, until run_is_reached() or run_is_over():
 * 	run_send()      then, until run_is_over():
 * 	run_take()      until it gives nothing
 * 	run_finish()
 *
 * In between moved() says that it is worth to ask again.  run_wait.h does all
 * this for a thread that may wait.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf.h"
#include "loop.h"
#include "outcome.h"
#include "rc.h"
#include "spool.h"

struct run;
struct runs;

/* Time after SIGKILL (ms): enough for the kernel to end a large process. */
#define RUN_GRACE 2000

struct run_spec {
	struct conf_program program; /* argv[0] is the program's path */
	char *const *envp;
	const void *body;
	size_t body_len;
	int body_fd;    /* holds the body, or -1: it is in memory */
	int held;       /* inherited as descriptor 3, see child.h; or -1 */
	bool streaming; /* timeout counts from the last output, which has no
	                   limit */
	const struct log_request *log; /* must outlive the run */
	/* gets the last LIMIT_ERRORS bytes of stderr; must outlive the run;
	 * NULL: they are only logged */
	struct buf *errors;
};

/* Call it once, before the first thread: see child_init(). */
enum rc run_init(void);

/* Whether path names a regular file. */
bool run_is_file(const char *path);

/* All runs under way count as RUN_DRAINED and are ended; later runs are not
 * started. */
void run_drain(void);

/* Whether run_drain() was called. */
bool run_is_draining(void);

/* After all runs have ended: programs may be started again, for what is to be
 * done at the end of this process. */
void run_resume(void);

/* How long (ms) after SIGTERM a program gets SIGKILL: kill_after, or less after
 * run_drain(). */
int64_t run_patience(int64_t kill_after);

/* The runs of one loop.  RC_NOMEM, RC_IO. */
enum rc run_open_runs(struct runs **out, struct loop *loop);

/* After its last run; NULL is allowed. */
void run_close_runs(struct runs *runs);

/*
 * Starts a program; may wait for the disk and for a directory of users.  NULL
 * with facts->end == RUN_NOT_STARTED and facts->error when it could not be
 * started, which is logged: missing, not executable, no such user, no process
 * or descriptor.
 */
struct run *run_start(const struct run_spec *spec, struct run_facts *facts);

/*
 * Makes a run of a FastCGI application.  With protocol = fastcgi one of its
 * processes that stay (workers.h) gets the request; if the program is an
 * address, the application there.  May wait for the name of a host alone.
 * program is the configuration's own, not a copy; spec's body and program must
 * outlive the run.  NULL: there is no memory, or no such host; as for
 * run_start().
 */
struct run *run_start_app(const struct run_spec *spec,
    const struct conf_program *program, struct run_facts *facts);

/*
 * The run goes on in the loop of runs, whose thread calls this and all that
 * follows.  An application is reached from now on, within its timeout.
 * moved(arg) is called by the loop, never by a function of this header: the run
 * is reached, has output, or is over.  It may come in vain.
 */
void run_begin_in(
    struct run *run, struct runs *runs, void (*moved)(void *arg), void *arg);

/* Whether the program runs, or the application can have the request. */
bool run_is_reached(const struct run *run);

/* Once the run is reached: sends the request to an application.  Another call
 * does nothing. */
void run_send(struct run *run);

/*
 * Takes the next bytes of the output: > 0.  0: there are none now, then ask
 * run_is_over().  As long as the caller takes nothing, the handler waits, and
 * the timeout of a streaming run does not pass.
 */
size_t run_take(struct run *run, void *p, size_t size);

/* Whether all is over and taken; or the application could not be reached, which
 * is logged. */
bool run_is_over(struct run *run);

/* Gives the facts of a run that is over, and frees it. */
void run_finish(struct run *run, struct run_facts *facts);

/* Frees a run of an application that is reached, before run_send(): it gets no
 * request. */
void run_cancel(struct run *run);

/* The client is gone: the remaining output is to be taken and dropped, and the
 * timeout counts from now. */
void run_discard(struct run *run);

/* Whether more than max_output was taken: the rest is to be dropped. */
bool run_wrote_too_much(const struct run *run);

/* The output could not be stored: ends the run, with RUN_CAPTURE_FAILED. */
void run_fail_capture(struct run *run);

/* The program's process, which is also its process group; -1: it is not this
 * process's child. */
pid_t run_pid(const struct run *run);

/* The lock of a process that stays and has one (store_process_lock()); 0: the
 * process was started for this run, or has none. */
int64_t run_lock(const struct run *run);

/* Whether the process stays after the run. */
bool run_stays(const struct run *run);

/* "exited", "timeout": for the log. */
const char *run_end_name(enum run_end end);

#endif
