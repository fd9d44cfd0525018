/*
 * Whatever a handler prints: a head that is accepted is well formed, survives
 * being written out and read again, and ends where it ends whether or not
 * more follows.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cgihead.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
check_fields(const struct buf *fields)
{
	struct field f;
	size_t pos = 0, n = 0;

	while (response_next(fields, &pos, &f)) {
		assert(f.name.n > 0);
		assert(memchr(f.value.p, '\0', f.value.n) == NULL);
		assert(memchr(f.value.p, '\r', f.value.n) == NULL);
		assert(!response_text_is(f.name, "Status"));
		assert(!response_text_is(f.name, "Connection"));
		assert(!response_text_is(f.name, "Transfer-Encoding"));
		assert(!response_text_is(f.name, "Idempotency-Outcome"));
		n++;
	}
	assert(pos == fields->len && n <= LIMIT_FIELDS);
}

static size_t
count(const struct response *r)
{
	struct field f;
	size_t pos = 0, n = 0;

	while (response_next(&r->fields, &pos, &f))
		n++;
	return n;
}

/* What was kept and is sent again reads the same, where there is room for the
 * Status that it is given. */
static void
check_again(const struct response *r)
{
	struct response again;
	struct cgihead h;
	struct buf head;

	buf_init(&head, (size_t)2 * LIMIT_HEAD);
	response_init(&again);
	assert(response_head(r, &head) == RC_OK);
	if (head.len <= LIMIT_HEAD && count(r) < LIMIT_FIELDS) {
		assert(cgihead_parse(head.data, head.len, true, &again, &h) ==
		    CGIHEAD_OK);
		assert(h.body_start == head.len);
		assert(again.kind == r->kind && again.status == r->status);
		assert(again.fields.len == r->fields.len);
		assert(memcmp(again.fields.data, r->fields.data,
			   r->fields.len) == 0);
	}
	response_free(&again);
	buf_free(&head);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Neither terminated nor longer than it is. */
	char *output = malloc(len > 0 ? len : 1);
	enum cgihead_verdict verdict;
	struct response r;
	struct cgihead h;

	if (output == NULL)
		return 0;
	if (len > 0)
		memcpy(output, data, len);
	response_init(&r);
	verdict = cgihead_parse(output, len, true, &r, &h);
	assert(cgihead_verdict_text(verdict)[0] != '\0');
	assert(verdict != CGIHEAD_MORE);
	if (verdict == CGIHEAD_OK) {
		size_t end = h.body_start;

		assert(end > 0 && end <= len && output[end - 1] == '\n');
		assert(r.status >= 200 && r.status <= 599);
		check_fields(&r.fields);
		check_again(&r);
		assert(cgihead_parse(output, end - 1, false, &r, &h) ==
		    CGIHEAD_MORE);
		assert(cgihead_parse(output, end, false, &r, &h) == CGIHEAD_OK);
		assert(h.body_start == end);
	} else {
		assert(r.fields.len == 0);
	}
	response_free(&r);
	free(output);
	return 0;
}
