/*
 * See kept.h.
 */
#include "config.h"

#include <string.h>

#include "log.h"
#include "kept.h"

const struct row_member kept_head[] = {
	ROW_MEMBER('p', kept_head, reason),
	ROW_MEMBER('i', kept_head, kind),
	ROW_MEMBER('b', kept_head, headers),
	ROW_MEMBER('b', kept_head, body),
	ROW_MEMBER('i', kept_head, response_version),
};
const size_t kept_nhead = sizeof(kept_head) / sizeof(kept_head[0]);

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
kept_head_read(
    const struct kept_head *h, const struct record *key, struct response *r)
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
kept_head_small(const struct kept_head *h, const struct record *key,
    struct store_inline_answer *small)
{
	if (kept_head_read(h, key, &small->response) != RC_OK ||
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
kept_columns(const struct store_outcome *outcome, struct kept_columns *c)
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

bool
kept_drop(struct store_outcome *outcome, int64_t id)
{
	outcome->refused.length = 0;
	if (!outcome->keep || outcome->response.body_len <= STORE_INLINE)
		return false;
	log_event(LOG_ERROR, "answer-not-kept", &outcome->log, LOG_I("id", id),
	    LOG_I("bytes", outcome->response.body_len),
	    LOG_S("why", rc_text(RC_FULL)));
	outcome->keep = false;
	return true;
}
