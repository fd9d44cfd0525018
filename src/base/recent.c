/*
 * The hour is a ring of minutes.  Each cell has the minute that it counts, and
 * the count, in one word: the first event of a minute replaces what was there
 * an hour before.  So no thread need clear a cell, and no count is lost.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "lock.h"
#include "log.h"
#include "recent.h"

/* --- the last hour -------------------------------------------------------- */

/* One more than is shown, so that no cell is read while it is replaced. */
#define RING (RECENT_MINUTES + 4)

static _Atomic uint64_t cells[RING][RECENT_EVENTS];

#define MINUTE 60000

static uint32_t
count_in(uint64_t cell, uint64_t minute)
{
	return cell >> 32 == minute ? (uint32_t)cell : 0;
}

void
recent_count(enum recent_event event)
{
	const uint64_t minute = (uint64_t)clock_wall() / MINUTE;
	_Atomic uint64_t *cell = &cells[minute % RING][event];
	uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
	uint32_t n;

	assert(event < RECENT_EVENTS);
	do {
		n = count_in(old, minute);
		n += n < UINT32_MAX;
	} while (!atomic_compare_exchange_weak_explicit(cell, &old,
	    minute << 32 | n, memory_order_relaxed, memory_order_relaxed));
}

void
recent_hour(struct recent_hour *out)
{
	const uint64_t first =
	    (uint64_t)clock_wall() / MINUTE - (RECENT_MINUTES - 1);

	out->begin_wall = (int64_t)first * MINUTE;
	for (unsigned i = 0; i < RECENT_MINUTES; i++) {
		const uint64_t minute = first + i;

		for (unsigned e = 0; e < RECENT_EVENTS; e++)
			out->minute[i][e] = count_in(
			    atomic_load_explicit(
				&cells[minute % RING][e], memory_order_relaxed),
			    minute);
	}
}

/* --- what is refused ------------------------------------------------------ */

#define PERIOD 60000 /* ms */

struct refused {
	char line[RECENT_LINE]; /* "": the place is free */
	char who[RECENT_LINE];  /* its end, " route=... caller=...", or "" */
	int64_t at, logged;     /* mono */
	uint64_t count;
	bool over;  /* recent_refused_over() was called since */
	bool again; /* refused after that, within a period */
};

/* Guarded by lock_notes, but for any. */
static struct refused table[RECENT_REFUSED_MAX];
static atomic_bool any;
/* Lines of the log in this period: callers that come and go fill no log. */
static int64_t period;
static unsigned lines;

static void
write_who(const char *route, const char *caller, char out[RECENT_LINE])
{
	out[0] = '\0';
	if (caller != NULL)
		(void)snprintf(out, RECENT_LINE, " route=%.120s caller=%.60s",
		    *route != '\0' ? route : "-", caller);
}

void
recent_refused_too_many(
    const char *route, const char *caller, char out[RECENT_LINE])
{
	char who[RECENT_LINE];

	write_who(route, caller, who);
	(void)snprintf(out, RECENT_LINE, "too-many-keys%.190s", who);
}

/* The place of that line, or the one that was used last longest ago. */
static struct refused *
refused_find(const char *line)
{
	struct refused *oldest = table;

	for (struct refused *r = table; r < table + RECENT_REFUSED_MAX; r++) {
		if (strcmp(r->line, line) == 0)
			return r;
		if (r->at < oldest->at)
			oldest = r;
	}
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->line, line, RECENT_LINE);
	return oldest;
}

/* Whether there is a line for the log. */
static bool
refused_may_log(struct refused *r, int64_t now)
{
	if (r->logged != 0 && now - r->logged < PERIOD)
		return false;
	if (now - period >= PERIOD) {
		period = now;
		lines = 0;
	}
	if (lines >= RECENT_REFUSED_MAX)
		return false;
	lines++;
	r->logged = now;
	return true;
}

void
recent_refused_note(const char *code, const char *limit, const char *route,
    const char *caller, int64_t now)
{
	char line[RECENT_LINE] = "", who[RECENT_LINE] = "";
	struct refused *r;
	uint64_t count;
	bool logged;

	write_who(route, caller, who);
	/* Which limit it is stands in the log. */
	if (caller != NULL && strcmp(code, "too-many-keys") == 0)
		recent_refused_too_many(route, caller, line);
	else
		(void)snprintf(
		    line, sizeof(line), "%.30s %.30s%.190s", code, limit, who);
	lock_take(&lock_notes);
	r = refused_find(line);
	memcpy(r->who, who, sizeof(who));
	r->again = (r->over || r->again) && now - r->at < PERIOD;
	r->over = false;
	r->at = now;
	count = ++r->count;
	logged = refused_may_log(r, now);
	atomic_store(&any, true);
	lock_give(&lock_notes);
	if (logged)
		log_event(LOG_WARN, "refused", NULL, LOG_S("code", code),
		    LOG_S("limit", limit),
		    LOG_S(
			"route", route != NULL && *route != '\0' ? route : "-"),
		    LOG_S("caller", caller != NULL ? caller : "-"),
		    LOG_I("requests", (int64_t)count));
}

bool
recent_refused_any(void)
{
	return atomic_load(&any);
}

void
recent_refused_over(const char *route, const char *caller)
{
	char who[RECENT_LINE];
	bool left = false;

	write_who(route, caller, who);
	lock_take(&lock_notes);
	for (struct refused *r = table; r < table + RECENT_REFUSED_MAX; r++) {
		if (r->who[0] == '\0' || strcmp(r->who, who) == 0)
			r->over = !r->again;
		left = left || (r->line[0] != '\0' && !r->over && !r->again);
	}
	atomic_store(&any, left);
	lock_give(&lock_notes);
}

bool
recent_refused_line(size_t i, int64_t now, char out[RECENT_LINE])
{
	bool found = false;

	lock_take(&lock_notes);
	for (struct refused *r = table; r < table + RECENT_REFUSED_MAX; r++) {
		if (r->line[0] == '\0' || r->over || now - r->at > PERIOD ||
		    i-- > 0)
			continue;
		memcpy(out, r->line, RECENT_LINE);
		found = true;
		break;
	}
	lock_give(&lock_notes);
	return found;
}
