/*
 * Stored responses.  A local redirect is for the web server and has no field
 * but its Location (RFC 3875, section 6.2.2), so no field is added to it.
 */
#include "config.h"

#include <string.h>

#include "date.h"
#include "fault.h"
#include "replay.h"

enum rc
replay_fetch(struct store *store, const struct store_identity *identity,
    const struct record *record, struct store_inline_answer *found,
    struct answer *answer)
{
	enum rc rc;

	FAULT(REPLAY_FOUND);
	if ((rc = store_make_durable(store, record)) != RC_OK)
		return rc;
	if (found != NULL && found->is) {
		answer->response = found->response;
		answer->text = found->body;
		store_inline_answer_init(found);
		return RC_OK;
	}
	rc = store_answer(
	    store, identity, record->id, &answer->response, &answer->spool);
	if (rc != RC_OK) {
		response_free(&answer->response);
		response_init(&answer->response);
	}
	return rc;
}

void
replay_add_expires(
    struct store *store, struct response *response, int64_t expires_at)
{
	char date[DATE_IMF_LEN + 1];

	if (response->kind == RESPONSE_LOCAL_REDIRECT || expires_at == 0)
		return;
	date_put_imf(store_wall(store, expires_at), date);
	(void)response_add(response, "Idempotency-Expires", date);
}

/*
 * The expiry of an unconfirmed key is not known yet: its retention begins when
 * the key is confirmed, so no earlier than now.
 */
static int64_t
expiry(struct store *store, const struct conf_route *rule,
    const struct record *record)
{
	int64_t earliest = store_now(store) + rule->retention;

	if (record->unconfirmed && earliest < record->expires_at)
		return earliest;
	return record->expires_at;
}

void
replay_mark(struct store *store, const struct conf_route *rule,
    const struct record *record, struct answer *answer)
{
	const struct conf_list *drop = &rule->replay_drop;
	struct response *response = &answer->response;

	if (response->kind == RESPONSE_LOCAL_REDIRECT)
		return;
	FAULT(REPLAY_READ);
	if (response->as_given)
		response_remove(
		    response, (const char *const *)drop->item, drop->n);
	replay_add_expires(store, response, expiry(store, rule, record));
	(void)response_add(response, "Idempotent-Replayed", "true");
}
