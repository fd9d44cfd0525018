/*
 * A handler's output -> status, fields, start of the body (RFC 3875, section
 * 6), as kindly as web servers read it.  What has no single reading is refused.
 */
#ifndef CGIHEAD_H
#define CGIHEAD_H

#include <stdint.h>

#include "response.h"
#include "words.h"

/* Verdicts and mendings, each with its text: see words.h. */
/* clang-format off */
#define CGIHEAD_VERDICTS(X) \
	X(CGIHEAD_OK, "ok") \
	X(CGIHEAD_MORE, "head is not whole yet") \
	X(CGIHEAD_EMPTY, "no output") \
	X(CGIHEAD_NO_END, "head has no end: no empty line after it") \
	X(CGIHEAD_TOO_LONG, "head is too long") \
	X(CGIHEAD_MALFORMED, "head has a line that is no field") \
	X(CGIHEAD_STATUS, "Status is no final status") \
	X(CGIHEAD_DIFFER, ("two different values of Status, Content-Type, " \
	    "Content-Length or Location")) \
	X(CGIHEAD_MISSING, "neither Content-Type, Location nor Status") \
	X(CGIHEAD_LENGTH, "Content-Length is no number") \
	X(CGIHEAD_NO_MEMORY, "no memory for the head")
/* CGIHEAD_MENDED_BODY is noted by the caller, which cuts the body. */
#define CGIHEAD_MENDING(X) \
	X(CGIHEAD_MENDED_EMPTY_LINE, "empty line before the head") \
	X(CGIHEAD_MENDED_STATUS_LINE, "first line is a status line") \
	X(CGIHEAD_MENDED_BLANK, "blank before a colon") \
	X(CGIHEAD_MENDED_FOLDED, "folded line") \
	X(CGIHEAD_MENDED_STATUS, "no space after the digits of a Status") \
	X(CGIHEAD_MENDED_TWICE, "field given twice") \
	X(CGIHEAD_MENDED_BODY, "body longer than its Content-Length")
/* clang-format on */

enum cgihead_verdict { CGIHEAD_VERDICTS(WORDS_ENUMERATOR) };

/* The numbers of the bits in cgihead.mended. */
enum cgihead_mending { CGIHEAD_MENDING(WORDS_ENUMERATOR) };
#define CGIHEAD_MENDINGS WORDS_COUNT(CGIHEAD_MENDING)

/* The outcome as the handler states it, in Idempotency-Outcome. */
enum cgihead_outcome {
	CGIHEAD_SAYS_NOTHING,
	CGIHEAD_SAYS_COMPLETED,
	CGIHEAD_SAYS_NOT_EXECUTED,
	CGIHEAD_SAYS_STATUS, /* the program ended, and its status decides */
	CGIHEAD_SAYS_UNKNOWN /* or another value, or the field twice */
};

struct cgihead {
	size_t body_start; /* offset into the output */
	enum cgihead_outcome outcome;
	const char *doubt; /* why it is unknown, unless the field says so; "" */
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
