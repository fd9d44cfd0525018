/*
 * Changes of a key by an operator, and oncectl resolve: an operator, or the
 * program of a webhook, settles a key with an outcome that oncewrap does not
 * know.
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
#include "oncectl.h"
#include "oncectl_answer.h"
#include "oncectl_log.h"
#include "oncectl_many.h"
#include "oncectl_print.h"
#include "oncectl_row.h"
#include "resolve.h"
#include "route.h"
#include "oncectl_change.h"

void
oncectl_change_print(const struct oncectl *ctl, const struct record *row,
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

int
oncectl_change_lost(struct oncectl *ctl, struct record *row,
    int (*refuse)(const struct record *, enum record_state before))
{
	const enum record_state before = row->state;
	char *name = oncectl_row_name(row);
	enum rc rc = oncectl_row_again(ctl, row);
	int status = ONCECTL_REFUSED;

	if (rc == RC_OK)
		status = refuse(row, before);
	else if (rc == RC_NOTFOUND)
		warnx("%s is gone", name);
	else
		status = oncectl_fail(ctl, rc);
	free(name);
	return status;
}

/* Of another failure the store says that nothing was changed. */
int
oncectl_change_failed(const struct oncectl *ctl, enum rc rc, const char *where)
{
	if (rc == RC_PENDING)
		warnx("%s: the database did not confirm the change in time; "
		      "whether it was made, \"oncectl %s\" tells",
		    ctl->database, where);
	else if (rc == RC_TIMEOUT)
		warnx("%s: the database did not answer in time; nothing was "
		      "changed",
		    ctl->database);
	else
		return oncectl_fail(ctl, rc);
	return ONCECTL_REFUSED;
}

/* Fills in the outcome with the response on standard input. */
static bool
read_completed(const struct conf_route *rule, struct store_outcome *st)
{
	struct oncectl_input given = { NULL, 0, NULL };
	char why[RESOLVE_WHY];
	bool good;

	good = oncectl_answer_read(&given, rule->max_response + LIMIT_HEAD);
	if (good &&
	    !resolve_completed(rule, &given.spool, given.length, st, why))
		good = oncectl_answer_bad(why);
	oncectl_answer_free(&given);
	return good;
}

static int
refuse_resolve(const struct record *row, enum record_state before)
{
	const char *why = resolve_refusal(row->state);
	char *name = oncectl_row_name(row);

	(void)before;
	warnx("%s is %s: %s", name, record_state_name(row->state),
	    why != NULL ? why : "it changed meanwhile; say it again");
	free(name);
	return ONCECTL_REFUSED;
}

static int
settle_write(
    struct oncectl *ctl, struct record *row, struct store_outcome **outcome)
{
	const enum record_state to = (*outcome)->state;
	const bool keep = (*outcome)->keep;
	enum rc rc;

	rc = store_resolve_by_operator(
	    ctl->store, row->id, row->attempt, outcome);
	oncectl_log(ctl,
	    &(struct oncectl_act){ ONCECTL_ACT_OF(row),
		.act = to == RECORD_COMPLETED ? "completed" : "not-executed",
		.rc = rc });
	if (rc == RC_LOST)
		return oncectl_change_lost(ctl, row, refuse_resolve);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "show");
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
	struct store_outcome *st;
	int status = ONCECTL_REFUSED;
	char *name;

	if (row->state == RECORD_IN_PROGRESS &&
	    store_owner_is_dead(ctl->store, row->owner)) {
		name = oncectl_row_name(row);
		warnx("%s is in_progress, by a process that is gone: "
		      "\"oncectl sweep\" settles it, or says what it waits for",
		    name);
		free(name);
		return ONCECTL_REFUSED;
	}
	if (resolve_refusal(row->state) != NULL)
		return refuse_resolve(row, row->state);
	st = store_outcome_new(ctl->store);
	if (st == NULL)
		return oncectl_fail(ctl, RC_NOMEM);
	if ((ctl->given & ONCECTL_COMPLETED) == 0)
		resolve_not_executed(st);
	if ((ctl->given & ONCECTL_COMPLETED) == 0 || read_completed(rule, st))
		status = settle_write(ctl, row, &st);
	store_outcome_free(st);
	return status;
}

int
oncectl_resolve(struct oncectl *ctl)
{
	static const struct oncectl_many many = { "not-executed", "released",
		RECORD_FAILED_RETRYABLE, { RECORD_UNKNOWN, RECORD_DEAD_LETTER },
		2, resolve_some };
	const unsigned both = ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED;
	struct record row;
	int status;

	if ((ctl->given & both) == 0 || (ctl->given & both) == both) {
		warnx("resolve: say --completed or --not-executed");
		return ONCECTL_USAGE;
	}
	if (!oncectl_row_is_named(ctl) && (ctl->given & ONCECTL_MANY) != 0) {
		if ((ctl->given & ONCECTL_NOT_EXECUTED) != 0)
			return oncectl_many(ctl, &many);
		warnx("resolve: --completed is said of one key: name it");
		return ONCECTL_USAGE;
	}
	status = oncectl_row_find(ctl, &row);
	if (status != -1)
		return status;
	status = settle_resolve(ctl, &row);
	record_free(&row);
	return status;
}
