/*
 * Comparing what was copied with what the source has, row by row, before the
 * transaction of the copy ends.
 *
 * Both stores are read anew, by the functions that a daemon would use.  So a
 * change of the source during the copy is found, too.  Keys and small answers
 * are read in pages, because most keys have no more than that.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "postgres_copy.h"

static enum rc
differs(struct postgres_copy *c, const char *what, int64_t id, const char *part)
{
	return postgres_copy_refuse(c, RC_CORRUPT,
	    "after the copy %s %" PRId64 " differs in its %s; nothing was "
	    "kept.  If an operator changed the source meanwhile, copy again",
	    what, id, part);
}

static bool
equal_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* NULL is no bytes, too. */
static bool
equal_bytes(const void *a, size_t na, const void *b, size_t nb)
{
	return na == nb && (na == 0 || memcmp(a, b, na) == 0);
}

static bool
equal_spool(struct spool *a, struct spool *b, enum rc *rc)
{
	const size_t na = a != NULL ? (size_t)spool_length(a) : 0;
	const size_t nb = b != NULL ? (size_t)spool_length(b) : 0;
	const void *da = NULL, *db = NULL;

	if (na != nb)
		return false;
	if (na > 0)
		da = spool_bytes(a, rc);
	if (na > 0 && *rc == RC_OK)
		db = spool_bytes(b, rc);
	return *rc != RC_OK || equal_bytes(da, na, db, nb);
}

/* --- a key ---------------------------------------------------------------- */

/* The part of the row in which b, the copy, differs; NULL: none.  a has no
 * lease. */
static const char *
key_differs(const struct postgres_copy *c, const struct record *a,
    const struct record *b)
{
	if (a->id != b->id || !equal_text(a->scope, b->scope) ||
	    !equal_text(a->path, b->path) || !equal_text(a->key, b->key))
		return "identity";
	if (a->caller != b->caller || !equal_text(a->peer, b->peer) ||
	    strcmp(a->cookie, b->cookie) != 0 ||
	    strcmp(a->method, b->method) != 0 ||
	    strcmp(a->instance, b->instance) != 0)
		return "caller";
	if (a->state != b->state || a->attempt != b->attempt || b->owner != 0 ||
	    *b->token != '\0' || a->resume != b->resume)
		return "state";
	if (!equal_text(a->fingerprint_spec, b->fingerprint_spec) ||
	    memcmp(a->fingerprint, b->fingerprint, FINGERPRINT_LEN) != 0)
		return "fingerprint";
	if (strcmp(a->downstream, b->downstream) != 0)
		return "downstream key";
	if (strcmp(a->recovery_point, b->recovery_point) != 0)
		return "recovery point";
	if (a->created_at != b->created_at || a->updated_at != b->updated_at ||
	    postgres_copy_time(c, a->expires_at) != b->expires_at ||
	    a->retention != b->retention || a->gone != b->gone ||
	    a->expired_retention != b->expired_retention)
		return "age";
	if (a->reconcile_delay != b->reconcile_delay ||
	    a->reconcile_attempts != b->reconcile_attempts ||
	    postgres_copy_time(c, a->reconcile_after) != b->reconcile_after)
		return "reconciliation";
	if (strcmp(a->resource, b->resource) != 0 ||
	    a->accepted != b->accepted || a->queued != b->queued ||
	    (a->queued && postgres_copy_time(c, a->queued_at) != b->queued_at))
		return "place in the queue";
	if (a->kept != b->kept || a->status != b->status ||
	    a->body_length != b->body_length ||
	    !equal_text(a->last_error, b->last_error))
		return "answer";
	return NULL;
}

static bool
equal_response(const struct response *a, const struct response *b)
{
	return a->kind == b->kind && a->status == b->status &&
	    a->as_given == b->as_given && strcmp(a->reason, b->reason) == 0 &&
	    equal_bytes(
		a->fields.data, a->fields.len, b->fields.data, b->fields.len) &&
	    equal_bytes(a->body, a->body_len, b->body, b->body_len);
}

/* An answer that is not in the row of both. */
static enum rc
compare_large(struct postgres_copy *c, const struct record *r)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct spool *body = NULL, *copied_body = NULL;
	struct response answer, copied;
	enum rc rc;

	response_init(&answer);
	response_init(&copied);
	answer.status = copied.status = r->status;
	rc = store_answer(c->from, &identity, r->id, &answer, &body);
	if (rc == RC_OK)
		rc = store_answer(
		    c->to, &identity, r->id, &copied, &copied_body);
	if (rc == RC_OK && !equal_response(&answer, &copied))
		rc = differs(c, "key", r->id, "answer");
	response_free(&answer);
	response_free(&copied);
	spool_free(body);
	spool_free(copied_body);
	return rc;
}

static enum rc
compare_answer(struct postgres_copy *c, const struct store_listed *a,
    const struct store_listed *b)
{
	if (!a->answer.is || !b->answer.is)
		return compare_large(c, &a->key);
	return equal_response(&a->answer.response, &b->answer.response)
	    ? RC_OK
	    : differs(c, "key", a->key.id, "answer");
}

static enum rc
compare_request(struct postgres_copy *c, const struct record *r)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct spool *body = NULL, *copied_body = NULL;
	struct buf environment, copied;
	bool same;
	enum rc rc;

	buf_init(&environment, LIMIT_SIZE);
	buf_init(&copied, LIMIT_SIZE);
	rc = store_request(c->from, &identity, r->id, &environment, &body);
	if (rc == RC_OK) {
		rc = store_request(
		    c->to, &identity, r->id, &copied, &copied_body);
		same = rc == RC_OK &&
		    equal_bytes(environment.data, environment.len, copied.data,
			copied.len) &&
		    equal_spool(body, copied_body, &rc);
		if (rc == RC_NOTFOUND || (rc == RC_OK && !same))
			rc = differs(c, "key", r->id, "stored request");
	} else if (rc == RC_NOTFOUND)
		rc = RC_OK; /* the numbers of requests were compared */
	buf_free(&environment);
	buf_free(&copied);
	spool_free(body);
	spool_free(copied_body);
	return rc;
}

static enum rc
compare_output(struct postgres_copy *c, const struct record *r)
{
	struct store_output o, copied;
	enum rc rc = store_output(c->from, r->id, &o);

	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	rc = store_output(c->to, r->id, &copied);
	if (rc == RC_NOTFOUND ||
	    (rc == RC_OK &&
		(o.attempt != copied.attempt ||
		    o.exit_status != copied.exit_status ||
		    o.signal != copied.signal || o.length != copied.length ||
		    o.refused != copied.refused ||
		    !equal_bytes(o.errors.data, o.errors.len,
			copied.errors.data, copied.errors.len) ||
		    !equal_bytes(o.bytes.data, o.bytes.len, copied.bytes.data,
			copied.bytes.len)))) {
		if (rc == RC_OK)
			store_output_free(&copied);
		rc = differs(c, "key", r->id, "last output");
	} else if (rc == RC_OK)
		store_output_free(&copied);
	store_output_free(&o);
	return rc;
}

/* b is the next row of the copy; NULL: there is none. */
static enum rc
compare_key(struct postgres_copy *c, const struct store_listed *a,
    const struct store_listed *b)
{
	const struct record *r = &a->key;
	const char *part = b != NULL ? key_differs(c, r, &b->key) : "row";
	enum rc rc = RC_OK;

	if (part == NULL && a->request != b->request)
		part = "stored request";
	if (part == NULL && a->output != b->output)
		part = "last output";
	if (part != NULL)
		return differs(c, "key", r->id, part);
	if (r->kept)
		rc = compare_answer(c, a, b);
	if (rc == RC_OK && a->request)
		rc = compare_request(c, r);
	if (rc == RC_OK && a->output)
		rc = compare_output(c, r);
	return rc;
}

/* Both lists are in the order of the numbers. */
static enum rc
compare_lists(
    struct postgres_copy *c, struct store_cursor *from, struct store_cursor *to)
{
	struct store_listed a, b;
	enum rc rc, found;

	while ((rc = store_list_all_next(from, &a)) == RC_OK) {
		found = store_list_all_next(to, &b);
		if (found != RC_OK && found != RC_NOTFOUND)
			rc = found;
		else
			rc = compare_key(c, &a, found == RC_OK ? &b : NULL);
		store_listed_free(&a);
		if (found == RC_OK)
			store_listed_free(&b);
		if (rc != RC_OK)
			return rc;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
compare_keys(struct postgres_copy *c)
{
	struct store_cursor *from, *to;
	enum rc rc;

	if ((rc = store_list_all(c->from, &from)) != RC_OK)
		return rc;
	if ((rc = store_list_all(c->to, &to)) == RC_OK) {
		rc = compare_lists(c, from, to);
		store_list_free(to);
	}
	store_list_free(from);
	return rc;
}

/* --- an effect ------------------------------------------------------------ */

static const char *
effect_differs(const struct postgres_copy *c, const struct effect *a,
    const struct effect *b)
{
	if (a->id != b->id || a->key_id != b->key_id ||
	    strcmp(a->effect_key, b->effect_key) != 0 ||
	    !equal_text(a->topic, b->topic) ||
	    !equal_text(a->scope, b->scope) || !equal_text(a->path, b->path) ||
	    !equal_text(a->key, b->key))
		return "identity";
	if (a->state != b->state || a->attempts != b->attempts ||
	    a->has_turn != b->has_turn || b->owner != 0 ||
	    (a->has_turn && postgres_copy_next(c, a->next_at) != b->next_at) ||
	    !equal_text(a->last_error, b->last_error) ||
	    a->created_at != b->created_at || a->updated_at != b->updated_at)
		return "state";
	return equal_bytes(a->reference.data, a->reference.len,
		   b->reference.data, b->reference.len)
	    ? NULL
	    : "reference";
}

static enum rc
compare_effect(
    struct postgres_copy *c, const struct effect *a, const struct effect *b)
{
	const char *part = b != NULL ? effect_differs(c, a, b) : "row";
	struct spool *payload = NULL, *copied = NULL;
	bool same;
	enum rc rc;

	if (part != NULL)
		return differs(c, "effect", a->id, part);
	if (a->state == EFFECT_DELIVERED)
		return RC_OK;
	rc = store_effect_payload(c->from, a, &payload);
	if (rc == RC_OK)
		rc = store_effect_payload(c->to, b, &copied);
	same = rc == RC_OK && equal_spool(payload, copied, &rc);
	if (rc == RC_OK && !same)
		rc = differs(c, "effect", a->id, "payload");
	spool_free(payload);
	spool_free(copied);
	return rc;
}

static enum rc
compare_outboxes(
    struct postgres_copy *c, struct store_cursor *from, struct store_cursor *to)
{
	struct effect a, b;
	enum rc rc, found;

	while ((rc = store_outbox_next(from, &a)) == RC_OK) {
		found = store_outbox_next(to, &b);
		if (found != RC_OK && found != RC_NOTFOUND)
			rc = found;
		else
			rc = compare_effect(c, &a, found == RC_OK ? &b : NULL);
		effect_free(&a);
		if (found == RC_OK)
			effect_free(&b);
		if (rc != RC_OK)
			return rc;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
compare_effects(struct postgres_copy *c)
{
	const struct store_effect_filter all = { 0 };
	struct store_cursor *from, *to;
	enum rc rc;

	if ((rc = store_outbox_list(c->from, &all, &from)) != RC_OK)
		return rc;
	if ((rc = store_outbox_list(c->to, &all, &to)) == RC_OK) {
		rc = compare_outboxes(c, from, to);
		store_list_free(to);
	}
	store_list_free(from);
	return rc;
}

enum rc
postgres_copy_compare(struct postgres_copy *c)
{
	enum rc rc = compare_keys(c);

	return rc == RC_OK ? compare_effects(c) : rc;
}
