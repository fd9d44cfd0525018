/*
 * cgienv: which variables a handler gets and from where, and how a script is
 * told from its PATH_INFO.
 */
#include "config.h"

#include "cases.h"

#include "cgienv.h"
#include "conf_fixture.h"
#include "limit.h"

#define NPARAMS 8
#define NENV    6

/* The request of a case, the script it names, and the environment made of both.
 */
static struct param params[LIMIT_PARAM_COUNT];
static struct request rq;
static struct cgienv_script script;
static struct cgienv env;

/* A request with these parameters: "NAME", "value", ..., NULL. */
static void
request(const char *const *text)
{
	rq = (struct request){ .params = params,
		.method = "POST",
		.path = "/",
		.query = "",
		.body_fd = -1 };
	for (; text[0] != NULL; text += 2)
		params[rq.nparams++] = (struct param){ text[0], text[1] };
}

#define REQUEST(...) request((const char *const[]){ __VA_ARGS__, NULL })

/* Without any parameter. */
static int
begin(UNUSED void **state)
{
	REQUEST(NULL);
	cgienv_script_init(&script);
	return 0;
}

static int
end(UNUSED void **state)
{
	cgienv_script_free(&script);
	cgienv_free(&env);
	return 0;
}

AROUND_EACH(begin, end)

static const struct conf_program no_program;
static const struct cgienv_daemon alone;

/* Of that daemon, for that program, with or without a key. */
static void
make(const struct cgienv_daemon *daemon, const struct conf_program *program,
    const struct cgienv_once *once)
{
	cgienv_free(&env);
	assert_ok(cgienv_make(&rq, program, NULL, once, daemon, &env));
}

static const char *
get(const char *name)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (char **e = env.envp; *e != NULL; e++) {
		if (strncmp(*e, name, n) != 0 || (*e)[n] != '=')
			continue;
		if (value != NULL)
			fail_msg("%s is there twice", name);
		value = *e + n + 1;
	}
	return value;
}

/* NULL: it is not there. */
static void
is(const char *name, const char *value)
{
	if (value == NULL)
		assert_null(get(name));
	else {
		assert_non_null(get(name));
		assert_string_equal(get(name), value);
	}
}

static size_t
count(void)
{
	size_t n = 0;

	while (env.envp[n] != NULL)
		n++;
	return n;
}

static const struct row {
	const char *name;
	const char *params[2 * NPARAMS + 1];
	size_t body_len;
	const char *daemon[NENV + 1];
	const char *environment[NENV + 1];
	/* what the handler gets, besides PATH unless it is named */
	const char *want[2 * NPARAMS + 1];
} rows[] = {
	{ "parameters as they are",
	    .params = { "REQUEST_METHOD", "POST", "HTTP_X", "a=b", "EMPTY",
		"" },
	    .want = { "REQUEST_METHOD", "POST", "HTTP_X", "a=b", "EMPTY",
		"" } },
	{ "of a repeated one the last",
	    .params = { "HTTP_A", "1", "HTTP_B", "2", "HTTP_A", "3" },
	    .want = { "HTTP_A", "3", "HTTP_B", "2" } },
	{ "a prefix is another name",
	    .params = { "HTTP_A", "1", "HTTP_AB", "2" },
	    .want = { "HTTP_A", "1", "HTTP_AB", "2" } },
	{ "HTTP_PROXY is dropped", .params = { "HTTP_PROXY", "evil:80" } },
	{ "HTTP_PROXY_X is not", .params = { "HTTP_PROXY_X", "a" },
	    .want = { "HTTP_PROXY_X", "a" } },
	{ "LD_* are dropped",
	    .params = { "LD_PRELOAD", "/x.so", "LD_", "1", "LDX", "2" },
	    .want = { "LDX", "2" } },
	{ "ONCE_* are dropped",
	    .params = { "ONCE_KEY", "forged", "ONCE_", "1" } },
	{ "names count by case", .params = { "once_key", "1", "Path", "2" },
	    .want = { "once_key", "1", "Path", "2" } },
	{ "no environment names",
	    .params = { "", "1", "A=B", "2", "=", "3", "HTTP_OK", "4" },
	    .want = { "HTTP_OK", "4" } },
	{ "PATH of a parameter is dropped", .params = { "PATH", "/evil" },
	    .want = { "PATH", "/usr/local/bin:/usr/bin:/bin" } },
	{ "PATH of the daemon", .params = { "PATH", "/evil" },
	    .daemon = { "PATH=/good" }, .want = { "PATH", "/good" } },
	{ "PATH of the daemon, empty", .daemon = { "PATH=" },
	    .want = { "PATH", "" } },
	{ "daemon variables stay with it",
	    .daemon = { "HOME=/root", "SECRET=1", "PATH=/p" },
	    .want = { "PATH", "/p" } },
	{ "but those that environment names",
	    .daemon = { "HOME=/root", "TZ=", "TZX=no" },
	    .environment = { "TZ", "HOME", "LANG", "PATH" },
	    .want = { "HOME", "/root", "TZ", "" } },
	{ "the operator's word wins over the web server's",
	    .params = { "LANG", "request" }, .daemon = { "LANG=daemon" },
	    .environment = { "LANG" }, .want = { "LANG", "daemon" } },
	{ "unless the daemon has no such variable",
	    .params = { "LANG", "request" }, .daemon = { "LANGUAGE=x" },
	    .environment = { "LANG" }, .want = { "LANG", "request" } },
	{ "set by the operator, even if the request or the daemon has it",
	    .params = { "TZ", "request", "HTTP_A", "1" },
	    .daemon = { "TZ=daemon", "X=daemon" },
	    .environment = { "TZ=UTC", "REDIRECT_STATUS=200", "E=", "X",
		"Y=a=b", "X=set" },
	    .want = { "TZ", "UTC", "HTTP_A", "1", "REDIRECT_STATUS", "200", "E",
		"", "X", "set", "Y", "a=b" } },
	{ "PATH set by the operator", .daemon = { "PATH=/daemon" },
	    .environment = { "PATH=/opt/bin" },
	    .want = { "PATH", "/opt/bin" } },
	{ "LD_* may be named by the operator", .params = { "LD_A", "evil" },
	    .daemon = { "LD_A=good" }, .environment = { "LD_A" },
	    .want = { "LD_A", "good" } },
	{ "no body, no CONTENT_LENGTH", .params = { "A", "b" },
	    .want = { "A", "b" } },
	{ "CONTENT_LENGTH missing", .body_len = 17,
	    .want = { "CONTENT_LENGTH", "17" } },
	{ "CONTENT_LENGTH empty", .params = { "CONTENT_LENGTH", "" },
	    .body_len = 17, .want = { "CONTENT_LENGTH", "17" } },
	{ "CONTENT_LENGTH empty, no body", .params = { "CONTENT_LENGTH", "" },
	    .want = { "CONTENT_LENGTH", "0" } },
	{ "CONTENT_LENGTH in another spelling",
	    .params = { "CONTENT_LENGTH", "0017" }, .body_len = 17,
	    .want = { "CONTENT_LENGTH", "17" } },
	{ "SCRIPT_FILENAME as sent",
	    .params = { "SCRIPT_FILENAME", "/srv/x/info", "PATH_INFO", "/a" },
	    .want = { "SCRIPT_FILENAME", "/srv/x/info", "PATH_INFO", "/a" } },
	{ "SCRIPT_FILENAME without Apache's prefix",
	    .params = { "SCRIPT_FILENAME", "proxy:fcgi://h:9000/srv/x" },
	    .want = { "SCRIPT_FILENAME", "/srv/x" } },
};

static void
check_row(const struct row *w)
{
	struct conf_program rt = { .environment = list_of(w->environment) };
	struct conf_list daemon = list_of(w->daemon);
	const struct cgienv_daemon with = { .env = daemon.item };
	size_t n = 0, i;
	bool path = false;

	request(w->params);
	rq.body_len = w->body_len;
	print_message("%s\n", w->name);
	make(&with, &rt, NULL);
	for (i = 0; w->want[i] != NULL; i += 2, n++) {
		is(w->want[i], w->want[i + 1]);
		path = path || strcmp(w->want[i], "PATH") == 0;
	}
	assert_non_null(get("PATH"));
	assert_int_equal(count(), path ? n : n + 1);
	cgienv_free(&env);
	assert_null(env.envp);
	list_free(&rt.environment);
	list_free(&daemon);
}

TEST(who_gives_which_variable)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		check_row(&rows[i]);
}

TEST(once_variables_cannot_be_forged)
{
	const struct cgienv_once once = { "k\"1", "alice", "/pay", 3, "started",
		"123e4567-e89b-12d3-a456-426614174000", "feed", 42, NULL };
	char *daemon[] = { (char[]){ "ONCE_TOKEN=daemon" }, NULL };
	const struct cgienv_daemon with = { .env = daemon };
	char *names[] = { (char[]){ "ONCE_TOKEN" }, NULL };
	const struct conf_program rt = { .environment = { names, 1 } };

	REQUEST("ONCE_KEY", "forged", "ONCE_DATABASE", "forged");
	make(&with, &rt, &once);
	is("ONCE_KEY", "k\"1");
	is("ONCE_SCOPE", "alice");
	is("ONCE_PATH", "/pay");
	is("ONCE_ATTEMPT", "3");
	is("ONCE_RECOVERY_POINT", "started");
	is("ONCE_DOWNSTREAM_KEY", "123e4567-e89b-12d3-a456-426614174000");
	is("ONCE_TOKEN", "feed-42");
	is("ONCE_DATABASE", NULL);
	assert_int_equal(count(), 8);
}

TEST(php_cgi_gets_its_variable_unless_the_operator_sets_it)
{
	char *names[] = { (char[]){ "REDIRECT_STATUS=302" }, NULL };
	struct conf_program rt = { .php_cgi = true };

	REQUEST("REDIRECT_STATUS", "404");
	make(&alone, &rt, NULL);
	is("REDIRECT_STATUS", "200");
	assert_int_equal(count(), 2);
	rt.environment = (struct conf_list){ names, 1 };
	make(&alone, &rt, NULL);
	is("REDIRECT_STATUS", "302");
	assert_int_equal(count(), 2);
}

TEST(no_daemon_environment_at_all)
{
	make(&alone, &no_program, NULL);
	assert_int_equal(count(), 1);
}

/* Sent, split by so many steps, and what is left. */
static const struct split {
	const char *name;
	const char *filename, *root, *script_name, *path_info;
	int steps;
	const char *want_filename, *want_name, *want_info;
} splits[] = {
	{ "as sent", "/srv/x", NULL, "/x", "/i", 0, "/srv/x", "/x", "/i" },
	{ "without PATH_INFO", "/srv/x", NULL, "/x", NULL, 0, "/srv/x", "/x",
	    "" },
	{ "from DOCUMENT_ROOT", NULL, "/srv", "/x/i", NULL, 1, "/srv/x", "/x",
	    "/i" },
	{ "SCRIPT_FILENAME empty", "", "/srv", "/x", NULL, 0, "/srv/x", "/x",
	    "" },
	{ "PATH_INFO within both names", "/srv/x/a/b", NULL, "/x/a/b", NULL, 2,
	    "/srv/x", "/x", "/a/b" },
	{ "slash at the end", "/srv/x/", NULL, "/x/", NULL, 1, "/srv/x", "/x",
	    "/" },
	{ "slashes in a row", "/srv/x//a", NULL, "/x//a", NULL, 2, "/srv/x",
	    "/x", "//a" },
	{ "names that differ", "/opt/app/a", NULL, "/shop", NULL, 1, "/opt/app",
	    "/shop", "/a" },
	{ "PATH_INFO split, but not off the file", "/srv/x/a/b", NULL, "/x",
	    "/a/b", 2, "/srv/x", "/x", "/a/b" },
	{ "PATH_INFO split, and in both names", "/srv/x/a/b", NULL, "/x/a/b",
	    "/a/b", 2, "/srv/x", "/x", "/a/b" },
	{ "program named as its PATH_INFO", "/srv/a/a", NULL, "/a/a", "/a", 0,
	    "/srv/a/a", "/a/a", "/a" },
	{ "PATH_INFO of more than was split", "/srv/x/a", NULL, "/x/a", "/b", 1,
	    "/srv/x", "/x", "/a/b" },
	{ "PATH_INFO without a slash", "/srv/x/a", NULL, "/x/a", "a", 1,
	    "/srv/x", "/x", "/aa" },
	{ "proxy:fcgi", "proxy:fcgi://localhost:9000/usr/lib/cgi-bin/x", NULL,
	    "/x", NULL, 0, "/usr/lib/cgi-bin/x", "/x", "" },
	{ "proxy:unix", "proxy:unix:/run/x.sock|fcgi://localhost/usr/x", NULL,
	    "/x", NULL, 0, "/usr/x", "/x", "" },
	{ "proxy:unix, slashes in the socket",
	    "proxy:unix:/run//x.sock|fcgi://localhost/usr/x", NULL, "/x", NULL,
	    0, "/usr/x", "/x", "" },
	{ "proxy:balancer", "proxy:balancer://name/usr/x", NULL, "/x", NULL, 0,
	    "/usr/x", "/x", "" },
	{ "proxy: and a bar in the path", "proxy:fcgi://h/usr/a|b//c", NULL,
	    "/x", NULL, 0, "/usr/a|b//c", "/x", "" },
	{ "proxy: without a host's slashes", "proxy:fcgi:/x", NULL, "/x", NULL,
	    0, "proxy:fcgi:/x", "/x", "" },
	{ "proxy: without a path", "proxy:fcgi://host", NULL, "/x", NULL, 0,
	    "proxy:fcgi://host", "/x", "" },
	{ "proxy: alone", "proxy:", NULL, "/x", NULL, 0, "proxy:", "/x", "" },
	{ "proxy:unix without a bar", "proxy:unix:/run/x", NULL, "/x", NULL, 0,
	    "proxy:unix:/run/x", "/x", "" },
};

static void
set(const char *name, const char *value)
{
	if (value != NULL)
		params[rq.nparams++] = (struct param){ name, value };
}

TEST(script_is_split)
{
	for (size_t i = 0; i < COUNT(splits); i++) {
		const struct split *w = &splits[i];

		(void)end(NULL);
		(void)begin(NULL);
		set("SCRIPT_FILENAME", w->filename);
		set("DOCUMENT_ROOT", w->root);
		set("SCRIPT_NAME", w->script_name);
		set("PATH_INFO", w->path_info);
		print_message("%s\n", w->name);
		assert_ok(cgienv_script_name(&rq, &script));
		for (int k = 0; k < w->steps; k++)
			assert_true(cgienv_script_shorten(&script));
		assert_string_equal(script.filename.data, w->want_filename);
		assert_string_equal(script.script_name.data, w->want_name);
		assert_string_equal(script.path_info.data, w->want_info);

		/* The handler is told so, and not what was sent. */
		assert_ok(
		    cgienv_make(&rq, &no_program, &script, NULL, &alone, &env));
		is("SCRIPT_FILENAME", w->want_filename);
		is("SCRIPT_NAME", w->want_name);
		is("PATH_INFO",
		    w->want_info[0] == '\0' && w->path_info == NULL
			? NULL
			: w->want_info);
	}
}

TEST(script_runs_out_of_segments)
{
	REQUEST("SCRIPT_FILENAME", "/a/b");
	assert_ok(cgienv_script_name(&rq, &script));
	assert_true(cgienv_script_shorten(&script));
	assert_false(cgienv_script_shorten(&script));
	assert_string_equal(script.filename.data, "/a");
	cgienv_script_free(&script);

	REQUEST("SCRIPT_FILENAME", "ab");
	cgienv_script_init(&script);
	assert_ok(cgienv_script_name(&rq, &script));
	assert_false(cgienv_script_shorten(&script));
}

TEST(script_that_has_no_name)
{
	static const char *const texts[][5] = { { NULL },
		{ "SCRIPT_NAME", "/x", NULL }, { "DOCUMENT_ROOT", "/x", NULL },
		{ "SCRIPT_FILENAME", "", "SCRIPT_NAME", "/x", NULL } };

	for (size_t i = 0; i < COUNT(texts); i++) {
		(void)end(NULL);
		(void)begin(NULL);
		request(texts[i]);
		assert_int_equal(cgienv_script_name(&rq, &script), RC_NOTFOUND);
	}
}

TEST(script_that_is_too_long)
{
	static char name[LIMIT_PATH + 2];

	REQUEST("SCRIPT_FILENAME", name);
	memset(name, '/', LIMIT_PATH);
	assert_ok(cgienv_script_name(&rq, &script));
	cgienv_script_free(&script);
	cgienv_script_init(&script);
	name[LIMIT_PATH] = '/';
	assert_int_equal(cgienv_script_name(&rq, &script), RC_LIMIT);
}

TEST(form_key_is_given_and_cannot_be_forged)
{
	const struct cgienv_daemon with = { .form_key = "a-uuid" };

	REQUEST("ONCE_FORM_KEY", "forged");
	make(&with, &no_program, NULL);
	is("ONCE_FORM_KEY", "a-uuid");
	make(&alone, &no_program, NULL);
	is("ONCE_FORM_KEY", NULL);
}

TEST(environment_limits)
{
	/* "A=...", "PATH=/p", each with its NUL */
	const size_t room = LIMIT_ENV - 3 - 8;
	static char value[LIMIT_ENV];
	char *daemon[] = { (char[]){ "PATH=/p" }, NULL };
	const struct cgienv_daemon with = { .env = daemon };

	REQUEST("A", value);
	memset(value, 'x', room);
	make(&with, &no_program, NULL);
	assert_int_equal(env.text.len, LIMIT_ENV);
	cgienv_free(&env);
	value[room] = 'x';
	assert_int_equal(
	    cgienv_make(&rq, &no_program, NULL, NULL, &with, &env), RC_LIMIT);
	assert_null(env.envp);
}

TEST(environment_count_limit)
{
	static char names[LIMIT_ENV_COUNT][8];
	static struct param many[LIMIT_ENV_COUNT];

	rq.params = many;
	for (size_t i = 0; i < COUNT(many); i++) {
		snprintf(names[i], sizeof(names[i]), "A%zu", i);
		many[i] = (struct param){ names[i], "" };
	}
	rq.nparams = LIMIT_ENV_COUNT - 1;
	make(&alone, &no_program, NULL);
	assert_int_equal(count(), LIMIT_ENV_COUNT);
	cgienv_free(&env);
	rq.nparams = LIMIT_ENV_COUNT;
	assert_int_equal(
	    cgienv_make(&rq, &no_program, NULL, NULL, &alone, &env), RC_LIMIT);
}

/* Everything but credentials, byte for byte. */
TEST(what_is_kept_of_a_request)
{
	static const char kept[] =
	    "REQUEST_METHOD=POST\0HTTP_X=\0HTTP_COOKIE2=a=b=\xe4\n";
	struct buf out;

	REQUEST("REQUEST_METHOD", "POST", "HTTP_AUTHORIZATION", "Basic eDp5",
	    "HTTP_X", "", "HTTP_PROXY_AUTHORIZATION", "Basic eDp5",
	    "HTTP_COOKIE", "session=1", "HTTP_COOKIE2", "a=b=\xe4\n",
	    "HTTP_COOKIE", "again=1");
	buf_init(&out, sizeof(kept) + 1);
	assert_ok(cgienv_keep(&rq, &out));
	assert_int_equal(out.len, sizeof(kept));
	assert_memory_equal(out.data, kept, sizeof(kept));
	buf_free(&out);

	buf_init(&out, sizeof(kept) - 4);
	assert_int_equal(cgienv_keep(&rq, &out), RC_LIMIT);
	buf_free(&out);
}

/* As many as there may be, half of them twice. */
TEST(of_many_repeated_ones_the_last)
{
	static char names[2 * LIMIT_PARAM_COUNT / 3][8];
	const size_t n = COUNT(names);
	size_t i;

	for (i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "N%zu", i);
		params[i] = (struct param){ names[i], "first" };
	}
	for (; i < LIMIT_PARAM_COUNT; i++)
		params[i] = (struct param){ names[i - n], "last" };
	rq.nparams = i;
	make(&alone, &no_program, NULL);
	assert_int_equal(count(), n + 1);
	for (i = 0; i < n; i++)
		is(names[i], i < LIMIT_PARAM_COUNT - n ? "last" : "first");
}
