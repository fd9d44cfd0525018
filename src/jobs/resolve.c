/*
 * See resolve.h.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "resolve.h"

const char *
resolve_refusal(enum record_state state)
{
	return state == RECORD_UNKNOWN || state == RECORD_DEAD_LETTER
	    ? NULL
	    : "only unknown and dead_letter can be resolved";
}

/* Whether the head agrees with the act and with the body. */
static bool
resolve_agrees(
    const struct cgihead *head, uint64_t body_len, char why[RESOLVE_WHY])
{
	if (head->outcome != CGIHEAD_SAYS_NOTHING &&
	    head->outcome != CGIHEAD_SAYS_COMPLETED) {
		snprintf(why, RESOLVE_WHY,
		    "its Idempotency-Outcome is not \"completed\"");
		return false;
	}
	if (head->content_length == -1 ||
	    (uint64_t)head->content_length == body_len)
		return true;
	snprintf(why, RESOLVE_WHY,
	    "Content-Length says %" PRId64 ", but the body has %" PRIu64
	    " bytes",
	    head->content_length, body_len);
	return false;
}

bool
resolve_parse(struct spool *text, uint64_t length, struct response *r,
    struct cgihead *head, char why[RESOLVE_WHY])
{
	enum rc rc = RC_OK;
	const char *bytes = spool_bytes(text, &rc);
	const size_t n = (size_t)spool_length(text);
	enum cgihead_verdict verdict;

	if (rc != RC_OK) {
		snprintf(why, RESOLVE_WHY, "%s", rc_text(rc));
		return false;
	}
	verdict = cgihead_parse(bytes, n, true, r, head);
	if (verdict != CGIHEAD_OK) {
		snprintf(why, RESOLVE_WHY, "%s",
		    verdict == CGIHEAD_EMPTY
			? "empty: give a CGI response, head and body"
			: cgihead_verdict_text(verdict));
		return false;
	}
	if (!resolve_agrees(head, length - head->body_start, why))
		return false;
	response_remove_own(r);
	r->body_len = n - head->body_start;
	r->body = r->body_len > 0 ? bytes + head->body_start : NULL;
	return true;
}

bool
resolve_completed(const struct conf_route *route, struct spool **text,
    uint64_t length, struct store_outcome *outcome, char why[RESOLVE_WHY])
{
	const struct conf_list *drop = &route->replay_drop;
	struct response *r = &outcome->response;
	struct cgihead head;

	if (!resolve_parse(*text, length, r, &head, why))
		return false;
	response_remove(r, (const char *const *)drop->item, drop->n);
	outcome->state = RECORD_COMPLETED;
	outcome->keep = !head.not_replayable &&
	    length - head.body_start <= route->max_response;
	if (!outcome->keep) {
		r->body = NULL;
		r->body_len = 0;
	}
	outcome->body = *text;
	*text = NULL;
	return true;
}

void
resolve_not_executed(struct store_outcome *outcome)
{
	outcome->state = RECORD_FAILED_RETRYABLE;
	outcome->requeue = 0;
	snprintf(outcome->last_error, sizeof(outcome->last_error),
	    "resolved: it was not executed");
}

const struct resolve_act resolve_acts[RESOLVE_NACTS] = {
	[RESOLVE_RELEASE] = { "not-executed", "released",
	    RECORD_FAILED_RETRYABLE, { RECORD_UNKNOWN, RECORD_DEAD_LETTER },
	    2 },
	[RESOLVE_FORGET] = { "forget", "forgotten", RECORD_NONE,
	    { RECORD_NONE }, 1 },
};

const char *
resolve_result(enum rc rc)
{
	if (rc == RC_OK)
		return "done";
	if (rc == RC_LOST)
		return "lost";
	return rc == RC_PENDING ? "pending" : rc_text(rc);
}

/* Says what became of the key in its present attempt. */
static enum rc
resolve_settle(
    struct store *s, int64_t id, int attempt, struct resolve_answer *answer)
{
	struct store_outcome *outcome = store_outcome_new(s);
	enum rc rc = RC_OK;

	if (outcome == NULL)
		return RC_NOMEM;
	if (answer == NULL)
		resolve_not_executed(outcome);
	else if (resolve_completed(answer->route, &answer->text, answer->length,
		     outcome, answer->why))
		answer->replayable = outcome->keep;
	else
		rc = RC_INVALID;
	if (rc == RC_OK)
		rc = store_resolve_by_operator(s, id, attempt, &outcome);
	store_outcome_free(outcome);
	return rc;
}

enum rc
resolve_key(struct store *s, const struct resolve_act *act,
    const struct record *key, struct resolve_answer *answer)
{
	return act->to == RECORD_NONE
	    ? store_forget(s, key->id, key->state)
	    : resolve_settle(s, key->id, key->attempt, answer);
}

/* Releases n keys, each in a transaction of its own. */
static enum rc
release_some(struct store *s, struct store_chosen *keys, size_t n)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; i < n && rc == RC_OK; i++) {
		rc = resolve_settle(s, keys[i].id, keys[i].attempt, NULL);
		keys[i].done = rc == RC_OK;
		if (rc == RC_LOST)
			rc = RC_OK;
	}
	return rc;
}

/* Reads keys that were found, from *at on, as many as one transaction takes:
 * those that may be acted on. */
static enum rc
resolve_read_some(struct resolve_many *m, const struct store_found *found,
    size_t *at, struct record *rows, size_t *n)
{
	enum rc rc = RC_OK;

	for (*n = 0; *n < STORE_CHOSEN_MAX && *at < found->n && rc == RC_OK;) {
		struct record *r = &rows[*n];

		rc = store_browse_key(m->store, found->id[(*at)++], r, NULL);
		if (rc == RC_OK && r->updated_at < m->moment &&
		    r->state != RECORD_IN_PROGRESS)
			++*n;
		else if (rc == RC_OK) {
			m->stayed++;
			record_free(r);
		} else if (rc == RC_NOTFOUND)
			rc = RC_OK;
	}
	return rc;
}

static enum rc
act_on_some(struct resolve_many *m, const struct store_found *found, size_t *at)
{
	struct store_chosen keys[STORE_CHOSEN_MAX];
	struct record rows[STORE_CHOSEN_MAX];
	enum rc rc, each;
	size_t n;

	rc = resolve_read_some(m, found, at, rows, &n);
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct store_chosen){ .id = rows[i].id,
			.attempt = rows[i].attempt,
			.from = rows[i].state };
	if (rc == RC_OK && n > 0)
		rc = m->act->to == RECORD_NONE
		    ? store_forget_some(m->store, keys, n)
		    : release_some(m->store, keys, n);
	for (size_t i = 0; i < n; i++) {
		each = keys[i].done ? RC_OK : rc == RC_OK ? RC_LOST : rc;
		m->done += keys[i].done;
		m->stayed += !keys[i].done;
		m->tell(m, &rows[i], each);
		record_free(&rows[i]);
	}
	return rc;
}

static bool
time_is_up(const struct resolve_many *m)
{
	return clock_mono() >= m->until_mono;
}

static enum rc
act_on_found(struct resolve_many *m, const struct store_filter *filter)
{
	struct store_browse b = {
		.filter = *filter, .oldest = true, .every = m->every
	};
	struct store_found found;
	size_t i;
	enum rc rc;

	for (;;) {
		i = 0;
		b.after = m->next[0] != '\0' ? m->next : NULL;
		rc = store_browse(m->store, &b, &found);
		while (rc == RC_OK && i < found.n && !time_is_up(m))
			rc = act_on_some(m, &found, &i);
		m->left = rc != RC_OK || i < found.n || found.next[0] != '\0';
		if (rc == RC_OK && i == found.n)
			memcpy(m->next, found.next, sizeof(m->next));
		if (!m->left || rc != RC_OK || time_is_up(m))
			return rc;
	}
}

bool
resolve_filter(const struct store_filter *filter, enum record_state state,
    struct store_filter *out)
{
	*out = *filter;
	if (state == RECORD_NONE)
		return filter->state != RECORD_IN_PROGRESS;
	out->state = state;
	return filter->state == RECORD_NONE || filter->state == state;
}

enum rc
resolve_many(struct resolve_many *m)
{
	const struct resolve_act *act = m->act;
	struct store_filter filter;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < act->nstates && rc == RC_OK && !m->left; i++)
		if (resolve_filter(&m->filter, act->states[i], &filter))
			rc = act_on_found(m, &filter);
	return rc;
}
