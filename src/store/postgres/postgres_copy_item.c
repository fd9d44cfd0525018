/*
 * A row of a store that is copied, with all that is stored beside it: reading
 * it, sending it, and comparing two of them.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "rows.h"
#include "store_change.h"
#include "postgres_copy.h"

/* Statements, and bytes of large values, in one round trip. */
#define BATCH       256
#define BATCH_BYTES (4 * 1024 * 1024)

void
postgres_item_free(struct postgres_item *it)
{
	store_listed_free(&it->l);
	response_free(&it->answer);
	buf_free(&it->environment);
	store_output_free(&it->output);
	effect_free(&it->effect);
	spool_free(it->body);
	spool_free(it->request);
	spool_free(it->payload);
}

void
postgres_item_init(struct postgres_item *it)
{
	memset(it, 0, sizeof(*it));
	response_init(&it->answer);
	buf_init(&it->environment, LIMIT_SIZE);
}

/* What is gone again since the row was read is not there. */
static enum rc
read_key(struct store *s, struct store_cursor *cursor, struct postgres_item *it)
{
	const struct record *r = &it->l.key;
	struct store_identity identity;
	enum rc rc = store_list_all_next(cursor, &it->l);

	if (rc != RC_OK)
		return rc;
	identity = (struct store_identity){ r->scope, r->path, r->key };
	it->answer.status = r->status;
	if (r->replayable && !it->l.answer.is)
		rc = store_answer(s, &identity, r->id, &it->answer, &it->body);
	if (rc == RC_OK && it->l.request) {
		rc = store_request(
		    s, &identity, r->id, &it->environment, &it->request);
		it->l.request = rc == RC_OK;
		rc = rc == RC_NOTFOUND ? RC_OK : rc;
	}
	if (rc == RC_OK && it->l.output) {
		rc = store_output(s, r->id, &it->output);
		it->l.output = rc == RC_OK;
		rc = rc == RC_NOTFOUND ? RC_OK : rc;
	}
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

/* Of a delivered effect there is no payload. */
static enum rc
read_effect(
    struct store *s, struct store_cursor *cursor, struct postgres_item *it)
{
	enum rc rc = store_outbox_next(cursor, &it->effect);

	if (rc != RC_OK || it->effect.state == EFFECT_DELIVERED)
		return rc;
	rc = store_effect_payload(s, &it->effect, &it->payload);
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

static enum rc
open_effects(struct store *s, struct store_cursor **cursor)
{
	const struct store_effect_filter all = { 0 };

	return store_outbox_list(s, &all, cursor);
}

static const struct response *
item_answer(const struct postgres_item *it)
{
	return it->l.answer.is ? &it->l.answer.response : &it->answer;
}

/* All of a spool; NULL is no bytes. */
static const void *
item_bytes(struct spool *spool, size_t *n, enum rc *rc)
{
	*n = spool != NULL ? (size_t)spool_length(spool) : 0;
	return *n > 0 && *rc == RC_OK ? spool_bytes(spool, rc) : "";
}

/* Store time of the source as a time of the server; 0 stays 0. */
static int64_t
copy_time(const struct postgres_copy *c, int64_t at)
{
	if (at == 0)
		return 0;
	return at + c->ahead > 0 ? at + c->ahead : 1;
}

/* --- sending -------------------------------------------------------------- */

/* The server runs a batch while the next one is made. */
enum rc
postgres_copy_batch(struct postgres_copy *c, bool all)
{
	const int leave = all ? 0 : c->batch;
	enum rc rc;

	postgres_copy_patience(c->to, c->pg);
	rc = pg_sync(c->pg);
	for (; c->sent > leave && rc == RC_OK; c->sent--)
		rc = pg_result(c->pg);
	c->batch = 0;
	c->bytes = 0;
	return rc;
}

/* After a statement with that many bytes of large values. */
static enum rc
batch_sent(struct postgres_copy *c, size_t bytes)
{
	c->sent++;
	c->batch++;
	c->bytes += bytes;
	return c->batch < BATCH && c->bytes < BATCH_BYTES
	    ? RC_OK
	    : postgres_copy_batch(c, false);
}

static enum rc
copy_pieces(
    struct postgres_copy *c, int64_t number, const void *body, size_t length)
{
	enum rc rc = RC_OK;
	size_t n;

	for (size_t done = 0; done < length && rc == RC_OK; done += n) {
		n = postgres_piece_send(c->pg, number, body, length, done);
		rc = batch_sent(c, n);
	}
	return rc;
}

static enum rc
copy_spec(struct postgres_copy *c, const char *text, int64_t *number)
{
	enum rc rc;

	*number =
	    *text != '\0' ? postgres_spec_noted(c->to, c->tries, text) : 0;
	if (*number != 0 || *text == '\0')
		return RC_OK;
	if ((rc = postgres_copy_batch(c, true)) == RC_OK)
		rc = postgres_spec_number(c->pg, text, number);
	if (rc == RC_OK)
		postgres_spec_note(c->to, c->tries, text, *number);
	return rc;
}

/* The key as the target is to have it.  One that still has a lease, or whose
 * processes live, is not copied. */
static enum rc
convert_key(struct postgres_copy *c, struct postgres_item *it)
{
	struct record *r = &it->l.key;
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
	r->attempt_lock = r->lock_file = 0;
	r->expires_at = copy_time(c, r->expires_at);
	r->reconcile_after = copy_time(c, r->reconcile_after);
	r->queued_at = r->queued ? copy_time(c, r->queued_at) : 0;
	return RC_OK;
}

static enum rc
convert_effect(struct postgres_copy *c, struct postgres_item *it)
{
	struct effect *e = &it->effect;

	if (e->owner != 0)
		return postgres_copy_refuse(c, RC_BUSY,
		    "effect %" PRId64 " is being delivered: wait until that "
		    "has ended",
		    e->id);
	if (e->has_turn)
		e->next_at = e->next_at > 0 ? copy_time(c, e->next_at) : 1;
	return RC_OK;
}

static enum rc
send_row(struct postgres_copy *c, const struct record *r,
    const struct response *answer)
{
	const struct store_identity identity = { r->scope, r->path, r->key };
	const struct store_outcome outcome = {
		.state = r->state, .keep = r->replayable, .response = *answer
	};
	struct row_value digest;
	struct rows_answer k;
	int64_t spec;
	enum rc rc;

	if ((rc = copy_spec(c, r->fingerprint_spec, &spec)) != RC_OK)
		return rc;
	digest = postgres_number(c->to, &identity).first;
	rows_answer(&outcome, &k);
	pg_send(c->pg, PG_QUERY_COPY_KEY, "isssiwuisddtoo" STORE_CHANGE_SET,
	    r->id, r->key, r->path, r->scope, spec, &digest, r->downstream,
	    r->created_at, r->recovery_point, k.kind,
	    !k.keep                ? 0
		: answer->as_given ? STORE_RESPONSE_LINES
				   : STORE_RESPONSE_VERSION,
	    k.reason, k.fields, k.nfields, k.body, k.apart ? 0 : k.nbody,
	    STORE_CHANGE_ARGUMENTS(r));
	c->n.answer_bytes += (int64_t)k.nbody;
	rc = batch_sent(c, k.nfields);
	return rc == RC_OK && k.apart ? copy_pieces(c, r->id, k.body, k.nbody)
				      : rc;
}

static enum rc
send_request(struct postgres_copy *c, const struct postgres_item *it)
{
	const struct buf *environment = &it->environment;
	const int64_t id = it->l.key.id;
	const void *body;
	enum rc rc = RC_OK;
	bool apart;
	size_t n;

	body = item_bytes(it->request, &n, &rc);
	if (rc != RC_OK)
		return rc;
	apart = n > STORE_PIECE;
	pg_send(c->pg, PG_QUERY_REQUEST_NEW, "ibbii", id, environment->data,
	    environment->len, body, apart ? 0 : n, (int64_t)n,
	    apart ? -id : (int64_t)0);
	c->n.requests++;
	rc = batch_sent(c, environment->len);
	return rc == RC_OK && apart ? copy_pieces(c, -id, body, n) : rc;
}

static enum rc
send_output(struct postgres_copy *c, const struct postgres_item *it)
{
	const struct store_output *o = &it->output;

	pg_send(c->pg, PG_QUERY_REFUSED_NEW, o->refused ? "idddibb" : "idddiob",
	    it->l.key.id, o->attempt, o->exit_status, o->signal, o->length,
	    o->bytes.data, o->bytes.len, o->errors.data, o->errors.len);
	c->n.outputs++;
	return batch_sent(c, o->bytes.len + o->errors.len);
}

static enum rc
send_key(struct postgres_copy *c, const struct postgres_item *it)
{
	const struct record *r = &it->l.key;
	enum rc rc = send_row(c, r, item_answer(it));

	if (rc == RC_OK && it->l.request)
		rc = send_request(c, it);
	if (rc == RC_OK && it->l.output)
		rc = send_output(c, it);
	c->n.keys++;
	if (r->id > c->last_key)
		c->last_key = r->id;
	return rc;
}

static enum rc
send_effect(struct postgres_copy *c, const struct postgres_item *it)
{
	const struct effect *e = &it->effect;
	const void *payload;
	enum rc rc = RC_OK;
	bool apart;
	size_t n;

	payload = item_bytes(it->payload, &n, &rc);
	if (rc != RC_OK)
		return rc;
	apart = n > STORE_INLINE;
	pg_send(c->pg, PG_QUERY_COPY_EFFECT,
	    apart || e->state == EFFECT_DELIVERED ? "iiusssssdzosiin"
						  : "iiusssssdzosiib",
	    e->id, e->key_id, e->effect_key, e->scope, e->path, e->key,
	    e->topic, effect_state_name(e->state), e->attempts,
	    e->has_turn ? e->next_at : (int64_t)0, e->reference.data,
	    e->reference.len, e->last_error, e->created_at, e->updated_at,
	    payload, n);
	c->n.effects++;
	c->n.payload_bytes += (int64_t)n;
	if (e->id > c->last_effect)
		c->last_effect = e->id;
	rc = batch_sent(c, 0);
	return rc == RC_OK && apart
	    ? copy_pieces(c, TX_PAYLOAD_PIECES(e->id), payload, n)
	    : rc;
}

/* --- comparing ------------------------------------------------------------ */

static void
hash_buf(struct digest *d, const struct buf *b)
{
	digest_part(d, b->data, b->len);
}

static enum rc
hash_spool(struct digest *d, struct spool *spool)
{
	enum rc rc = RC_OK;
	size_t n;
	const void *bytes = item_bytes(spool, &n, &rc);

	if (rc == RC_OK)
		digest_part(d, bytes, n);
	return rc;
}

/* "change" is the target's own. */
static void
hash_members(
    struct digest *d, const struct row_member *m, size_t n, const void *row)
{
	const char *at, *text;

	for (; n > 0; m++, n--) {
		at = (const char *)row + m->offset;
		switch (m->letter) {
		case 's':
			text = *(const char *const *)(const void *)at;
			digest_count(d, text != NULL);
			digest_text(d, text != NULL ? text : "");
			break;
		case 'f':
		case 'u':
			digest_text(d, at);
			break;
		case 'a':
			hash_buf(d, (const struct buf *)(const void *)at);
			break;
		default:
			if (strcmp(m->name, "change") != 0)
				digest_part(d, at, m->size);
		}
	}
}

static enum rc
hash_key(struct digest *d, const struct postgres_item *it)
{
	const struct response *r = item_answer(it);
	const struct store_output *o = &it->output;

	hash_members(d, rows_record, rows_nrecord, &it->l.key);
	digest_count(d, r->kind);
	digest_count(d, (uint64_t)r->status);
	digest_count(d, r->as_given);
	digest_text(d, r->reason);
	hash_buf(d, &r->fields);
	digest_part(d, r->body, r->body_len);
	digest_count(d, it->l.output);
	digest_count(d, (uint64_t)o->attempt);
	digest_count(d, (uint64_t)o->exit_status);
	digest_count(d, (uint64_t)o->signal);
	digest_count(d, (uint64_t)o->length);
	digest_count(d, o->refused);
	hash_buf(d, &o->bytes);
	hash_buf(d, &o->errors);
	digest_count(d, it->l.request);
	hash_buf(d, &it->environment);
	return hash_spool(d, it->request);
}

static enum rc
hash_effect(struct digest *d, const struct postgres_item *it)
{
	hash_members(d, rows_effect, rows_neffect, &it->effect);
	return hash_spool(d, it->payload);
}

/* --- both kinds of rows --------------------------------------------------- */

const struct postgres_item_kind postgres_item_key = { "key", store_list_all,
	read_key, convert_key, send_key, hash_key };
const struct postgres_item_kind postgres_item_effect = { "effect", open_effects,
	read_effect, convert_effect, send_effect, hash_effect };
