/*
 * The one table of options.
 *
 * A default is written as in a file and read by the same parser, so every
 * default can also be written into a file.  Maxima of durations fit an int of
 * milliseconds (24 days) wherever poll(2) and SQLite get them.
 *
 * This file knows no section, no file and no rule between options:
 * conf_check.c and conf_build.c check those.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "limit.h"
#include "conf_value.h"

#include "conf_option.h"

/* The page of draft-ietf-httpapi-idempotency-key-header. */
#define DRAFT                               \
	"https://datatracker.ietf.org/doc/" \
	"draft-ietf-httpapi-idempotency-key-header/"

#define SECOND INT64_C(1000)
#define DAY    (24 * 60 * 60 * SECOND)
#define KIB    INT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)

enum kind {
	KIND_NUMBER,
	KIND_MODE,
	KIND_DURATION,
	KIND_SIZE,
	KIND_SWITCH,
	KIND_WORD,
	KIND_WORDS,
	KIND_STATUSES,
	KIND_TEXT,
	KIND_LIST,
	KIND_SOURCES,
	KIND_ARGV,
	KIND_HANDLER
};

struct conf_option {
	const char *name;
	enum kind kind;
	size_t offset, size;
	const char *builtin; /* its default; NULL: what zeroed memory means */
	int64_t min, max;
	const char *const *words; /* KIND_WORD, KIND_WORDS */
	enum conf_item item;      /* KIND_TEXT, KIND_LIST */
	bool empty;               /* an empty value is allowed */
	bool at_start;            /* a reload does not change it */
};

/* The words of a list in conf.h. */
#define WORDS(list)                   \
	(const char *const[])         \
	{                             \
		list(WORDS_WORD) NULL \
	}

#define AT(type, member)                                          \
	.name = #member, .offset = offsetof(struct type, member), \
	.size = sizeof(((struct type *)NULL)->member)
#define S(member)    AT(conf, member)
#define R(member)    AT(conf_route, member)
#define E(member)    AT(conf_effect, member)
#define NUMBER(a, b) .kind = KIND_NUMBER, .min = (a), .max = (b)
#define TIME(a, b)   .kind = KIND_DURATION, .min = (a), .max = (b)
#define SIZE(a, b)   .kind = KIND_SIZE, .min = (a), .max = (b)
#define MODE         .kind = KIND_MODE
#define SWITCH       .kind = KIND_SWITCH
#define WORD(list)   .kind = KIND_WORD, .words = WORDS(list)
#define SEVERAL(l)   .kind = KIND_WORDS, .words = WORDS(l)
#define STATUSES     .kind = KIND_STATUSES, .empty = true
#define TEXT(i)      .kind = KIND_TEXT, .item = CONF_ITEM_##i
#define LIST(i)      .kind = KIND_LIST, .item = CONF_ITEM_##i
#define SOURCES      .kind = KIND_SOURCES
#define EMPTY        .empty = true
#define START        .at_start = true
#define IS(d)        .builtin = (d)

/* A member of the struct conf_program p in that type.  offsetof takes no
 * parentheses.
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define P(type, p, member)                                          \
	.name = #member, .offset = offsetof(struct type, p.member), \
	.size = sizeof(((struct type *)NULL)->p.member)

/* clang-format off */
#define ARGV(n, type, p) \
	.name = n, .offset = offsetof(struct type, p.argv), \
	.size = sizeof(struct conf_list), .kind = KIND_ARGV
#define HANDLER(n, type, p) \
	.name = n, .offset = offsetof(struct type, p.argv), \
	.size = sizeof(struct conf_list), .kind = KIND_HANDLER
/* NOLINTEND(bugprone-macro-parentheses) */
#define PROGRAM(type, p) \
	{ P(type, p, timeout), TIME(1, 7 * DAY), IS("60s") }, \
	{ P(type, p, kill_after), TIME(0, DAY), IS("5s") }, \
	{ P(type, p, max_output), SIZE(1, 1024 * GIB), IS("1G") }, \
	{ P(type, p, directory), TEXT(DIRECTORY) }, \
	{ P(type, p, umask), MODE }, \
	{ P(type, p, no_new_privs), SWITCH, IS("no") }, \
	{ P(type, p, user), TEXT(ACCOUNT) }, \
	{ P(type, p, group), TEXT(ACCOUNT) }, \
	{ P(type, p, environment), LIST(ENVIRONMENT), EMPTY, IS("") }

static const struct conf_option server_options[] = {
	{ S(database), TEXT(DATABASE), IS("oncewrap.db"), START },
	{ S(socket), TEXT(SOCKET), START },
	{ S(socket_mode), MODE, IS("0660"), START },
	{ S(socket_user), TEXT(ACCOUNT), START },
	{ S(socket_group), TEXT(ACCOUNT), START },
	{ S(workers), NUMBER(1, LIMIT_WORKERS), IS("32"), START },
	{ S(allow_peers), LIST(PEER), EMPTY },
	{ S(io_timeout), TIME(1, DAY), IS("30s") },
	{ S(drain_timeout), TIME(0, DAY), IS("30s") },
	{ S(busy_timeout), TIME(50, DAY), IS("5s"), START },
	{ S(owner_timeout), TIME(1000, DAY), IS("30s"), START },
	{ S(durability), WORD(CONF_DURABILITIES), IS("full"), START },
	{ S(log), TEXT(LOG), IS("stderr") },
	{ S(spool_dir), TEXT(DIRECTORY) },
	{ S(spool_total), SIZE(MIB, 1024 * GIB), IS("1G") },
	{ S(max_wal), SIZE(64 * KIB, 1024 * GIB), IS("64M"), START },
	{ S(link), TEXT(URI), IS(DRAFT) },
	{ S(dialect), WORD(CONF_DIALECTS), IS("ietf") },
	{ S(problem_pages), TEXT(DIRECTORY) },
	{ ARGV("on_attention", conf, on_attention) },
	{ S(attention_interval), TIME(1, DAY), IS("5m") },
	{ S(admin_path), TEXT(PATH) },
	{ S(admin_users), LIST(USER), EMPTY },
	{ S(status_path), TEXT(PATH) },
	{ S(async_workers), NUMBER(1, LIMIT_ASYNC_WORKERS), IS("4") },
	{ S(async_queue), NUMBER(1, LIMIT_ASYNC_QUEUE), IS("1000") },
	{ S(reconcile_workers), NUMBER(1, LIMIT_ASYNC_WORKERS), IS("2") },
	{ S(max_kept), SIZE(0, 1024 * GIB), IS("256M") },
	{ S(max_store), SIZE(0, 1024 * 1024 * GIB), IS("0") },
	{ S(sweep_interval), TIME(10, DAY), IS("60s") },
	{ S(reap_interval), TIME(10, DAY), IS("60s") },
};

static const struct conf_option route_options[] = {
	{ R(preset), SEVERAL(CONF_PRESETS), IS("none") },
	{ HANDLER("handler", conf_route, handler) },
	{ ARGV("reconcile", conf_route, reconcile) },
	PROGRAM(conf_route, handler),
	{ P(conf_route, handler, protocol), WORD(CONF_PROTOCOLS), IS("cgi") },
	{ P(conf_route, handler, processes), NUMBER(1, LIMIT_PROCESSES),
	    IS("4") },
	{ P(conf_route, handler, max_requests), NUMBER(0, LIMIT_KEYS),
	    IS("0") },
	{ R(methods), LIST(METHOD), IS("POST PATCH") },
	{ R(key_from), SOURCES, IS("header:Idempotency-Key") },
	{ R(key), WORD(CONF_KEYS), IS("optional") },
	{ R(key_syntax), WORD(CONF_SYNTAXES), IS("any") },
	{ R(key_min_length), NUMBER(1, LIMIT_KEY), IS("1") },
	{ R(key_max_length), NUMBER(1, LIMIT_KEY), IS("255") },
	{ R(scope), LIST(SCOPE), IS("REMOTE_USER") },
	{ R(scope_required), SWITCH, IS("no") },
	{ R(fingerprint), WORD(CONF_FINGERPRINTS), IS("value") },
	{ R(fingerprint_headers), LIST(FIELD), EMPTY, IS("") },
	{ R(fingerprint_ignore), LIST(POINTER), EMPTY, IS("") },
	{ R(max_request_body), SIZE(0, 1024 * GIB), IS("256M") },
	/* A response is one value in SQLite, which holds 10^9 bytes at
	 * most. */
	{ R(max_response), SIZE(0, 512 * MIB), IS("16M") },
	{ R(replay_drop), LIST(FIELD), EMPTY, IS("Set-Cookie Date") },
	{ R(concurrent), WORD(CONF_CONCURRENTS), IS("reject") },
	{ R(wait_time), TIME(1, DAY), IS("10s") },
	{ R(outcome), WORD(CONF_OUTCOMES), IS("status") },
	{ R(release), STATUSES, IS("401 407 408 425 429 5xx") },
	{ R(ambiguous), STATUSES, IS("502 504") },
	{ R(exit_status), WORD(CONF_EXITS), IS("check") },
	{ R(on_crash), WORD(CONF_CRASHES), IS("unknown") },
	{ R(retention), TIME(1, 3650 * DAY), IS("24h") },
	{ R(on_expired), WORD(CONF_EXPIREDS), IS("run") },
	{ R(expired_retention), TIME(1, 3650 * DAY), IS("30d") },
	{ R(reconcile_after), TIME(1, 24 * DAY), IS("30s") },
	{ R(reconcile_attempts), NUMBER(1, 1000), IS("8") },
	{ R(async), WORD(CONF_ASYNCS), IS("never") },
	{ R(share_database), SWITCH, IS("no") },
	{ R(max_active_keys), NUMBER(0, LIMIT_KEYS), IS("0") },
	{ R(max_open_keys), NUMBER(0, LIMIT_OPEN_KEYS), IS("1000") },
	{ R(key_rate), NUMBER(0, LIMIT_KEYS), IS("0") },
	{ R(max_request_age), TIME(0, 3650 * DAY), IS("0") },
	{ R(request_timestamp), TEXT(FIELD) },
};

static const struct conf_option effect_options[] = {
	{ ARGV("program", conf_effect, program) },
	PROGRAM(conf_effect, program),
	{ E(attempts), NUMBER(1, 1000), IS("8") },
	{ E(backoff), TIME(1, DAY), IS("1s") },
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(COUNT(server_options) <= CONF_OPTION_MAX, "server options");
_Static_assert(COUNT(route_options) <= CONF_OPTION_MAX, "route options");
_Static_assert(COUNT(effect_options) <= CONF_OPTION_MAX, "effect options");
/* Words are stored as the enums in conf.h, modes as int or unsigned. */
_Static_assert(sizeof(enum conf_key) == sizeof(unsigned), "enums");

static const struct conf_option *
option_table(enum conf_section section, size_t *n)
{
	switch (section) {
	case CONF_SERVER:
		*n = COUNT(server_options);
		return server_options;
	case CONF_ROUTE:
		*n = COUNT(route_options);
		return route_options;
	case CONF_EFFECT:
		*n = COUNT(effect_options);
		return effect_options;
	}
	assert(false);
	return NULL;
}

const struct conf_option *
conf_option_find(enum conf_section section, const char *name)
{
	size_t n;
	const struct conf_option *options = option_table(section, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(name, options[i].name) == 0)
			return &options[i];
	return NULL;
}

size_t
conf_option_index(const struct conf_option *option)
{
	if (option >= server_options &&
	    option < server_options + COUNT(server_options))
		return (size_t)(option - server_options);
	if (option >= effect_options &&
	    option < effect_options + COUNT(effect_options))
		return (size_t)(option - effect_options);
	return (size_t)(option - route_options);
}

conf_line
conf_option_line(const struct conf_origin *origin, enum conf_section section,
    const char *name)
{
	const struct conf_option *option = conf_option_find(section, name);

	assert(option != NULL);
	return origin->line[conf_option_index(option)];
}

static bool
is_same(const struct conf_option *option, const struct conf *a,
    const struct conf *b)
{
	const void *x = (const char *)a + option->offset;
	const void *y = (const char *)b + option->offset;
	const char *text, *other;

	if (option->kind != KIND_TEXT)
		return memcmp(x, y, option->size) == 0;
	memcpy(&text, x, sizeof(text));
	memcpy(&other, y, sizeof(other));
	return text == other ||
	    (text != NULL && other != NULL && strcmp(text, other) == 0);
}

void
conf_option_at_start(
    const struct conf *a, const struct conf *b, struct buf *names)
{
	const struct conf_option *option;

	for (size_t i = 0; i < COUNT(server_options); i++) {
		option = &server_options[i];
		if (option->at_start && !is_same(option, a, b))
			(void)buf_addf(names, "%s%s", names->len > 0 ? " " : "",
			    option->name);
	}
}

/* Parses the value into the option's member, at to. */
static bool
option_set(const struct conf_option *option, void *to, const char *value,
    struct conf_arena *arena, struct conf_error *why)
{
	switch (option->kind) {
	case KIND_NUMBER:
		return conf_value_number(
		    value, option->min, option->max, to, why);
	case KIND_MODE:
		return conf_value_octal(value, to, why);
	case KIND_DURATION:
		return conf_value_duration(
		    value, option->min, option->max, to, why);
	case KIND_SIZE:
		return conf_value_size(
		    value, option->min, option->max, to, why);
	case KIND_SWITCH:
		return conf_value_switch(value, to, why);
	case KIND_WORD:
		return conf_value_word(value, option->words, to, why);
	case KIND_WORDS:
		return conf_value_words(value, option->words, to, why);
	case KIND_STATUSES:
		return conf_value_statuses(value, to, why);
	case KIND_TEXT:
		return conf_text_single(value, option->item, arena, to, why);
	case KIND_LIST:
		return conf_text_list(
		    value, option->item, option->empty, arena, to, why);
	case KIND_SOURCES:
		return conf_item_sources(value, arena, to, why);
	case KIND_ARGV:
		return conf_text_argv(value, arena, to, why);
	case KIND_HANDLER:
		return conf_text_handler(value, arena, to, why);
	}
	assert(false);
	return false;
}

static bool
is_quoted(const char *s)
{
	const size_t n = strlen(s);

	return n > 1 && (s[0] == '"' || s[0] == '\'') && s[n - 1] == s[0];
}

bool
conf_option_set(const struct conf_option *option, void *base, const char *value,
    struct conf_arena *arena, struct conf_error *why)
{
	struct conf_error reason;
	char *at = base;

	if (*value == '\0' && !option->empty)
		return conf_value_fail(
		    why, "%s: " CONF_VALUE_EMPTY, option->name);
	/* Only the words of a program may be in quotes. */
	if (option->kind != KIND_ARGV && option->kind != KIND_HANDLER &&
	    is_quoted(value))
		return conf_value_fail(why,
		    "%s: the value is in quotes: write it without",
		    option->name);
	if (!option_set(option, at + option->offset, value, arena, &reason))
		return conf_value_fail(
		    why, "%s: %s", option->name, reason.text);
	return true;
}

bool
conf_option_defaults(enum conf_section section, void *base,
    struct conf_arena *arena, struct conf_error *why)
{
	size_t n;
	const struct conf_option *options = option_table(section, &n);

	for (size_t i = 0; i < n; i++)
		if (options[i].builtin != NULL &&
		    !conf_option_set(
			&options[i], base, options[i].builtin, arena, why))
			return false;
	if (section == CONF_ROUTE)
		((struct conf_route *)base)->handler.umask = -1;
	if (section == CONF_EFFECT)
		((struct conf_effect *)base)->program.umask = -1;
	return true;
}

void
conf_option_inherit(struct conf_route *route, const struct conf_route *from)
{
	char *to = (char *)route;
	const char *source = (const char *)from;

	for (size_t i = 0; i < COUNT(route_options); i++) {
		const struct conf_option *option = &route_options[i];

		if (route->origin.line[i] == 0)
			memcpy(to + option->offset, source + option->offset,
			    option->size);
	}
}
