/*
 * Lines on standard error, and what happens if no process reads them there.
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
#include <sys/types.h>
#include <unistd.h>

#include "clock.h"

#include "log.h"
#include "log_target.h"
#include "thread.h"

#include "log_sink.h"

/* A pipe takes up to PIPE_BUF bytes as a whole or not at all. */
_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line is one write to a pipe");

/*
 * READER_WAIT (ms): how long a line waits for a slow reader.  READER_PAUSE
 * (ms): how long no line waits after one has waited in vain.  So a burst is
 * not lost, and a reader that has stopped costs at most a hundredth of a
 * thread's time.
 */
#define READER_WAIT  100
#define READER_PAUSE 10000

/* How long the last lines may take to leave the relay (ms). */
#define RELAY_GRACE 500

static struct sink {
	int fd;
	bool is_socket;
	bool journal; /* it takes "<3>" in front of a line as the priority */
	bool relayed; /* fd is a pipe to the relay thread */
	pthread_t relay;
	int relay_from, relay_to; /* relay_to is the real stderr */
	atomic_bool relay_done;
} sink = { .fd = STDERR_FILENO };

/* Only a part of the last line was written. */
static atomic_bool torn;

/* No line waits for the reader before this time (ms, mono). */
static atomic_int_least64_t no_wait_before;

/* Waits until the reader has made room.  False: until is past. */
static bool
wait_for_reader(int64_t until)
{
	struct pollfd p = { .fd = sink.fd, .events = POLLOUT };
	int64_t now = clock_mono();

	if (now < atomic_load(&no_wait_before))
		return false;
	if (now < until && poll(&p, 1, (int)(until - now)) != 0)
		return true; /* EINTR, too: the next write shows it */
	atomic_store(&no_wait_before, clock_mono() + READER_PAUSE);
	return false;
}

/* Writes all of the text.  False: nothing was written, or a part, and torn is
 * set. */
static bool
write_text(const char *text, size_t len)
{
	int64_t until = 0;
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = sink.is_socket ? send(sink.fd, text + done, len - done,
					 MSG_DONTWAIT | MSG_NOSIGNAL)
				   : write(sink.fd, text + done, len - done);
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (until == 0)
			until = clock_mono() + READER_WAIT;
		if (errno != EAGAIN || !wait_for_reader(until))
			break;
	}
	if (done > 0)
		atomic_store(&torn, done < len);
	return done == len;
}

/* Writes a whole line, on a new line even if the last one was cut short. */
bool
log_sink_write(const char *text, size_t len)
{
	if (atomic_load(&torn) && !write_text("\n", 1))
		return false;
	return write_text(text, len);
}

bool
log_sink_journal(void)
{
	return sink.journal;
}

/* --- the beginning and the end ------------------------------------------ */

/* JOURNAL_STREAM is "device:inode" of the stream that systemd made.  It stays
 * in the environment when stderr is redirected, so the numbers are
 * compared. */
static bool
is_journal(const struct stat *st)
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

/* Writes to the real stderr, however long it takes. */
static bool
relay_line(const char *text, size_t len)
{
	struct pollfd p = { .fd = sink.relay_to, .events = POLLOUT };
	ssize_t n;

	while (len > 0) {
		n = write(sink.relay_to, text, len);
		if (n >= 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (errno != EINTR)
			return false;
	}
	return true;
}

/* Only whole lines come through the pipe, each shorter than text. */
static void *
relay_main(void *arg)
{
	char text[2 * LOG_LINE_MAX], *end;
	size_t have = 0, len;
	ssize_t n;

	(void)arg;
	while ((n = read(sink.relay_from, text + have, LOG_LINE_MAX)) != 0) {
		if (n == -1)
			continue; /* a signal */
		have += (size_t)n;
		while ((end = memchr(text, '\n', have)) != NULL) {
			len = (size_t)(end - text) + 1;
			if (!relay_line(text, len))
				log_sink_dropped();
			have -= len;
			memmove(text, end + 1, have);
		}
	}
	atomic_store(&sink.relay_done, true);
	return NULL;
}

static int
start_relay(void)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) == -1)
		return errno;
	sink.relay_from = ends[0];
	(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
	sink.relay_to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (sink.relay_to == -1) {
		error = errno;
		close(ends[0]);
		close(ends[1]);
		return error;
	}
	error =
	    thread_start(&sink.relay, "log", THREAD_STACK, relay_main, NULL);
	if (error != 0) {
		close(ends[0]);
		close(ends[1]);
		close(sink.relay_to);
		return error;
	}
	(void)dup2(ends[1], STDERR_FILENO);
	sink.fd = ends[1];
	sink.relayed = true;
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
	sink.journal = is_journal(&st);
	sink.is_socket = S_ISSOCK(st.st_mode);
	if (sink.is_socket && sink.journal)
		(void)setsockopt(STDERR_FILENO, SOL_SOCKET, SO_SNDTIMEO, &wait,
		    sizeof(wait));
	if (sink.is_socket || S_ISREG(st.st_mode))
		return 0;
	if ((fd = open_again(&st)) == -1)
		return start_relay();
	(void)dup2(fd, STDERR_FILENO);
	sink.fd = fd;
	return 0;
}

void
log_stop(void)
{
	int64_t until = clock_mono() + RELAY_GRACE;

	log_target_close();
	if (sink.fd == STDERR_FILENO)
		return;
	close(sink.fd);
	sink.fd = -1; /* later lines are dropped */
	if (!sink.relayed)
		return;
	/* The relay ends when no descriptor of the pipe is left. */
	(void)dup2(sink.relay_to, STDERR_FILENO);
	while (!atomic_load(&sink.relay_done) && clock_mono() < until)
		usleep(5000);
	/* If the relay still waits for the reader, it ends with the
	 * process. */
	if (atomic_load(&sink.relay_done)) {
		pthread_join(sink.relay, NULL);
		close(sink.relay_from);
		close(sink.relay_to);
	}
}
