/*
 * Notices that a process has written the database, without reading it.
 *
 * Each commit is written to the write-ahead log, by write(2).  The log stays
 * the same file as long as this process has the database open.
 */
#include "config.h"

#include <sys/inotify.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store_impl.h"

int
sqlite_watch(const struct store *store)
{
	char name[4096];
	int fd;

	if ((size_t)snprintf(name, sizeof(name), "%s-wal", store->file) >=
	    sizeof(name))
		return -1;
	if ((fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) == -1)
		return -1;
	if (inotify_add_watch(fd, name, IN_MODIFY) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

enum rc
sqlite_watch_read(const struct store *store, int fd)
{
	_Alignas(struct inotify_event) char bytes[1024];
	const struct inotify_event *event;
	enum rc rc = RC_NOTFOUND;
	ssize_t n, at;

	(void)store;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (at = 0; at < n;
		     at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const void *)(bytes + at);
			if ((event->mask & IN_IGNORED) != 0)
				return RC_LOST;
		}
		rc = RC_OK;
	}
	return rc;
}
