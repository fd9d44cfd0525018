/*
 * clock: the formats, by table, that each clock runs, and a wall clock past the
 * ends of 32-bit types.
 */
#include "config.h"

#include <sys/syscall.h>

#include <semaphore.h>
#include <time.h>

#include "date.h"
#include "store_fixture.h"

/* By how much the wall clock is ahead of the host's: seconds. */
static int64_t ahead;

/* In place of the C library's.  The kernel's oldest call has a long of
 * seconds: enough, for the host is not past 2038. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	long now[2];
	long r = syscall(SYS_clock_gettime, id, now);

	ts->tv_sec = (time_t)(now[0] + (id == CLOCK_REALTIME ? ahead : 0));
	ts->tv_nsec = now[1];
	return (int)r;
}

TEST(clocks_do_not_go_back)
{
	int64_t mono = clock_mono(), boot = clock_boot(), end = mono + 20;

	assert_true(boot > 0);
	while (mono < end) {
		assert_true(clock_mono() >= mono);
		assert_true(clock_boot() >= boot);
		mono = clock_mono();
		boot = clock_boot();
	}
	assert_true(clock_wall() > 1600000000000);
}

/* To the millisecond, or one that lies on an edge. */
TEST(the_wall_clock_at_boot_stands_still)
{
	int64_t first = clock_wall_at_boot(), now, end = clock_mono() + 20;
	int64_t difference;

	do {
		now = clock_wall_at_boot();
		assert_true(now - first >= -1 && now - first <= 1);
	} while (clock_mono() < end);
	difference = clock_wall() - clock_boot() - now;
	assert_true(difference >= -50 && difference <= 50);
}

/* The ends of 32 bits of seconds, signed and not, and of a kernel's clock. */
TEST(a_wall_clock_past_2038_is_read)
{
	static const struct {
		int64_t wall;
		const char *day;
	} moments[] = {
		{ 2147483648000, "2038-01-19" },
		{ 4294967296000, "2106-02-07" },
		{ 7258118400000, "2200-01-01" },
	};
	char text[DATE_RFC3339_LEN + 1];
	int64_t at_boot, now;

	for (size_t i = 0; i < COUNT(moments); i++) {
		ahead = 0;
		ahead = (moments[i].wall - clock_wall()) / 1000 + 1;
		now = clock_wall();
		assert_in_range(now - moments[i].wall, 0, 60000);
		at_boot = now - clock_boot() - clock_wall_at_boot();
		assert_true(at_boot > -1000 && at_boot < 1000);
		date_put_rfc3339(now, text);
		assert_memory_equal(text, moments[i].day, 10);
	}
	ahead = 0;
}

/* Deadlines are in the store's time; only the answer's expiry is the wall's. */
TEST(a_key_lives_past_2038)
{
	const int64_t eve = 2147483648000 - HOUR / 2;
	char date[DATE_IMF_LEN + 1];
	struct store_lease lease;
	struct record record;
	int64_t wall;

	assert_int_equal(setup(state), 0);
	ahead = 0;
	ahead = (eve - clock_wall()) / 1000;
	lease = reserve("k");
	settle(&lease, RECORD_COMPLETED);
	record = find("k");
	wall = store_wall(store, record.expires_at);
	record_free(&record);
	assert_in_range(wall - eve - HOUR + 60000, 0, 120000);
	date_put_imf(wall, date);
	assert_memory_equal(date, "Tue, 19 Jan 2038 03:4", 21);
	ahead += 10 * 365 * 86400;
	assert_int_equal(decision_for("k"), DECIDE_REPLAY);
	lease = reserve("l");
	settle(&lease, RECORD_COMPLETED);
	assert_true(answer_is(lease.id, 0));
	assert_int_equal(sweep(store), 0);
	ahead = 0;
	assert_int_equal(teardown(state), 0);
}

static void *
post(void *sem)
{
	sem_post(sem);
	return NULL;
}

TEST(a_semaphore_is_waited_for_by_the_monotonic_clock)
{
	const int64_t start = clock_mono();
	pthread_t thread;
	sem_t sem;

	sem_init(&sem, 0, 1);
	assert_true(clock_wait_mono(&sem, start - 1000));
	assert_false(clock_wait_mono(&sem, start - 1000));
	assert_false(clock_wait_mono(&sem, start + 120));
	assert_true(clock_mono() >= start + 120);
	thread = start_thread(post, &sem);
	assert_true(clock_wait_mono(&sem, clock_mono() + 60000));
	end_thread(thread);
	sem_destroy(&sem);
}

TEST(the_boot_has_one_name)
{
	char one[CLOCK_BOOT_ID_LEN + 1], two[CLOCK_BOOT_ID_LEN + 1];

	assert_true(clock_boot_id(one));
	assert_true(clock_boot_id(two));
	assert_int_equal(strlen(one), CLOCK_BOOT_ID_LEN);
	assert_string_equal(one, two);
	assert_int_equal(one[8], '-');
}

TEST(local_time_for_syslog)
{
	char text[CLOCK_SYSLOG_LEN + 1];

	setenv("TZ", "UTC-2", 1);
	/* two hours east of Greenwich */
	tzset();
	clock_syslog(INT64_C(951782399000), text);
	assert_string_equal(text, "Feb 29 01:59:59");
	clock_syslog(INT64_C(1704671999000), text);
	assert_string_equal(text, "Jan  8 01:59:59");
	unsetenv("TZ");
	tzset();
}
