/*
 * Private to problem: a problem, ready to be shown, and its HTML page.
 */
#ifndef PROBLEM_PAGE_H
#define PROBLEM_PAGE_H

#include <stdbool.h>

#include "buf.h"
#include "date.h"

/* What each form of a problem says. */
struct problem_view {
	const char *name, *title;
	const char *detail;   /* NULL: none */
	const char *advice;   /* what a person may do now; NULL: nothing */
	const char *instance; /* NULL: none */
	const char *link;
	int status;
	bool retryable, safe_new_key, unknown;
	int original_status; /* 0: none, nor a time */
	char completed_at[DATE_RFC3339_LEN + 1];
};

/* Appends the page to out; on failure a part of it may be there. */
enum rc problem_page(const struct problem_view *v, struct buf *out);

#endif
