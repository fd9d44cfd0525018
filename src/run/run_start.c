/*
 * The start of a run, and of any program: its user, its folder, its pipes, and
 * its child.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "progcheck.h"
#include "user.h"
#include "run.h"
#include "run_impl.h"

bool
run_is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Opens the standard input with those bytes; fd is a file that has them, or
 * -1.  Returns -1 with errno if that failed. */
static int
open_body(const void *body, size_t len, int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	const char *p = body;
	size_t left = len;
	ssize_t n;

	if (len == 0)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd != -1) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		return open(path, O_RDONLY | O_CLOEXEC);
	}
	if ((fd = memfd_create("request-body", MFD_CLOEXEC)) == -1)
		return -1;
	for (; left > 0; p += n, left -= (size_t)n) {
		/* pwrite() leaves the offset at the start, where the handler
		 * begins to read. */
		n = pwrite(fd, p, left, (off_t)(len - left));
		if (n == -1) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

int
run_open_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	/* A new pipe has no other flag that can be set. */
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1) {
		close(fds[0]);
		close(fds[1]);
		fds[0] = fds[1] = -1;
		return -1;
	}
	return 0;
}

/* Lines of one byte cost most. */
#define STDERR_ROOM (16 * 1024)

int
run_open_stderr(int fds[2])
{
	if (run_open_pipe(fds) == -1)
		return -1;
	(void)fcntl(fds[0], F_SETPIPE_SZ, STDERR_ROOM);
	return 0;
}

struct run *
run_new(const struct run_spec *spec)
{
	struct run *run;

	if ((run = calloc(1, sizeof(*run))) == NULL)
		return NULL;
	run->child.pid = run->child.pidfd = -1;
	run->out = run->err = -1;
	run->streaming = spec->streaming;
	run->facts.end = RUN_EXITED;
	run->timeout = spec->program.timeout;
	run->kill_after = spec->program.kill_after;
	run->max_output =
	    spec->streaming ? UINT64_MAX : spec->program.max_output;
	run->log = spec->log;
	errlog_init(&run->errlog, spec->log, spec->errors);
	return run;
}

void
run_free(struct run *run)
{
	if (run == NULL)
		return;
	run_leave(run);
	if (run->app != NULL) {
		buf_free(&run->app->send);
		run_connect_free(&run->app->connect);
	}
	free(run->app);
	run_close((const int[]){ run->out, run->err }, 2);
	errlog_free(&run->errlog);
	free(run);
}

void
run_begin(struct run *run)
{
	run->reached = true;
	run->started = clock_mono();
	run->deadline = run->started + run->timeout;
}

/* Why a step of child_start() has failed, if that can be seen. */
static void
explain_step(const char *step, const struct child_spec *cs, char why[RUN_WHY])
{
	/* ENOENT of a file that is there: its interpreter is not. */
	if (strcmp(step, "exec") == 0)
		(void)progcheck(cs->argv[0], cs->user, why, RUN_WHY);
	else if (strcmp(step, "chdir") == 0)
		(void)progcheck_folder(cs->directory, cs->user, why, RUN_WHY);
	else if (strcmp(step, "setuid") == 0 && cs->user != NULL)
		(void)user_may_become(cs->user, why, RUN_WHY);
	else if (strcmp(step, "clone") == 0)
		(void)progcheck_fail(
		    why, RUN_WHY, "the system makes no more processes");
}

/* The program's user; NULL in *user: this process's own. */
static bool
find_user(const struct conf_program *program, struct user *found,
    const struct user **user, char why[RUN_WHY])
{
	*user = NULL;
	if (program->user == NULL && program->group == NULL)
		return true;
	*user = found;
	return user_find(program->user, program->group, found, why, RUN_WHY);
}

int
run_spawn(struct child *child, const struct conf_program *program,
    const struct child_spec *from, const char **step, char why[RUN_WHY])
{
	const char *path = program->argv.item[0];
	const char *slash = strrchr(path, '/');
	struct child_spec cs = *from;
	char *folder = NULL;
	struct user user;
	int error, held = -1;

	/* A run that has not begun can still be reported as one that did not
	 * happen. */
	*step = "drain";
	if (run_is_draining()) {
		(void)progcheck_fail(why, RUN_WHY, "oncewrap is being stopped");
		return ESHUTDOWN;
	}
	*step = "user";
	if (!find_user(program, &user, &cs.user, why))
		return EINVAL;
	*step = "open";
	if (program->directory == NULL) {
		folder = slash == NULL
		    ? strdup(".")
		    : strndup(path, slash == path ? 1 : (size_t)(slash - path));
		if (folder == NULL)
			return ENOMEM;
	}
	cs.argv = program->argv.item;
	cs.directory = folder != NULL ? folder : program->directory;
	cs.umask = program->umask;
	cs.no_new_privs = program->no_new_privs;
	if (cs.held != -1 &&
	    (held = fcntl(cs.held, F_DUPFD_CLOEXEC, CHILD_HELD + 1)) == -1)
		error = errno;
	else {
		cs.held = held;
		error = child_start(child, &cs, step);
		if (error != 0)
			explain_step(*step, &cs, why);
	}
	run_close(&held, 1);
	free(folder);
	return error;
}

int
run_not_started(const struct conf_program *program, const char *step, int error,
    const char *why, const struct log_request *log)
{
	if (*why == '\0')
		why = "the system refused this step; nothing that oncewrap can "
		      "see is wrong with the program";
	log_event(LOG_ERROR, "handler-not-started", log,
	    LOG_S("program", program->argv.item[0]), LOG_S("step", step),
	    LOG_S("error", strerror(error)), LOG_S("why", why));
	/* The program is there, its interpreter or folder is not. */
	if (error == ENOENT && run_is_file(program->argv.item[0]))
		error = ENOEXEC;
	/* A program without a directory of its own starts in its folder. */
	if (strcmp(step, "exec") == 0 ||
	    (strcmp(step, "chdir") == 0 && program->directory == NULL))
		return error;
	return ECANCELED;
}

struct run *
run_start(const struct run_spec *spec, struct run_facts *facts)
{
	struct child_spec cs = {
		.envp = spec->envp, .fd = { -1, -1, -1 }, .held = spec->held
	};
	struct run *run;
	const char *step = "open";
	char why[RUN_WHY] = "";
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int error;

	memset(facts, 0, sizeof(*facts));
	if ((run = run_new(spec)) == NULL ||
	    (cs.fd[0] = open_body(spec->body, spec->body_len, spec->body_fd)) ==
		-1 ||
	    run_open_pipe(out) == -1 || run_open_stderr(err) == -1)
		error = errno;
	else {
		cs.fd[1] = out[1];
		cs.fd[2] = err[1];
		run->out = out[0];
		run->err = err[0];
		run_begin(run);
		error = run_spawn(&run->child, &spec->program, &cs, &step, why);
		FAULT(HANDLER_STARTED);
	}
	run_close((const int[]){ cs.fd[0], out[1], err[1] }, 3);
	if (error == 0)
		return run;
	facts->end = RUN_NOT_STARTED;
	facts->error =
	    run_not_started(&spec->program, step, error, why, spec->log);
	if (run != NULL && run->out == -1)
		run_close((const int[]){ out[0], err[0] }, 2);
	run_free(run);
	return NULL;
}
