/*
 * The start of a process that stays: its socket, its pipe, and its child.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cgienv.h"
#include "fault.h"
#include "log.h"
#include "progcheck.h"
#include "run_impl.h"
#include "spool.h"
#include "workers_impl.h"

/* A process has one connection at a time. */
#define BACKLOG 4

/* Makes a listening socket without a name: *address is a descriptor to connect
 * by.  Returns the socket; -1, errno and why. */
static int
open_socket(int *address, char *why, size_t size)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char folder[PATH_MAX];
	int fd = -1, dir = -1, error = 0;
	bool made;

	*address = -1;
	snprintf(
	    folder, sizeof(folder), "%s/oncewrap.XXXXXX", spool_default_dir());
	made = mkdtemp(folder) != NULL;
	if (!made)
		goto out;
	/* By the folder's descriptor: its name may be too long for a socket. */
	if ((dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1 ||
	    (fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1)
		goto out;
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/s", dir);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == -1 ||
	    listen(fd, BACKLOG) == -1)
		goto out;
	*address = openat(dir, "s", O_PATH | O_NOFOLLOW | O_CLOEXEC);
out:
	error = errno;
	if (dir != -1)
		(void)unlinkat(dir, "s", 0);
	if (made)
		(void)rmdir(folder);
	if (*address == -1 && fd != -1) {
		close(fd);
		fd = -1;
	}
	if (dir != -1)
		close(dir);
	if (fd == -1)
		(void)progcheck_fail(why, size,
		    "%s: no socket could be made in this folder (TMPDIR)",
		    spool_default_dir());
	errno = error;
	return fd;
}

static bool
watch(struct workers_process *p, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
		.data.ptr = p };

	return epoll_ctl(workers_all.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Starts the child.  Returns 0, or an errno value. */
static int
start_child(struct workers_process *p, const struct workers_mark *mark,
    const char **step, char *why, size_t size)
{
	const struct conf_program *program = p->program;
	struct child_spec cs;
	struct cgienv env = { 0 };
	struct user user;
	char *folder = NULL;
	int pipe[2] = { -1, -1 }, copy = -1, error = 0;

	memset(&cs, 0, sizeof(cs));
	cs.fd[0] = cs.held = -1;
	*step = "open";
	if (run_is_draining())
		return ESHUTDOWN;
	if (!run_find_user(program, &user, &cs.user, why, size)) {
		*step = "user";
		return EINVAL;
	}
	if (cgienv_make_worker(program, mark->token, environ, &env) != RC_OK)
		return ENOMEM;
	if ((program->directory == NULL &&
		(folder = run_folder_of(program->argv.item[0])) == NULL) ||
	    (mark->held != -1 &&
		(cs.held = fcntl(
		     mark->held, F_DUPFD_CLOEXEC, CHILD_HELD + 1)) == -1) ||
	    (p->listener = open_socket(&p->address, why, size)) == -1 ||
	    (cs.fd[0] = fcntl(p->listener, F_DUPFD_CLOEXEC, 3)) == -1 ||
	    run_open_pipe(pipe) == -1 ||
	    (copy = fcntl(pipe[1], F_DUPFD_CLOEXEC, 3)) == -1)
		error = errno;
	if (error == 0) {
		cs.argv = program->argv.item;
		cs.envp = env.envp;
		cs.directory = folder != NULL ? folder : program->directory;
		cs.umask = program->umask;
		cs.no_new_privs = program->no_new_privs;
		cs.fd[1] = pipe[1];
		cs.fd[2] = copy;
		error = child_start(&p->child, &cs, step);
		if (error != 0)
			run_why(*step, &cs, error, why, size);
	}
	run_close((const int[]){ cs.fd[0], cs.held, pipe[1], copy }, 4);
	p->err = pipe[0];
	free(folder);
	cgienv_free(&env);
	return error;
}

void
workers_close_all(struct workers_process *p)
{
	run_close((const int[]){ p->listener, p->address, p->err }, 3);
	p->listener = p->address = p->err = -1;
}

/* With the lock: the start has failed. */
static void
process_not_started(struct workers_process *p, int error)
{
	workers_close_all(p);
	p->state = WORKERS_GONE;
	p->pool->n--;
	workers_failed(p->pool, error);
}

pid_t
workers_start(struct workers_process *p, const struct workers_mark *mark)
{
	const char *program = p->program->argv.item[0];
	const char *step = "lock";
	char why[1024] = "its lock file could not be made";
	int error = EIO;

	if (mark != NULL) {
		*why = '\0';
		p->lock = mark->lock;
		error = start_child(p, mark, &step, why, sizeof(why));
	}
	FAULT(PROCESS_STARTED);
	if (error == 0 && (!watch(p, p->child.pidfd) || !watch(p, p->err))) {
		error = errno;
		step = "watch";
		child_signal(&p->child, SIGKILL);
		workers_unwatch(p);
		(void)child_reap(&p->child);
	}
	if (error == 0) {
		log_event(LOG_INFO, "process-started", NULL,
		    LOG_S("program", program), LOG_I("pid", p->child.pid));
		return p->child.pid;
	}
	run_why(step, NULL, error, why, sizeof(why));
	log_event(LOG_ERROR, "handler-not-started", NULL,
	    LOG_S("program", program), LOG_S("step", step),
	    LOG_S("error", strerror(error)), LOG_S("why", why));
	lock_take(&workers_all.lock);
	process_not_started(p, run_error(step, p->program, error));
	lock_give(&workers_all.lock);
	return -1;
}

void
workers_ready(struct workers_process *p)
{
	struct workers_waiter *next = NULL;

	lock_take(&workers_all.lock);
	assert(p->state == WORKERS_NEW);
	if (p->old || p->exited || !workers_is_wanted(p->pool))
		p->state = WORKERS_SPENT;
	else
		next = workers_offer(p);
	lock_give(&workers_all.lock);
	workers_tell(next);
}
