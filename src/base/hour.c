/*
 * A ring of minutes.  Each cell has the minute that it counts, and the count,
 * in one word: the first event of a minute replaces what was there an hour
 * before.  So no thread need clear a cell, and no count is lost.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>

#include "clock.h"
#include "hour.h"

/* One more than is shown, so that no cell is read while it is replaced. */
#define RING (HOUR_MINUTES + 4)

static _Atomic uint64_t cells[RING][HOUR_EVENTS];

#define MINUTE 60000

/* The millisecond of a UTC minute in which the host was booted, by the wall
 * clock at the first call.  Fixed, so that no minute ever moves. */
static int64_t
boot_phase(void)
{
	static _Atomic int64_t phase = -1;
	int64_t known = atomic_load(&phase), now;

	if (known != -1)
		return known;
	now = (clock_wall_at_boot() % MINUTE + MINUTE) % MINUTE;
	return atomic_compare_exchange_strong(&phase, &known, now) ? now
								   : known;
}

static uint64_t
minute_now(void)
{
	/* 0 is a cell that was never used. */
	return (uint64_t)(clock_boot() + boot_phase()) / MINUTE + HOUR_MINUTES;
}

/* The UTC minute (ms) that it was.  Rounded, because the wall clock is slewed
 * or may have been set since. */
static int64_t
wall_of(uint64_t minute)
{
	const int64_t begin =
	    ((int64_t)minute - HOUR_MINUTES) * MINUTE - boot_phase();

	return (clock_wall_at_boot() + begin + MINUTE / 2) / MINUTE * MINUTE;
}

static uint32_t
count_in(uint64_t cell, uint64_t minute)
{
	return cell >> 32 == minute ? (uint32_t)cell : 0;
}

void
hour_count(enum hour_event event)
{
	const uint64_t minute = minute_now();
	_Atomic uint64_t *cell = &cells[minute % RING][event];
	uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
	uint32_t n;

	assert(event < HOUR_EVENTS);
	do {
		n = count_in(old, minute);
		n += n < UINT32_MAX;
	} while (!atomic_compare_exchange_weak_explicit(cell, &old,
	    minute << 32 | n, memory_order_relaxed, memory_order_relaxed));
}

void
hour_read(struct hour *out)
{
	const uint64_t now = minute_now();

	out->begin_wall = wall_of(now - (HOUR_MINUTES - 1));
	for (unsigned i = 0; i < HOUR_MINUTES; i++) {
		const uint64_t minute = now - (HOUR_MINUTES - 1) + i;

		for (unsigned e = 0; e < HOUR_EVENTS; e++)
			out->minute[i][e] = count_in(
			    atomic_load_explicit(
				&cells[minute % RING][e], memory_order_relaxed),
			    minute);
	}
}
