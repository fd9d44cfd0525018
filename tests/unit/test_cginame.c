/*
 * cginame: every spelling of a path, names of CGI variables.
 */
#include "config.h"

#include "cases.h"

#include "cginame.h"
#include "out.h"

static const struct {
	const char *name;
	const char *script_name, *path_info;
	const char *path;
} paths[] = {
	{ "both missing", NULL, NULL, "/" },
	{ "both empty", "", "", "/" },
	{ "script name alone", "/pay", NULL, "/pay" },
	{ "path info alone", NULL, "/pay", "/pay" },
	{ "joined as they are", "/cgi/pay", "/42/refund",
	    "/cgi/pay/42/refund" },
	{ "joined inside a segment", "/pa", "y", "/pay" },
	{ "no leading slash", "pay", "", "/pay" },
	{ "root", "/", "", "/" },
	{ "repeated slash in front", "//pay", "", "/pay" },
	{ "repeated slashes inside", "/a///b", "", "/a/b" },
	{ "repeated slashes where the two meet", "/a/", "/b", "/a/b" },
	{ "slashes only", "////", "//", "/" },
	{ "trailing slash stays", "/a", "/", "/a/" },
	{ "repeated trailing slash", "/a", "//", "/a/" },
	{ "dot segment", "/a/./b", "", "/a/b" },
	{ "dot at the end", "/a/.", "", "/a/" },
	{ "dot alone", ".", "", "/" },
	{ "dot in front", "./a", "", "/a" },
	{ "parent segment", "/x/../pay", "", "/pay" },
	{ "parent at the end", "/a/b/..", "", "/a/" },
	{ "parent and slash at the end", "/a/b/../", "", "/a/" },
	{ "parent of a segment of the path info", "/a/b", "/c/../d", "/a/b/d" },
	{ "parent at the end of the path info", "/a/b", "/c/..", "/a/b/" },
	{ "parent of a segment across the two", "/a/b", "c/../d", "/a/d" },
	{ "parents in both", "/a/../b", "/c/../d", "/b/d" },
	{ "parent of everything", "/a/..", "", "/" },
	{ "parent above the root", "/../../etc", "", "/etc" },
	{ "parent above the root alone", "..", "", "/" },
	{ "parent after an empty segment", "/a//../b", "", "/b" },
	{ "two parents", "/a/b/c/../../d", "", "/a/d" },
	{ "three dots are a name", "/a/.../b", "", "/a/.../b" },
	{ "dots that begin a name", "/..a/.b", "", "/..a/.b" },
	{ "dots that end a name", "/a../b.", "", "/a../b." },
	{ "percent is a character like others", "/%2e%2e/a", "", "/%2e%2e/a" },
	{ "backslash is a character like others", "/a\\..\\b", "",
	    "/a\\..\\b" },
	{ "case stays", "/Pay", "", "/Pay" },
};

/* Path infos that lead out of the script name. */
static const struct {
	const char *script_name, *path_info;
} climbs[] = {
	{ "/a/b", "/../c" },
	{ "/a/b", "/.." },
	{ "/a/b", "/../" },
	{ "/a/b", "//../c" },
	{ "/a/b", "/./../c" },
	{ "/a/b", "/c/../../d" },
	{ "/a/b", "/../b/c" }, /* and back */
	{ "/a/b", "/c//../../b/c" },
	{ "/a/b/", "../c" },
	{ "/a/b/.", "./c" }, /* together a ".." */
	{ "/a/b", "c/../../d" },
	{ "", "/../c" },
	{ NULL, "/.." },
	{ "/", ".." },
	{ "/..", "/.." },
};

TEST(path_info_that_leads_out_of_script_name)
{
	for (size_t i = 0; i < COUNT(climbs); i++) {
		out_new(1000);
		if (cginame_path(climbs[i].script_name, climbs[i].path_info,
			&out) != RC_INVALID)
			fail_msg("%s and %s: %s", climbs[i].script_name,
			    climbs[i].path_info, out.data);
		assert_int_equal(out.len, 0);
	}
}

TEST(every_spelling_of_a_path)
{
	size_t i;

	for (i = 0; i < COUNT(paths); i++) {
		out_new(100);
		assert_ok(buf_adds(&out, "before"));
		if (cginame_path(paths[i].script_name, paths[i].path_info,
			&out) != RC_OK)
			fail_msg("%s: refused", paths[i].name);
		if (strcmp(out.data, paths[i].path) != 0)
			fail_msg("%s: %s", paths[i].name, out.data);
		assert_int_equal(out.len, strlen(out.data));
	}
}

/* What a path was made from may not make another one. */
TEST(resolved_path_stays_as_it_is)
{
	struct buf again;
	size_t i;

	for (i = 0; i < COUNT(paths); i++) {
		out_new(100);
		buf_init(&again, 100);
		assert_ok(cginame_path(paths[i].path, NULL, &out));
		assert_string_equal(out.data, paths[i].path);
		assert_ok(cginame_path(NULL, out.data, &again));
		assert_string_equal(again.data, paths[i].path);
		buf_free(&again);
	}
}

TEST(path_above_the_limit_is_refused)
{
	out_new(8);
	assert_int_equal(cginame_path("/1234", "567", &out), RC_LIMIT);
	assert_int_equal(out.len, 0);
	assert_ok(cginame_path("1234", "567", &out));
	assert_string_equal(out.data, "/1234567");
}

static const struct {
	const char *name, *field, *variable;
} variables[] = {
	{ "prefix, case, dash", "Idempotency-Key", "HTTP_IDEMPOTENCY_KEY" },
	{ "content type", "Content-Type", "CONTENT_TYPE" },
	{ "content length in lower case", "content-length", "CONTENT_LENGTH" },
	{ "only these two", "Content-Language", "HTTP_CONTENT_LANGUAGE" },
	{ "digits and underscore stay", "x_1-2", "HTTP_X_1_2" },
	{ "all else becomes an underscore", "a.b~c\xc3!", "HTTP_A_B_C__" },
	{ "empty", "", "HTTP_" },
};

TEST(names_of_variables)
{
	char got[64];
	size_t i;

	for (i = 0; i < COUNT(variables); i++) {
		assert_ok(
		    cginame_variable(variables[i].field, got, sizeof(got)));
		if (strcmp(got, variables[i].variable) != 0)
			fail_msg("%s: %s", variables[i].name, got);
	}
}

TEST(variable_that_does_not_fit_is_refused)
{
	char got[7] = "before";

	assert_int_equal(cginame_variable("ab", got, sizeof(got)), RC_LIMIT);
	assert_string_equal(got, "");
	assert_ok(cginame_variable("a", got, sizeof(got)));
	assert_string_equal(got, "HTTP_A");
	assert_int_equal(cginame_variable("a", got, 1), RC_LIMIT);
}
