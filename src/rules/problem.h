/*
 * Verdict -> a response of oncewrap's own: RFC 9457 problem details, the
 * Stripe dialect, or a page that says the same.  problem.c has one table of
 * codes.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "response.h"

enum problem_code {
	PROBLEM_NONE,
	PROBLEM_REQUEST_INVALID, /* no CGI request: NUL in a variable */
	PROBLEM_KEY_MISSING,
	PROBLEM_KEY_INVALID,
	PROBLEM_KEY_REUSED,
	PROBLEM_KEY_IN_PROGRESS,
	PROBLEM_OUTCOME_UNKNOWN,
	PROBLEM_KEY_EXPIRED,
	PROBLEM_RESPONSE_NOT_KEPT,
	PROBLEM_SCOPE_REQUIRED,
	PROBLEM_BODY_TOO_LARGE,
	PROBLEM_BODY_INCOMPLETE,
	PROBLEM_TOO_MANY_KEYS,
	PROBLEM_REQUEST_TOO_OLD,
	PROBLEM_STORE_UNAVAILABLE,
	PROBLEM_OVERLOADED,
	PROBLEM_HANDLER_NOT_STARTED,
	PROBLEM_HANDLER_FAILED,
	PROBLEM_HANDLER_TIMEOUT,
	PROBLEM_OUTCOME_NOT_RECORDED,
	PROBLEM_REQUEST_EXPIRED, /* accepted, and not begun in time */
	PROBLEM_NOT_FOUND, /* no such status resource, or another scope's */
	PROBLEM_METHOD_NOT_ALLOWED /* of a status resource */
};

struct problem {
	enum problem_code code;
	int status;           /* instead of the table's; 0: the table's */
	const char *detail;   /* a sentence; NULL: the code's own */
	const char *instance; /* urn:uuid:... */
	bool html;            /* as a page: prefer_html() */
	bool unknown;         /* it leaves the key unknown, and says so */
	bool acted;          /* it ran, now or before, whatever its code says */
	int original_status; /* response-not-kept */
	int64_t completed_at; /* response-not-kept; wall clock, ms */
};

/*
 * Makes status, fields and body.  The bytes of the body are appended to body,
 * to which response->body then points; body must outlive the response.
 */
enum rc problem_make(const struct problem *, const char *link,
    enum conf_dialect, struct response *, struct buf *body);

/* The name of a code: "key-missing", ... */
const char *problem_name(enum problem_code);

/* The status of the response. */
int problem_status(const struct problem *, enum conf_dialect);

/* The sentence that explains the problem; NULL: the title is enough. */
const char *problem_detail(const struct problem *);

#endif
