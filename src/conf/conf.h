/*
 * Configuration: text -> struct conf, by one table of options.
 *
 * A struct conf never changes once it is made.  A request keeps the one that
 * it began with, by a reference count.  All data that it points to is freed
 * with it.  Durations are in milliseconds, sizes in bytes.
 */
#ifndef CONF_H
#define CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rc.h"
#include "words.h"

/* The line at which an option was set; 0: it was not set, and the default
 * holds. */
typedef unsigned conf_line;

/* The line at which each option of a section was set, by its index in the
 * table.  No section has as many options as that. */
#define CONF_OPTION_MAX 64
struct conf_origin {
	conf_line line[CONF_OPTION_MAX];
};

struct conf_list {
	char **item; /* n strings, then NULL */
	size_t n;
};

struct conf_statuses { /* a set of the statuses 100-599 */
	uint64_t bits[10];
};

/* Of methods: all but GET, HEAD, OPTIONS and TRACE. */
#define CONF_UNSAFE "unsafe"

/* Values that are words in a file: see words.h. */
/* clang-format off */
#define CONF_KEYS(X) \
	X(CONF_KEY_OPTIONAL, "optional") \
	X(CONF_KEY_REQUIRED, "required") \
	X(CONF_KEY_IGNORE, "ignore")
#define CONF_SYNTAXES(X) \
	X(CONF_SYNTAX_ANY, "any") \
	X(CONF_SYNTAX_STRING, "string")
#define CONF_FINGERPRINTS(X) \
	X(CONF_FINGERPRINT_VALUE, "value") \
	X(CONF_FINGERPRINT_EXACT, "exact") \
	X(CONF_FINGERPRINT_NONE, "none")
#define CONF_PROTOCOLS(X) \
	X(CONF_PROTOCOL_CGI, "cgi") \
	X(CONF_PROTOCOL_FASTCGI, "fastcgi")
#define CONF_OUTCOMES(X) \
	X(CONF_OUTCOME_STATUS, "status") \
	X(CONF_OUTCOME_EXPLICIT, "explicit")
#define CONF_PRESETS(X) \
	X(CONF_PRESET_NONE, "none") \
	X(CONF_PRESET_FORM, "form") \
	X(CONF_PRESET_WEBHOOK, "webhook") \
	X(CONF_PRESET_PHP_CGI, "php-cgi") \
	X(CONF_PRESET_PHP_FPM, "php-fpm")
#define CONF_CONCURRENTS(X) \
	X(CONF_CONCURRENT_REJECT, "reject") \
	X(CONF_CONCURRENT_WAIT, "wait") \
	X(CONF_CONCURRENT_ACCEPT, "accept")
#define CONF_ASYNCS(X) \
	X(CONF_ASYNC_NEVER, "never") \
	X(CONF_ASYNC_PREFER, "prefer") \
	X(CONF_ASYNC_ALWAYS, "always")
#define CONF_EXITS(X) \
	X(CONF_EXIT_CHECK, "check") \
	X(CONF_EXIT_RELEASE, "release") \
	X(CONF_EXIT_IGNORE, "ignore")
#define CONF_CRASHES(X) \
	X(CONF_CRASH_UNKNOWN, "unknown") \
	X(CONF_CRASH_RESUME, "resume")
#define CONF_EXPIREDS(X) \
	X(CONF_EXPIRED_RUN, "run") \
	X(CONF_EXPIRED_GONE, "gone")
#define CONF_DIALECTS(X) \
	X(CONF_DIALECT_IETF, "ietf") \
	X(CONF_DIALECT_STRIPE, "stripe")
#define CONF_DURABILITIES(X) \
	X(CONF_DURABILITY_FULL, "full") \
	X(CONF_DURABILITY_NORMAL, "normal")
#define CONF_SOURCES(X) \
	X(CONF_FROM_HEADER, "header") \
	X(CONF_FROM_QUERY, "query") \
	X(CONF_FROM_FORM, "form") \
	X(CONF_FROM_JSON, "json") \
	X(CONF_FROM_COOKIE, "cookie")
/* clang-format on */

enum conf_key { CONF_KEYS(WORDS_ENUMERATOR) };
enum conf_key_syntax { CONF_SYNTAXES(WORDS_ENUMERATOR) };
enum conf_fingerprint { CONF_FINGERPRINTS(WORDS_ENUMERATOR) };
enum conf_protocol { CONF_PROTOCOLS(WORDS_ENUMERATOR) };
enum conf_outcome { CONF_OUTCOMES(WORDS_ENUMERATOR) };
enum conf_preset { CONF_PRESETS(WORDS_ENUMERATOR) };
enum conf_concurrent { CONF_CONCURRENTS(WORDS_ENUMERATOR) };
enum conf_async { CONF_ASYNCS(WORDS_ENUMERATOR) };
enum conf_exit_status { CONF_EXITS(WORDS_ENUMERATOR) };
enum conf_on_crash { CONF_CRASHES(WORDS_ENUMERATOR) };
enum conf_on_expired { CONF_EXPIREDS(WORDS_ENUMERATOR) };
enum conf_dialect { CONF_DIALECTS(WORDS_ENUMERATOR) };
enum conf_durability { CONF_DURABILITIES(WORDS_ENUMERATOR) };
enum conf_source_kind { CONF_SOURCES(WORDS_ENUMERATOR) };

/* A program: what it is, where and as which user it runs, and for how long. */
struct conf_program {
	struct conf_list argv;
	int64_t timeout, kill_after;
	uint64_t max_output;
	const char *directory; /* NULL: the program's own folder */
	int umask;             /* -1: inherited */
	bool no_new_privs;
	const char *user, *group; /* NULL: inherited */
	/* NAME: the daemon's variable is handed on; NAME=value: set so */
	struct conf_list environment;
	/* handlers only, see workers.h; a reconciler or an effect is CGI */
	enum conf_protocol protocol;
	unsigned processes;
	unsigned max_requests; /* 0: any number */
	/* derived: */
	bool form_key;     /* it gets ONCE_FORM_KEY */
	bool php_cgi;      /* it gets REDIRECT_STATUS */
	bool php_prepend;  /* an application gets PHP_VALUE: see handler.c */
	const char *route; /* the path of its route */
	bool tracked;      /* all processes of a lost attempt must be found */
};

struct conf_source { /* a place where a key can be */
	enum conf_source_kind kind;
	const char *name;     /* of the field, parameter or cookie; a JSON
				 Pointer */
	const char *variable; /* CONF_FROM_HEADER: its CGI variable */
};

struct conf_alternative { /* one source, or two that make a key together */
	struct conf_source part[2];
	unsigned n;
	const char *text; /* as in the file */
};

struct conf_key_from { /* the first alternative that is there counts */
	const struct conf_alternative *item;
	size_t n;
};

struct conf_route {
	const char *path; /* "/payments"; "" for the defaults */
	conf_line line;   /* the line of its section */
	struct conf_origin origin;
	struct metrics_route *metrics; /* set by settings_load(); NULL: none */
	/* Two programs that differ in argv and protocol.  No handler:
	 * SCRIPT_FILENAME names it; no reconcile: no program is asked. */
	struct conf_program handler, reconcile;
	unsigned preset; /* a set of them: conf_has_preset() */
	/* CONF_UNSAFE alone: all unsafe methods. */
	struct conf_list methods;
	struct conf_key_from key_from;
	enum conf_key key;
	enum conf_key_syntax key_syntax;
	unsigned key_min_length, key_max_length;
	struct conf_list scope; /* CGI variables, and cookie:NAME; empty: one
				   scope */
	bool scope_required;
	enum conf_fingerprint fingerprint;
	struct conf_list fingerprint_headers; /* field names */
	struct conf_list fingerprint_ignore;  /* JSON Pointers, RFC 6901 */
	uint64_t max_request_body, max_response;
	struct conf_list replay_drop; /* field names */
	enum conf_concurrent concurrent;
	int64_t wait_time;
	enum conf_outcome outcome;
	struct conf_statuses release, ambiguous;
	enum conf_exit_status exit_status;
	enum conf_on_crash on_crash;
	int64_t retention;
	enum conf_on_expired on_expired;
	int64_t expired_retention;
	int64_t reconcile_after;
	unsigned reconcile_attempts;
	enum conf_async async;
	bool share_database;
	unsigned max_active_keys, max_open_keys, key_rate; /* 0: any number */
	int64_t max_request_age;                           /* 0: any age */
	const char *request_timestamp;                     /* field name */
};

/* An effect: the program for the rows that handlers put into the outbox. */
struct conf_effect {
	const char *name; /* the topic */
	conf_line line;   /* the line of its section */
	struct conf_origin origin;
	struct conf_program program; /* its argv is never empty */
	int64_t backoff;
	unsigned attempts;
};

struct conf {
	const char *file; /* the file's name, for messages; may be NULL */
	struct conf_origin origin; /* conf_line_of_*() */

	/* [server] */
	const char *database; /* a file, or a URI: it may have a password */
	const char *socket;   /* NULL: inherited descriptor */
	unsigned socket_mode;
	const char *socket_user, *socket_group; /* NULL: own */
	unsigned workers;
	struct conf_list allow_peers; /* empty: anyone */
	int64_t io_timeout, drain_timeout, busy_timeout, owner_timeout;
	enum conf_durability durability;
	const char *log;       /* "stderr", "syslog", or a file */
	const char *spool_dir; /* NULL: TMPDIR or /tmp */
	uint64_t spool_total;  /* bytes of all spools together */
	uint64_t max_wal;
	const char *link;
	enum conf_dialect dialect;
	const char *problem_pages;        /* a folder; NULL: none */
	struct conf_program on_attention; /* no argv: none */
	int64_t attention_interval;
	const char *admin_path;       /* NULL: none */
	struct conf_list admin_users; /* may act on the page there */
	const char *status_path;      /* NULL: none */
	unsigned async_workers, async_queue, reconcile_workers;
	uint64_t max_kept;  /* bytes; 0: any number */
	uint64_t max_store; /* bytes; 0: any number */
	int64_t sweep_interval, reap_interval;

	/* [defaults], and [route PATH] with the defaults filled in, longest
	 * path first */
	struct conf_route defaults;
	struct conf_route *routes;
	size_t nroutes;

	/* [effect NAME], in the order of the file */
	struct conf_effect *effects;
	size_t neffects;
};

/* Room for one message "file:line: text" or "option -x: text". */
struct conf_error {
	char text[512];
};

/*
 * Parses a whole file.  name is only for messages.  NULL on error, with the
 * first error as "name:line: message" in err.  The caller drops the reference
 * with conf_unref().
 */
struct conf *conf_parse(
    const char *name, const char *text, size_t len, struct conf_error *err);

/* Reads and parses the file; NULL with "file: why" or "file:line: why" in
 * err. */
struct conf *conffile_load(const char *name, struct conf_error *err);

/* Makes the configuration without a file: all defaults. */
struct conf *conf_default(struct conf_error *err);

/*
 * Sets an option of the command line, before the configuration is shared.
 * conf_set() sets an option of [server]; conf_set_handler() sets the handler
 * of every route.  False with a message that names the option.
 */
bool conf_set(struct conf *conf, const char *option, const char *value,
    struct conf_error *err);
bool
conf_set_handler(struct conf *conf, char *const *argv, struct conf_error *err);

/* Checks the rules between options that the command line may set too
 * (allow_peers with tcp).  conf_parse() has checked all other rules.  Call it
 * after all options are set. */
bool conf_check(const struct conf *conf, struct conf_error *err);

/* The line at which an option was set, for a route by itself or by [defaults];
 * 0: by neither, or on the command line. */
conf_line conf_line_of_server(const struct conf *conf, const char *option);
conf_line conf_line_of_route(const struct conf *conf,
    const struct conf_route *route, const char *option);
/* The same, for a route by itself alone. */
conf_line conf_line_of_own(const struct conf_route *route, const char *option);
conf_line
conf_line_of_effect(const struct conf_effect *effect, const char *option);

/* The reference count; any thread may call these. */
struct conf *conf_ref(struct conf *conf);
void conf_unref(struct conf *conf);

/* After a reload another configuration has taken its place: what has not begun
 * must begin with that one.  Any thread may call these. */
void conf_retire(struct conf *conf);
bool conf_is_retired(const struct conf *conf);

/* Finds the effect of that name, or NULL. */
const struct conf_effect *
conf_effect_find(const struct conf *conf, const char *name);

/* The address of a FastCGI application that oncewrap does not start,
 * "unix:/path" or "tcp:host:port"; NULL: a program. */
const char *conf_program_address(const struct conf_program *program);

/* Whether two handlers are the same in every respect: route, arguments and
 * settings. */
bool
conf_program_same(const struct conf_program *a, const struct conf_program *b);

/* Whether any route lets handlers write the database. */
bool conf_shares_database(const struct conf *conf);

bool conf_has_preset(const struct conf_route *route, enum conf_preset preset);

bool conf_list_has(const struct conf_list *list, const char *item);
bool conf_status_in(const struct conf_statuses *set, int status);

#endif
