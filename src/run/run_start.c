/*
 * The start of a run: its user, its folder, its pipes, and its child.
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
#include "leader.h"
#include "log.h"
#include "progcheck.h"
#include "user.h"
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

char *
run_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
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

bool
run_find_user(const struct conf_program *program, struct user *found,
    const struct user **user, char *why, size_t size)
{
	*user = NULL;
	if (program->user == NULL && program->group == NULL)
		return true;
	*user = found;
	return user_find(program->user, program->group, found, why, size);
}

void
run_why(const char *step, const struct child_spec *cs, int error, char *why,
    size_t size)
{
	bool ok = true;

	/* Whatever failed may have said so. */
	if (*why != '\0')
		return;
	/* ENOENT of a file that is there: its interpreter is not. */
	if (strcmp(step, "exec") == 0)
		ok = progcheck(cs->argv[0], cs->user, why, size);
	else if (strcmp(step, "chdir") == 0)
		ok = progcheck_folder(cs->directory, cs->user, why, size);
	else if (strcmp(step, "setuid") == 0 && cs->user != NULL)
		ok = user_may_become(cs->user, why, size);
	else if (error == ESHUTDOWN)
		ok = progcheck_fail(why, size, "oncewrap is being stopped");
	else if (strcmp(step, "clone") == 0)
		ok = progcheck_fail(
		    why, size, "the system makes no more processes");
	if (ok)
		(void)progcheck_fail(why, size,
		    "the system refused this step; nothing that oncewrap can "
		    "see is wrong with the program");
}

int
run_error(const char *step, const struct conf_program *program, int error)
{
	/* A program without a directory of its own starts in its folder. */
	if (strcmp(step, "exec") == 0 ||
	    (strcmp(step, "chdir") == 0 && program->directory == NULL))
		return error;
	return ECANCELED;
}

struct run *
run_start(const struct run_spec *spec, struct run_facts *facts)
{
	const struct conf_program *program = &spec->program;
	struct child_spec cs;
	struct run *run;
	struct user user;
	const char *step = "open";
	char *folder = NULL, why[1024] = "";
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int error = 0;

	leader_yield();
	memset(facts, 0, sizeof(*facts));
	memset(&cs, 0, sizeof(cs));
	cs.fd[0] = cs.held = -1;
	if ((run = run_new(spec)) == NULL)
		goto fail;
	/* A run that has not begun can still be reported as one that did not
	 * happen. */
	if (run_is_draining()) {
		step = "drain";
		error = ESHUTDOWN;
		goto fail;
	}
	if (!run_find_user(program, &user, &cs.user, why, sizeof(why))) {
		step = "user";
		error = EINVAL;
		goto fail;
	}
	if (program->directory == NULL &&
	    (folder = run_folder_of(program->argv.item[0])) == NULL)
		goto fail;
	if (spec->held != -1 &&
	    (cs.held = fcntl(spec->held, F_DUPFD_CLOEXEC, CHILD_HELD + 1)) ==
		-1)
		goto fail;
	if ((cs.fd[0] = open_body(spec->body, spec->body_len, spec->body_fd)) ==
		-1 ||
	    run_open_pipe(out) == -1 || run_open_pipe(err) == -1)
		goto fail;
	cs.argv = program->argv.item;
	cs.envp = spec->envp;
	cs.directory = folder != NULL ? folder : program->directory;
	cs.umask = program->umask;
	cs.no_new_privs = program->no_new_privs;
	cs.fd[1] = out[1];
	cs.fd[2] = err[1];
	run->started = run->looked = clock_mono();
	run->deadline = run->started + run->timeout;
	error = child_start(&run->child, &cs, &step);
	FAULT(HANDLER_STARTED);
	if (error != 0)
		goto fail;

	run_close((const int[]){ cs.fd[0], cs.held, out[1], err[1] }, 4);
	free(folder);
	run->out = out[0];
	run->err = err[0];
	return run;
fail:
	if (error == 0)
		error = errno;
	run_why(step, &cs, error, why, sizeof(why));
	log_event(LOG_ERROR, "handler-not-started", spec->log,
	    LOG_S("program", program->argv.item[0]), LOG_S("step", step),
	    LOG_S("error", strerror(error)), LOG_S("why", why));
	run_close((const int[]){ cs.fd[0], cs.held }, 2);
	run_close(out, 2);
	run_close(err, 2);
	free(folder);
	if (run != NULL)
		errlog_free(&run->errlog);
	free(run);
	facts->end = RUN_NOT_STARTED;
	facts->error = run_error(step, program, error);
	return NULL;
}
