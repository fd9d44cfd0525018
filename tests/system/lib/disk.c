/*
 * A library to preload: a disk that hangs.  While there is a file with the name
 * that DISK_HANGS has, no sync ends; its first byte says that one waits.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int
fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	const char *name = getenv("DISK_HANGS");
	int hangs;

	while (name != NULL && (hangs = open(name, O_WRONLY)) != -1) {
		(void)!write(hangs, "x", 1);
		close(hangs);
		usleep(2000);
	}
	return real(fd);
}
