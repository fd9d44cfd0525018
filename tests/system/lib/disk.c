/*
 * A library to preload: a disk that hangs, or fails.  While there is a file of
 * the name that DISK_HANGS has, no sync ends; its first byte says that one
 * waits.  While there is one of the name that DISK_FAILS has, each sync fails;
 * one of the name that DISK_FAILS_ONCE has is removed by a sync that fails,
 * after as many that do not as it has bytes.
 */
#define _GNU_SOURCE

#include <sys/stat.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int
fails_once(const char *name)
{
	static off_t passed;
	struct stat st;

	if (name == NULL || stat(name, &st) == -1)
		return 0;
	if (passed < st.st_size) {
		passed++;
		return 0;
	}
	passed = 0;
	return unlink(name) == 0;
}

int
fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	const char *name = getenv("DISK_HANGS");
	const char *fails = getenv("DISK_FAILS");
	int hangs;

	while (name != NULL && (hangs = open(name, O_WRONLY)) != -1) {
		(void)!write(hangs, "x", 1);
		close(hangs);
		usleep(2000);
	}
	if ((fails != NULL && access(fails, F_OK) == 0) ||
	    fails_once(getenv("DISK_FAILS_ONCE"))) {
		errno = EIO;
		return -1;
	}
	return real(fd);
}
