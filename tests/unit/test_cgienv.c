/*
 * cgienv: which variables a handler gets and from where, and how a script is
 * told from its PATH_INFO.
 */
#include "config.h"

#include "cases.h"

#include "cgienv.h"
#include "limit.h"

#define NPARAMS 8
#define NENV    6

/* A request with these parameters: "NAME", "value", ..., NULL. */
static struct request
request(const char *const *text, struct param *params, size_t body_len)
{
	struct request rq = { .params = params,
		.method = "POST",
		.path = "/",
		.query = "",
		.body_len = body_len,
		.body_fd = -1 };

	for (; text[0] != NULL; text += 2)
		params[rq.nparams++] = (struct param){ text[0], text[1] };
	return rq;
}

static const char *
get(const struct cgienv *env, const char *name)
{
	const char *value = NULL;
	size_t n = strlen(name);

	for (char **e = env->envp; *e != NULL; e++) {
		if (strncmp(*e, name, n) != 0 || (*e)[n] != '=')
			continue;
		if (value != NULL)
			fail_msg("%s is there twice", name);
		value = *e + n + 1;
	}
	return value;
}

static size_t
count(const struct cgienv *env)
{
	size_t n = 0;

	while (env->envp[n] != NULL)
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
	    { "REQUEST_METHOD", "POST", "HTTP_X", "a=b", "EMPTY", "" }, 0,
	    { NULL }, { NULL },
	    { "REQUEST_METHOD", "POST", "HTTP_X", "a=b", "EMPTY", "" } },
	{ "of a repeated one the last",
	    { "HTTP_A", "1", "HTTP_B", "2", "HTTP_A", "3" }, 0, { NULL },
	    { NULL }, { "HTTP_A", "3", "HTTP_B", "2" } },
	{ "a prefix is another name", { "HTTP_A", "1", "HTTP_AB", "2" }, 0,
	    { NULL }, { NULL }, { "HTTP_A", "1", "HTTP_AB", "2" } },
	{ "HTTP_PROXY is dropped", { "HTTP_PROXY", "evil:80" }, 0, { NULL },
	    { NULL }, { NULL } },
	{ "HTTP_PROXY_X is not", { "HTTP_PROXY_X", "a" }, 0, { NULL }, { NULL },
	    { "HTTP_PROXY_X", "a" } },
	{ "LD_* are dropped", { "LD_PRELOAD", "/x.so", "LD_", "1", "LDX", "2" },
	    0, { NULL }, { NULL }, { "LDX", "2" } },
	{ "ONCE_* are dropped", { "ONCE_KEY", "forged", "ONCE_", "1" }, 0,
	    { NULL }, { NULL }, { NULL } },
	{ "names count by case", { "once_key", "1", "Path", "2" }, 0, { NULL },
	    { NULL }, { "once_key", "1", "Path", "2" } },
	{ "no environment names",
	    { "", "1", "A=B", "2", "=", "3", "HTTP_OK", "4" }, 0, { NULL },
	    { NULL }, { "HTTP_OK", "4" } },
	{ "PATH of a parameter is dropped", { "PATH", "/evil" }, 0, { NULL },
	    { NULL }, { "PATH", "/usr/local/bin:/usr/bin:/bin" } },
	{ "PATH of the daemon", { "PATH", "/evil" }, 0, { "PATH=/good" },
	    { NULL }, { "PATH", "/good" } },
	{ "PATH of the daemon, empty", { NULL }, 0, { "PATH=" }, { NULL },
	    { "PATH", "" } },
	{ "daemon variables stay with it", { NULL }, 0,
	    { "HOME=/root", "SECRET=1", "PATH=/p" }, { NULL },
	    { "PATH", "/p" } },
	{ "but those that environment names", { NULL }, 0,
	    { "HOME=/root", "TZ=", "TZX=no" }, { "TZ", "HOME", "LANG", "PATH" },
	    { "HOME", "/root", "TZ", "" } },
	{ "the operator's word wins over the web server's",
	    { "LANG", "request" }, 0, { "LANG=daemon" }, { "LANG" },
	    { "LANG", "daemon" } },
	{ "unless the daemon has no such variable", { "LANG", "request" }, 0,
	    { "LANGUAGE=x" }, { "LANG" }, { "LANG", "request" } },
	{ "set by the operator, even if the request or the daemon has it",
	    { "TZ", "request", "HTTP_A", "1" }, 0, { "TZ=daemon", "X=daemon" },
	    { "TZ=UTC", "REDIRECT_STATUS=200", "E=", "X", "Y=a=b", "X=set" },
	    { "TZ", "UTC", "HTTP_A", "1", "REDIRECT_STATUS", "200", "E", "",
		"X", "set", "Y", "a=b" } },
	{ "PATH set by the operator", { NULL }, 0, { "PATH=/daemon" },
	    { "PATH=/opt/bin" }, { "PATH", "/opt/bin" } },
	{ "LD_* may be named by the operator", { "LD_A", "evil" }, 0,
	    { "LD_A=good" }, { "LD_A" }, { "LD_A", "good" } },
	{ "no body, no CONTENT_LENGTH", { "A", "b" }, 0, { NULL }, { NULL },
	    { "A", "b" } },
	{ "CONTENT_LENGTH missing", { NULL }, 17, { NULL }, { NULL },
	    { "CONTENT_LENGTH", "17" } },
	{ "CONTENT_LENGTH empty", { "CONTENT_LENGTH", "" }, 17, { NULL },
	    { NULL }, { "CONTENT_LENGTH", "17" } },
	{ "CONTENT_LENGTH empty, no body", { "CONTENT_LENGTH", "" }, 0,
	    { NULL }, { NULL }, { "CONTENT_LENGTH", "0" } },
	{ "CONTENT_LENGTH in another spelling", { "CONTENT_LENGTH", "0017" },
	    17, { NULL }, { NULL }, { "CONTENT_LENGTH", "17" } },
	{ "SCRIPT_FILENAME as sent",
	    { "SCRIPT_FILENAME", "/srv/x/info", "PATH_INFO", "/a" }, 0,
	    { NULL }, { NULL },
	    { "SCRIPT_FILENAME", "/srv/x/info", "PATH_INFO", "/a" } },
	{ "SCRIPT_FILENAME without Apache's prefix",
	    { "SCRIPT_FILENAME", "proxy:fcgi://h:9000/srv/x" }, 0, { NULL },
	    { NULL }, { "SCRIPT_FILENAME", "/srv/x" } },
};

static const struct cgienv_daemon alone;

static void
check_row(const struct row *w)
{
	struct param params[NPARAMS];
	struct request rq = request(w->params, params, w->body_len);
	struct conf_program rt = { 0 };
	struct cgienv env;
	char *names[NENV + 1], *daemon[NENV + 1];
	const struct cgienv_daemon with = { .env = daemon };
	size_t n = 0, i;
	bool path = false;

	for (i = 0; w->environment[i] != NULL; i++)
		names[i] = strdup(w->environment[i]);
	rt.environment = (struct conf_list){ names, i };
	for (i = 0; w->daemon[i] != NULL; i++)
		daemon[i] = strdup(w->daemon[i]);
	daemon[i] = NULL;
	print_message("%s\n", w->name);
	assert_int_equal(cgienv_make(&rq, &rt, NULL, NULL, &with, &env), RC_OK);
	for (i = 0; w->want[i] != NULL; i += 2, n++) {
		assert_non_null(get(&env, w->want[i]));
		assert_string_equal(get(&env, w->want[i]), w->want[i + 1]);
		path = path || strcmp(w->want[i], "PATH") == 0;
	}
	assert_non_null(get(&env, "PATH"));
	assert_int_equal(count(&env), path ? n : n + 1);
	cgienv_free(&env);
	assert_null(env.envp);
	for (i = 0; i < rt.environment.n; i++)
		free(names[i]);
	for (i = 0; daemon[i] != NULL; i++)
		free(daemon[i]);
}

TEST(who_gives_which_variable)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		check_row(&rows[i]);
}

TEST(once_variables_cannot_be_forged)
{
	static const char *const text[] = { "ONCE_KEY", "forged",
		"ONCE_DATABASE", "forged", NULL };
	const struct cgienv_once once = { "k\"1", "alice", "/pay", 3, "started",
		"123e4567-e89b-12d3-a456-426614174000", "feed", 42, NULL };
	char *daemon[] = { strdup("ONCE_TOKEN=daemon"), NULL };
	const struct cgienv_daemon with = { .env = daemon };
	char *names[] = { strdup("ONCE_TOKEN"), NULL };
	struct conf_program rt = { .environment = { names, 1 } };
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct cgienv env;

	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, &once, &with, &env), RC_OK);
	assert_string_equal(get(&env, "ONCE_KEY"), "k\"1");
	assert_string_equal(get(&env, "ONCE_SCOPE"), "alice");
	assert_string_equal(get(&env, "ONCE_PATH"), "/pay");
	assert_string_equal(get(&env, "ONCE_ATTEMPT"), "3");
	assert_string_equal(get(&env, "ONCE_RECOVERY_POINT"), "started");
	assert_string_equal(get(&env, "ONCE_DOWNSTREAM_KEY"),
	    "123e4567-e89b-12d3-a456-426614174000");
	assert_string_equal(get(&env, "ONCE_TOKEN"), "feed-42");
	assert_null(get(&env, "ONCE_DATABASE"));
	assert_int_equal(count(&env), 8);
	cgienv_free(&env);
	free(daemon[0]);
	free(names[0]);
}

TEST(the_database_is_named_where_it_is_shared)
{
	static const char *const text[] = { NULL };
	static const char token[] = "0123456789abcdef0123456789abcdef";
	struct cgienv_once once = { "k", "", "/", 1, "started", "u", token,
		INT64_MAX, "/var/lib/once.db" };
	struct conf_program rt = { 0 };
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct cgienv env;

	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, &once, &alone, &env), RC_OK);
	assert_string_equal(get(&env, "ONCE_DATABASE"), "/var/lib/once.db");
	assert_string_equal(get(&env, "ONCE_TOKEN"),
	    "0123456789abcdef0123456789abcdef-9223372036854775807");
	cgienv_free(&env);
	/* A reconciler has no lease. */
	once.token = "";
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, &once, &alone, &env), RC_OK);
	assert_null(get(&env, "ONCE_TOKEN"));
	cgienv_free(&env);
}

TEST(no_daemon_environment_at_all)
{
	static const char *const text[] = { NULL };
	struct conf_program rt = { 0 };
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct cgienv env;

	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &alone, &env), RC_OK);
	assert_int_equal(count(&env), 1);
	cgienv_free(&env);
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
set(const char **text, size_t *n, const char *name, const char *value)
{
	if (value == NULL)
		return;
	text[(*n)++] = name;
	text[(*n)++] = value;
	text[*n] = NULL;
}

TEST(script_is_split)
{
	const struct conf_program rt = { 0 };

	for (size_t i = 0; i < COUNT(splits); i++) {
		const struct split *w = &splits[i];
		const char *text[2 * NPARAMS + 1] = { NULL };
		struct param params[NPARAMS];
		struct cgienv_script s;
		struct cgienv env;
		struct request rq;
		size_t n = 0;

		set(text, &n, "SCRIPT_FILENAME", w->filename);
		set(text, &n, "DOCUMENT_ROOT", w->root);
		set(text, &n, "SCRIPT_NAME", w->script_name);
		set(text, &n, "PATH_INFO", w->path_info);
		rq = request(text, params, 0);
		print_message("%s\n", w->name);
		cgienv_script_init(&s);
		assert_int_equal(cgienv_script_name(&rq, &s), RC_OK);
		for (int k = 0; k < w->steps; k++)
			assert_true(cgienv_script_shorten(&s));
		assert_string_equal(s.filename.data, w->want_filename);
		assert_string_equal(s.script_name.data, w->want_name);
		assert_string_equal(s.path_info.data, w->want_info);

		/* The handler is told so, and not what was sent. */
		assert_int_equal(
		    cgienv_make(&rq, &rt, &s, NULL, &alone, &env), RC_OK);
		assert_string_equal(
		    get(&env, "SCRIPT_FILENAME"), w->want_filename);
		assert_string_equal(get(&env, "SCRIPT_NAME"), w->want_name);
		if (w->want_info[0] == '\0' && w->path_info == NULL)
			assert_null(get(&env, "PATH_INFO"));
		else
			assert_string_equal(
			    get(&env, "PATH_INFO"), w->want_info);
		cgienv_free(&env);
		cgienv_script_free(&s);
	}
}

TEST(script_runs_out_of_segments)
{
	static const char *const text[] = { "SCRIPT_FILENAME", "/a/b", NULL };
	static const char *const flat[] = { "SCRIPT_FILENAME", "ab", NULL };
	struct param params[NPARAMS];
	struct cgienv_script s;
	struct request rq = request(text, params, 0);

	cgienv_script_init(&s);
	assert_int_equal(cgienv_script_name(&rq, &s), RC_OK);
	assert_true(cgienv_script_shorten(&s));
	assert_false(cgienv_script_shorten(&s));
	assert_string_equal(s.filename.data, "/a");
	cgienv_script_free(&s);

	rq = request(flat, params, 0);
	cgienv_script_init(&s);
	assert_int_equal(cgienv_script_name(&rq, &s), RC_OK);
	assert_false(cgienv_script_shorten(&s));
	cgienv_script_free(&s);
}

TEST(script_that_has_no_name)
{
	static const char *const texts[][5] = { { NULL },
		{ "SCRIPT_NAME", "/x", NULL }, { "DOCUMENT_ROOT", "/x", NULL },
		{ "SCRIPT_FILENAME", "", "SCRIPT_NAME", "/x", NULL } };

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct param params[NPARAMS];
		struct cgienv_script s;
		struct request rq = request(texts[i], params, 0);

		cgienv_script_init(&s);
		assert_int_equal(cgienv_script_name(&rq, &s), RC_NOTFOUND);
		cgienv_script_free(&s);
	}
}

TEST(script_that_is_too_long)
{
	char *name = malloc(LIMIT_PATH + 2);
	const char *text[] = { "SCRIPT_FILENAME", name, NULL };
	struct param params[NPARAMS];
	struct cgienv_script s;
	struct request rq = request(text, params, 0);

	assert_non_null(name);
	for (size_t n = LIMIT_PATH; n <= LIMIT_PATH + 1; n++) {
		memset(name, '/', n);
		name[n] = '\0';
		cgienv_script_init(&s);
		assert_int_equal(cgienv_script_name(&rq, &s),
		    n == LIMIT_PATH ? RC_OK : RC_LIMIT);
		cgienv_script_free(&s);
	}
	free(name);
}

TEST(form_key_is_given_and_cannot_be_forged)
{
	static const char *const text[] = { "ONCE_FORM_KEY", "forged", NULL };
	const struct cgienv_daemon with = { .form_key = "a-uuid" };
	const struct conf_program rt = { 0 };
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct cgienv env;

	assert_int_equal(cgienv_make(&rq, &rt, NULL, NULL, &with, &env), RC_OK);
	assert_string_equal(get(&env, "ONCE_FORM_KEY"), "a-uuid");
	cgienv_free(&env);
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &alone, &env), RC_OK);
	assert_null(get(&env, "ONCE_FORM_KEY"));
	cgienv_free(&env);
}

TEST(environment_limits)
{
	/* "A=...", "PATH=/p", each with its NUL */
	const size_t room = LIMIT_ENV - 3 - 8;
	char *value = malloc(LIMIT_ENV),
	     *daemon[] = { strdup("PATH=/p"), NULL };
	const struct cgienv_daemon with = { .env = daemon };
	const char *text[] = { "A", value, NULL };
	const struct conf_program rt = { 0 };
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct cgienv env;

	assert_non_null(value);
	memset(value, 'x', room + 1);
	value[room] = '\0';
	assert_int_equal(cgienv_make(&rq, &rt, NULL, NULL, &with, &env), RC_OK);
	assert_int_equal(env.text.len, LIMIT_ENV);
	cgienv_free(&env);
	value[room] = 'x';
	value[room + 1] = '\0';
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &with, &env), RC_LIMIT);
	assert_null(env.envp);
	cgienv_free(&env);
	free(value);
	free(daemon[0]);
}

TEST(environment_count_limit)
{
	static char names[LIMIT_ENV_COUNT][8];
	static struct param params[LIMIT_ENV_COUNT];
	const struct conf_program rt = { 0 };
	struct request rq = { .params = params };
	struct cgienv env;

	for (size_t i = 0; i < COUNT(params); i++) {
		snprintf(names[i], sizeof(names[i]), "A%zu", i);
		params[i] = (struct param){ names[i], "" };
	}
	rq.nparams = LIMIT_ENV_COUNT - 1;
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &alone, &env), RC_OK);
	assert_int_equal(count(&env), LIMIT_ENV_COUNT);
	cgienv_free(&env);
	rq.nparams = LIMIT_ENV_COUNT;
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &alone, &env), RC_LIMIT);
}

/* Everything but credentials, byte for byte. */
TEST(what_is_kept_of_a_request)
{
	static const char *const text[] = { "REQUEST_METHOD", "POST",
		"HTTP_AUTHORIZATION", "Basic eDp5", "HTTP_X", "",
		"HTTP_PROXY_AUTHORIZATION", "Basic eDp5", "HTTP_COOKIE",
		"session=1", "HTTP_COOKIE2", "a=b=\xe4\n", "HTTP_COOKIE",
		"again=1", NULL };
	static const char kept[] =
	    "REQUEST_METHOD=POST\0HTTP_X=\0HTTP_COOKIE2=a=b=\xe4\n";
	struct param params[NPARAMS];
	struct request rq = request(text, params, 0);
	struct buf out;

	buf_init(&out, sizeof(kept) + 1);
	assert_int_equal(cgienv_keep(&rq, &out), RC_OK);
	assert_int_equal(out.len, sizeof(kept));
	assert_memory_equal(out.data, kept, sizeof(kept));
	buf_free(&out);

	buf_init(&out, sizeof(kept) - 4);
	assert_int_equal(cgienv_keep(&rq, &out), RC_LIMIT);
	buf_free(&out);
}

/* An effect has no request: nothing but what the operator and we say. */
TEST(an_effect_gets_its_own_variables)
{
	char path[] = "PATH=/p", tz[] = "TZ=UTC", key[] = "ONCE_KEY=forged";
	char *daemon[] = { path, tz, key, NULL };
	char first[] = "TZ", second[] = "ONCE_KEY", third[] = "LANG";
	char *names[] = { first, second, third, NULL };
	struct conf_program conf = { .environment = { names, 3 } };
	struct cgienv_effect effect = { "uuid", "mail", "a=b \" c", "" };
	struct cgienv env;

	assert_int_equal(
	    cgienv_make_effect(&conf, &effect, daemon, &env), RC_OK);
	assert_int_equal(count(&env), 6);
	assert_string_equal(get(&env, "PATH"), "/p");
	assert_string_equal(get(&env, "TZ"), "UTC");
	assert_string_equal(get(&env, "ONCE_EFFECT_KEY"), "uuid");
	assert_string_equal(get(&env, "ONCE_TOPIC"), "mail");
	assert_string_equal(get(&env, "ONCE_KEY"), "a=b \" c");
	assert_string_equal(get(&env, "ONCE_SCOPE"), "");
	cgienv_free(&env);
}

/* As many as there may be, half of them twice. */
TEST(of_many_repeated_ones_the_last)
{
	static char names[2 * LIMIT_PARAM_COUNT / 3][8];
	struct param params[LIMIT_PARAM_COUNT];
	struct request rq = { .params = params, .body_fd = -1 };
	const size_t n = COUNT(names);
	struct conf_program rt = { 0 };
	struct cgienv env;
	size_t i;

	for (i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "N%zu", i);
		params[i] = (struct param){ names[i], "first" };
	}
	for (; i < LIMIT_PARAM_COUNT; i++)
		params[i] = (struct param){ names[i - n], "last" };
	rq.nparams = i;
	assert_int_equal(
	    cgienv_make(&rq, &rt, NULL, NULL, &alone, &env), RC_OK);
	assert_int_equal(count(&env), n + 1);
	for (i = 0; i < n; i++)
		assert_string_equal(get(&env, names[i]),
		    i < LIMIT_PARAM_COUNT - n ? "last" : "first");
	cgienv_free(&env);
}
