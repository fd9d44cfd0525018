/*
 * Acts.  Each has a token of the page that asked, or changes nothing.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "page_form.h"
#include "page_impl.h"
#include "page_token.h"
#include "resolve.h"
#include "route.h"

/* What is logged of an act is about the key, not about the page's own path. */
void
page_log_act(struct page *p, const struct page_target *t, const char *result)
{
	const char *scope = t->is_effect ? t->effect.scope : t->key.scope;
	struct log_request about = { .instance = p->rq->instance,
		.method = p->rq->method,
		.peer = request_param(p->rq, "REMOTE_ADDR"),
		.status = p->answer->response.status };

	about.path = t->is_effect ? t->effect.path : t->key.path;
	about.key = t->is_effect ? t->effect.key : t->key.key;
	scope_tag(scope, about.scope);
	if (t->is_effect)
		log_event(LOG_INFO, "operator", &about, LOG_S("user", p->user),
		    LOG_S("act", page_act_name(t->act)),
		    LOG_S("result", result), LOG_I("effect", t->id));
	else
		log_event(LOG_INFO, "operator", &about, LOG_S("user", p->user),
		    LOG_S("act", page_act_name(t->act)),
		    LOG_S("result", result));
}

void
page_refuse(struct page *p, const char *why)
{
	page_say(p, 403, "Refused", why);
	log_event(LOG_WARN, "operator-refused", p->rq->log,
	    LOG_S("user", p->user), LOG_S("why", why));
}

bool
page_may_act(struct page *p)
{
	if (!p->admin)
		page_refuse(
		    p, "Only the users in admin_users may change anything.");
	return p->admin;
}

bool
page_has_form(struct page *p)
{
	if (p->rq->body_state == BODY_TOO_LARGE)
		page_say(p, 413, "Too large", "The answer is too large.");
	else if (p->rq->body_state != BODY_WHOLE)
		page_say(
		    p, 400, "Incomplete", "The form did not arrive whole.");
	return p->rq->body_state == BODY_WHOLE;
}

/* --- the answer that an operator gives ------------------------------------ */

/* A browser sends each line break as CRLF (HTML, section 4.10.22.4). */
static void
unix_lines(struct buf *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] != '\r' || text->data[i + 1] != '\n')
			text->data[n++] = text->data[i];
	buf_truncate(text, n);
}

/* --- acts --------------------------------------------------------------- */

/* Copies a text to a spool; NULL: *rc says why. */
static struct spool *
spool_text(const struct buf *text, enum rc *rc)
{
	struct spool *spool = spool_new();

	*rc = spool != NULL ? spool_write(spool, text->data, text->len)
			    : RC_NOMEM;
	if (*rc == RC_OK)
		return spool;
	spool_free(spool);
	return NULL;
}

/* Fills in the outcome with the response that the form has.  RC_INVALID: it is
 * none, and the operator was asked again. */
static enum rc
read_given(struct page *p, const struct page_target *t, const struct buf *text,
    struct store_outcome *st)
{
	char why[RESOLVE_WHY];
	struct spool *given;
	enum rc rc;

	given = spool_text(text, &rc);
	if (given == NULL)
		return rc;
	if (!resolve_completed(
		route_find(p->conf, t->key.path), &given, text->len, st, why)) {
		page_ask(p, t, why, text->data);
		rc = RC_INVALID;
	}
	spool_free(given);
	return rc;
}

/* RC_INVALID: the operator was asked again. */
static enum rc
completed(struct page *p, const struct page_target *t, struct store_outcome *st)
{
	struct buf text;
	enum rc rc;

	buf_init(&text, LIMIT_ADMIN_BODY);
	rc = page_form_body(p->rq, "response", &text);
	if (rc == RC_INVALID)
		page_ask(p, t, "it has a byte that is no text", text.data);
	if (rc == RC_OK) {
		unix_lines(&text);
		rc = read_given(p, t, &text, st);
	}
	buf_free(&text);
	return rc;
}

/* *kept: retries get the response. */
static enum rc
resolve(struct page *p, const struct page_target *t, bool *kept)
{
	struct store_outcome *st = store_outcome_new(p->store);
	enum rc rc = RC_OK;

	if (st == NULL)
		return RC_NOMEM;
	if (t->act == PAGE_COMPLETED)
		rc = completed(p, t, st);
	else
		resolve_not_executed(st);
	*kept = st->keep;
	if (rc == RC_OK)
		rc = store_resolve_by_operator(
		    p->store, t->id, t->key.attempt, &st);
	store_outcome_free(st);
	return rc;
}

static enum rc
act(struct page *p, const struct page_target *t, bool *kept)
{
	switch (t->act) {
	case PAGE_COMPLETED:
	case PAGE_NOT_EXECUTED:
		return resolve(p, t, kept);
	case PAGE_FORGET:
		return store_forget(p->store, t->id, t->key.state);
	case PAGE_RETRY:
		return store_effect_retry(p->store, t->id);
	case PAGE_DROP:
		return store_effect_drop(p->store, t->id);
	case PAGE_NACTS:
		break;
	}
	assert(!"an act that nothing does");
	return RC_INVALID;
}

static void
say_done(struct page *p, const struct page_target *t, bool kept)
{
	static const char *const done[PAGE_NACTS] = {
		[PAGE_COMPLETED] = "The key is completed: retries get your "
				   "answer.",
		[PAGE_NOT_EXECUTED] = "The key is released: the next retry "
				      "runs.",
		[PAGE_FORGET] = "The key is forgotten.",
		[PAGE_RETRY] = "The effect is due now.",
		[PAGE_DROP] = "The effect is dropped.",
	};

	page_begin(p, 200, "Done");
	page_html_h1(&p->html, "Done");
	page_html_done(&p->html,
	    t->act == PAGE_COMPLETED && !kept
		? "The key is completed, but your answer cannot be kept for "
		  "replay: a retry is told response-not-kept."
		: done[t->act]);
	if (t->act == PAGE_RETRY)
		page_html_to_effect(&p->html, t->id);
	else if (t->act != PAGE_FORGET && t->act != PAGE_DROP)
		page_html_to_key(&p->html, t->id);
	page_html_back(&p->html);
}

static void
perform(struct page *p, const struct page_target *t)
{
	bool kept = false;
	enum rc rc = act(p, t, &kept);

	switch (rc) {
	case RC_OK:
		say_done(p, t, kept);
		page_log_act(p, t, "done");
		break;
	case RC_INVALID:
		if (p->answer->response.status != 400)
			page_refuse(
			    p, "That cannot be done in its present state.");
		page_log_act(p, t, "invalid");
		break;
	case RC_LOST:
		page_refuse(p, "It has changed meanwhile; nothing was done.");
		page_log_act(p, t, "lost");
		break;
	case RC_PENDING:
		page_say(p, 503, "Not recorded yet",
		    "The store is tried again. The key's page will tell "
		    "whether it was recorded.");
		page_log_act(p, t, "pending");
		break;
	default:
		page_store_failed(p, rc);
		page_log_act(p, t, rc_text(rc));
		break;
	}
}

/* --- the form ----------------------------------------------------------- */

/* What the form says, but its answer. */
static bool
read_form(struct page *p, struct page_target *t, struct buf *token)
{
	struct buf name, id;
	bool good;

	buf_init(&name, 32);
	buf_init(&id, 32);
	good = page_form_body(p->rq, "do", &name) == RC_OK &&
	    page_form_body(p->rq, "id", &id) == RC_OK &&
	    page_form_body(p->rq, "token", token) == RC_OK &&
	    page_act_parse(name.data, &t->act) &&
	    (t->id = page_form_number(id.data)) > 0;
	buf_free(&name);
	buf_free(&id);
	return good;
}

static void
try(struct page *p, struct page_target *t, const char *text)
{
	struct page_token bound;
	enum rc rc = page_target_read(p, t);

	if (rc == RC_NOTFOUND) {
		page_refuse(p, "It is not there any more; nothing was done.");
		return;
	}
	if (rc != RC_OK) {
		page_store_failed(p, rc);
		return;
	}
	page_target_bind(p, t, &bound);
	if (page_token_is_good(
		&bound, store_secret(p->store), store_now(p->store), text))
		perform(p, t);
	else {
		page_refuse(p,
		    "The form is not of a page that was shown to you within "
		    "the last hour, or what it is about has changed since. "
		    "Nothing was done: look again.");
		page_log_act(p, t, "refused");
	}
	page_target_free(t);
}

void
page_do(struct page *p)
{
	struct page_target t;
	struct buf token;

	if (!page_may_act(p) || !page_has_form(p))
		return;
	memset(&t, 0, sizeof(t));
	buf_init(&token, PAGE_TOKEN_SIZE);
	if (read_form(p, &t, &token))
		try(p, &t, token.data);
	else
		page_refuse(
		    p, "That is no form of this page; nothing was done.");
	buf_free(&token);
}
