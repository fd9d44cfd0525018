/*
 * scope: one variable and several, credentials, repeats, limits; and that no
 * two callers share one.
 */
#include "config.h"

#include "cases.h"

#include "conf_fixture.h"
#include "scope.h"
#include "out.h"

#define MAX_ROW 4

/* HMAC-SHA-256, as openssl dgst -mac HMAC says, of "Bearer abc" and "s=1"
 * under 32 bytes of 0x0b, and of "Bearer abc" under 32 of 0x0c. */
#define HMAC_BEARER                        \
	"cf4041aa8ab6c00e855fdede0c437b5b" \
	"eaadd153b952c4034cf54bc7d9434418"
#define HMAC_COOKIE                        \
	"68f4d283ea3503e9dd51cdf7929b0884" \
	"706ec4ab666eba6396cf498216836a5d"
#define HMAC_OTHER                         \
	"86f6566c24823bdae671a9228fa35bac" \
	"6c041aeb2ff26bcd7874d1404fcce576"

static const struct {
	const char *name;
	const char *variables[MAX_ROW + 1];
	struct param params[MAX_ROW];
	const char *scope; /* NULL: refused */
	bool empty;
} rows[] = {
	{ "no variables", { NULL }, { { "REMOTE_USER", "ann" } }, "", true },
	{ "one variable", { "REMOTE_USER" }, { { "REMOTE_USER", "ann" } },
	    "ann", false },
	{ "one variable as it is", { "REMOTE_USER" },
	    { { "REMOTE_USER", "a|b%7C \xc3\xa4" } }, "a|b%7C \xc3\xa4",
	    false },
	{ "one variable, not there", { "REMOTE_USER" },
	    { { "REMOTE_ADDR", "::1" } }, "", true },
	{ "one variable, empty", { "REMOTE_USER" }, { { "REMOTE_USER", "" } },
	    "", true },
	{ "names are case-sensitive", { "REMOTE_USER" },
	    { { "remote_user", "ann" } }, "", true },
	{ "repeated, but not of the scope", { "REMOTE_USER" },
	    { { "HTTP_X_USER", "ann" }, { "REMOTE_USER", "bob" },
		{ "HTTP_X_USER", "" } },
	    "bob", false },
	{ "two variables in the order of the configuration", { "B", "A" },
	    { { "A", "1" }, { "B", "2" } }, "2|1", false },
	{ "two variables, escaped", { "A", "B" },
	    { { "A", "x|y" }, { "B", "50%" } }, "x%7Cy|50%25", false },
	{ "two variables, first missing", { "A", "B" }, { { "B", "1" } }, "|1",
	    false },
	{ "two variables, second missing", { "A", "B" }, { { "A", "1" } }, "1|",
	    false },
	{ "two variables, both missing", { "A", "B" }, { { "C", "1" } }, "|",
	    true },
	{ "credential", { "HTTP_AUTHORIZATION" },
	    { { "HTTP_AUTHORIZATION", "Bearer abc" } }, HMAC_BEARER, false },
	{ "credential of a proxy", { "HTTP_PROXY_AUTHORIZATION" },
	    { { "HTTP_PROXY_AUTHORIZATION", "Bearer abc" } }, HMAC_BEARER,
	    false },
	{ "cookie", { "HTTP_COOKIE" }, { { "HTTP_COOKIE", "s=1" } },
	    HMAC_COOKIE, false },
	{ "one cookie of several", { "cookie:c" },
	    { { "HTTP_COOKIE", "a=2; c=s=1 ;b=3" } }, HMAC_COOKIE, false },
	{ "blanks around the name and the value of a cookie", { "cookie:c" },
	    { { "HTTP_COOKIE", "a=2;  c \t=  s=1 ;b=3" } }, HMAC_COOKIE,
	    false },
	{ "cookie that is not there", { "cookie:c" },
	    { { "HTTP_COOKIE", "cc=s=1; C=1; c" } }, "", true },
	{ "cookie without a value", { "cookie:c" },
	    { { "HTTP_COOKIE", "a=1; c=" } }, "", true },
	{ "cookie among others", { "REMOTE_USER", "cookie:c" },
	    { { "HTTP_COOKIE", "c=s=1" }, { "REMOTE_USER", "ann" } },
	    "ann|" HMAC_COOKIE, false },
	{ "cookie that comes twice", { "cookie:c" },
	    { { "HTTP_COOKIE", "c=1; a=2; c=1" } }, NULL, false },
	{ "cookie that comes twice, once with a blank", { "cookie:c" },
	    { { "HTTP_COOKIE", "c=1; a=2; c =2" } }, NULL, false },
	{ "two fields of cookies", { "cookie:c" },
	    { { "HTTP_COOKIE", "c=1" }, { "HTTP_COOKIE", "a=2" } }, NULL,
	    false },
	{ "credential, missing", { "HTTP_AUTHORIZATION" },
	    { { "HTTP_COOKIE", "s=1" } }, "", true },
	{ "credential, empty", { "HTTP_AUTHORIZATION" },
	    { { "HTTP_AUTHORIZATION", "" } }, "", true },
	{ "credential among others", { "REMOTE_USER", "HTTP_AUTHORIZATION" },
	    { { "HTTP_AUTHORIZATION", "Bearer abc" },
		{ "REMOTE_USER", "ann" } },
	    "ann|" HMAC_BEARER, false },
};

/* Of the scope that the last make() of a case made. */
static bool empty;

static void
make(const char *const *variables, const struct param *params,
    unsigned char secret_byte, enum rc expected)
{
	unsigned char secret[SCOPE_SECRET_LEN];
	struct conf_list list = list_of(variables);
	struct request req = { .params = params };

	while (req.nparams < MAX_ROW && params[req.nparams].name != NULL)
		req.nparams++;
	memset(secret, secret_byte, sizeof(secret));
	assert_int_equal(
	    scope_make(&req, &list, secret, &out, &empty), expected);
	list_free(&list);
}

TEST(every_kind_of_variable)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		out_new(1000);
		assert_ok(buf_adds(&out, "before"));
		empty = !rows[i].empty;
		make(rows[i].variables, rows[i].params, 0x0b,
		    rows[i].scope != NULL ? RC_OK : RC_INVALID);
		if (rows[i].scope == NULL)
			continue;
		if (strcmp(out.data, rows[i].scope) != 0)
			fail_msg("%s: %s", rows[i].name, out.data);
		if (empty != rows[i].empty)
			fail_msg("%s: empty", rows[i].name);
	}
}

TEST(credential_under_another_secret)
{
	const char *const variables[MAX_ROW + 1] = { "HTTP_AUTHORIZATION" };
	const struct param params[MAX_ROW] = {
		{ "HTTP_AUTHORIZATION", "Bearer abc" },
	};

	out_new(100);
	make(variables, params, 0x0c, RC_OK);
	assert_string_equal(out.data, HMAC_OTHER);
}

/* ... whichever value comes last, and if it is the same. */
TEST(a_variable_that_comes_twice_is_refused)
{
	static const char *const values[] = { "ann", "bob", "" };
	const char *const variables[MAX_ROW + 1] = { "REMOTE_USER",
		"HTTP_X_USER" };

	for (size_t i = 0; i < COUNT(values); i++) {
		const struct param params[MAX_ROW] = {
			{ "HTTP_X_USER", "ann" },
			{ "REMOTE_USER", "eve" },
			{ "HTTP_X_USER", values[i] },
		};

		out_new(1000);
		make(variables, params, 0x0b, RC_INVALID);
		assert_int_equal(out.len, 0);
		make(variables + 1, params, 0x0b, RC_INVALID);
	}
}

/* Different values of two variables must never be the same text. */
TEST(no_two_callers_share_a_scope)
{
	static const char *const values[] = { "", "a", "b", "|", "%", "%7C",
		"a|", "|a", "a|b", "%25", "%7C%25", "||" };
	const char *const variables[MAX_ROW + 1] = { "A", "B" };
	char *seen[COUNT(values) * COUNT(values)];
	size_t i, j;

	for (i = 0; i < COUNT(seen); i++) {
		const struct param params[MAX_ROW] = {
			{ "A", values[i / COUNT(values)] },
			{ "B", values[i % COUNT(values)] },
		};

		out_new(1000);
		make(variables, params, 0x0b, RC_OK);
		assert_int_equal(empty, i == 0);
		seen[i] = strdup(out.data);
		for (j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
	for (i = 0; i < COUNT(seen); i++)
		free(seen[i]);
}

TEST(scope_above_the_limit_is_refused)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const size_t len =
		    rows[i].scope != NULL ? strlen(rows[i].scope) : 0;

		for (size_t max = 0; max < len; max++) {
			out_new(max);
			make(rows[i].variables, rows[i].params, 0x0b, RC_LIMIT);
			assert_int_equal(out.len, 0);
		}
	}
}

TEST(a_scope_in_the_log_is_a_part_of_its_hash)
{
	static const struct {
		const char *scope, *tag;
	} tags[] = {
		/* printf %s alice | sha256sum */
		{ "alice", "2bd806c9" },
		{ "a|b", "0eab8a0a" },
		{ "|b", "e8d868e6" },
		{ "", "-" },
		{ "|", "-" },
		{ "||", "-" },
	};
	char tag[LOG_SCOPE_LEN + 1];

	for (size_t i = 0; i < COUNT(tags); i++) {
		scope_tag(tags[i].scope, tag);
		assert_string_equal(tag, tags[i].tag);
	}
}
