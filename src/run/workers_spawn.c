/*
 * How each process starts, which the spawner does, and how it ends.
 *
 * A process that is not needed any more gets SIGTERM, kill_after later SIGKILL,
 * and is given up RUN_GRACE after that, as a program that runs for one request.
 * Only a free process is ended here; a run ends its own.
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
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cgienv.h"
#include "clock.h"
#include "fault.h"
#include "log.h"
#include "progcheck.h"
#include "run.h"
#include "run_impl.h"
#include "spool.h"
#include "workers.h"
#include "workers_impl.h"

/* A process has one connection at a time. */
#define BACKLOG 4

/* --- the start ---------------------------------------------------------- */

/* Makes a listening socket without a name: *address is a descriptor to connect
 * by.  Returns the socket; -1, errno and why. */
static int
open_socket(int *address, char why[RUN_WHY])
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
		(void)progcheck_fail(why, RUN_WHY,
		    "%s: no socket could be made in this folder (TMPDIR)",
		    spool_default_dir());
	errno = error;
	return fd;
}

/* Starts the child.  Returns 0, or an errno value. */
static int
start_child(struct workers_process *p, const struct workers_mark *mark,
    const char **step, char why[RUN_WHY])
{
	struct child_spec cs = { .fd = { -1, -1, -1 }, .held = mark->held };
	struct cgienv env = { 0 };
	int pipe[2] = { -1, -1 }, error = 0;

	*step = "open";
	if (cgienv_make_worker(p->program, mark->token, environ, &env) != RC_OK)
		return ENOMEM;
	if ((p->listener = open_socket(&p->address, why)) == -1 ||
	    (cs.fd[0] = fcntl(p->listener, F_DUPFD_CLOEXEC, 3)) == -1 ||
	    run_open_stderr(pipe) == -1 ||
	    (cs.fd[2] = fcntl(pipe[1], F_DUPFD_CLOEXEC, 3)) == -1)
		error = errno;
	else {
		cs.envp = env.envp;
		cs.fd[1] = pipe[1];
		error = run_spawn(&p->child, p->program, &cs, step, why);
	}
	run_close((const int[]){ cs.fd[0], pipe[1], cs.fd[2] }, 3);
	p->err = pipe[0];
	cgienv_free(&env);
	return error;
}

bool
workers_is_tracked(const struct workers_process *p)
{
	return p->program->tracked;
}

pid_t
workers_start(struct workers_process *p, const struct workers_mark *mark)
{
	const char *step = "lock";
	char why[RUN_WHY] = "its lock file could not be made";
	int error = EIO;

	if (mark != NULL) {
		*why = '\0';
		p->lock = mark->lock;
		error = start_child(p, mark, &step, why);
	}
	FAULT(PROCESS_STARTED);
	if (error == 0) {
		log_event(LOG_INFO, "process-started", NULL,
		    LOG_S("program", p->program->argv.item[0]),
		    LOG_I("pid", p->child.pid));
		return p->child.pid;
	}
	p->error = run_not_started(p->program, step, error, why, NULL);
	return -1;
}

static void
start(struct helpers_task *t)
{
	struct workers_process *p = OWNER(t, struct workers_process, task);

	workers_all.owner.start(workers_all.owner.arg, p);
}

static void
start_failed(struct workers_process *p)
{
	p->state = WORKERS_GONE;
	p->pool->n--;
	workers_failed(p->pool, p->error);
}

static void
child_started(struct helpers_task *t)
{
	struct workers_process *p = OWNER(t, struct workers_process, task);

	p->pool->starting = false;
	if (p->error != 0)
		start_failed(p);
	else if (workers_watch(p) != RC_OK) {
		child_signal(&p->child, SIGKILL);
		workers_unwatch(p);
		(void)child_reap(&p->child);
		p->error = ENOMEM;
		start_failed(p);
	} else if ((p->exited = child_exited(&p->child)) || p->old ||
	    !workers_is_wanted(p->pool))
		p->state = WORKERS_SPENT;
	else
		workers_offer(p);
	workers_wake();
}

/* --- the end ------------------------------------------------------------ */

void
workers_log_end(const struct workers_process *p, pid_t pid, int status,
    const char *why, const struct log_request *log)
{
	log_event(LOG_INFO, "process-ended", log,
	    LOG_S("program", p->program->argv.item[0]), LOG_I("pid", pid),
	    LOG_I("exit", status >= 0 ? status : 0),
	    LOG_I("signal", status < 0 ? -status : 0), LOG_S("why", why));
}

/* It has exited by itself, or after SIGTERM. */
static void
reap_child(struct workers_process *p)
{
	const bool by_itself =
	    p->state == WORKERS_FREE || p->state == WORKERS_SPENT;
	struct workers_pool *pool = p->pool;
	struct workers_process **at;
	const pid_t pid = p->child.pid;
	int status;

	for (at = &pool->free; *at != NULL; at = &(*at)->next_free)
		if (*at == p) {
			*at = p->next_free;
			break;
		}
	workers_read_stderr(p, &p->errlog);
	/* No process of its group may go on. */
	child_signal(&p->child, SIGKILL);
	workers_unwatch(p);
	status = run_reap(&p->child, false, NULL);
	workers_log_end(p, pid, status,
	    p->why != NULL  ? p->why
		: by_itself ? "it ended by itself"
			    : "",
	    NULL);
	p->state = WORKERS_GONE;
	if (!by_itself)
		return;
	pool->n--;
	/* One that has had no request has ended at its start. */
	if (p->requests == 0)
		workers_failed(pool, ECONNREFUSED);
}

/* What is next for a process whose deadline is past. */
static void
end_harder(struct workers_process *p, int64_t now)
{
	if (p->state == WORKERS_ENDING) {
		child_signal(&p->child, SIGKILL);
		p->state = WORKERS_KILLED;
		p->deadline = now + RUN_GRACE;
		return;
	}
	workers_unwatch(p);
	(void)run_reap(&p->child, true, NULL);
	p->state = WORKERS_GONE;
}

/* Moves it on.  Returns when to look again. */
static int64_t
look_at(struct workers_process *p, int64_t now)
{
	if (p->state == WORKERS_SPENT && !p->exited) {
		child_signal(&p->child, SIGTERM);
		p->pool->n--;
		p->state = WORKERS_ENDING;
		p->deadline = now + run_patience(p->program->kill_after);
	}
	if (p->exited && p->state != WORKERS_BUSY && p->state < WORKERS_GONE)
		reap_child(p);
	if (p->state != WORKERS_ENDING && p->state != WORKERS_KILLED)
		return INT64_MAX;
	if (now >= p->deadline)
		end_harder(p, now);
	return p->state == WORKERS_GONE ? now : p->deadline;
}

/* --- what is to be done --------------------------------------------------- */

static struct workers_process *
new_process(struct workers_pool *pool)
{
	struct workers_process *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		workers_failed(pool, ENOMEM);
		return NULL;
	}
	p->pool = pool;
	p->conf = conf_ref(pool->conf);
	p->program = pool->program;
	p->state = WORKERS_NEW;
	p->listener = p->address = p->err = -1;
	p->child.pid = p->child.pidfd = -1;
	errlog_init(&p->errlog, NULL, NULL);
	p->next = pool->all;
	pool->all = p;
	pool->n++;
	return p;
}

static void
forget_process(struct helpers_task *t)
{
	struct workers_process *p = OWNER(t, struct workers_process, task);

	if (p->lock != 0)
		workers_all.owner.forget(workers_all.owner.arg, p->lock);
}

static void
child_forgotten(struct helpers_task *t)
{
	struct workers_process *p = OWNER(t, struct workers_process, task);
	struct workers_process **at = &p->pool->all;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	run_close((const int[]){ p->listener, p->address, p->err }, 3);
	errlog_end(&p->errlog);
	errlog_free(&p->errlog);
	conf_unref(p->conf);
	free(p);
	workers_wake();
}

static void
ask_spawner(struct workers_process *p, void (*work)(struct helpers_task *t),
    void (*done)(struct helpers_task *t))
{
	p->task = (struct helpers_task){ .work = work, .done = done };
	helpers_ask(workers_all.spawner, &p->task);
}

/* Does what is to be done for that pool; *until: when to look again at most. */
static void
look_at_pool(struct workers_pool *pool, int64_t *until)
{
	const int64_t now = clock_mono();
	struct workers_process *p;
	int64_t next;

	for (p = pool->all; p != NULL; p = p->next) {
		next = look_at(p, now);
		if (next < *until)
			*until = next;
		if (p->state == WORKERS_GONE) {
			p->state = WORKERS_FORGET;
			ask_spawner(p, forget_process, child_forgotten);
		}
	}
	if (pool->starting || !workers_is_wanted(pool) ||
	    pool->n >= pool->program->processes)
		return;
	if (pool->next_start > now) {
		if (pool->next_start < *until)
			*until = pool->next_start;
	} else if ((p = new_process(pool)) != NULL) {
		pool->starting = true;
		ask_spawner(p, start, child_started);
	} else if (pool->next_start < *until)
		*until = pool->next_start;
}

static void
look_at_all(struct loop_timer *t)
{
	struct workers_pool **at = &workers_all.pools, *pool;
	int64_t until = INT64_MAX;

	while ((pool = *at) != NULL) {
		look_at_pool(pool, &until);
		if (pool->dropped && pool->all == NULL &&
		    pool->waiters == NULL) {
			*at = pool->next;
			workers_free_pool(pool);
		} else
			at = &pool->next;
	}
	if (workers_all.ended != NULL && workers_all.pools == NULL)
		workers_all.ended(workers_all.ended_arg);
	else
		loop_set(workers_all.loop, t, until);
}

enum rc
workers_open(const struct workers_owner *owner)
{
	workers_all = (struct workers_all){ .owner = *owner,
		.loop = owner->runs->loop,
		.timer = { .due = look_at_all } };
	return helpers_open(
	    &workers_all.spawner, workers_all.loop, "spawner", 1);
}

struct runs *
workers_runs(void)
{
	return workers_all.owner.runs;
}
