/*
 * Store time: the server's clock, as long as it does not jump ahead.
 *
 * Store time goes no further than once_meta.time_limit.  Each beat of a process
 * moves the limit along, if the process believes the clock (see ahead.h).  So
 * store time is at most LEAD ahead of the clock that was believed last.  If the
 * clock jumps further, store time stands still until the clock is back, or an
 * operator accepts it: nothing expires, and what is due later waits.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "clock.h"
#include "log.h"
#include "postgres_impl.h"

/* How far ahead of the clock the limit is set (ms); and it is moved when half
 * of that is left.  Beats come much more often. */
#define LEAD AHEAD_STEP

/* --- a look --------------------------------------------------------------- */

void
postgres_clock_send(const struct store *s, struct pg *pg)
{
	pg_send(pg, PG_QUERY_CLOCK, "i", s->owner);
}

enum rc
postgres_clock_read(struct pg *pg, struct postgres_clock *c)
{
	enum rc rc =
	    pg_one(pg, "mii?", &c->clock, &c->limit, &c->held_at, &c->alone);

	c->boot = clock_boot();
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

void
postgres_clock_set(struct store *s, const struct postgres_clock *c)
{
	s->base.ahead = c->clock - c->boot;
	s->base.stands = c->clock > c->limit ? c->limit : 0;
	s->held_at = c->clock > c->limit ? c->held_at : 0;
}

/* --- a beat --------------------------------------------------------------- */

static enum ahead_verdict
clock_verdict(const struct store *s, const struct postgres_clock *c)
{
	const struct postgres_clock *last = &s->believed;
	const struct ahead a = {
		.clock = c->clock,
		.limit = c->limit,
		.held_at = c->held_at,
		.expected =
		    last->boot != 0 ? last->clock + (c->boot - last->boot) : 0,
		.wall = clock_wall(),
		.own = s->held_by_wall,
		.first = c->alone || c->boot - s->began >= s->owner_timeout,
	};

	return ahead_judge(&a);
}

enum rc
postgres_clock_judge(
    const struct store *s, struct pg *pg, struct postgres_clock *c)
{
	int64_t limit = c->limit, held_at = c->held_at;
	enum rc rc;

	c->verdict = clock_verdict(s, c);
	if (c->verdict == AHEAD_FOLLOW &&
	    (c->limit < c->clock + LEAD / 2 || c->limit > c->clock + LEAD ||
		held_at != 0)) {
		limit = c->clock + LEAD;
		held_at = 0;
	} else if (c->verdict == AHEAD_HOLD && held_at == 0) {
		held_at = c->clock;
	} else {
		return RC_OK;
	}
	pg_send(pg, PG_QUERY_CLOCK_SET, "iii", c->limit, limit, held_at);
	if ((rc = pg_result(pg)) != RC_OK)
		return rc;
	if (pg_changed(pg) == 1) {
		c->limit = limit;
		c->held_at = held_at;
	}
	return RC_OK;
}

static void
tell_clock_held(const struct store *s, const struct postgres_clock *c)
{
	log_event(LOG_WARN, "store-clock-held", NULL,
	    LOG_S("database", txn_database(s->pool)),
	    LOG_I("ahead", (c->clock - c->limit) / 1000),
	    LOG_S("message",
		"the server's clock has jumped ahead (s): nothing expires; "
		"set it right, or if it is: oncectl accept-clock"));
}

void
postgres_clock_judged(struct store *s, const struct postgres_clock *c)
{
	const bool was = s->told_held, stood = s->base.stands != 0;

	postgres_clock_set(s, c);
	if (c->verdict == AHEAD_FOLLOW) {
		s->believed = *c;
		s->held_by_wall = 0;
	} else if (c->verdict == AHEAD_HOLD && s->believed.boot == 0 &&
	    c->held_at == c->clock) {
		s->held_by_wall = c->held_at;
	}
	s->told_held = s->held_at != 0;
	if (s->told_held && !was)
		tell_clock_held(s, c);
	if (!s->told_held && was)
		log_event(LOG_INFO, "store-clock-followed", NULL,
		    LOG_S("database", txn_database(s->pool)));
	if (s->base.stands == 0 && stood)
		store_news_made(s->base.news);
}

/* --- operators ------------------------------------------------------------ */

void
postgres_clock_tell(const struct store *s, char *why, size_t size)
{
	if (s->held_at != 0)
		snprintf(why, size,
		    "store-clock-held: the server's clock has jumped ahead, "
		    "and nothing expires; set it right, or if it is: oncectl "
		    "accept-clock");
}

enum rc
postgres_accept_clock(struct store *s, char *err, size_t errsize)
{
	return postgres_accepted(s,
	    postgres_ask(
		s, TXN_WRITE, PG_QUERY_CLOCK_ACCEPT, "i", "", (int64_t)LEAD),
	    "clock", err, errsize);
}
