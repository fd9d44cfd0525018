/*
 * See refused.h.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lock.h"
#include "log.h"
#include "refused.h"

#define PERIOD 60000 /* ms */

struct refused {
	char line[REFUSED_LINE]; /* "": the place is free */
	char who[REFUSED_LINE];  /* its end, " route=... caller=...", or "" */
	int64_t at, logged;      /* mono */
	uint64_t count;
	bool over;  /* refused_over() was called since */
	bool again; /* refused after that, within a period */
};

static struct refused table[REFUSED_MAX];
static struct lock lock = { PTHREAD_MUTEX_INITIALIZER, LOCK_REFUSED };
static atomic_bool any;
/* Lines of the log in this period: callers that come and go fill no log. */
static int64_t period;
static unsigned lines;

static void
write_who(const char *route, const char *caller, char out[REFUSED_LINE])
{
	out[0] = '\0';
	if (caller != NULL)
		(void)snprintf(out, REFUSED_LINE, " route=%.120s caller=%.60s",
		    *route != '\0' ? route : "-", caller);
}

void
refused_too_many(const char *route, const char *caller, char out[REFUSED_LINE])
{
	char who[REFUSED_LINE];

	write_who(route, caller, who);
	(void)snprintf(out, REFUSED_LINE, "too-many-keys%.190s", who);
}

/* The place of that line, or the one that was used last longest ago. */
static struct refused *
refused_find(const char *line)
{
	struct refused *oldest = table;

	for (struct refused *r = table; r < table + REFUSED_MAX; r++) {
		if (strcmp(r->line, line) == 0)
			return r;
		if (r->at < oldest->at)
			oldest = r;
	}
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->line, line, REFUSED_LINE);
	return oldest;
}

/* Whether there is a line for the log. */
static bool
may_say(struct refused *r, int64_t now)
{
	if (r->logged != 0 && now - r->logged < PERIOD)
		return false;
	if (now - period >= PERIOD) {
		period = now;
		lines = 0;
	}
	if (lines >= REFUSED_MAX)
		return false;
	lines++;
	r->logged = now;
	return true;
}

void
refused_note(const char *code, const char *limit, const char *route,
    const char *caller, int64_t now)
{
	char line[REFUSED_LINE] = "", who[REFUSED_LINE] = "";
	struct refused *r;
	uint64_t count;
	bool say;

	write_who(route, caller, who);
	/* Which limit it is stands in the log. */
	if (caller != NULL && strcmp(code, "too-many-keys") == 0)
		refused_too_many(route, caller, line);
	else
		(void)snprintf(
		    line, sizeof(line), "%.30s %.30s%.190s", code, limit, who);
	lock_take(&lock);
	r = refused_find(line);
	memcpy(r->who, who, sizeof(who));
	r->again = (r->over || r->again) && now - r->at < PERIOD;
	r->over = false;
	r->at = now;
	count = ++r->count;
	say = may_say(r, now);
	atomic_store(&any, true);
	lock_give(&lock);
	if (say)
		log_event(LOG_WARN, "refused", NULL, LOG_S("code", code),
		    LOG_S("limit", limit),
		    LOG_S(
			"route", route != NULL && *route != '\0' ? route : "-"),
		    LOG_S("caller", caller != NULL ? caller : "-"),
		    LOG_I("requests", (int64_t)count));
}

bool
refused_any(void)
{
	return atomic_load(&any);
}

void
refused_over(const char *route, const char *caller)
{
	char who[REFUSED_LINE];
	bool left = false;

	write_who(route, caller, who);
	lock_take(&lock);
	for (struct refused *r = table; r < table + REFUSED_MAX; r++) {
		if (r->who[0] == '\0' || strcmp(r->who, who) == 0)
			r->over = !r->again;
		left = left || (r->line[0] != '\0' && !r->over && !r->again);
	}
	atomic_store(&any, left);
	lock_give(&lock);
}

bool
refused_line(size_t i, int64_t now, char out[REFUSED_LINE])
{
	bool found = false;

	lock_take(&lock);
	for (struct refused *r = table; r < table + REFUSED_MAX; r++) {
		if (r->line[0] == '\0' || r->over || now - r->at > PERIOD ||
		    i-- > 0)
			continue;
		memcpy(out, r->line, REFUSED_LINE);
		found = true;
		break;
	}
	lock_give(&lock);
	return found;
}
