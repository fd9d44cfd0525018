/*
 * The log, one logfmt line for each event.  A line is built on the stack and
 * goes out in one write(2), so lines of several threads and processes never
 * mix.  This file takes no lock and allocates nothing.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log_sink.h"
#include "metrics.h"
#include "utf8.h"

#include "log.h"

struct line {
	char text[LOG_LINE_MAX];
	size_t len;
	bool cut;
};

/* Room for the end of a cut line (bytes): three dots, a quote, a newline. */
#define LINE_TAIL 5

static atomic_int lowest = LOG_INFO;

/* Lines that were dropped since the last report. */
static atomic_int_least64_t dropped;

static const char *const level_names[] = { "debug", "info", "warn", "error" };

/* Appends all of s or nothing, so that an escape is never cut in two. */
static void
put(struct line *l, const char *s, size_t n)
{
	if (l->cut || n > sizeof(l->text) - LINE_TAIL - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void
put_text(struct line *l, const char *s)
{
	put(l, s, strlen(s));
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

static void
put_value(struct line *l, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	char hex[8];
	size_t n;

	if (is_plain(s) && strlen(s) < sizeof(l->text) - LINE_TAIL - l->len) {
		put_text(l, s);
		return;
	}
	put_text(l, "\"");
	while (*p != '\0' && !l->cut) {
		n = 1;
		if (*p == '"')
			put_text(l, "\\\"");
		else if (*p == '\\')
			put_text(l, "\\\\");
		else if (*p == '\n')
			put_text(l, "\\n");
		else if (*p == '\t')
			put_text(l, "\\t");
		else if (*p >= ' ' && *p < 0x7f)
			put(l, (const char *)p, 1);
		else if ((n = utf8_length((const char *)p)) != 0)
			put(l, (const char *)p, n);
		else {
			snprintf(hex, sizeof(hex), "\\x%02x", *p);
			put_text(l, hex);
			n = 1;
		}
		p += n;
	}
	if (l->cut) {
		memcpy(l->text + l->len, "...\"", 4);
		l->len += 4;
	} else
		put_text(l, "\"");
}

static void
put_pair(struct line *l, const char *name, const char *text)
{
	if (l->len > 0)
		put_text(l, " ");
	put_text(l, name);
	put_text(l, "=");
	if (!l->cut)
		put_value(l, text);
}

/* --- lines -------------------------------------------------------------- */

static void
line_begin(struct line *l, enum log_level level)
{
	/* sd-daemon(3) */
	static const char *const priority[] = { "<7>", "<6>", "<4>", "<3>" };

	l->len = 0;
	l->cut = false;
	if (log_sink_journal())
		put_text(l, priority[level]);
}

void
log_sink_dropped(void)
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
	char number[24];
	struct line l;

	if (n == 0)
		return true;
	snprintf(number, sizeof(number), "%" PRId64, n);
	line_begin(&l, LOG_WARN);
	put_text(&l, "level=warn");
	put_pair(&l, "event", "log-dropped");
	put_pair(&l, "lines", number);
	put_text(&l, "\n");
	if (log_sink_write(l.text, l.len))
		return true;
	atomic_fetch_add(&dropped, n);
	return false;
}

static void
line_end(struct line *l)
{
	int saved = errno;

	l->text[l->len++] = '\n';
	if (!report_dropped() || !log_sink_write(l->text, l->len))
		log_sink_dropped();
	errno = saved;
}

void
log_values(enum log_level level, const char *event, const char *instance,
    const struct log_value *values, size_t n)
{
	struct line l;
	char number[24];
	size_t i;

	if ((int)level < atomic_load(&lowest))
		return;
	line_begin(&l, level);
	put_text(&l, "level=");
	put_text(&l, level_names[level]);
	put_pair(&l, "event", event);
	if (instance != NULL)
		put_pair(&l, "instance", instance);
	for (i = 0; i < n && !l.cut; i++) {
		snprintf(number, sizeof(number), "%" PRId64, values[i].number);
		put_pair(&l, values[i].name,
		    values[i].text != NULL ? values[i].text : number);
	}
	line_end(&l);
}

void
log_fatal(const char *format, ...)
{
	char text[LOG_LINE_MAX - 8];
	struct line l;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	line_begin(&l, LOG_ERROR);
	put_text(&l, text);
	line_end(&l);
}

void
log_set_level(enum log_level level)
{
	atomic_store(&lowest, (int)level);
}
