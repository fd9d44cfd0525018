/*
 * oncectl resolve: an operator, or the program of a webhook, settles a key with
 * an outcome that oncewrap does not know.
 *
 * A refusal names the state that forbids the change.  The store alone decides,
 * in the transaction that makes the change; the lookup before it only makes
 * better messages.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "oncectl_answer.h"
#include "oncectl_change.h"
#include "oncectl_row.h"
#include "route.h"
#include "oncectl.h"

/* Fills in the outcome's response, and whether it can be replayed, by the
 * rules for a handler's. */
static bool
parse_answer(const struct oncectl_input *given, const struct conf_route *rule,
    struct store_outcome *st)
{
	const struct conf_list *drop = &rule->replay_drop;
	struct response *r = &st->response;
	struct cgihead head;

	if (!oncectl_answer_parse(given, r, &head))
		return false;
	response_remove(r, (const char *const *)drop->item, drop->n);
	st->keep = !head.not_replayable &&
	    given->length - head.body_start <= rule->max_response;
	if (!st->keep) {
		r->body = NULL;
		r->body_len = 0;
	}
	return true;
}

static int
refuse_resolve(const struct record *row, enum record_state before)
{
	char *name = oncectl_row_name(row);

	(void)before;
	warnx("%s is %s: only unknown and dead_letter can be resolved", name,
	    record_state_name(row->state));
	free(name);
	return ONCECTL_REFUSED;
}

static int
settle_settle(
    struct oncectl *ctl, struct record *row, struct store_outcome **outcome)
{
	const enum record_state to = (*outcome)->state;
	const bool keep = (*outcome)->keep;
	enum rc rc;

	rc = store_resolve_by_operator(
	    ctl->store, row->id, row->attempt, outcome);
	if (rc == RC_LOST)
		return oncectl_change_lost(ctl, row, refuse_resolve);
	if (rc == RC_PENDING) {
		warnx("%s: the database is locked; whether it was recorded, "
		      "show will tell",
		    ctl->database);
		return ONCECTL_REFUSED;
	}
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	oncectl_change_print(ctl, row, record_state_name(to), to);
	if (to == RECORD_COMPLETED && !keep)
		warnx("the answer cannot be kept for replay: a retry is told "
		      "response-not-kept");
	return ONCECTL_DONE;
}

static int
settle_resolve(struct oncectl *ctl, struct record *row)
{
	const struct conf_route *rule = route_find(ctl->conf, row->path);
	struct store_outcome *st = NULL;
	struct oncectl_input given = { NULL, 0, NULL };
	int status = ONCECTL_REFUSED;

	if (row->state != RECORD_UNKNOWN && row->state != RECORD_DEAD_LETTER)
		return refuse_resolve(row, row->state);
	st = store_outcome_new();
	if (st == NULL) {
		oncectl_fail(ctl, RC_NOMEM);
		goto out;
	}
	if ((ctl->given & ONCECTL_COMPLETED) != 0) {
		st->state = RECORD_COMPLETED;
		if (!oncectl_answer_read(
			&given, rule->max_response + LIMIT_HEAD) ||
		    !parse_answer(&given, rule, st))
			goto out;
		st->body = given.spool;
		given.spool = NULL;
	} else {
		st->state = RECORD_FAILED_RETRYABLE;
		st->requeue = 0; /* an accepted request runs again */
		snprintf(st->last_error, sizeof(st->last_error),
		    "resolved: it was not executed");
	}
	status = settle_settle(ctl, row, &st);
out:
	store_outcome_free(st);
	oncectl_answer_free(&given);
	return status;
}

int
oncectl_resolve(struct oncectl *ctl)
{
	const unsigned both = ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED;
	struct record row;
	int status;

	if ((ctl->given & both) == 0 || (ctl->given & both) == both) {
		warnx("resolve: say --completed or --not-executed");
		return ONCECTL_USAGE;
	}
	status = oncectl_row_find(ctl, &row);
	if (status != -1)
		return status;
	status = settle_resolve(ctl, &row);
	record_free(&row);
	return status;
}
