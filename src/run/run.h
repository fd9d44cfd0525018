/*
 * A run of the handler: start it, read its output, learn how it ended.  run.h
 * says how a handler ended, not what its outcome was.
 *
 * The program gets its own session and process group, the body as a file on
 * stdin, only descriptors 0-2, default signals, and dies with this process.
 * Its stderr goes to the log, line by line.  The run is over when the program
 * exits, even if other processes still hold its pipes.  At its deadline the
 * group gets SIGTERM, and SIGKILL after kill_after.  A process that still
 * exists RUN_GRACE later is given up, and its facts say so.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf.h"
#include "outcome.h"
#include "rc.h"
#include "spool.h"

struct run;

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

/*
 * Starts a run.  NULL with facts->end == RUN_NOT_STARTED and facts->error when
 * it could not be started, which is logged: missing, not executable, no such
 * user, no process or descriptor.
 */
struct run *run_start(const struct run_spec *spec, struct run_facts *facts);

/*
 * The same for a FastCGI application.  With protocol = fastcgi one of its
 * processes that stay (workers.h) gets the request; if the program is an
 * address, the application there.  Nothing is sent to it before run_read().
 * program is the configuration's own, not a copy.
 */
struct run *run_start_app(const struct run_spec *spec,
    const struct conf_program *program, struct run_facts *facts);

/* The program's process, which is also its process group; -1: it is not this
 * process's child. */
pid_t run_pid(const struct run *run);

/* The lock of a process that stays and has one (store_process_lock()); 0: the
 * process was started for this run, or has none. */
int64_t run_lock(const struct run *run);

/* Whether the process stays after the run. */
bool run_stays(const struct run *run);

/* Frees a run of a process that stays, before run_read(): it gets no request.
 */
void run_cancel(struct run *run);

/*
 * Reads the next bytes of the output: > 0.  0: there are no more.  Blocks;
 * meanwhile handles stderr, deadline and drain.
 */
size_t run_read(struct run *run, void *p, size_t size);

/* The client is gone: the remaining output is discarded, and the timeout
 * counts from now. */
void run_discard(struct run *run);

/* "exited", "timeout": for the log. */
const char *run_end_name(enum run_end end);

/* Waits for the end of the run and frees it. */
void run_finish(struct run *run, struct run_facts *facts);

/* run_read() until the end into a spool, then run_finish().  If the spool
 * failed, the facts say so: RUN_CAPTURE_FAILED. */
void run_capture(struct run *run, struct spool *spool, struct run_facts *facts);

/* Connects to a FastCGI application, "unix:/path" or "tcp:host:port", until
 * until (clock_mono() ms), or until all runs are to be ended.  -1 with an errno
 * value and a text. */
int
run_connect(const char *address, int64_t until, int *error, const char **why);

#endif
