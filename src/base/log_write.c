/*
 * Lines on standard error, in a file, or to syslog.
 *
 * A reader of stderr that has stopped reading must not stop a thread.  Other
 * processes may share the open file description of stderr, so this process
 * must not set O_NONBLOCK on it.  A socket has MSG_DONTWAIT.  A pipe or a
 * terminal is opened once more, with O_NONBLOCK, which gives a description of
 * our own.  Where that is not allowed (a pipe of another user), lines go into
 * a pipe of our own, and a thread copies them to stderr.  Writes to a regular
 * file do not wait for a reader.
 *
 * The C library writes to descriptor 2 itself, for a failed assertion or a
 * corrupt heap, before it ends the process.  A process that hung there would
 * keep its leases.  So descriptor 2 is replaced by the one that does not wait;
 * systemd's socket, which is no other program's, gets a time limit.
 *
 * syslog(3) of the C library waits without end for a daemon that has stopped
 * reading, and holds a lock meanwhile.  So lines are sent here, as datagrams to
 * /dev/log in the format of RFC 3164, with a limit of the wait.  The socket is
 * not connected, so a restart of the daemon needs nothing.
 *
 * The descriptors are opened by one thread and used by all without a lock, so
 * a descriptor that is in use is never closed: a new file takes its number
 * (dup3()).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "metrics.h"
#include "thread.h"

#include "log.h"

/* A pipe takes up to PIPE_BUF bytes as a whole or not at all. */
_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is one write to a pipe");

/*
 * READER_WAIT (ms): how long a line waits for a slow reader.  READER_PAUSE
 * (ms): how long no line waits after one has waited in vain.  So a burst is
 * not lost, and a reader that has stopped costs at most a five hundredth of
 * a thread's time.  The loop writes lines too, and all requests wait for it.
 */
#define READER_WAIT  20
#define READER_PAUSE 10000

/* How long the last lines may take to leave the relay (ms). */
#define RELAY_GRACE 500

/* LOG_DAEMON of syslog(3), without its names: they are those of log.h. */
#define FACILITY (3 << 3)

static struct target {
	atomic_int fd;
	bool is_socket;
	atomic_bool torn; /* only a part of the last line was written */
	/* no line waits for the reader before this time (ms, mono) */
	atomic_int_least64_t no_wait_before;
} to_stderr = { .fd = STDERR_FILENO }, to_file = { .fd = -1 },
  to_syslog = { .fd = -1, .is_socket = true };

static struct target *_Atomic current = &to_stderr;

static bool is_journal; /* stderr takes "<3>" as the priority */

static struct relay {
	bool on; /* to_stderr.fd is a pipe to the relay thread */
	pthread_t thread;
	int from, to; /* to is the real stderr */
	atomic_bool done;
} relay;

/* Waits until the reader has made room.  False: until is past. */
static bool
wait_for_reader(struct target *t, int64_t until)
{
	struct pollfd p = { .fd = atomic_load(&t->fd), .events = POLLOUT };
	int64_t now = clock_mono();

	if (now < atomic_load(&t->no_wait_before))
		return false;
	if (now < until && poll(&p, 1, (int)(until - now)) != 0)
		return true; /* EINTR, too: the next write shows it */
	atomic_store(&t->no_wait_before, clock_mono() + READER_PAUSE);
	return false;
}

/* Writes all of the text.  False: nothing was written, or a part, and torn is
 * set. */
static bool
write_text(struct target *t, const char *text, size_t len)
{
	const int fd = atomic_load(&t->fd);
	int64_t until = 0;
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = t->is_socket ? send(fd, text + done, len - done,
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				 : write(fd, text + done, len - done);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n == -1 && errno == EINTR)
			continue;
		if (until == 0)
			until = clock_mono() + READER_WAIT;
		if (n == 0 || errno != EAGAIN || !wait_for_reader(t, until))
			break;
	}
	if (done > 0)
		atomic_store(&t->torn, done < len);
	return done == len;
}

/* Writes a whole line, on a new line even if the last one was cut short. */
static bool
write_line(struct target *t, const char *line, size_t len)
{
	if (atomic_load(&t->torn) && !write_text(t, "\n", 1))
		return false;
	return write_text(t, line, len);
}

/* RFC 3164, section 4.1, without the name of the host, as to the local
 * daemon. */
static bool
write_syslog(int priority, const char *line, size_t len)
{
	static const struct sockaddr_un address = { .sun_family = AF_UNIX,
		.sun_path = "/dev/log" };
	char head[64], date[CLOCK_SYSLOG_LEN + 1];
	struct iovec iov[2] = { { .iov_base = head },
		{ .iov_base = (void *)(uintptr_t)line, .iov_len = len - 1 } };
	struct msghdr message = { .msg_name = (void *)(uintptr_t)&address,
		.msg_namelen = sizeof(address),
		.msg_iov = iov,
		.msg_iovlen = 2 };
	int flags = MSG_NOSIGNAL;
	ssize_t n;

	clock_syslog(clock_wall(), date);
	iov[0].iov_len = (size_t)snprintf(head, sizeof(head),
	    "<%d>%s %.16s[%ld]: ", FACILITY | priority, date,
	    program_invocation_short_name, (long)getpid());
	if (clock_mono() < atomic_load(&to_syslog.no_wait_before))
		flags |= MSG_DONTWAIT;
	do
		n = sendmsg(atomic_load(&to_syslog.fd), &message, flags);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN && (flags & MSG_DONTWAIT) == 0)
		atomic_store(
		    &to_syslog.no_wait_before, clock_mono() + READER_PAUSE);
	return n != -1;
}

bool
log_write(int priority, const char *line, size_t len)
{
	struct target *t = atomic_load(&current);

	return t == &to_syslog ? write_syslog(priority, line, len)
			       : write_line(t, line, len);
}

bool
log_write_stderr(const char *line, size_t len)
{
	return write_line(&to_stderr, line, len);
}

bool
log_write_is_stderr(void)
{
	return atomic_load(&current) == &to_stderr;
}

bool
log_write_is_journal(void)
{
	return is_journal;
}

bool
log_write_has_time(void)
{
	const struct target *t = atomic_load(&current);

	return t == &to_syslog || (t == &to_stderr && is_journal);
}

/* --- opening a file or syslog ------------------------------------------- */

/* Makes fd the descriptor of a target. */
static bool
target_install(struct target *t, int fd)
{
	int old = atomic_load(&t->fd);
	bool done;

	atomic_store(&t->torn, false);
	if (old == -1) {
		atomic_store(&t->fd, fd);
		return true;
	}
	done = dup3(fd, old, O_CLOEXEC) != -1;
	close(fd);
	return done;
}

static bool
open_syslog(void)
{
	const struct timeval wait = { .tv_usec = READER_WAIT * 1000 };
	int fd;

	if (atomic_load(&to_syslog.fd) != -1)
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	return target_install(&to_syslog, fd);
}

bool
log_may_be(const struct stat *file, const struct stat *folder)
{
	if (!S_ISREG(file->st_mode) || file->st_nlink != 1)
		return false;
	if (file->st_uid == geteuid() || file->st_uid == 0)
		return true;
	return (folder->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
	    (folder->st_uid == file->st_uid || folder->st_uid == 0);
}

/* Opens the file, if it may be a log.  False: see errno.  O_NONBLOCK: a FIFO
 * without a reader is an error, not a wait. */
static bool
log_write_file(const char *name, bool create)
{
	const char *slash = strrchr(name, '/');
	const char *base = slash != NULL ? slash + 1 : name;
	struct stat st, home;
	char path[PATH_MAX];
	int error, folder, fd = -1;

	if (snprintf(path, sizeof(path), "%.*s.", (int)(base - name), name) >=
	    (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	if ((folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		return false;
	fd = openat(folder, base,
	    O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
		O_NOFOLLOW | (create ? O_CREAT : 0),
	    0640);
	error = errno;
	if (fd != -1 &&
	    (fstat(fd, &st) == -1 || fstat(folder, &home) == -1 ||
		!log_may_be(&st, &home))) {
		error = EPERM;
		close(fd);
		fd = -1;
	}
	close(folder);
	errno = error;
	return fd != -1 && target_install(&to_file, fd);
}

int
log_write_open(const char *target, bool create)
{
	struct target *t = &to_file;

	if (strcmp(target, "stderr") == 0)
		t = &to_stderr;
	else if (strcmp(target, "syslog") == 0)
		t = &to_syslog;
	if ((t == &to_syslog && !open_syslog()) ||
	    (t == &to_file && !log_write_file(target, create)))
		return errno;
	atomic_store(&current, t);
	return 0;
}

void
log_write_close(void)
{
	atomic_store(&current, &to_stderr);
	if (atomic_load(&to_file.fd) != -1)
		close(atomic_exchange(&to_file.fd, -1));
	if (atomic_load(&to_syslog.fd) != -1)
		close(atomic_exchange(&to_syslog.fd, -1));
}

/* --- stderr: the beginning and the end ---------------------------------- */

/* JOURNAL_STREAM is "device:inode" of the stream that systemd made.  It stays
 * in the environment when stderr is redirected, so the numbers are
 * compared. */
static bool
names_journal(const struct stat *st)
{
	const char *text = getenv("JOURNAL_STREAM");
	char ours[64];

	snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)st->st_dev,
	    (uintmax_t)st->st_ino);
	return text != NULL && strcmp(text, ours) == 0;
}

/* Opens the file of stderr again, for a description of its own; -1: not
 * allowed. */
static int
open_again(const struct stat *st)
{
	struct stat again;
	int fd;

	fd = open(
	    "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	if (fstat(fd, &again) == 0 && again.st_dev == st->st_dev &&
	    again.st_ino == st->st_ino)
		return fd;
	close(fd);
	return -1;
}

/* Copies lines to the real stderr, however long each takes. */
static void *
relay_main(void *arg)
{
	struct pollfd p = { .fd = relay.to, .events = POLLOUT };
	char text[LOG_LINE_MAX];
	ssize_t have, n;

	(void)arg;
	while ((have = read(relay.from, text, sizeof(text))) != 0) {
		for (ssize_t done = 0; done < have; done += n) {
			n = write(relay.to, text + done, (size_t)(have - done));
			if (n != -1)
				continue;
			n = 0;
			if (errno == EAGAIN)
				(void)poll(&p, 1, -1);
			else if (errno != EINTR) {
				metrics_count(METRICS_LOG_DROPPED);
				break;
			}
		}
	}
	atomic_store(&relay.done, true);
	return NULL;
}

static int
start_relay(void)
{
	int ends[2], error;

	/* O_DIRECT: a read takes what one write has put, a line. */
	if (pipe2(ends, O_CLOEXEC | O_DIRECT) == -1)
		return errno;
	(void)fcntl(ends[1], F_SETFL, O_NONBLOCK | O_DIRECT);
	relay.from = ends[0];
	relay.to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	error = relay.to == -1 ? errno
			       : thread_start(&relay.thread, "log",
				     THREAD_STACK, relay_main, NULL);
	if (error != 0) {
		close(ends[0]);
		close(ends[1]);
		if (relay.to != -1)
			close(relay.to);
		return error;
	}
	(void)dup2(ends[1], STDERR_FILENO);
	atomic_store(&to_stderr.fd, ends[1]);
	relay.on = true;
	return 0;
}

int
log_start(void)
{
	const struct timeval wait = { .tv_usec = READER_WAIT * 1000 };
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st) == -1)
		return 0; /* there is no stderr: each line is dropped */
	is_journal = names_journal(&st);
	to_stderr.is_socket = S_ISSOCK(st.st_mode);
	if (to_stderr.is_socket && is_journal)
		(void)setsockopt(STDERR_FILENO, SOL_SOCKET, SO_SNDTIMEO, &wait,
		    sizeof(wait));
	if (to_stderr.is_socket || S_ISREG(st.st_mode))
		return 0;
	if ((fd = open_again(&st)) == -1)
		return start_relay();
	(void)dup2(fd, STDERR_FILENO);
	atomic_store(&to_stderr.fd, fd);
	return 0;
}

void
log_stop(void)
{
	int64_t until = clock_mono() + RELAY_GRACE;

	log_write_close();
	if (atomic_load(&to_stderr.fd) == STDERR_FILENO)
		return;
	close(atomic_exchange(&to_stderr.fd, -1)); /* later lines are dropped */
	if (!relay.on)
		return;
	/* The relay ends when no descriptor of the pipe is left. */
	(void)dup2(relay.to, STDERR_FILENO);
	while (!atomic_load(&relay.done) && clock_mono() < until)
		usleep(5000);
	/* If the relay still waits for the reader, it ends with the
	 * process. */
	if (atomic_load(&relay.done)) {
		pthread_join(relay.thread, NULL);
		close(relay.from);
		close(relay.to);
	}
}
