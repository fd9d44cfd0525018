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
#include <string.h>

#include "metrics.h"

#define MAX_BOUNDS 16

struct histogram {
	const int64_t *bound; /* ascending; bucket n is for larger values */
	unsigned n;
	int64_t scale;
	_Atomic int64_t bucket[MAX_BOUNDS + 1], sum;
};

enum kind { COUNTER, HISTOGRAM, GAUGE, STORED };

#define NOTHING(...)
#define BOUNDS(id, family, help, scale, ...)                                \
	static const int64_t bounds_##id[] = { __VA_ARGS__ };               \
	_Static_assert(                                                     \
	    sizeof(bounds_##id) <= MAX_BOUNDS * sizeof(int64_t), #id);      \
	static struct histogram histogram_##id = { bounds_##id,             \
		sizeof(bounds_##id) / sizeof(bounds_##id[0]), scale, { 0 }, \
		0 };
METRICS(NOTHING, BOUNDS, NOTHING, NOTHING)

#define ROW_OF(kind, id, family, labels, help) \
	[METRICS_##id] = { kind, family, labels, help, NULL },
#define C(...) ROW_OF(COUNTER, __VA_ARGS__)
#define G(...) ROW_OF(GAUGE, __VA_ARGS__)
#define S(...) ROW_OF(STORED, __VA_ARGS__)
#define H(id, family, help, ...) \
	[METRICS_##id] = { HISTOGRAM, family, "", help, &histogram_##id },
static const struct row {
	enum kind kind;
	const char *family, *labels, *help;
	struct histogram *histogram;
} rows[] = { METRICS(C, H, G, S) };

static _Atomic int64_t values[METRICS_N];

/* --- counting ----------------------------------------------------------- */

void
metrics_count(enum metrics_id id)
{
	assert(rows[id].kind == COUNTER);
	atomic_fetch_add_explicit(&values[id], 1, memory_order_relaxed);
}

void
metrics_add(enum metrics_id id, int64_t n)
{
	assert(rows[id].kind == GAUGE || (rows[id].kind == COUNTER && n >= 0));
	atomic_fetch_add_explicit(&values[id], n, memory_order_relaxed);
}

void
metrics_observe(enum metrics_id id, int64_t value)
{
	struct histogram *h = rows[id].histogram;
	unsigned i;

	assert(h != NULL);
	for (i = 0; i < h->n && value > h->bound[i]; i++)
		continue;
	atomic_fetch_add_explicit(&h->bucket[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
}

/* --- text --------------------------------------------------------------- */

static const char *
type_name(enum kind kind)
{
	switch (kind) {
	case COUNTER:
		return "counter";
	case HISTOGRAM:
		return "histogram";
	case GAUGE:
	case STORED:
		break;
	}
	return "gauge";
}

/* value / scale as a decimal without zeros at its end. */
static void
metrics_decimal(int64_t value, int64_t scale, char *out, size_t size)
{
	size_t len;

	assert(scale == 1 || scale == 1000);
	if (scale == 1 || value % scale == 0) {
		snprintf(out, size, "%" PRId64, value / scale);
		return;
	}
	snprintf(
	    out, size, "%" PRId64 ".%03" PRId64, value / scale, value % scale);
	for (len = strlen(out); out[len - 1] == '0'; len--)
		out[len - 1] = '\0';
}

/* The count is the sum of the buckets as they were read. */
static enum rc
histogram_text(const char *family, struct histogram *h, struct buf *out)
{
	char text[32];
	int64_t n = 0;
	enum rc rc = RC_OK;
	unsigned i;

	for (i = 0; i <= h->n && rc == RC_OK; i++) {
		n += atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
		if (i < h->n)
			metrics_decimal(
			    h->bound[i], h->scale, text, sizeof(text));
		else
			snprintf(text, sizeof(text), "+Inf");
		rc =
		    buf_addf(out, "oncewrap_%s_bucket{le=\"%s\"} %" PRId64 "\n",
			family, text, n);
	}
	if (rc != RC_OK)
		return rc;
	metrics_decimal(atomic_load_explicit(&h->sum, memory_order_relaxed),
	    h->scale, text, sizeof(text));
	return buf_addf(out,
	    "oncewrap_%s_sum %s\noncewrap_%s_count %" PRId64 "\n", family, text,
	    family, n);
}

static enum rc
sample_text(const struct row *row, int64_t value, struct buf *out)
{
	bool labelled = row->labels[0] != '\0';

	if (row->kind == STORED && value < 0)
		return RC_OK;
	return buf_addf(out, "oncewrap_%s%s%s%s %" PRId64 "\n", row->family,
	    labelled ? "{" : "", row->labels, labelled ? "}" : "", value);
}

enum rc
metrics_text(const struct metrics_gauges *gauges, bool stored, struct buf *out)
{
	const char *family = "";
	enum rc rc = RC_OK;
	int id;

	for (id = 0; id < METRICS_N && rc == RC_OK; id++) {
		const struct row *row = &rows[id];

		if (stored && row->kind != STORED)
			continue;
		if (strcmp(family, row->family) != 0) {
			family = row->family;
			rc = buf_addf(out,
			    "# HELP oncewrap_%s %s\n# TYPE oncewrap_%s %s\n",
			    family, row->help, family, type_name(row->kind));
		}
		if (rc != RC_OK)
			break;
		if (row->kind == HISTOGRAM)
			rc = histogram_text(family, row->histogram, out);
		else
			rc = sample_text(row,
			    row->kind == STORED
				? gauges->value[id]
				: atomic_load_explicit(
				      &values[id], memory_order_relaxed),
			    out);
	}
	return rc;
}
