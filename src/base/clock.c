/*
 * Time.  No other file calls clock_gettime() or its like.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
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

int64_t
clock_mono_us(void)
{
	return read_nanoseconds(CLOCK_MONOTONIC) / 1000;
}

#ifdef HAVE_SEM_CLOCKWAIT
static int
wait_semaphore(sem_t *sem, int64_t mono)
{
	const struct timespec until = { .tv_sec = (time_t)(mono / 1000),
		.tv_nsec = (long)(mono % 1000) * 1000000 };

	return sem_clockwait(sem, CLOCK_MONOTONIC, &until);
}
#else
/* Without sem_clockwait() (musl) the wait uses the wall clock.  Each wait is
 * short, because the wall clock may be set meanwhile. */
static int
wait_semaphore(sem_t *sem, int64_t mono)
{
	const int64_t left = mono - clock_mono();
	struct timespec until;
	int64_t wall;

	if (left <= 0)
		return sem_trywait(sem);
	wall = clock_wall() + (left < 50 ? left : 50);
	until.tv_sec = (time_t)(wall / 1000);
	until.tv_nsec = (long)(wall % 1000) * 1000000;
	return sem_timedwait(sem, &until);
}
#endif

_Bool
clock_wait_mono(sem_t *sem, int64_t mono)
{
	while (wait_semaphore(sem, mono) == -1) {
		assert(errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR);
		if (errno != EINTR && clock_mono() >= mono)
			return false;
	}
	return true;
}

int64_t
clock_wall(void)
{
	return clock_read_clock(CLOCK_REALTIME);
}

int64_t
clock_boot(void)
{
	return clock_read_clock(CLOCK_BOOTTIME);
}

/* Repeats the two readings if this thread was interrupted between them. */
int64_t
clock_wall_at_boot(void)
{
	int64_t before, wall, after;
	int tries;

	for (tries = 0; tries < 10; tries++) {
		before = read_nanoseconds(CLOCK_BOOTTIME);
		wall = read_nanoseconds(CLOCK_REALTIME);
		after = read_nanoseconds(CLOCK_BOOTTIME);
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

static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
	"Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

/* Both formats have four digits for the year, so time is kept within them. */
static void
split(int64_t wall, struct tm *tm, int *ms)
{
	const int64_t last = 253402300799999; /* 9999-12-31T23:59:59.999Z */
	time_t t;

	if (wall < 0)
		wall = 0;
	if (wall > last)
		wall = last;
	t = (time_t)(wall / 1000);
	*ms = (int)(wall % 1000);
	gmtime_r(&t, tm);
}

static char *
clock_put_number(char *p, int n, int digits)
{
	for (int i = digits; i-- > 0; n /= 10)
		p[i] = (char)('0' + n % 10);
	return p + digits;
}

/* "07:04:38" */
static char *
put_time_of_day(char *p, const struct tm *tm)
{
	p = clock_put_number(p, tm->tm_hour, 2);
	p = stpcpy(p, ":");
	p = clock_put_number(p, tm->tm_min, 2);
	p = stpcpy(p, ":");
	return clock_put_number(p, tm->tm_sec, 2);
}

/* Not strftime(): its names of days and months follow the locale.  Every
 * replay has a date, so this is also fast. */
void
clock_http(int64_t wall, char out[CLOCK_HTTP_LEN + 1])
{
	static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu",
		"Fri", "Sat" };
	struct tm tm;
	char *p = out;
	int ms;

	split(wall, &tm, &ms);
	p = stpcpy(p, days[tm.tm_wday]);
	p = stpcpy(p, ", ");
	p = clock_put_number(p, tm.tm_mday, 2);
	p = stpcpy(p, " ");
	p = stpcpy(p, months[tm.tm_mon]);
	p = stpcpy(p, " ");
	p = clock_put_number(p, tm.tm_year + 1900, 4);
	p = stpcpy(p, " ");
	p = put_time_of_day(p, &tm);
	p = stpcpy(p, " GMT");
	assert(p == out + CLOCK_HTTP_LEN);
	*p = '\0';
}

/* Every line of the log has one, so this is fast too. */
void
clock_rfc3339(int64_t wall, char out[CLOCK_RFC3339_LEN + 1])
{
	struct tm tm;
	char *p = out;
	int ms;

	split(wall, &tm, &ms);
	p = clock_put_number(p, tm.tm_year + 1900, 4);
	p = stpcpy(p, "-");
	p = clock_put_number(p, tm.tm_mon + 1, 2);
	p = stpcpy(p, "-");
	p = clock_put_number(p, tm.tm_mday, 2);
	p = stpcpy(p, "T");
	p = put_time_of_day(p, &tm);
	p = stpcpy(p, ".");
	p = clock_put_number(p, ms, 3);
	p = stpcpy(p, "Z");
	assert(p == out + CLOCK_RFC3339_LEN);
}

void
clock_syslog(int64_t wall, char out[CLOCK_SYSLOG_LEN + 1])
{
	const time_t t = (time_t)(wall / 1000);
	struct tm tm;
	char *p = out;

	localtime_r(&t, &tm);
	p = stpcpy(p, months[tm.tm_mon]);
	p = stpcpy(p, " ");
	p = clock_put_number(p, tm.tm_mday, 2);
	if (p[-2] == '0')
		p[-2] = ' ';
	p = stpcpy(p, " ");
	p = put_time_of_day(p, &tm);
	assert(p == out + CLOCK_SYSLOG_LEN);
	*p = '\0';
}
