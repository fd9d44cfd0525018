/*
 * oncectl resolve and forget: an operator, or the program of a webhook,
 * settles a key with an outcome that oncewrap does not know.
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
#include "oncectl_print.h"
#include "oncectl_row.h"
#include "route.h"
#include "oncectl.h"

/* Prints "key K of scope S: was -> is", where text names the new state. */
static void
print_change(const struct oncectl *ctl, const struct store_row *row,
    const char *text, enum record_state to)
{
	char *name;
	cJSON *o;

	if (!ctl->json) {
		name = oncectl_row_name(row);
		printf("%s: %s -> %s\n", name, record_state_name(row->state),
		    text);
		free(name);
		return;
	}
	o = oncectl_print_object();
	oncectl_print_json_text(o, "scope", row->scope);
	oncectl_print_json_text(o, "path", row->path);
	oncectl_print_json_text(o, "key", row->key);
	oncectl_print_json_text(o, "from", record_state_name(row->state));
	oncectl_print_json_text(
	    o, "to", to != RECORD_NONE ? record_state_name(to) : NULL);
	oncectl_print_json(o);
}

/* Fills in the settlement's response, and whether it can be replayed, by the
 * rules for a handler's. */
static bool
parse_answer(const struct oncectl_input *given, const struct conf_route *rule,
    struct store_settlement *st)
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

/* --- resolve ------------------------------------------------------------ */

static int
refuse_resolve(const struct store_row *row)
{
	char *name = oncectl_row_name(row);

	warnx("%s is %s: only unknown and dead_letter can be resolved", name,
	    record_state_name(row->state));
	free(name);
	return ONCECTL_REFUSED;
}

/* Another process changed the key first: prints its new state. */
static int
refuse_lost(struct oncectl *ctl, struct store_row *row,
    int (*refuse)(const struct store_row *))
{
	char *name = oncectl_row_name(row);
	enum rc rc = oncectl_row_again(ctl, row);
	int status = ONCECTL_REFUSED;

	if (rc == RC_OK)
		status = refuse(row);
	else if (rc == RC_NOTFOUND)
		warnx("%s is gone", name);
	else
		status = oncectl_fail(ctl, rc);
	free(name);
	return status;
}

/* Takes over *settlement. */
static int
settle(struct oncectl *ctl, struct store_row *row,
    struct store_settlement **settlement)
{
	const enum record_state to = (*settlement)->state;
	const bool keep = (*settlement)->keep;
	int64_t expires_at;
	enum rc rc;

	rc = store_settle(ctl->store, settlement, &expires_at);
	if (rc == RC_LOST)
		return refuse_lost(ctl, row, refuse_resolve);
	if (rc == RC_PENDING) {
		warnx("%s: the database is locked; whether it was recorded, "
		      "show will tell",
		    ctl->database);
		return ONCECTL_REFUSED;
	}
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	print_change(ctl, row, record_state_name(to), to);
	if (to == RECORD_COMPLETED && !keep)
		warnx("the answer cannot be kept for replay: a retry is told "
		      "response-not-kept");
	return ONCECTL_DONE;
}

static int
resolve(struct oncectl *ctl, struct store_row *row)
{
	const struct conf_route *rule = route_find(ctl->conf, row->path);
	struct store_settlement *st = NULL;
	struct oncectl_input given = { NULL, 0, NULL };
	int status = ONCECTL_REFUSED;

	if (row->state != RECORD_UNKNOWN && row->state != RECORD_DEAD_LETTER)
		return refuse_resolve(row);
	st = store_settlement_new();
	if (st == NULL) {
		oncectl_fail(ctl, RC_NOMEM);
		goto out;
	}
	st->id = row->id;
	st->tries.tries = -1;
	st->tries.attempt = row->attempt;
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
	status = settle(ctl, row, &st);
out:
	store_settlement_free(st);
	oncectl_answer_free(&given);
	return status;
}

int
oncectl_resolve(struct oncectl *ctl)
{
	const unsigned both = ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED;
	struct store_row row;
	int status;

	if ((ctl->given & both) == 0 || (ctl->given & both) == both) {
		warnx("resolve: say --completed or --not-executed");
		return ONCECTL_USAGE;
	}
	status = oncectl_row_find(ctl, &row);
	if (status != -1)
		return status;
	status = resolve(ctl, &row);
	store_row_free(&row);
	return status;
}

/* --- forget ------------------------------------------------------------- */

static int
refuse_forget(const struct store_row *row)
{
	char *name = oncectl_row_name(row);

	warnx("%s is %s: it cannot be forgotten while it runs", name,
	    record_state_name(row->state));
	free(name);
	return ONCECTL_REFUSED;
}

static int
forget(struct oncectl *ctl, struct store_row *row)
{
	char *name;
	enum rc rc;
	bool gone;

	if (row->state == RECORD_IN_PROGRESS) {
		rc = store_owner_gone(ctl->store, row->id, &gone);
		if (rc != RC_OK || !gone)
			return refuse_forget(row);
		name = oncectl_row_name(row);
		warnx("%s is in_progress, by a process that is gone: "
		      "\"oncectl sweep\" settles it, then it can be forgotten",
		    name);
		free(name);
		return ONCECTL_REFUSED;
	}
	rc = store_forget(ctl->store, row->id);
	if (rc == RC_LOST)
		return refuse_lost(ctl, row, refuse_forget);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	print_change(ctl, row, "forgotten", RECORD_NONE);
	return ONCECTL_DONE;
}

int
oncectl_forget(struct oncectl *ctl)
{
	struct store_row row;
	int status = oncectl_row_find(ctl, &row);

	if (status != -1)
		return status;
	status = forget(ctl, &row);
	store_row_free(&row);
	return status;
}
