/*
 * An act upon all keys that a search finds: the offer, and the page that asks.
 *
 * That page says how many keys there are, and fixes the moment: what changes or
 * is made later stays as it is.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "page_write.h"
#include "resolve.h"

#include "page_many.h"

#define NAME_SIZE 96

static const struct page_many acts[] = {
	{ PAGE_NOT_EXECUTED, "Release all", " (not executed)", "released",
	    { RECORD_UNKNOWN, RECORD_DEAD_LETTER }, 2, resolve_some },
	{ PAGE_FORGET, "Forget all", "", "forgotten", { RECORD_NONE }, 1,
	    store_forget_some },
};
#define NACTS (sizeof(acts) / sizeof(acts[0]))

static const struct page_many *
find_act(const char *name)
{
	for (size_t i = 0; i < NACTS; i++)
		if (strcmp(page_act_name(acts[i].act), name) == 0)
			return &acts[i];
	return NULL;
}

bool
page_many_state(const struct page_search *s, enum record_state state,
    struct store_browse *b)
{
	memset(b, 0, sizeof(*b));
	b->filter = s->filter;
	if (state == RECORD_NONE)
		return s->filter.state != RECORD_IN_PROGRESS;
	b->filter.state = state;
	return s->filter.state == RECORD_NONE || s->filter.state == state;
}

static enum rc
add_count(
    struct page *p, const struct store_browse *b, struct page_many_count *c)
{
	struct store_found found;
	enum rc rc = store_browse(p->store, b, &found);

	if (rc == RC_OK) {
		c->n += found.count;
		c->more = c->more || !found.all;
	}
	return rc;
}

enum rc
page_many_count(struct page *p, const struct page_many *m,
    const struct page_search *s, const struct store_found *known,
    struct page_many_count *c)
{
	struct page_many_count running = { 0, false };
	struct store_browse b;
	enum rc rc = RC_OK;

	*c = running;
	for (size_t i = 0; i < m->nstates && rc == RC_OK; i++) {
		if (!page_many_state(s, m->states[i], &b))
			continue;
		if (m->states[i] != RECORD_NONE || known == NULL)
			rc = add_count(p, &b, c);
		else
			*c = (struct page_many_count){ known->count,
				!known->all };
	}
	if (rc == RC_OK && m->states[0] == RECORD_NONE &&
	    page_many_state(s, RECORD_IN_PROGRESS, &b))
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
name_act(const struct page_many *m, const struct page_many_count *c,
    char out[NAME_SIZE])
{
	char count[PAGE_COUNT_SIZE];

	page_write_count(c->n, c->more, count);
	snprintf(out, NAME_SIZE, "%s%s %s%s", m->offer, c->more ? "," : "",
	    count, m->what);
	return out;
}

enum rc
page_many_offer(struct page *p, const struct page_search *s,
    const struct store_found *found)
{
	struct page_many_count counts[NACTS];
	char name[NAME_SIZE];
	int64_t all = 0;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < NACTS && rc == RC_OK; i++) {
		rc = page_many_count(p, &acts[i], s, found, &counts[i]);
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

enum rc
page_many_bind(const struct page *p, const struct page_many *m,
    const struct page_search *s, struct buf *text, struct page_token *token)
{
	const char *const parts[] = { s->what.data, s->as, s->state,
		s->from.data, s->to.data };
	enum rc rc = RC_OK;

	for (size_t i = 0; i < 5 && rc == RC_OK; i++) {
		rc = html_query(text, parts[i]);
		if (rc == RC_OK)
			rc = buf_addc(text, '&');
	}
	memset(token, 0, sizeof(*token));
	token->user = p->user;
	token->host = page_host(p);
	token->act = page_act_name(m->act);
	token->state = text->data;
	return rc;
}

/* --- asking ------------------------------------------------------------- */

void
page_many_form(struct page *p, const struct page_many *m,
    const struct page_search *s, int64_t moment, const char *token)
{
	page_html_many_confirm(&p->html, page_act_name(m->act), token, moment);
	write_search(p, s);
}

static void
write_question(struct page *p, const struct page_many *m,
    const struct page_search *s, const char *title)
{
	struct html *html = &p->html;

	page_begin(p, 200, title);
	page_html_h1(html, title);
	page_html_facts(html);
	page_fact(html, "Look for", s->what.data);
	page_fact(html, "As", s->what.len > 0 ? s->as : "");
	page_fact(html, "State", s->state);
	page_fact(html, "Made from", s->from.data);
	page_fact(html, "Made until", s->to.data);
	page_html_facts_end(html);
	page_act_box(p, m->act);
	page_html_p(html,
	    "That is so for each of these keys. A key that is in progress, "
	    "and one that changes or is made from now on, stays as it is.");
}

static void
many_question(
    struct page *p, const struct page_many *m, const struct page_search *s)
{
	const int64_t moment = store_wall(p->store, store_now(p->store));
	char token[PAGE_TOKEN_SIZE], title[NAME_SIZE];
	struct page_token bound = { 0 };
	struct page_many_count count;
	struct buf text;
	enum rc rc = page_many_count(p, m, s, NULL, &count);

	buf_init(&text, PAGE_MANY_TEXT);
	if (rc == RC_OK)
		rc = page_many_bind(p, m, s, &text, &bound);
	bound.changed = moment;
	if (rc == RC_OK)
		rc = page_token_make(
		    &bound, store_secret(p->store), store_now(p->store), token);
	if (rc != RC_OK)
		page_store_failed(p, rc);
	else if (count.n == 0)
		page_say(p, 409, "Nothing to do",
		    "That search finds no key for that.");
	else {
		write_question(p, m, s, name_act(m, &count, title));
		page_many_form(p, m, s, moment, token);
		page_html_many_end(&p->html, title);
	}
	buf_free(&text);
}

const struct page_many *
page_many_read(struct page *p, struct page_search *s, page_form_read *read)
{
	const struct page_many *m;
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
	const struct page_many *m;
	struct page_search s;

	if (!page_may_act(p))
		return;
	page_search_init(&s);
	if ((m = page_many_read(p, &s, page_form_query)) != NULL)
		many_question(p, m, &s);
	page_search_free(&s);
}
