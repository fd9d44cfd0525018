/*
 * Which process holds a lock on a file, as the kernel reports it (proc(5),
 * locks).  Unlike fcntl(2) it needs no descriptor of the file: closing one
 * again would drop the locks that this process has on it.
 */
#ifndef PROCLOCKS_H
#define PROCLOCKS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

struct proclocks {
	ino_t ino;
	dev_t dev;     /* 0: any; stat(2) may report another */
	bool write;    /* a lock for writing, else any */
	uint64_t byte; /* this byte is locked */
};

/* Another process that holds such a POSIX lock; 0: none is known. */
pid_t proclocks_holder(const struct proclocks *what);

#endif
