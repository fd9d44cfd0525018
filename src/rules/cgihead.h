/*
 * A handler's output -> status, fields, start of the body (RFC 3875, section
 * 6), as kindly as web servers read it.  What has no single reading is refused.
 */
#ifndef CGIHEAD_H
#define CGIHEAD_H

#include <stdint.h>

#include "response.h"

enum cgihead_verdict {
	CGIHEAD_OK,
	CGIHEAD_MORE,      /* no empty line yet */
	CGIHEAD_EMPTY,     /* no output at all */
	CGIHEAD_NO_END,    /* no empty line, and no more output */
	CGIHEAD_TOO_LONG,  /* above LIMIT_HEAD or LIMIT_FIELDS */
	CGIHEAD_MALFORMED, /* a line that is no field; a control character */
	CGIHEAD_STATUS,    /* a Status that is no final status */
	CGIHEAD_DIFFER,    /* two different Status, Content-Type, ... */
	CGIHEAD_MISSING,   /* neither Content-Type, Location nor Status */
	CGIHEAD_LENGTH,    /* a Content-Length that is no number */
	CGIHEAD_NO_MEMORY
};

/* What was mended: the numbers of the bits in cgihead.mended. */
enum cgihead_mending {
	CGIHEAD_MENDED_EMPTY_LINE,  /* in front of the head */
	CGIHEAD_MENDED_STATUS_LINE, /* "HTTP/1.1 200 OK" */
	CGIHEAD_MENDED_BLANK,       /* before a colon */
	CGIHEAD_MENDED_FOLDED,      /* a field on several lines */
	CGIHEAD_MENDED_STATUS,      /* "200OK" */
	CGIHEAD_MENDED_TWICE,       /* the same field with the same value */
	CGIHEAD_MENDED_BODY,        /* longer than its Content-Length: cut */
	CGIHEAD_MENDINGS
};

/* The outcome as the handler states it, in Idempotency-Outcome. */
enum cgihead_outcome {
	CGIHEAD_SAYS_NOTHING,
	CGIHEAD_SAYS_COMPLETED,
	CGIHEAD_SAYS_NOT_EXECUTED,
	CGIHEAD_SAYS_STATUS, /* the program ended, and its status decides */
	CGIHEAD_SAYS_UNKNOWN /* or another value, or the field twice */
};

#define CGIHEAD_DOUBT 128

struct cgihead {
	size_t body_start; /* offset into the output */
	enum cgihead_outcome outcome;
	/* why it is unknown, if the field does not say so; or "".  ASCII */
	char doubt[CGIHEAD_DOUBT];
	int64_t content_length; /* -1: not given */
	bool not_replayable;    /* X-Sendfile and its kin */
	unsigned mended;        /* bits; the body's is the caller's */
};

/*
 * Parses the first len bytes of the output; eof: there are no more.  On
 * CGIHEAD_OK response (initialised by the caller) has kind, status, reason and
 * fields, without Status, Idempotency-Outcome, hop-by-hop fields and X-CGI-*.
 * On any other verdict it has no fields, and out is meaningless.
 */
enum cgihead_verdict cgihead_parse(const char *output, size_t len, bool eof,
    struct response *response, struct cgihead *out);

const char *cgihead_verdict_text(enum cgihead_verdict verdict);

/* What was mended, in words. */
const char *cgihead_mending_text(enum cgihead_mending mending);

#endif
