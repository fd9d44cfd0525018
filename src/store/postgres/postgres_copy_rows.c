/*
 * Copying the rows of another store: the keys and the effects.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "kept.h"
#include "postgres_copy.h"
#include "postgres_identity.h"

/* Statements and rows of keys, and bytes of large values, in one round trip. */
#define BATCH       256
#define BATCH_BYTES (4 * 1024 * 1024)

enum rc
postgres_copy_refuse(
    struct postgres_copy *c, enum rc rc, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, c->size, format, ap);
	va_end(ap);
	return rc;
}

/* --- the batch ------------------------------------------------------------ */

/* Ends the batch, and reads the results of those before it; or all. */
static enum rc
batch_end(struct postgres_copy *c, bool all)
{
	int leave;
	enum rc rc;

	if (c->keys.rows > 0) {
		pg_send_arrays(c->pg, PG_QUERY_COPY_KEYS, &c->keys);
		c->sent++;
		c->batch++;
	}
	leave = all ? 0 : c->batch;
	postgres_copy_patience(c->to, c->pg);
	rc = pg_sync(c->pg);
	for (; c->sent > leave && rc == RC_OK; c->sent--)
		rc = pg_result(c->pg);
	c->batch = 0;
	c->bytes = 0;
	return rc;
}

enum rc
postgres_copy_end(struct postgres_copy *c)
{
	return batch_end(c, true);
}

/* After a row of a key with that many bytes of large values.  The server runs a
 * batch while the next one is made. */
static enum rc
batch_added(struct postgres_copy *c, size_t bytes)
{
	c->bytes += bytes;
	return c->batch + c->keys.rows < BATCH && c->bytes < BATCH_BYTES
	    ? RC_OK
	    : batch_end(c, false);
}

/* The same after a statement. */
static enum rc
batch_sent(struct postgres_copy *c, size_t bytes)
{
	c->sent++;
	c->batch++;
	return batch_added(c, bytes);
}

int64_t
postgres_copy_time(const struct postgres_copy *c, int64_t at)
{
	if (at == 0)
		return 0;
	return at + c->ahead > 0 ? at + c->ahead : 1;
}

int64_t
postgres_copy_next(const struct postgres_copy *c, int64_t at)
{
	return at > 0 ? postgres_copy_time(c, at) : 1;
}

/* --- a key ---------------------------------------------------------------- */

static enum rc
copy_fingerprint_spec(struct postgres_copy *c, const char *text)
{
	if (c->fingerprint_spec_text != NULL &&
	    strcmp(c->fingerprint_spec_text, text) == 0)
		return RC_OK;
	free(c->fingerprint_spec_text);
	if ((c->fingerprint_spec_text = strdup(text)) == NULL ||
	    EVP_Digest(text, strlen(text), c->fingerprint_spec, NULL,
		EVP_sha256(), NULL) != 1)
		return RC_NOMEM;
	pg_send(c->pg, PG_QUERY_COPY_FINGERPRINT_SPEC, "bs",
	    c->fingerprint_spec, sizeof(c->fingerprint_spec), text);
	return batch_sent(c, 0);
}

static enum rc
copy_pieces(
    struct postgres_copy *c, int64_t id, const unsigned char *body, size_t n)
{
	int64_t piece = 1;
	enum rc rc = RC_OK;
	size_t done, part;

	for (done = 0; done < n && rc == RC_OK; done += part) {
		part = n - done < STORE_PIECE ? n - done : STORE_PIECE;
		pg_send(c->pg, PG_QUERY_PIECE_NEW, "iib", id, piece++,
		    body + done, part);
		rc = batch_sent(c, part);
	}
	return rc;
}

/* The row.  A handler's own response is stored as lines, and its body in the
 * row. */
static enum rc
copy_row(struct postgres_copy *c, const struct record *r,
    const struct response *answer)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct store_outcome outcome = {
		.state = r->state, .keep = r->kept, .response = *answer
	};
	const bool lines = answer->as_given;
	unsigned char digest[POSTGRES_DIGEST_LEN];
	struct kept_columns k;
	enum rc rc;

	if ((rc = copy_fingerprint_spec(c, r->fingerprint_spec)) != RC_OK ||
	    (rc = postgres_identity_digest(c->to->secret, &identity, digest)) !=
		RC_OK)
		return rc;
	kept_columns(&outcome, &k);
	if (lines && k.apart) {
		k.apart = false;
		k.body = answer->body;
		k.nbody = answer->body_len;
	}
	pg_arrays_add(&c->keys, "isibsswdbbuw?i?izzdw?zziizs?zzztoosuwu", r->id,
	    r->scope, r->caller, digest, sizeof(digest), r->key, r->path,
	    record_state_name(r->state), r->attempt, c->fingerprint_spec,
	    sizeof(c->fingerprint_spec), r->fingerprint, sizeof(r->fingerprint),
	    r->downstream, r->recovery_point, r->resume, r->retention, r->gone,
	    r->expired_retention, r->reconcile_delay,
	    postgres_copy_time(c, r->reconcile_after), r->reconcile_attempts,
	    r->resource, r->accepted,
	    r->queued ? postgres_copy_time(c, r->queued_at) : (int64_t)0,
	    postgres_copy_time(c, r->expires_at), r->created_at, r->updated_at,
	    (int64_t)r->status, r->last_error, k.keep, (int64_t)k.kind,
	    (int64_t)(!k.keep ? 0
		    : lines   ? STORE_RESPONSE_LINES
			      : STORE_RESPONSE_VERSION),
	    r->body_length, k.reason, k.fields, k.nfields, k.body, k.nbody,
	    r->peer, *r->cookie != '\0' ? r->cookie : NULL, r->method,
	    *r->instance != '\0' ? r->instance : NULL);
	rc = batch_added(c, k.nbody + k.nfields);
	if (rc == RC_OK && k.apart)
		rc = copy_pieces(c, r->id, answer->body, answer->body_len);
	c->n.answer_bytes += k.keep ? (int64_t)answer->body_len : 0;
	return rc;
}

static enum rc
copy_answer(struct postgres_copy *c, const struct store_listed *l)
{
	const struct record *r = &l->key;
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct spool *body = NULL;
	struct response answer;
	enum rc rc = RC_OK;

	if (l->answer.is)
		return copy_row(c, r, &l->answer.response);
	response_init(&answer);
	answer.status = r->status;
	if (r->kept)
		rc = store_answer(c->from, &identity, r->id, &answer, &body);
	if (rc == RC_OK)
		rc = copy_row(c, r, &answer);
	else
		(void)postgres_copy_refuse(c, rc,
		    "the answer of key %s cannot be read: %s", r->key,
		    rc_text(rc));
	response_free(&answer);
	spool_free(body);
	return rc;
}

static enum rc
copy_request(struct postgres_copy *c, const struct record *r)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	struct spool *body = NULL;
	const void *bytes = NULL;
	struct buf environment;
	enum rc rc;

	buf_init(&environment, LIMIT_SIZE);
	rc = store_request(c->from, &identity, r->id, &environment, &body);
	if (rc == RC_OK && body != NULL)
		bytes = spool_bytes(body, &rc);
	if (rc == RC_OK) {
		pg_send(c->pg, PG_QUERY_COPY_REQUEST, "ibo", r->id,
		    environment.data != NULL ? environment.data
					     : (const void *)"",
		    environment.len, bytes,
		    body != NULL ? (size_t)spool_length(body) : (size_t)0);
		c->n.requests++;
		rc = batch_sent(c,
		    environment.len +
			(body != NULL ? (size_t)spool_length(body) : 0));
	}
	buf_free(&environment);
	spool_free(body);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
copy_output(struct postgres_copy *c, const struct record *r)
{
	struct store_output o;
	enum rc rc = store_output(c->from, r->id, &o);

	if (rc != RC_OK)
		return rc == RC_NOTFOUND ? RC_OK : rc;
	pg_send(c->pg, PG_QUERY_REFUSED_NEW, o.refused ? "iiiiibb" : "iiiiiob",
	    r->id, (int64_t)o.attempt, (int64_t)o.exit_status,
	    (int64_t)o.signal, o.length, o.bytes.data, o.bytes.len,
	    o.errors.data, o.errors.len);
	c->n.outputs++;
	rc = batch_sent(c, o.bytes.len + o.errors.len);
	store_output_free(&o);
	return rc;
}

/* A key that still has a lease, or whose processes live, is not copied. */
static enum rc
copy_may(struct postgres_copy *c, const struct record *r)
{
	const struct store_attempt at = { .fd = -1,
		.note = -1,
		.lock = r->attempt_lock,
		.file = r->lock_file };

	if (r->owner != 0)
		return postgres_copy_refuse(c, RC_BUSY,
		    "key %s is in progress: \"oncectl sweep\" settles it, or "
		    "says what it waits for",
		    r->key);
	if (r->attempt_lock != 0 && !store_attempt_gone(c->from, &at))
		return postgres_copy_refuse(c, RC_BUSY,
		    "processes of the last attempt of key %s still run: wait "
		    "until they have ended",
		    r->key);
	return RC_OK;
}

static enum rc
copy_key(struct postgres_copy *c, const struct store_listed *l)
{
	const struct record *r = &l->key;
	enum rc rc;

	if ((rc = copy_may(c, r)) != RC_OK ||
	    (rc = copy_answer(c, l)) != RC_OK ||
	    (l->request && (rc = copy_request(c, r)) != RC_OK) ||
	    (l->output && (rc = copy_output(c, r)) != RC_OK))
		return rc;
	c->n.keys++;
	if (r->id > c->last_key)
		c->last_key = r->id;
	return RC_OK;
}

enum rc
postgres_copy_keys(struct postgres_copy *c)
{
	struct store_cursor *cursor;
	struct store_listed l;
	enum rc rc;

	if ((rc = store_list_all(c->from, &cursor)) != RC_OK)
		return rc;
	while (rc == RC_OK && (rc = store_list_all_next(cursor, &l)) == RC_OK) {
		rc = copy_key(c, &l);
		store_listed_free(&l);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* --- effects -------------------------------------------------------------- */

/* Of a delivered effect there is no payload. */
static void
effect_send(struct postgres_copy *c, const struct effect *e,
    const void *payload, size_t n)
{
	const bool delivered = e->state == EFFECT_DELIVERED;
	const int64_t next = postgres_copy_next(c, e->next_at);

	pg_send(c->pg, PG_QUERY_COPY_EFFECT,
	    delivered ? "iiusssssdzosiin" : "iiusssssdzosiib", e->id, e->key_id,
	    e->effect_key, e->scope, e->path, e->key, e->topic,
	    effect_state_name(e->state), e->attempts,
	    e->has_turn ? next : (int64_t)0, e->reference.data,
	    e->reference.len, e->last_error, e->created_at, e->updated_at,
	    payload, n);
}

static enum rc
copy_effect(struct postgres_copy *c, const struct effect *e)
{
	struct spool *payload = NULL;
	const void *bytes = NULL;
	size_t n = 0;
	enum rc rc = RC_OK;

	if (e->owner != 0)
		return postgres_copy_refuse(c, RC_BUSY,
		    "effect %" PRId64 " is being delivered: wait until that "
		    "has ended",
		    e->id);
	if (e->state != EFFECT_DELIVERED)
		rc = store_effect_payload(c->from, e, &payload);
	if (rc == RC_OK && payload != NULL) {
		bytes = spool_bytes(payload, &rc);
		n = (size_t)spool_length(payload);
	}
	if (rc == RC_OK && e->state != EFFECT_DELIVERED && bytes == NULL)
		bytes = "";
	if (rc == RC_OK) {
		effect_send(c, e, bytes, n);
		rc = batch_sent(c, n);
	}
	spool_free(payload);
	c->n.effects++;
	c->n.payload_bytes += (int64_t)n;
	if (e->id > c->last_effect)
		c->last_effect = e->id;
	return rc;
}

enum rc
postgres_copy_effects(struct postgres_copy *c)
{
	const struct store_effect_filter all = { 0 };
	struct store_cursor *cursor;
	struct effect e;
	enum rc rc;

	if ((rc = store_outbox_list(c->from, &all, &cursor)) != RC_OK)
		return rc;
	while (rc == RC_OK && (rc = store_outbox_next(cursor, &e)) == RC_OK) {
		rc = copy_effect(c, &e);
		effect_free(&e);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}
