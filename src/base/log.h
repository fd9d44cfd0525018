/*
 * The log: each event is one logfmt line on stderr, in one write(2).  If
 * stderr is systemd's stream to the journal, each line begins with its
 * priority, as "<3>" (sd-daemon(3)).
 *
 *   log_event(LOG_WARN, "handler-failed", rq->instance,
 *       LOG_S("why", text), LOG_I("exit", 3));
 *
 * gives  level=warn event=handler-failed instance=urn:uuid:... why="..." exit=3
 *
 * Values are quoted where logfmt needs it.  Control bytes are escaped.  A line
 * longer than LOG_LINE_MAX is cut.  The log never holds a body or a
 * credential.
 */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4096

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_value {
	const char *name;
	const char *text; /* NULL: number is the value */
	int64_t number;
};

#define LOG_S(n, s) ((struct log_value){ (n), (s) != NULL ? (s) : "", 0 })
#define LOG_I(n, i) ((struct log_value){ (n), NULL, (int64_t)(i) })

/* instance may be NULL. */
void log_values(enum log_level, const char *event, const char *instance,
    const struct log_value *, size_t n);

#define log_event(level, event, instance, ...)                  \
	log_values((level), (event), (instance),                \
	    (const struct log_value[]){ __VA_ARGS__ },          \
	    sizeof((const struct log_value[]){ __VA_ARGS__ }) / \
		sizeof(struct log_value))

/* Reports an error that ends the program at its start: text for people, not
 * logfmt. */
void log_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

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

/* Drops events below this level; the default is LOG_INFO. */
void log_set_level(enum log_level);

#endif
