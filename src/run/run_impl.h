/*
 * A run, for the files of this room alone.
 *
 * A run has one of three backends: a program that was started for it, a process
 * that stays (workers.h), or an application at an address.  run.c watches all
 * of them alike.  A run with an app is a FastCGI request: run_app.c sends it,
 * and reads its records.
 */
#ifndef RUN_IMPL_H
#define RUN_IMPL_H

#include <netdb.h>
#include <stddef.h>
#include <sys/un.h>

#include "child.h"
#include "conf.h"
#include "errlog.h"
#include "fcgi.h"
#include "loop.h"
#include "outcome.h"
#include "workers.h"

struct run_spec;

/* A connection to an application that oncewrap does not start, made in a
 * loop. */
struct run_connect {
	/* set by the caller */
	struct loop *loop;
	void (*told)(struct run_connect *c); /* it is made, or has failed */
	/* the result: a descriptor, or -1 and an errno value */
	int fd, error;
	/* its own */
	struct addrinfo *found; /* of a host */
	struct sockaddr_un path;
	struct addrinfo named; /* of the path */
	const struct addrinfo *next;
	struct loop_timer pause;
	int ms;
	struct loop_watch watch;
};

enum run_phase {
	PHASE_RUNNING,    /* until the deadline */
	PHASE_TERMINATED, /* SIGTERM was sent; until the second deadline */
	PHASE_KILLED      /* SIGKILL was sent; until the last deadline */
};

struct runs {
	struct loop *loop;
	struct loop_watch drain;
	struct run *first;
};

struct run_app {
	struct run *run;
	const struct conf_program *program;
	struct workers_ask ask; /* .process NULL: another's application */
	struct run_connect connect;
	struct fcgi_client client;
	/* what is sent now, and the body that follows */
	struct buf send;
	size_t sent;
	const char *body;
	size_t body_left;
	bool body_ended, all_sent, any_sent;
	bool any_output;
	bool ended; /* FCGI_END_REQUEST has come */
};

struct run {
	struct run_app *app; /* NULL: a CGI program of its own */
	struct child child;  /* .pid -1: none of ours */
	int out;             /* our end of the pipe, or connection */
	int err;             /* our end of the pipe */
	struct runs *runs;   /* NULL: it has not begun */
	struct run *next, **back;
	void (*moved)(void *arg);
	void *arg;
	struct loop_watch watch_out, watch_err, watch_exit;
	struct loop_timer late;
	bool out_ready; /* something has come, and is not read yet */
	bool reached;
	bool exited;  /* the program has, and is not reaped yet */
	bool closing; /* the connection is closed; the process should end */
	bool over;
	size_t out_left; /* once over: bytes still in the pipe */
	bool streaming;
	bool discarding, capture_failed;
	enum run_phase phase;
	struct run_facts facts; /* .end is RUN_EXITED until a reason comes */
	int64_t started, deadline;
	int64_t timeout, kill_after;
	uint64_t output, max_output;
	const struct log_request *log;
	struct errlog errlog;
};

/* Makes a run that has not begun.  NULL: no memory. */
struct run *run_new(const struct run_spec *spec);

/* Closes its descriptors, and frees it. */
void run_free(struct run *run);

/* Takes it out of its loop. */
void run_leave(struct run *run);

/* It is reached, and its time begins now. */
void run_begin(struct run *run);

/* Tells the caller, but within its own calls. */
void run_moved(struct run *run);

/* The deadline is in that time (ms). */
void run_set_deadline(struct run *run, int64_t ms);

/* Waits for output from now on; and until the request can be sent, if it is
 * not. */
void run_watch_out(struct run *run);

/* Ends the run, unless the program has exited.  The first reason stays. */
void run_end(struct run *run, enum run_end why);

/* Reaps a process: its exit status, or minus a signal.  left: it could not be
 * ended, so it is given up, which is logged; 0. */
int run_reap(struct child *child, bool left, const struct log_request *log);

/* --- with an app -------------------------------------------------------- */

/* Begins to reach it. */
void run_reach(struct run *run);

/* It was not reached in time (ETIMEDOUT), or is not to be (ESHUTDOWN).  The run
 * is over now, or at the next message. */
void run_reach_not(struct run *run, int error);

/* Sends as much of the request as goes. */
void run_app_send(struct run *run);

/* Takes the next output that is here; 0: there is none now. */
size_t run_app_take(struct run *run, void *p, size_t size);

/* Whether the run is over; all that has come is taken. */
bool run_app_is_over(struct run *run);

/* The run is over: completes its facts, and gives its process back. */
void run_app_finish(struct run *run, struct run_facts *facts);

/* --- a connection ------------------------------------------------------- */

/* Whether run_connect_find() may wait: the address has the name of a host. */
bool run_connect_waits(const char *address);

/* Finds "unix:/path" or "tcp:host:port"; any thread.  0, or an errno value. */
int run_connect_find(struct run_connect *c, const char *address);

/* Begins, after run_connect_find().  told() may come at once. */
void run_connect_begin(struct run_connect *c);

/* Gives up: told() does not come. */
void run_connect_cancel(struct run_connect *c);

/* Frees what was found.  The connection stays. */
void run_connect_free(struct run_connect *c);

/* Why there is no connection. */
const char *run_connect_why(int error);

/* --- starting a program ------------------------------------------------- */

#define RUN_WHY 1024

/* Makes a pipe; its reading end, fds[0], does not block. */
int run_open_pipe(int fds[2]);

/* The same for stderr: it has no more room than what may be read, and logged
 * line by line, in a row. */
int run_open_stderr(int fds[2]);

/*
 * Starts the program in its folder and as its user.  from has the environment
 * and the descriptors, .held before it is moved.  Returns 0; or an errno value
 * with *step, and why if a sentence is known.
 */
int run_spawn(struct child *child, const struct conf_program *program,
    const struct child_spec *from, const char **step, char why[RUN_WHY]);

/* Logs that a program was not started.  Returns the errno value for
 * run_facts.error. */
int run_not_started(const struct conf_program *program, const char *step,
    int error, const char *why, const struct log_request *log);

/* Closes the descriptors that are not -1, of n. */
void run_close(const int *fds, size_t n);

#endif
