/*
 * A handler's stderr -> lines of the log, each with the request.
 * Lines are cut at LIMIT_STDERR_LINE, not split, so the log never has more
 * lines than the handler wrote.
 */
#ifndef ERRLOG_H
#define ERRLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "log.h"

struct errlog {
	const struct log_request *log; /* must outlive the errlog */
	struct buf line;               /* the current line */
	bool cut;                      /* the rest of the line is dropped */
	struct buf *last; /* gets the last LIMIT_ERRORS bytes; NULL */
};

/* last: of at least LIMIT_ERRORS bytes, and outlives the errlog; NULL: none. */
void
errlog_init(struct errlog *e, const struct log_request *log, struct buf *last);
void errlog_free(struct errlog *e);
void errlog_add(struct errlog *e, const char *p, size_t n);

/* Reads at most max bytes once from fd, which does not block and may be -1, and
 * adds them.  Returns their number; 0: there are none now; -1: there are no
 * more. */
ssize_t errlog_read(struct errlog *e, int fd, size_t max);

/* Ends the input; logs a last line that has no newline. */
void errlog_end(struct errlog *e);

#endif
