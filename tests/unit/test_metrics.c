/*
 * metrics: what is counted shows in the text.  That Prometheus reads the text
 * is for the system tests.
 */
#include "config.h"

#include <inttypes.h>

#include "cases.h"

#include "limit.h"
#include "metrics.h"

static struct metrics_gauges gauges;

static char *
text_of(void)
{
	struct buf buf;
	char *copy;

	buf_init(&buf, LIMIT_METRICS);
	assert_ok(metrics_text(&gauges, false, &buf));
	copy = strdup(buf.data);
	assert_non_null(copy);
	buf_free(&buf);
	return copy;
}

/* The value of a sample, or -1 if there is none; it stands there once. */
static double
value_of(const char *sample)
{
	char *text = text_of(), *p, *save, *line;
	size_t n = strlen(sample);
	double value = -1;

	for (line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, sample, n) != 0 || line[n] != ' ')
			continue;
		assert_true(value < 0);
		value = strtod(line + n, &p);
		assert_true(p > line + n && *p == '\0');
	}
	free(text);
	return value;
}

static bool
is(const char *sample, double value)
{
	double found = value_of(sample);

	return found > value - 0.0001 && found < value + 0.0001;
}

TEST(a_text_that_is_too_long_is_an_error)
{
	struct buf buf;

	buf_init(&buf, 1000);
	assert_int_equal(metrics_text(&gauges, false, &buf), RC_LIMIT);
	buf_free(&buf);
}

/* --- the values --------------------------------------------------------- */

TEST(counters_go_up)
{
	const char *replay = "oncewrap_reserve_total{result=\"replay\"}";
	const char *swept = "oncewrap_swept_total";
	double before = value_of(replay), other = value_of(swept);

	metrics_count(METRICS_RESERVE_REPLAY);
	metrics_count(METRICS_RESERVE_REPLAY);
	assert_true(is(replay, before + 2));
	assert_true(is(swept, other));
	metrics_add(METRICS_SWEPT, 64);
	metrics_add(METRICS_SWEPT, 0);
	assert_true(is(swept, other + 64));
	assert_true(is(replay, before + 2));
}

TEST(a_gauge_goes_up_and_down)
{
	metrics_add(METRICS_WORKERS_BUSY, 1);
	metrics_add(METRICS_WORKERS_BUSY, 1);
	assert_true(is("oncewrap_workers_busy", 2));
	metrics_add(METRICS_WORKERS_BUSY, -1);
	assert_true(is("oncewrap_workers_busy", 1));
	metrics_add(METRICS_WORKERS_BUSY, -1);
	assert_true(is("oncewrap_workers_busy", 0));
}

TEST(what_the_store_does_not_know_is_left_out)
{
	gauges.value[METRICS_KEYS_UNKNOWN] = 7;
	gauges.value[METRICS_KEYS_COMPLETED] = -1;
	assert_true(is("oncewrap_keys{state=\"unknown\"}", 7));
	assert_true(is("oncewrap_keys{state=\"completed\"}", -1));
	gauges.value[METRICS_KEYS_COMPLETED] = INT64_C(10000000);
	assert_true(is("oncewrap_keys{state=\"completed\"}", 10000000));
}

#define SECONDS "oncewrap_handler_seconds"
#define BUCKET  SECONDS "_bucket{le=\"%s\"}"

TEST(a_bucket_holds_what_is_not_above_its_bound)
{
	static const struct {
		int64_t ms;
		const char *in, *not_in; /* first and last bucket */
	} rows[] = {
		{ 0, "0.005", NULL },
		{ 5, "0.005", NULL },
		{ 6, "0.01", "0.005" },
		{ 250, "0.25", "0.1" },
		{ 1000, "1", "0.5" },
		{ 1001, "2.5", "1" },
		{ 60000, "60", "30" },
		{ 60001, "+Inf", "60" },
		{ 86400000, "+Inf", "60" },
	};
	char in[80], not_in[80];
	double was_in, was_not_in, count, sum;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		snprintf(in, sizeof(in), BUCKET, rows[i].in);
		snprintf(not_in, sizeof(not_in), BUCKET,
		    rows[i].not_in != NULL ? rows[i].not_in : "none");
		was_in = value_of(in);
		was_not_in = value_of(not_in);
		count = value_of(SECONDS "_count");
		sum = value_of(SECONDS "_sum");
		assert_true(was_in >= 0);
		metrics_observe(METRICS_HANDLER_SECONDS, rows[i].ms);
		if (!is(in, was_in + 1) || !is(not_in, was_not_in) ||
		    !is(SECONDS "_count", count + 1) ||
		    !is(SECONDS "_bucket{le=\"+Inf\"}", count + 1) ||
		    !is(SECONDS "_sum", sum + (double)rows[i].ms / 1000))
			fail_msg("%" PRId64 " ms", rows[i].ms);
	}
}

TEST(a_path_is_written_so_that_no_label_is_there_twice)
{
	struct metrics_route *route = metrics_route("/a\"\\\n\xff\xc3\xa9\x7f");

	assert_non_null(route);
	assert_true(is("oncewrap_reserve_total{route=\"/a\\\"\\\\"
		       "\\\\x0a\\\\xff\xc3\xa9\\\\x7f\","
		       "result=\"created\"}",
	    0));
	/* Only the first bytes of this one are another path. */
	assert_ptr_equal(metrics_route("/\xff"), metrics_route("/\\xff"));
}

/* --- threads ------------------------------------------------------------ */

#define THREADS 4
#define TIMES   20000

static void *
count(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < TIMES; i++) {
		metrics_count(METRICS_RESERVE_CREATED);
		metrics_observe(METRICS_COMMIT_BATCH, i % 200);
	}
	return NULL;
}

TEST(nothing_is_lost_between_threads)
{
	const char *created = "oncewrap_reserve_total{result=\"created\"}";
	const char *commits = "oncewrap_commit_batch_count";
	double before = value_of(created), commits_before = value_of(commits);
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		thread[i] = start_thread(count, NULL);
	for (i = 0; i < 50; i++)
		assert_true(value_of(commits) <=
		    value_of("oncewrap_commit_batch_bucket{le=\"+Inf\"}"));
	for (i = 0; i < THREADS; i++)
		end_thread(thread[i]);
	assert_true(is(created, before + THREADS * TIMES));
	assert_true(is(commits, commits_before + THREADS * TIMES));
}
