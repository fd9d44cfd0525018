/*
 * An act upon all keys that a search finds: the offer, the page that asks, and
 * the act.
 *
 * The page that asks says how many keys there are, and fixes the moment: what
 * changes or is made later stays as it is.  The act walks the search in small
 * transactions for a bounded time, and its page offers to go on.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "resolve.h"
#include "words.h"
#include "page_impl.h"

#define NAME_SIZE 96

/* How long (ms) one request acts. */
#define ACT_TIME 1500

static const char no_form[] = "That is no form of this page; nothing was done.";

static const struct many {
	enum page_act act;
	const char *offer, *what;
} many_acts[RESOLVE_NACTS] = {
	[RESOLVE_RELEASE] = { PAGE_NOT_EXECUTED, "Release all",
	    " (not executed)" },
	[RESOLVE_FORGET] = { PAGE_FORGET, "Forget all", "" },
};

/* A request for one of them. */
struct many_request {
	struct page *page;
	const struct many *many;
	struct page_search search;
	struct buf text; /* the search as no other search has it */
	struct page_token bound;
	char token[PAGE_TOKEN_SIZE];
	struct resolve_many some; /* .moment: of the question */
};

/* --- how many ------------------------------------------------------------- */

struct many_count {
	int64_t n;
	bool more; /* there are more than that */
};

static enum rc
add_count(struct page *p, const struct page_search *s, enum record_state state,
    struct many_count *c)
{
	struct store_browse b = { .after = NULL };
	struct store_found found;
	enum rc rc;

	if (!resolve_filter(&s->filter, state, &b.filter))
		return RC_OK;
	rc = store_browse(p->store, &b, &found);
	if (rc == RC_OK) {
		c->n += found.count;
		c->more = c->more || !found.all;
	}
	return rc;
}

/* Counts the keys of the search that the act is for. */
static enum rc
count_keys(struct page *p, const struct resolve_act *act,
    const struct page_search *s, struct many_count *c)
{
	struct many_count running = { 0, false };
	enum rc rc = RC_OK;

	*c = running;
	for (size_t i = 0; i < act->nstates && rc == RC_OK; i++)
		rc = add_count(p, s, act->states[i], c);
	if (rc == RC_OK && act->states[0] == RECORD_NONE)
		rc = add_count(p, s, RECORD_IN_PROGRESS, &running);
	c->n -= running.n < c->n ? running.n : c->n;
	return rc;
}

/* "Forget all 17", or "Forget all, more than 17". */
static const char *
name_act(const struct many *m, const struct many_count *c, char out[NAME_SIZE])
{
	char text[PAGE_COUNT_SIZE];

	page_write_count(c->n, c->more, text);
	snprintf(out, NAME_SIZE, "%s%s %s%s", m->offer, c->more ? "," : "",
	    text, m->what);
	return out;
}

static void
write_search(struct page *p, const struct page_search *s)
{
	page_html_many_search(
	    &p->html, s->what.data, s->as, s->state, s->from, s->to);
}

enum rc
page_many_offer(struct page *p, const struct page_search *s)
{
	struct many_count counts[RESOLVE_NACTS];
	char name[NAME_SIZE];
	int64_t all = 0;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < RESOLVE_NACTS && rc == RC_OK; i++) {
		rc = count_keys(p, &resolve_acts[i], s, &counts[i]);
		all += counts[i].n;
	}
	if (rc != RC_OK || all == 0)
		return rc;
	page_html_many(&p->html);
	write_search(p, s);
	for (size_t i = 0; i < RESOLVE_NACTS; i++)
		if (counts[i].n > 0)
			page_html_act(&p->html, resolve_acts[i].name,
			    name_act(&many_acts[i], &counts[i], name));
	page_html_acts_end(&p->html);
	return RC_OK;
}

/* --- the request ---------------------------------------------------------- */

/* Makes what the token is bound to, but for the moment.  Only the last part may
 * have any bytes. */
static enum rc
bind_search(struct many_request *m)
{
	const struct page_search *s = &m->search;
	enum rc rc = buf_addf(&m->text, "%s\n%s\n%s\n%s\n%s", s->as, s->state,
	    s->from, s->to, s->what.data);

	m->bound = (struct page_token){ .user = m->page->user,
		.host = page_host(m->page),
		.act = m->some.act->name,
		.state = m->text.data };
	return rc;
}

/* Reads the act and the search; false: the page that says why not was made.
 * The caller calls end_many(). */
static bool
begin_many(struct page *p, struct many_request *m)
{
	char name[32];
	size_t i = 0;
	enum rc rc;

	memset(m, 0, sizeof(*m));
	m->page = p;
	page_search_init(&m->search);
	buf_init(&m->text, (size_t)4 * LIMIT_PATH);
	rc = page_form_text(p->rq, "do", name, sizeof(name));
	while (i < RESOLVE_NACTS && strcmp(resolve_acts[i].name, name) != 0)
		i++;
	if (rc == RC_OK)
		rc = page_search_read(p, &m->search);
	if (rc == RC_INVALID || rc == RC_LIMIT ||
	    (rc == RC_OK && (i == RESOLVE_NACTS || m->search.as[0] == '\0'))) {
		page_not_found(p, "There is no such act.");
		return false;
	}
	m->many = &many_acts[i];
	m->some.act = &resolve_acts[i];
	if (rc == RC_OK)
		rc = bind_search(m);
	if (rc != RC_OK)
		page_store_failed(p, rc);
	return rc == RC_OK;
}

static void
end_many(struct many_request *m)
{
	buf_free(&m->text);
	page_search_free(&m->search);
}

/* Writes the form that acts, and its button. */
static void
write_form(struct many_request *m, const char *label)
{
	struct html *html = &m->page->html;

	page_html_many_confirm(
	    html, m->some.act->name, m->token, m->some.moment);
	write_search(m->page, &m->search);
	/* Of two states: which one is not known, and few are left. */
	if (m->some.left && m->some.act->nstates == 1)
		page_html_many_next(html, m->some.next);
	page_html_many_end(html, label);
}

/* --- asking ------------------------------------------------------------- */

static void
write_question(struct many_request *m, const char *title)
{
	const struct page_search *s = &m->search;
	struct page *p = m->page;
	struct html *html = &p->html;

	page_begin(p, 200, title);
	page_html_h1(html, title);
	page_html_facts(html);
	page_fact(html, "Look for", s->what.data);
	page_fact(html, "As", s->what.len > 0 ? s->as : "");
	page_fact(html, "State", s->state);
	page_fact(html, "Made from", s->from);
	page_fact(html, "Made until", s->to);
	page_html_facts_end(html);
	page_act_box(p, m->many->act);
	page_html_p(html,
	    "That is so for each of these keys. A key that is in progress, "
	    "and one that changes or is made from now on, stays as it is.");
	write_form(m, title);
}

void
page_many_confirm(struct page *p)
{
	struct many_request m;
	struct many_count c;
	char title[NAME_SIZE];
	enum rc rc;

	if (begin_many(p, &m)) {
		m.some.moment = store_wall(p->store, store_now(p->store));
		m.bound.changed = m.some.moment;
		page_sign(p, &m.bound, m.token);
		rc = count_keys(p, m.some.act, &m.search, &c);
		if (rc != RC_OK)
			page_store_failed(p, rc);
		else if (c.n == 0)
			page_sentence(p, 409, "Nothing to do",
			    "That search finds no key for that.");
		else
			write_question(&m, name_act(m.many, &c, title));
	}
	end_many(&m);
}

/* --- the act -------------------------------------------------------------- */

static void
many_log(struct resolve_many *some, const struct record *key, enum rc rc)
{
	const struct many_request *m = some->arg;
	const struct page_target t = { .act = m->many->act,
		.id = key->id,
		.scope = key->scope,
		.path = key->path,
		.name = key->key };

	page_log_act(m->page, &t, resolve_result(rc));
}

static void
write_left(struct many_request *m)
{
	struct many_count c;
	char text[PAGE_COUNT_SIZE], left[96];

	if (count_keys(m->page, m->some.act, &m->search, &c) != RC_OK)
		return;
	c.n -= m->some.stayed < c.n ? m->some.stayed : c.n;
	page_write_count(c.n, c.more, text);
	snprintf(left, sizeof(left), "Left: %s.", text);
	page_html_p(&m->page->html, left);
}

/* Says what was done, and offers to go on; why: it ended early, or "". */
static void
many_write_done(struct many_request *m, const char *why)
{
	const char *title = m->some.left ? "Not all yet" : "Done";
	struct html *html = &m->page->html;
	char text[160];

	page_begin(m->page, 200, title);
	page_html_h1(html, title);
	snprintf(text, sizeof(text), "%" PRId64 " %s %s.", m->some.done,
	    PLURAL(m->some.done, "key is", "keys are"), m->some.act->done);
	page_html_done(html, text);
	if (why[0] != '\0')
		page_html_bad(html, why);
	if (m->some.stayed > 0) {
		snprintf(text, sizeof(text),
		    "%" PRId64 " %s as %s: changed since, or in progress.",
		    m->some.stayed, PLURAL(m->some.stayed, "stays", "stay"),
		    PLURAL(m->some.stayed, "it is", "they are"));
		page_html_p(html, text);
	}
	if (m->some.left) {
		write_left(m);
		write_form(m, "Go on");
	}
	page_html_back(html);
}

static void
many_perform(struct many_request *m)
{
	struct page *p = m->page;
	struct resolve_many *some = &m->some;
	int64_t *to = &some->filter.to;
	char why[512] = "";
	enum rc rc;

	some->store = p->store;
	some->filter = m->search.filter;
	some->every = some->filter.from == 0 && *to == 0;
	/* Those that were made since the question come last. */
	if (*to == 0 || *to > some->moment)
		*to = some->moment;
	some->until_mono = clock_mono() + ACT_TIME;
	some->tell = many_log;
	some->arg = m;
	rc = resolve_many(some);
	if (rc != RC_OK)
		(void)store_why(p->store, rc, why, sizeof(why));
	if (rc == RC_INVALID)
		page_refuse(p, no_form);
	else if (rc != RC_OK && m->some.done == 0)
		page_store_failed(p, rc);
	else
		many_write_done(m, why);
}

void
page_many_do(struct page *p)
{
	struct many_request m;

	if (!begin_many(p, &m)) {
		end_many(&m);
		return;
	}
	m.some.moment = page_form_number(p->rq, "moment");
	m.bound.changed = m.some.moment;
	if (page_form_text(p->rq, "token", m.token, sizeof(m.token)) != RC_OK ||
	    page_form_text(p->rq, "next", m.some.next, sizeof(m.some.next)) !=
		RC_OK)
		page_refuse(p, no_form);
	else if (page_is_signed(p, &m.bound, m.token))
		many_perform(&m);
	else
		page_refuse(p,
		    "The form is not of a page that was shown to you within "
		    "the last hour. Nothing was done: search again.");
	end_many(&m);
}
