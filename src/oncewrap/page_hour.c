/*
 * The last hour: a picture, and the same numbers as a table.
 */
#include "config.h"

#include "date.h"
#include "hour.h"
#include "page_impl.h"

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

void
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
