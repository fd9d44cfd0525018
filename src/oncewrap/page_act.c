/*
 * Acts upon one key or one effect: when an operator may do what, the page that
 * asks first, and the act, which needs the token of the page that asked.
 *
 * The store alone decides, in the transaction that makes the change.  What is
 * asked here only keeps the page from offering what would be refused.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "resolve.h"
#include "route.h"
#include "page_impl.h"

static const struct {
	const char *name, *label, *title, *yes;
	bool of_effect;
	const char *what[3]; /* what will happen */
	const char *done;
} acts[PAGE_NACTS] = {
	[PAGE_COMPLETED] = { "completed", "It happened: give its answer",
	    "It happened", "Store this answer", false,
	    { "You say that the request was carried out. The key becomes "
	      "completed, with the answer that you give here.",
		"Each retry gets that answer. The program does not run "
		"again." },
	    "The key is completed: retries get your answer." },
	[PAGE_NOT_EXECUTED] = { "not-executed", "It did not happen: release it",
	    "It did not happen", "Release the key", false,
	    { "You say that the request was not carried out. The key becomes "
	      "failed_retryable.",
		"The next retry runs the program again. A request that was "
		"accepted with 202 runs again at once.",
		"If it was carried out after all, it happens twice." },
	    "The key is released: the next retry runs." },
	[PAGE_FORGET] = { "forget", "Forget the key", "Forget the key",
	    "Forget it", false,
	    { "The key is deleted, with its answer, its stored request and "
	      "what its program printed.",
		"The next request with this key is a new one: it runs as "
		"attempt 1, with a new downstream key.",
		"If the request was carried out before, it then happens "
		"twice." },
	    "The key is forgotten." },
	[PAGE_RETRY] = { "retry", "Try it again now", "Try the effect again",
	    "Try it again", true,
	    { "The effect becomes due now, with the same effect key. If it "
	      "was given up, its tries are counted from the first again.",
		"If it was delivered after all, its program must know that "
		"by the effect key." },
	    "The effect is due now." },
	[PAGE_DROP] = { "drop", "Drop the effect", "Drop the effect", "Drop it",
	    true,
	    { "The effect is deleted, and never delivered.",
		"The next effect of its key has its turn." },
	    "The effect is dropped." },
};

static bool
act_suits(
    enum page_act act, const struct record *key, const struct effect *effect)
{
	if (acts[act].of_effect != (effect != NULL))
		return false;
	if (effect != NULL)
		return effect->owner == 0 &&
		    (act == PAGE_DROP || effect->state != EFFECT_DELIVERED);
	if (act == PAGE_FORGET)
		return record_may_change(key->state, RECORD_NONE, true) &&
		    !key->unconfirmed;
	return resolve_refusal(key->state) == NULL;
}

/* Whether the act is possible now. */
static bool
target_suits(const struct page_target *t)
{
	return act_suits(t->act, &t->key, t->is_effect ? &t->effect : NULL);
}

void
page_acts(struct page *p, const struct record *key, const struct effect *effect)
{
	if (!p->admin)
		return;
	page_html_acts(&p->html, key != NULL ? key->id : effect->id);
	for (int i = 0; i < PAGE_NACTS; i++)
		if (act_suits((enum page_act)i, key, effect))
			page_html_act(&p->html, acts[i].name, acts[i].label);
	page_html_acts_end(&p->html);
}

/* --- what it acts upon --------------------------------------------------- */

/* Reads the key or the effect of the number .id; RC_NOTFOUND.  After RC_OK the
 * caller calls target_free(). */
static enum rc
target_read(struct page *p, struct page_target *t)
{
	const struct effect *e = &t->effect;
	const struct record *r = &t->key;
	enum rc rc;

	t->is_effect = acts[t->act].of_effect;
	rc = t->is_effect ? store_browse_effect(p->store, t->id, &t->effect)
			  : store_browse_key(p->store, t->id, &t->key, NULL);
	if (rc != RC_OK)
		return rc;
	t->scope = t->is_effect ? e->scope : r->scope;
	t->path = t->is_effect ? e->path : r->path;
	t->name = t->is_effect ? e->key : r->key;
	t->bound = (struct page_token){ .user = p->user,
		.host = page_host(p),
		.act = acts[t->act].name,
		.id = t->id,
		.state = t->is_effect ? effect_state_name(e->state)
				      : record_state_name(r->state),
		.life = t->is_effect ? e->attempts : r->attempt,
		.changed = t->is_effect ? e->updated_at : r->updated_at };
	return RC_OK;
}

static void
target_free(struct page_target *t)
{
	if (t->is_effect)
		effect_free(&t->effect);
	else
		record_free(&t->key);
}

/* Reads the act and its target's number; false: they are not there. */
static bool
read_act(struct page *p, struct page_target *t)
{
	char name[32];
	int act = 0;

	memset(t, 0, sizeof(*t));
	t->id = page_form_number(p->rq, "id");
	if (page_form_text(p->rq, "do", name, sizeof(name)) != RC_OK)
		return false;
	while (act < PAGE_NACTS && strcmp(acts[act].name, name) != 0)
		act++;
	t->act = (enum page_act)act;
	return act < PAGE_NACTS;
}

void
page_sign(
    struct page *p, const struct page_token *bound, char token[PAGE_TOKEN_SIZE])
{
	page_token_make(
	    bound, store_secret(p->store), store_now(p->store), token);
}

bool
page_is_signed(
    struct page *p, const struct page_token *bound, const char *token)
{
	return page_token_is_good(
	    bound, store_secret(p->store), store_now(p->store), token);
}

/* --- asking ------------------------------------------------------------- */

void
page_act_box(struct page *p, enum page_act act)
{
	page_html_box(&p->html);
	for (int i = 0; i < 3 && acts[act].what[i] != NULL; i++)
		page_html_p(&p->html, acts[act].what[i]);
	page_html_box_end(&p->html);
}

/* why: the answer that was given is none; text: that answer; NULL: the first
 * time. */
static void
ask_for_answer(struct page *p, const struct page_target *t, const char *why,
    const char *text)
{
	const char *title = acts[t->act].title;
	struct html *html = &p->html;
	char token[PAGE_TOKEN_SIZE];

	page_sign(p, &t->bound, token);
	page_begin(p, why != NULL ? 400 : 200, title);
	page_html_h1(html, title);
	page_html_facts(html);
	if (t->is_effect) {
		page_html_fact_number(html, "Effect", t->id);
		page_html_fact(html, "Topic", t->effect.topic);
	}
	page_html_fact(html, "Key", t->name);
	page_html_fact(html, "Path", t->path);
	page_html_fact(html, "Caller", page_caller(t->scope));
	page_html_fact(html, "State", t->bound.state);
	page_html_facts_end(html);
	page_act_box(p, t->act);
	if (why != NULL)
		page_html_bad_response(html, why);
	page_html_confirm(html, acts[t->act].name, t->id, token);
	if (t->act == PAGE_COMPLETED)
		page_html_response_area(html, text != NULL ? text : "",
		    text != NULL ? strlen(text) : 0);
	page_html_confirm_end(
	    html, acts[t->act].yes, t->is_effect ? "effect" : "key", t->id);
}

static void
refuse_state(struct page *p, const struct page_target *t)
{
	const char *why =
	    t->act == PAGE_COMPLETED || t->act == PAGE_NOT_EXECUTED
	    ? resolve_refusal(t->key.state)
	    : NULL;
	char text[160];

	snprintf(text, sizeof(text), "The key is %s: %s.", t->bound.state,
	    why != NULL ? why : "");
	page_sentence(p, 409, acts[t->act].title,
	    why != NULL ? text : "That cannot be done in its present state.");
}

void
page_confirm(struct page *p)
{
	struct page_target t;

	if (!read_act(p, &t)) {
		page_not_found(p, "There is no such act.");
		return;
	}
	if (!page_has_read(p, target_read(p, &t),
		t.is_effect ? "There is no such effect."
			    : "There is no such key."))
		return;
	if (target_suits(&t))
		ask_for_answer(p, &t, NULL, NULL);
	else
		refuse_state(p, &t);
	target_free(&t);
}

/* --- refusals and the log ----------------------------------------------- */

void
page_log_act(struct page *p, const struct page_target *t, const char *result)
{
	/* About the key, not about the page's own path. */
	struct log_request about = { .instance = p->rq->instance,
		.method = p->rq->method,
		.peer = request_param(p->rq, "REMOTE_ADDR"),
		.path = t->path,
		.key = t->name,
		.status = p->answer->response.status };
	const struct log_value values[] = { LOG_S("user", p->user),
		LOG_S("act", acts[t->act].name), LOG_S("result", result),
		LOG_I("effect", t->id) };

	scope_tag(t->scope, about.scope);
	log_values(LOG_INFO, "operator", &about, values, t->is_effect ? 4 : 3);
}

void
page_refuse(struct page *p, const char *why)
{
	page_sentence(p, 403, "Refused", why);
	log_event(LOG_WARN, "operator-refused", p->rq->log,
	    LOG_S("user", p->user), LOG_S("why", why));
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

/* Stores the response that the form has.  RC_INVALID: if it is none, the
 * operator was asked again.  *replayable: retries get it. */
static enum rc
act_complete(struct page *p, const struct page_target *t, bool *replayable)
{
	struct resolve_answer given = { .route =
					    route_find(p->conf, t->key.path),
		.why = "it has a byte that is no text" };
	struct buf text;
	enum rc rc;

	buf_init(&text, LIMIT_ADMIN_BODY);
	rc = page_form_value(p->rq, "response", &text);
	if (rc == RC_OK && (given.text = spool_new()) == NULL)
		rc = RC_NOMEM;
	if (rc == RC_OK) {
		unix_lines(&text);
		given.length = text.len;
		rc = spool_write(given.text, text.data, text.len);
	}
	if (rc == RC_OK) {
		given.why[0] = '\0';
		rc = resolve_key(
		    p->store, &resolve_acts[RESOLVE_RELEASE], &t->key, &given);
	}
	if (rc == RC_INVALID && given.why[0] != '\0')
		ask_for_answer(p, t, given.why, text.data);
	*replayable = given.replayable;
	spool_free(given.text);
	buf_free(&text);
	return rc;
}

/* --- acts --------------------------------------------------------------- */

/* *replayable: retries get the response. */
static enum rc
act_on_target(struct page *p, const struct page_target *t, bool *replayable)
{
	switch (t->act) {
	case PAGE_COMPLETED:
		return act_complete(p, t, replayable);
	case PAGE_NOT_EXECUTED:
		return resolve_key(
		    p->store, &resolve_acts[RESOLVE_RELEASE], &t->key, NULL);
	case PAGE_FORGET:
		return resolve_key(
		    p->store, &resolve_acts[RESOLVE_FORGET], &t->key, NULL);
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
write_done(struct page *p, const struct page_target *t, bool replayable)
{
	page_begin(p, 200, "Done");
	page_html_h1(&p->html, "Done");
	page_html_done(&p->html,
	    t->act == PAGE_COMPLETED && !replayable
		? "The key is completed, but your answer cannot be kept for "
		  "replay: a retry is told response-not-kept."
		: acts[t->act].done);
	if (t->act == PAGE_RETRY)
		page_html_to(&p->html, "effect", t->id);
	else if (t->act != PAGE_FORGET && t->act != PAGE_DROP)
		page_html_to(&p->html, "key", t->id);
	page_html_back(&p->html);
}

static void
act_perform(struct page *p, const struct page_target *t)
{
	bool replayable = false;
	enum rc rc = act_on_target(p, t, &replayable);

	if (rc == RC_OK)
		write_done(p, t, replayable);
	else if (rc == RC_LOST)
		page_refuse(p, "It has changed meanwhile; nothing was done.");
	else if (rc == RC_PENDING)
		page_sentence(p, 503, "Not recorded yet",
		    "The store is tried again. The key's page will tell "
		    "whether it was recorded.");
	else if (rc != RC_INVALID)
		page_store_failed(p, rc);
	else if (p->answer->response.status != 400)
		page_refuse(p, "That cannot be done in its present state.");
	page_log_act(p, t, resolve_result(rc));
}

void
page_do(struct page *p)
{
	struct page_target t;
	char token[PAGE_TOKEN_SIZE];
	enum rc rc;

	if (!read_act(p, &t) || t.id == 0 ||
	    page_form_text(p->rq, "token", token, sizeof(token)) != RC_OK) {
		page_refuse(
		    p, "That is no form of this page; nothing was done.");
		return;
	}
	rc = target_read(p, &t);
	if (rc == RC_NOTFOUND)
		page_refuse(p, "It is not there any more; nothing was done.");
	else if (rc != RC_OK)
		page_store_failed(p, rc);
	if (rc != RC_OK)
		return;
	if (page_is_signed(p, &t.bound, token))
		act_perform(p, &t);
	else {
		page_refuse(p,
		    "The form is not of a page that was shown to you within "
		    "the last hour, or what it is about has changed since. "
		    "Nothing was done: look again.");
		page_log_act(p, &t, "refused");
	}
	target_free(&t);
}
