/*
 * Preloaded: each sync takes SLOWSYNC_MS (10) longer, as on an SD card.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int sync_file(int);
typedef int sync_range(int, off64_t, off64_t, unsigned);

static sync_file *next_fsync, *next_fdatasync;
static sync_range *next_range;
static struct timespec delay;

/* A cast between pointers to an object and to a function is not C. */
static void
find(void *pointer, const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	memcpy(pointer, &next, sizeof(next));
}

__attribute__((constructor)) static void
begin(void)
{
	const char *text = getenv("SLOWSYNC_MS");
	long ms = text == NULL ? 10 : atol(text);

	delay.tv_sec = ms / 1000;
	delay.tv_nsec = ms % 1000 * 1000000;
	find(&next_fsync, "fsync");
	find(&next_fdatasync, "fdatasync");
	find(&next_range, "sync_file_range");
}

static void
wait_longer(void)
{
	struct timespec rest = delay;

	while (nanosleep(&rest, &rest) != 0)
		;
}

int
fsync(int fd)
{
	wait_longer();
	return next_fsync(fd);
}

int
fdatasync(int fd)
{
	wait_longer();
	return next_fdatasync(fd);
}

int
sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags)
{
	wait_longer();
	return next_range(fd, offset, length, flags);
}
