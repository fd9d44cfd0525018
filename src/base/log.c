/*
 * The log, one logfmt line for each event.  A line is built on the stack and
 * goes out in one write(2), so lines of several threads and processes never
 * mix.  No line takes a lock or allocates memory.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "date.h"
#include "metrics.h"
#include "utf8.h"

#include "log.h"

struct line {
	enum log_level level;
	char text[LOG_LINE_MAX];
	size_t len;
	size_t end; /* where text must end, but for LINE_TAIL */
	bool cut;
};

/* Room for the end of a cut line (bytes): three dots, a quote, a newline. */
#define LINE_TAIL 5
#define LINE_END  (LOG_LINE_MAX - LINE_TAIL)

/* Room (bytes), with the name, for what clients choose: a long value leaves
 * room for what follows it.  An address of IPv6 with a zone takes 62. */
#define METHOD_ROOM 48
#define PATH_ROOM   1400
#define PEER_ROOM   88
#define KEY_ROOM    1900

static atomic_int lowest = LOG_INFO;

static atomic_bool echo;

/* Lines that were dropped since the last report. */
static atomic_int_least64_t dropped;

static const char *const level_names[] = { LOG_LEVELS(WORDS_WORD) };

/* Appends all of s or nothing, so that an escape is never cut in two. */
static void
log_put(struct line *l, const char *s, size_t n)
{
	if (l->cut || n > l->end - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void
log_put_text(struct line *l, const char *s)
{
	log_put(l, s, strlen(s));
}

static bool
is_plain(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	if (*p == '\0')
		return false;
	for (; *p != '\0'; p++)
		if (*p <= ' ' || *p >= 0x7f || *p == '"' || *p == '=' ||
		    *p == '\\')
			return false;
	return true;
}

/* Whether a character of n bytes separates lines, or changes the order of what
 * is shown: U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. */
static bool
is_layout(const unsigned char *p, size_t n)
{
	if (n != 3 || p[0] != 0xe2)
		return false;
	if (p[1] == 0x81)
		return p[2] >= 0xa6 && p[2] <= 0xa9;
	return p[1] == 0x80 &&
	    (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae));
}

static void
put_value(struct line *l, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	char hex[8];
	size_t n;

	if (is_plain(s) && strlen(s) < l->end - l->len) {
		log_put_text(l, s);
		return;
	}
	log_put_text(l, "\"");
	while (*p != '\0' && !l->cut) {
		n = 1;
		if (*p == '"')
			log_put_text(l, "\\\"");
		else if (*p == '\\')
			log_put_text(l, "\\\\");
		else if (*p == '\n')
			log_put_text(l, "\\n");
		else if (*p == '\t')
			log_put_text(l, "\\t");
		else if (*p >= ' ' && *p < 0x7f)
			log_put(l, (const char *)p, 1);
		else if ((n = utf8_length((const char *)p)) != 0 &&
		    !is_layout(p, n))
			log_put(l, (const char *)p, n);
		else {
			snprintf(hex, sizeof(hex), "\\x%02x", *p);
			log_put_text(l, hex);
			n = 1;
		}
		p += n;
	}
	if (l->cut) {
		memcpy(l->text + l->len, "...\"", 4);
		l->len += 4;
	} else
		log_put_text(l, "\"");
}

static void
put_pair(struct line *l, const char *name, const char *text)
{
	if (l->len > 0)
		log_put_text(l, " ");
	log_put_text(l, name);
	log_put_text(l, "=");
	if (!l->cut)
		put_value(l, text);
}

static void
log_put_number(struct line *l, const char *name, int64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRId64, value);
	put_pair(l, name, number);
}

/* --- lines -------------------------------------------------------------- */

static void
line_begin(struct line *l, enum log_level level)
{
	l->level = level;
	l->len = 0;
	l->end = LINE_END;
	l->cut = false;
}

/* The priority of a level: syslog(3), sd-daemon(3). */
static int
log_priority(enum log_level level)
{
	static const int priority[] = {
		[LOG_DEBUG] = 7, [LOG_INFO] = 6, [LOG_WARN] = 4, [LOG_ERROR] = 3
	};

	return priority[level];
}

static void
put_priority(struct line *l)
{
	char prefix[8];

	snprintf(prefix, sizeof(prefix), "<%d>", log_priority(l->level));
	log_put_text(l, prefix);
}

static bool
line_write(const struct line *l)
{
	return log_write(log_priority(l->level), l->text, l->len);
}

static void
line_begin_event(struct line *l, enum log_level level, const char *event)
{
	char now[DATE_RFC3339_LEN + 1];

	line_begin(l, level);
	if (!log_write_has_time()) {
		date_put_rfc3339(clock_wall(), now);
		log_put_text(l, "ts=");
		log_put_text(l, now);
		log_put_text(l, " ");
	} else if (log_write_is_stderr()) {
		put_priority(l);
	}
	log_put_text(l, "level=");
	log_put_text(l, level_names[level]);
	put_pair(l, "event", event);
}

static void
count_dropped(void)
{
	atomic_fetch_add(&dropped, 1);
	metrics_count(METRICS_LOG_DROPPED);
}

/* Reports the number of dropped lines, if there are any.  False: the report
 * could not be written. */
static bool
report_dropped(void)
{
	int64_t n = atomic_exchange(&dropped, 0);
	struct line l;

	if (n == 0)
		return true;
	line_begin_event(&l, LOG_WARN, "log-dropped");
	log_put_number(&l, "lines", n);
	l.text[l.len++] = '\n';
	if (line_write(&l))
		return true;
	atomic_fetch_add(&dropped, n);
	return false;
}

static void
line_end(struct line *l)
{
	int saved = errno;

	l->text[l->len++] = '\n';
	if (!report_dropped() || !line_write(l))
		count_dropped();
	if (l->level == LOG_ERROR && atomic_load(&echo) &&
	    !log_write_is_stderr())
		(void)log_write_stderr(l->text, l->len);
	errno = saved;
}

/* A value that is cut where its room ends, and does not end the line; NULL: it
 * is not known. */
static void
put_short(struct line *l, const char *name, const char *text, size_t room)
{
	if (!l->cut && l->end - l->len > room)
		l->end = l->len + room;
	put_pair(l, name, text != NULL ? text : "-");
	if (l->end != LINE_END)
		l->cut = false;
	l->end = LINE_END;
}

static void
put_request(struct line *l, const struct log_request *rq)
{
	if (rq->instance != NULL) {
		put_pair(l, "instance", rq->instance);
		put_short(l, "method", rq->method, METHOD_ROOM);
	}
	put_short(l, "path", rq->path, PATH_ROOM);
	if (rq->instance != NULL)
		put_short(l, "peer", rq->peer, PEER_ROOM);
	put_short(l, "key", rq->key != NULL ? rq->key : "", KEY_ROOM);
	put_pair(l, "scope", rq->scope[0] != '\0' ? rq->scope : "-");
	if (rq->status != 0)
		log_put_number(l, "status", rq->status);
	else if (rq->instance != NULL)
		put_pair(l, "status", "-");
}

static void
put_event(struct line *l, const struct log_request *rq,
    const struct log_value *values, size_t n)
{
	size_t i;

	if (rq != NULL)
		put_request(l, rq);
	for (i = 0; i < n && !l->cut; i++) {
		if (values[i].text != NULL)
			put_pair(l, values[i].name, values[i].text);
		else
			log_put_number(l, values[i].name, values[i].number);
	}
}

void
log_values(enum log_level level, const char *event,
    const struct log_request *rq, const struct log_value *values, size_t n)
{
	struct line l;

	if ((int)level < atomic_load(&lowest))
		return;
	line_begin_event(&l, level, event);
	put_event(&l, rq, values, n);
	line_end(&l);
}

int
log_open(const char *target)
{
	return log_write_open(target, true);
}

int
log_hand(const char *target, const char *event, const struct log_request *rq,
    const struct log_value *values, size_t n)
{
	struct line l;
	int error = log_write_open(target, false);

	if (error != 0)
		return error;
	line_begin_event(&l, LOG_INFO, event);
	put_event(&l, rq, values, n);
	l.text[l.len++] = '\n';
	if (!line_write(&l))
		error = errno;
	log_write_close();
	return error;
}

void
log_text(enum log_level level, const char *text)
{
	struct line l;

	line_begin(&l, level);
	if (log_write_is_journal())
		put_priority(&l);
	log_put(&l, text, strnlen(text, LOG_LINE_MAX / 2));
	log_put_text(&l, "\n");
	if (!log_write_stderr(l.text, l.len))
		count_dropped();
}

void
log_request_key(struct log_request *rq, const char *key)
{
	free(rq->own);
	rq->key = rq->own = strdup(key);
}

/* Appends a copy to *to, and returns it. */
static const char *
log_copy(char **to, const char *s)
{
	char *begin = *to;

	if (s == NULL)
		return NULL;
	*to = stpcpy(begin, s) + 1;
	return begin;
}

static size_t
text_size(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

void
log_request_copy(struct log_request *to, const struct log_request *from)
{
	char *p = malloc(text_size(from->instance) + text_size(from->method) +
	    text_size(from->path) + text_size(from->peer) +
	    text_size(from->key) + 1);

	log_request_clear(to);
	memcpy(to->scope, from->scope, sizeof(to->scope));
	to->status = from->status;
	if ((to->own = p) == NULL)
		return;
	to->instance = log_copy(&p, from->instance);
	to->method = log_copy(&p, from->method);
	to->path = log_copy(&p, from->path);
	to->peer = log_copy(&p, from->peer);
	to->key = log_copy(&p, from->key);
}

void
log_request_clear(struct log_request *rq)
{
	free(rq->own);
	memset(rq, 0, sizeof(*rq));
}

void
log_echo(bool on)
{
	atomic_store(&echo, on);
}

void
log_set_level(enum log_level level)
{
	atomic_store(&lowest, (int)level);
}
