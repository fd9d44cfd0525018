/*
 * Lines of a handler's stderr.  This file knows no process and no descriptor.
 */
#include "config.h"

#include "limit.h"
#include "errlog.h"

void
errlog_init(struct errlog *e, const struct log_request *log)
{
	e->log = log;
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

void
errlog_add(struct errlog *e, const char *p, size_t n)
{
	size_t i;

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
