/*
 * The body of a request, part by part.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "body.h"

#define PART ((size_t)64 * 1024)

void
body_open(struct body *b, const struct request *rq)
{
	memset(b, 0, sizeof(*b));
	b->rq = rq;
	if (rq->body_fd == -1) {
		if (rq->body == NULL && rq->body_len > 0)
			b->rc = RC_IO;
		return;
	}
	if ((b->room = malloc(PART)) == NULL)
		b->rc = RC_NOMEM;
}

void
body_close(struct body *b)
{
	free(b->room);
	b->room = NULL;
}

bool
body_next(struct body *b)
{
	const struct request *rq = b->rq;
	uint64_t left = rq->body_len - b->at;
	ssize_t n;

	if (b->rc != RC_OK || left == 0)
		return false;
	if (rq->body_fd == -1) {
		b->bytes = rq->body;
		b->n = rq->body_len;
		b->at += b->n;
		return true;
	}
	do
		n = pread(rq->body_fd, b->room,
		    left < PART ? (size_t)left : PART, (off_t)b->at);
	while (n == -1 && errno == EINTR);
	if (n <= 0) {
		log_event(LOG_ERROR, "body-unreadable", rq->log,
		    LOG_S("why", n == 0 ? "too short" : strerror(errno)));
		b->rc = RC_IO;
		return false;
	}
	b->bytes = b->room;
	b->n = (size_t)n;
	b->at += b->n;
	return true;
}
