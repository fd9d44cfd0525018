/*
 * Lines of a handler's stderr.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "limit.h"
#include "errlog.h"

void
errlog_init(struct errlog *e, const struct log_request *log, struct buf *last)
{
	e->log = log;
	e->last = last;
	e->cut = false;
	buf_init(&e->line, LIMIT_STDERR_LINE);
}

void
errlog_free(struct errlog *e)
{
	buf_free(&e->line);
}

void
errlog_end(struct errlog *e)
{
	if (e->line.len > 0)
		log_event(LOG_WARN, "handler-stderr", e->log,
		    LOG_S("line", e->line.data));
	buf_clear(&e->line);
}

/* Without memory there is less.  A NUL becomes a blank, so that the bytes are a
 * text. */
static void
errlog_keep(struct buf *last, const char *p, size_t n)
{
	const size_t max = LIMIT_ERRORS;
	char *nul;

	if (n > max) {
		p += n - max;
		n = max;
	}
	if (last->len + n > max)
		buf_consume(last, last->len + n - max);
	if (buf_add(last, p, n) != RC_OK)
		return;
	while ((nul = memchr(last->data, '\0', last->len)) != NULL)
		*nul = ' ';
}

void
errlog_add(struct errlog *e, const char *p, size_t n)
{
	size_t i;

	if (e->last != NULL)
		errlog_keep(e->last, p, n);
	for (i = 0; i < n; i++) {
		if (p[i] == '\n') {
			errlog_end(e);
			e->cut = false;
		} else if (!e->cut && p[i] != '\r' && p[i] != '\0' &&
		    buf_addc(&e->line, p[i]) != RC_OK) {
			errlog_end(e);
			e->cut = true;
		}
	}
}

ssize_t
errlog_read(struct errlog *e, int fd, size_t max)
{
	char bytes[4096];
	ssize_t n;

	if (fd == -1 || max == 0)
		return 0;
	n = read(fd, bytes, max < sizeof(bytes) ? max : sizeof(bytes));
	if (n > 0)
		errlog_add(e, bytes, (size_t)n);
	return n == -1 && (errno == EAGAIN || errno == EINTR) ? 0
	    : n == 0                                          ? -1
							      : n;
}
