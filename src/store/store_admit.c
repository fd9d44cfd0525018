/*
 * See store_admit.h.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "scope.h"
#include "decide.h"
#include "rows.h"
#include "sealed.h"
#include "uuid.h"
#include "store_admit.h"

static bool
is_duration(int64_t ms)
{
	return ms >= 0 && ms <= ROW_TIME_MAX;
}

void
store_admit_check(const struct store_reservation *what, bool leased)
{
	assert(is_duration(what->lease) && is_duration(what->retention) &&
	    is_duration(what->expired_retention) &&
	    is_duration(what->reconcile_delay));
	assert(!leased ||
	    (what->attempt == NULL ? what->on_crash != CONF_CRASH_RESUME
				   : what->on_crash == CONF_CRASH_RESUME ||
			what->reconcile_delay > 0));
}

void
store_admit_init(
    struct store_admit *p, const struct store_reservation *what, bool accepts)
{
	memset(p, 0, sizeof(*p));
	p->what = what;
	p->accepts = accepts;
	p->keep = accepts || what->reconcile_delay != 0;
	p->decision = DECIDE_BUSY;
	uuid_random(p->uuid);
	if (!accepts)
		uuid_digits(p->token);
	if (accepts || what->resource)
		uuid_digits(p->resource);
}

/* --- what is read --------------------------------------------------------- */

/* Whether the request needs room in max_kept. */
static bool
admit_is_kept(const struct store_admit *p)
{
	return p->keep && p->what->max_kept != 0;
}

void
store_admit_ask(struct tx *tx, const struct store_admit *p)
{
	const struct store_reservation *what = p->what;
	const struct store_identity *identity = &what->identity;

	tx_send(tx, TX_ADMIT, "wsssii", &p->number, identity->key,
	    identity->path, identity->scope, what->caller,
	    (int64_t)what->max_open);
	if (what->max_active > 0)
		tx_send(tx, TX_ACTIVE_BEYOND, "iii", what->caller,
		    (int64_t)what->max_active, p->leases_from);
	if (admit_is_kept(p))
		tx_send(tx, TX_KEPT_ROOM, "wsssiii", &p->number, identity->key,
		    identity->path, identity->scope,
		    what->caller >> CALLER_ROUTE_BITS << CALLER_ROUTE_BITS,
		    (int64_t)p->more, (int64_t)(what->max_kept / 2));
	if (p->accepts)
		tx_send(tx, TX_QUEUE_LENGTH, "zii", tx->at.now, what->caller,
		    p->queued_from);
}

/* Whether the caller has as many keys in progress as it may. */
static enum rc
admit_read_active(struct tx *tx, struct store_admit *p)
{
	enum rc rc = tx_one(tx, "-");

	p->seen.active = rc == RC_OK;
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/*
 * Whether the other stored requests leave no room for this one in max_kept; or
 * those of its caller take half of that, but for a single one.  RC_LOST: that
 * depends on what the transaction has added since it asked.
 */
static enum rc
admit_read_kept(struct tx *tx, struct store_admit *p)
{
	const uint64_t max = p->what->max_kept;
	int64_t others, own;
	uint64_t all;
	enum rc rc = tx_one(tx, "ii", &others, &own);

	if (rc != RC_OK)
		return rc;
	all = (uint64_t)(others > 0 ? others : 0) + p->before;
	if (p->before > 0 && all + p->more > max / 2)
		return RC_LOST;
	p->seen.no_room =
	    decide_is_no_room(all, (uint64_t)(own > 0 ? own : 0), p->more, max);
	return RC_OK;
}

/* One caller fills at most half of the queue. */
static enum rc
admit_read_queue(struct tx *tx, struct store_admit *p)
{
	int64_t all, own;
	enum rc rc = tx_one(tx, "ii", &all, &own);

	if (rc == RC_OK)
		p->seen.full = decide_is_queue_full(all, own, p->max_queue);
	return rc;
}

/* The record that was there; RC_LOST: it is gone again. */
static enum rc
admit_read_record(struct tx *tx, struct store_admit *p)
{
	enum rc rc;

	tx_send(tx, TX_RECORD_LOOK, "i", p->seen.id);
	if ((rc = tx_result(tx)) == RC_OK && (rc = tx_next(tx)) == RC_OK)
		rc = tx_this_record(tx, &p->found);
	if (rc == RC_CORRUPT)
		rows_bad(tx->database, "once_key", p->seen.id);
	return rc == RC_NOTFOUND ? RC_LOST : rc;
}

static enum rc
admit_read(struct tx *tx, struct store_admit *p)
{
	struct admit_seen *seen = &p->seen;
	enum rc rc;

	memset(seen, 0, sizeof(*seen));
	rc = tx_one(
	    tx, "iiiv", &seen->id, &seen->next, &seen->recent, &seen->open);
	if (rc == RC_OK && p->what->max_active > 0)
		rc = admit_read_active(tx, p);
	if (rc == RC_OK && admit_is_kept(p))
		rc = admit_read_kept(tx, p);
	if (rc == RC_OK && p->accepts)
		rc = admit_read_queue(tx, p);
	if (rc == RC_NOTFOUND)
		return RC_CORRUPT;
	if (rc != RC_OK || seen->id == 0)
		return rc;
	return p->shared ? RC_LOST : admit_read_record(tx, p);
}

/* --- the decision --------------------------------------------------------- */

/* There is no record, or it is past its retention. */
static bool
admit_is_new(const struct store_admit *p, int64_t now)
{
	return p->found.id == 0 || decide_is_past(&p->found, now);
}

static enum decision
admit_decide(const struct store_admit *p, int64_t now)
{
	const struct store_reservation *what = p->what;
	const struct record *found = &p->found;
	enum decide_match match;

	if (found->id == 0)
		return decide(NULL, true, true, now);
	record_check(found);
	/* The caller must compare the fingerprints by that spec. */
	match = decide_match(found, what->fingerprint_spec, what->fingerprint);
	if (match == DECIDE_OTHER_SPEC && !decide_is_past(found, now))
		return DECIDE_BUSY;
	return decide(found, decide_is_mine(found, what->peer, what->cookie),
	    match == DECIDE_SAME, now);
}

static enum decision
admit_limit(const struct store_admit *p, int64_t now)
{
	return decide_limit(&(struct decide_limits){
	    .is_new = admit_is_new(p, now),
	    .waits = p->found.queued,
	    .active = p->seen.active,
	    .open = p->seen.open,
	    .no_room = p->seen.no_room,
	    .used = (uint64_t)p->used,
	    .max = p->what->max_store,
	});
}

/* --- the change ----------------------------------------------------------- */

static enum rc
admit_delete_past(struct tx *tx, struct store_admit *p)
{
	const struct record was = p->found;
	struct step s = { 0 };
	enum rc rc = step_expire(&p->found, tx->at, &s);

	assert(rc != RC_OK || s.gone);
	if (rc == RC_OK)
		rc = store_change_write(tx, &was, &p->found, &s, NULL);
	return rc == RC_LOST ? RC_CORRUPT : rc;
}

/* Makes *r the record of a new key, in place of one that is past. */
static enum rc
admit_make(struct tx *tx, struct store_admit *p, struct record *r)
{
	bool sealed;
	enum rc rc;

	if (p->found.id != 0 && (rc = admit_delete_past(tx, p)) != RC_OK)
		return rc;
	record_free(&p->found);
	memset(&p->found, 0, sizeof(p->found));
	*r = (struct record){ .state = RECORD_NONE,
		.id = p->seen.next,
		.recovery_point = "started" };
	memcpy(r->downstream, p->uuid, sizeof(r->downstream));
	sealed =
	    store_seal(p->secret, SEALED_DOWNSTREAM, &p->number, r->downstream);
	assert(sealed);
	return RC_OK;
}

static enum rc
admit_write(struct tx *tx, struct store_admit *p, struct record *r)
{
	const struct record was = *r;
	struct step_terms terms;
	struct step s = { 0 };
	enum rc rc = RC_OK;

	rows_terms(p->what, p->token, p->owner, &terms);
	terms.resource = p->resource[0] != '\0' ? p->resource : NULL;
	terms.keep_request = p->keep;
	rc = p->accepts ? step_accept(r, &terms, tx->at, &s)
			: step_reserve(r, &terms, tx->at, &s);
	if (rc != RC_OK)
		return rc;
	p->changed = true;
	if (s.work)
		tx->did |= TX_WORK;
	p->is_new = was.state == RECORD_NONE;
	if (!p->is_new) {
		tx->did |= TX_AGAIN;
		rc = store_change_write(tx, &was, r, &s, NULL);
	} else {
		if (p->spec == 0)
			rc = tx->ops->spec(tx, r->fingerprint_spec, &p->spec);
		if (rc == RC_OK)
			rc = store_change_insert(
			    tx, &p->what->identity, &p->number, p->spec, r);
	}
	if (rc == RC_OK && s.request == STEP_SET)
		rc = tx->ops->request(tx, p, r->id);
	p->taken = *r;
	return rc;
}

static enum rc
admit_change(struct tx *tx, struct store_admit *p)
{
	const bool is_new = admit_is_new(p, tx->at.now);
	struct record r;
	enum rc rc = RC_OK;

	if (tx->ops->request_part != NULL)
		rc = tx->ops->request_part(tx, p);
	if (rc != RC_OK || p->part)
		return rc;
	if (is_new && (rc = admit_make(tx, p, &r)) != RC_OK)
		return rc;
	if (!is_new)
		r = p->found;
	memset(&p->found, 0, sizeof(p->found));
	rc = admit_write(tx, p, &r);
	record_free(&r);
	return rc;
}

/* Whether an earlier transaction, whose result was lost, has taken it. */
static bool
admit_is_taken(const struct store_admit *p)
{
	return p->unsure && p->found.state == RECORD_IN_PROGRESS &&
	    strcmp(p->found.token, p->token) == 0;
}

enum rc
store_admit_take(struct tx *tx, struct store_admit *p)
{
	enum rc rc;

	record_free(&p->found);
	memset(&p->found, 0, sizeof(p->found));
	p->full = p->changed = p->is_new = p->part = false;
	if ((rc = admit_read(tx, p)) != RC_OK)
		return rc;
	p->taken = p->found;
	if (admit_is_taken(p)) {
		p->decision = DECIDE_RUN;
		return RC_OK;
	}
	p->decision = admit_decide(p, tx->at.now);
	if (p->decision == DECIDE_RUN)
		p->decision = admit_limit(p, tx->at.now);
	if (p->decision != DECIDE_RUN)
		return RC_OK;
	if (p->accepts && p->found.queued && !admit_is_new(p, tx->at.now))
		return RC_OK;
	p->full = p->seen.full;
	return p->full ? RC_OK : admit_change(tx, p);
}

/* --- the verbs ------------------------------------------------------------ */

void
store_admission_begin(struct store_admission *a)
{
	const struct store_asked *asked = &a->asked;
	const struct store_reservation *what = asked->what;
	const bool accepts = asked->ticket != NULL;

	assert(accepts ? what->environment != NULL : asked->lease != NULL);
	store_admit_check(what, !accepts);
	memset(asked->found, 0, sizeof(*asked->found));
	*asked->decision = DECIDE_BUSY;
	if (accepts)
		memset(asked->ticket, 0, sizeof(*asked->ticket));
	else
		memset(asked->lease, 0, sizeof(*asked->lease));
	store_admit_init(&a->admit, what, accepts);
	a->admit.max_queue = asked->max_queue;
}

enum rc
store_admission_end(struct store_admission *a, enum rc rc)
{
	const struct store_asked *asked = &a->asked;
	struct store_admit *p = &a->admit;

	if (rc != RC_OK) {
		record_free(&p->found);
		return rc;
	}
	*asked->decision = p->decision;
	if (p->decision != DECIDE_RUN) {
		*asked->found = p->found;
		return rc;
	}
	record_free(&p->found);
	if (asked->ticket != NULL) {
		asked->ticket->full = p->full;
		if (!p->full)
			memcpy(asked->ticket->resource, p->taken.resource,
			    sizeof(asked->ticket->resource));
	} else {
		rows_lease(&p->taken, asked->lease);
		asked->lease->no_request = !p->keep;
	}
	return rc;
}
