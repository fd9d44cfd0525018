/*
 * The token of a form that changes something: it proves that this user was
 * shown the page that asks for confirmation, under this host name, within the
 * last hour, and that what it acts upon has not changed since.  Only the
 * store's secret makes one.
 */
#ifndef PAGE_TOKEN_H
#define PAGE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"
#include "scope.h"

#define PAGE_TOKEN_AGE  INT64_C(3600000) /* ms */
#define PAGE_TOKEN_SIZE 96

/* What a token is for. */
struct page_token {
	const char *user;
	const char *host; /* by which the browser reaches the page */
	const char *act;
	int64_t id; /* of the key or the effect: never used twice; 0: many */
	const char *state; /* its present state; of many keys: the search */
	int64_t life;      /* its attempts, or tries */
	/* wall clock (ms) of its last change; of many keys: of the question */
	int64_t changed;
};

/* Makes the token; now is store time (ms).  RC_OK or RC_NOMEM. */
enum rc page_token_make(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    char out[PAGE_TOKEN_SIZE]);

/* Whether the text is a token for that, and at most an hour old. */
bool page_token_is_good(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    const char *text);

#endif
