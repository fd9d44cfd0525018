/*
 * Verdict -> a response of oncewrap's own: RFC 9457 problem details, the
 * Stripe dialect, or a page (problem_page.c).  One table of codes.
 *
 * Every problem carries Cache-Control: no-store: it describes the current
 * state, and without that field some of its statuses may be cached (RFC 9111,
 * section 4.2.2).
 *
 * This file does not know the cause of a problem, and reads no clock.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "json.h"

#include "problem.h"

#define API         "api_error"
#define INVALID     "invalid_request_error"
#define IDEMPOTENCY "idempotency_error"

/* Advice that several codes give. */
#define SUBMIT_ANEW                                                         \
	"Nothing was done.  Open the form again and submit it from there; " \
	"reloading this page does not help."
#define RELOAD_SOON                                                          \
	"Nothing was done.  Wait a moment and reload this page: that sends " \
	"the same request again."
#define RELOAD_NOT_NEW                                                         \
	"Reload this page in a moment to see what became of it.  Do not send " \
	"it as a new request: it may have been carried out."

static const struct row {
	const char *title;
	int status, stripe_status;
	const char *stripe_type;
	bool retryable;     /* the client may send the same key again */
	bool safe_new_key;  /* it did nothing: a new key makes no double */
	int retry_after;    /* seconds; 0: none */
	const char *detail; /* if a problem has none of its own; or NULL */
	/* of a page, to its reader: no word that only a programmer knows */
	const char *headline, *advice;
} rows[] = {
	[PROBLEM_REQUEST_INVALID] = { "The request is not valid", 400, 400,
	    INVALID, false, true, 0, NULL,
	    "This request could not be understood",
	    "Nothing was done.  The page that sent it has a mistake: please "
	    "tell the operators of this site the reference below." },
	[PROBLEM_KEY_MISSING] = { "An idempotency key is required", 400, 400,
	    INVALID, false, true, 0, "This resource needs an idempotency key.",
	    "Please submit this from its form again", SUBMIT_ANEW },
	[PROBLEM_KEY_INVALID] = { "The idempotency key is not valid", 400, 400,
	    INVALID, false, true, 0, NULL,
	    "Please submit this from its form again", SUBMIT_ANEW },
	[PROBLEM_KEY_REUSED] = { "The idempotency key was used for another "
				 "request",
	    422, 400, IDEMPOTENCY, false, true, 0,
	    "This key was used for a different request: another method, query, "
	    "media type or body.",
	    "This was sent before, with other content",
	    "What was sent the first time stands, and nothing was done now.  "
	    "To send the changed request as well, open the form again and "
	    "submit it from there." },
	[PROBLEM_KEY_IN_PROGRESS] = { "A request with this idempotency key is "
				      "in progress",
	    409, 409, IDEMPOTENCY, true, false, RETRY_AFTER_BUSY,
	    "A request with this key is being handled.",
	    "Your request is being carried out",
	    "Wait a moment and reload this page: it is not carried out "
	    "twice." },
	[PROBLEM_KEY_OF_ANOTHER] = { "The idempotency key belongs to another "
				     "browser",
	    409, 409, IDEMPOTENCY, false, false, 0,
	    "This key was sent first from another address and with other "
	    "cookies; this request ran nothing.",
	    "This was sent before, from another browser",
	    "Nothing was done now.  If you have sent this form before, look "
	    "whether it took effect.  If not, open the form again and submit "
	    "it from there." },
	[PROBLEM_OUTCOME_UNKNOWN] = { "The outcome of the request is unknown",
	    409, 409, IDEMPOTENCY, true, false, RETRY_AFTER_UNKNOWN,
	    "It is not known whether this request took effect.",
	    "It is not known yet whether this took effect",
	    "Do not send it as a new request: it may have been carried out.  "
	    "Reload this page later, or ask the operators of this site and "
	    "tell them the reference below." },
	[PROBLEM_KEY_EXPIRED] = { "The idempotency key has expired", 410, 400,
	    IDEMPOTENCY, false, false, 0,
	    "This key was used, and its answer has expired.",
	    "This was sent some time ago",
	    "Look whether it took effect before you send it as a new "
	    "request." },
	[PROBLEM_RESPONSE_NOT_KEPT] = { "The request was completed, but its "
					"response was not kept",
	    410, 410, IDEMPOTENCY, false, false, 0,
	    "The request was completed, but its answer was not kept.",
	    "This was carried out",
	    "The answer cannot be shown again.  Do not send it again." },
	[PROBLEM_SCOPE_REQUIRED] = { "The caller must be known", 403, 401,
	    INVALID, false, true, 0,
	    "This resource needs an authenticated caller.", "Please log in",
	    "Nothing was done.  Log in, and submit it again." },
	[PROBLEM_BODY_TOO_LARGE] = { "The request body is too large", 413, 413,
	    INVALID, false, true, 0,
	    "The request body is longer than this resource allows.",
	    "What you sent is too large",
	    "Nothing was done.  Go back and send less, or smaller files." },
	[PROBLEM_BODY_INCOMPLETE] = { "The request body is incomplete", 400,
	    400, INVALID, true, true, 0, NULL, "Not all of it has arrived",
	    "Nothing was done.  Reload this page to send it again." },
	[PROBLEM_TOO_MANY_KEYS] = { "The caller uses too many idempotency keys",
	    429, 429, API, true, true, RETRY_AFTER_BUSY,
	    "This caller has too many requests in progress.",
	    "You have sent too much at once", RELOAD_SOON },
	[PROBLEM_REQUEST_TOO_OLD] = { "The request is too old", 412, 400,
	    INVALID, false, true, 0, NULL, "This came too late", SUBMIT_ANEW },
	[PROBLEM_STORE_UNAVAILABLE] = { "The key store is not available", 503,
	    503, API, true, true, RETRY_AFTER_STORE,
	    "The key store is not usable now; this request ran nothing.",
	    "This cannot be done at the moment",
	    "Wait a moment and reload this page: that sends the same request "
	    "again." },
	[PROBLEM_OVERLOADED] = { "There is no room for more requests now", 503,
	    503, API, true, true, RETRY_AFTER_BUSY,
	    "Too many requests wait to be run; this one was not accepted.",
	    "This site is busy at the moment", RELOAD_SOON },
	[PROBLEM_HANDLER_NOT_STARTED] = { "The program could not be started",
	    502, 502, API, true, true, 0,
	    "The program could not be started; nothing ran.",
	    "This cannot be done at the moment", RELOAD_SOON },
	[PROBLEM_HANDLER_FAILED] = { "The program failed", 502, 502, API, true,
	    false, 0, NULL, "Something went wrong", RELOAD_NOT_NEW },
	[PROBLEM_HANDLER_TIMEOUT] = { "The program did not end in time", 504,
	    504, API, true, false, 0, NULL, "This took too long",
	    RELOAD_NOT_NEW },
	[PROBLEM_OUTCOME_NOT_RECORDED] = { "The key store failed during the "
					   "request",
	    500, 500, API, true, false, 0,
	    "The request ran, but its outcome could not be recorded yet.",
	    "Something went wrong", RELOAD_NOT_NEW },
	[PROBLEM_REQUEST_EXPIRED] = { "The request was not begun in time", 408,
	    408, API, false, true, 0, NULL, "This was not begun in time",
	    SUBMIT_ANEW },
	[PROBLEM_NOT_FOUND] = { "There is no such resource", 404, 404, INVALID,
	    false, true, 0, NULL, "There is nothing here",
	    "Look whether the address is right, and whether you are logged "
	    "in." },
	[PROBLEM_METHOD_NOT_ALLOWED] = { "The method is not allowed here", 405,
	    405, INVALID, false, true, 0, NULL, "This cannot be done here",
	    "Nothing was done." },
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *
problem_find(enum problem_code code)
{
	assert(code != PROBLEM_NONE && (size_t)code < NROWS);
	return &rows[code];
}

const char *
problem_name(enum problem_code code)
{
#define NAME(unused, id, name) [PROBLEM_##id] = (name),
	static const char *const names[] = { [PROBLEM_NONE] = "none",
		METRICS_CODES(NAME, ) };
#undef NAME

	assert((size_t)code < NROWS);
	return names[code];
}

const char *
problem_detail(const struct problem *p)
{
	return p->detail != NULL ? p->detail : problem_find(p->code)->detail;
}

int
problem_status(const struct problem *p, enum conf_dialect dialect)
{
	const struct row *w = problem_find(p->code);

	if (p->status != 0)
		return p->status;
	return dialect == CONF_DIALECT_STRIPE ? w->stripe_status : w->status;
}

/* Adds the members that both dialects have, where they have a value. */
static void
add_facts(struct json_write *o, const struct problem_view *v)
{
	if (v->unknown)
		json_write_text(o, "outcome", "unknown");
	if (v->original_status == 0)
		return;
	json_write_number(o, "original_status", v->original_status);
	json_write_text(o, "completed_at", v->completed_at);
}

/* RFC 9457, section 3. */
static void
fill_ietf(struct json_write *o, const struct problem_view *v)
{
	struct buf type;

	buf_init(&type, o->out->max);
	buf_addf(&type, "%s#%s", v->link, v->name);
	json_write_text(o, "type", type.data);
	buf_free(&type);
	json_write_text(o, "title", v->title);
	json_write_number(o, "status", v->status);
	if (v->detail != NULL)
		json_write_text(o, "detail", v->detail);
	if (v->instance != NULL)
		json_write_text(o, "instance", v->instance);
	json_write_text(o, "code", v->name);
	json_write_bool(o, "retryable", v->retryable);
	json_write_bool(o, "safe_new_key", v->safe_new_key);
	add_facts(o, v);
}

static void
fill_stripe(
    struct json_write *o, const struct problem_view *v, const char *type)
{
	json_write_name(o, "error");
	json_write_raw(o, "{");
	json_write_text(o, "type", type);
	json_write_text(o, "code", v->name);
	json_write_text(o, "message", v->detail != NULL ? v->detail : v->title);
	add_facts(o, v);
	json_write_raw(o, "}");
}

static enum rc
make_json(const struct problem_view *v, const char *stripe_type,
    enum conf_dialect dialect, struct buf *body)
{
	struct json_write o = { body, RC_OK };

	json_write_raw(&o, "{");
	switch (dialect) {
	case CONF_DIALECT_IETF:
		fill_ietf(&o, v);
		break;
	case CONF_DIALECT_STRIPE:
		fill_stripe(&o, v, stripe_type);
		break;
	}
	json_write_raw(&o, "}");
	return o.rc;
}

static void
make_view(const struct problem *p, const char *link, enum conf_dialect dialect,
    struct problem_view *v)
{
	const struct row *w = problem_find(p->code);

	memset(v, 0, sizeof(*v));
	v->name = problem_name(p->code);
	v->title = w->title;
	v->detail = problem_detail(p);
	v->instance = p->instance;
	v->key = p->key;
	v->headline = w->headline;
	v->link = link;
	v->status = problem_status(p, dialect);
	v->retryable = w->retryable;
	v->unknown = p->unknown || p->code == PROBLEM_OUTCOME_UNKNOWN;
	v->safe_new_key = w->safe_new_key && !v->unknown && !p->acted;
	v->advice =
	    w->safe_new_key && !v->safe_new_key ? RELOAD_NOT_NEW : w->advice;
	/* Any 503 is over after a while (RFC 9110, section 15.6.4). */
	v->retry_after = p->status == 503 ? RETRY_AFTER_BUSY : w->retry_after;
	if (p->code != PROBLEM_RESPONSE_NOT_KEPT)
		return;
	v->original_status = p->original_status;
	date_put_rfc3339(p->completed_at, v->completed_at);
}

static const char *
media_type(const struct problem *p, enum conf_dialect dialect)
{
	if (p->html)
		return "text/html; charset=utf-8";
	return dialect == CONF_DIALECT_STRIPE ? "application/json"
					      : "application/problem+json";
}

#define POLICY                                                               \
	"default-src 'none'; style-src 'unsafe-inline'%s; base-uri 'none'; " \
	"form-action 'none'; frame-ancestors 'none'"

static enum rc
make_fields(const struct problem *p, const struct problem_view *v,
    enum conf_dialect dialect, struct response *r)
{
	const bool own = p->page.bytes != NULL; /* the operator's */
	char retry_after[16], policy[256];
	struct buf described;
	enum rc rc;

	/* No script runs in a page, nothing frames it, and only one of the
	 * operator loads anything, from its own site. */
	(void)snprintf(policy, sizeof(policy), POLICY,
	    own ? " 'self'; img-src 'self' data:; font-src 'self'" : "");
	snprintf(retry_after, sizeof(retry_after), "%d", v->retry_after);
	buf_init(&described, LIMIT_HEAD);
	rc = buf_addf(&described, "<%s>; rel=\"describedby\"", v->link);

	const struct {
		bool given;
		const char *name, *value;
	} fields[] = {
		{ true, "Content-Type", media_type(p, dialect) },
		{ true, "Cache-Control", "no-store" },
		{ true, "Vary", own ? "Accept, Accept-Language" : "Accept" },
		{ true, "Link", described.data },
		{ v->retry_after > 0, "Retry-After", retry_after },
		{ p->html, "Content-Security-Policy", policy },
		{ p->html, "X-Content-Type-Options", "nosniff" },
		{ p->html && own && *p->page.language != '\0',
		    "Content-Language", p->page.language },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (rc == RC_OK && fields[i].given)
			rc = response_add(r, fields[i].name, fields[i].value);
	buf_free(&described);
	return rc;
}

/* A template that gets too long leaves nothing, and the page is ours. */
static enum rc
make_page(struct problem *p, const struct problem_view *view, struct buf *body)
{
	const size_t before = body->len;

	if (p->page.bytes != NULL) {
		if (problem_page_fill(&p->page, view, body) == RC_OK)
			return RC_OK;
		buf_truncate(body, before);
		p->page.bytes = NULL;
	}
	return problem_page(view, body);
}

enum rc
problem_make(const struct problem *problem, const char *link,
    enum conf_dialect dialect, struct response *response, struct buf *body)
{
	struct problem p = *problem;
	struct problem_view view;
	size_t before = body->len;
	enum rc rc;

	buf_clear(&response->fields);
	make_view(&p, link, dialect, &view);
	rc = p.html ? make_page(&p, &view, body)
		    : make_json(&view, problem_find(p.code)->stripe_type,
			  dialect, body);
	if (rc == RC_OK)
		rc = make_fields(&p, &view, dialect, response);
	if (rc != RC_OK) {
		buf_truncate(body, before);
		buf_clear(&response->fields);
		return rc;
	}
	response->kind = RESPONSE_DOCUMENT;
	response->reason[0] = '\0';
	response->status = view.status;
	response->body = body->data + before;
	response->body_len = body->len - before;
	return RC_OK;
}
