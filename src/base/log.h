/*
 * The log: each event is one logfmt line, in one write(2).  Lines go to stderr
 * until log_open() names another target.
 *
 *   log_event(LOG_WARN, "handler-failed", rq->log,
 *       LOG_S("why", text), LOG_I("exit", 3));
 *
 * gives  ts=2026-02-09T07:04:38.123Z level=warn event=handler-failed
 * instance=urn:uuid:... method=POST path=/pay peer=192.0.2.7 key=k
 * scope=2bd806c9 status=502 why="..." exit=3
 *
 * Where the target has the time of each line itself, there is no ts: syslog,
 * and systemd's stream to the journal.  There each line begins with its
 * priority, as "<3>" (sd-daemon(3)).
 *
 * Values are quoted where logfmt needs it.  Control bytes are escaped.  A line
 * longer than LOG_LINE_MAX is cut.  The log never holds a body or a
 * credential.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "words.h"

/* See words.h. */
/* clang-format off */
#define LOG_LEVELS(X) \
	X(LOG_DEBUG, "debug") \
	X(LOG_INFO, "info") \
	X(LOG_WARN, "warn") \
	X(LOG_ERROR, "error")
/* clang-format on */
enum log_level { LOG_LEVELS(WORDS_ENUMERATOR) };

struct log_value {
	const char *name;
	const char *text; /* NULL: number is the value */
	int64_t number;
};

#define LOG_S(n, s) ((struct log_value){ (n), (s) != NULL ? (s) : "", 0 })
#define LOG_I(n, i) ((struct log_value){ (n), NULL, (int64_t)(i) })

/*
 * The request that an event is about.  Each of its lines has all of these, so
 * that a search for a key or an instance finds its whole life.  A part that is
 * not known, or not yet, is shown as "-", and a missing key as "", for "-" may
 * be a key.  Without an instance there is no method, peer and status.
 */
#define LOG_SCOPE_LEN 8
struct log_request {
	const char *instance; /* urn:uuid:...; NULL: of no request, but a key */
	const char *method;   /* REQUEST_METHOD; NULL: not known */
	const char *path;     /* NULL: not known */
	const char *peer;     /* REMOTE_ADDR; NULL: not known */
	const char *key;      /* NULL: none */
	char *own;            /* memory of log_request_key(), _copy() */
	char scope[LOG_SCOPE_LEN + 1]; /* see scope_tag(); "": not known */
	int status;                    /* of the answer; 0: there is none yet */
};

/* Stores a copy of the key; without memory the request has none in the log. */
void log_request_key(struct log_request *rq, const char *key);

/* Copies all that is known, for a line that is written after the request;
 * without memory, what needs none. */
void log_request_copy(struct log_request *to, const struct log_request *from);

/* Frees the copies and leaves a request of which nothing is known. */
void log_request_clear(struct log_request *rq);

/* The request may be NULL: the event is about none. */
void log_values(enum log_level level, const char *event,
    const struct log_request *rq, const struct log_value *values, size_t n);

#define log_event(level, event, request, ...)                   \
	log_values((level), (event), (request),                 \
	    (const struct log_value[]){ __VA_ARGS__ },          \
	    sizeof((const struct log_value[]){ __VA_ARGS__ }) / \
		sizeof(struct log_value))

/* Writes a line for people to stderr, without logfmt: the findings of -t.  The
 * journal gets the priority in front of it. */
void log_text(enum log_level level, const char *text);

/*
 * Sends lines to "stderr", to "syslog", or to a file, which is created with
 * mode 0640 if it is missing.  A later call opens the file anew.  One thread at
 * a time may call it.  Returns 0, or an errno value; then lines go where they
 * went before.
 */
int log_open(const char *target);

/*
 * Writes one event of level info to the log of another program, while the lines
 * of this one go where they went.  The target is one of log_open(), but for
 * "stderr".  A file must be there: it is the other program's to create.
 * Returns 0, or an errno value.
 */
int log_hand(const char *target, const char *event,
    const struct log_request *rq, const struct log_value *values, size_t n);

/* While set, errors go to stderr as well: a person that starts the program by
 * hand looks there. */
void log_echo(bool on);

/* Drops events below this level; the default is LOG_INFO. */
void log_set_level(enum log_level level);

/* --- where the lines go ----------------------------------------------- */

/* The longest line (bytes), with its newline. */
#define LOG_LINE_MAX 4096

/*
 * After this call no line waits for a reader of stderr that has stopped
 * reading: the line is dropped and counted, and a later line has the count.
 * Before the call, and in programs that do not make it, a line waits.  It is
 * called once, before there are threads.  Returns 0, or an errno value; then
 * lines still wait.
 */
int log_start(void);

/* Waits up to half a second for the last lines to leave; no line may
 * follow. */
void log_stop(void);

/*
 * Whether that file of that folder may be a log: a regular file with one name.
 * It belongs to this process's user or to root, or to any user if only root and
 * that user may write the folder: then no other has planted it there.
 */
struct stat;
bool log_may_be(const struct stat *file, const struct stat *folder);

/* --- for log.c alone -------------------------------------------------- */

/* See log_open(); create: a file that is missing is made. */
int log_write_open(const char *target, bool create);

/* Closes the file and the socket; lines go to stderr again. */
void log_write_close(void);

/*
 * Writes a line with its newline, at most LOG_LINE_MAX bytes, to the
 * target; priority: of syslog(3).  False: the line was not written, or only a
 * part of it.  The next line begins a new line in either case.
 */
bool log_write(int priority, const char *line, size_t len);

/* The same, to stderr, whatever the target is. */
bool log_write_stderr(const char *line, size_t len);

/* Whether the target is stderr, and whether stderr is the journal, which takes
 * "<3>" in front of a line as the priority. */
bool log_write_is_stderr(void);
bool log_write_is_journal(void);

/* Whether the target adds the time of each line itself. */
bool log_write_has_time(void);

#endif
