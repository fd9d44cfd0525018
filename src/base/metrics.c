/*
 * Counters are atomic and unordered: they describe the past, and no decision
 * depends on them.
 *
 * This file does not know its callers, or where the text goes.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "utf8.h"

#include "metrics.h"

#define MAX_BOUNDS 16

enum kind {
	COUNTER,
	ROUTES_COUNTER,
	HISTOGRAM,
	ROUTES_HISTOGRAM,
	GAUGE,
	STORED
};

#define NOTHING(...)
#define BOUNDS(id, family, help, scale, ...)                  \
	static const int64_t bounds_##id[] = { __VA_ARGS__ }; \
	_Static_assert(                                       \
	    sizeof(bounds_##id) <= MAX_BOUNDS * sizeof(int64_t), #id);
METRICS(NOTHING, NOTHING, BOUNDS, BOUNDS, NOTHING, NOTHING)

#define HISTOGRAM_ID(id, ...) HISTOGRAM_##id,
enum {
	METRICS(NOTHING, NOTHING, HISTOGRAM_ID, HISTOGRAM_ID, NOTHING, NOTHING)
	    HISTOGRAMS_N
};

#define ROW_OF(kind, id, family, labels, help) \
	[METRICS_##id] = { kind, family, labels, help, 0, NULL, 0, 0 },
#define HISTOGRAM_OF(kind, id, family, help, scale, ...)           \
	[METRICS_##id] = { kind, family, "", help, HISTOGRAM_##id, \
		bounds_##id, sizeof(bounds_##id) / sizeof(int64_t), scale },
#define C(...) ROW_OF(COUNTER, __VA_ARGS__)
#define R(...) ROW_OF(ROUTES_COUNTER, __VA_ARGS__)
#define H(...) HISTOGRAM_OF(HISTOGRAM, __VA_ARGS__)
#define T(...) HISTOGRAM_OF(ROUTES_HISTOGRAM, __VA_ARGS__)
#define G(...) ROW_OF(GAUGE, __VA_ARGS__)
#define S(...) ROW_OF(STORED, __VA_ARGS__)
static const struct row {
	enum kind kind;
	const char *family, *labels, *help;
	int histogram;
	const int64_t *bound; /* ascending; bucket n is for larger values */
	unsigned n;
	int64_t scale;
} rows[] = { METRICS(C, R, H, T, G, S) };

struct histogram {
	_Atomic int64_t bucket[MAX_BOUNDS + 1], sum;
};

struct metrics_route {
	_Atomic(struct metrics_route *) next;
	char *label; /* route="/pay"; NULL: all that is counted without it */
	_Atomic int64_t value[METRICS_N];
	struct histogram histogram[HISTOGRAMS_N];
};

/* The first of the list, and the newest routes first behind it. */
static struct metrics_route process;

static bool
is_of_routes(const struct row *row)
{
	return row->kind == ROUTES_COUNTER || row->kind == ROUTES_HISTOGRAM;
}

/* --- routes ------------------------------------------------------------- */

/* Bytes of a sample besides the label of its route. */
#define SAMPLE_REST 96

/* Appends a path as the value of a label.  Two paths may have one label. */
static void
put_path(struct buf *label, const char *path)
{
	size_t n;

	for (; *path != '\0'; path += n) {
		n = utf8_length(path);
		if (n == 0 && *path >= ' ' && *path < 0x7f)
			n = 1;
		if (*path == '"' || *path == '\\')
			buf_addf(label, "\\%c", *path);
		else if (n > 0)
			buf_add(label, path, n);
		else {
			buf_addf(label, "\\\\x%02x", (unsigned char)*path);
			n = 1;
		}
	}
}

static struct metrics_route *
add_route(const char *label)
{
	struct metrics_route *route = calloc(1, sizeof(*route));

	if (route == NULL || (route->label = strdup(label)) == NULL) {
		free(route);
		return NULL;
	}
	atomic_store(&route->next, atomic_load(&process.next));
	atomic_store(&process.next, route);
	return route;
}

struct metrics_route *
metrics_route(const char *path)
{
	struct metrics_route *route = &process;
	size_t taken = 0;
	struct buf label;

	buf_init(&label, LIMIT_METRICS_ROUTES);
	buf_adds(&label, "route=\"");
	put_path(&label, path);
	if (buf_add(&label, "\"", 2) != RC_OK) {
		buf_free(&label);
		return NULL;
	}
	while ((route = atomic_load(&route->next)) != NULL &&
	    strcmp(route->label, label.data) != 0)
		taken += strlen(route->label) + SAMPLE_REST;
	if (route == NULL &&
	    taken + label.len + SAMPLE_REST <= LIMIT_METRICS_ROUTES)
		route = add_route(label.data);
	buf_free(&label);
	return route;
}

/* --- counting ----------------------------------------------------------- */

static void
metrics_increase(_Atomic int64_t *value, int64_t n)
{
	atomic_fetch_add_explicit(value, n, memory_order_relaxed);
}

void
metrics_count_route(struct metrics_route *route, enum metrics_id id)
{
	assert(rows[id].kind == COUNTER || rows[id].kind == ROUTES_COUNTER);
	assert(route == NULL || is_of_routes(&rows[id]));
	if (route == NULL)
		route = &process;
	metrics_increase(&route->value[id], 1);
}

void
metrics_count(enum metrics_id id)
{
	metrics_count_route(NULL, id);
}

void
metrics_add(enum metrics_id id, int64_t n)
{
	assert(rows[id].kind == GAUGE || (rows[id].kind == COUNTER && n >= 0));
	metrics_increase(&process.value[id], n);
}

int64_t
metrics_of_route(const struct metrics_route *route, enum metrics_id first,
    enum metrics_id last)
{
	int64_t sum = 0;

	if (route == NULL)
		route = &process;
	for (int i = (int)first; i <= (int)last; i++)
		sum += (int64_t)atomic_load(&route->value[i]);
	return sum;
}

void
metrics_observe_route(
    struct metrics_route *route, enum metrics_id id, int64_t value)
{
	const struct row *row = &rows[id];
	struct histogram *h;
	unsigned i;

	assert(row->bound != NULL);
	assert(route == NULL || is_of_routes(row));
	if (route == NULL)
		route = &process;
	h = &route->histogram[row->histogram];
	for (i = 0; i < row->n && value > row->bound[i]; i++)
		continue;
	metrics_increase(&h->bucket[i], 1);
	metrics_increase(&h->sum, value);
}

void
metrics_observe(enum metrics_id id, int64_t value)
{
	metrics_observe_route(NULL, id, value);
}

/* --- text --------------------------------------------------------------- */

/* value / scale as a decimal without zeros at its end. */
static void
metrics_decimal(int64_t value, int64_t scale, char *out, size_t size)
{
	/* Exact below 10^15: 31,000 years of milliseconds. */
	snprintf(out, size, "%.15g", (double)value / (double)scale);
}

/* The name of a sample; either label may be empty. */
static void
put_name(const char *family, const char *end, const char *route,
    const char *labels, struct buf *out)
{
	const char *comma = *route != '\0' && *labels != '\0' ? "," : "";

	buf_addf(out, "oncewrap_%s%s", family, end);
	if (*route != '\0' || *labels != '\0')
		buf_addf(out, "{%s%s%s}", route, comma, labels);
}

/* The count is the sum of the buckets as they were read. */
static void
histogram_text(const struct row *row, const char *route,
    const struct histogram *h, struct buf *out)
{
	char text[32], le[40];
	int64_t n = 0;
	unsigned i;

	for (i = 0; i <= row->n; i++) {
		n += atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
		if (i < row->n)
			metrics_decimal(
			    row->bound[i], row->scale, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "+Inf");
		snprintf(le, sizeof(le), "le=\"%s\"", text);
		put_name(row->family, "_bucket", route, le, out);
		buf_addf(out, " %" PRId64 "\n", n);
	}
	metrics_decimal(atomic_load_explicit(&h->sum, memory_order_relaxed),
	    row->scale, text, sizeof(text));
	put_name(row->family, "_sum", route, "", out);
	buf_addf(out, " %s\n", text);
	put_name(row->family, "_count", route, "", out);
	buf_addf(out, " %" PRId64 "\n", n);
}

/* A sample of the process or of one route. */
static void
sample_text(enum metrics_id id, const struct metrics_route *route,
    const struct metrics_gauges *gauges, struct buf *out)
{
	const struct row *row = &rows[id];
	const char *label = route->label != NULL ? route->label : "";
	int64_t value;

	if (row->bound != NULL) {
		histogram_text(
		    row, label, &route->histogram[row->histogram], out);
		return;
	}
	if (row->kind == STORED)
		value = gauges->value[id];
	else
		value = atomic_load_explicit(
		    &route->value[id], memory_order_relaxed);
	if (row->kind == STORED && value < 0)
		return;
	put_name(row->family, "", label, row->labels, out);
	buf_addf(out, " %" PRId64 "\n", value);
}

enum rc
metrics_text(const struct metrics_gauges *gauges, bool stored, struct buf *out)
{
	static const char *const types[] = { "counter", "counter", "histogram",
		"histogram", "gauge", "gauge" };
	const struct metrics_route *route;
	const char *family = "";
	int id;

	for (id = 0; id < METRICS_N; id++) {
		const struct row *row = &rows[id];

		if (stored && row->kind != STORED)
			continue;
		if (strcmp(family, row->family) != 0) {
			family = row->family;
			buf_addf(out,
			    "# HELP oncewrap_%s %s\n# TYPE oncewrap_%s %s\n",
			    family, row->help, family, types[row->kind]);
		}
		for (route = &process; route != NULL; route = is_of_routes(row)
			 ? atomic_load(&route->next)
			 : NULL)
			sample_text((enum metrics_id)id, route, gauges, out);
	}
	return out->rc;
}
