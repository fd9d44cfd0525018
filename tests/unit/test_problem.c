/*
 * problem: each code in both dialects, its fields, and what is said besides.
 */
#include "config.h"

#include "cases.h"

#include "json_member.h"
#include "limit.h"
#include "problem.h"

#define LINK     "https://example.org/keys"
#define INSTANCE "urn:uuid:123e4567-e89b-12d3-a456-426614174000"
#define API      "api_error"
#define INVALID  "invalid_request_error"
#define SAME     "idempotency_error"

/* What a problem says besides: that the same key may be sent again, and that
 * the request did nothing, so that a new key is safe. */
#define RETRY 1
#define SAFE  2

static const struct row {
	enum problem_code code;
	const char *name;
	int status, stripe_status;
	const char *type;
	int says;
	int after; /* Retry-After (s); 0: none */
} rows[] = {
	{ PROBLEM_REQUEST_INVALID, "request-invalid", 400, 400, INVALID, SAFE,
	    0 },
	{ PROBLEM_KEY_MISSING, "key-missing", 400, 400, INVALID, SAFE, 0 },
	{ PROBLEM_KEY_INVALID, "key-invalid", 400, 400, INVALID, SAFE, 0 },
	{ PROBLEM_KEY_REUSED, "key-reused", 422, 400, SAME, SAFE, 0 },
	{ PROBLEM_KEY_IN_PROGRESS, "key-in-progress", 409, 409, SAME, RETRY,
	    RETRY_AFTER_BUSY },
	{ PROBLEM_KEY_OF_ANOTHER, "key-of-another", 409, 409, SAME, 0, 0 },
	{ PROBLEM_OUTCOME_UNKNOWN, "outcome-unknown", 409, 409, SAME, RETRY,
	    RETRY_AFTER_UNKNOWN },
	{ PROBLEM_KEY_EXPIRED, "key-expired", 410, 400, SAME, 0, 0 },
	{ PROBLEM_RESPONSE_NOT_KEPT, "response-not-kept", 410, 410, SAME, 0,
	    0 },
	{ PROBLEM_SCOPE_REQUIRED, "scope-required", 403, 401, INVALID, SAFE,
	    0 },
	{ PROBLEM_BODY_TOO_LARGE, "body-too-large", 413, 413, INVALID, SAFE,
	    0 },
	{ PROBLEM_BODY_INCOMPLETE, "body-incomplete", 400, 400, INVALID,
	    RETRY | SAFE, 0 },
	{ PROBLEM_STORE_UNAVAILABLE, "store-unavailable", 503, 503, API,
	    RETRY | SAFE, RETRY_AFTER_STORE },
	{ PROBLEM_TOO_MANY_KEYS, "too-many-keys", 429, 429, API, RETRY | SAFE,
	    RETRY_AFTER_BUSY },
	{ PROBLEM_REQUEST_TOO_OLD, "request-too-old", 412, 400, INVALID, SAFE,
	    0 },
	{ PROBLEM_OVERLOADED, "overloaded", 503, 503, API, RETRY | SAFE,
	    RETRY_AFTER_BUSY },
	{ PROBLEM_HANDLER_NOT_STARTED, "handler-not-started", 502, 502, API,
	    RETRY | SAFE, 0 },
	{ PROBLEM_HANDLER_FAILED, "handler-failed", 502, 502, API, RETRY, 0 },
	{ PROBLEM_HANDLER_TIMEOUT, "handler-timeout", 504, 504, API, RETRY, 0 },
	{ PROBLEM_OUTCOME_NOT_RECORDED, "outcome-not-recorded", 500, 500, API,
	    RETRY, 0 },
	{ PROBLEM_REQUEST_EXPIRED, "request-expired", 408, 408, API, SAFE, 0 },
	{ PROBLEM_NOT_FOUND, "not-found", 404, 404, INVALID, SAFE, 0 },
	{ PROBLEM_METHOD_NOT_ALLOWED, "method-not-allowed", 405, 405, INVALID,
	    SAFE, 0 },
};

/* What the last make() or make_page() of a test made. */
static struct response r;
static struct buf body;
static cJSON *json;

static int
forget(UNUSED void **state)
{
	cJSON_Delete(json);
	json = NULL;
	response_free(&r);
	buf_free(&body);
	response_init(&r);
	buf_init(&body, LIMIT_PROBLEM);
	return 0;
}

AROUND_EACH(forget, forget)

static void
make(const struct problem *p, enum conf_dialect dialect)
{
	(void)forget(NULL);
	assert_ok(problem_make(p, LINK, dialect, &r, &body));
	json = cJSON_ParseWithLengthOpts(r.body, r.body_len, NULL, 0);
	assert_non_null(json);
}

static void
assert_is(const char *name, bool value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

	assert_true(cJSON_IsBool(item));
	assert_int_equal(cJSON_IsTrue(item), value);
}

static bool
has_field(const char *name)
{
	struct field f;

	return response_find(&r.fields, name, &f);
}

static void
assert_field(const char *name, const char *value)
{
	struct field f;

	assert_true(response_find(&r.fields, name, &f));
	assert_int_equal(f.value.n, strlen(value));
	assert_memory_equal(f.value.p, value, f.value.n);
}

/* The fields of a problem, whatever its form. */
static void
assert_fields(const struct row *w, const char *type)
{
	char seconds[16];

	assert_field("Content-Type", type);
	assert_field("Link", "<" LINK ">; rel=\"describedby\"");
	assert_field("Cache-Control", "no-store");
	assert_int_equal(has_field("Retry-After"), w->after != 0);
	snprintf(seconds, sizeof(seconds), "%d", w->after);
	if (w->after != 0)
		assert_field("Retry-After", seconds);
}

TEST(every_code_ietf)
{
	assert_string_equal(problem_name(PROBLEM_NONE), "none");
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct problem p = { .code = w->code,
			.detail = "Because.",
			.instance = INSTANCE };
		char type[128];

		make(&p, CONF_DIALECT_IETF);
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
		assert_is("retryable", w->says & RETRY);
		assert_fields(w, "application/problem+json");
		assert_string_equal(problem_name(w->code), w->name);
		assert_int_equal(
		    problem_status(&p, CONF_DIALECT_IETF), w->status);
		assert_is("safe_new_key", w->says & SAFE);
		assert_field("Vary", "Accept");
	}
}

TEST(every_code_stripe)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *w = &rows[i];
		struct problem p = { .code = w->code, .detail = "Because." };
		const cJSON *error;

		make(&p, CONF_DIALECT_STRIPE);
		error = cJSON_GetObjectItemCaseSensitive(json, "error");

		print_message("%s\n", w->name);
		assert_int_equal(cJSON_GetArraySize(json), 1);
		assert_int_equal(r.status, w->stripe_status);
		assert_string_equal(text(error, "type"), w->type);
		assert_string_equal(text(error, "code"), w->name);
		assert_string_equal(text(error, "message"), "Because.");
		assert_fields(w, "application/json");
	}
}

TEST(a_code_has_a_sentence_of_its_own)
{
	struct problem p = { .code = PROBLEM_KEY_MISSING };

	make(&p, CONF_DIALECT_IETF);
	assert_string_equal(text(json, "detail"), problem_detail(&p));
	assert_string_equal(
	    problem_detail(&p), "This resource needs an idempotency key.");
	p.detail = "Another.";
	assert_string_equal(problem_detail(&p), "Another.");
}

TEST(without_detail_the_title_says_it_all)
{
	struct problem p = { .code = PROBLEM_KEY_INVALID };
	make(&p, CONF_DIALECT_IETF);
	char title[128];

	assert_false(cJSON_HasObjectItem(json, "detail"));
	assert_false(cJSON_HasObjectItem(json, "instance"));
	snprintf(title, sizeof(title), "%s", text(json, "title"));
	make(&p, CONF_DIALECT_STRIPE);
	assert_string_equal(
	    text(cJSON_GetObjectItemCaseSensitive(json, "error"), "message"),
	    title);
}

TEST(a_status_of_the_callers_own)
{
	struct problem p = { .code = PROBLEM_HANDLER_FAILED, .status = 503 };

	make(&p, CONF_DIALECT_IETF);
	assert_int_equal(r.status, 503);
	assert_int_equal(number(json, "status"), 503);
	make(&p, CONF_DIALECT_STRIPE);
	assert_int_equal(r.status, 503);
}

TEST(outcome_unknown_is_said_where_it_is_so)
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

	for (size_t i = 0; i < COUNT(said); i++) {
		for (int d = 0; d < 2; d++) {
			struct problem p = { .code = said[i].code,
				.unknown = said[i].unknown };
			make(&p, d ? CONF_DIALECT_STRIPE : CONF_DIALECT_IETF);
			assert_string_equal(
			    text(d ? json->child : json, "outcome"),
			    said[i].says ? "unknown" : "(none)");
		}
	}
}

TEST(not_kept_names_status_and_time)
{
	const struct problem p = { .code = PROBLEM_RESPONSE_NOT_KEPT,
		.original_status = 201,
		.completed_at = 1709210096789 };

	make(&p, CONF_DIALECT_IETF);
	assert_int_equal(number(json, "original_status"), 201);
	assert_string_equal(
	    text(json, "completed_at"), "2024-02-29T12:34:56.789Z");
}

/* Makes the page, and returns it as text. */
static const char *
make_page_for(struct problem *p, const char *link, enum conf_dialect dialect)
{
	(void)forget(NULL);
	p->html = true;
	assert_ok(problem_make(p, link, dialect, &r, &body));
	assert_ptr_equal(r.body, body.data);
	assert_int_equal(r.body_len, body.len);
	return body.data;
}

static const char *
make_page(struct problem *p)
{
	return make_page_for(p, LINK, CONF_DIALECT_IETF);
}

/* Of the page that was made. */
static void
assert_says(const char *part)
{
	if (strstr(body.data, part) == NULL)
		fail_msg("\"%s\" is not in: %s", part, body.data);
}

static void
assert_fact(const char *name, const char *value)
{
	char part[128];

	snprintf(part, sizeof(part), "%s</dt><dd>%s</dd>", name, value);
	assert_says(part);
}

TEST(a_page_says_the_same)
{
	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		const struct row *w = &rows[i / 2];
		const bool stripe = i % 2 == 1;
		struct problem p = { .code = w->code,
			.detail = "Because of max_x.",
			.instance = INSTANCE };
		char status[8];
		const char *page = make_page_for(
		    &p, LINK, stripe ? CONF_DIALECT_STRIPE : CONF_DIALECT_IETF);

		print_message("%s\n", w->name);
		assert_int_equal(
		    r.status, stripe ? w->stripe_status : w->status);
		assert_fields(w, "text/html; charset=utf-8");
		assert_field("Vary", "Accept");
		assert_field("X-Content-Type-Options", "nosniff");
		assert_field("Content-Security-Policy",
		    "default-src 'none'; style-src 'unsafe-inline'; base-uri "
		    "'none'; form-action 'none'; frame-ancestors 'none'");
		assert_memory_equal(page, "<!DOCTYPE html>\n", 16);
		assert_fact("Code", w->name);
		snprintf(status, sizeof(status), "%d", r.status);
		assert_fact("Status", status);
		assert_fact("same key", w->says & RETRY ? "yes" : "no");
		assert_fact("new key", w->says & SAFE ? "yes" : "no");
		assert_null(strstr(page, "Because"));
		assert_says("<dd>" INSTANCE "</dd>");
		assert_says("<a href=\"" LINK "\">");
		assert_says("</html>\n");
	}
}

TEST(a_page_says_what_to_do)
{
	static const struct {
		enum problem_code code;
		const char *advice;
	} said[] = {
		{ PROBLEM_KEY_REUSED,
		    "open the form again and submit it from there" },
		{ PROBLEM_KEY_IN_PROGRESS, "reload this page" },
		{ PROBLEM_OUTCOME_UNKNOWN, "Do not send it as a new request" },
		{ PROBLEM_RESPONSE_NOT_KEPT, "Do not send it again" },
		{ PROBLEM_OVERLOADED, "reload this page" },
		{ PROBLEM_KEY_MISSING, "Open the form again" },
	};

	for (size_t i = 0; i < COUNT(said); i++) {
		struct problem p = { .code = said[i].code };

		make_page(&p);
		assert_says(said[i].advice);
	}
}

TEST(a_page_has_the_facts_of_its_code)
{
	struct problem unknown = { .code = PROBLEM_HANDLER_FAILED,
		.unknown = true };
	struct problem gone = { .code = PROBLEM_RESPONSE_NOT_KEPT,
		.original_status = 201,
		.completed_at = 951782400000 };
	const char *page;

	page = make_page(&unknown);
	assert_fact("Outcome", "unknown");
	assert_null(strstr(page, "Original status"));
	assert_null(strstr(page, "Reference"));
	page = make_page(&gone);
	assert_fact("Original status", "201");
	assert_says("<dd>2000-02-29T00:00:00Z</dd>");
	assert_null(strstr(page, "Outcome"));
}

TEST(hostile_texts_are_no_markup)
{
	struct problem p = { .code = PROBLEM_KEY_INVALID,
		.instance = "</p><script>\"'&\001\377\302\233" };
	const char *page =
	    make_page_for(&p, "javascript:alert('1')", CONF_DIALECT_IETF);

	assert_says("<dd>&lt;/p&gt;&lt;script&gt;&quot;&#39;&amp;"
		    "\\x01\\xff\\xc2\\x9b</dd>");
	assert_says("javascript:alert(&#39;1&#39;)</p>");
	assert_null(strstr(page, "<a "));
	assert_null(strstr(page, "<script"));
}

/* A customer does not know these words. */
TEST(a_page_has_no_words_of_programmers)
{
	static const char *const words[] = { "idempotency", "status code",
		"method", "handler", "signal", "parameter", "database",
		"store ", "max_", "timeout" };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct problem p = { .code = rows[i].code,
			.detail = "killed by signal 9, max_x, timeout" };
		const char *page =
		    make_page_for(&p, "https://x.example/", CONF_DIALECT_IETF);
		const char *begin = strstr(page, "<h1>");
		const char *facts = strstr(page, "<dl>");

		assert_true(begin != NULL && facts > begin);
		for (size_t j = 0; j < COUNT(words); j++) {
			const char *at = strstr(begin, words[j]);

			if (at != NULL && at < facts)
				fail_msg("%s: %s", rows[i].name, words[j]);
		}
	}
}

/* "Nothing was done" would be the customer's second payment.  As where the
 * answer that a handler stored cannot be read. */
TEST(a_request_that_ran_is_never_safe_with_a_new_key)
{
	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		struct problem p = { .code = rows[i / 2].code,
			.acted = i % 2 == 0,
			.unknown = i % 2 == 1 };

		make(&p, CONF_DIALECT_IETF);
		assert_is("safe_new_key", false);
		if (rows[i / 2].says & SAFE) {
			assert_null(strstr(make_page(&p), "Nothing was done"));
			assert_says("it may have been carried out");
		}
	}
}

/* --- pages of the operator ------------------------------------------------ */

static const struct {
	const char *page, *text;
} templates[] = {
	{ "", "" },
	{ "<p>plain</p>", "<p>plain</p>" },
	{ "@title@", "This site is busy at the moment" },
	{ "<i title=\"@instance@\">@key@</i>",
	    "<i title=\"" INSTANCE "\">&lt;b&gt;&quot;&#39;@title@</i>" },
	{ "@retry_after@@retry_after@", "11" },
	{ "a@b @key @ key@ @@ @KEY@ @keys@",
	    "a@b @key @ key@ @@ @KEY@ @keys@" },
	{ "@@instance@@", "@" INSTANCE "@" },
	{ "@", "@" },
	{ "@ke", "@ke" },
	{ "@title", "@title" },
};

TEST(a_template_gets_the_values_of_the_problem)
{
	for (size_t i = 0; i < COUNT(templates); i++) {
		/* Without a NUL at its end. */
		const size_t len = strlen(templates[i].page);
		char *bytes = exact_copy(templates[i].page, len);
		struct problem p = { .code = PROBLEM_OVERLOADED,
			.instance = INSTANCE,
			.key = "<b>\"'@title@",
			.page = {
			    .bytes = bytes, .len = len, .language = "de" } };

		assert_string_equal(make_page(&p), templates[i].text);
		assert_field("Content-Language", "de");
		assert_field("Vary", "Accept, Accept-Language");
		assert_field("Retry-After", "1");
		assert_field("Content-Security-Policy",
		    "default-src 'none'; style-src 'unsafe-inline' 'self'; "
		    "img-src 'self' data:; font-src 'self'; base-uri 'none'; "
		    "form-action 'none'; frame-ancestors 'none'");
		free(bytes);
	}
}

TEST(a_template_without_values_gets_empty_ones)
{
	struct problem p = { .code = PROBLEM_KEY_MISSING,
		.page = { "[@instance@@key@@retry_after@]",
		    strlen("[@instance@@key@@retry_after@]"), "" } };

	assert_string_equal(make_page(&p), "[]");
	assert_false(has_field("Content-Language"));
}

TEST(a_detail_may_hold_any_bytes)
{
	static const struct {
		const char *detail, *said;
	} texts[] = {
		{ "a \"key\"\n\001 and \\", "a \"key\"\n\001 and \\" },
		/* JSON has no bytes but UTF-8. */
		{ "Z\303\274rich \377 \342\202",
		    "Z\303\274rich \357\277\275 \357\277\275\357\277\275" },
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct problem p = { .code = PROBLEM_KEY_INVALID,
			.detail = texts[i].detail };

		make(&p, CONF_DIALECT_IETF);
		assert_string_equal(text(json, "detail"), texts[i].said);
		assert_null(memchr(r.body, '\n', r.body_len));
	}
}

TEST(the_longest_link_has_room)
{
	char link[4097];
	struct problem p = { .code = PROBLEM_KEY_MISSING };

	memset(link, '&', sizeof(link) - 1);
	memcpy(link, "https://a/", 10);
	link[sizeof(link) - 1] = '\0';
	for (int html = 0; html < 2; html++) {
		(void)forget(NULL);
		p.html = html == 1;
		assert_ok(problem_make(&p, link, CONF_DIALECT_IETF, &r, &body));
	}
}

TEST(body_is_appended)
{
	struct problem p = { .code = PROBLEM_KEY_MISSING };

	assert_ok(buf_adds(&body, "before"));
	assert_ok(problem_make(&p, LINK, CONF_DIALECT_IETF, &r, &body));
	assert_ptr_equal(r.body, body.data + 6);
	assert_int_equal(r.body_len, body.len - 6);
	assert_memory_equal(body.data, "before{", 7);
}

TEST(failure_leaves_nothing_behind)
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

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct problem p = { .code = PROBLEM_KEY_MISSING };

		(void)forget(NULL);
		buf_init(&body, bad[i].max);
		assert_ok(buf_adds(&body, "x"));
		assert_int_equal(
		    problem_make(&p, bad[i].link, CONF_DIALECT_IETF, &r, &body),
		    bad[i].rc);
		assert_int_equal(body.len, 1);
		assert_int_equal(r.fields.len, 0);
	}
}
