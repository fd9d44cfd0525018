/*
 * The page of one key, and that of one effect.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "page_impl.h"

/* So much of a body is shown (bytes). */
#define BODY_SHOWN 65536

static void
write_time(struct page *p, const char *name, int64_t wall)
{
	char date[PAGE_UTC_SIZE], age[PAGE_AGE_SIZE], text[64];

	if (wall == 0)
		return;
	page_write_utc(wall, date);
	page_write_age(wall > p->wall ? wall - p->wall : p->wall - wall, age);
	snprintf(text, sizeof(text), wall > p->wall ? "in %s" : "%s ago", age);
	page_html_fact_time(&p->html, name, date, text);
}

static void
write_store_time(struct page *p, const char *name, int64_t at)
{
	if (at != 0)
		write_time(p, name, store_wall(p->store, at));
}

/* --- a key -------------------------------------------------------------- */

/* The request that began the last attempt. */
static void
write_request(struct html *html, const struct record *r)
{
	char reference[sizeof("urn:uuid:") + RECORD_UUID_LEN];

	page_fact(html, "Method", r->method);
	page_fact(html, "Client's address", r->peer);
	if (r->instance[0] == '\0')
		return;
	snprintf(reference, sizeof(reference), "urn:uuid:%s", r->instance);
	page_html_fact(html, "Reference", reference);
}

static void
write_life(struct page *p, const struct record *r)
{
	struct html *html = &p->html;

	page_html_facts(html);
	page_html_fact(html, "State", record_state_name(r->state));
	if (r->last_error != NULL)
		page_html_fact_error(html, "Last error", r->last_error);
	page_html_fact(html, "Path", r->path);
	page_html_fact(html, "Caller", page_caller(r->scope));
	write_request(html, r);
	page_html_fact_number(html, "Attempts", r->attempt);
	page_fact(html, "Recovery point", r->recovery_point);
	page_html_fact(html, "Downstream key", r->downstream);
	write_time(p, "Made", r->created_at);
	write_time(p, "Last change", r->updated_at);
	if (r->state == RECORD_IN_PROGRESS)
		write_store_time(p, "Deadline", r->locked_until);
	if (r->queued)
		write_store_time(p, "Runs from", r->queued_at);
	if (r->state == RECORD_UNKNOWN && r->reconcile_after != 0)
		write_store_time(
		    p, "Next try to reconcile", r->reconcile_after);
	if (r->reconcile_attempts > 0)
		page_html_fact_number(
		    html, "Tries to reconcile", r->reconcile_attempts);
	write_store_time(p, "Expires", r->expires_at);
	if (r->accepted)
		page_html_fact(html, "Accepted", "with 202, and run later");
	page_html_facts_end(html);
}

/* A cookie is a credential. */
static void
write_fields(struct html *html, const struct response *head)
{
	struct field field;
	char name[256];
	struct buf value;
	size_t pos = 0;

	while (response_next(&head->fields, &pos, &field)) {
		snprintf(name, sizeof(name), "%.*s", (int)field.name.n,
		    field.name.p);
		buf_init(&value, LIMIT_HEAD);
		if (response_text_is(field.name, "Set-Cookie"))
			(void)buf_adds(&value, "(not shown)");
		else if (buf_add(&value, field.value.p, field.value.n) != RC_OK)
			html->rc = RC_NOMEM;
		page_html_fact(html, name, value.data);
		buf_free(&value);
	}
}

/* Writes the beginning of the body. */
static void
write_body(struct page *p, const struct record *r)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct html *html = &p->html;
	struct response answer;
	struct spool *body = NULL;
	enum rc rc;

	response_init(&answer);
	rc = store_answer(p->store, &identity, r->id, &answer, &body);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		page_html_bad(html, rc_text(rc));
	else if (answer.body_len > BODY_SHOWN) {
		page_html_body_cut(html, BODY_SHOWN);
		page_html_lines(html, answer.body, BODY_SHOWN);
	} else if (answer.body_len > 0) {
		page_html_p(html, "The body:");
		page_html_lines(html, answer.body, answer.body_len);
	}
	spool_free(body);
	response_free(&answer);
}

static void
write_answer(
    struct page *p, const struct record *r, const struct response *head)
{
	struct html *html = &p->html;
	char status[LIMIT_REASON + 16];

	if (r->status == 0)
		return;
	page_html_h2(html, "Answer");
	snprintf(status, sizeof(status), "%d %s", r->status,
	    head->reason[0] != '\0' ? head->reason
				    : response_reason(r->status));
	page_html_facts(html);
	page_html_fact(html, "Status", status);
	write_fields(html, head);
	page_html_fact_number(html, "Bytes of the body", r->body_length);
	page_html_facts_end(html);
	if (!r->replayable)
		page_html_p(html,
		    "The answer is not kept: a retry is told so, and does not "
		    "run again.");
	else if (p->admin)
		write_body(p, r);
	else if (r->body_length > 0)
		page_html_p(
		    html, "Only the users in admin_users see the body.");
}

static void
write_refused(struct html *html, const struct store_output *o)
{
	page_html_h2(html, "What the program printed, which was refused");
	page_html_facts(html);
	page_html_fact_number(html, "Attempt", o->attempt);
	if (o->exit_status >= 0)
		page_html_fact_number(html, "Exit status", o->exit_status);
	if (o->signal > 0)
		page_html_fact_number(html, "Signal", o->signal);
	page_html_fact_number(html, "Bytes in all", o->length);
	page_html_facts_end(html);
	page_html_lines(html, o->bytes.data, o->bytes.len);
}

/* What the program printed, if that was no answer. */
static void
write_output(struct page *p, const struct record *r)
{
	struct html *html = &p->html;
	struct store_output o;
	enum rc rc;

	rc = store_output(p->store, r->id, &o);
	if (rc == RC_NOTFOUND)
		return;
	if (rc != RC_OK) {
		page_html_h2(html, "What the program wrote");
		page_html_bad(html, rc_text(rc));
		return;
	}
	if (o.refused)
		write_refused(html, &o);
	if (o.errors.len > 0) {
		page_html_h2(html, "The end of what it wrote to stderr");
		page_html_lines(html, o.errors.data, o.errors.len);
	}
	store_output_free(&o);
}

void
page_key(struct page *p)
{
	bool any;
	struct response head;
	struct record r;
	char key[PAGE_CUT];
	enum rc rc;

	response_init(&head);
	rc = store_browse_key(
	    p->store, page_form_number(p->rq, "id"), &r, &head);
	if (!page_has_read(p, rc, "There is no such key.")) {
		response_free(&head);
		return;
	}
	page_write_cut(r.key, key, sizeof(key));
	page_begin(p, 200, key);
	page_html_key_title(&p->html, r.key);
	page_acts(p, &r, NULL);
	write_life(p, &r);
	write_answer(p, &r, &head);
	write_output(p, &r);
	rc = page_effects(p, r.id, NULL, &any);
	if (rc != RC_OK)
		page_html_bad(&p->html, rc_text(rc));
	record_free(&r);
	response_free(&head);
}

/* --- an effect ---------------------------------------------------------- */

static void
write_effect(struct page *p, const struct effect *e)
{
	struct html *html = &p->html;

	page_html_facts(html);
	page_html_fact(html, "State", effect_state_name(e->state));
	if (e->last_error != NULL)
		page_html_fact_error(html, "Last error", e->last_error);
	page_html_fact_key(html, "Key", e->key_id, e->key);
	page_html_fact(html, "Path", e->path);
	page_html_fact(html, "Caller", page_caller(e->scope));
	page_html_fact_number(html, "Attempts", e->attempts);
	page_html_fact(html, "Effect key", e->effect_key);
	write_time(p, "Made", e->created_at);
	write_time(p, "Last change", e->updated_at);
	if (e->has_turn && e->next_at > 0)
		write_store_time(p, "Next try", e->next_at);
	if (e->owner != 0)
		page_html_fact(html, "Now", "it is being tried");
	page_html_facts_end(html);
	if (e->reference.len > 0) {
		page_html_h2(html, "Reference");
		page_html_lines(html, e->reference.data, e->reference.len);
	}
}

void
page_effect(struct page *p)
{
	struct effect e;
	enum rc rc;

	rc = store_browse_effect(p->store, page_form_number(p->rq, "id"), &e);
	if (!page_has_read(p, rc, "There is no such effect."))
		return;
	page_begin(p, 200, e.topic);
	page_html_effect_title(&p->html, e.id, e.topic);
	page_acts(p, NULL, &e);
	write_effect(p, &e);
	effect_free(&e);
}
