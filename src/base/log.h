/*
 * The log: one logfmt line an event, to stderr, in one write(2).
 *
 *   log_event(LOG_WARN, "handler-failed", rq->instance,
 *       LOG_S("why", text), LOG_I("exit", 3));
 *
 * gives  level=warn event=handler-failed instance=urn:uuid:... why="..." exit=3
 * Values are quoted where logfmt needs it; control bytes are escaped; a line
 * longer than LOG_LINE_MAX is cut.  Never a body, never a credential.
 */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 4096

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_value {
	const char *name;
	const char *text; /* NULL: the number */
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

/* Events below this level are dropped; LOG_INFO at first. */
void log_set_level(enum log_level);

#endif
