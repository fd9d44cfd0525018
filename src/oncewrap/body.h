/*
 * The body of a request, part by part: a body in a file is read from the
 * file, so that it takes no memory.
 */
#ifndef BODY_H
#define BODY_H

#include <stdbool.h>

#include "rc.h"
#include "request.h"

struct body {
	const void *bytes; /* the part: n bytes, until the next call */
	size_t n;
	enum rc rc; /* why body_next() returned false: RC_OK is the end */

	/* private */
	const struct request *rq;
	uint64_t at;
	char *room;
};

/* The caller calls body_close(). */
void body_open(struct body *b, const struct request *rq);
void body_close(struct body *b);

/* Gets the next part. */
bool body_next(struct body *b);

#endif
