/*
 * conf: what holds without a file, every option with what it takes and what it
 * does not, every message in full with its line, and how defaults and routes
 * go together.
 */
#include "config.h"

#include <unistd.h>

#include "cases.h"

#include "conf_fixture.h"
#include "conf_option.h"
#include "conf_value.h"

#define SECOND INT64_C(1000)
#define DAY    (24 * 60 * 60 * SECOND)
#define MIB    (INT64_C(1024) * 1024)
#define GIB    (1024 * MIB)

/* The largest size: where size_t has 32 bits, what it holds. */
#if SIZE_MAX > UINT32_MAX
#define MOST_TEXT "1024G"
#define MOST      (1024 * GIB)
#else
#define MOST_TEXT "4095M"
#define MOST      (4095 * MIB)
#endif

/* The configuration of a case, and why one was refused. */
static struct conf *conf;
static struct conf_error err;

static int
unload(UNUSED void **state)
{
	conf_unref(conf);
	conf = NULL;
	return 0;
}

AROUND_EACH(NULL, unload)

static void
load(const char *text)
{
	(void)unload(NULL);
	conf = conf_from(text);
}

static void
load_default(void)
{
	conf = conf_default(&err);
	assert_non_null(conf);
}

/* It is one that may not be used. */
static void
check_fails(const char *message)
{
	assert_false(conf_check(conf, &err));
	assert_string_equal(err.text, message);
}

static void
not_set(const char *option, const char *value, const char *message)
{
	assert_false(conf_set(conf, option, value, &err));
	assert_string_equal(err.text, message);
}

static void
refused_bytes(const char *text, size_t len, const char *message)
{
	if (conf_parse("f", text, len, &err) != NULL)
		fail_msg("\"%s\" is taken, should give \"%s\"", text, message);
	if (strcmp(err.text, message) != 0)
		fail_msg("\"%s\" gives \"%s\", should give \"%s\"", text,
		    err.text, message);
}

static void
refused(const char *text, const char *message)
{
	refused_bytes(text, strlen(text), message);
}

static void
list_is(const struct conf_list *list, const char *expected)
{
	char all[4096] = "";
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
		    i > 0 ? "|" : "", list->item[i]);
	assert_string_equal(all, expected);
	if (list->item != NULL)
		assert_null(list->item[list->n]);
}

/* A text of statuses, such as "401 407-408 425 429 500-599". */
static void
statuses_are(const struct conf_statuses *set, const char *expected)
{
	char all[4096] = "";
	size_t n = 0;

	for (int i = 100, first = 0; i <= 600; i++) {
		bool in = conf_status_in(set, i);

		if (in && first == 0)
			first = i;
		if (in || first == 0)
			continue;
		n += (size_t)snprintf(
		    all + n, sizeof(all) - n, n > 0 ? " %d" : "%d", first);
		if (i - 1 > first)
			n += (size_t)snprintf(
			    all + n, sizeof(all) - n, "-%d", i - 1);
		first = 0;
	}
	assert_string_equal(all, expected);
}

/* expected: the texts of the alternatives, '|' between them. */
static void
sources_are(const struct conf_key_from *from, const char *expected)
{
	char all[1024] = "";

	for (size_t i = 0; i < from->n; i++) {
		strcat(all, i > 0 ? "|" : "");
		strcat(all, from->item[i].text);
	}
	assert_string_equal(all, expected);
}

static void
builtin_route(const struct conf_route *r)
{
	list_is(&r->handler.argv, "");
	assert_int_equal(r->handler.protocol, CONF_PROTOCOL_CGI);
	assert_int_equal(r->handler.processes, 4);
	assert_int_equal(r->handler.max_requests, 0);
	assert_int_equal(r->outcome, CONF_OUTCOME_STATUS);
	assert_int_equal(r->preset, 1U << CONF_PRESET_NONE);
	list_is(&r->methods, "POST|PATCH");
	sources_are(&r->key_from, "header:Idempotency-Key");
	assert_int_equal(r->key, CONF_KEY_OPTIONAL);
	assert_int_equal(r->key_syntax, CONF_SYNTAX_ANY);
	assert_int_equal(r->key_min_length, 1);
	assert_int_equal(r->key_max_length, 255);
	list_is(&r->scope, "REMOTE_USER");
	assert_false(r->scope_required);
	assert_int_equal(r->fingerprint, CONF_FINGERPRINT_VALUE);
	list_is(&r->fingerprint_headers, "");
	list_is(&r->fingerprint_ignore, "");
	assert_int_equal(r->max_request_body, 256 * MIB);
	assert_int_equal(r->max_response, 16 * MIB);
	assert_int_equal(r->handler.max_output, GIB);
	list_is(&r->replay_drop, "Set-Cookie|Date");
	assert_int_equal(r->concurrent, CONF_CONCURRENT_REJECT);
	assert_int_equal(r->wait_time, 10 * SECOND);
	assert_int_equal(r->handler.timeout, 60 * SECOND);
	assert_int_equal(r->handler.kill_after, 5 * SECOND);
	statuses_are(&r->release, "401 407-408 425 429 500-599");
	statuses_are(&r->ambiguous, "502 504");
	assert_int_equal(r->exit_status, CONF_EXIT_CHECK);
	assert_int_equal(r->on_crash, CONF_CRASH_UNKNOWN);
	assert_int_equal(r->retention, DAY);
	assert_int_equal(r->on_expired, CONF_EXPIRED_RUN);
	assert_int_equal(r->async, CONF_ASYNC_NEVER);
	assert_false(r->share_database);
	assert_int_equal(r->max_active_keys, 0);
	assert_int_equal(r->max_open_keys, 1000);
	assert_int_equal(r->key_rate, 0);
	assert_int_equal(r->max_request_age, 0);
	assert_null(r->request_timestamp);
	assert_null(r->handler.directory);
	assert_int_equal(r->handler.umask, -1);
	assert_false(r->handler.no_new_privs);
	assert_null(r->handler.user);
	assert_null(r->handler.group);
	list_is(&r->handler.environment, "");
}

static void
builtin(const struct conf *c)
{
	assert_string_equal(c->database, "oncewrap.db");
	assert_null(c->socket);
	assert_int_equal(c->socket_mode, 0660);
	assert_null(c->socket_user);
	assert_null(c->socket_group);
	assert_int_equal(c->workers, 32);
	list_is(&c->allow_peers, "");
	assert_int_equal(conf_line_of_server(c, "allow_peers"), 0);
	assert_int_equal(conf_line_of_server(c, "socket"), 0);
	assert_int_equal(conf_line_of_server(c, "socket_user"), 0);
	assert_int_equal(conf_line_of_server(c, "socket_group"), 0);
	assert_int_equal(c->io_timeout, 30 * SECOND);
	assert_int_equal(c->drain_timeout, 30 * SECOND);
	assert_int_equal(c->busy_timeout, 5 * SECOND);
	assert_int_equal(c->durability, CONF_DURABILITY_FULL);
	assert_null(c->spool_dir);
	assert_null(c->problem_pages);
	assert_int_equal(c->on_attention.argv.n, 0);
	assert_int_equal(c->on_attention.timeout, 60 * SECOND);
	assert_int_equal(c->on_attention.umask, -1);
	assert_int_equal(c->attention_interval, 5 * 60 * SECOND);
	assert_int_equal(c->spool_total, 1024 * MIB);
	assert_int_equal(c->max_wal, 64 * MIB);
	assert_string_equal(c->link,
	    "https://datatracker.ietf.org/doc/"
	    "draft-ietf-httpapi-idempotency-key-header/");
	assert_string_equal(c->log, "stderr");
	assert_int_equal(c->dialect, CONF_DIALECT_IETF);
	assert_null(c->admin_path);
	assert_null(c->status_path);
	assert_int_equal(c->async_workers, 4);
	assert_int_equal(c->async_queue, 1000);
	assert_int_equal(c->reconcile_workers, 2);
	assert_int_equal(c->max_kept, 256 * MIB);
	assert_int_equal(c->sweep_interval, 60 * SECOND);
	assert_int_equal(c->reap_interval, 60 * SECOND);
	assert_string_equal(c->defaults.path, "");
	builtin_route(&c->defaults);
	assert_int_equal(c->neffects, 0);
}

TEST(defaults_hold_without_a_file)
{
	load_default();
	assert_null(conf->file);
	assert_int_equal(conf->nroutes, 0);
	builtin(conf);
	assert_true(conf_check(conf, &err));
}

TEST(defaults_hold_where_a_file_says_nothing)
{
	static const char *const texts[] = { "", "\n", "; only\n# comments",
		"[server]\n", "[server]\n[defaults]\n[route /a]\n",
		"\xef\xbb\xbf[server]", "\xef\xbb\xbf", "\r\n\r\n", "  \t \n",
		"[ server ] ; why\n" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		load(texts[i]);
		assert_string_equal(conf->file, "f");
		builtin(conf);
		for (size_t j = 0; j < conf->nroutes; j++)
			builtin_route(&conf->routes[j]);
	}
}

enum type { NUMBER, MODE, INT64, SIZE, SWITCH, TEXT, LIST, STATUSES };

struct good {
	const char *text; /* "option = value" */
	size_t offset;
	enum type type;
	int64_t number;
	const char *expected;
};

/* What the option was read into is what the row says. */
static void
member_is(const void *base, const struct good *row)
{
	const char *at = (const char *)base + row->offset;

	switch (row->type) {
	case NUMBER:
		assert_int_equal(*(const unsigned *)at, row->number);
		return;
	case MODE:
		assert_int_equal(*(const int *)at, row->number);
		return;
	case INT64:
		assert_int_equal(*(const int64_t *)at, row->number);
		return;
	case SIZE:
		assert_int_equal(*(const uint64_t *)at, row->number);
		return;
	case SWITCH:
		assert_int_equal(*(const bool *)at, row->number);
		return;
	case TEXT:
		assert_string_equal(*(char *const *)at, row->expected);
		return;
	case LIST:
		list_is((const struct conf_list *)at, row->expected);
		return;
	case STATUSES:
		statuses_are((const struct conf_statuses *)at, row->expected);
		return;
	}
}

#define S(m)    offsetof(struct conf, m)
#define R(m)    offsetof(struct conf_route, m)
#define E(m)    offsetof(struct conf_effect, m)
#define N(t, n) (t), (n), NULL
#define T(t, s) (t), 0, (s)
#define P10     "/aaaaaaaaa"
#define P100    P10 P10 P10 P10 P10 P10 P10 P10 P10 P10

static const struct good goods[] = {
	{ "database = /var/lib/o.db", S(database), T(TEXT, "/var/lib/o.db") },
	{ "database = a file.db", S(database), T(TEXT, "a file.db") },
	{ "socket = unix:/run/o.sock", S(socket), T(TEXT, "unix:/run/o.sock") },
	{ "socket = /run/o.sock", S(socket), T(TEXT, "unix:/run/o.sock") },
	{ "socket = " P100 "/aaaaaa", S(socket),
	    T(TEXT, "unix:" P100 "/aaaaaa") },
	{ "socket = tcp:localhost:1", S(socket), T(TEXT, "tcp:localhost:1") },
	{ "socket = tcp:127.0.0.1:65535", S(socket),
	    T(TEXT, "tcp:127.0.0.1:65535") },
	{ "socket = tcp:[::1]:9000", S(socket), T(TEXT, "tcp:[::1]:9000") },
	{ "socket = tcp:[fe80::1%eth0]:9000", S(socket),
	    T(TEXT, "tcp:[fe80::1%eth0]:9000") },
	{ "socket = fd:0", S(socket), T(TEXT, "fd:0") },
	{ "socket = fd:65535", S(socket), T(TEXT, "fd:65535") },
	{ "socket_mode = 0600", S(socket_mode), N(NUMBER, 0600) },
	{ "socket_mode = 777", S(socket_mode), N(NUMBER, 0777) },
	{ "socket_user = www-data", S(socket_user), T(TEXT, "www-data") },
	{ "socket_user = 0", S(socket_user), T(TEXT, "0") },
	{ "socket_user = 4294967294", S(socket_user), T(TEXT, "4294967294") },
	{ "socket_group = AD\\web$", S(socket_group), T(TEXT, "AD\\web$") },
	{ "workers = 0008", S(workers), N(NUMBER, 8) },
	{ "allow_peers = www-data, 33\troot", S(allow_peers),
	    T(LIST, "www-data|33|root") },
	{ "allow_peers =", S(allow_peers), T(LIST, "") },
	{ "drain_timeout = 0s", S(drain_timeout), N(INT64, 0) },
	{ "drain_timeout = 24h", S(drain_timeout), N(INT64, DAY) },
	{ "busy_timeout = 1440m", S(busy_timeout), N(INT64, DAY) },
	{ "spool_dir = /var/tmp", S(spool_dir), T(TEXT, "/var/tmp") },
	{ "max_wal = 65536", S(max_wal), N(SIZE, 64 * 1024) },
	{ "link = https://example.org/doc?a=b&c=%20", S(link),
	    T(TEXT, "https://example.org/doc?a=b&c=%20") },
	{ "link = urn:example:rules", S(link), T(TEXT, "urn:example:rules") },
	{ "problem_pages = /etc/pages", S(problem_pages),
	    T(TEXT, "/etc/pages") },
	{ "admin_path = /once", S(admin_path), T(TEXT, "/once") },
	{ "admin_path = //a/./b/../c/", S(admin_path), T(TEXT, "/a/c") },
	{ "status_path = /jobs", S(status_path), T(TEXT, "/jobs") },

	{ "handler = /usr/lib/cgi-bin/pay", R(handler.argv),
	    T(LIST, "/usr/lib/cgi-bin/pay") },
	{ "handler = /bin/a  b\tc", R(handler.argv), T(LIST, "/bin/a|b|c") },
	{ "handler = /bin/a 'b c' \"d e\" f\\ g", R(handler.argv),
	    T(LIST, "/bin/a|b c|d e|f g") },
	{ "handler = \"/bin/a b\" \"\" ''", R(handler.argv),
	    T(LIST, "/bin/a b||") },
	{ "handler = /bin/a \"\\\"\\\\\\$\\`\\n\" '\\n'", R(handler.argv),
	    T(LIST, "/bin/a|\"\\$`\\n|\\n") },
	{ "handler = /bin/a $HOME ~ * `id` |x >y", R(handler.argv),
	    T(LIST, "/bin/a|$HOME|~|*|`id`||x|>y") },
	{ "handler = /bin/a a'b'\"c\"d", R(handler.argv),
	    T(LIST, "/bin/a|abcd") },
	{ "handler = /bin/a x;y x#y a=b ; no", R(handler.argv),
	    T(LIST, "/bin/a|x;y|x#y|a=b") },
	{ "handler = unix:/run/php.sock", R(handler.argv),
	    T(LIST, "unix:/run/php.sock") },
	{ "handler = unix:/run/a b", R(handler.argv),
	    T(LIST, "unix:/run/a b") },
	{ "handler = unix:" P100 "/aaaaaa", R(handler.argv),
	    T(LIST, "unix:" P100 "/aaaaaa") },
	{ "handler = tcp:app.local:9000", R(handler.argv),
	    T(LIST, "tcp:app.local:9000") },
	{ "handler = tcp:[::1]:65535", R(handler.argv),
	    T(LIST, "tcp:[::1]:65535") },
	{ "handler = /a\nprotocol = fastcgi", R(handler.protocol),
	    N(NUMBER, CONF_PROTOCOL_FASTCGI) },
	{ "methods = POST", R(methods), T(LIST, "POST") },
	{ "methods = PUT,DELETE , M-SEARCH", R(methods),
	    T(LIST, "PUT|DELETE|M-SEARCH") },
	{ "methods = M-SEARCH", R(methods), T(LIST, "M-SEARCH") },
	{ "key_min_length = 1", R(key_min_length), N(NUMBER, 1) },
	{ "key_min_length = 255", R(key_min_length), N(NUMBER, 255) },
	{ "key_max_length = 1", R(key_max_length), N(NUMBER, 1) },
	{ "key_max_length = 4096", R(key_max_length), N(NUMBER, 4096) },
	{ "scope = none", R(scope), T(LIST, "") },
	{ "scope = REMOTE_USER, HTTP_X_TENANT", R(scope),
	    T(LIST, "REMOTE_USER|HTTP_X_TENANT") },
	{ "scope = TENANT2", R(scope), T(LIST, "TENANT2") },
	{ "preset = none", R(preset), N(NUMBER, 1 << CONF_PRESET_NONE) },
	{ "preset = form", R(preset), N(NUMBER, 1 << CONF_PRESET_FORM) },
	{ "preset = form, php-cgi", R(preset),
	    N(NUMBER, 1 << CONF_PRESET_FORM | 1 << CONF_PRESET_PHP_CGI) },
	{ "methods = unsafe", R(methods), T(LIST, "unsafe") },
	{ "scope = cookie:sid", R(scope), T(LIST, "cookie:sid") },
	{ "scope = REMOTE_USER, cookie:a+b", R(scope),
	    T(LIST, "REMOTE_USER|cookie:a+b") },
	{ "fingerprint_headers = X-Api-Version, Accept", R(fingerprint_headers),
	    T(LIST, "X-Api-Version|Accept") },
	{ "fingerprint_headers =", R(fingerprint_headers), T(LIST, "") },
	{ "fingerprint_ignore = /a /b/0/c~0d~1e /", R(fingerprint_ignore),
	    T(LIST, "/a|/b/0/c~0d~1e|/") },
	{ "fingerprint_ignore = /a\"\\\xc3\xa4% /~0~1", R(fingerprint_ignore),
	    T(LIST, "/a\"\\\xc3\xa4%|/~0~1") },
	{ "fingerprint_ignore = ,", R(fingerprint_ignore), T(LIST, "") },
	{ "max_request_body = 1023", R(max_request_body), N(SIZE, 1023) },
	{ "replay_drop = Set-Cookie", R(replay_drop), T(LIST, "Set-Cookie") },
	{ "replay_drop =", R(replay_drop), T(LIST, "") },
	{ "timeout = 90m", R(handler.timeout), N(INT64, 5400 * SECOND) },
	{ "release = 425,429,5xx", R(release), T(STATUSES, "425 429 500-599") },
	{ "release = 100 599", R(release), T(STATUSES, "100 599") },
	{ "release = 505-599", R(release), T(STATUSES, "505-599") },
	{ "release = 401, 500-500 503-510", R(release),
	    T(STATUSES, "401 500 503-510") },
	{ "release = 100-599", R(release), T(STATUSES, "100-599") },
	{ "release = 1xx 2xx 3xx 4xx 5xx", R(release), T(STATUSES, "100-599") },
	{ "release =", R(release), T(STATUSES, "") },
	{ "ambiguous = 504", R(ambiguous), T(STATUSES, "504") },
	{ "ambiguous = ; none", R(ambiguous), T(STATUSES, "") },
	{ "max_request_age = 0", R(max_request_age), N(INT64, 0) },
	{ "max_request_age = 3650d\nrequest_timestamp = X-Sent",
	    R(max_request_age), N(INT64, 3650 * DAY) },
	{ "request_timestamp = Date\nmax_request_age = 0", R(request_timestamp),
	    T(TEXT, "Date") },
	{ "directory = /srv", R(handler.directory), T(TEXT, "/srv") },
	{ "user = nobody", R(handler.user), T(TEXT, "nobody") },
	{ "group = 65534", R(handler.group), T(TEXT, "65534") },
	{ "environment = LANG, TZ http_proxy _x1", R(handler.environment),
	    T(LIST, "LANG|TZ|http_proxy|_x1") },
	{ "environment = TZ=UTC LANG, E= Y=a=b;c PATH=/a:/b",
	    R(handler.environment),
	    T(LIST, "TZ=UTC|LANG|E=|Y=a=b;c|PATH=/a:/b") },
	{ "environment =", R(handler.environment), T(LIST, "") },
};

/* From the least to the most, or words, each of which is its enum's next
 * value; and what is refused, with " | " between. */
static const struct limits {
	const char *option;
	size_t offset;
	enum type type;
	int64_t least, most;
	const char *inside, *outside;
} limits[] = {
	{ "workers", S(workers), NUMBER, 1, 1024, "1 to 1024",
	    "0 | 1025 | 99999999999999999999" },
	{ "socket_mode", S(socket_mode), NUMBER, 0, 0777, "0 to 0777",
	    "1000 | 77777777777777777777" },
	{ "io_timeout", S(io_timeout), INT64, 1, DAY, "1ms to 1d", "0 | 25h" },
	{ "drain_timeout", S(drain_timeout), INT64, 0, DAY, "0 to 1d",
	    "86400001ms" },
	{ "busy_timeout", S(busy_timeout), INT64, 50, DAY, "50ms to 1d",
	    "0 | 49ms | 2d | 9223372036854775807d | 99999999999999999999s" },
	{ "owner_timeout", S(owner_timeout), INT64, SECOND, DAY, "1s to 1d",
	    "999ms | 25h" },
	{ "spool_total", S(spool_total), SIZE, MIB, MOST, "1M to " MOST_TEXT,
	    "1023K | 1025G" },
	{ "max_wal", S(max_wal), SIZE, 65536, MOST, "64K to " MOST_TEXT,
	    "65535 | 1025G | 99999999999G" },
	{ "max_kept", S(max_kept), SIZE, 0, MOST, "0 to " MOST_TEXT, "1025G" },
	{ "attention_interval", S(attention_interval), INT64, 1, DAY,
	    "1ms to 1d", "0 | 25h" },
	{ "async_workers", S(async_workers), NUMBER, 1, 64, "1 to 64",
	    "0 | 65" },
	{ "async_queue", S(async_queue), NUMBER, 1, 10000, "1 to 10000",
	    "0 | 10001" },
	{ "reconcile_workers", S(reconcile_workers), NUMBER, 1, 64, "1 to 64",
	    "0 | 65" },
	{ "sweep_interval", S(sweep_interval), INT64, 10, DAY, "10ms to 1d",
	    "9ms | 25h" },
	{ "reap_interval", S(reap_interval), INT64, 10, DAY, "10ms to 1d",
	    "9ms | 25h" },
#if SIZE_MAX == UINT32_MAX
	{ "max_wal", S(max_wal), SIZE, 65536, MOST, "64K to 4095M",
	    "4G | 4294967296" },
#endif
	{ "processes", R(handler.processes), NUMBER, 1, 1024, "1 to 1024",
	    "0 | 1025" },
	{ "max_requests", R(handler.max_requests), NUMBER, 0, 1000000,
	    "0 to 1000000", "1000001" },
	{ "max_request_body", R(max_request_body), SIZE, 0, MOST,
	    "0 to " MOST_TEXT, "1025G" },
	{ "max_response", R(max_response), SIZE, 0, 512 * MIB, "0 to 512M",
	    "513M" },
	{ "max_output", R(handler.max_output), SIZE, 1, MOST, "1 to " MOST_TEXT,
	    "0" },
	{ "wait_time", R(wait_time), INT64, 1, DAY, "1ms to 1d", "0 | 25h" },
	{ "timeout", R(handler.timeout), INT64, 1, 7 * DAY, "1ms to 7d",
	    "0 | 8d" },
	{ "kill_after", R(handler.kill_after), INT64, 0, DAY, "0 to 1d",
	    "25h" },
	{ "retention", R(retention), INT64, 1, 3650 * DAY, "1ms to 3650d",
	    "0 | 3651d" },
	{ "expired_retention", R(expired_retention), INT64, 1, 3650 * DAY,
	    "1ms to 3650d", "0 | 3651d" },
	{ "reconcile_after", R(reconcile_after), INT64, 1, 24 * DAY,
	    "1ms to 24d", "0 | 25d" },
	{ "reconcile_attempts", R(reconcile_attempts), NUMBER, 1, 1000,
	    "1 to 1000", "0 | 1001" },
	{ "max_active_keys", R(max_active_keys), NUMBER, 0, 1000000,
	    "0 to 1000000", "1000001" },
	{ "max_open_keys", R(max_open_keys), NUMBER, 0, 100000, "0 to 100000",
	    "100001" },
	{ "key_rate", R(key_rate), NUMBER, 0, 1000000, "0 to 1000000",
	    "1000001" },
	{ "umask", R(handler.umask), MODE, 0, 0777, "0 to 0777", "1777" },
	{ "attempts", E(attempts), NUMBER, 1, 1000, "1 to 1000", "0 | 1001" },
	{ "backoff", E(backoff), INT64, 1, DAY, "1ms to 1d", "0 | 25h" },
	{ "durability", S(durability), NUMBER, 0, 0, "full, normal",
	    "Full | off" },
	{ "dialect", S(dialect), NUMBER, 0, 0, "ietf, stripe", "rfc" },
	{ "protocol", R(handler.protocol), NUMBER, 0, 0, "cgi, fastcgi",
	    "scgi | FastCGI" },
	{ "outcome", R(outcome), NUMBER, 0, 0, "status, explicit", "exit" },
	{ "key", R(key), NUMBER, 0, 0, "optional, required, ignore", "yes" },
	{ "key_syntax", R(key_syntax), NUMBER, 0, 0, "any, string", "token" },
	{ "scope_required", R(scope_required), SWITCH, 0, 0, "no, yes",
	    "true" },
	{ "fingerprint", R(fingerprint), NUMBER, 0, 0, "value, exact, none",
	    "json | bytes" },
	{ "concurrent", R(concurrent), NUMBER, 0, 0, "reject, wait, accept",
	    "block" },
	{ "exit_status", R(exit_status), NUMBER, 0, 0, "check, release, ignore",
	    "no" },
	{ "on_crash", R(on_crash), NUMBER, 0, 0, "unknown, resume", "run" },
	{ "on_expired", R(on_expired), NUMBER, 0, 0, "run, gone", "reject" },
	{ "async", R(async), NUMBER, 0, 0, "never, prefer, always", "yes" },
	{ "share_database", R(share_database), SWITCH, 0, 0, "no, yes", "1" },
	{ "no_new_privs", R(handler.no_new_privs), SWITCH, 0, 0, "no, yes",
	    "on" },
};

/* Where an option can stand, and what its file needs besides. */
static const struct place {
	enum conf_section section;
	const char *head, *rest;
} places[] = {
	{ CONF_SERVER, "[server]", "" },
	{ CONF_ROUTE, "[route /a]", "[server]\nstatus_path = /s" },
	{ CONF_ROUTE, "[defaults]", "[route /a]\n[server]\nstatus_path = /s" },
	{ CONF_EFFECT, "[effect e]", "program = /a" },
};

/* The next place of the option, which a blank may follow; NULL: no more. */
static const struct place *
next_place(const struct place *p, const char *option)
{
	char name[64] = "";

	(void)sscanf(option, "%63s", name);
	for (p = p == NULL ? places : p + 1; p < places + COUNT(places); p++)
		if (conf_option_find(p->section, name) != NULL)
			return p;
	return NULL;
}

/* At each place. */
static void
is_read(const struct good *row)
{
	const struct place *p = NULL;
	char text[512];
	bool of_route = false;

	while ((p = next_place(p, row->text)) != NULL) {
		(void)snprintf(text, sizeof(text), "%s\n%s\n%s\n", p->head,
		    row->text, p->rest);
		load(text);
		switch (p->section) {
		case CONF_SERVER:
			member_is(conf, row);
			break;
		case CONF_ROUTE:
			of_route = true;
			member_is(&conf->routes[0], row);
			if (strcmp(p->head, "[defaults]") == 0)
				member_is(&conf->defaults, row);
			else
				builtin_route(&conf->defaults);
			break;
		case CONF_EFFECT:
			/* Both have a program with the same options. */
			member_is((const char *)&conf->effects[0] +
				(of_route ? E(program) : 0) -
				(of_route ? R(handler) : 0),
			    row);
			break;
		}
	}
}

static void
is_read_as(const struct limits *l, const char *value, int64_t number)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s = %s", l->option, value);
	is_read(&(struct good){ text, l->offset, l->type, number, NULL });
}

TEST(every_option_and_its_limits)
{
	char inside[128], *rest, *word;
	int64_t n;

	for (size_t i = 0; i < COUNT(goods); i++)
		is_read(&goods[i]);
	for (size_t i = 0; i < COUNT(limits); i++) {
		(void)snprintf(inside, sizeof(inside), "%s", limits[i].inside);
		if ((word = strstr(inside, " to ")) != NULL) {
			*word = '\0';
			is_read_as(&limits[i], inside, limits[i].least);
			is_read_as(&limits[i], word + 4, limits[i].most);
			continue;
		}
		for (n = 0, rest = inside; rest != NULL; n++)
			is_read_as(&limits[i], strsep(&rest, ","), n);
	}
}

static void
builtin_effect(const struct conf_effect *e)
{
	assert_int_equal(e->program.timeout, 60 * SECOND);
	assert_int_equal(e->program.kill_after, 5 * SECOND);
	assert_int_equal(e->attempts, 8);
	assert_int_equal(e->backoff, SECOND);
	assert_int_equal(e->program.max_output, GIB);
	assert_null(e->program.directory);
	assert_int_equal(e->program.umask, -1);
	assert_false(e->program.no_new_privs);
	assert_null(e->program.user);
	assert_null(e->program.group);
	list_is(&e->program.environment, "");
}

TEST(effects_stand_in_order_and_take_no_defaults)
{
	static const char *const names[] = { "web-hook", "mail", "Mail" };

	load("[effect web-hook]\nprogram = /bin/w 'a b'\n"
	     "[defaults]\ntimeout = 1s\numask = 0\n"
	     "[effect\t mail ] ; why\nprogram = /bin/m\n"
	     "[effect Mail]\nprogram = /bin/n\n");
	assert_int_equal(conf->neffects, COUNT(names));
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_string_equal(conf->effects[i].name, names[i]);
		assert_ptr_equal(
		    conf_effect_find(conf, names[i]), &conf->effects[i]);
		builtin_effect(&conf->effects[i]);
	}
	assert_null(conf_effect_find(conf, "MAIL"));
	assert_null(conf_effect_find(conf, ""));
	assert_int_equal(conf->effects[1].line, 6);
	list_is(&conf->effects[2].program.argv, "/bin/n");
	list_is(&conf->effects[0].program.argv, "/bin/w|a b");
}

TEST(effects_above_the_limit_are_refused)
{
	size_t n = 0, size = 16 * 1024;
	char *text = malloc(size);

	assert_non_null(text);
	for (int i = 1; i <= 256; i++)
		n += (size_t)snprintf(
		    text + n, size - n, "[effect e%d]\nprogram = /bin/a\n", i);
	load(text);
	assert_int_equal(conf->neffects, 256);
	(void)snprintf(text + n, size - n, "[effect x]\n");
	refused(text, "f:513: more than 256 effects");
	free(text);
}

/* Each of the values, " | " between them, gives the message.  A message that
 * begins with a blank or a colon stands behind the value in quotes. */
struct bad {
	const char *option, *values, *message;
};

#define SECTIONS \
	"there are [server], [defaults], [route /path] and [effect name]"
#define PATHS_CLASH \
	"admin_path and status_path must not be equal, or one below the other"
#define RANGE(range) " is out of range (" range ")"
#define ONE_OF(list) " is not one of " list
#define EMPTY        "the value is empty: write one, or leave the option out"
#define SOCKETS      " is not unix:/path, /path, tcp:host:port or fd:N"
#define ADDRESSES    " is not unix:/path or tcp:host:port"
#define TIMES        " is not a duration: a number and ms, s, m, h or d"
#define SIZES        " is not a size: a number, or one and K, M or G"

#define NO_URI                                                                \
	" is not an absolute URI without a fragment, in which a % itself is " \
	"written as %25"

#define NO_VARIABLE                                        \
	" is neither the name of an environment variable " \
	"nor NAME=value"
#define NOT_HANDED " variables are never handed on"
#define VARIABLE   " is a CGI variable: write the name of the field"
#define NO_CGI                                         \
	" is not the name of a CGI variable, such as " \
	"REMOTE_USER, or HTTP_X_USER for the field X-User"
#define NO_METHOD                                                         \
	" is not a method: write methods in upper case, with blanks "     \
	"between them, or \"unsafe\" alone, which is all but GET, HEAD, " \
	"OPTIONS and TRACE"
#define STATUS " is not a status, such as 409, 505-599 or 5xx"

#define PLACES \
	"header:NAME, query:NAME, form:NAME, json:/pointer or cookie:NAME"
#define PARTS                                                  \
	" is not one place, or two with a plus between them; " \
	"a plus within a name is written as %2B"

static const struct bad bads[] = {
	{ "database", "", EMPTY },
	{ "database", ":memory: | file:a?mode=memory", " is not a file" },
	{ "socket", "", EMPTY },
	{ "socket",
	    "run/o.sock | unix:o.sock | unix: | tcp:9000 | tcp::9000 | "
	    "tcp:h:http | tcp:h: | tcp:::1:9000 | tcp:[]:9000 | tcp:[h]:9000 | "
	    "tcp:a b:9000 | fd: | fd:-1 | fd:65536 | s | udp:1 | fd:3x | "
	    "fd:99999999999999999999 | tcp: | tcp:localhost | "
	    "tcp:127.0.0.1: | tcp:[::1]",
	    SOCKETS },
	{ "socket", "" P100 "/aaaaaaa",
	    "the path of a unix socket is longer than 107 bytes" },
	{ "socket", "tcp:h:0 | tcp:h:65536 | tcp:127.0.0.1:99999", SOCKETS },
	{ "socket_mode", "0680 | rw", " is not a mode in octal, 0 to 0777" },
	{ "socket_user", "-x | a:b | a b", " is not a name or an id" },
	{ "socket_group", "4294967295", " is not a name or an id" },
	{ "workers", "-1 | +1 | 0x10 | 8 8", " is not a number" },
	{ "workers", "", EMPTY },
	{ "allow_peers", "a/b", " is not the name or id of a user" },
	{ "allow_peers", "root -1", "\"-1\" is not the name or id of a user" },
	{ "io_timeout", "5", " needs a unit: ms, s, m, h or d" },
	{ "io_timeout", "5x | 5S | 5 s | 1.5s | 1h30m | -1s | s", TIMES },
	{ "spool_dir", "tmp", " is not an absolute path" },
	{ "problem_pages", "pages", " is not an absolute path" },
	{ "on_attention", "mail root",
	    "the program \"mail\" is not an absolute path" },
	{ "max_wal", "64k | 64MB | 1T | M | -1", SIZES },
	{ "link",
	    "/rules | https: | 1a:b | https://x/#a | https://x/a b | "
	    "https://x/> | https://x/\"",
	    NO_URI },
	{ "link",
	    "https://x/100% | https://x/%2 | https://x/%20%zz | https://x/%%25",
	    NO_URI },
	{ "admin_path", "once", " does not begin with \"/\"" },
	{ "admin_path", "/a%62",
	    " is percent-encoded, or has a query or fragment; paths are "
	    "compared decoded" },
	{ "admin_path", "/ | /a/..", " leaves no path to the handlers" },
	{ "admin_path", "", EMPTY },
	{ "status_path", "jobs", " does not begin with \"/\"" },
	{ "status_path", "/", " leaves no path to the handlers" },
	{ "handler", "", EMPTY },
	{ "handler", "pay", "the program \"pay\" is not an absolute path" },
	{ "handler", "./pay x",
	    "the program \"./pay\" is not an absolute path" },
	{ "handler", "''", "the program \"\" is not an absolute path" },
	{ "handler", "/bin/a 'b", "a quote ' is not closed" },
	{ "handler", "/bin/a \"b\\\"", "a quote \" is not closed" },
	{ "handler", "/bin/a \\", "a backslash at the end" },
	{ "handler", "unix: | unix:run/php.sock | tcp:9000 | tcp:::1:9000",
	    ADDRESSES },
	{ "handler", "unix:" P100 "/aaaaaaa",
	    "the path of a unix socket is longer than 107 bytes" },
	{ "handler", "tcp:app:0 | tcp:app:65536", ADDRESSES },
	{ "handler", "fd:3", "the program \"fd:3\" is not an absolute path" },
	{ "handler", "UNIX:/a",
	    "the program \"UNIX:/a\" is not an absolute path" },
	{ "reconcile", "unix:/a",
	    "the program \"unix:/a\" is not an absolute path" },
	{ "processes", "many", " is not a number" },
	{ "max_requests", "-1", " is not a number" },
	{ "methods", "", EMPTY },
	{ "methods", ",", EMPTY },
	{ "methods", "POST;PUT | GET|POST", NO_METHOD },
	{ "methods", "unsafe POST | POST, unsafe", "\"unsafe\" stands alone" },
	{ "methods", "Unsafe | unsave | all | Any | *", NO_METHOD },
	{ "preset", "forms", ONE_OF("none, form, webhook, php-cgi, php-fpm") },
	{ "preset", "form php",
	    "\"php\" is not one of none, form, webhook, php-cgi, php-fpm" },
	{ "preset", "form none", "\"none\" stands beside others" },
	{ "key_from", "", EMPTY },
	{ "key_from", ",", EMPTY },
	{ "key_from", "Idempotency-Key",
	    " does not say where the key is: "
	    "write " PLACES },
	{ "key_from", "header:A once_key",
	    "\"once_key\" does not say where the key is: write " PLACES },
	{ "key_from", "headers:X-Key | Header:X-Key | body:id",
	    " does not say where the key is: write " PLACES },
	{ "key_from", "header:HTTP_X_KEY", "\"HTTP_X_KEY\"" VARIABLE },
	{ "key_from", "header:X@Key", "\"X@Key\" is not the name of a field" },
	{ "key_from", "header:", " needs a name after the colon" },
	{ "key_from", "form: once_key",
	    "\"form:\" needs a name after the colon" },
	{ "key_from", "json:id",
	    "\"id\" is not a JSON Pointer, such as /a/0/b" },
	{ "key_from", "json:#/a",
	    "\"#/a\" is not a JSON Pointer, such as /a/0/b" },
	{ "key_from", "json:$.id",
	    "\"$.id\" is not a JSON Pointer, such as /a/0/b" },
	{ "key_from", "cookie:a=b",
	    "\"a=b\" is not the name of a cookie: write cookie:NAME" },
	{ "key_from", "header:A + header:B", "\"+\"" PARTS },
	{ "key_from", "header:A+ | +header:A | query:c++", PARTS },
	{ "key_from", "query:a+query:b+query:c", PARTS },
	{ "key_from",
	    "query:1 query:2 query:3 query:4 query:5 query:6 query:7 "
	    "query:8 query:9 query:10 query:11 query:12 query:13 query:14 "
	    "query:15 query:16 query:17",
	    "more than 16 items" },
	{ "scope",
	    "cookie:", "\"\" is not the name of a cookie: write cookie:NAME" },
	{ "scope", "cookie:a=b",
	    "\"a=b\" is not the name of a cookie: write cookie:NAME" },
	{ "methods", "post", NO_METHOD },
	{ "methods", "PUT m-Search", "\"m-Search\"" NO_METHOD },
	{ "key_min_length", "0 | 4097", RANGE("1 to 4096") },
	{ "key_max_length", "0 | 4097", RANGE("1 to 4096") },
	{ "scope", "", EMPTY },
	{ "scope",
	    "Authorization | X-Tenant | remote_user | HTTP-X-Tenant | "
	    "http_x_tenant | http | AUTHORIZATION | COOKIE | _X | $user | 1A",
	    NO_CGI },
	{ "scope", "REMOTE_USER x.tenant", "\"x.tenant\"" NO_CGI },
	{ "scope", "None | NONE", ": \"none\" stands alone" },
	{ "scope", "REMOTE_USER none", "\"none\": \"none\" stands alone" },
	{ "fingerprint_headers", "X-A http_x_b", "\"http_x_b\"" VARIABLE },
	{ "request_timestamp", "HTTP_DATE", VARIABLE },
	{ "fingerprint_headers", "A:", " is not the name of a field" },
	{ "fingerprint_ignore", "a | /a~ | /~2 | /~/a",
	    " is not a JSON Pointer, such as /a/0/b" },
	{ "fingerprint_ignore", "/a /b~2",
	    "\"/b~2\" is not a JSON Pointer, such as /a/0/b" },
	{ "replay_drop", "a@b", " is not the name of a field" },
	{ "key_rate", "1.5", " is not a number" },
	{ "max_request_age", "3651d", RANGE("0 to 3650d") },
	{ "request_timestamp", "a b", " is not the name of a field" },
	{ "release",
	    "600 | 099 | 599-505 | 505- | -505 | 505-600 | 505-5xx | 5055-599 "
	    "| 6xx | 5XX | 50x | 5000",
	    STATUS },
	{ "release", "505 - 599", "\"-\"" STATUS },
	{ "release", "\"5xx\"", "the value is in quotes: write it without" },
	{ "release", "425 none", "\"none\"" STATUS },
	{ "ambiguous", "-50", STATUS },
	{ "directory", ".", " is not an absolute path" },
	{ "umask", "u=rwx", " is not a mode in octal, 0 to 0777" },
	{ "user", "/root", " is not a name or an id" },
	{ "group", "", EMPTY },
	{ "environment", "=B | A-B=C | 1A", NO_VARIABLE },
	{ "environment", "ONCE_KEY=x | ONCE_KEY", ": ONCE_*" NOT_HANDED },
	{ "environment", "LD_PRELOAD=/x", ": LD_*" NOT_HANDED },
	{ "environment", "A LD_PRELOAD", "\"LD_PRELOAD\": LD_*" NOT_HANDED },
	{ "environment", "HTTP_PROXY", ": HTTP_*" NOT_HANDED },
	{ "environment", "PATH", "PATH is always handed on" },
	{ "program", "", EMPTY },
	{ "program", "mail", "the program \"mail\" is not an absolute path" },
	{ "program", "unix:/a",
	    "the program \"unix:/a\" is not an absolute path" },
};

static void
is_refused_at(const struct place *p, const struct bad *row)
{
	const char *value = row->values, *end;
	char text[512], message[512];
	int len, quoted = strchr(" :", row->message[0]) != NULL;

	for (;; value = end + strlen(" | ")) {
		end = strstr(value, " | ");
		len = end != NULL ? (int)(end - value) : (int)strlen(value);
		(void)snprintf(text, sizeof(text), "; 1\n%s\n\n%s = %.*s\nx\n",
		    p->head, row->option, len, value);
		(void)snprintf(message, sizeof(message),
		    quoted ? "f:4: %s: \"%.*s\"%s" : "f:4: %s: %.*s%s",
		    row->option, quoted ? len : 0, value, row->message);
		refused(text, message);
		if (end == NULL)
			return;
	}
}

static void
is_refused(const struct bad *row)
{
	const struct place *p = NULL;

	while ((p = next_place(p, row->option)) != NULL)
		is_refused_at(p, row);
}

TEST(every_value_that_is_refused)
{
	char message[128];

	for (size_t i = 0; i < COUNT(bads); i++)
		is_refused(&bads[i]);
	for (size_t i = 0; i < COUNT(limits); i++) {
		(void)snprintf(message, sizeof(message),
		    strstr(limits[i].inside, " to ") != NULL ? RANGE("%s")
							     : ONE_OF("%s"),
		    limits[i].inside);
		is_refused(&(struct bad){
		    limits[i].option, limits[i].outside, message });
	}
}

#define NO_RESUME                                                          \
	"on_crash = resume needs a handler that oncewrap starts: it "      \
	"cannot be told when an application at a socket has ended a lost " \
	"request; write on_crash = unknown, or name the program and "      \
	"protocol = fastcgi"
#define NO_SHARING                                                             \
	"share_database needs a handler that oncewrap starts: an "             \
	"application at a socket may write to the file after its "             \
	"request was given up; take it out, or name the program and protocol " \
	"= fastcgi"
#define NO_PROTOCOL                                                      \
	"protocol = fastcgi keeps processes of a program: take it out, " \
	"for an application at a socket is FastCGI anyway"

/* An option of line 2 that stands in the wrong section. */
#define BELONGS(option, where, section) \
	"f:2: option \"" option "\" belongs in " where ", not in " section
#define A_ROUTE "[defaults] or [route]"

#define NO_KEY_FROM                                                      \
	"preset = webhook needs a key_from that names the sender's id, " \
	"such as header:X-GitHub-Delivery or json:/id"

static const struct {
	const char *text, *message;
} files[] = {
	/* sections */
	{ "[server", "f:1: expected \"[section]\"" },
	{ "[", "f:1: expected \"[section]\"" },
	{ "[server] x", "f:1: expected \"[section]\"" },
	{ "[server]]", "f:1: expected \"[section]\"" },
	{ "[route /a ;b]", "f:1: expected \"[section]\"" },
	{ "[server]\n\n[server]",
	    "f:3: section [server] is repeated, first on line 1" },
	{ "[defaults]\n[server]\n[defaults]",
	    "f:3: section [defaults] is repeated, first on line 1" },
	{ "[effect]", "f:1: an effect needs a name: [effect name]" },
	{ "[effect ]", "f:1: an effect needs a name: [effect name]" },
	{ "[effect a b]", "f:1: effect \"a b\" is not a token, such as mail" },
	{ "[effect a/b]", "f:1: effect \"a/b\" is not a token, such as mail" },
	{ "[effect p\xc3\xb6st]",
	    "f:1: effect \"p\xc3\xb6st\" is not a token, such as mail" },
	{ "[effect mail]\n[effect mail]",
	    "f:2: effect \"mail\" is repeated, first on line 1" },
	/* routes */
	{ "[route]", "f:1: a route needs a path: [route /path]" },
	{ "[route  ]", "f:1: a route needs a path: [route /path]" },
	{ "[route pay]", "f:1: route \"pay\" does not begin with \"/\"" },
	{ "[route /p%61y]",
	    "f:1: route \"/p%61y\" is percent-encoded, or has a query or "
	    "fragment; paths are compared decoded" },
	{ "[route /pay?x=1]",
	    "f:1: route \"/pay?x=1\" is percent-encoded, or has a query or "
	    "fragment; paths are compared decoded" },
	{ "[route /pay#x]",
	    "f:1: route \"/pay#x\" is percent-encoded, or has a query or "
	    "fragment; paths are compared decoded" },
	{ "[route /a]\nkey = required\n[route /b]\n[route /a]",
	    "f:4: route \"/a\" is repeated, first on line 1" },
	{ "[route /a/b]\n[route /a//x/../b]",
	    "f:2: route \"/a//x/../b\" is repeated, first on line 1" },
	{ "[route /a]\n[route /a/]",
	    "f:2: route \"/a/\" is repeated, first on line 1" },
	{ "[route /]\n[route /..]",
	    "f:2: route \"/..\" is repeated, first on line 1" },
	/* options */
	{ "workers = 1", "f:1: option \"workers\" before any section" },
	{ "[server]\nworker = 1",
	    "f:2: unknown option \"worker\" in [server]" },
	{ "[server]\nWorkers = 1",
	    "f:2: unknown option \"Workers\" in [server]" },
	{ "[server]\nsocket unix = 1",
	    "f:2: unknown option \"socket unix\" in [server]" },
	{ "[server]\nworkers = 1\nworkers = 1",
	    "f:3: option \"workers\" is repeated, first on line 2" },
	{ "[route /a]\nkey = required\n[route /b]\nkey = ignore\nkey = ignore",
	    "f:5: option \"key\" is repeated, first on line 4" },
	{ "[server]\ntimeout = 1s", BELONGS("timeout", A_ROUTE, "[server]") },
	{ "[server]\nasync = prefer", BELONGS("async", A_ROUTE, "[server]") },
	{ "[defaults]\nworkers = 1",
	    BELONGS("workers", "[server]", "[defaults]") },
	{ "[route /a]\nsocket = /x", BELONGS("socket", "[server]", "[route]") },
	{ "[route /a]\nadmin_path = /x",
	    BELONGS("admin_path", "[server]", "[route]") },
	{ "[route /a]\nfoo = 1", "f:2: unknown option \"foo\" in [route]" },
	{ "[route /a]\nprogram = /bin/a",
	    BELONGS("program", "[effect]", "[route]") },
	{ "[effect a]\nhandler = /bin/a",
	    BELONGS("handler", A_ROUTE, "[effect]") },
	{ "[effect a]\nstatus_path = /a",
	    BELONGS("status_path", "[server]", "[effect]") },
	{ "[effect a]\nprotocol = fastcgi",
	    BELONGS("protocol", A_ROUTE, "[effect]") },
	{ "[server]\nprocesses = 4",
	    BELONGS("processes", A_ROUTE, "[server]") },
	{ "[effect a]\nkey_rate = 1",
	    BELONGS("key_rate", A_ROUTE, "[effect]") },
	{ "[effect a]\nfoo = 1", "f:2: unknown option \"foo\" in [effect]" },
	{ "[effect a]\nprogram = /bin/a\n[effect b]\nprogram = /bin/b\n"
	  "program = /bin/c",
	    "f:5: option \"program\" is repeated, first on line 4" },
	/* lines */
	{ "[server]\nworkers", "f:2: expected \"name = value\"" },
	{ "[server]\n= 1", "f:2: expected \"name = value\"" },
	{ "[server]\nworkers: 1",
	    "f:2: expected \"name = value\", with \"=\" and not \":\"" },
	{ "[server]\nsocket unix:/a=b",
	    "f:2: expected \"name = value\", with \"=\" and not \":\"" },
	{ "[server]\nworkers ; = 1", "f:2: expected \"name = value\"" },
	{ "[server]\nworkers # = 1", "f:2: expected \"name = value\"" },
	{ "[server]\nworkers = 1\v", "f:2: byte 0x0b is not allowed" },
	{ "[server]\n; \x7f", "f:2: byte 0x7f is not allowed" },
	{ "[server]\rworkers = 1\n", "f:1: byte 0x0d is not allowed" },
	{ "[server]\n\xef\xbb\xbfworkers = 1",
	    "f:2: unknown option \"\xef\xbb\xbfworkers\" in [server]" },
	/* of several errors the first one */
	{ "[server]\nworkers = 0\n[server]\nx\n",
	    "f:2: workers: \"0\" is out of range (1 to 1024)" },
	{ "[server]\nx\nworkers = 0", "f:2: expected \"name = value\"" },
	{ "[a]\n[b]", "f:1: unknown section [a]: " SECTIONS },
	{ "# a\n# b\n[server]\n# c\nworkers = 0 # d",
	    "f:5: workers: \"0\" is out of range (1 to 1024)" },
	{ "\r\n; a\r\n[server]\r\n\r\n  workers = 0\r\n",
	    "f:5: workers: \"0\" is out of range (1 to 1024)" },
	/* between options */
	{ "[route /a]\nkey_min_length = 9\nkey_max_length = 8",
	    "f:3: key_min_length is above key_max_length" },
	{ "[route /a]\nkey_max_length = 8\nkey_min_length = 9",
	    "f:3: key_min_length is above key_max_length" },
	{ "[defaults]\nkey_min_length = 256",
	    "f:2: key_min_length is above key_max_length" },
	{ "[defaults]\nkey_min_length = 10\n[route /a]\nkey_max_length = 9",
	    "f:4: key_min_length is above key_max_length" },
	{ "[route /a]\nkey_max_length = 9\n[defaults]\nkey_min_length = 10",
	    "f:4: key_min_length is above key_max_length" },
	{ "[route /b]\nkey_min_length = 256\n[route /long]\n"
	  "scope = none\nscope_required = yes\n",
	    "f:2: key_min_length is above key_max_length" },
	{ "[defaults]\nscope_required = yes\n[route /a]\nscope = none",
	    "f:4: scope_required needs a scope other than none" },
	{ "[route /a]\nkey = required\nasync = prefer",
	    "f:3: async needs a status_path in [server]" },
	{ "[route /a]\n[defaults]\nasync = always",
	    "f:3: async needs a status_path in [server]" },
	{ "[route /a]\nconcurrent = accept\nasync = always",
	    "f:2: concurrent = accept needs a status_path in [server]" },
	{ "[route /a]\nkey = required\nmax_request_age = 1h",
	    "f:3: max_request_age needs a request_timestamp" },
	{ "[defaults]\nrequest_timestamp = Date",
	    "f:2: request_timestamp needs a max_request_age" },
	{ "[defaults]\nmax_request_age = 0\nrequest_timestamp = Date\n"
	  "[route /a]\nmax_request_age = 1h\n[route /b]\nfoo = 1",
	    "f:7: unknown option \"foo\" in [route]" },
	{ "[server]\nadmin_path = /a\nstatus_path = /a", "f:3: " PATHS_CLASH },
	{ "[server]\nstatus_path = /a\nadmin_path = /a/b",
	    "f:3: " PATHS_CLASH },
	{ "[server]\nstatus_path = /a/b\n\nadmin_path = /a/",
	    "f:4: " PATHS_CLASH },
	{ "[route /a]\nhandler = unix:/a\non_crash = resume",
	    "f:3: " NO_RESUME },
	{ "[defaults]\non_crash = resume\n[route /b]\nhandler = /a\n"
	  "[route /a]\nhandler = tcp:a:1",
	    "f:6: " NO_RESUME },
	{ "[route /a]\nhandler = unix:/a\nshare_database = yes",
	    "f:3: " NO_SHARING },
	{ "[defaults]\nhandler = unix:/a\n[route /a]\nshare_database = yes",
	    "f:4: " NO_SHARING },
	{ "[route /a]\nprotocol = fastcgi\nhandler = unix:/a",
	    "f:3: " NO_PROTOCOL },
	{ "[defaults]\nprotocol = fastcgi\n[route /a]\nhandler = tcp:a:1",
	    "f:4: " NO_PROTOCOL },
	{ "[effect a]\nprogram = /bin/a\n[effect c]\n[effect b]",
	    "f:3: the effect needs a program" },
	{ "[effect a]\n[route /a]\nasync = always",
	    "f:1: the effect needs a program" },
	/* presets */
	{ "[route /a]\nkey_from = query:a\npreset = webhook php-cgi\n"
	  "key = ignore\n",
	    "f:3: preset: the presets disagree about exit_status: set it too" },
	{ "[route /a]\nkey_from = query:a\nhandler = unix:/f\n"
	  "preset = php-fpm webhook\n",
	    "f:4: preset: the presets disagree about outcome: set it too" },
	{ "[route /a]\nhandler = unix:/f\npreset = php-fpm php-cgi\n",
	    "f:3: preset: the presets disagree about outcome: set it too" },
	{ "[route /a]\npreset = form webhook\n", "f:2: " NO_KEY_FROM },
	{ "[route /hook]\nmethods = POST\npreset = webhook\n",
	    "f:3: " NO_KEY_FROM },
	{ "[defaults]\npreset = form\n[route /a]\npreset = webhook\n",
	    "f:4: " NO_KEY_FROM },
	{ "[route /a]\nprotocol = fastcgi\npreset = php-cgi\n",
	    "f:3: preset = php-cgi runs a process for each request, whose "
	    "exit status tells what became of the script: take protocol out, "
	    "or use preset = php-fpm" },
};

TEST(sections_that_are_unknown)
{
	static const char *const names[] = { "sever", "", "Server", "server x",
		"routes /a", "route/a", "effects mail" };
	char text[64], message[256];

	for (size_t i = 0; i < COUNT(names); i++) {
		(void)snprintf(
		    text, sizeof(text), "[%s]\nworkers = 1", names[i]);
		(void)snprintf(message, sizeof(message),
		    "f:1: unknown section [%s]: " SECTIONS, names[i]);
		refused(text, message);
	}
	refused("[ ]", "f:1: unknown section []: " SECTIONS);
}

TEST(every_message_about_a_file)
{
	for (size_t i = 0; i < COUNT(files); i++)
		refused(files[i].text, files[i].message);
	refused_bytes(
	    "[server]\nwork\0ers = 1\n", 22, "f:2: byte 0x00 is not allowed");
}

/* One line of n bytes, an option, behind blanks and before a comment. */
static char *
line_of(size_t n)
{
	static char text[5000];
	static const char front[] = "[server]\n \t", option[] = "database = ";

	(void)snprintf(text, sizeof(text), "%s%s%*s", front, option,
	    (int)(n - strlen(option)), "");
	memset(text + strlen(front) + strlen(option), 'x', n - strlen(option));
	strcat(text, " \t ; a comment\n");
	return text;
}

TEST(a_line_may_have_4096_bytes)
{
	char comment[5000];

	load(line_of(4096));
	assert_int_equal(strlen(conf->database), 4096 - strlen("database = "));
	refused(line_of(4097), "f:2: line too long (at most 4096 bytes)");

	/* A comment is no part of the line. */
	memset(comment, ';', sizeof(comment));
	memcpy(comment, "[server]\nworkers = 2 ", 21);
	comment[sizeof(comment) - 1] = '\0';
	load(comment);
	assert_int_equal(conf->workers, 2);
}

TEST(file_above_the_limit_is_refused)
{
	size_t n = 1024 * 1024;
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, '\n', n + 1);
	assert_non_null(conf = conf_parse("f", text, n, &err));
	refused_bytes(text, n + 1, "f: longer than 1048576 bytes");
	free(text);
}

/* A file of n newlines is read, or why it is not. */
static void
file_of(size_t n, const char *why)
{
	char name[] = "/tmp/test_conf.XXXXXX", want[128];
	int fd = mkstemp(name);
	char *text = malloc(n);

	assert_true(fd >= 0);
	assert_non_null(text);
	memset(text, '\n', n);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
	free(text);
	(void)unload(NULL);
	conf = conffile_load(name, &err);
	unlink(name);
	if (why == NULL) {
		assert_non_null(conf);
		return;
	}
	assert_null(conf);
	snprintf(want, sizeof(want), "%s: %s", name, why);
	assert_string_equal(err.text, want);
}

TEST(file_of_the_limit_is_read)
{
	file_of(1024 * 1024 - 1, NULL);
	file_of(1024 * 1024, NULL);
	file_of(1024 * 1024 + 1, "longer than 1048576 bytes");
	file_of(1024 * 1024 + 2, "longer than 1048576 bytes");
}

TEST(routes_above_the_limit_are_refused)
{
	size_t n = 0, size = 32 * 1024;
	char *text = malloc(size);

	assert_non_null(text);
	for (int i = 1; i <= 1024; i++)
		n += (size_t)snprintf(text + n, size - n, "[route /%d]\n", i);
	load(text);
	assert_int_equal(conf->nroutes, 1024);
	assert_string_equal(conf->routes[0].path, "/1000");
	assert_string_equal(conf->routes[1023].path, "/9");
	(void)snprintf(text + n, size - n, "[route /x]\n");
	refused(text, "f:1025: more than 1024 routes");
	free(text);
}

TEST(lines_as_people_write_them)
{
	load("\xef\xbb\xbf# c\r\n"
	     "[server]\t; c\r\n"
	     "  workers=3 # c\r\n"
	     "\tdatabase\t=\t/a;b#c=d:e\t;c\r\n"
	     "    # indented ; comment\r\n"
	     "\n"
	     " [route /My Path/] # c\n"
	     "   key = required\n"
	     "timeout = 5s\r");
	assert_int_equal(conf->workers, 3);
	assert_string_equal(conf->database, "/a;b#c=d:e");
	assert_int_equal(conf->nroutes, 1);
	assert_string_equal(conf->routes[0].path, "/My Path");
	assert_int_equal(conf->routes[0].line, 7);
	assert_int_equal(conf->routes[0].key, CONF_KEY_REQUIRED);
	assert_int_equal(conf->routes[0].handler.timeout, 5000);
}

TEST(lines_of_options_are_kept)
{
	load("[server]\nsocket = /s\nallow_peers = a\n"
	     "socket_user = b\nsocket_group = c\n"
	     "[route /a]\nuser = d\n"
	     "[defaults]\nuser = e\ngroup = f\n"
	     "[effect x]\nprogram = /x\nuser = g\n");
	assert_int_equal(conf_line_of_server(conf, "socket"), 2);
	assert_int_equal(conf_line_of_server(conf, "allow_peers"), 3);
	assert_int_equal(conf_line_of_server(conf, "socket_user"), 4);
	assert_int_equal(conf_line_of_server(conf, "socket_group"), 5);
	assert_int_equal(conf->routes[0].line, 6);
	assert_string_equal(conf->routes[0].handler.user, "d");
	assert_int_equal(conf_line_of_route(conf, &conf->routes[0], "user"), 7);
	assert_string_equal(conf->routes[0].handler.group, "f");
	assert_int_equal(
	    conf_line_of_route(conf, &conf->routes[0], "group"), 10);
	assert_int_equal(conf_line_of_route(conf, &conf->defaults, "user"), 9);
	assert_int_equal(conf_line_of_effect(&conf->effects[0], "user"), 13);
	assert_int_equal(conf_line_of_effect(&conf->effects[0], "group"), 0);
}

TEST(routes_take_defaults_in_any_order_and_are_sorted)
{
	static const char *const paths[] = { "/a/aa", "/a/bb", "/a", "/" };

	load("[route /a]\nkey = ignore\nrelease =\n"
	     "[route /a/bb]\ntimeout = 1s\n"
	     "[defaults]\nkey = required\numask = 022\n"
	     "release = 500\n"
	     "[route /a/aa]\nscope = none\numask = 0\n"
	     "[route /]\n");
	assert_int_equal(conf->nroutes, COUNT(paths));
	for (size_t i = 0; i < COUNT(paths); i++)
		assert_string_equal(conf->routes[i].path, paths[i]);
	assert_int_equal(conf->routes[0].key, CONF_KEY_REQUIRED);
	assert_int_equal(conf->routes[0].handler.umask, 0);
	list_is(&conf->routes[0].scope, "");
	assert_int_equal(conf->routes[1].handler.timeout, 1000);
	assert_int_equal(conf->routes[1].handler.umask, 022);
	list_is(&conf->routes[1].scope, "REMOTE_USER");
	assert_int_equal(conf->routes[2].key, CONF_KEY_IGNORE);
	statuses_are(&conf->routes[2].release, "");
	statuses_are(&conf->routes[3].release, "500");
	assert_int_equal(conf->routes[3].handler.timeout, 60000);
	assert_string_equal(conf->defaults.path, "");
	assert_int_equal(conf->defaults.handler.umask, 022);
}

#define OF_PROGRAMS     "502 504", "401 407-408 425 429 500-599"
#define APP_AMBIGUOUS   "500-502 504-599"
#define APP_RELEASE     "401 407-408 425 429 503"
#define OF_APPLICATIONS APP_AMBIGUOUS, APP_RELEASE

TEST(an_application_has_statuses_of_its_own_unless_they_are_set)
{
	static const struct {
		const char *text, *ambiguous, *release;
	} rows[] = {
		{ "[route /a]\nhandler = unix:/a", OF_APPLICATIONS },
		{ "[defaults]\nhandler = tcp:a:1\n[route /a]",
		    OF_APPLICATIONS },
		{ "[route /a]\nhandler = unix:/a\nambiguous = 504", "504",
		    APP_RELEASE },
		{ "[route /a]\nrelease =\nhandler = unix:/a", APP_AMBIGUOUS,
		    "" },
		{ "[route /a]\nhandler = unix:/a\n[defaults]\nrelease = 409",
		    APP_AMBIGUOUS, "409" },
		{ "[defaults]\nhandler = unix:/a\n[route /a]\nhandler = /a",
		    OF_PROGRAMS },
		{ "[route /a]\nhandler = /a\nprotocol = fastcgi", OF_PROGRAMS },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		load(rows[i].text);
		statuses_are(&conf->routes[0].ambiguous, rows[i].ambiguous);
		statuses_are(&conf->routes[0].release, rows[i].release);
	}
}

/* A line of 0: it is no error. */
TEST(processes_that_stay_need_a_program)
{
	static const struct {
		const char *text;
		unsigned line;
	} rows[] = {
		{ "[route /a]\nprotocol = fastcgi", 2 },
		{ "[defaults]\n\nprotocol = fastcgi", 3 },
		{ "[defaults]\nprotocol = fastcgi\n[route /a]\nkey = ignore",
		    2 },
		{ "[route /a]\nhandler = /a\n[route /b]\nprotocol = fastcgi",
		    4 },
		{ "[defaults]\nprotocol = fastcgi\n[route /a]\nhandler = /a",
		    0 },
		{ "[defaults]\nhandler = /a\n[route /a]\nprotocol = fastcgi",
		    0 },
		{ "[defaults]\nprotocol = fastcgi\n[route /a]\nprotocol = cgi",
		    0 },
	};
	char expected[256];

	for (size_t i = 0; i < COUNT(rows); i++) {
		load(rows[i].text);
		if (rows[i].line == 0) {
			assert_true(conf_check(conf, &err));
			continue;
		}
		(void)snprintf(expected, sizeof(expected),
		    "f:%u: protocol = fastcgi needs a handler: the program "
		    "whose processes stay",
		    rows[i].line);
		check_fails(expected);
	}
}

/* A route, and all that a process has from its start, keep processes apart. */
TEST(programs_are_the_same_by_all_that_their_processes_have)
{
#define ROUTE "[route /a]\nhandler = /a b\n"
	static const struct {
		const char *text;
		bool same;
	} rows[] = {
		{ ROUTE "key = required", true },
		{ "[route /a]\nhandler = /a c", false },
		{ "[route /b]\nhandler = /a b", false },
		{ ROUTE "timeout = 1s", false },
		{ ROUTE "kill_after = 1s", false },
		{ ROUTE "max_output = 1", false },
		{ ROUTE "directory = /", false },
		{ ROUTE "umask = 7", false },
		{ ROUTE "no_new_privs = yes", false },
		{ ROUTE "user = a", false },
		{ ROUTE "group = a", false },
		{ ROUTE "environment = A", false },
		{ ROUTE "protocol = fastcgi", false },
		{ ROUTE "processes = 1", false },
		{ ROUTE "max_requests = 1", false },
		{ ROUTE "on_crash = resume", false },
	};
	struct conf *other;

	load(ROUTE);
	for (size_t i = 0; i < COUNT(rows); i++) {
		other = conf_from(rows[i].text);
		if (conf_program_same(&conf->routes[0].handler,
			&other->routes[0].handler) != rows[i].same)
			fail_msg("%s", rows[i].text);
		conf_unref(other);
	}
}

TEST(status_outside_of_100_to_599_is_in_no_set)
{
	load("[defaults]\nrelease = 1xx 2xx 3xx 4xx 5xx");
	assert_true(conf_status_in(&conf->defaults.release, 100));
	assert_true(conf_status_in(&conf->defaults.release, 599));
	assert_false(conf_status_in(&conf->defaults.release, 99));
	assert_false(conf_status_in(&conf->defaults.release, 600));
	assert_false(conf_status_in(&conf->defaults.release, 0));
	assert_false(conf_status_in(&conf->defaults.release, -1));
}

TEST(key_from_has_sources_in_their_order)
{
	const struct conf_key_from *from;

	load("[route /a]\nkey_from = header:X-A, "
	     "query:b%2Bc%2c%20d+form:100%25%41 "
	     "json:/a~1b/0 cookie:sid\n");
	from = &conf->routes[0].key_from;
	assert_int_equal(from->n, 4);
	assert_int_equal(from->item[0].n, 1);
	assert_int_equal(from->item[0].part[0].kind, CONF_FROM_HEADER);
	assert_string_equal(from->item[0].part[0].name, "X-A");
	assert_string_equal(from->item[0].part[0].variable, "HTTP_X_A");
	assert_int_equal(from->item[1].n, 2);
	assert_int_equal(from->item[1].part[0].kind, CONF_FROM_QUERY);
	assert_string_equal(from->item[1].part[0].name, "b+c, d");
	assert_int_equal(from->item[1].part[1].kind, CONF_FROM_FORM);
	assert_string_equal(from->item[1].part[1].name, "100%%41");
	assert_string_equal(
	    from->item[1].text, "query:b%2Bc%2c%20d+form:100%25%41");
	assert_int_equal(from->item[2].part[0].kind, CONF_FROM_JSON);
	assert_string_equal(from->item[2].part[0].name, "/a~1b/0");
	assert_int_equal(from->item[3].part[0].kind, CONF_FROM_COOKIE);
	assert_string_equal(from->item[3].part[0].name, "sid");
	assert_true(conf->routes[0].handler.form_key);
	assert_false(conf->defaults.handler.form_key);
}

static const struct conf_route *
route_of(const char *path)
{
	for (size_t i = 0; i < conf->nroutes; i++)
		if (strcmp(conf->routes[i].path, path) == 0)
			return &conf->routes[i];
	fail_msg("no route %s", path);
	return NULL;
}

TEST(route_wins_over_preset_and_preset_over_defaults)
{
	const struct conf_route *form, *hook, *other;

	load("[defaults]\nconcurrent = accept\nreplay_drop = X-D\n"
	     "key = required\n"
	     "[server]\nstatus_path = /s\n"
	     "[route /form]\nreplay_drop = X-R\npreset = form\n"
	     "[route /hook]\npreset = webhook\nkey_from = json:/id\n"
	     "release = 503\n"
	     "[route /other]\n");
	form = route_of("/form");
	sources_are(&form->key_from,
	    "header:Idempotency-Key|form:once_key|query:once_key");
	assert_int_equal(form->concurrent, CONF_CONCURRENT_WAIT);
	list_is(&form->replay_drop, "X-R");
	assert_int_equal(form->key, CONF_KEY_REQUIRED);

	hook = route_of("/hook");
	sources_are(&hook->key_from, "json:/id");
	list_is(&hook->methods, "POST");
	assert_int_equal(hook->key, CONF_KEY_REQUIRED);
	statuses_are(&hook->release, "503");
	assert_int_equal(hook->fingerprint, CONF_FINGERPRINT_NONE);
	assert_int_equal(hook->concurrent, CONF_CONCURRENT_ACCEPT);

	other = route_of("/other");
	assert_int_equal(other->preset, 1U << CONF_PRESET_NONE);
	list_is(&other->replay_drop, "X-D");

	load("[route /hook]\npreset = webhook\n"
	     "[defaults]\nkey_from = header:X-Id\n");
	sources_are(&conf->routes[0].key_from, "header:X-Id");
	statuses_are(
	    &conf->routes[0].release, "400-401 403 407-408 425 429 500-599");

	load("[defaults]\npreset = form\n[route /a]\nkey = ignore\n");
	assert_int_equal(conf->routes[0].concurrent, CONF_CONCURRENT_WAIT);
	list_is(&conf->routes[0].replay_drop, "Date");
}

TEST(presets_of_a_route_and_of_the_defaults)
{
	const struct conf_route *form, *hook, *cgi, *none;

	load("[defaults]\npreset = php-fpm\nhandler = unix:/f\n"
	     "environment = LANG=C\n"
	     "[route /hook1]\npreset = webhook php-fpm\nkey_from = json:/id\n"
	     "outcome = status\n"
	     "[route /form2]\nenvironment = TZ\n"
	     "[route /cgi]\npreset = php-cgi\n"
	     "[route /no]\npreset = none\n");
	none = route_of("/no");
	assert_int_equal(none->outcome, CONF_OUTCOME_STATUS);
	assert_false(none->handler.php_prepend);
	statuses_are(&none->ambiguous, "500-502 504-599");

	form = route_of("/form2");
	assert_int_equal(form->outcome, CONF_OUTCOME_EXPLICIT);
	assert_true(form->handler.php_prepend);
	statuses_are(&form->ambiguous, "502 504");
	list_is(&form->handler.environment, "TZ");

	hook = route_of("/hook1");
	assert_int_equal(hook->outcome, CONF_OUTCOME_STATUS);
	assert_true(hook->handler.php_prepend);
	assert_int_equal(hook->on_crash, CONF_CRASH_UNKNOWN);
	assert_int_equal(hook->exit_status, CONF_EXIT_RELEASE);
	statuses_are(&hook->ambiguous, "");

	cgi = route_of("/cgi");
	list_is(&cgi->handler.argv, "/usr/bin/php-cgi");
	list_is(&cgi->handler.environment, "LANG=C");
	assert_true(cgi->handler.php_cgi);
	assert_true(cgi->reconcile.php_cgi);
	assert_false(hook->handler.php_cgi);
	assert_int_equal(cgi->outcome, CONF_OUTCOME_STATUS);
	assert_false(cgi->handler.php_prepend);
	statuses_are(&cgi->ambiguous, "502 504");

	load("[route /a]\npreset = php-cgi\n"
	     "environment = REDIRECT_STATUS=302\n"
	     "handler = /opt/php\n");
	list_is(&conf->routes[0].handler.environment, "REDIRECT_STATUS=302");
	list_is(&conf->routes[0].handler.argv, "/opt/php");

	load("[route /a]\npreset = webhook\nkey_from = query:a\n"
	     "handler = /bin/a\n"
	     "[route /b]\npreset = webhook\nkey_from = query:a\n"
	     "handler = tcp:a:1\n"
	     "[route /c]\nexit_status = ignore\n"
	     "preset = php-cgi webhook\nkey_from = query:a\n");
	assert_int_equal(conf->routes[0].on_crash, CONF_CRASH_RESUME);
	assert_int_equal(conf->routes[1].on_crash, CONF_CRASH_UNKNOWN);
	statuses_are(
	    &conf->routes[1].release, "400-401 403 407-408 425 429 500-599");
	assert_int_equal(conf->routes[2].exit_status, CONF_EXIT_IGNORE);
}

TEST(php_fpm_needs_an_address)
{
	load("[route /a]\npreset = php-fpm\n");
	check_fails(
	    "f:2: preset = php-fpm needs a handler: the address of php-fpm, "
	    "such as unix:/run/php/php8.2-fpm.sock");
}

TEST(command_line_overrides_the_file)
{
	char program[] = "/bin/b", arg[] = "x y";
	char *argv[] = { program, arg, NULL };

	load("[server]\nsocket = tcp:h:1\nworkers = 2\n"
	     "allow_peers = root\n[route /a]\n"
	     "handler = /bin/a\n");
	assert_false(conf_check(conf, &err));
	assert_true(conf_set(conf, "socket", "/s", &err));
	assert_string_equal(conf->socket, "unix:/s");
	assert_int_equal(conf_line_of_server(conf, "socket"), 0);
	assert_true(conf_check(conf, &err));
	assert_true(conf_set(conf, "workers", "4", &err));
	assert_int_equal(conf->workers, 4);
	assert_true(conf_set(conf, "database", "/d", &err));
	assert_string_equal(conf->database, "/d");
	assert_true(conf_set_handler(conf, argv, &err));
	program[0] = 'x';
	list_is(&conf->routes[0].handler.argv, "/bin/b|x y");
	list_is(&conf->defaults.handler.argv, "/bin/b|x y");
}

TEST(command_line_errors_name_the_option)
{
	static const struct {
		const char *option, *value, *message;
	} rows[] = {
		{ "workers", "0",
		    "workers: \"0\" is out of range (1 to 1024)" },
		{ "workers", "", "workers: " EMPTY },
		{ "socket", "x", "socket: \"x\"" SOCKETS },
		{ "database", "", "database: " EMPTY },
		{ "database", "a\nb", "database: byte 0x0a is not allowed" },
		{ "timeout", "1s", "timeout: unknown option" },
	};
	char *none[] = { NULL };
	char program[] = "./pay";
	char *relative[] = { program, NULL };

	load_default();
	for (size_t i = 0; i < COUNT(rows); i++)
		not_set(rows[i].option, rows[i].value, rows[i].message);
	assert_false(conf_set_handler(conf, none, &err));
	assert_string_equal(err.text, "handler: " EMPTY);
	assert_false(conf_set_handler(conf, relative, &err));
	assert_string_equal(
	    err.text, "handler: the program \"./pay\" is not an absolute path");
	builtin(conf);
}

TEST(list_above_the_limit_is_refused)
{
	char value[8192];

	load_default();
	for (size_t i = 0; i < 257 * 2; i += 2)
		memcpy(value + i, "a,", 3);
	not_set("allow_peers", value, "allow_peers: more than 256 items");
	value[256 * 2] = '\0';
	assert_true(conf_set(conf, "allow_peers", value, &err));
	assert_int_equal(conf->allow_peers.n, 256);
	memset(value, 'a', sizeof(value));
	value[4097] = '\0';
	not_set("allow_peers", value, "allow_peers: longer than 4096 bytes");
	value[4096] = '\0';
	assert_true(conf_set(conf, "allow_peers", value, &err));
}

TEST(paths_of_our_own_may_be_neighbours)
{
	load("[server]\nadmin_path = /once/admin\n"
	     "status_path = /once/adm\n"
	     "[route /a]\nasync = prefer\n");
	assert_string_equal(conf->status_path, "/once/adm");
	assert_int_equal(conf->routes[0].async, CONF_ASYNC_PREFER);
}

TEST(allow_peers_with_a_tcp_socket_is_refused)
{
	load("[server]\nallow_peers = root\nsocket = tcp:h:1\n");
	check_fails(
	    "f:2: allow_peers: needs a unix socket: a tcp peer has no user");
	assert_true(conf_set(conf, "allow_peers", "root", &err));
	check_fails("allow_peers: needs a unix socket: a tcp peer has no user");
	assert_true(conf_set(conf, "allow_peers", "", &err));
	assert_true(conf_check(conf, &err));
}

TEST(long_texts_are_cut_not_overrun)
{
	char name[4096], value[4096];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	memset(value, '9', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	assert_null(conf_parse(name, "[server]\nx", 10, &err));
	assert_memory_equal(err.text + 160, ":2: expected", 12);
	load_default();
	assert_false(conf_set(conf, "workers", value, &err));
	assert_memory_equal(
	    err.text + 10 + 200, "\" is out of range (1 to 1024)", 30);
}

TEST(any_route_that_shares_the_database_shares_it)
{
	static const struct {
		const char *text;
		bool shares;
	} rows[] = {
		{ "", false },
		{ "[route /a]\nshare_database = no\n", false },
		{ "[server]\ndatabase = postgresql:///a\n"
		  "[route /a]\nhandler = unix:/a\nshare_database = yes\n",
		    true },
		{ "[route /a]\n[route /b]\nshare_database = yes\n", true },
		{ "[defaults]\nshare_database = yes\n", true },
		{ "[defaults]\nshare_database = yes\n[route /]\nshare_database "
		  "= no\n",
		    true },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		load(rows[i].text);
		assert_int_equal(conf_shares_database(conf), rows[i].shares);
	}
}

TEST(last_reference_frees)
{
	load("[route /a]\nhandler = /a b c\n");
	assert_ptr_equal(conf_ref(conf), conf);
	conf_unref(conf);
	assert_string_equal(conf->routes[0].handler.argv.item[2], "c");
	conf_unref(NULL);
}
