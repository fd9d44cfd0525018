/*
 * An act upon all keys that a search finds, done: the search is walked in small
 * transactions for a bounded time, and the page offers to go on.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "words.h"
#include "page_many.h"
#include "page_write.h"

/* How long (ms) one request acts. */
#define ACT_TIME 1500

static const char no_form[] = "That is no form of this page; nothing was done.";

/* What came of it so far. */
struct tally {
	const char *token;
	int64_t moment;
	int64_t until; /* mono: the request ends then */
	int64_t done, stayed;
	bool left;
	char place[STORE_PLACE]; /* where the request begins, and the next */
};

/* Acts upon n keys, and logs each. */
static enum rc
act_on(struct page *p, const struct page_many *m, struct store_chosen *keys,
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
act_on_some(struct page *p, const struct page_many *m,
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

/* The oldest first: those that were made since the question come last. */
static enum rc
act_on_found(struct page *p, const struct page_many *m, struct store_browse *b,
    struct tally *t)
{
	struct store_found found;
	size_t i;
	enum rc rc;

	b->oldest = true;
	b->every = b->filter.from == 0 && b->filter.to == 0;
	if (b->filter.to == 0 || b->filter.to > t->moment)
		b->filter.to = t->moment;
	for (;;) {
		i = 0;
		b->after = t->place[0] != '\0' ? t->place : NULL;
		rc = store_browse(p->store, b, &found);
		while (rc == RC_OK && i < found.n && !time_is_up(t))
			rc = act_on_some(p, m, &found, &i, t);
		t->left = rc != RC_OK || i < found.n || found.next[0] != '\0';
		if (rc == RC_OK && i == found.n)
			memcpy(t->place, found.next, sizeof(t->place));
		if (!t->left || rc != RC_OK || time_is_up(t))
			return rc;
	}
}

static void
say_left(struct page *p, const struct page_many *m, const struct page_search *s,
    const struct tally *t)
{
	struct page_many_count c;
	char count[PAGE_COUNT_SIZE], text[96];

	if (page_many_count(p, m, s, NULL, &c) != RC_OK)
		return;
	c.n -= t->stayed < c.n ? t->stayed : c.n;
	page_write_count(c.n, c.more, count);
	snprintf(text, sizeof(text), "Left: %s.", count);
	page_html_p(&p->html, text);
}

/* Says what was done, and offers to go on; why: it ended early, or "". */
static void
many_say_done(struct page *p, const struct page_many *m,
    const struct page_search *s, const struct tally *t, const char *why)
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
		say_left(p, m, s, t);
		page_many_form(p, m, s, t->moment, t->token);
		/* Of two states: which one is not known, and few are left. */
		if (m->nstates == 1)
			page_html_many_next(html, t->place);
		page_html_many_end(html, "Go on");
	}
	page_html_back(html);
}

static void
many_perform(struct page *p, const struct page_many *m,
    const struct page_search *s, struct tally *t)
{
	struct store_browse b;
	char why[512] = "";
	enum rc rc = RC_OK;

	for (size_t i = 0; i < m->nstates && rc == RC_OK && !t->left; i++)
		if (page_many_state(s, m->states[i], &b))
			rc = act_on_found(p, m, &b, t);
	if (rc != RC_OK)
		(void)store_why(p->store, rc, why, sizeof(why));
	if (rc == RC_INVALID)
		page_refuse(p, no_form);
	else if (rc != RC_OK && t->done == 0)
		page_store_failed(p, rc);
	else
		many_say_done(p, m, s, t, why);
}

/* Acts, if the token is of the page that asked for just that. */
static void
many_try(struct page *p, const struct page_many *m, const struct page_search *s,
    struct tally *t)
{
	struct page_token bound;
	struct buf text;
	enum rc rc;

	buf_init(&text, PAGE_MANY_TEXT);
	rc = page_many_bind(p, m, s, &text, &bound);
	bound.changed = t->moment;
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

/* Reads what the page that asked has fixed, and where it ended before. */
static enum rc
read_tally(const struct page *p, struct buf *token, struct tally *t)
{
	struct buf moment, next;
	enum rc rc;

	buf_init(&moment, 32);
	buf_init(&next, STORE_PLACE);
	rc = page_form_body(p->rq, "token", token);
	if (rc == RC_OK)
		rc = page_form_body(p->rq, "moment", &moment);
	if (rc == RC_OK)
		rc = page_form_body(p->rq, "next", &next);
	if (rc == RC_OK) {
		t->token = token->data;
		t->moment = page_form_number(moment.data);
		snprintf(t->place, sizeof(t->place), "%s", next.data);
	}
	buf_free(&moment);
	buf_free(&next);
	return rc;
}

void
page_many_do(struct page *p)
{
	const struct page_many *m;
	struct page_search s;
	struct buf token;
	struct tally t = { .until = clock_mono() + ACT_TIME };

	if (!page_may_act(p) || !page_has_form(p))
		return;
	page_search_init(&s);
	buf_init(&token, PAGE_TOKEN_SIZE);
	m = page_many_read(p, &s, page_form_body);
	if (m != NULL && read_tally(p, &token, &t) == RC_OK)
		many_try(p, m, &s, &t);
	else if (m != NULL)
		page_refuse(p, no_form);
	buf_free(&token);
	page_search_free(&s);
}
