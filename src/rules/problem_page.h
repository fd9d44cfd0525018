/*
 * Private to problem: a problem, ready to be shown, and its HTML page.
 */
#ifndef PROBLEM_PAGE_H
#define PROBLEM_PAGE_H

#include <stdbool.h>

#include "buf.h"
#include "date.h"
#include "problem.h"

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
