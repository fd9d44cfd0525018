/*
 * Verdict -> a response of oncewrap's own: RFC 9457 problem details, or the
 * Stripe dialect.  One table of codes.
 *
 * Every problem carries Cache-Control: no-store: it describes the current
 * state, and without that field some of its statuses may be cached (RFC 9111,
 * section 4.2.2).
 *
 * This file does not know the cause of a problem, and reads no clock.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "limit.h"
#include "problem.h"

#define API         "api_error"
#define INVALID     "invalid_request_error"
#define IDEMPOTENCY "idempotency_error"

static const struct row {
	const char *name, *title;
	int status, stripe_status;
	const char *stripe_type;
	bool retryable;     /* the client may send the same key again */
	int retry_after;    /* seconds; 0: none */
	const char *detail; /* if a problem has none of its own; or NULL */
} rows[] = {
	[PROBLEM_REQUEST_INVALID] = { "request-invalid",
	    "The request is not valid", 400, 400, INVALID, false, 0, NULL },
	[PROBLEM_KEY_MISSING] = { "key-missing",
	    "An idempotency key is required", 400, 400, INVALID, false, 0,
	    "This resource needs an idempotency key." },
	[PROBLEM_KEY_INVALID] = { "key-invalid",
	    "The idempotency key is not valid", 400, 400, INVALID, false, 0,
	    NULL },
	[PROBLEM_KEY_REUSED] = { "key-reused",
	    "The idempotency key was used for another request", 422, 400,
	    IDEMPOTENCY, false, 0,
	    "This key was used for a different request." },
	[PROBLEM_KEY_IN_PROGRESS] = { "key-in-progress",
	    "A request with this idempotency key is in progress", 409, 409,
	    IDEMPOTENCY, true, RETRY_AFTER_BUSY,
	    "A request with this key is being handled." },
	[PROBLEM_OUTCOME_UNKNOWN] = { "outcome-unknown",
	    "The outcome of the request is unknown", 409, 409, IDEMPOTENCY,
	    true, RETRY_AFTER_UNKNOWN,
	    "It is not known whether this request took effect." },
	[PROBLEM_KEY_EXPIRED] = { "key-expired",
	    "The idempotency key has expired", 410, 400, IDEMPOTENCY, false, 0,
	    "This key was used, and its answer has expired." },
	[PROBLEM_RESPONSE_NOT_KEPT] = { "response-not-kept",
	    "The request was completed, but its response was not kept", 410,
	    410, IDEMPOTENCY, false, 0,
	    "The request was completed, but its answer was not kept." },
	[PROBLEM_SCOPE_REQUIRED] = { "scope-required",
	    "The caller must be known", 403, 401, INVALID, false, 0,
	    "This resource needs an authenticated caller." },
	[PROBLEM_BODY_TOO_LARGE] = { "body-too-large",
	    "The request body is too large", 413, 413, INVALID, false, 0,
	    "The request body is longer than this resource allows." },
	[PROBLEM_BODY_INCOMPLETE] = { "body-incomplete",
	    "The request body is incomplete", 400, 400, INVALID, true, 0,
	    NULL },
	[PROBLEM_TOO_MANY_KEYS] = { "too-many-keys",
	    "The caller uses too many idempotency keys", 429, 429, API, true,
	    RETRY_AFTER_BUSY,
	    "This caller has too many requests in progress." },
	[PROBLEM_REQUEST_TOO_OLD] = { "request-too-old",
	    "The request is too old", 412, 400, INVALID, false, 0, NULL },
	[PROBLEM_STORE_UNAVAILABLE] = { "store-unavailable",
	    "The key store is not available", 503, 503, API, true,
	    RETRY_AFTER_STORE,
	    "The key store is not usable now; this request ran nothing." },
	[PROBLEM_OVERLOADED] = { "overloaded", "Too many requests are waiting",
	    503, 503, API, true, RETRY_AFTER_BUSY,
	    "Too many requests wait to be run; this one was not accepted." },
	[PROBLEM_HANDLER_NOT_STARTED] = { "handler-not-started",
	    "The program could not be started", 502, 502, API, true, 0,
	    "The program could not be started." },
	[PROBLEM_HANDLER_FAILED] = { "handler-failed", "The program failed",
	    502, 502, API, true, 0, NULL },
	[PROBLEM_HANDLER_TIMEOUT] = { "handler-timeout",
	    "The program did not end in time", 504, 504, API, true, 0, NULL },
	[PROBLEM_OUTCOME_NOT_RECORDED] = { "outcome-not-recorded",
	    "The outcome could not be recorded", 500, 500, API, true, 0,
	    "The request ran, but its outcome could not be recorded yet." },
	[PROBLEM_REQUEST_EXPIRED] = { "request-expired",
	    "The request was not begun in time", 408, 408, API, false, 0,
	    NULL },
	[PROBLEM_NOT_FOUND] = { "not-found", "There is no such resource", 404,
	    404, INVALID, false, 0, NULL },
	[PROBLEM_METHOD_NOT_ALLOWED] = { "method-not-allowed",
	    "The method is not allowed here", 405, 405, INVALID, false, 0,
	    NULL },
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *
find(enum problem_code code)
{
	assert(code != PROBLEM_NONE && (size_t)code < NROWS);
	return &rows[code];
}

const char *
problem_name(enum problem_code code)
{
	return code == PROBLEM_NONE ? "none" : find(code)->name;
}

const char *
problem_detail(const struct problem *p)
{
	return p->detail != NULL ? p->detail : find(p->code)->detail;
}

/* "2024-02-29T12:00:00.000Z".  The C library's own functions would read TZ. */
#define TIME_LEN 48

static void
format_time(int64_t ms, char out[TIME_LEN])
{
	int64_t day = ms / 86400000, left = ms % 86400000;
	int64_t era, of_era, year, month;

	if (left < 0)
		left += 86400000, day--;
	/* Years begin in March here, so that a leap day ends a year.  719468
	 * days lie between 0000-03-01 and 1970-01-01; 400 years have 146097
	 * days. */
	day += 719468;
	era = (day >= 0 ? day : day - 146096) / 146097;
	day -= era * 146097;
	of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= of_era * 365 + of_era / 4 - of_era / 100;
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	month += month < 10 ? 3 : -9;
	year = era * 400 + of_era + (month <= 2);
	snprintf(out, TIME_LEN, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d.%03dZ",
	    year, (int)month, (int)day + 1, (int)(left / 3600000),
	    (int)(left / 60000 % 60), (int)(left / 1000 % 60),
	    (int)(left % 1000));
}

/* A JSON object that is being written; the first failure stays.  cJSON is not
 * used: every duplicate of a request gets a problem, and a tree of cJSON's
 * took longer than the lookup of the key. */
struct object {
	struct buf *out;
	enum rc rc;
};

static void
put(struct object *o, const char *text)
{
	if (o->rc == RC_OK)
		o->rc = buf_adds(o->out, text);
}

/* RFC 8259, section 7.  No input here can be invalid UTF-8: all texts are
 * oncewrap's, or from the configuration. */
static void
put_string(struct object *o, const char *s)
{
	char escape[8];
	size_t n;

	put(o, "\"");
	while (*s != '\0' && o->rc == RC_OK) {
		for (n = 0;
		     (unsigned char)s[n] >= ' ' && s[n] != '"' && s[n] != '\\';)
			n++;
		o->rc = buf_add(o->out, s, n);
		s += n;
		if (*s == '\0')
			break;
		snprintf(escape, sizeof(escape),
		    *s == '"' || *s == '\\' ? "\\%c" : "\\u%04x",
		    (unsigned char)*s);
		s++;
		put(o, escape);
	}
	put(o, "\"");
}

/* Writes the name of a member, after a comma if it is not the first. */
static void
put_name(struct object *o, const char *name)
{
	if (o->rc == RC_OK && o->out->len > 0 &&
	    o->out->data[o->out->len - 1] != '{')
		put(o, ",");
	put_string(o, name);
	put(o, ":");
}

static void
add_text(struct object *o, const char *name, const char *value)
{
	put_name(o, name);
	put_string(o, value);
}

static void
add_number(struct object *o, const char *name, int value)
{
	put_name(o, name);
	if (o->rc == RC_OK)
		o->rc = buf_addf(o->out, "%d", value);
}

static void
add_bool(struct object *o, const char *name, bool value)
{
	put_name(o, name);
	put(o, value ? "true" : "false");
}

/* Adds the members that both dialects have, where they have a value. */
static void
add_facts(struct object *o, const struct problem *p)
{
	char time[TIME_LEN];

	if (p->unknown || p->code == PROBLEM_OUTCOME_UNKNOWN)
		add_text(o, "outcome", "unknown");
	if (p->code != PROBLEM_RESPONSE_NOT_KEPT)
		return;
	format_time(p->completed_at, time);
	add_number(o, "original_status", p->original_status);
	add_text(o, "completed_at", time);
}

/* RFC 9457, section 3. */
static void
fill_ietf(struct object *o, const struct problem *p, const struct row *w,
    const char *type)
{
	add_text(o, "type", type);
	add_text(o, "title", w->title);
	add_number(o, "status", p->status != 0 ? p->status : w->status);
	if (problem_detail(p) != NULL)
		add_text(o, "detail", problem_detail(p));
	if (p->instance != NULL)
		add_text(o, "instance", p->instance);
	add_text(o, "code", w->name);
	add_bool(o, "retryable", w->retryable);
	add_facts(o, p);
}

static void
fill_stripe(struct object *o, const struct problem *p, const struct row *w)
{
	put_name(o, "error");
	put(o, "{");
	add_text(o, "type", w->stripe_type);
	add_text(o, "code", w->name);
	add_text(o, "message",
	    problem_detail(p) != NULL ? problem_detail(p) : w->title);
	add_facts(o, p);
	put(o, "}");
}

static enum rc
make_body(const struct problem *p, const char *link, enum conf_dialect dialect,
    struct buf *body)
{
	const struct row *w = find(p->code);
	struct object o = { body, RC_OK };
	struct buf type;

	buf_init(&type, body->max);
	put(&o, "{");
	switch (dialect) {
	case CONF_DIALECT_IETF:
		if (o.rc == RC_OK)
			o.rc = buf_adds(&type, link);
		if (o.rc == RC_OK)
			o.rc = buf_addc(&type, '#');
		if (o.rc == RC_OK)
			o.rc = buf_adds(&type, w->name);
		fill_ietf(&o, p, w, type.data);
		break;
	case CONF_DIALECT_STRIPE:
		fill_stripe(&o, p, w);
		break;
	}
	put(&o, "}");
	buf_free(&type);
	return o.rc;
}

static enum rc
make_fields(const struct problem *p, const char *link,
    enum conf_dialect dialect, struct response *r)
{
	const struct row *w = find(p->code);
	char retry_after[16];
	struct buf described;
	enum rc rc;

	buf_init(&described, LIMIT_HEAD);
	snprintf(retry_after, sizeof(retry_after), "%d", w->retry_after);
	rc = buf_addf(&described, "<%s>; rel=\"describedby\"", link);
	if (rc == RC_OK)
		rc = response_add(r, "Content-Type",
		    dialect == CONF_DIALECT_STRIPE
			? "application/json"
			: "application/problem+json");
	if (rc == RC_OK)
		rc = response_add(r, "Cache-Control", "no-store");
	if (rc == RC_OK)
		rc = response_add(r, "Link", described.data);
	if (rc == RC_OK && w->retry_after > 0)
		rc = response_add(r, "Retry-After", retry_after);
	buf_free(&described);
	return rc;
}

enum rc
problem_make(const struct problem *p, const char *link,
    enum conf_dialect dialect, struct response *response, struct buf *body)
{
	const struct row *w = find(p->code);
	size_t before = body->len;
	enum rc rc;

	buf_clear(&response->fields);
	rc = make_body(p, link, dialect, body);
	if (rc == RC_OK)
		rc = make_fields(p, link, dialect, response);
	if (rc != RC_OK) {
		buf_truncate(body, before);
		buf_clear(&response->fields);
		return rc;
	}
	response->kind = RESPONSE_DOCUMENT;
	response->reason[0] = '\0';
	response->status = w->status;
	if (dialect == CONF_DIALECT_STRIPE)
		response->status = w->stripe_status;
	if (p->status != 0)
		response->status = p->status;
	response->body = body->data + before;
	response->body_len = body->len - before;
	return RC_OK;
}
