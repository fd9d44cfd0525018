/*
 * Private to the files of the operator's page.
 */
#ifndef PAGE_IMPL_H
#define PAGE_IMPL_H

#include "answer.h"
#include "conf.h"
#include "request.h"
#include "store.h"
#include "store_operator.h"
#include "page_html.h"
#include "page_value.h"

/* Room for a value in a list; a key's own page shows the whole. */
#define PAGE_CUT 160

/* One request for a page. */
struct page {
	struct store *store;
	const struct conf *conf;
	const struct request *rq;
	struct answer *answer;
	struct html html;
	const char *user; /* as the web server has verified it; "" */
	bool admin;       /* may change keys */
	int64_t wall;     /* now */
};

/* Begins a page: status, fields, head.  What was written before is dropped. */
void page_begin(struct page *p, int status, const char *title);

/* A whole page with one sentence. */
void
page_sentence(struct page *p, int status, const char *title, const char *text);
void page_not_found(struct page *p, const char *text);
void page_store_failed(struct page *p, enum rc rc);

/* Whether a read went well; else one of the two pages above was made.  text:
 * the text for RC_NOTFOUND. */
bool page_has_read(struct page *p, enum rc rc, const char *text);

/* A fact that may be unknown: NULL or "". */
void page_fact(struct html *html, const char *name, const char *value);

/* The name of a caller. */
const char *page_caller(const char *scope);

/* By which name the browser reaches the page; "". */
const char *page_host(const struct page *p);

/* Whether store and spools work; why: that they do not, or what is amiss. */
bool page_is_healthy(struct store *store, char *why, size_t size);

/*
 * Calls write for each line of recent.h: for what this process refused in the
 * last minute, and for callers with max_open_keys open outcomes, whichever
 * process refused them last, and when.  Returns how many.
 */
size_t
page_refusals(struct page *p, void (*write)(struct page *, const char *line));

/* The pages.  Each begins and writes all but the end. */
void page_overview(struct page *p);
void page_find(struct page *p);
void page_key(struct page *p);
void page_effect(struct page *p);
void page_more_effects(struct page *p);
void page_confirm(struct page *p);
void page_do(struct page *p);
void page_many_confirm(struct page *p);
void page_many_do(struct page *p);

/* --- searches and lists -------------------------------------------------- */

/* Room for a field of the search's form but the text. */
#define PAGE_FIELD 33

/* A search, as its form and the links to more of it have it. */
struct page_search {
	struct buf what;                       /* the text to look for */
	const char *as;                        /* as what; "": as any */
	const char *state;                     /* its name; "": any */
	char from[PAGE_FIELD], to[PAGE_FIELD]; /* times */
	struct store_filter filter;            /* points into the others */
	const char *why; /* of a refusal: the field, and the cure */
};

void page_search_init(struct page_search *s);
void page_search_free(struct page_search *s);

/* Reads the fields.  RC_INVALID: .why says which one is wrong. */
enum rc page_search_read(struct page *p, struct page_search *s);

/* Writes the table of the keys that a search found, unless there are none, and
 * a link to what follows.  RC_OK, or why a key could not be read. */
enum rc page_keys(struct page *p, const char *caption,
    const struct page_search *s, const struct store_found *found);

/* The same for the effects of a key, or with 0 those that were given up.
 * after: where the list goes on, or NULL. */
enum rc
page_effects(struct page *p, int64_t key_id, const char *after, bool *any);

/* Offers what can be done with all keys of a search. */
enum rc page_many_offer(struct page *p, const struct page_search *s);

/* --- acts --------------------------------------------------------------- */

enum page_act {
	PAGE_COMPLETED,
	PAGE_NOT_EXECUTED,
	PAGE_FORGET,
	PAGE_RETRY,
	PAGE_DROP,
	PAGE_NACTS
};

/* What an act acts upon: a key, or an effect. */
struct page_target {
	enum page_act act;
	int64_t id;
	bool is_effect;
	struct record key;
	struct effect effect;
	/* of both */
	const char *scope, *path, *name;
	struct page_token bound; /* points into this */
};

/* Writes a button for each act that suits a key, or an effect: one of the two
 * is not NULL. */
void page_acts(
    struct page *p, const struct record *key, const struct effect *effect);

/* Says what the act does. */
void page_act_box(struct page *p, enum page_act act);

/* The page that refuses an act, and its line in the log. */
void page_refuse(struct page *p, const char *why);

/* Logs an act. */
void
page_log_act(struct page *p, const struct page_target *t, const char *result);

/* page_token_make() and page_token_is_good() with this store's secret, now. */
void page_sign(struct page *p, const struct page_token *bound,
    char token[PAGE_TOKEN_SIZE]);
bool page_is_signed(
    struct page *p, const struct page_token *bound, const char *token);

#endif
