/*
 * Bounded bytes; see buf.h.
 *
 * Invariants:
 *  1. .data is never NULL, and .data[.len] is NUL.
 *  2. .len <= .max; and .len < .cap, or both are 0.
 *  3. .cap is 0 exactly while .data is the shared empty string, which nothing
 *     writes to.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"

#define CAP_MIN 64

static char empty[1];

static void
buf_check(const struct buf *b)
{
	assert(b->data != NULL);
	assert(b->len <= b->max);
	assert(b->cap == 0 ? b->len == 0 : b->len < b->cap);
}

void
buf_init(struct buf *b, size_t max)
{
	b->data = empty;
	b->len = 0;
	b->cap = 0;
	b->max = max;
	b->rc = RC_OK;
}

void
buf_free(struct buf *b)
{
	if (b == NULL)
		return;
	if (b->cap != 0)
		free(b->data);
	buf_init(b, b->max);
}

void
buf_clear(struct buf *b)
{
	buf_truncate(b, 0);
}

enum rc
buf_reserve(struct buf *b, size_t n)
{
	size_t cap, need;
	char *data;

	buf_check(b);
	if (n > b->max - b->len)
		return RC_LIMIT;
	if (n >= SIZE_MAX / 2 - b->len)
		return RC_NOMEM;
	need = b->len + n + 1;
	if (need <= b->cap)
		return RC_OK;

	/* Doubling keeps n appends at O(n) copied bytes; the maximum caps what
	 * doubling would waste at the end. */
	cap = b->cap > 0 ? b->cap : CAP_MIN;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	if (b->max < SIZE_MAX && cap > b->max + 1)
		cap = b->max + 1;
	data = realloc(b->cap != 0 ? b->data : NULL, cap);
	if (data == NULL)
		return RC_NOMEM;
	if (b->cap == 0)
		data[0] = '\0';
	b->data = data;
	b->cap = cap;
	return RC_OK;
}

void
buf_commit(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	buf_check(b);
	assert(n <= b->max - b->len);
	assert(b->cap - b->len > n);
	b->len += n;
	b->data[b->len] = '\0';
}

enum rc
buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (n == 0 || b->rc != RC_OK)
		return b->rc;
	/* else there is room for n and the NUL */
	if (n >= b->cap - b->len && (b->rc = buf_reserve(b, n)) != RC_OK)
		return b->rc;
	memcpy(b->data + b->len, bytes, n);
	buf_commit(b, n);
	return RC_OK;
}

enum rc
buf_addc(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

enum rc
buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

enum rc
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (b->rc != RC_OK)
		return b->rc;
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	/* n < 0: longer than INT_MAX */
	b->rc = n < 0 ? RC_LIMIT : buf_reserve(b, (size_t)n);
	if (b->rc != RC_OK || n == 0)
		return b->rc;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_commit(b, (size_t)n);
	return RC_OK;
}

void
buf_consume(struct buf *b, size_t n)
{
	buf_check(b);
	assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

void
buf_truncate(struct buf *b, size_t n)
{
	buf_check(b);
	assert(n <= b->len);
	b->len = n;
	b->rc = RC_OK;
	if (b->cap != 0)
		b->data[n] = '\0';
}
