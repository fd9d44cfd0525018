/*
 * See step.h.  The only place that decides what a record becomes: its state,
 * its deadlines, and what stays of its lease.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "step.h"

static enum rc
move_state(struct record *r, enum record_state to, struct step_time at)
{
	if (!record_may_change(r->state, to, false))
		return RC_INVALID;
	r->state = to;
	r->updated_at = at.wall;
	return RC_OK;
}

/* Sets a text that the record owns. */
static enum rc
set_text(char **text, const char *to)
{
	char *copy = NULL;

	if (to != NULL && (copy = strdup(to)) == NULL)
		return RC_NOMEM;
	free(*text);
	*text = copy;
	return RC_OK;
}

static enum rc
set_error(struct record *r, const char *error)
{
	return set_text(
	    &r->last_error, error != NULL && *error != '\0' ? error : NULL);
}

/* The key is that of this request.  Without a fingerprint it takes that of the
 * request. */
static enum rc
step_take_request(struct record *r, const struct step_terms *terms)
{
	enum rc rc;

	r->caller = terms->caller;
	snprintf(r->cookie, sizeof(r->cookie), "%s",
	    terms->cookie != NULL ? terms->cookie : "");
	snprintf(r->method, sizeof(r->method), "%s",
	    terms->method != NULL ? terms->method : "POST");
	snprintf(r->instance, sizeof(r->instance), "%s",
	    terms->instance != NULL ? terms->instance : "");
	if ((rc = set_text(&r->peer, terms->peer)) != RC_OK)
		return rc;
	if (r->fingerprint_spec != NULL && record_has_fingerprint(r))
		return RC_OK;
	memcpy(r->fingerprint, terms->fingerprint, sizeof(r->fingerprint));
	return set_text(&r->fingerprint_spec, terms->fingerprint_spec);
}

/* --- the lease ------------------------------------------------------------ */

static bool
has_lease(const struct record *r, const char *token)
{
	return r->token[0] != '\0' && strcmp(r->token, token) == 0;
}

/* Whether the attempt of that token may end: it has the lease, or it lost the
 * lease on a suspicion. */
static bool
may_end(const struct record *r, const char *token)
{
	return has_lease(r, token) ||
	    (r->late_token[0] != '\0' && strcmp(r->late_token, token) == 0);
}

static void
step_take_lease(
    struct record *r, const struct step_terms *terms, struct step_time at)
{
	assert(strlen(terms->token) == RECORD_TOKEN_LEN);
	r->attempt++;
	memcpy(r->token, terms->token, sizeof(r->token));
	r->owner = terms->owner;
	r->locked_until = at.now + terms->lease;
	r->attempt_lock = terms->attempt_lock;
	r->lock_file = terms->lock_file;
	r->expires_at = 0;
	r->queued = false;
	r->queued_at = 0;
}

static void
end_lease(struct record *r, struct step *s)
{
	r->token[0] = '\0';
	r->owner = 0;
	r->locked_until = 0;
	r->attempt_lock = r->lock_file = 0;
	r->reconcile_after = 0;
	r->late_token[0] = '\0';
	r->unconfirmed = false;
	s->ended = true;
}

/* The name that a key's status resource has is kept. */
static void
set_resource(struct record *r, const char *resource)
{
	if (r->resource[0] == '\0' && resource != NULL)
		snprintf(r->resource, sizeof(r->resource), "%s", resource);
}

static void
set_terms(struct record *r, const struct step_terms *terms)
{
	r->resume = terms->resume;
	r->retention = terms->retention;
	r->expired_retention = terms->expired_retention;
	r->reconcile_delay = terms->reconcile_delay;
	set_resource(r, terms->resource);
}

enum rc
step_reserve(struct record *r, const struct step_terms *terms,
    struct step_time at, struct step *s)
{
	const bool is_new = r->state == RECORD_NONE;
	enum rc rc;

	/* A worker starts what is pending. */
	if (r->state == RECORD_PENDING)
		return RC_INVALID;
	if ((rc = move_state(r, RECORD_IN_PROGRESS, at)) != RC_OK)
		return rc;
	if (is_new)
		r->created_at = at.wall;
	set_terms(r, terms);
	step_take_lease(r, terms, at);
	r->accepted = false;
	if ((rc = step_take_request(r, terms)) != RC_OK)
		return rc;
	s->request = terms->keep_request ? STEP_SET
	    : is_new                     ? STEP_STAYS
					 : STEP_DELETED;
	return RC_OK;
}

enum rc
step_accept(struct record *r, const struct step_terms *terms,
    struct step_time at, struct step *s)
{
	enum rc rc;

	if (r->queued)
		return RC_OK;
	if (r->state == RECORD_NONE) {
		if ((rc = move_state(r, RECORD_PENDING, at)) != RC_OK)
			return rc;
		r->created_at = at.wall;
		set_terms(r, terms);
	} else if (r->state != RECORD_FAILED_RETRYABLE)
		return RC_INVALID;
	/* A released key stays released until a worker takes its lease, which
	 * sets the other terms. */
	set_resource(r, terms->resource);
	r->retention = terms->retention;
	r->updated_at = at.wall;
	r->accepted = r->queued = true;
	r->queued_at = at.now;
	r->expires_at = at.age + terms->retention;
	s->request = STEP_SET;
	s->work = true;
	return step_take_request(r, terms);
}

enum rc
step_start(struct record *r, int attempt, const struct step_terms *terms,
    struct step_time at, struct step *s)
{
	enum rc rc;

	(void)s;
	if (r->attempt != attempt || !r->queued || r->queued_at > at.now ||
	    r->expires_at <= at.now)
		return RC_LOST;
	if ((rc = move_state(r, RECORD_IN_PROGRESS, at)) != RC_OK)
		return rc;
	set_terms(r, terms);
	step_take_lease(r, terms, at);
	return RC_OK;
}

/* --- the end of an attempt ------------------------------------------------ */

static enum rc
set_answer(struct record *r, const struct step_answer *answer, struct step *s)
{
	r->replayable = answer->keep;
	r->status = answer->status;
	r->body_length = answer->keep ? answer->length : 0;
	s->answer = STEP_SET;
	s->request = STEP_DELETED;
	s->ended = true;
	r->retention = 0;
	return set_error(r, NULL);
}

/* The pause before the next attempt of an accepted key is not part of its
 * retention. */
static enum rc
set_released(struct record *r, int64_t retention, const struct step_reason *why,
    struct step_time at, struct step *s)
{
	const bool again = r->accepted && why->requeue >= 0;
	enum rc rc;

	r->queued = again;
	r->queued_at = again ? at.now + why->requeue : 0;
	r->expires_at = at.age + retention + (again ? why->requeue : 0);
	/* An accepted key needs its request to run again. */
	s->request = r->accepted ? STEP_STAYS : STEP_DELETED;
	s->work = again;
	s->ended = true;
	if (why->nothing_happened && !again &&
	    strcmp(r->recovery_point, "started") == 0 &&
	    (rc = set_text(&r->fingerprint_spec, "")) != RC_OK)
		return rc;
	return set_error(r, why->error);
}

/* The answer that the attempt has committed itself stands.  Its age begins when
 * that is confirmed first. */
static enum rc
confirm_completed(struct record *r, struct step_time at, struct step *s)
{
	if (r->unconfirmed)
		r->expires_at = at.age + r->retention;
	r->retention = 0;
	end_lease(r, s);
	r->updated_at = at.wall;
	s->request = STEP_DELETED;
	s->confirmed = s->work = true;
	return RC_OK;
}

enum rc
step_complete(struct record *r, const char *token, int64_t retention,
    const struct step_answer *answer, struct step_time at, struct step *s)
{
	enum rc rc;

	if (!may_end(r, token))
		return RC_LOST;
	if (r->state == RECORD_COMPLETED)
		return confirm_completed(r, at, s);
	if ((rc = move_state(r, RECORD_COMPLETED, at)) != RC_OK)
		return rc;
	end_lease(r, s);
	r->expires_at = at.age + retention;
	return set_answer(r, answer, s);
}

enum rc
step_release(struct record *r, const char *token, int64_t retention,
    const struct step_reason *why, struct step_time at, struct step *s)
{
	enum rc rc;

	if (!may_end(r, token))
		return RC_LOST;
	if (r->state == RECORD_COMPLETED)
		return confirm_completed(r, at, s);
	if ((rc = move_state(r, RECORD_FAILED_RETRYABLE, at)) != RC_OK)
		return rc;
	end_lease(r, s);
	return set_released(r, retention, why, at, s);
}

enum rc
step_unknown(struct record *r, const char *token, const struct step_reason *why,
    struct step_time at, struct step *s)
{
	const int64_t lock = r->attempt_lock, file = r->lock_file;
	enum rc rc;

	if (!may_end(r, token) || r->state == RECORD_UNKNOWN)
		return RC_LOST;
	if (r->state == RECORD_COMPLETED)
		return confirm_completed(r, at, s);
	if ((rc = move_state(r, RECORD_UNKNOWN, at)) != RC_OK)
		return rc;
	end_lease(r, s);
	r->expires_at = 0;
	r->reconcile_attempts = 0;
	r->reconcile_after = 0;
	if (r->reconcile_delay > 0) {
		r->reconcile_after = at.now + r->reconcile_delay;
		/* The reconciler waits for the attempt's processes. */
		r->attempt_lock = lock;
		r->lock_file = file;
		s->work = true;
	}
	return set_error(r, why->error);
}

enum rc
step_recover(struct record *r, bool lives, int64_t requeue, struct step_time at,
    struct step *s)
{
	const struct step_reason lost = { .error = "oncewrap was lost" };
	const struct step_reason resumed = {
		.error = "oncewrap was lost; it may be resumed",
		.requeue = requeue,
	};
	char token[RECORD_TOKEN_LEN + 1];
	enum rc rc;

	memcpy(token, r->token[0] != '\0' ? r->token : r->late_token,
	    sizeof(token));
	if (r->resume && !r->unconfirmed && !lives)
		return step_release(r, token, r->retention, &resumed, at, s);
	if (r->resume && !r->unconfirmed && at.now < r->locked_until)
		return RC_BUSY;
	rc = step_unknown(r, token, &lost, at, s);
	if (rc == RC_OK && !lives)
		r->attempt_lock = r->lock_file = 0;
	return rc;
}

enum rc
step_suspect(struct record *r, struct step_time at, struct step *s)
{
	const struct step_reason silent = {
		.error = "the host of its oncewrap gave no sign of life",
	};
	const int64_t lock = r->attempt_lock, file = r->lock_file;
	const int64_t until = r->locked_until;
	char token[RECORD_TOKEN_LEN + 1];
	enum rc rc;

	memcpy(token, r->token, sizeof(token));
	rc = step_unknown(r, token, &silent, at, s);
	if (rc != RC_OK)
		return rc;
	memcpy(r->late_token, token, sizeof(r->late_token));
	if (r->state != RECORD_UNKNOWN)
		return RC_OK;
	/* Its handler may run until its deadline: no reconciler is asked before
	 * that.  Its own host may find that it has ended, and release it. */
	if (r->reconcile_after > 0 && until > at.now)
		r->reconcile_after = until + r->reconcile_delay;
	if (r->resume || r->reconcile_delay > 0) {
		r->attempt_lock = lock;
		r->lock_file = file;
	}
	return RC_OK;
}

/* --- an open outcome ------------------------------------------------------ */

bool
step_may_resolve(
    const struct record *r, int attempt, int tries, bool by_operator)
{
	if (r->attempt != attempt)
		return false;
	if (by_operator && r->state == RECORD_DEAD_LETTER)
		return true;
	return r->state == RECORD_UNKNOWN &&
	    (by_operator || r->reconcile_attempts == tries);
}

enum rc
step_claim(struct record *r, int attempt, int tries, bool count, int64_t after,
    struct step_time at)
{
	if (!step_may_resolve(r, attempt, tries, false))
		return RC_LOST;
	r->reconcile_after = at.now + after;
	if (count) {
		r->reconcile_attempts++;
		r->attempt_lock = r->lock_file = 0;
	}
	return RC_OK;
}

enum rc
step_resolve(struct record *r, enum record_state to,
    const struct step_answer *answer, const struct step_reason *why,
    struct step_time at, struct step *s)
{
	enum rc rc;

	if (r->state != RECORD_UNKNOWN && r->state != RECORD_DEAD_LETTER)
		return RC_LOST;
	if ((rc = move_state(r, to, at)) != RC_OK)
		return rc;
	end_lease(r, s);
	r->reconcile_after = 0;
	if (to == RECORD_COMPLETED) {
		r->expires_at = at.age + r->retention;
		return set_answer(r, answer, s);
	}
	if (to == RECORD_FAILED_RETRYABLE)
		return set_released(r, r->retention, why, at, s);
	return set_error(r, why->error);
}

/* --- age, and operators --------------------------------------------------- */

enum rc
step_abandon(struct record *r, const struct step_answer *answer,
    struct step_time at, struct step *s)
{
	enum rc rc;

	if (r->state != RECORD_PENDING || r->expires_at > at.now)
		return RC_LOST;
	if ((rc = move_state(r, RECORD_COMPLETED, at)) != RC_OK)
		return rc;
	r->queued = false;
	r->queued_at = 0;
	r->expires_at = at.age + r->retention;
	return set_answer(r, answer, s);
}

/* A verdict that releases the key says that the attempt has done nothing. */
static enum rc
resolve(struct record *r, const struct step_outcome *o, struct step_time at,
    struct step *s)
{
	const bool by_operator = o->verb == STEP_RESOLVE_BY_OPERATOR;
	struct step_reason why = o->why;

	if (!step_may_resolve(r, o->attempt, o->tries, by_operator))
		return RC_LOST;
	why.nothing_happened = true;
	return step_resolve(r, o->state, &o->answer, &why, at, s);
}

enum rc
step_outcome(struct record *r, const struct step_outcome *o,
    struct step_time at, struct step *s)
{
	if (o->verb == STEP_ABANDON)
		return step_abandon(r, &o->answer, at, s);
	if (o->verb != STEP_FINISH)
		return resolve(r, o, at, s);
	if (o->state == RECORD_UNKNOWN)
		return step_unknown(r, o->token, &o->why, at, s);
	if (o->state == RECORD_FAILED_RETRYABLE)
		return step_release(r, o->token, o->retention, &o->why, at, s);
	return step_complete(r, o->token, o->retention, &o->answer, at, s);
}

enum rc
step_expire(struct record *r, struct step_time at, struct step *s)
{
	const int64_t until = r->expires_at + r->expired_retention;
	enum rc rc;

	if (r->unconfirmed || r->expires_at == 0 || r->expires_at > at.now)
		return RC_LOST;
	s->gone = decide_is_past(r, at.now);
	if (s->gone)
		return move_state(r, RECORD_NONE, at);
	if ((rc = move_state(r, RECORD_EXPIRED, at)) != RC_OK)
		return rc;
	r->expires_at = until;
	r->late_token[0] = '\0';
	r->queued = false;
	r->queued_at = 0;
	r->replayable = false;
	r->body_length = 0;
	s->answer = s->request = STEP_DELETED;
	return RC_OK;
}

enum rc
step_forget(const struct record *r, enum record_state from, struct step *s)
{
	if (r->token[0] != '\0' || (from != RECORD_NONE && r->state != from))
		return RC_LOST;
	s->gone = true;
	return record_may_change(r->state, RECORD_NONE, true) ? RC_OK
							      : RC_INVALID;
}
