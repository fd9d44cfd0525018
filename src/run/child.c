/*
 * Children are made by clone(CLONE_VM | CLONE_VFORK), as posix_spawn() does:
 * the cost does not grow with the parent's memory, and the error of a failed
 * exec arrives in a variable.  posix_spawn() itself cannot set a death signal.
 * CLONE_PIDFD leaves no moment at which the pid could be another process's.
 *
 * Between clone and exec the child shares the parent's memory and runs on a
 * stack of its own, so it makes only system calls.  Two kinds are made by
 * number: those that glibc would broadcast to all threads (setuid and its
 * kin), and those that ThreadSanitizer would take for the parent's (dup2).
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/close_range.h>

#include "child.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* On 32-bit machines the calls without a suffix take 16-bit ids. */
#ifdef SYS_setgroups32
#define NR_SETFSUID  SYS_setfsuid32
#define NR_SETGROUPS SYS_setgroups32
#define NR_SETRESGID SYS_setresgid32
#define NR_SETRESUID SYS_setresuid32
#else
#define NR_SETFSUID  SYS_setfsuid
#define NR_SETGROUPS SYS_setgroups
#define NR_SETRESGID SYS_setresgid
#define NR_SETRESUID SYS_setresuid
#endif

#if defined(__clang__)
#define CHILD_SIDE __attribute__((disable_sanitizer_instrumentation))
#else
#define CHILD_SIDE __attribute__((no_sanitize("address", "thread")))
#endif

/*
 * ThreadSanitizer takes clone() for fork(): it resets its data about our
 * threads, in memory that the child still shares.
 */
#if defined(__SANITIZE_THREAD__)
#define CHILD_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_TSAN
#endif
#endif
#ifdef CHILD_TSAN
int __clone(int (*)(void *), void *, int, void *, ...);
#define clone __clone
#endif

struct birth {
	const struct child_spec *spec;
	pid_t parent;
	/* written by the child, read after the exec or exit */
	volatile int error;
	const char *volatile step;
};

/*
 * Added to the oom_score_adj of this process for its children.  It counts in
 * thousandths of the memory: while this process takes less than half of it
 * more than a child, the kernel's OOM killer takes the child.  The units lower
 * this process by as much, so that children are as any other process there.
 */
#define OOM_RAISE 500
#define OOM_MOST  1000
static const char oom_path[] = "/proc/self/oom_score_adj";
static char oom_score[12]; /* of children; "": without /proc they stay as is */

/* The soft RLIMIT_NOFILE at the start: programs that use select(2) rely on
 * it. */
static rlim_t descriptors;

static void
read_oom_score(void)
{
	FILE *file = fopen(oom_path, "re");
	int score;

	if (file == NULL)
		return;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel has written it */
	if (fscanf(file, "%d", &score) == 1) {
		score += OOM_RAISE;
		snprintf(oom_score, sizeof(oom_score), "%d",
		    score < OOM_MOST ? score : OOM_MOST);
	}
	fclose(file);
}

int
child_init(void)
{
	int fd, sig;
	struct sigaction sa;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		return errno;
	descriptors = limit.rlim_cur;
	read_oom_score();
	do {
		if ((fd = open("/dev/null", O_RDWR)) == -1)
			return errno;
	} while (fd <= STDERR_FILENO);
	close(fd);
	/* By number: musl has no close_range(). */
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U,
		CLOSE_RANGE_CLOEXEC) == -1)
		return errno;

	/* exec resets handled signals, but ignored ones stay ignored. */
	for (sig = 1; sig <= SIGRTMAX; sig++) {
		if (sigaction(sig, NULL, &sa) == -1 || sa.sa_handler != SIG_IGN)
			continue;
		memset(&sa, 0, sizeof(sa));
		sa.sa_handler = SIG_DFL;
		if (sigaction(sig, &sa, NULL) == -1)
			return errno;
	}
	return 0;
}

CHILD_SIDE static int
become(const struct user *user)
{
	if (syscall(NR_SETGROUPS, user->ngroups, user->groups) == -1 ||
	    syscall(NR_SETRESGID, user->gid, user->gid, user->gid) == -1 ||
	    syscall(NR_SETRESUID, user->uid, user->uid, user->uid) == -1)
		return -1;
	return 0;
}

/*
 * Drops the daemon's capabilities: ambient ones outlive an exec, and
 * inheritable ones turn effective in a program with a file that asks for them.
 * A change from one user to another, with CAP_SETUID and without root, clears
 * none of the sets.  exec gives root its rights anew, so of root's own only
 * the inheritable set is emptied: root must still be able to enter its folder.
 */
CHILD_SIDE static int
drop_capabilities(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	bool root = geteuid() == 0, any = false;
	int i;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1 ||
	    syscall(SYS_capget, &head, sets) == -1)
		return -1;
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		any = any || sets[i].inheritable != 0 ||
		    (!root && sets[i].permitted != 0);
		sets[i].inheritable = 0;
		if (!root)
			sets[i].permitted = sets[i].effective = 0;
	}
	/* A filter of system calls may refuse capset(2); without capabilities
	 * it is not needed. */
	return any ? (int)syscall(SYS_capset, &head, sets) : 0;
}

/*
 * Memory that runs out should cost a program and not the daemon.
 *
 * A child that became another user has made the memory of this process, which
 * it shared, undumpable, and so root the owner of its files in /proc.  This
 * process has the right to act as root in the file system then.
 */
CHILD_SIDE static void
raise_oom_score(void)
{
	const int flags = O_WRONLY | O_CLOEXEC;
	const uid_t uid = geteuid();
	long fd = syscall(SYS_openat, AT_FDCWD, oom_path, flags);

	if (fd == -1 && errno == EACCES) {
		(void)syscall(NR_SETFSUID, 0);
		fd = syscall(SYS_openat, AT_FDCWD, oom_path, flags);
		(void)syscall(NR_SETFSUID, uid);
	}
	(void)syscall(SYS_write, fd, oom_score, sizeof(oom_score));
	(void)syscall(SYS_close, fd);
}

/* The child's side: it returns only if a step failed. */
CHILD_SIDE static int
child_side(void *arg)
{
	struct birth *birth = arg;
	const struct child_spec *spec = birth->spec;
	struct rlimit limit;
	sigset_t none;
	int i;

	birth->step = "setsid";
	if (setsid() == -1)
		goto fail;
	raise_oom_score();
	birth->step = "dup2";
	for (i = 0; i < 3; i++) {
		if (syscall(SYS_dup3, spec->fd[i], i, 0) == -1)
			goto fail;
	}
	if (spec->held != -1 && dup2(spec->held, CHILD_HELD) == -1)
		goto fail;
	birth->step = "setrlimit";
	/* The hard limit may have been lowered meanwhile. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		goto fail;
	if (limit.rlim_cur > descriptors) {
		limit.rlim_cur = descriptors;
		if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
			goto fail;
	}
	if (spec->umask != -1)
		umask((mode_t)spec->umask);
	birth->step = "setuid";
	if (spec->user != NULL && spec->user->change &&
	    become(spec->user) == -1)
		goto fail;
	birth->step = "capset";
	if (drop_capabilities() == -1)
		goto fail;
	/* This runs as the handler's user, which must be able to enter it. */
	birth->step = "chdir";
	if (spec->directory != NULL && chdir(spec->directory) == -1)
		goto fail;

	/* A change of ids clears the death signal, so it is set after that.  A
	 * parent that died earlier could not send it any more. */
	birth->step = "prctl";
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		goto fail;
	if (getppid() != birth->parent)
		_exit(127);
	if (spec->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		goto fail;

	birth->step = "sigprocmask";
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) == -1)
		goto fail;
	birth->step = "exec";
	execve(spec->argv[0], spec->argv, spec->envp);
fail:
	birth->error = errno;
	_exit(127);
}

/* --- children that could not be ended ----------------------------------- */

/* Their descriptors; 0: a free place.  Without one the process stays a zombie
 * until this process ends. */
static atomic_int abandoned[64];

static void
add_abandoned(int pidfd)
{
	int none;

	for (size_t i = 0; i < sizeof(abandoned) / sizeof(abandoned[0]); i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&abandoned[i], &none, pidfd))
			return;
	}
	close(pidfd);
}

static bool
is_reaped(int pidfd)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) == -1)
		return errno != EINTR;
	return info.si_pid != 0;
}

static void
reap_abandoned(void)
{
	int pidfd;

	for (size_t i = 0; i < sizeof(abandoned) / sizeof(abandoned[0]); i++) {
		if (atomic_load(&abandoned[i]) == 0 ||
		    (pidfd = atomic_exchange(&abandoned[i], 0)) == 0)
			continue;
		if (is_reaped(pidfd))
			close(pidfd);
		else
			add_abandoned(pidfd);
	}
}

void
child_abandon(struct child *child)
{
	reap_abandoned();
	add_abandoned(child->pidfd);
	child->pidfd = -1;
	child->pid = -1;
}

int
child_start(
    struct child *child, const struct child_spec *spec, const char **step)
{
	_Alignas(16) char stack[16 * 1024];
	struct birth birth;
	sigset_t all, saved;
	int error, i, pidfd;
	pid_t pid;

	/* No descriptor is overwritten before it is used, nor left
	 * close-on-exec. */
	for (i = 0; i < 3; i++)
		assert(spec->fd[i] > STDERR_FILENO);
	assert(spec->held == -1 || spec->held > CHILD_HELD);
	reap_abandoned();
	birth.spec = spec;
	birth.parent = getpid();
	birth.error = 0;
	birth.step = "clone";

	/* No signal handler of ours may run in the child while it shares
	 * memory. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	pidfd = -1;
	pid = clone(child_side, stack + sizeof(stack),
	    CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &birth, &pidfd);
	error = pid == -1 ? errno : birth.error;
	pthread_sigmask(SIG_SETMASK, &saved, NULL);

	*step = birth.step;
	if (pid == -1)
		return error;
	child->pid = pid;
	child->pidfd = pidfd;
	if (error != 0)
		(void)child_reap(child);
	return error;
}

void
child_signal(const struct child *child, int sig)
{
	assert(child->pid > 1);
	/* Unreaped, the leader keeps the group's number from being reused. */
	(void)kill(-child->pid, sig);
}

bool
child_exited(const struct child *child)
{
	struct pollfd pfd;

	pfd.fd = child->pidfd;
	pfd.events = POLLIN;
	return poll(&pfd, 1, 0) == 1;
}

int
child_reap(struct child *child)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	while (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED) == -1)
		assert(errno == EINTR);
	close(child->pidfd);
	child->pidfd = -1;
	child->pid = -1;
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}
