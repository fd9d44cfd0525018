/*
 * resolve: which keys an operator can resolve, what is a response for them, and
 * what of it is stored.
 */
#include "config.h"

#include "cases.h"

#include "conf_fixture.h"
#include "limit.h"
#include "resolve.h"
#include "store_impl.h"

/* Outcomes belong to a store; this one stores nothing. */
static struct store_base store = { .ops = &sqlite_ops };

static struct spool *
spool(const char *text, size_t n)
{
	struct spool *s = spool_new();

	assert_non_null(s);
	assert_ok(spool_write(s, text, n));
	return s;
}

TEST(open_outcomes_alone_can_be_resolved)
{
	for (int s = RECORD_NONE; s < RECORD_NSTATES; s++) {
		const char *why = resolve_refusal((enum record_state)s);

		if (s == RECORD_UNKNOWN || s == RECORD_DEAD_LETTER)
			assert_null(why);
		else
			assert_string_equal(why,
			    "only unknown and dead_letter can be resolved");
	}
}

TEST(what_is_no_response_is_refused_with_its_reason)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "empty: give a CGI response, head and body" },
		{ "no head", "head has no end: no empty line after it" },
		{ "Content-Type: a/b\n: x\n\n",
		    "head has a line that is no field" },
		{ "Status: 200\nContent-Length: 5\n\nabc",
		    "Content-Length says 5, but the body has 3 bytes" },
		{ "Status: 200\nContent-Length: 2\n\nabc",
		    "Content-Length says 2, but the body has 3 bytes" },
		{ "Status: 200\nIdempotency-Outcome: unknown\n\n",
		    "its Idempotency-Outcome is not \"completed\"" },
		{ "Status: 200\nIdempotency-Outcome: not-executed\n\n",
		    "its Idempotency-Outcome is not \"completed\"" },
	};
	struct conf *conf = conf_from("");

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct store_outcome *out =
		    store_outcome_new((struct store *)(void *)&store);
		const size_t n = strlen(rows[i].text);
		struct spool *text = spool(rows[i].text, n);
		char why[RESOLVE_WHY] = "";

		assert_non_null(out);
		if (resolve_completed(&conf->defaults, &text, n, out, why))
			fail_msg("accepted: %s", rows[i].text);
		assert_string_equal(why, rows[i].why);
		assert_non_null(text);
		assert_null(out->body);
		assert_false(out->keep);
		spool_free(text);
		store_outcome_free(out);
	}
	conf_unref(conf);
}

/* The outcome of "completed" with that text, which the route has kept of an
 * input of that length. */
static struct store_outcome *
completed(const struct conf_route *route, const char *kept, uint64_t length)
{
	struct store_outcome *out =
	    store_outcome_new((struct store *)(void *)&store);
	struct spool *text = spool(kept, strlen(kept));
	char why[RESOLVE_WHY];

	assert_non_null(out);
	if (!resolve_completed(route, &text, length, out, why))
		fail_msg("%s: %s", kept, why);
	assert_null(text);
	assert_int_equal(out->state, RECORD_COMPLETED);
	return out;
}

TEST(a_response_is_stored_without_what_is_not_replayed)
{
	static const char text[] =
	    "Status: 201 Made\nIdempotency-Outcome: completed\nX-A: 1\n"
	    "Idempotent-Replayed: no\nIdempotency-Expires: never\n"
	    "X-Drop: 2\nContent-Length: 3\n\nabc";
	struct conf *conf = conf_from("[defaults]\nreplay_drop = X-Drop\n");
	struct store_outcome *out =
	    completed(&conf->defaults, text, strlen(text));

	assert_true(out->keep);
	assert_int_equal(out->response.status, 201);
	assert_string_equal(out->response.reason, "Made");
	assert_string_equal(
	    out->response.fields.data, "X-A: 1\r\nContent-Length: 3\r\n");
	assert_int_equal(out->response.body_len, 3);
	assert_memory_equal(out->response.body, "abc", 3);
	store_outcome_free(out);
	conf_unref(conf);
}

TEST(a_response_that_cannot_be_replayed_is_not_kept)
{
	static const char large[] = "Status: 200\n\nabcd",
			  file[] = "Status: 200\nX-Sendfile: /f\n\nabc";
	struct conf *conf = conf_from("[defaults]\nmax_response = 4\n");
	struct store_outcome *out;

	out = completed(&conf->defaults, large, strlen(large));
	assert_true(out->keep);
	store_outcome_free(out);
	/* one byte more, which was not read */
	out = completed(&conf->defaults, large, strlen(large) + 1);
	assert_false(out->keep);
	assert_null(out->response.body);
	assert_int_equal(out->response.status, 200);
	store_outcome_free(out);
	out = completed(&conf->defaults, file, strlen(file));
	assert_false(out->keep);
	assert_null(out->response.body);
	store_outcome_free(out);
	conf_unref(conf);
}

TEST(what_was_not_executed_runs_again)
{
	struct store_outcome *out =
	    store_outcome_new((struct store *)(void *)&store);

	assert_non_null(out);
	resolve_not_executed(out);
	assert_int_equal(out->state, RECORD_FAILED_RETRYABLE);
	assert_int_equal(out->requeue, 0);
	assert_string_equal(out->last_error, "resolved: it was not executed");
	store_outcome_free(out);
}
