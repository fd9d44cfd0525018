/*
 * A library to preload: the clocks of a host whose wall clock jumps, that is
 * suspended, or that boots again.  CLOCK_FILE holds three numbers of 64 bits:
 * nanoseconds to add to the wall clock and to the time since boot, and which
 * boot this is; of boot N > 0 CLOCK_FILE.N has the name.
 */
#define _GNU_SOURCE

#include <sys/mman.h>
#include <sys/time.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *added;

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_open)(const char *, int, ...);

__attribute__((constructor)) static void
begin(void)
{
	const char *name = getenv("CLOCK_FILE");
	void *p;
	int fd;

	real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	real_open = dlsym(RTLD_NEXT, "open");
	if (name == NULL || (fd = real_open(name, O_RDONLY | O_CLOEXEC)) == -1)
		return;
	p = mmap(NULL, 3 * sizeof(*added), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		added = p;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t ns = 0;
	int r;

	if (real_gettime == NULL)
		real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	r = real_gettime(id, ts);
	if (added != NULL && id == CLOCK_REALTIME)
		ns = added[0];
	if (added != NULL && id == CLOCK_BOOTTIME)
		ns = added[1];
	if (r != 0 || ns == 0)
		return r;
	ns += (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out != NULL)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

static int
open_that(const char *path, int flags, mode_t mode)
{
	char name[512];

	if (real_open == NULL)
		real_open = dlsym(RTLD_NEXT, "open");
	if (added != NULL && added[2] != 0 &&
	    strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
		snprintf(name, sizeof(name), "%s.%d", getenv("CLOCK_FILE"),
		    (int)added[2]);
		path = name;
	}
	return real_open(path, flags, mode);
}

#define OPEN(name)                                   \
	int name(const char *path, int flags, ...)   \
	{                                            \
		mode_t mode;                         \
		va_list ap;                          \
                                                     \
		va_start(ap, flags);                 \
		mode = (mode_t)va_arg(ap, int);      \
		va_end(ap);                          \
		return open_that(path, flags, mode); \
	}

OPEN(open)
OPEN(open64)
