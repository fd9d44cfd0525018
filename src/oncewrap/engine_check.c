/*
 * The checks of a guarded request, in the order of engine.c.  Each check adds
 * one thing to the job, or refuses the request and returns false.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attention.h"
#include "clock.h"
#include "fault.h"
#include "fingerprint.h"
#include "limit.h"
#include "log.h"
#include "recent.h"
#include "respond.h"
#include "scope.h"
#include "spool.h"
#include "engine_impl.h"

/* A body in a file is read in parts of this size (bytes). */
#define PART ((size_t)64 * 1024)

/* Whether a request is refused because of the moment: the host, the store, the
 * time or the way.  The same request may have been carried out before; a
 * request that is refused for what it is was refused then, too. */
static bool
is_of_the_moment(enum problem_code code)
{
	return code == PROBLEM_STORE_UNAVAILABLE ||
	    code == PROBLEM_OVERLOADED || code == PROBLEM_TOO_MANY_KEYS ||
	    code == PROBLEM_REQUEST_TOO_OLD || code == PROBLEM_BODY_INCOMPLETE;
}

bool
engine_refuse(struct job *job, enum problem_code code, const char *detail)
{
	buf_clear(&job->detail);
	/* Without memory the sentence of the code must do. */
	if (detail != NULL && buf_adds(&job->detail, detail) != RC_OK)
		detail = NULL;
	job->problem = (struct problem){ .code = code,
		.detail = detail != NULL ? job->detail.data : NULL,
		.acted = is_of_the_moment(code) && job->may_have_acted };
	return false;
}

bool
engine_refusef(struct job *job, enum problem_code code, const char *format, ...)
{
	char detail[1024];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(detail, sizeof(detail), format, ap);
	va_end(ap);
	return engine_refuse(job, code, detail);
}

void
engine_note_refused(
    struct job *job, enum problem_code code, const char *limit, bool of_all)
{
	char caller[CALLER_NAME_LEN + 1];

	scope_caller_name(
	    job->scope.data, request_param(job->rq, "REMOTE_ADDR"), caller);
	recent_refused_note(problem_name(code), limit,
	    of_all ? NULL : job->rule->path, of_all ? NULL : caller,
	    clock_mono());
	if (code == PROBLEM_TOO_MANY_KEYS || strcmp(limit, "max_store") == 0)
		attention_refused(
		    &(struct attention_refusal){ .code = problem_name(code),
			.limit = limit,
			.route = of_all ? NULL : job->rule->path,
			.caller = of_all ? NULL : caller });
}

static bool
refuse_unavailable(struct job *job, const char *why, const char *detail)
{
	attention_refused(&(struct attention_refusal){
	    .code = problem_name(PROBLEM_STORE_UNAVAILABLE), .why = why });
	return engine_refuse(job, PROBLEM_STORE_UNAVAILABLE, detail);
}

bool
engine_refuse_store(struct job *job, enum rc rc)
{
	char why[512];

	(void)store_why(job->engine->store, rc, why, sizeof(why));
	log_event(
	    LOG_ERROR, "store-unavailable", job->rq->log, LOG_S("why", why));
	/* An accepted request may run without its client. */
	if (rc == RC_PENDING)
		return engine_refuse(job, PROBLEM_OUTCOME_NOT_RECORDED,
		    "It is not known whether this request was accepted, "
		    "because the key store failed meanwhile; it may run.");
	/* What was read from such a store may be wrong. */
	if (rc == RC_WENT_BACK || rc == RC_REPLACED || rc == RC_CORRUPT)
		job->may_have_acted = true;
	return refuse_unavailable(job, why,
	    rc == RC_WENT_BACK
		? "The key store has gone back in time (store-went-back), and "
		  "must be looked at; this request ran nothing."
		: "The key store is not usable now; this request ran nothing.");
}

static const char no_room[] =
    "The bodies of the requests under way take all of spool_total; "
    "nothing ran.";
static const char no_share[] =
    "The bodies of this client's requests under way take half of spool_total; "
    "nothing ran.";

static const struct {
	enum problem_code code;
	const char *detail;
} bodies[] = {
	[BODY_WHOLE] = { PROBLEM_NONE, NULL },
	[BODY_TOO_LARGE] = { PROBLEM_BODY_TOO_LARGE, NULL },
	[BODY_MISMATCH] = { PROBLEM_BODY_INCOMPLETE, NULL },
	[BODY_BAD_LENGTH] = { PROBLEM_BODY_INCOMPLETE,
	    "CONTENT_LENGTH is not a number, or came twice with two "
	    "values." },
	[BODY_ABORTED] = { PROBLEM_BODY_INCOMPLETE,
	    "The request was cut off." },
	[BODY_NO_ROOM] = { PROBLEM_OVERLOADED, no_room },
	[BODY_NO_SHARE] = { PROBLEM_OVERLOADED, no_share },
	[BODY_UNSTORABLE] = { PROBLEM_STORE_UNAVAILABLE,
	    "The server could not store the request body; nothing ran." },
};

static bool
refuse_too_large(struct job *job)
{
	return engine_refusef(job, PROBLEM_BODY_TOO_LARGE,
	    "The request body is longer than this resource allows: "
	    "max_request_body is %" PRIu64 " bytes.",
	    job->rule->max_request_body);
}

bool
engine_check_body(struct job *job)
{
	enum body_state state = job->rq->body_state;

	assert((size_t)state < sizeof(bodies) / sizeof(bodies[0]));
	if (state == BODY_WHOLE && !spool_has_room(0))
		state = BODY_NO_ROOM;
	if (state == BODY_NO_ROOM || state == BODY_NO_SHARE)
		engine_note_refused(job, PROBLEM_OVERLOADED, "spool_total",
		    state == BODY_NO_ROOM);
	if (state == BODY_TOO_LARGE)
		return refuse_too_large(job);
	if (bodies[state].code == PROBLEM_BODY_INCOMPLETE)
		engine_note_unused(job);
	if (state == BODY_MISMATCH)
		return engine_refusef(job, bodies[state].code,
		    "The request body is not as long as CONTENT_LENGTH says, "
		    "%.40s bytes.",
		    request_param(job->rq, "CONTENT_LENGTH"));
	if (state == BODY_UNSTORABLE)
		return refuse_unavailable(
		    job, bodies[state].detail, bodies[state].detail);
	return state == BODY_WHOLE ||
	    engine_refuse(job, bodies[state].code, bodies[state].detail);
}

bool
engine_check_size(struct job *job)
{
	/* Where only the body said that the request is guarded, it was read
	 * without a limit. */
	if (job->rq->body_len > job->rule->max_request_body)
		return refuse_too_large(job);
	return (!job->later && job->rule->reconcile.argv.n == 0) ||
	    job->rq->body_len <= LIMIT_KEPT_BODY ||
	    engine_refusef(job, PROBLEM_BODY_TOO_LARGE,
		"The request has to be kept, and its body is longer than "
		"%d bytes.",
		LIMIT_KEPT_BODY);
}

static bool
refuse_repeated(struct job *job)
{
	const char *name = scope_repeated(job->rq, &job->rule->scope);

	return engine_refusef(job, PROBLEM_REQUEST_INVALID,
	    "The %s%.200s, which names the caller, came more than once.",
	    strncmp(name, "cookie:", 7) == 0 ? "" : "variable ", name);
}

/* text: a sentence that ends with the names of that list.  An empty list: the
 * sentence of the code. */
static bool
refuse_names(struct job *job, enum problem_code code, const char *text,
    const struct conf_list *list)
{
	struct buf names;
	bool refused;

	buf_init(&names, 512);
	for (size_t i = 0; i < list->n; i++)
		(void)buf_addf(
		    &names, "%s%s", i > 0 ? ", " : "", list->item[i]);
	refused = names.len == 0
	    ? engine_refuse(job, code, NULL)
	    : engine_refusef(job, code, "%s %s.", text, names.data);
	buf_free(&names);
	return refused;
}

bool
engine_refuse_stop(struct job *job)
{
	return engine_refuse(job, PROBLEM_OVERLOADED,
	    "The server is being stopped; this request ran nothing.");
}

bool
engine_refuse_reused(struct job *job)
{
	return refuse_names(job, PROBLEM_KEY_REUSED,
	    "This key was used for a different request: another method, "
	    "query, media type or body, or another value of one of the fields",
	    &job->rule->fingerprint_headers);
}

void
engine_make_scope(struct job *job)
{
	job->scope_rc = scope_make(job->rq, &job->rule->scope,
	    store_secret(job->engine->store), &job->scope, &job->scope_empty);
	if (job->scope_rc == RC_OK && job->rq->log != NULL)
		scope_tag(job->scope.data, job->rq->log->scope);
}

bool
engine_check_scope(struct job *job)
{
	const enum rc rc = job->scope_rc;

	if (rc == RC_NOMEM)
		return engine_refuse_store(job, rc);
	if (rc == RC_INVALID)
		return refuse_repeated(job);
	if (rc != RC_OK)
		return refuse_names(job, PROBLEM_KEY_INVALID,
		    "The values that name the caller are too long:",
		    &job->rule->scope);
	if (job->scope_empty && job->rule->scope_required)
		return refuse_names(job, PROBLEM_SCOPE_REQUIRED,
		    "This resource needs an authenticated caller, but what "
		    "names the caller is missing or empty:",
		    &job->rule->scope);
	job->reservation.identity.scope = job->attempt.scope = job->scope.data;
	job->reservation.identity.path = job->rq->path;
	return true;
}

/* --- the body, and the fingerprint of a request --------------------------- */

enum rc
engine_read_body(const struct request *rq, request_take_fn *take, void *arg)
{
	enum rc rc = RC_OK;
	uint64_t at, left;
	ssize_t n = 0;
	char *room;

	if (rq->body_len == 0)
		return RC_OK;
	if (rq->body_fd == -1)
		return rq->body != NULL ? take(arg, rq->body, rq->body_len)
					: RC_IO;
	if ((room = malloc(PART)) == NULL)
		return RC_NOMEM;
	for (at = 0; rc == RC_OK && at < rq->body_len; at += (uint64_t)n) {
		left = rq->body_len - at;
		do
			n = pread(rq->body_fd, room,
			    left < PART ? (size_t)left : PART, (off_t)at);
		while (n == -1 && errno == EINTR);
		if (n > 0) {
			rc = take(arg, room, (size_t)n);
			continue;
		}
		log_event(LOG_ERROR, "body-unreadable", rq->log,
		    LOG_S("why", n == 0 ? "too short" : strerror(errno)));
		rc = RC_IO;
	}
	free(room);
	return rc;
}

enum rc
engine_fingerprint(struct job *job, const char *fingerprint_spec)
{
	struct fingerprint_of of = {
		.req = job->rq, .key = job->key, .read = engine_read_body
	};
	enum rc rc;

	if (fingerprint_needs_json(job->rq, fingerprint_spec) &&
	    (rc = engine_read_json(job)) != RC_OK)
		return rc;
	of.json = job->json;
	rc = fingerprint_make(
	    &of, fingerprint_spec, job->reservation.fingerprint);
	engine_drop_json(job);
	return rc;
}

bool
engine_take_fingerprint(struct job *job)
{
	struct store_reservation *rv = &job->reservation;
	enum rc rc;

	assert(rv->identity.key != NULL && rv->identity.scope != NULL);
	if ((rc = fingerprint_spec_write(job->rule, &job->fingerprint_spec)) !=
		RC_OK ||
	    (rc = engine_fingerprint(job, job->fingerprint_spec.data)) != RC_OK)
		return engine_refuse_store(job, rc);
	rv->fingerprint_spec = job->fingerprint_spec.data;
	attempt_terms(job->rule, rv);
	FAULT(FINGERPRINTED);
	return true;
}
