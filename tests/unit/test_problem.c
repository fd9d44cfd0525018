/*
 * problem: each code in both dialects, its fields, and what is said besides.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cJSON.h>

#include "limit.h"
#include "problem.h"

#define LINK     "https://example.org/keys"
#define INSTANCE "urn:uuid:123e4567-e89b-12d3-a456-426614174000"
#define API      "api_error"
#define INVALID  "invalid_request_error"
#define SAME     "idempotency_error"
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct row {
	enum problem_code code;
	const char *name;
	int status, stripe_status;
	const char *type;
	bool retryable, retry_after;
} rows[] = {
	{ PROBLEM_REQUEST_INVALID, "request-invalid", 400, 400, INVALID, false,
	    false },
	{ PROBLEM_KEY_MISSING, "key-missing", 400, 400, INVALID, false, false },
	{ PROBLEM_KEY_INVALID, "key-invalid", 400, 400, INVALID, false, false },
	{ PROBLEM_KEY_REUSED, "key-reused", 422, 400, SAME, false, false },
	{ PROBLEM_KEY_IN_PROGRESS, "key-in-progress", 409, 409, SAME, true,
	    true },
	{ PROBLEM_OUTCOME_UNKNOWN, "outcome-unknown", 409, 409, SAME, true,
	    true },
	{ PROBLEM_KEY_EXPIRED, "key-expired", 410, 400, SAME, false, false },
	{ PROBLEM_RESPONSE_NOT_KEPT, "response-not-kept", 410, 410, SAME, false,
	    false },
	{ PROBLEM_SCOPE_REQUIRED, "scope-required", 403, 401, INVALID, false,
	    false },
	{ PROBLEM_BODY_TOO_LARGE, "body-too-large", 413, 413, INVALID, false,
	    false },
	{ PROBLEM_BODY_INCOMPLETE, "body-incomplete", 400, 400, INVALID, true,
	    false },
	{ PROBLEM_STORE_UNAVAILABLE, "store-unavailable", 503, 503, API, true,
	    true },
	{ PROBLEM_TOO_MANY_KEYS, "too-many-keys", 429, 429, API, true, true },
	{ PROBLEM_REQUEST_TOO_OLD, "request-too-old", 412, 400, INVALID, false,
	    false },
	{ PROBLEM_OVERLOADED, "overloaded", 503, 503, API, true, true },
	{ PROBLEM_HANDLER_NOT_STARTED, "handler-not-started", 502, 502, API,
	    true, false },
	{ PROBLEM_HANDLER_FAILED, "handler-failed", 502, 502, API, true,
	    false },
	{ PROBLEM_HANDLER_TIMEOUT, "handler-timeout", 504, 504, API, true,
	    false },
	{ PROBLEM_OUTCOME_NOT_RECORDED, "outcome-not-recorded", 500, 500, API,
	    true, false },
	{ PROBLEM_REQUEST_EXPIRED, "request-expired", 408, 408, API, false,
	    false },
	{ PROBLEM_NOT_FOUND, "not-found", 404, 404, INVALID, false, false },
	{ PROBLEM_METHOD_NOT_ALLOWED, "method-not-allowed", 405, 405, INVALID,
	    false, false },
};

/* The body as JSON; the caller deletes it. */
static cJSON *
make(const struct problem *p, enum conf_dialect dialect, struct response *r,
    struct buf *body)
{
	cJSON *json;

	response_init(r);
	buf_init(body, LIMIT_PROBLEM);
	assert_int_equal(problem_make(p, LINK, dialect, r, body), RC_OK);
	json = cJSON_ParseWithLengthOpts(r->body, r->body_len, NULL, 0);
	assert_non_null(json);
	return json;
}

static const char *
text(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "(none)";
}

static int
number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valueint : -1;
}

static void
assert_field(const struct response *r, const char *name, const char *value)
{
	struct field f;

	assert_true(response_find(&r->fields, name, &f));
	assert_int_equal(f.value_len, strlen(value));
	assert_memory_equal(f.value, value, f.value_len);
}

static void
every_code_ietf(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct problem p = { .code = w->code,
			.detail = "Because.",
			.instance = INSTANCE };
		struct response r;
		struct field f;
		struct buf body;
		char type[128];
		cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);

		print_message("%s\n", w->name);
		snprintf(type, sizeof(type), "%s#%s", LINK, w->name);
		assert_int_equal(r.status, w->status);
		assert_int_equal(r.kind, RESPONSE_DOCUMENT);
		assert_string_equal(text(json, "type"), type);
		assert_true(strlen(text(json, "title")) > 6);
		assert_int_equal(number(json, "status"), w->status);
		assert_string_equal(text(json, "detail"), "Because.");
		assert_string_equal(text(json, "instance"), INSTANCE);
		assert_string_equal(text(json, "code"), w->name);
		assert_true(cJSON_IsBool(
		    cJSON_GetObjectItemCaseSensitive(json, "retryable")));
		assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(
				     json, "retryable")),
		    w->retryable);
		assert_field(&r, "Content-Type", "application/problem+json");
		assert_field(&r, "Link", "<" LINK ">; rel=\"describedby\"");
		assert_field(&r, "Cache-Control", "no-store");
		assert_int_equal(response_find(&r.fields, "Retry-After", &f),
		    w->retry_after);
		assert_string_equal(problem_name(w->code), w->name);
		cJSON_Delete(json);
		response_free(&r);
		buf_free(&body);
	}
}

static void
every_code_stripe(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct problem p = { .code = w->code, .detail = "Because." };
		struct response r;
		struct field f;
		struct buf body;
		cJSON *json = make(&p, CONF_DIALECT_STRIPE, &r, &body);
		cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");

		print_message("%s\n", w->name);
		assert_int_equal(cJSON_GetArraySize(json), 1);
		assert_int_equal(r.status, w->stripe_status);
		assert_string_equal(text(error, "type"), w->type);
		assert_string_equal(text(error, "code"), w->name);
		assert_string_equal(text(error, "message"), "Because.");
		assert_field(&r, "Content-Type", "application/json");
		assert_field(&r, "Link", "<" LINK ">; rel=\"describedby\"");
		assert_field(&r, "Cache-Control", "no-store");
		assert_int_equal(response_find(&r.fields, "Retry-After", &f),
		    w->retry_after);
		cJSON_Delete(json);
		response_free(&r);
		buf_free(&body);
	}
}

/* Which ones say so is in the table above; this is for how long. */
static void
retry_after_by_code(void **state)
{
	static const struct {
		enum problem_code code;
		int seconds;
	} waits[] = {
		{ PROBLEM_KEY_IN_PROGRESS, RETRY_AFTER_BUSY },
		{ PROBLEM_TOO_MANY_KEYS, RETRY_AFTER_BUSY },
		{ PROBLEM_OVERLOADED, RETRY_AFTER_BUSY },
		{ PROBLEM_STORE_UNAVAILABLE, RETRY_AFTER_STORE },
		{ PROBLEM_OUTCOME_UNKNOWN, RETRY_AFTER_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(waits); i++) {
		struct problem p = { .code = waits[i].code };
		struct response r;
		struct buf body;
		char seconds[16];

		cJSON_Delete(make(&p, CONF_DIALECT_IETF, &r, &body));
		snprintf(seconds, sizeof(seconds), "%d", waits[i].seconds);
		assert_field(&r, "Retry-After", seconds);
		response_free(&r);
		buf_free(&body);
	}
}

static void
a_code_has_a_sentence_of_its_own(void **state)
{
	struct problem p = { .code = PROBLEM_KEY_MISSING };
	struct response r;
	struct buf body;
	cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);

	(void)state;
	assert_string_equal(text(json, "detail"), problem_detail(&p));
	assert_string_equal(
	    problem_detail(&p), "This resource needs an idempotency key.");
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
	p.detail = "Another.";
	assert_string_equal(problem_detail(&p), "Another.");
}

static void
without_detail_the_title_says_it_all(void **state)
{
	struct problem p = { .code = PROBLEM_KEY_INVALID };
	struct response r;
	struct buf body;
	cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);
	char title[128];

	(void)state;
	assert_false(cJSON_HasObjectItem(json, "detail"));
	assert_false(cJSON_HasObjectItem(json, "instance"));
	snprintf(title, sizeof(title), "%s", text(json, "title"));
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
	json = make(&p, CONF_DIALECT_STRIPE, &r, &body);
	assert_string_equal(
	    text(cJSON_GetObjectItemCaseSensitive(json, "error"), "message"),
	    title);
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
}

static void
a_status_of_the_callers_own(void **state)
{
	struct problem p = { .code = PROBLEM_HANDLER_FAILED, .status = 503 };
	struct response r;
	struct buf body;
	cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);

	(void)state;
	assert_int_equal(r.status, 503);
	assert_int_equal(number(json, "status"), 503);
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
	json = make(&p, CONF_DIALECT_STRIPE, &r, &body);
	assert_int_equal(r.status, 503);
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
}

static void
outcome_unknown_is_said_where_it_is_so(void **state)
{
	static const struct {
		enum problem_code code;
		bool unknown, says;
	} said[] = {
		{ PROBLEM_HANDLER_FAILED, true, true },
		{ PROBLEM_HANDLER_TIMEOUT, true, true },
		{ PROBLEM_HANDLER_FAILED, false, false },
		{ PROBLEM_OUTCOME_UNKNOWN, false, true },
		{ PROBLEM_KEY_IN_PROGRESS, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(said); i++) {
		for (int d = 0; d < 2; d++) {
			struct problem p = { .code = said[i].code,
				.unknown = said[i].unknown };
			struct response r;
			struct buf body;
			cJSON *json = make(&p,
			    d ? CONF_DIALECT_STRIPE : CONF_DIALECT_IETF, &r,
			    &body);
			const cJSON *in = d ? json->child : json;

			assert_string_equal(text(in, "outcome"),
			    said[i].says ? "unknown" : "(none)");
			cJSON_Delete(json);
			response_free(&r);
			buf_free(&body);
		}
	}
}

static void
not_kept_names_status_and_time(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} times[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 951868799999, "2000-02-29T23:59:59.999Z" },
		{ 951868800000, "2000-03-01T00:00:00.000Z" },
		{ 1709210096789, "2024-02-29T12:34:56.789Z" },
		{ 1735689599000, "2024-12-31T23:59:59.000Z" },
		{ 1735689600000, "2025-01-01T00:00:00.000Z" },
		{ 4107542400000, "2100-03-01T00:00:00.000Z" },
		{ 4107542399999, "2100-02-28T23:59:59.999Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(times); i++) {
		struct problem p = { .code = PROBLEM_RESPONSE_NOT_KEPT,
			.original_status = 201,
			.completed_at = times[i].ms };
		struct response r;
		struct buf body;
		cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);

		assert_int_equal(number(json, "original_status"), 201);
		assert_string_equal(text(json, "completed_at"), times[i].text);
		cJSON_Delete(json);
		response_free(&r);
		buf_free(&body);
	}
}

static void
text_is_escaped(void **state)
{
	struct problem p = { .code = PROBLEM_KEY_INVALID,
		.detail = "a \"key\"\n\001 and \\" };
	struct response r;
	struct buf body;
	cJSON *json = make(&p, CONF_DIALECT_IETF, &r, &body);

	(void)state;
	assert_string_equal(text(json, "detail"), p.detail);
	assert_null(memchr(r.body, '\n', r.body_len));
	cJSON_Delete(json);
	response_free(&r);
	buf_free(&body);
}

static void
body_is_appended(void **state)
{
	struct problem p = { .code = PROBLEM_KEY_MISSING };
	struct response r;
	struct buf body;

	(void)state;
	response_init(&r);
	buf_init(&body, LIMIT_PROBLEM);
	assert_int_equal(buf_adds(&body, "before"), RC_OK);
	assert_int_equal(
	    problem_make(&p, LINK, CONF_DIALECT_IETF, &r, &body), RC_OK);
	assert_ptr_equal(r.body, body.data + 6);
	assert_int_equal(r.body_len, body.len - 6);
	assert_memory_equal(body.data, "before{", 7);
	response_free(&r);
	buf_free(&body);
}

static void
failure_leaves_nothing_behind(void **state)
{
	static const struct {
		const char *link;
		size_t max;
		enum rc rc;
	} bad[] = {
		{ LINK, 20, RC_LIMIT },
		{ LINK, 60, RC_LIMIT },
		{ "a\r\nEvil: 1", LIMIT_PROBLEM, RC_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct problem p = { .code = PROBLEM_KEY_MISSING };
		struct response r;
		struct buf body;

		response_init(&r);
		buf_init(&body, bad[i].max);
		assert_int_equal(buf_adds(&body, "x"), RC_OK);
		assert_int_equal(
		    problem_make(&p, bad[i].link, CONF_DIALECT_IETF, &r, &body),
		    bad[i].rc);
		assert_int_equal(body.len, 1);
		assert_int_equal(r.fields.len, 0);
		response_free(&r);
		buf_free(&body);
	}
}

static void
no_problem_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(problem_name(PROBLEM_NONE), "none");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_ietf),
		cmocka_unit_test(every_code_stripe),
		cmocka_unit_test(retry_after_by_code),
		cmocka_unit_test(a_code_has_a_sentence_of_its_own),
		cmocka_unit_test(without_detail_the_title_says_it_all),
		cmocka_unit_test(a_status_of_the_callers_own),
		cmocka_unit_test(outcome_unknown_is_said_where_it_is_so),
		cmocka_unit_test(not_kept_names_status_and_time),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(body_is_appended),
		cmocka_unit_test(failure_leaves_nothing_behind),
		cmocka_unit_test(no_problem_has_a_name),
	};

	return cmocka_run_group_tests_name("problem", tests, NULL, NULL);
}
