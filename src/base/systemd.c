/*
 * The protocol between systemd and a service: variables in the environment,
 * and datagrams to a socket.  This file knows no listening socket and nothing
 * of the daemon.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ascii.h"
#include "systemd.h"

#define MESSAGE_MAX 1024

int
systemd_descriptors(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t other, n = 0;

	/* If LISTEN_PID is another process, the variables were inherited by
	 * mistake. */
	if (pid != NULL && fds != NULL && ascii_number(pid, &other) &&
	    other == getpid() && !ascii_number(fds, &n))
		n = -1;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return n <= INT32_MAX - SYSTEMD_FIRST ? (int)n : -1;
}

void
systemd_notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char text[MESSAGE_MAX];
	size_t len;
	va_list ap;
	int fd;

	if (path == NULL || (*path != '/' && *path != '@') ||
	    (len = strlen(path)) >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (*path == '@') /* an abstract name */
		addr.sun_path[0] = '\0';
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return;
	(void)sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
	    (const struct sockaddr *)&addr,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}
