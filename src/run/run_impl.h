/*
 * A run, for the files of this room alone.
 */
#ifndef RUN_IMPL_H
#define RUN_IMPL_H

#include "child.h"
#include "errlog.h"
#include "run.h"

enum run_stage {
	STAGE_RUNNING,    /* until the deadline */
	STAGE_TERMINATED, /* SIGTERM was sent; until the second deadline */
	STAGE_KILLED      /* SIGKILL was sent; until the last deadline */
};

struct run_app;

struct run {
	struct run_app *app;       /* NULL: a CGI program of its own */
	struct child child;        /* .pid -1: none of ours */
	int out, err;              /* our ends of the pipes; -1: at their end */
	bool out_ready, err_ready; /* result of the last poll */
	bool exited;               /* the program has, and is not reaped yet */
	bool over;
	size_t out_left; /* once over: bytes still in the pipe */
	bool streaming;
	bool discarding;
	enum run_stage stage;
	struct run_facts facts; /* .end is RUN_EXITED until a reason comes */
	int64_t started, deadline, looked;
	int64_t timeout, kill_after;
	uint64_t output, max_output;
	const struct log_request *log;
	struct errlog errlog;
};

/* Makes a run that has not begun.  NULL: no memory. */
struct run *run_new(const struct run_spec *spec);

/* Ends the run, unless the program has exited.  The first reason stays. */
void run_end(struct run *run, enum run_end why);

/* Whether more than max_output was read, perhaps after the program had
 * exited. */
bool run_wrote_too_much(const struct run *run);

/* The deadline is past. */
void run_late(struct run *run);

/* Milliseconds to the deadline, at least 0. */
int run_left(const struct run *run);

/* Readable once all runs are to be ended. */
int run_drain_fd(void);

/* The same as run_read(), run_finish() and run_cancel(), for a run with an
 * app. */
size_t run_app_read(struct run *run, void *p, size_t size);
void run_app_finish(struct run *run, struct run_facts *facts);
void run_app_cancel(struct run *run);

/* The name of the lock of a process that stays, see workers.h; 0: none. */
int64_t run_app_lock(const struct run *run);

/* Makes a pipe; its reading end, fds[0], does not block. */
int run_open_pipe(int fds[2]);

/* Returns the folder of a program's path, at least "/"; the caller frees it.
 * NULL: no memory. */
char *run_folder_of(const char *path);

/* Finds the program's user.  NULL in *user: it is this process's own.  False:
 * there is no such user, and why says so. */
bool run_find_user(const struct conf_program *program, struct user *found,
    const struct user **user, char *why, size_t size);

/* Sets why, if it is empty: why a step of child_start(), or one before it, has
 * failed.  cs may be NULL after a step before it. */
void run_why(const char *step, const struct child_spec *cs, int error,
    char *why, size_t size);

/* The errno value of a program that was not started, for run_facts.error. */
int run_error(const char *step, const struct conf_program *program, int error);

/* Closes the descriptors that are not -1, of n. */
void run_close(const int *fds, size_t n);

#endif
