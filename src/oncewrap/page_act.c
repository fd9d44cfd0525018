/*
 * What an operator may do, when, and the page that asks first.
 *
 * The store alone decides, in the transaction that makes the change.  What is
 * asked here only keeps the page from offering what would be refused.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "page_form.h"
#include "page_impl.h"
#include "page_token.h"
#include "resolve.h"

static const struct {
	const char *name, *label, *title, *yes;
	bool of_effect;
	const char *what[4]; /* what will happen */
} acts[PAGE_NACTS] = {
	[PAGE_COMPLETED] = { "completed", "It happened: give its answer",
	    "It happened", "Store this answer", false,
	    { "You say that the request was carried out. The key becomes "
	      "completed, with the answer that you give here.",
		"Each retry gets that answer. The program does not run "
		"again." } },
	[PAGE_NOT_EXECUTED] = { "not-executed", "It did not happen: release it",
	    "It did not happen", "Release the key", false,
	    { "You say that the request was not carried out. The key becomes "
	      "failed_retryable.",
		"The next retry runs the program again. A request that was "
		"accepted with 202 runs again at once.",
		"If it was carried out after all, it happens twice." } },
	[PAGE_FORGET] = { "forget", "Forget the key", "Forget the key",
	    "Forget it", false,
	    { "The key is deleted, with its answer, its stored request and "
	      "what its program printed.",
		"The next request with this key is a new one: it runs as "
		"attempt 1, with a new downstream key.",
		"If the request was carried out before, it then happens "
		"twice." } },
	[PAGE_RETRY] = { "retry", "Try it again now", "Try the effect again",
	    "Try it again", true,
	    { "The effect becomes due now, with the same effect key. If it "
	      "was given up, its tries are counted from the first again.",
		"If it was delivered after all, its program must know that "
		"by the effect key." } },
	[PAGE_DROP] = { "drop", "Drop the effect", "Drop the effect", "Drop it",
	    true,
	    { "The effect is deleted, and never delivered.",
		"The next effect of its key has its turn." } },
};

bool
page_act_parse(const char *name, enum page_act *act)
{
	for (int i = 0; i < PAGE_NACTS; i++) {
		if (strcmp(acts[i].name, name) == 0) {
			*act = (enum page_act)i;
			return true;
		}
	}
	return false;
}

const char *
page_act_name(enum page_act act)
{
	return acts[act].name;
}

const char *
page_act_label(enum page_act act)
{
	return acts[act].label;
}

bool
page_act_suits_key(enum page_act act, const struct record *r)
{
	switch (act) {
	case PAGE_COMPLETED:
	case PAGE_NOT_EXECUTED:
		return resolve_refusal(r->state) == NULL;
	case PAGE_FORGET:
		return record_may_change(r->state, RECORD_NONE, true) &&
		    !r->unconfirmed;
	case PAGE_RETRY:
	case PAGE_DROP:
	case PAGE_NACTS:
		break;
	}
	return false;
}

bool
page_act_suits_effect(enum page_act act, const struct effect *e)
{
	if (e->owner != 0)
		return false;
	return act == PAGE_DROP ||
	    (act == PAGE_RETRY && e->state != EFFECT_DELIVERED);
}

/* --- what it acts upon --------------------------------------------------- */

enum rc
page_target_read(struct page *p, struct page_target *t)
{
	t->is_effect = acts[t->act].of_effect;
	return t->is_effect ? store_browse_effect(p->store, t->id, &t->effect)
			    : store_browse_key(p->store, t->id, &t->key, NULL);
}

void
page_target_free(struct page_target *t)
{
	if (t->is_effect)
		effect_free(&t->effect);
	else
		record_free(&t->key);
}

void
page_target_bind(
    const struct page *p, const struct page_target *t, struct page_token *token)
{
	memset(token, 0, sizeof(*token));
	token->user = p->user;
	token->host = page_host(p);
	token->act = acts[t->act].name;
	token->id = t->id;
	if (t->is_effect) {
		token->state = effect_state_name(t->effect.state);
		token->life = t->effect.attempts;
		token->changed = t->effect.updated_at;
	} else {
		token->state = record_state_name(t->key.state);
		token->life = t->key.attempt;
		token->changed = t->key.updated_at;
	}
}

/* --- asking ------------------------------------------------------------- */

void
page_act_box(struct page *p, enum page_act act)
{
	const char *const *what = acts[act].what;

	page_html_box(&p->html);
	for (int i = 0; i < 4 && what[i] != NULL; i++)
		page_html_p(&p->html, what[i]);
	page_html_box_end(&p->html);
}

static void
write_what(struct page *p, const struct page_target *t)
{
	struct html *html = &p->html;

	page_html_h1(html, acts[t->act].title);
	page_html_facts(html);
	if (t->is_effect) {
		page_html_fact_number(html, "Effect", t->effect.id);
		page_html_fact(html, "Topic", t->effect.topic);
		page_html_fact(html, "Key", t->effect.key);
		page_html_fact(
		    html, "State", effect_state_name(t->effect.state));
	} else {
		page_html_fact(html, "Key", t->key.key);
		page_html_fact(html, "Path", t->key.path);
		page_html_fact(html, "Caller",
		    t->key.scope[0] != '\0' ? t->key.scope : "(none)");
		page_html_fact(html, "State", record_state_name(t->key.state));
	}
	page_html_facts_end(html);
	page_act_box(p, t->act);
}

void
page_ask(struct page *p, const struct page_target *t, const char *why,
    const char *text)
{
	struct html *html = &p->html;
	struct page_token bound;
	char token[PAGE_TOKEN_SIZE];
	enum rc rc;

	page_target_bind(p, t, &bound);
	rc = page_token_make(
	    &bound, store_secret(p->store), store_now(p->store), token);
	if (rc != RC_OK) {
		page_store_failed(p, rc);
		return;
	}
	page_begin(p, why != NULL ? 400 : 200, acts[t->act].title);
	write_what(p, t);
	if (why != NULL)
		page_html_bad_response(html, why);
	page_html_confirm(html, acts[t->act].name, t->id, token);
	if (t->act == PAGE_COMPLETED)
		page_html_response_area(html, text != NULL ? text : "",
		    text != NULL ? strlen(text) : 0);
	page_html_confirm_end(
	    html, acts[t->act].yes, t->is_effect ? "effect" : "key", t->id);
}

static bool
suits(const struct page_target *t)
{
	return t->is_effect ? page_act_suits_effect(t->act, &t->effect)
			    : page_act_suits_key(t->act, &t->key);
}

static void
refuse_state(struct page *p, const struct page_target *t)
{
	const bool resolves =
	    t->act == PAGE_COMPLETED || t->act == PAGE_NOT_EXECUTED;
	const char *why = resolves ? resolve_refusal(t->key.state) : NULL;
	char text[160];

	snprintf(text, sizeof(text), "The key is %s: %s.",
	    record_state_name(t->key.state), why != NULL ? why : "");
	page_say(p, 409, acts[t->act].title,
	    why != NULL ? text : "That cannot be done in its present state.");
}

static void
ask(struct page *p, struct page_target *t)
{
	enum rc rc = page_target_read(p, t);

	if (rc == RC_NOTFOUND) {
		page_not_found(p,
		    t->is_effect ? "There is no such effect."
				 : "There is no such key.");
		return;
	}
	if (rc != RC_OK) {
		page_store_failed(p, rc);
		return;
	}
	if (suits(t))
		page_ask(p, t, NULL, NULL);
	else
		refuse_state(p, t);
	page_target_free(t);
}

void
page_confirm(struct page *p)
{
	struct page_target t;
	struct buf name;

	if (!page_may_act(p))
		return;
	memset(&t, 0, sizeof(t));
	t.id = page_id(p->rq);
	buf_init(&name, 32);
	if (page_form_query(p->rq, "do", &name) != RC_OK ||
	    !page_act_parse(name.data, &t.act))
		page_not_found(p, "There is no such act.");
	else
		ask(p, &t);
	buf_free(&name);
}
