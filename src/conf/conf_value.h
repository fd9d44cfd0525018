/*
 * Configuration values: text -> C.  Each parser takes the text of one value,
 * without blanks around it.  It either sets *out and returns true, or leaves
 * *out unchanged and returns false with a sentence in why.  The sentence names
 * neither option nor line; the caller knows them and puts them in front.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf.h"
#include "limit.h"

/* Memory that is freed all at once.  A zeroed struct is an empty arena. */
struct conf_arena {
	struct conf_chunk *newest;
};

/* Returns n zeroed bytes that live as long as the arena; NULL: no memory. */
void *conf_value_alloc(struct conf_arena *arena, size_t n);

/* Returns a copy of n bytes, and a NUL, in the arena; NULL: no memory. */
char *conf_value_copy(struct conf_arena *arena, const char *s, size_t n);

void conf_value_free(struct conf_arena *arena);

#define CONF_VALUE_EMPTY \
	"the value is empty: write one, or leave the option out"

/* Sets why, cut to its size, and returns false. */
bool conf_value_fail(struct conf_error *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, for "no memory". */
bool conf_value_no_memory(struct conf_error *why);

/* Sets of characters. */
#define CONF_DIGITS  "0123456789"
#define CONF_UPPER   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define CONF_LOWER   "abcdefghijklmnopqrstuvwxyz"
#define CONF_LETTERS CONF_UPPER CONF_LOWER
#define CONF_WORD    CONF_LETTERS CONF_DIGITS "_"
/* tchar: RFC 9110, section 5.6.2. */
#define CONF_TOKEN CONF_LETTERS CONF_DIGITS "!#$%&'*+-.^_`|~"

/* Whether a text is not empty and consists of these bytes only. */
bool conf_value_made_of(const char *s, const char *bytes);

/*
 * Copies the next item of a list, in which blanks or commas separate the
 * items, and moves *text behind it.  False at the end.  No item is longer than
 * LIMIT_CONF_LINE.
 */
bool conf_value_item(const char **text, char out[LIMIT_CONF_LINE + 1]);

/* A decimal number. */
bool conf_value_number(const char *text, int64_t min, int64_t max,
    unsigned *out, struct conf_error *why);

/* A file mode: octal digits, with or without a leading 0; at most 0777. */
bool conf_value_octal(const char *text, unsigned *out, struct conf_error *why);

/* A duration: 250ms, 30s, 5m, 24h, 7d, or 0; in milliseconds. */
bool conf_value_duration(const char *text, int64_t min, int64_t max,
    int64_t *out, struct conf_error *why);

/* A size: 4096, 64K, 16M, 1G; in bytes. */
bool conf_value_size(const char *text, int64_t min, int64_t max, uint64_t *out,
    struct conf_error *why);

/* Several of words, separated by blanks or commas; *out has a bit for each
 * index.  The first word stands alone. */
bool conf_value_words(const char *text, const char *const *words, unsigned *out,
    struct conf_error *why);

/* yes or no. */
bool conf_value_switch(const char *text, bool *out, struct conf_error *why);

/* One of words, a NULL-terminated list; *out is its index. */
bool conf_value_word(const char *text, const char *const *words, unsigned *out,
    struct conf_error *why);

/* Statuses, ranges and classes of them: 425 505-599 5xx.  May be empty. */
bool conf_value_statuses(
    const char *text, struct conf_statuses *out, struct conf_error *why);

/* Whether the text is a JSON Pointer, RFC 6901, section 3, to a value inside a
 * text.  The empty pointer, which names the whole text, is not. */
bool conf_value_is_pointer(const char *s);

/* --- one item of a list, a single name, or a place where a key can be - */

enum conf_item {
	CONF_ITEM_METHOD,      /* token, RFC 9110, section 5.6.2; the one
				    word CONF_UNSAFE */
	CONF_ITEM_FIELD,       /* token: the name of a field */
	CONF_ITEM_SCOPE,       /* CGI variable, or cookie:NAME; the one word
				    none: no item */
	CONF_ITEM_ENVIRONMENT, /* NAME, to be handed on, or NAME=value */
	CONF_ITEM_POINTER,     /* JSON Pointer, RFC 6901 */
	CONF_ITEM_PEER,        /* user name or id */
	CONF_ITEM_USER,        /* REMOTE_USER: any name */
	CONF_ITEM_COOKIE,      /* the name of a cookie */
	/* of one text */
	CONF_ITEM_ACCOUNT,   /* user or group, name or id */
	CONF_ITEM_TOPIC,     /* the name of an effect: a token */
	CONF_ITEM_URI,       /* absolute-URI, RFC 3986, section 4.3 */
	CONF_ITEM_DATABASE,  /* a file name; or postgresql:// or postgres:// */
	CONF_ITEM_DIRECTORY, /* absolute */
	CONF_ITEM_LOG,       /* stderr, syslog, or an absolute path */
	CONF_ITEM_SOCKET,    /* unix:/path /path tcp:host:port fd:N */
	CONF_ITEM_PATH       /* of requests, except "/": all paths */
};

/* False with a sentence in why, which says what to write instead where that is
 * known.  Not of a socket and a path. */
bool
conf_item_check(const char *s, enum conf_item kind, struct conf_error *why);

/*
 * Reads alternatives separated by blanks or commas.  Each is header:NAME,
 * query:NAME, form:NAME, json:/pointer or cookie:NAME, or two of them joined
 * by '+'.  Within a name a blank is written as %20, a comma as %2C, a plus as
 * %2B, and a percent sign as itself or %25.
 */
bool conf_item_sources(const char *text, struct conf_arena *arena,
    struct conf_key_from *out, struct conf_error *why);

/* Reads one alternative. */
bool conf_item_source(const char *text, struct conf_arena *arena,
    struct conf_alternative *out, struct conf_error *why);

/* --- values that stay text: names, paths, addresses, and lists of them  */

/* Reads items separated by blanks or commas.  empty: no item at all is
 * allowed. */
bool conf_text_list(const char *text, enum conf_item kind, bool empty,
    struct conf_arena *arena, struct conf_list *out, struct conf_error *why);

/*
 * Reads a program and its arguments.  Quotes and backslashes are as in sh(1),
 * but nothing is expanded.  The program must be an absolute path.
 */
bool conf_text_argv(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* The same for a handler, which may also be an address: "unix:/path" or
 * "tcp:host:port", as the only word. */
bool conf_text_handler(const char *text, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* The same from words that are already split. */
bool conf_text_words(char *const *argv, struct conf_arena *arena,
    struct conf_list *out, struct conf_error *why);

/* Whether the database is a URI of PostgreSQL, which may have a password. */
bool conf_text_is_postgresql(const char *database);

/* Whether a URI or conninfo string of PostgreSQL may be meant, which oncewrap
 * does not take for one: a name that is no path and has a "=".  It may have a
 * password, and must not be shown. */
bool conf_text_is_nearly_postgresql(const char *database);

/* Reads one text of that kind.  A socket's /path gains unix:, and a path is
 * read by conf_text_path(). */
bool conf_text_single(const char *text, enum conf_item kind,
    struct conf_arena *arena, const char **out, struct conf_error *why);

/*
 * Reads the path of a route, in the form of cginame_path(), without a slash at
 * its end.  Percent-encoded paths are refused: no request's path would match
 * them.
 */
bool conf_text_path(const char *text, struct conf_arena *arena,
    const char **out, struct conf_error *why);

#endif
