/*
 * What forms send and pages show: fields, tokens, and values as text.
 */
#ifndef PAGE_VALUE_H
#define PAGE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "request.h"
#include "scope.h"

/* --- fields of a form, in a query string or in a body -------------------- */

/*
 * Appends the decoded value of the first field of that name to out, which stays
 * empty if there is none.  The fields of a POST are in the body, of type
 * application/x-www-form-urlencoded, else in the query string.  RC_OK;
 * RC_INVALID: the value has a NUL, or the body another type; RC_LIMIT (of out),
 * or RC_NOMEM.
 */
enum rc
page_form_value(const struct request *rq, const char *name, struct buf *out);

/* Copies a value that is shorter than size, "" for none. */
enum rc page_form_text(
    const struct request *rq, const char *name, char *out, size_t size);

/* A number of 1 or more in decimal digits; 0: it is none. */
int64_t page_form_number(const struct request *rq, const char *name);

/* --- tokens --------------------------------------------------------------- */

/*
 * The token of a form that changes something proves that this user was shown
 * the page that asks for confirmation, under this host name, within the last
 * hour, and that what it acts upon has not changed since.  Only the store's
 * secret makes one.
 */
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

/* Makes the token; now is store time (ms). */
void page_token_make(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    char out[PAGE_TOKEN_SIZE]);

/* Whether the text is a token for that, and at most an hour old. */
bool page_token_is_good(const struct page_token *t,
    const unsigned char secret[SCOPE_SECRET_LEN], int64_t now,
    const char *text);

/* --- values as text ------------------------------------------------------- */

/* "3 min", "2 h 5 min", "4 d 1 h"; less than nothing is "0 s". */
#define PAGE_AGE_SIZE 48
void page_write_age(int64_t ms, char out[PAGE_AGE_SIZE]);

/* "2026-02-09 07:04:38 UTC"; wall clock (ms). */
#define PAGE_UTC_SIZE 32
void page_write_utc(int64_t wall, char out[PAGE_UTC_SIZE]);

/* "17", "more than 17", or "not counted yet" for a negative number. */
#define PAGE_COUNT_SIZE 32
void page_write_count(int64_t n, bool more, char out[PAGE_COUNT_SIZE]);

/*
 * Copies the beginning of a text, up to size - 4 bytes of whole characters, and
 * adds "..." if something is missing; NULL is "".
 */
void page_write_cut(const char *text, char *out, size_t size);

#endif
