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
#include "date.h"
#include "metrics.h"
#include "response.h"

/*
 * REQUEST_INVALID is no CGI request: NUL in a variable.  REQUEST_EXPIRED was
 * accepted, and not begun in time.  NOT_FOUND and METHOD_NOT_ALLOWED are about
 * status resources.
 */
#define PROBLEM_ENUMERATOR(unused, id, name) , PROBLEM_##id
enum problem_code { PROBLEM_NONE METRICS_CODES(PROBLEM_ENUMERATOR, ) };

/* A page of the operator's own: HTML, with @title@ @detail@ @instance@ @key@
 * @retry_after@, which the values of the problem replace, escaped. */
struct problem_template {
	const char *bytes; /* NULL: the page is ours */
	size_t len;
	const char *language; /* "": not known */
};

struct problem {
	enum problem_code code;
	int status;           /* instead of the table's; 0: the table's */
	const char *detail;   /* a sentence; NULL: the code's own */
	const char *instance; /* urn:uuid:... */
	const char *key;      /* NULL: none, or not known */
	struct problem_template page;
	bool html;    /* as a page: prefer_html() */
	bool unknown; /* it leaves the key unknown, and says so */
	/* the request ran, or may have run, now or before, whatever its code
	 * says: no new key is safe */
	bool acted;
	int original_status;  /* response-not-kept */
	int64_t completed_at; /* response-not-kept; wall clock, ms */
};

/*
 * Makes status, fields and body.  With a template whose text gets too long, the
 * page is ours.  The bytes of the body are appended to body, to which
 * response->body then points; body must outlive the response.
 */
enum rc problem_make(const struct problem *p, const char *link,
    enum conf_dialect dialect, struct response *response, struct buf *body);

/* The name of a code: "key-missing", ... */
const char *problem_name(enum problem_code code);

/* The status of the response. */
int problem_status(const struct problem *p, enum conf_dialect dialect);

/* The sentence that explains the problem; NULL: the title is enough. */
const char *problem_detail(const struct problem *p);

/* --- for problem.c and problem_page.c alone ------------------------------- */

/* What each form of a problem says. */
struct problem_view {
	const char *name, *title;
	const char *detail;   /* NULL: none */
	const char *instance; /* NULL: none */
	const char *key;      /* NULL: none */
	/* for people: what happened, and what to do now */
	const char *headline, *advice;
	const char *link;
	int status;
	int retry_after; /* seconds; 0: none */
	bool retryable, safe_new_key, unknown;
	int original_status; /* 0: none, nor a time */
	char completed_at[DATE_RFC3339_LEN + 1];
};

/* Appends the page to out; on failure a part of it may be there. */
enum rc problem_page(const struct problem_view *v, struct buf *out);

/* Appends the template, with the values of the problem in it. */
enum rc problem_page_fill(const struct problem_template *page,
    const struct problem_view *v, struct buf *out);

#endif
