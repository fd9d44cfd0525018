/*
 * An act upon all keys that a search finds.
 *
 * The page that asks says how many there are, and fixes the moment: what
 * changes or is made later stays as it is.  The act itself walks the search in
 * small transactions, for a bounded time, and offers to go on.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "page_form.h"
#include "page_impl.h"
#include "page_token.h"
#include "page_write.h"
#include "plural.h"
#include "resolve.h"

/* How long (ms) one request acts. */
#define ACT_TIME 1500

#define NAME_SIZE 96

/* How an act upon many keys is done. */
static const struct many {
	enum page_act act;
	const char *offer, *done;
	enum record_state states[2]; /* of the keys; NONE: of any */
	size_t nstates;
	enum rc (*some)(struct store *, struct store_chosen *, size_t);
} acts[] = {
	{ PAGE_NOT_EXECUTED, "Release all", "released",
	    { RECORD_UNKNOWN, RECORD_DEAD_LETTER }, 2, resolve_some },
	{ PAGE_FORGET, "Forget all", "forgotten", { RECORD_NONE }, 1,
	    store_forget_some },
};
#define NACTS (sizeof(acts) / sizeof(acts[0]))

static const struct many *
find_act(const char *name)
{
	for (size_t i = 0; i < NACTS; i++)
		if (strcmp(page_act_name(acts[i].act), name) == 0)
			return &acts[i];
	return NULL;
}

/* Whether the act is upon keys of that state; then b becomes the search for
 * those that also fit s. */
static bool
choose_state(const struct page_search *s, enum record_state state,
    struct store_browse *b)
{
	memset(b, 0, sizeof(*b));
	b->filter = s->filter;
	if (state == RECORD_NONE)
		return s->filter.state != RECORD_IN_PROGRESS;
	b->filter.state = state;
	return s->filter.state == RECORD_NONE || s->filter.state == state;
}

struct count {
	int64_t n;
	bool more; /* there are more than that */
};

static enum rc
add_count(struct page *p, const struct store_browse *b, struct count *c)
{
	struct store_found found;
	enum rc rc = store_browse(p->store, b, &found);

	if (rc == RC_OK) {
		c->n += found.count;
		c->more = c->more || !found.all;
	}
	return rc;
}

/* Counts the keys of the search that the act is for; known: what the search has
 * found, if that is at hand. */
static enum rc
count_keys(struct page *p, const struct many *m, const struct page_search *s,
    const struct store_found *known, struct count *c)
{
	struct count running = { 0, false };
	struct store_browse b;
	enum rc rc = RC_OK;

	*c = running;
	for (size_t i = 0; i < m->nstates && rc == RC_OK; i++) {
		if (!choose_state(s, m->states[i], &b))
			continue;
		if (m->states[i] != RECORD_NONE || known == NULL)
			rc = add_count(p, &b, c);
		else
			*c = (struct count){ known->count, !known->all };
	}
	if (rc == RC_OK && m->states[0] == RECORD_NONE &&
	    choose_state(s, RECORD_IN_PROGRESS, &b))
		rc = add_count(p, &b, &running);
	c->n -= running.n < c->n ? running.n : c->n;
	return rc;
}

static void
write_search(struct page *p, const struct page_search *s)
{
	page_html_many_search(
	    &p->html, s->what.data, s->as, s->state, s->from.data, s->to.data);
}

/* "Forget all 17", or "Forget all, more than 17". */
static const char *
name_act(const struct many *m, const struct count *c, char out[NAME_SIZE])
{
	char count[PAGE_COUNT_SIZE];

	page_write_count(c->n, c->more, count);
	snprintf(
	    out, NAME_SIZE, "%s%s %s", m->offer, c->more ? "," : "", count);
	return out;
}

enum rc
page_many_offer(struct page *p, const struct page_search *s,
    const struct store_found *found)
{
	struct count counts[NACTS];
	char name[NAME_SIZE];
	int64_t all = 0;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < NACTS && rc == RC_OK; i++) {
		rc = count_keys(p, &acts[i], s, found, &counts[i]);
		all += counts[i].n;
	}
	if (rc != RC_OK || all == 0)
		return rc;
	page_html_many(&p->html);
	write_search(p, s);
	for (size_t i = 0; i < NACTS; i++)
		if (counts[i].n > 0)
			page_html_act(&p->html, page_act_name(acts[i].act),
			    name_act(&acts[i], &counts[i], name));
	page_html_acts_end(&p->html);
	return RC_OK;
}

/* --- the token ---------------------------------------------------------- */

/* The search, as a text that no other search has. */
static enum rc
search_text(const struct page_search *s, struct buf *out)
{
	const char *const parts[] = { s->what.data, s->as, s->state,
		s->from.data, s->to.data };
	enum rc rc = RC_OK;

	for (size_t i = 0; i < 5 && rc == RC_OK; i++) {
		rc = html_query(out, parts[i]);
		if (rc == RC_OK)
			rc = buf_addc(out, '&');
	}
	return rc;
}

static void
bind_token(const struct page *p, const struct many *m, const struct buf *text,
    int64_t moment, struct page_token *token)
{
	memset(token, 0, sizeof(*token));
	token->user = p->user;
	token->host = page_host(p);
	token->act = page_act_name(m->act);
	token->state = text->data;
	token->changed = moment;
}

/* --- asking ------------------------------------------------------------- */

static void
many_write_form(struct page *p, const struct many *m,
    const struct page_search *s, int64_t moment, const char *token)
{
	page_html_many_confirm(&p->html, page_act_name(m->act), token, moment);
	write_search(p, s);
}

static void
write_fact(struct html *html, const char *name, const char *value)
{
	if (value[0] != '\0')
		page_html_fact(html, name, value);
}

static void
write_question(struct page *p, const struct many *m,
    const struct page_search *s, const char *title)
{
	struct html *html = &p->html;

	page_begin(p, 200, title);
	page_html_h1(html, title);
	page_html_facts(html);
	write_fact(html, "Look for", s->what.data);
	write_fact(html, "As", s->as);
	write_fact(html, "State", s->state);
	write_fact(html, "Made from", s->from.data);
	write_fact(html, "Made until", s->to.data);
	page_html_facts_end(html);
	page_act_box(p, m->act);
	page_html_p(html,
	    "That is so for each of these keys. A key that is in progress, "
	    "and one that changes or is made from now on, stays as it is.");
}

static void
many_question(struct page *p, const struct many *m, const struct page_search *s)
{
	const int64_t moment = store_wall(p->store, store_now(p->store));
	char token[PAGE_TOKEN_SIZE], title[NAME_SIZE];
	struct page_token bound;
	struct count count;
	struct buf text;
	enum rc rc = count_keys(p, m, s, NULL, &count);

	buf_init(&text, 4 * LIMIT_PATH);
	if (rc == RC_OK)
		rc = search_text(s, &text);
	if (rc == RC_OK) {
		bind_token(p, m, &text, moment, &bound);
		rc = page_token_make(
		    &bound, store_secret(p->store), store_now(p->store), token);
	}
	if (rc != RC_OK)
		page_store_failed(p, rc);
	else if (count.n == 0)
		page_say(p, 409, "Nothing to do",
		    "That search finds no key for that.");
	else {
		write_question(p, m, s, name_act(m, &count, title));
		many_write_form(p, m, s, moment, token);
		page_html_many_end(&p->html, "Yes, do that");
	}
	buf_free(&text);
}

/* --- acting ------------------------------------------------------------- */

/* What came of it so far. */
struct tally {
	const char *token;
	int64_t moment;
	int64_t until; /* mono: the request ends then */
	int64_t done, stayed;
	bool left;
};

/* Acts upon n keys, and logs each. */
static enum rc
act_on(struct page *p, const struct many *m, struct store_chosen *keys,
    struct page_target *targets, size_t n, struct tally *t)
{
	enum rc rc = m->some(p->store, keys, n);

	for (size_t i = 0; i < n; i++) {
		t->done += keys[i].done;
		t->stayed += !keys[i].done;
		page_log_act(p, &targets[i],
		    keys[i].done      ? "done"
			: rc == RC_OK ? "lost"
				      : rc_text(rc));
	}
	return rc;
}

/* Reads keys that were found, from *at on, as many as one transaction takes,
 * and acts upon those that have not changed. */
static enum rc
act_on_some(struct page *p, const struct many *m,
    const struct store_found *found, size_t *at, struct tally *t)
{
	struct page_target targets[STORE_CHOSEN_MAX];
	struct store_chosen keys[STORE_CHOSEN_MAX];
	struct record *r;
	size_t n = 0;
	enum rc rc = RC_OK;

	memset(targets, 0, sizeof(targets));
	while (*at < found->n && n < STORE_CHOSEN_MAX && rc == RC_OK) {
		targets[n].act = m->act;
		r = &targets[n].key;
		rc = store_browse_key(p->store, found->id[(*at)++], r, NULL);
		if (rc == RC_NOTFOUND) {
			rc = RC_OK;
			continue;
		}
		if (rc != RC_OK)
			break;
		if (page_act_suits_key(m->act, r) &&
		    r->updated_at < t->moment) {
			keys[n++] = (struct store_chosen){ .id = r->id,
				.attempt = r->attempt,
				.from = r->state };
			continue;
		}
		t->stayed++;
		record_free(r);
	}
	if (rc == RC_OK && n > 0)
		rc = act_on(p, m, keys, targets, n, t);
	while (n > 0)
		page_target_free(&targets[--n]);
	return rc;
}

static bool
time_is_up(const struct tally *t)
{
	return clock_mono() >= t->until;
}

static enum rc
act_on_found(struct page *p, const struct many *m, struct store_browse *b,
    struct tally *t)
{
	struct store_found found;
	char place[STORE_PLACE];
	size_t i;
	enum rc rc;

	for (;;) {
		i = 0;
		rc = store_browse(p->store, b, &found);
		while (rc == RC_OK && i < found.n && !time_is_up(t))
			rc = act_on_some(p, m, &found, &i, t);
		t->left = rc != RC_OK || i < found.n || found.next[0] != '\0';
		if (!t->left || rc != RC_OK || time_is_up(t))
			return rc;
		memcpy(place, found.next, sizeof(place));
		b->after = place;
	}
}

/* Says what was done, and offers to go on; why: it ended early, or "". */
static void
many_say_done(struct page *p, const struct many *m, const struct page_search *s,
    const struct tally *t, const char *why)
{
	struct html *html = &p->html;
	char text[160];

	page_begin(p, 200, t->left ? "Not all yet" : "Done");
	page_html_h1(html, t->left ? "Not all yet" : "Done");
	snprintf(text, sizeof(text), "%" PRId64 " %s %s.", t->done,
	    PLURAL(t->done, "key is", "keys are"), m->done);
	page_html_done(html, text);
	if (why[0] != '\0')
		page_html_bad(html, why);
	if (t->stayed > 0) {
		snprintf(text, sizeof(text),
		    "%" PRId64 " %s as %s: changed since, or in progress.",
		    t->stayed, PLURAL(t->stayed, "stays", "stay"),
		    PLURAL(t->stayed, "it is", "they are"));
		page_html_p(html, text);
	}
	if (t->left) {
		page_html_p(html, "More may be left.");
		many_write_form(p, m, s, t->moment, t->token);
		page_html_many_end(html, "Go on");
	}
	page_html_back(html);
}

static void
many_perform(struct page *p, const struct many *m, const struct page_search *s,
    struct tally *t)
{
	struct store_browse b;
	char why[512] = "";
	enum rc rc = RC_OK;

	for (size_t i = 0; i < m->nstates && rc == RC_OK && !t->left; i++)
		if (choose_state(s, m->states[i], &b))
			rc = act_on_found(p, m, &b, t);
	if (rc != RC_OK)
		(void)store_why(p->store, rc, why, sizeof(why));
	if (rc != RC_OK && t->done == 0)
		page_store_failed(p, rc);
	else
		many_say_done(p, m, s, t, why);
}

/* Acts, if the token is of the page that asked for just that. */
static void
many_try(struct page *p, const struct many *m, const struct page_search *s,
    struct tally *t)
{
	struct page_token bound;
	struct buf text;
	enum rc rc;

	buf_init(&text, 4 * LIMIT_PATH);
	rc = search_text(s, &text);
	bind_token(p, m, &text, t->moment, &bound);
	if (rc != RC_OK)
		page_store_failed(p, rc);
	else if (page_token_is_good(&bound, store_secret(p->store),
		     store_now(p->store), t->token))
		many_perform(p, m, s, t);
	else
		page_refuse(p,
		    "The form is not of a page that was shown to you within "
		    "the last hour. Nothing was done: search again.");
	buf_free(&text);
}

/* Reads the act and the search; NULL: the page that says why not was made. */
static const struct many *
read_many(struct page *p, struct page_search *s, page_form_read *read)
{
	const struct many *m;
	struct buf name;
	enum rc rc;

	buf_init(&name, 32);
	rc = read(p->rq, "do", &name);
	m = rc == RC_OK ? find_act(name.data) : NULL;
	buf_free(&name);
	if (rc == RC_OK)
		rc = page_search_read(p, s, read);
	if (rc != RC_OK && rc != RC_INVALID && rc != RC_LIMIT) {
		page_store_failed(p, rc);
		return NULL;
	}
	if (m == NULL || rc != RC_OK || s->as[0] == '\0') {
		page_not_found(p, "There is no such act.");
		return NULL;
	}
	return m;
}

void
page_many_confirm(struct page *p)
{
	const struct many *m;
	struct page_search s;

	if (!page_may_act(p))
		return;
	page_search_init(&s);
	if ((m = read_many(p, &s, page_form_query)) != NULL)
		many_question(p, m, &s);
	page_search_free(&s);
}

void
page_many_do(struct page *p)
{
	const struct many *m;
	struct page_search s;
	struct buf token, moment;
	struct tally t = { .until = clock_mono() + ACT_TIME };

	if (!page_may_act(p) || !page_has_form(p))
		return;
	page_search_init(&s);
	buf_init(&token, PAGE_TOKEN_SIZE);
	buf_init(&moment, 32);
	if ((m = read_many(p, &s, page_form_body)) != NULL) {
		if (page_form_body(p->rq, "token", &token) == RC_OK &&
		    page_form_body(p->rq, "moment", &moment) == RC_OK) {
			t.token = token.data;
			t.moment = page_form_number(moment.data);
			many_try(p, m, &s, &t);
		} else
			page_refuse(p,
			    "That is no form of this page; nothing was done.");
	}
	buf_free(&token);
	buf_free(&moment);
	page_search_free(&s);
}
