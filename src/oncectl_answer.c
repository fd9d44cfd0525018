/*
 * oncectl's standard input.
 */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "oncectl_answer.h"

#define READ_SIZE 65536

bool
oncectl_answer_bad(const char *why)
{
	warnx("standard input: %s", why);
	return false;
}

bool
oncectl_answer_read(struct oncectl_input *in, const char *dir, uint64_t max)
{
	char bytes[READ_SIZE];
	uint64_t room;
	ssize_t n;
	enum rc rc;

	in->length = 0;
	if ((in->spool = spool_new(dir)) == NULL)
		return oncectl_answer_bad(rc_text(RC_NOMEM));
	for (;;) {
		n = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return oncectl_answer_bad(strerror(errno));
		if (n == 0)
			return true;
		in->length += (uint64_t)n;
		room = max - spool_length(in->spool);
		if ((uint64_t)n > room)
			n = (ssize_t)room;
		rc = spool_write(in->spool, bytes, (size_t)n);
		if (rc != RC_OK)
			return oncectl_answer_bad(rc_text(rc));
	}
}

void
oncectl_answer_free(struct oncectl_input *in)
{
	spool_free(in->spool);
	in->spool = NULL;
}

static bool
agrees(const struct cgihead *head, uint64_t body_len)
{
	switch (head->outcome) {
	case CGIHEAD_SAYS_NOTHING:
	case CGIHEAD_SAYS_COMPLETED:
		break;
	case CGIHEAD_SAYS_NOT_EXECUTED:
	case CGIHEAD_SAYS_UNKNOWN:
		return oncectl_answer_bad(
		    "its Idempotency-Outcome is not \"completed\"");
	}
	if (head->content_length == -1 ||
	    (uint64_t)head->content_length == body_len)
		return true;
	warnx("standard input: Content-Length says %" PRId64
	      ", but the body has %" PRIu64 " bytes",
	    head->content_length, body_len);
	return false;
}

bool
oncectl_answer_parse(
    const struct oncectl_input *in, struct response *r, struct cgihead *head)
{
	/* Ours to say, as in a handler's answer. */
	static const char *const own[] = { "Idempotent-Replayed",
		"Idempotency-Expires" };
	const size_t kept = (size_t)spool_length(in->spool);
	enum cgihead_verdict verdict;
	const char *bytes;
	enum rc rc = RC_OK;

	bytes = spool_bytes(in->spool, &rc);
	if (rc != RC_OK)
		return oncectl_answer_bad(rc_text(rc));
	verdict = cgihead_parse(bytes, kept, true, r, head);
	if (verdict != CGIHEAD_OK)
		return oncectl_answer_bad(cgihead_verdict_text(verdict));
	if (!agrees(head, in->length - head->body_start))
		return false;
	response_remove(r, own, 2);
	r->body_len = kept - head->body_start;
	r->body = r->body_len > 0 ? bytes + head->body_start : NULL;
	return true;
}
