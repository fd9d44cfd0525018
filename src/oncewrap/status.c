/*
 * The callers that may use a key may see its status: the scope of the asking
 * request is made by the rule of the key's own route.  For all other
 * callers there is no such resource, as for a key past its retention.
 *
 * Nothing here changes a key.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "decide.h"
#include "fault.h"
#include "html.h"
#include "json.h"
#include "limit.h"
#include "log.h"
#include "prefer.h"
#include "respond.h"
#include "route.h"
#include "scope.h"
#include "status.h"

#define DIGITS "0123456789abcdef"
#define RESULT "/result"

/* Makes the record durable: what a client reads must still be true after a
 * crash. */
static enum rc
status_read(struct store *store, const char *resource, struct record *s)
{
	enum rc rc = store_status(store, resource, s);

	if (rc == RC_OK)
		rc = store_make_durable(store, s);
	return rc;
}

/* --- the document ------------------------------------------------------- */

static enum rc
add_document(const struct store *store, struct answer *answer,
    const char *resource, enum record_state state, const struct record *s)
{
	const int64_t expires =
	    s->expires_at != 0 ? store_wall(store, s->expires_at) : 0;
	struct json_write o = { &answer->text, RC_OK };
	enum rc rc;

	json_write_raw(&o, "{");
	json_write_text(&o, "id", resource);
	json_write_text(&o, "state", record_state_name(state));
	json_write_number(&o, "attempt", s->attempt);
	json_write_text(&o, "recovery_point", s->recovery_point);
	json_write_time(&o, "created_at", s->created_at);
	json_write_time(&o, "updated_at", s->updated_at);
	json_write_time(&o, "expires_at", expires);
	json_write_raw(&o, "}");
	rc = o.rc;
	if (rc == RC_OK)
		rc = response_add(
		    &answer->response, "Content-Type", "application/json");
	if (rc == RC_OK) {
		answer->response.body = answer->text.data;
		answer->response.body_len = answer->text.len;
	}
	return rc;
}

/* Adds Retry-After for a key without a final outcome. */
static void
add_retry_after(struct response *response, enum record_state state)
{
	char text[16];
	int seconds = 0;

	switch (state) {
	case RECORD_PENDING:
	case RECORD_IN_PROGRESS:
	case RECORD_FAILED_RETRYABLE:
		seconds = RETRY_AFTER_BUSY;
		break;
	case RECORD_UNKNOWN:
	case RECORD_DEAD_LETTER:
		seconds = RETRY_AFTER_UNKNOWN;
		break;
	case RECORD_NONE:
	case RECORD_COMPLETED:
	case RECORD_EXPIRED:
		return;
	}
	snprintf(text, sizeof(text), "%d", seconds);
	(void)response_add(response, "Retry-After", text);
}

/* --- 202 ---------------------------------------------------------------- */

static void
add_location(struct response *response, const char *base, const char *resource)
{
	struct buf uri;

	buf_init(&uri, LIMIT_HEAD);
	if (html_query(&uri, base) == RC_OK &&
	    buf_addf(&uri, "/%s", resource) == RC_OK)
		(void)response_add(response, "Location", uri.data);
	buf_free(&uri);
}

void
status_accepted(struct store *store, const struct conf *conf,
    const struct request *rq, const char *resource, struct answer *answer)
{
	struct response *response = &answer->response;
	struct record s;
	enum rc rc;

	response->status = 202;
	/* A reload may have removed status_path: then the client can only
	 * retry. */
	if (conf->status_path != NULL)
		add_location(response, conf->status_path, resource);
	add_retry_after(response, RECORD_PENDING);
	if (prefer_respond_async(rq))
		(void)response_add(
		    response, "Preference-Applied", "respond-async");
	(void)response_add(response, "Cache-Control", "no-store");
	rc = status_read(store, resource, &s);
	if (rc == RC_OK)
		rc = add_document(store, answer, resource, s.state, &s);
	if (rc != RC_OK)
		log_event(LOG_WARN, "status-not-read", rq->log,
		    LOG_S("why", rc_text(rc)));
	record_free(&s);
}

/* --- the resource ------------------------------------------------------- */

/* Whether the asking request has the scope of the key. */
static enum rc
check_scope(struct store *store, const struct conf *conf,
    const struct request *rq, const struct record *s)
{
	const struct conf_route *rule = route_find(conf, s->path);
	struct buf scope;
	enum rc rc;
	bool empty;

	buf_init(&scope, LIMIT_SCOPE);
	rc = scope_make(rq, &rule->scope, store_secret(store), &scope, &empty);
	if (rc == RC_LIMIT || rc == RC_INVALID ||
	    (rc == RC_OK && strcmp(scope.data, s->scope) != 0))
		rc = RC_NOTFOUND;
	buf_free(&scope);
	return rc;
}

/* RC_OK and the decision for a retry; RC_NOTFOUND: no such resource for this
 * caller; or the store failed. */
static enum rc
status_look(struct store *store, const struct conf *conf,
    const struct request *rq, struct record *s, enum decision *decision)
{
	const int64_t now = store_now(store);
	enum rc rc = check_scope(store, conf, rq, s);

	if (rc != RC_OK)
		return rc;
	FAULT(STATUS_FOUND);
	if (decide_is_past(s, now))
		return RC_NOTFOUND;
	*decision = decide(s, true, true, now);
	return RC_OK;
}

/* The path below status_path: "/<id>", or "/<id>/result". */
static bool
status_parse(
    const char *path, char resource[RECORD_RESOURCE_LEN + 1], bool *result)
{
	const char *rest = path + 1 + RECORD_RESOURCE_LEN;

	if (path[0] != '/' || strspn(path + 1, DIGITS) != RECORD_RESOURCE_LEN)
		return false;
	memcpy(resource, path + 1, RECORD_RESOURCE_LEN);
	resource[RECORD_RESOURCE_LEN] = '\0';
	*result = strcmp(rest, RESULT) == 0;
	return *result || *rest == '\0';
}

static void
status_show(const struct store *store, const struct record *s,
    enum record_state state, const char *resource, struct answer *answer)
{
	(void)response_add(&answer->response, "Cache-Control", "no-store");
	add_retry_after(&answer->response, state);
	(void)add_document(store, answer, resource, state, s);
}

/* The request may have run, or may yet run: a new key could make a double. */
static void
show_no_result(const struct conf *conf, const struct request *rq,
    enum record_state state, struct answer *answer)
{
	struct problem problem = { .code = PROBLEM_NOT_FOUND,
		.acted = true,
		.detail = "The request has no answer yet." };

	respond_problem(answer, &problem, conf, rq);
	add_retry_after(&answer->response, state);
}

/* Gets the response for a retry. */
static enum rc
show_answer(struct store *store, const struct conf *conf,
    const struct record *s, struct answer *answer)
{
	const struct store_identity identity = { s->scope, s->path, s->key };
	enum rc rc = respond_fetch(store, &identity, s, NULL, answer);

	if (rc == RC_OK)
		respond_mark_replay(
		    store, route_find(conf, s->path), s, answer);
	return rc;
}

static enum rc
status_get(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	const char *below = rq->path + strlen(conf->status_path);
	char resource[RECORD_RESOURCE_LEN + 1];
	enum decision decision;
	struct record s;
	enum rc rc;
	bool result;

	if (!status_parse(below, resource, &result))
		return RC_NOTFOUND;
	rc = status_read(store, resource, &s);
	if (rc == RC_OK)
		rc = status_look(store, conf, rq, &s, &decision);
	if (rc == RC_OK && !result)
		/* The key counts as a marker, even before a pass has made it
		 * one. */
		status_show(store, &s,
		    decision == DECIDE_GONE ? RECORD_EXPIRED : s.state,
		    resource, answer);
	else if (rc == RC_OK && decision == DECIDE_REPLAY)
		rc = show_answer(store, conf, &s, answer);
	else if (rc == RC_OK && decision == DECIDE_NOT_KEPT)
		respond_not_kept(answer, &s, conf, rq);
	else if (rc == RC_OK && decision == DECIDE_GONE)
		respond_refuse(answer, PROBLEM_KEY_EXPIRED, NULL, conf, rq);
	else if (rc == RC_OK)
		show_no_result(conf, rq, s.state, answer);
	record_free(&s);
	return rc;
}

void
status_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	struct problem problem;
	char why[512];
	enum rc rc;

	assert(route_is_status(conf, rq->path));
	if (strcmp(rq->method, "GET") != 0 && strcmp(rq->method, "HEAD") != 0) {
		respond_refuse(answer, PROBLEM_METHOD_NOT_ALLOWED,
		    "A status resource can only be read.", conf, rq);
		(void)response_add(&answer->response, "Allow", "GET, HEAD");
		return;
	}
	rc = status_get(store, conf, rq, answer);
	if (rc == RC_OK)
		return;
	if (rc == RC_NOTFOUND) {
		respond_refuse(answer, PROBLEM_NOT_FOUND,
		    "There is no such resource.", conf, rq);
		return;
	}
	log_event(LOG_ERROR, "store-unavailable", rq->log,
	    LOG_S("why", store_why(store, rc, why, sizeof(why))));
	problem = (struct problem){ .code = PROBLEM_STORE_UNAVAILABLE,
		.acted = true,
		.detail = "The key store is not usable now." };
	respond_problem(answer, &problem, conf, rq);
}
