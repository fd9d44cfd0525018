/*
 * Shared by the files of oncectl: the command line, and the subcommands.
 */
#ifndef ONCECTL_H
#define ONCECTL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"
#include "log.h"
#include "record.h"
#include "spool.h"
#include "store_operator.h"

/* Exit statuses. */
#define ONCECTL_DONE    0
#define ONCECTL_REFUSED 1 /* not found, refused, or failed */
#define ONCECTL_USAGE   2
#define ONCECTL_AGAIN   75 /* EX_TEMPFAIL: nothing done, may be tried again */

/*
 * Options besides -d, -f and --json:
 *	X(ID, name, what its value becomes, member of struct oncectl)
 */
/* clang-format off */
#define ONCECTL_OPTIONS(X) \
	X(STATE, "state", TEXT, state) \
	X(SCOPE, "scope", TEXT, scope) \
	X(PATH, "path", TEXT, path) \
	X(OLDER, "older", SPAN, older) \
	X(PEER, "peer", TEXT, peer) \
	X(SINCE, "since", TIME, since) \
	X(UNTIL, "until", TIME, until) \
	X(DOWNSTREAM, "downstream", TEXT, downstream) \
	X(INSTANCE, "instance", TEXT, instance) \
	X(RESPONSE, "response", FLAG, given) \
	X(OUTPUT, "output", FLAG, given) \
	X(COMPLETED, "completed", FLAG, given) \
	X(NOT_EXECUTED, "not-executed", FLAG, given) \
	X(YES, "yes", FLAG, given) \
	X(BY_SCOPE, "by-scope", FLAG, given) \
	X(GRANT, "grant", TEXT, grant) \
	X(TO, "to", TEXT, to) \
	X(DOCROOT, "docroot", DOCROOTS, docroots) \
	X(EMIT, "emit", EMITS, emits) \
	X(WAIT, "wait", SPAN, wait)
/* clang-format on */

#define ONCECTL_INDEX(id, ...) ONCECTL_##id##_INDEX,
enum { ONCECTL_OPTIONS(ONCECTL_INDEX) ONCECTL_NOPTIONS };

#define ONCECTL_BIT(id, ...) ONCECTL_##id = 1 << ONCECTL_##id##_INDEX,
enum oncectl_option { ONCECTL_OPTIONS(ONCECTL_BIT) };

/* The most --emit options of a command line. */
#define ONCECTL_EMITS 16

/* The most --docroot options of a command line. */
#define ONCECTL_DOCROOTS 16

/* The options that, besides its name, say which key is meant. */
#define ONCECTL_WHICH \
	(ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_DOWNSTREAM | ONCECTL_INSTANCE)

/* The options that choose keys; one of them is enough to act on many. */
#define ONCECTL_MANY                                                    \
	(ONCECTL_STATE | ONCECTL_SCOPE | ONCECTL_PATH | ONCECTL_OLDER | \
	    ONCECTL_PEER)

struct oncectl {
	const char *database; /* -d */
	const char *config;   /* -f */
	bool json;            /* --json */
	const char *state;    /* --state, of a key or an effect; NULL: any */
	const char *scope, *path;
	int64_t older;          /* --older (ms); 0: any */
	int64_t since, until;   /* of the wall clock (ms); 0: any */
	const char *peer;       /* --peer, NULL: any */
	const char *downstream; /* --downstream */
	const char *instance;   /* --instance */
	int64_t wait;           /* --wait (ms) */
	struct {
		const char *topic, *file;
	} emits[ONCECTL_EMITS]; /* --emit */
	size_t nemits;
	const char *docroots[ONCECTL_DOCROOTS]; /* --docroot */
	size_t ndocroots;
	const char *grant;   /* --grant; NULL: none */
	const char *to;      /* --to; NULL: none */
	unsigned given;      /* bits of enum oncectl_option */
	const char *command; /* the subcommand's name */
	char **arg;          /* its arguments */
	int nargs;
	/* while a subcommand runs */
	struct store *store;
	const struct conf *conf; /* of -f, or the defaults */
};

/* --- the subcommands ------------------------------------------------------ */

/* Subcommands; each returns an exit status. */
int oncectl_ls(struct oncectl *ctl);
int oncectl_show(struct oncectl *ctl);
int oncectl_export(struct oncectl *ctl);
int oncectl_resolve(struct oncectl *ctl);
int oncectl_forget(struct oncectl *ctl);
int oncectl_audit(struct oncectl *ctl);
int oncectl_backup(struct oncectl *ctl);
int oncectl_sweep(struct oncectl *ctl);
int oncectl_reap(struct oncectl *ctl);
int oncectl_reconcile(struct oncectl *ctl);
int oncectl_stats(struct oncectl *ctl);
int oncectl_doctor(struct oncectl *ctl);
int oncectl_metrics(struct oncectl *ctl);
int oncectl_outbox(struct oncectl *ctl);
int oncectl_init(struct oncectl *ctl);
int oncectl_copy(struct oncectl *ctl);
int oncectl_accept(struct oncectl *ctl); /* accept-loss, accept-clock */

/* Names the database: by -d, by the configuration, or by ONCE_DATABASE.  False,
 * with a message. */
bool oncectl_name_database(struct oncectl *ctl);

/* Opens it as ctl->store; false, with a message. */
bool oncectl_open_store(struct oncectl *ctl);

/* How to open ctl->database, not to be created. */
void
oncectl_store_options(const struct oncectl *ctl, struct store_options *options);

/* Fills in the filter for the options that choose keys; false, with a message:
 * there is no such state. */
bool oncectl_filter(const struct oncectl *ctl, struct store_filter *filter);

/* The subcommands for handlers: checkpoint, emit, respond; they open no
 * store. */
int oncectl_handler(struct oncectl *ctl);

/* The CGI program that hands its request to oncewrap's socket. */
int oncectl_cgi(struct oncectl *ctl);

/* Prints the effects that --since lets through, as export does. */
int oncectl_outbox_export(struct oncectl *ctl);

/* --- what subcommands share ----------------------------------------------- */

/* Prints a message as warnx(3) does; returns the exit status. */
int oncectl_refuse(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "oncectl: <database>: why" on stderr; returns ONCECTL_REFUSED. */
int oncectl_fail(const struct oncectl *ctl, enum rc rc);

/* The same for a change, which may have been made all the same.  where: the
 * command that tells. */
int
oncectl_change_failed(const struct oncectl *ctl, enum rc rc, const char *where);

/* Catches SIGINT and SIGTERM: the first one sets the result, the second one
 * kills.  never_kills: no further one does, and SIGHUP is one of them. */
const atomic_bool *oncectl_stop(bool never_kills);

/*
 * Hands the line "operator" to the daemon's log, if -f names a file and it can
 * be written; else to syslog.  Where that fails too, stderr says so once, and
 * the act stands.  rc: what came of the act; key: NULL if it is of none; more:
 * a number besides, or NULL.
 */
void oncectl_log(const struct oncectl *ctl, const char *act, enum rc rc,
    const struct store_identity *key, const struct log_value *more);

/* Input: a response, or other data.  .name is set before. */
struct oncectl_input {
	struct spool *spool; /* the first max bytes */
	uint64_t length;     /* of the whole input */
	const char *name;    /* the file's name; NULL: standard input */
};

/* Prints "oncectl: standard input: why" on stderr; returns false. */
bool oncectl_input_bad(const struct oncectl_input *in, const char *why);

/* Reads all of it, and keeps max bytes.  False: reading failed; the reason was
 * printed. */
bool oncectl_input_read(struct oncectl_input *in, uint64_t max);
void oncectl_input_free(struct oncectl_input *in);

/* --- keys ----------------------------------------------------------------- */

/* Begins an object with scope, path and key. */
struct json_write *oncectl_row_identity(const struct record *r);

/* Prints all that is known of a key, and what its program wrote to stderr last,
 * which is changed; NULL: nothing. */
void oncectl_row_show(
    const struct oncectl *ctl, const struct record *r, char *errors);

/* Begins a list of such rows, and prints one: see oncectl_print_row(). */
struct oncectl_table;
struct oncectl_table oncectl_row_table(FILE *file);
void oncectl_row_print(const struct oncectl *ctl, struct oncectl_table *table,
    const struct record *r);

/* "key K of scope S", for a terminal: see oncectl_print_keep(). */
const char *oncectl_row_name(const struct record *r);

/* Prints that the key is in its state, and why that is in the way; returns
 * ONCECTL_REFUSED. */
int oncectl_row_refuse(const struct record *r, const char *why);

/* Whether the arguments and options name one key. */
bool oncectl_row_is_named(const struct oncectl *ctl);

/*
 * Finds the one key that the arguments and options name.  Returns -1 and *row,
 * which the caller frees, or the exit status, after printing that there is no
 * such key or that there are several.
 */
int oncectl_row_find(struct oncectl *ctl, struct record *row);

/* --- printing ------------------------------------------------------------- */

/*
 * Tables for people, and one JSON object on each line for programs.  A row is
 * any struct, and one array of columns describes it for both.  When there is no
 * memory left, oncectl prints that and exits with status 1.
 */
enum oncectl_kind {
	ONCECTL_TEXT,        /* char *; NULL is null */
	ONCECTL_ARRAY,       /* char[]; "" is null */
	ONCECTL_INT,         /* int */
	ONCECTL_INT_OR_NULL, /* int; 0 is null */
	ONCECTL_NUMBER,      /* int64_t */
	ONCECTL_TIME,        /* int64_t, wall clock (ms); 0 is null */
	ONCECTL_BOOL,        /* bool; JSON only */
	ONCECTL_KEY_STATE,   /* enum record_state */
	ONCECTL_EFFECT_STATE /* enum effect_state */
};

struct oncectl_column {
	const char *member; /* the name in JSON and in lines */
	const char *title;  /* the title in tables; NULL: not in tables */
	unsigned position;  /* in tables, from the left: 1, 2, ...; 0: none */
	int width;          /* in tables, at least */
	size_t offset;      /* in the row's struct */
	enum oncectl_kind kind;
};

/* Keeps an allocated text until some more are kept: 8 can be in use.  NULL:
 * there is no memory. */
const char *oncectl_print_keep(char *text);

/* Makes text for a terminal, and keeps it: each byte that is not printable in
 * the locale becomes \xNN, and a backslash becomes two. */
const char *oncectl_print_escaped(const char *s);

/* The same for n bytes.  lines: ends of lines and tabulators stay. */
const char *oncectl_print_escaped_text(const char *s, size_t n, bool lines);

/* Formats a time of the wall clock (ms) as RFC 3339 to the second; "-" for
 * 0. */
#define ONCECTL_PRINT_TIME 32
const char *oncectl_print_time(int64_t wall, char out[ONCECTL_PRINT_TIME]);

/* Prints one row as lines "member: value" on stdout; "-" is null. */
void oncectl_print_lines(
    const struct oncectl_column *columns, size_t n, const void *row);

/* A list of rows: as objects for programs, or in columns for people.  An empty
 * text is printed as "-".  A list without rows prints nothing. */
struct oncectl_table {
	FILE *file; /* NULL: objects */
	const struct oncectl_column *columns;
	size_t n;
	bool begun; /* the titles are printed */
};
void oncectl_print_row(struct oncectl_table *t, const void *row);

/* Begins an object, one at a time; oncectl_print_json() prints it on a line of
 * stdout.  json_write_*() and oncectl_print_members() add to it. */
struct json_write *oncectl_print_object(void);
void oncectl_print_members(struct json_write *o,
    const struct oncectl_column *columns, size_t n, const void *row);
void oncectl_print_json(struct json_write *o);

#endif
