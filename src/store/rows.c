/*
 * See rows.h.
 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "rows.h"

/* So many bad rows are logged: a database may have any number of them. */
#define LOGGED 64

static bool
has_length(const char *text, size_t min, size_t max)
{
	size_t n = text != NULL ? strlen(text) : 0;

	return text != NULL && n >= min && n <= max;
}

/* Whether the texts can be an identity; NULL is none. */
static bool
identity_is_sound(const char *scope, const char *path, const char *key)
{
	return has_length(scope, 0, LIMIT_SCOPE) &&
	    has_length(path, 1, LIMIT_PATH) && *path == '/' &&
	    has_length(key, 1, LIMIT_KEY);
}

bool
rows_state(const char *word, int *value)
{
	enum record_state state;
	bool found = record_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

bool
rows_effect_state(const char *word, int *value)
{
	enum effect_state state;
	bool found = effect_state_parse(word, &state);

	*value = found ? (int)state : 0;
	return found;
}

/* --- the columns ---------------------------------------------------------- */

const struct row_member rows_record[] = {
	ROW_MEMBER('i', record, id), ROW_MEMBER('s', record, key),
	ROW_MEMBER('s', record, path), ROW_MEMBER('s', record, scope),
	ROW_MEMBER('i', record, caller), ROW_MEMBER('s', record, peer),
	ROW_MEMBER('u', record, cookie), ROW_MEMBER('f', record, method),
	ROW_MEMBER('u', record, instance), ROW_WORD(record, state, rows_state),
	ROW_MEMBER('d', record, attempt), ROW_MEMBER('f', record, token),
	ROW_MEMBER('i', record, owner), ROW_MEMBER('m', record, locked_until),
	ROW_MEMBER('x', record, fingerprint),
	ROW_MEMBER('s', record, fingerprint_spec),
	ROW_MEMBER('u', record, downstream),
	ROW_MEMBER('f', record, recovery_point),
	ROW_MEMBER('?', record, resume), ROW_MEMBER('m', record, retention),
	ROW_MEMBER('i', record, created_at),
	ROW_MEMBER('i', record, updated_at),
	ROW_MEMBER('m', record, expires_at),
	ROW_MEMBER('m', record, expired_retention),
	ROW_MEMBER('i', record, attempt_lock),
	ROW_MEMBER('i', record, lock_file),
	ROW_MEMBER('m', record, reconcile_delay),
	ROW_MEMBER('m', record, reconcile_after),
	ROW_MEMBER('d', record, reconcile_attempts),
	ROW_MEMBER('f', record, resource), ROW_MEMBER('?', record, accepted),
	ROW_MEMBER('?', record, queued), ROW_MEMBER('m', record, queued_at),
	ROW_MEMBER('?', record, replayable), ROW_MEMBER('d', record, status),
	ROW_MEMBER('i', record, body_length),
	ROW_MEMBER('s', record, last_error),
	ROW_MEMBER('f', record, late_token),
	ROW_MEMBER('i', record, change), /* only PostgreSQL has it */
};
const size_t rows_nrecord = sizeof(rows_record) / sizeof(rows_record[0]);

const struct row_member rows_listed[] = {
	ROW_MEMBER('?', store_listed, request),
	ROW_MEMBER('?', store_listed, output),
};
const size_t rows_nlisted = sizeof(rows_listed) / sizeof(rows_listed[0]);

const struct row_member rows_effect[] = {
	ROW_MEMBER('i', effect, id),
	ROW_MEMBER('i', effect, key_id),
	ROW_MEMBER('f', effect, effect_key),
	ROW_MEMBER('s', effect, scope),
	ROW_MEMBER('s', effect, path),
	ROW_MEMBER('s', effect, key),
	ROW_MEMBER('s', effect, topic),
	ROW_WORD(effect, state, rows_effect_state),
	ROW_MEMBER('d', effect, attempts),
	ROW_MEMBER('?', effect, has_turn),
	ROW_MEMBER('m', effect, next_at),
	ROW_MEMBER('i', effect, owner),
	ROW_MEMBER('a', effect, reference),
	ROW_MEMBER('s', effect, last_error),
	ROW_MEMBER('i', effect, created_at),
	ROW_MEMBER('i', effect, updated_at),
};
const size_t rows_neffect = sizeof(rows_effect) / sizeof(rows_effect[0]);

/* --- the checks ----------------------------------------------------------- */

enum rc
rows_record_end(struct record *r, bool identified, enum rc rc)
{
	int64_t id;

	r->unconfirmed = r->state == RECORD_COMPLETED && r->token[0] != '\0';
	if (rc == RC_OK &&
	    (!record_is_sound(r) ||
		(identified && !identity_is_sound(r->scope, r->path, r->key))))
		rc = RC_CORRUPT;
	if (rc == RC_OK)
		return rc;
	id = r->id;
	record_free(r);
	memset(r, 0, sizeof(*r));
	r->id = id;
	return rc;
}

enum rc
rows_effect_end(struct effect *e, enum rc rc)
{
	int64_t id;

	if (rc == RC_OK &&
	    (!effect_is_sound(e) ||
		!identity_is_sound(e->scope, e->path, e->key) ||
		strlen(e->effect_key) != RECORD_UUID_LEN || e->topic == NULL))
		rc = RC_CORRUPT;
	if (rc == RC_OK)
		return rc;
	id = e->id;
	effect_free(e);
	e->id = id;
	return rc;
}

void
rows_change(struct record *r, struct store_change *c)
{
	memset(c, 0, sizeof(*c));
	c->id = r->id;
	c->from = r->state;
	c->scope = r->scope;
	c->path = r->path;
	c->key = r->key;
	r->scope = r->path = r->key = NULL;
}

/* --- bad rows ------------------------------------------------------------- */

/* A number that stands for the row, and is not 0. */
static uint64_t
mark_of(const char *table, int64_t id)
{
	uint64_t mark = (uint64_t)id;

	for (; *table != '\0'; table++)
		mark = mark * 31 + (unsigned char)*table;
	return mark != 0 ? mark : 1;
}

static atomic_uint counted;

unsigned
rows_bad_counted(void)
{
	return atomic_load(&counted);
}

/* The place of the row among those that were logged; LOGGED: it is another one,
 * and there is no place.  *is_new: it was not there before. */
static unsigned
bad_place(uint64_t mark, bool *is_new)
{
	static _Atomic uint64_t logged[LOGGED];
	unsigned i;

	*is_new = true;
	for (i = 0; i < LOGGED && *is_new; i++) {
		uint64_t before = 0;

		if (atomic_compare_exchange_strong(&logged[i], &before, mark))
			break;
		*is_new = before != mark;
	}
	return i;
}

void
rows_bad(const char *database, const char *table, int64_t id)
{
	bool is_new;
	const unsigned place = bad_place(mark_of(table, id), &is_new);

	if (!is_new)
		return;
	metrics_count(METRICS_BAD_ROWS);
	atomic_fetch_add(&counted, 1);
	if (place == LOGGED)
		return;
	log_event(LOG_ERROR, "bad-row", NULL, LOG_S("database", database),
	    LOG_S("table", table), LOG_I("id", id),
	    LOG_S("message",
		place == LOGGED - 1
		    ? "it makes no sense, and is skipped; more rows are not "
		      "logged: oncectl doctor counts them"
		    : "it makes no sense, and is skipped"));
}

void
rows_terms(const struct store_reservation *what, const char *token,
    int64_t owner, struct step_terms *terms)
{
	static const struct store_attempt none = { 0 };
	const struct store_attempt *at =
	    what->attempt != NULL ? what->attempt : &none;

	*terms = (struct step_terms){
		.fingerprint_spec = what->fingerprint_spec,
		.fingerprint = what->fingerprint,
		.caller = what->caller,
		.peer = what->peer,
		.cookie = what->cookie,
		.method = what->method,
		.instance = what->instance,
		.token = token,
		.owner = owner,
		.lease = what->lease,
		.retention = what->retention,
		/* 0: it never becomes a marker */
		.expired_retention = what->on_expired == CONF_EXPIRED_GONE
		    ? what->expired_retention
		    : 0,
		.reconcile_delay = what->reconcile_delay,
		.attempt_lock = at->lock,
		.lock_file = at->file,
		.resume = what->on_crash == CONF_CRASH_RESUME,
	};
}

void
rows_lease(const struct record *r, struct store_lease *lease)
{
	memset(lease, 0, sizeof(*lease));
	lease->id = r->id;
	lease->attempt = r->attempt;
	memcpy(lease->token, r->token, sizeof(lease->token));
	memcpy(lease->downstream, r->downstream, sizeof(lease->downstream));
	memcpy(lease->recovery_point, r->recovery_point,
	    sizeof(lease->recovery_point));
}

/* --- stored responses ----------------------------------------------------- */

const struct row_member rows_head[] = {
	ROW_MEMBER('p', rows_head, reason),
	ROW_MEMBER('i', rows_head, kind),
	ROW_MEMBER('b', rows_head, headers),
	ROW_MEMBER('b', rows_head, body),
	ROW_MEMBER('i', rows_head, response_version),
};
const size_t rows_nhead = sizeof(rows_head) / sizeof(rows_head[0]);

/* The fields of a response that a handler stored in its own transaction. */
static enum rc
read_lines(const char *text, size_t n, struct response *r)
{
	static const char *const ours[] = { "Status", "Idempotent-Replayed",
		"Idempotency-Expires", "Idempotency-Outcome" };
	enum rc rc = response_add_lines(r, text, n);

	r->as_given = true;
	response_remove(r, ours, sizeof(ours) / sizeof(ours[0]));
	response_remove_hop_by_hop(r);
	return rc == RC_INVALID || rc == RC_LIMIT ? RC_CORRUPT : rc;
}

enum rc
rows_head_read(
    const struct rows_head *h, const struct record *key, struct response *r)
{
	if (h->response_version != STORE_RESPONSE_VERSION &&
	    h->response_version != STORE_RESPONSE_LINES)
		return RC_VERSION;
	if (key->status < 200 || key->status > 599 || key->body_length < 0 ||
	    (uint64_t)key->body_length > LIMIT_SIZE ||
	    (h->kind != RESPONSE_DOCUMENT &&
		h->kind != RESPONSE_LOCAL_REDIRECT) ||
	    (h->reason != NULL && strlen(h->reason) >= sizeof(r->reason)) ||
	    (h->body.n > 0 && h->body.n != (size_t)key->body_length))
		return RC_CORRUPT;
	r->status = key->status;
	r->kind = (enum response_kind)h->kind;
	if (h->reason != NULL)
		memcpy(r->reason, h->reason, strlen(h->reason) + 1);
	if (h->response_version == STORE_RESPONSE_LINES)
		return read_lines(h->headers.data, h->headers.n, r);
	if (!response_is_block(h->headers.data, h->headers.n))
		return RC_CORRUPT;
	return buf_add(&r->fields, h->headers.data, h->headers.n);
}

void
rows_head_small(const struct rows_head *h, const struct record *key,
    struct store_inline_answer *small)
{
	if (rows_head_read(h, key, &small->response) != RC_OK ||
	    (h->body.n == 0 && key->body_length > 0) ||
	    buf_add(&small->body, h->body.data, h->body.n) != RC_OK) {
		store_inline_answer_free(small);
		return;
	}
	small->response.body = small->body.data;
	small->response.body_len = h->body.n;
	small->is = true;
}

void
rows_answer(const struct store_outcome *outcome, struct rows_answer *c)
{
	const struct response *r = &outcome->response;

	memset(c, 0, sizeof(*c));
	c->status = r->status;
	c->keep = outcome->state == RECORD_COMPLETED && outcome->keep &&
	    r->body_len <= STORE_MAX_BODY;
	if (!c->keep)
		return;
	c->kind = r->kind;
	c->length = (int64_t)r->body_len;
	/* A response without a reason gets the registered one. */
	c->reason =
	    strcmp(r->reason, response_reason(r->status)) == 0 ? "" : r->reason;
	c->fields = r->fields.data;
	c->nfields = r->fields.len;
	c->apart = r->body_len > STORE_INLINE;
	c->body = r->body;
	c->nbody = r->body_len;
}
