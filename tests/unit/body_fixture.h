/*
 * A body that is read in parts.  Included by tests only, after cases.h.
 */
#ifndef BODY_FIXTURE_H
#define BODY_FIXTURE_H

#include "request.h"

/* How much of the body is read at a time (bytes). */
static size_t part = SIZE_MAX;

static enum rc
read_body(const struct request *rq, request_take_fn *take, void *arg)
{
	enum rc rc = RC_OK;
	size_t at, n;

	if (rq->body == NULL && rq->body_len > 0)
		return RC_IO;
	for (at = 0; rc == RC_OK && at < rq->body_len; at += n) {
		n = rq->body_len - at < part ? rq->body_len - at : part;
		rc = take(arg, (const char *)rq->body + at, n);
	}
	return rc;
}

#endif
