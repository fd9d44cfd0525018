/*
 * Files and pipes for handlers.  This file knows no process.
 */
#include "config.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "plumb.h"

int
plumb_body(const void *body, size_t len, int fd)
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
plumb_pipe(int fds[2])
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

void
plumb_close(const int *fds, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (fds[i] != -1)
			close(fds[i]);
	}
}
