/*
 * A buffer for what a case makes.  Included by tests only, after cases.h.
 */
#ifndef OUT_H
#define OUT_H

#include "buf.h"

static struct buf out;

/* Empties it for as many bytes. */
static void
out_new(size_t max)
{
	buf_free(&out);
	buf_init(&out, max);
}

static int
out_free(UNUSED void **state)
{
	buf_free(&out);
	return 0;
}

AROUND_EACH(NULL, out_free)

#endif
