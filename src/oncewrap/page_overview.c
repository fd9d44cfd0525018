/*
 * The first page: what needs attention, what limits refuse, health, counts, the
 * last hour.  And the tables of keys and effects, which other pages have too.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "clock.h"
#include "crowds.h"
#include "date.h"
#include "hour.h"
#include "page_write.h"
#include "refused.h"
#include "spool.h"
#include "page_impl.h"

static bool
is_refused(const char *line, int64_t now)
{
	char other[REFUSED_LINE];

	for (size_t i = 0; refused_line(i, now, other); i++)
		if (strcmp(line, other) == 0)
			return true;
	return false;
}

void
page_refusals(struct store *store, const struct conf *conf,
    void (*say)(void *arg, const char *line), void *arg)
{
	char line[REFUSED_LINE], open[CROWDS_MAX][REFUSED_LINE];
	const int64_t now = clock_mono();
	const size_t n = crowds_open(store, conf, open);

	for (size_t i = 0; refused_line(i, now, line); i++)
		say(arg, line);
	for (size_t i = 0; i < n; i++)
		if (!is_refused(open[i], now))
			say(arg, open[i]);
}

/* The picture's coordinates: see the template hour. */
#define LEFT   6
#define STEP   10
#define BOTTOM 100
#define HEIGHT 98

static const struct {
	const char *class, *name;
} events[HOUR_EVENTS] = {
	[HOUR_FIRST] = { "first", "First runs" },
	[HOUR_REPLAY] = { "replay", "Replays" },
	[HOUR_REFUSAL] = { "refusal", "Refusals" },
	[HOUR_UNKNOWN] = { "unknown", "Outcome unknown" },
};

static int64_t
all_of(const uint32_t minute[HOUR_EVENTS])
{
	int64_t sum = 0;

	for (int e = 0; e < HOUR_EVENTS; e++)
		sum += minute[e];
	return sum;
}

/* The bars of a minute, one upon the other.  What happened at all is seen. */
static void
draw_minute(
    struct html *html, int i, const uint32_t minute[HOUR_EVENTS], int64_t most)
{
	int64_t y = BOTTOM, sum = 0, top;

	for (int e = 0; e < HOUR_EVENTS; e++) {
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
draw_legend(struct html *html, const struct hour *hour)
{
	int64_t sum;

	page_html_legend(html);
	for (int e = 0; e < HOUR_EVENTS; e++) {
		sum = 0;
		for (int i = 0; i < HOUR_MINUTES; i++)
			sum += hour->minute[i][e];
		page_html_legend_item(
		    html, events[e].class, events[e].name, sum);
	}
	page_html_legend_end(html);
}

/* The newest minute first. */
static void
write_table(struct page *p, const struct hour *hour)
{
	char date[DATE_RFC3339_LEN + 1];
	const uint32_t *m;

	page_html_minutes(&p->html);
	for (int i = HOUR_MINUTES - 1; i >= 0; i--) {
		m = hour->minute[i];
		date_put_rfc3339(hour->begin_wall + i * INT64_C(60000), date);
		date[16] = '\0';
		page_html_minute(&p->html, date + 11, m[HOUR_FIRST],
		    m[HOUR_REPLAY], m[HOUR_REFUSAL], m[HOUR_UNKNOWN]);
	}
	page_html_minutes_end(&p->html);
}

/* A picture and a table of the last hour. */
static void
page_hour(struct page *p)
{
	struct hour hour;
	int64_t most = 0, n;

	hour_read(&hour);
	for (int i = 0; i < HOUR_MINUTES; i++)
		if ((n = all_of(hour.minute[i])) > most)
			most = n;
	page_html_hour(&p->html, most);
	for (int i = 0; i < HOUR_MINUTES; i++)
		draw_minute(&p->html, i, hour.minute[i], most);
	page_html_hour_end(&p->html);
	draw_legend(&p->html, &hour);
	write_table(p, &hour);
}

/* --- tables ------------------------------------------------------------- */

static const char *
caller(const char *scope)
{
	return scope[0] != '\0' ? scope : "(none)";
}

static void
write_more(struct page *p, const struct store_found *found)
{
	const int64_t more = found->count - (int64_t)found->n;

	if (more > 0 && found->all)
		page_html_more(&p->html, more);
	else if (more > 0)
		page_html_more_at_least(&p->html, more);
}

static void
write_key_row(struct page *p, const struct record *r)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT];

	page_write_age(p->wall - r->updated_at, age);
	page_write_cut(r->key, key, sizeof(key));
	page_write_cut(r->path, path, sizeof(path));
	page_write_cut(caller(r->scope), scope, sizeof(scope));
	page_html_key(&p->html, record_state_name(r->state), age, r->id, key,
	    path, scope, r->attempt, r->last_error);
}

enum rc
page_keys(struct page *p, const char *caption, const struct store_found *found)
{
	struct record r;
	enum rc rc;

	if (found->n == 0)
		return RC_OK;
	page_html_keys(&p->html, caption);
	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_key(p->store, found->id[i], &r, NULL);
		if (rc == RC_NOTFOUND) /* deleted since, or a bad row */
			continue;
		if (rc != RC_OK)
			return rc;
		write_key_row(p, &r);
		record_free(&r);
	}
	page_html_table_end(&p->html);
	write_more(p, found);
	return RC_OK;
}

static void
write_effect_row(struct page *p, const struct effect *e)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT],
	    topic[PAGE_CUT];

	page_write_age(p->wall - e->updated_at, age);
	page_write_cut(e->key, key, sizeof(key));
	page_write_cut(e->path, path, sizeof(path));
	page_write_cut(caller(e->scope), scope, sizeof(scope));
	page_write_cut(e->topic, topic, sizeof(topic));
	page_html_effect(&p->html, effect_state_name(e->state), age, e->id,
	    topic, key, path, scope, e->attempts, e->last_error);
}

enum rc
page_effects(
    struct page *p, const char *caption, const struct store_found *found)
{
	struct effect e;
	enum rc rc;

	if (found->n == 0)
		return RC_OK;
	page_html_effects(&p->html, caption);
	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_effect(p->store, found->id[i], &e);
		if (rc == RC_NOTFOUND)
			continue;
		if (rc != RC_OK)
			return rc;
		write_effect_row(p, &e);
		effect_free(&e);
	}
	page_html_table_end(&p->html);
	write_more(p, found);
	return RC_OK;
}

/* --- the page ----------------------------------------------------------- */

struct attention {
	struct page *page;
	bool none;
};

static void
attend_refusal(void *arg, const char *line)
{
	struct attention *a = arg;

	page_html_bad(&a->page->html, line);
	a->none = false;
}

static enum rc
write_attention(struct page *p)
{
	static const struct {
		enum record_state state;
		const char *caption;
	} open[] = {
		{ RECORD_UNKNOWN, "Keys whose outcome is unknown" },
		{ RECORD_DEAD_LETTER, "Keys that reconciliation gave up" },
	};
	struct store_browse b = { 0 };
	struct attention a = { p, true };
	struct store_found found;
	enum rc rc = RC_OK;

	page_html_h2(&p->html, "Needs attention");
	page_refusals(p->store, p->conf, attend_refusal, &a);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		b.filter.state = open[i].state;
		if ((rc = store_browse(p->store, &b, &found)) == RC_OK)
			rc = page_keys(p, open[i].caption, &found);
		if (rc != RC_OK)
			return rc;
		a.none = a.none && found.n == 0;
	}
	rc = store_browse_effects(p->store, 0, NULL, &found);
	if (rc == RC_OK)
		rc = page_effects(
		    p, "Effects that could not be delivered", &found);
	if (rc == RC_OK && a.none && found.n == 0)
		page_html_p(&p->html, "Nothing does.");
	return rc;
}

static void
write_health(struct page *p)
{
	char why[512] = "";
	const bool works = store_health(p->store, why, sizeof(why)) &&
	    spool_is_usable(why, sizeof(why));

	page_html_h2(&p->html, "Health");
	if (works)
		page_html_p(&p->html, "The store works.");
	if (!works || why[0] != '\0')
		page_html_bad(&p->html, why);
}

static enum rc
write_counts(struct page *p)
{
	struct store_browse_counts counts;
	char n[PAGE_COUNT_SIZE];
	enum rc rc;

	page_html_h2(&p->html, "Keys by state");
	rc = store_browse_count(p->store, &counts);
	if (rc != RC_OK)
		return rc;
	page_html_states(&p->html);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		const char *name = record_state_name((enum record_state)i);

		page_write_count(counts.keys[i], counts.more[i], n);
		page_html_state(&p->html, name, name, n);
	}
	page_html_states_end(&p->html);
	return RC_OK;
}

/* A store that cannot be read does not take health and counters along. */
void
page_overview(struct page *p)
{
	char why[512];
	enum rc rc;

	page_begin(p, 200, "Overview");
	page_html_h1(&p->html, "Overview");
	rc = write_attention(p);
	if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
	write_health(p);
	rc = write_counts(p);
	if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
	page_html_h2(&p->html, "The last hour");
	page_hour(p);
}
