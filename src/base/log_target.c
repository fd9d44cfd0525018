/*
 * Where lines go: standard error (log_sink.c), syslog, or a file.
 *
 * The descriptors are opened by one thread and used by all without a lock, so
 * a descriptor that is in use is never closed: a new file takes its number
 * (dup3()).
 *
 * syslog(3) of the C library waits without end for a daemon that has stopped
 * reading, and holds a lock meanwhile.  So lines are sent here, as datagrams to
 * /dev/log in the format of RFC 3164, with a limit of the wait.  The socket is
 * not connected, so a restart of the daemon needs nothing.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "log_sink.h"

#include "log_target.h"

/* As in log_sink.c: how long (ms) a line waits for a slow reader, and how long
 * no line waits after one has waited in vain. */
#define READER_WAIT  100
#define READER_PAUSE 10000

/* LOG_DAEMON of syslog(3), without its names: they are those of log.h. */
#define FACILITY (3 << 3)

#define SYSLOG "/dev/log"

enum kind { KIND_STDERR, KIND_SYSLOG, KIND_FILE };

static atomic_int kind = KIND_STDERR;
static atomic_int file_fd = -1, syslog_fd = -1;

/* Only a part of the last line in the file was written: the disk is full. */
static atomic_bool torn;

/* No line waits for syslog before this time (ms, mono). */
static atomic_int_least64_t no_wait_before;

static bool
target_write_file(const char *text, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = write(atomic_load(&file_fd), text + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (done > 0)
		atomic_store(&torn, done < len);
	return done == len;
}

/* RFC 3164, section 4.1, without the name of the host, as to the local
 * daemon. */
static bool
write_syslog(enum log_level level, const char *line, size_t len)
{
	static const struct sockaddr_un address = { .sun_family = AF_UNIX,
		.sun_path = SYSLOG };
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
	    "<%d>%s %.16s[%ld]: ", FACILITY | log_target_priority(level), date,
	    program_invocation_short_name, (long)getpid());
	if (clock_mono() < atomic_load(&no_wait_before))
		flags |= MSG_DONTWAIT;
	do
		n = sendmsg(atomic_load(&syslog_fd), &message, flags);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN && (flags & MSG_DONTWAIT) == 0)
		atomic_store(&no_wait_before, clock_mono() + READER_PAUSE);
	return n != -1;
}

bool
log_target_write(enum log_level level, const char *line, size_t len)
{
	switch ((enum kind)atomic_load(&kind)) {
	case KIND_STDERR:
		break;
	case KIND_SYSLOG:
		return write_syslog(level, line, len);
	case KIND_FILE:
		if (atomic_load(&torn) && !target_write_file("\n", 1))
			return false;
		return target_write_file(line, len);
	}
	return log_sink_write(line, len);
}

bool
log_target_has_time(void)
{
	return atomic_load(&kind) == KIND_SYSLOG ||
	    (atomic_load(&kind) == KIND_STDERR && log_sink_journal());
}

bool
log_target_is_stderr(void)
{
	return atomic_load(&kind) == KIND_STDERR;
}

int
log_target_priority(enum log_level level)
{
	static const int priority[] = {
		[LOG_DEBUG] = 7, [LOG_INFO] = 6, [LOG_WARN] = 4, [LOG_ERROR] = 3
	};

	return priority[level];
}

/* --- opening ------------------------------------------------------------ */

/* Makes fd the descriptor of a target. */
static bool
install(atomic_int *target, int fd)
{
	int old = atomic_load(target);
	bool done;

	if (old == -1) {
		atomic_store(target, fd);
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

	if (atomic_load(&syslog_fd) != -1)
		return true;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	return install(&syslog_fd, fd);
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

/* Opens the folder of a file, and sets *base to the file's name in it; -1: see
 * errno. */
static int
open_folder(const char *name, const char **base)
{
	const char *slash = strrchr(name, '/');
	char path[PATH_MAX];
	int n;

	*base = slash != NULL ? slash + 1 : name;
	n = snprintf(path, sizeof(path), "%.*s.", (int)(*base - name), name);
	errno = ENAMETOOLONG;
	return (size_t)n < sizeof(path)
	    ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
	    : -1;
}

/* The file in the folder, if it may be a log; -1: see errno.  O_NONBLOCK: a
 * FIFO without a reader is an error, not a wait. */
static int
open_log(int folder, const char *base, bool create)
{
	struct stat file, home;
	int error, fd;

	fd = openat(folder, base,
	    O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
		O_NOFOLLOW | (create ? O_CREAT : 0),
	    0640);
	if (fd == -1)
		return -1;
	if (fstat(fd, &file) == 0 && fstat(folder, &home) == 0) {
		if (log_may_be(&file, &home))
			return fd;
		errno = EPERM;
	}
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static bool
target_open_file(const char *name, bool create)
{
	const char *base;
	int error, fd, folder = open_folder(name, &base);

	if (folder == -1)
		return false;
	fd = open_log(folder, base, create);
	error = errno;
	close(folder);
	errno = error;
	if (fd == -1)
		return false;
	atomic_store(&torn, false);
	return install(&file_fd, fd);
}

int
log_target_open(const char *target, bool create)
{
	enum kind to = KIND_FILE;

	if (strcmp(target, "stderr") == 0)
		to = KIND_STDERR;
	else if (strcmp(target, "syslog") == 0)
		to = KIND_SYSLOG;
	if ((to == KIND_SYSLOG && !open_syslog()) ||
	    (to == KIND_FILE && !target_open_file(target, create)))
		return errno;
	atomic_store(&kind, to);
	return 0;
}

void
log_target_close(void)
{
	atomic_store(&kind, KIND_STDERR);
	if (atomic_load(&file_fd) != -1)
		close(atomic_exchange(&file_fd, -1));
	if (atomic_load(&syslog_fd) != -1)
		close(atomic_exchange(&syslog_fd, -1));
}
