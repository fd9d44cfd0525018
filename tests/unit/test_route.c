/*
 * route: which rules a path gets, and which requests they guard.
 */
#include "config.h"

#include "cases.h"

#include "conf_fixture.h"
#include "limit.h"
#include "route.h"

TEST(longest_prefix_by_whole_segments)
{
	static const struct {
		const char *path, *route;
	} rows[] = {
		{ "/pay", "/pay" },
		{ "/pay/", "/pay" },
		{ "/pay/1/2", "/pay" },
		{ "/pay/card", "/pay/card" },
		{ "/pay/card/x", "/pay/card" },
		{ "/pay/cards", "/pay" },
		{ "/payments", "" },
		{ "/pa", "" },
		{ "/PAY", "" },
		{ "/", "" },
		{ "/x/pay", "" },
		{ "/end", "/end" },
		{ "/a b/c", "/a b" },
	};
	struct conf *conf = conf_from("[route /pay]\n[route /pay/card]\n"
				      "[route /end/]\n[route /a b]\n");

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct conf_route *r = route_find(conf, rows[i].path);

		if (strcmp(r->path, rows[i].route) != 0)
			fail_msg("%s gets \"%s\"", rows[i].path, r->path);
	}
	assert_ptr_equal(route_find(conf, "/none"), &conf->defaults);
	conf_unref(conf);
}

TEST(root_is_the_prefix_of_every_path)
{
	struct conf *conf = conf_from("[route /]\n[route /a]\n");

	assert_string_equal(route_find(conf, "/")->path, "/");
	assert_string_equal(route_find(conf, "/b/c")->path, "/");
	assert_string_equal(route_find(conf, "/ab")->path, "/");
	assert_string_equal(route_find(conf, "/a/b")->path, "/a");
	conf_unref(conf);
}

TEST(defaults_alone_apply_without_routes)
{
	struct conf_error err;
	struct conf *conf = conf_default(&err);

	assert_non_null(conf);
	assert_ptr_equal(route_find(conf, "/a"), &conf->defaults);
	conf_unref(conf);
}

/* With so many fields of the key. */
struct asked {
	const char *options, *method;
	size_t keys;
};

static const struct asked guarded[] = {
	{ "key = optional", "POST", 1 },
	{ "key = optional", "POST", 2 },
	{ "key = required", "PATCH", 1 },
	{ "key = required", "PATCH", 0 },
	{ "methods = DELETE", "DELETE", 1 },
	{ "methods = unsafe", "DELETE", 1 },
	{ "methods = unsafe", "BREW", 1 },
};

static const struct asked unguarded[] = {
	{ "key = optional", "POST", 0 },
	{ "key = ignore", "POST", 1 },
	{ "key = ignore", "POST", 0 },
	{ "key = required", "GET", 1 },
	{ "key = required", "post", 1 },
	{ "key = required", "POS", 1 },
	{ "key = required", "", 1 },
	{ "methods = unsafe", "GET", 1 },
	{ "methods = unsafe", "HEAD", 1 },
	{ "methods = unsafe", "OPTIONS", 1 },
	{ "methods = unsafe", "TRACE", 1 },
	{ "methods = DELETE", "POST", 1 },
};

static void
check_guards(const struct asked *rows, size_t n, enum route_guard want)
{
	const struct param params[] = {
		{ "REQUEST_METHOD", "POST" },
		{ "HTTP_IDEMPOTENCY_KEY", "" },
		{ "HTTP_IDEMPOTENCY_KEY", "b" },
	};

	for (size_t i = 0; i < n; i++) {
		char text[128] = "[route /a]\nmax_request_body = 7\n";
		struct request request = {
			.params = params,
			.nparams = 1 + rows[i].keys,
			.method = rows[i].method,
			.path = "/a",
			.query = "",
		};
		struct conf *conf = conf_from(strcat(text, rows[i].options));
		const struct conf_route *route = route_find(conf, "/a");

		if (route_guards(route, &request) != want)
			fail_msg("%s, %s, %zu keys", rows[i].options,
			    rows[i].method, rows[i].keys);
		assert_int_equal(route_body_limit(conf, route, &request),
		    want == ROUTE_GUARDED ? 7 : LIMIT_SIZE);
		conf_unref(conf);
	}
}

TEST(guard_needs_method_and_key)
{
	check_guards(guarded, COUNT(guarded), ROUTE_GUARDED);
	check_guards(unguarded, COUNT(unguarded), ROUTE_UNGUARDED);
}

#define URLENCODED "application/x-www-form-urlencoded"

TEST(guard_goes_by_the_places_configured)
{
	static const struct {
		const char *key_from, *query, *name, *value;
		enum route_guard guard;
	} rows[] = {
		{ "header:X-Key", "", "HTTP_X_KEY", "a", ROUTE_GUARDED },
		{ "header:X-Key", "", "HTTP_IDEMPOTENCY_KEY", "a",
		    ROUTE_UNGUARDED },
		{ "header:X-Key+header:X-B", "", "HTTP_X_KEY", "a",
		    ROUTE_UNGUARDED },
		{ "query:a header:X-Key", "", "HTTP_X_KEY", "a",
		    ROUTE_GUARDED },
		{ "query:a header:X-Key", "b", "HTTP_X_KEY", "a",
		    ROUTE_GUARDED },
		{ "query:a", "b", "HTTP_X_KEY", "a", ROUTE_BY_KEY },
		{ "query:a", "", "HTTP_X_KEY", "a", ROUTE_UNGUARDED },
		{ "cookie:a", "", "HTTP_COOKIE", "b=c", ROUTE_BY_KEY },
		{ "cookie:a", "", "HTTP_X_KEY", "a", ROUTE_UNGUARDED },
		{ "form:a", "", "CONTENT_TYPE", URLENCODED, ROUTE_BY_KEY },
		{ "form:a", "", "CONTENT_TYPE", "Multipart/Form-Data;x",
		    ROUTE_BY_KEY },
		{ "form:a", "", "CONTENT_TYPE", "text/plain", ROUTE_UNGUARDED },
		{ "json:/a", "", "CONTENT_TYPE", "application/json",
		    ROUTE_BY_KEY },
		{ "json:/a", "", "CONTENT_TYPE", URLENCODED, ROUTE_UNGUARDED },
		{ "form:a+header:X-Key", "", "CONTENT_TYPE", URLENCODED,
		    ROUTE_UNGUARDED },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct param param = { rows[i].name, rows[i].value };
		struct request request = {
			.params = &param,
			.nparams = 1,
			.method = "POST",
			.path = "/",
			.query = rows[i].query,
		};
		char text[128];
		struct conf *conf;

		snprintf(text, sizeof(text), "[defaults]\nkey_from = %s\n",
		    rows[i].key_from);
		conf = conf_from(text);
		if (route_guards(&conf->defaults, &request) != rows[i].guard)
			fail_msg("%s, %s", rows[i].key_from, rows[i].value);
		conf_unref(conf);
	}
}

TEST(what_is_below_paths_of_our_own_is_for_no_handler)
{
	enum { HANDLERS, ADMIN, STATUS };
	static const struct {
		const char *path;
		int whose;
	} rows[] = {
		{ "/once", ADMIN },
		{ "/once/", ADMIN },
		{ "/once/metrics", ADMIN },
		{ "/once/x/y", ADMIN },
		{ "/oncewrap", HANDLERS },
		{ "/onc", HANDLERS },
		{ "/", HANDLERS },
		{ "/a/once", HANDLERS },
		{ "/jobs", STATUS },
		{ "/jobs/", STATUS },
		{ "/jobs/0123/result", STATUS },
		{ "/jobsite", HANDLERS },
	};
	static const struct {
		const char *method;
		uint64_t limit[3]; /* of a body, by whose path it is */
	} methods[] = {
		{ "POST", { LIMIT_SIZE, LIMIT_ADMIN_BODY, 0 } },
		{ "PUT", { LIMIT_SIZE, 0, 0 } },
	};
	struct conf *conf = conf_from("[server]\nadmin_path = /once/\n"
				      "status_path = /jobs/\n"
				      "[defaults]\nmax_request_body = 7\n"
				      "[route /once/metrics]\nkey = required\n"
				      "[route /jobs/0123]\nkey = required\n");
	struct conf_error err;

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *path = rows[i].path;

		if (route_is_admin(conf, path) != (rows[i].whose == ADMIN) ||
		    route_is_status(conf, path) != (rows[i].whose == STATUS))
			fail_msg("%s", path);
		for (size_t j = 0; j < COUNT(methods); j++) {
			struct request request = { .path = path,
				.method = methods[j].method,
				.query = "" };

			assert_int_equal(route_body_limit(conf,
					     route_find(conf, path), &request),
			    methods[j].limit[rows[i].whose]);
		}
	}
	conf_unref(conf);
	conf = conf_default(&err);
	assert_non_null(conf);
	assert_false(route_is_admin(conf, "/"));
	assert_false(route_is_admin(conf, "/metrics"));
	assert_false(route_is_status(conf, "/"));
	conf_unref(conf);
}

/* --- the age of a request ------------------------------------------------ */

/* 1994-11-06T08:49:37Z, and an hour. */
#define NOW  INT64_C(784111777000)
#define HOUR INT64_C(3600000)

static const struct {
	const char *name;
	const char *values[2]; /* of the field; NULL: not there */
	enum age age;
} ages[] = {
	{ "none", { NULL }, AGE_UNTOLD },
	{ "empty", { "" }, AGE_UNREADABLE },
	{ "now", { "Sun, 06 Nov 1994 08:49:37 GMT" }, AGE_GOOD },
	{ "now, RFC 3339", { "1994-11-06T09:49:37+01:00" }, AGE_GOOD },
	{ "an hour ago", { "1994-11-06T07:49:37Z" }, AGE_GOOD },
	{ "a millisecond more", { "1994-11-06T07:49:36.999Z" }, AGE_OLD },
	{ "a year ago", { "Sat, 06 Nov 1993 08:49:37 GMT" }, AGE_OLD },
	{ "in an hour", { "1994-11-06T09:49:37Z" }, AGE_GOOD },
	{ "a millisecond later", { "1994-11-06T09:49:37.001Z" }, AGE_AHEAD },
	{ "no date", { "yesterday" }, AGE_UNREADABLE },
	{ "twice", { "1994-11-06T08:49:37Z", "1994-11-06T08:49:37Z" },
	    AGE_UNREADABLE },
};

TEST(every_age)
{
	struct conf_route route;

	memset(&route, 0, sizeof(route));
	route.max_request_age = HOUR;
	route.request_timestamp = "X-Sent-At";
	for (size_t i = 0; i < COUNT(ages); i++) {
		struct param params[] = { { "HTTP_DATE", "never" },
			{ "HTTP_X_SENT_AT", ages[i].values[0] },
			{ "HTTP_X_SENT_AT", ages[i].values[1] } };
		struct request request;
		enum age age;

		memset(&request, 0, sizeof(request));
		request.params = params;
		request.nparams = 1;
		while (request.nparams < 3 &&
		    params[request.nparams].value != NULL)
			request.nparams++;
		age = route_age(&route, &request, NOW);
		if (age != ages[i].age)
			fail_msg("%s: %d", ages[i].name, (int)age);
		if (age != AGE_GOOD)
			assert_memory_equal(route_age_text(age), "is ", 3);
	}
}

TEST(a_request_without_the_option_has_no_limit)
{
	struct conf_route route;
	struct request request;

	memset(&route, 0, sizeof(route));
	memset(&request, 0, sizeof(request));
	assert_int_equal(route_age(&route, &request, NOW), AGE_GOOD);
	/* of a default that this route does without */
	route.request_timestamp = "Date";
	assert_int_equal(route_age(&route, &request, NOW), AGE_GOOD);
}

/* --- parameters ---------------------------------------------------------- */

TEST(parameters_last_one_and_count)
{
	static const struct param params[] = {
		{ "A", "1" },
		{ "B", "" },
		{ "A", "2" },
		{ "a", "3" },
	};
	struct request r = { .params = params, .nparams = COUNT(params) };

	assert_string_equal(request_param(&r, "A"), "2");
	assert_string_equal(request_param(&r, "B"), "");
	assert_string_equal(request_param(&r, "a"), "3");
	assert_null(request_param(&r, "C"));
	assert_int_equal(request_count(&r, "A"), 2);
	assert_int_equal(request_count(&r, "B"), 1);
	assert_int_equal(request_count(&r, "C"), 0);
	r.params = NULL;
	r.nparams = 0;
	assert_null(request_param(&r, "A"));
	assert_int_equal(request_count(&r, "A"), 0);
}
