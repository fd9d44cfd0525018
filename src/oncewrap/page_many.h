/*
 * Private to page_many.c, which asks, and page_many_do.c, which acts.
 */
#ifndef PAGE_MANY_H
#define PAGE_MANY_H

#include "page_impl.h"
#include "page_token.h"

/* How an act upon many keys is named and done. */
struct page_many {
	enum page_act act;
	const char *offer, *what, *done;
	enum record_state states[2]; /* of the keys; NONE: of any */
	size_t nstates;
	enum rc (*some)(struct store *, struct store_chosen *, size_t);
};

/* Reads the act and the search; NULL: the page that says why not was made. */
const struct page_many *
page_many_read(struct page *p, struct page_search *s, page_form_read *read);

/* Whether the act is upon keys of that state; then b becomes the search for
 * those that also fit s. */
bool page_many_state(const struct page_search *s, enum record_state state,
    struct store_browse *b);

struct page_many_count {
	int64_t n;
	bool more; /* there are more than that */
};

/* Counts the keys of the search that the act is for; known: what the search has
 * found, if that is at hand. */
enum rc page_many_count(struct page *p, const struct page_many *m,
    const struct page_search *s, const struct store_found *known,
    struct page_many_count *count);

/* What the token is bound to, but for the moment of the question (.changed).
 * It points into text, which gets the search as no other search has it. */
#define PAGE_MANY_TEXT (4 * LIMIT_PATH)
enum rc page_many_bind(const struct page *p, const struct page_many *m,
    const struct page_search *s, struct buf *text, struct page_token *token);

/* Begins the form that acts. */
void page_many_form(struct page *p, const struct page_many *m,
    const struct page_search *s, int64_t moment, const char *token);

#endif
