/*
 * Time.  No other file calls clock_gettime() or its like.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/* configure requires it, so that times after 2038 work. */
_Static_assert(sizeof(time_t) >= sizeof(int64_t), "time_t");

static int64_t
read_nanoseconds(clockid_t id)
{
	struct timespec ts;
	int r;

	r = clock_gettime(id, &ts);
	assert(r == 0);
	(void)r;
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t
clock_read_clock(clockid_t id)
{
	return read_nanoseconds(id) / 1000000;
}

int64_t
clock_mono(void)
{
	return clock_read_clock(CLOCK_MONOTONIC);
}

int
clock_left(int64_t mono)
{
	const int64_t left = mono - clock_mono();

	return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

int64_t
clock_mono_us(void)
{
	return read_nanoseconds(CLOCK_MONOTONIC) / 1000;
}

/* musl has no sem_clockwait().  The wall clock may be set meanwhile, so each
 * wait is short. */
_Bool
clock_wait_mono(sem_t *sem, int64_t mono)
{
	struct timespec until;
	int64_t wall;
	int left;

	while ((left = clock_left(mono)) > 0) {
		wall = clock_wall() + (left < 50 ? left : 50);
		until.tv_sec = (time_t)(wall / 1000);
		until.tv_nsec = (long)(wall % 1000) * 1000000;
		if (sem_timedwait(sem, &until) == 0)
			return true;
		assert(errno == ETIMEDOUT || errno == EINTR);
	}
	return sem_trywait(sem) == 0;
}

int64_t
clock_wall(void)
{
	return clock_read_clock(CLOCK_REALTIME);
}

static int64_t boot_added; /* ns: by this process's time namespace */

static void
read_boot_added(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	static const char name[] = "boottime ";
	char line[128], *end;

	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0) {
			boot_added =
			    strtoll(line + strlen(name), &end, 10) * 1000000000;
			boot_added += strtoll(end, NULL, 10);
		}
	fclose(file);
}

static int64_t
read_boot(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_boot_added);
	return read_nanoseconds(CLOCK_BOOTTIME) - boot_added;
}

int64_t
clock_boot(void)
{
	return read_boot() / 1000000;
}

/* Repeats the two readings if this thread was interrupted between them. */
int64_t
clock_wall_at_boot(void)
{
	int64_t before, wall, after;
	int tries;

	for (tries = 0; tries < 10; tries++) {
		before = read_boot();
		wall = read_nanoseconds(CLOCK_REALTIME);
		after = read_boot();
		if (after - before < 20000)
			break;
	}
	return (wall - (before + after) / 2 + 500000) / 1000000;
}

_Bool
clock_boot_id(char out[CLOCK_BOOT_ID_LEN + 1])
{
	ssize_t n;
	int fd;

	out[0] = '\0';
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	n = read(fd, out, CLOCK_BOOT_ID_LEN);
	close(fd);
	if (n != CLOCK_BOOT_ID_LEN) {
		out[0] = '\0';
		return false;
	}
	out[CLOCK_BOOT_ID_LEN] = '\0';
	return true;
}

/* Not strftime() for the month: its names follow the locale. */
void
clock_syslog(int64_t wall, char out[CLOCK_SYSLOG_LEN + 1])
{
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May",
		"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	const time_t t = (time_t)(wall / 1000);
	struct tm tm;
	char *p;
	size_t n;

	localtime_r(&t, &tm);
	p = stpcpy(out, months[tm.tm_mon]);
	n = strftime(p, CLOCK_SYSLOG_LEN + 1 - 3, " %e %H:%M:%S", &tm);
	assert(p + n == out + CLOCK_SYSLOG_LEN);
}
