/*
 * The first page: what needs attention, what limits refuse, health, counts, the
 * last hour, and the newest keys.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "store_doctor.h"
#include "date.h"
#include "metrics.h"
#include "page_impl.h"
#include "recent.h"

/* The newest keys are those of so many minutes (ms). */
#define MINUTE INT64_C(60000)
#define NEWEST 10

static bool
is_refused(const char *line, int64_t now)
{
	char other[RECENT_LINE];

	for (size_t i = 0; recent_refused_line(i, now, other); i++)
		if (strcmp(line, other) == 0)
			return true;
	return false;
}

size_t
page_refusals(struct page *p, void (*write)(struct page *, const char *line))
{
	char line[RECENT_LINE], open[STORE_CALLERS_MAX][RECENT_LINE];
	const int64_t now = clock_mono();
	const size_t nopen = store_callers_full(p->store, p->conf, open);
	size_t n = 0;

	for (; recent_refused_line(n, now, line); n++)
		write(p, line);
	for (size_t i = 0; i < nopen; i++) {
		if (!is_refused(open[i], now)) {
			write(p, open[i]);
			n++;
		}
	}
	return n;
}

/* The picture's coordinates: see the template hour. */
#define LEFT   6
#define STEP   10
#define BOTTOM 100
#define HEIGHT 98

static const struct {
	const char *class, *name;
} events[RECENT_EVENTS] = {
	[RECENT_FIRST] = { "first", "First runs" },
	[RECENT_REPLAY] = { "replay", "Replays" },
	[RECENT_REFUSAL] = { "refusal", "Refusals" },
	[RECENT_UNKNOWN] = { "unknown", "Outcome unknown" },
};

static int64_t
all_of(const uint32_t minute[RECENT_EVENTS])
{
	int64_t sum = 0;

	for (int e = 0; e < RECENT_EVENTS; e++)
		sum += minute[e];
	return sum;
}

/* The bars of a minute, one upon the other.  What happened at all is seen. */
static void
write_bars(struct html *html, int i, const uint32_t minute[RECENT_EVENTS],
    int64_t most)
{
	int64_t y = BOTTOM, sum = 0, top;

	for (int e = 0; e < RECENT_EVENTS; e++) {
		if (minute[e] == 0)
			continue;
		sum += minute[e];
		top = BOTTOM - sum * HEIGHT / most;
		if (top >= y)
			top = y - 1;
		page_html_bar(
		    html, events[e].class, LEFT + i * STEP, top, y - top);
		y = top;
	}
}

static void
write_legend(struct html *html, const struct recent_hour *hour)
{
	int64_t sum;

	for (int e = 0; e < RECENT_EVENTS; e++) {
		sum = 0;
		for (int i = 0; i < RECENT_MINUTES; i++)
			sum += hour->minute[i][e];
		page_html_legend_item(
		    html, events[e].class, events[e].name, sum);
	}
}

/* The newest minute first. */
static void
write_table(struct page *p, const struct recent_hour *hour)
{
	char date[DATE_RFC3339_LEN + 1];
	const uint32_t *m;

	page_html_minutes(&p->html);
	for (int i = RECENT_MINUTES - 1; i >= 0; i--) {
		m = hour->minute[i];
		date_put_rfc3339(hour->begin_wall + i * INT64_C(60000), date);
		date[16] = '\0';
		page_html_minute(&p->html, date + 11, m[RECENT_FIRST],
		    m[RECENT_REPLAY], m[RECENT_REFUSAL], m[RECENT_UNKNOWN]);
	}
	page_html_minutes_end(&p->html);
}

/* A picture and a table of the last hour. */
static void
page_hour(struct page *p)
{
	struct recent_hour hour;
	int64_t most = 0, n;

	recent_hour(&hour);
	for (int i = 0; i < RECENT_MINUTES; i++)
		if ((n = all_of(hour.minute[i])) > most)
			most = n;
	page_html_hour(&p->html, most);
	for (int i = 0; i < RECENT_MINUTES; i++)
		write_bars(&p->html, i, hour.minute[i], most);
	page_html_hour_end(&p->html);
	write_legend(&p->html, &hour);
	write_table(p, &hour);
}

/* --- the page ----------------------------------------------------------- */

static void
attend_refusal(struct page *p, const char *line)
{
	page_html_bad(&p->html, line);
}

/* Writes the keys of that state, or with NONE those that were made since. */
static enum rc
write_keys(struct page *p, const char *caption, enum record_state state,
    int64_t since, bool *any)
{
	struct store_browse b = { .filter = { .state = state, .from = since } };
	struct page_search s;
	struct store_found found;
	char from[PAGE_UTC_SIZE];
	enum rc rc;

	page_search_init(&s);
	if (state != RECORD_NONE)
		s.state = record_state_name(state);
	page_write_utc(since, from);
	if (since != 0)
		snprintf(s.from, sizeof(s.from), "%.16s", from);
	if ((rc = store_browse(p->store, &b, &found)) == RC_OK)
		rc = page_keys(p, caption, &s, &found);
	*any = *any || (rc == RC_OK && found.n > 0);
	page_search_free(&s);
	return rc;
}

static enum rc
write_attention(struct page *p)
{
	bool keys = false, effects = false, refused;
	enum rc rc;

	page_html_h2(&p->html, "Needs attention");
	refused = page_refusals(p, attend_refusal) > 0;
	rc = write_keys(
	    p, "Keys whose outcome is unknown", RECORD_UNKNOWN, 0, &keys);
	if (rc == RC_OK)
		rc = write_keys(p, "Keys that reconciliation gave up",
		    RECORD_DEAD_LETTER, 0, &keys);
	if (rc == RC_OK)
		rc = page_effects(p, 0, NULL, &effects);
	if (rc == RC_OK && !refused && !keys && !effects)
		page_html_p(&p->html, "Nothing does.");
	return rc;
}

/* Whole minutes, as a link to more of them has. */
static enum rc
write_newest(struct page *p)
{
	const int64_t since = (p->wall / MINUTE - NEWEST) * MINUTE;
	bool any = false;
	enum rc rc;

	page_html_h2(&p->html, "The last minutes");
	rc = write_keys(p, "Keys of the last minutes, the newest first",
	    RECORD_NONE, since, &any);
	if (rc == RC_OK && !any)
		page_html_p(&p->html, "There was no new key.");
	return rc;
}

static void
write_health(struct page *p)
{
	char why[512] = "";
	const bool works = page_is_healthy(p->store, why, sizeof(why));

	page_html_h2(&p->html, "Health");
	if (works)
		page_html_p(&p->html, "The store works.");
	if (!works || why[0] != '\0')
		page_html_bad(&p->html, why);
}

static enum rc
write_counts(struct page *p)
{
	struct metrics_gauges gauges;
	char n[PAGE_COUNT_SIZE];
	enum rc rc;

	page_html_h2(&p->html, "Keys by state");
	rc = store_gauges(p->store, &gauges);
	if (rc == RC_OK)
		rc = store_gauges_of_few(p->store, &gauges);
	if (rc != RC_OK)
		return rc;
	page_html_states(&p->html);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		const char *name = record_state_name((enum record_state)i);

		page_write_count(gauges.value[STORE_GAUGE_OF(i)], false, n);
		page_html_state(&p->html, name, name, n);
	}
	page_html_states_end(&p->html);
	return RC_OK;
}

/* A route that had requests. */
static void
write_route(
    struct html *html, const char *path, const struct metrics_route *route)
{
	const int64_t first = metrics_of_route(
	    route, METRICS_RESERVE_CREATED, METRICS_RESERVE_CREATED);
	const int64_t replays = metrics_of_route(
	    route, METRICS_RESERVE_REPLAY, METRICS_RESERVE_REPLAY);
	const int64_t refusals =
	    metrics_of_route(route, METRICS_REFUSED_REQUEST_INVALID,
		METRICS_REFUSED_METHOD_NOT_ALLOWED);

	if (first + replays + refusals > 0)
		page_html_route(html, path, first, replays, refusals);
}

static void
write_routes(struct page *p)
{
	page_html_routes(&p->html);
	for (size_t i = 0; i < p->conf->nroutes; i++)
		if (p->conf->routes[i].metrics != NULL)
			write_route(&p->html, p->conf->routes[i].path,
			    p->conf->routes[i].metrics);
	write_route(&p->html, "(no route)", NULL);
	page_html_table_end(&p->html);
}

/* A store that cannot be read does not take health and counters along. */
static void
write_failure(struct page *p, enum rc rc)
{
	char why[512];

	if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
}

void
page_overview(struct page *p)
{
	page_begin(p, 200, "Overview");
	page_html_h1(&p->html, "Overview");
	write_failure(p, write_attention(p));
	write_health(p);
	write_failure(p, write_counts(p));
	write_routes(p);
	page_html_h2(&p->html, "The last hour");
	page_hour(p);
	write_failure(p, write_newest(p));
}
