/*
 * oncectl resolve and forget, of one key or of all that the options choose.  An
 * operator, or the program of a webhook, settles a key with an outcome that
 * oncewrap does not know.
 *
 * A refusal names the state that forbids the change.  The store alone decides,
 * in the transaction that makes the change; the lookup before it only makes
 * better messages.
 */
#include "config.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "resolve.h"
#include "route.h"
#include "words.h"
#include "oncectl.h"

/* --- what it did ---------------------------------------------------------- */

/* Prints "key K of scope S: was -> text", or an object; to is the new state,
 * RECORD_NONE for a key that is deleted. */
static void
change_print(const struct oncectl *ctl, const struct record *row,
    const char *text, enum record_state to)
{
	struct json_write *o;

	if (!ctl->json) {
		printf("%s: %s -> %s\n", oncectl_row_name(row),
		    record_state_name(row->state), text);
		return;
	}
	o = oncectl_row_identity(row);
	json_write_text(o, "from", record_state_name(row->state));
	json_write_text(
	    o, "to", to != RECORD_NONE ? record_state_name(to) : NULL);
	oncectl_print_json(o);
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

static void
change_log(const struct oncectl *ctl, const struct record *row, const char *act,
    enum rc rc)
{
	oncectl_log(ctl, act, rc,
	    &(struct store_identity){ row->scope, row->path, row->key }, NULL);
}

/* --- one key -------------------------------------------------------------- */

static const struct resolve_act *const forget = &resolve_acts[RESOLVE_FORGET];

/* Why its state forbids the change; NULL: it does not. */
static const char *
why_not(const struct oncectl *ctl, const struct resolve_act *act,
    const struct record *row)
{
	if (row->state == RECORD_IN_PROGRESS &&
	    store_owner_is_dead(ctl->store, row->owner))
		return "its process is gone: \"oncectl sweep\" settles it, or "
		       "says what it waits for";
	if (act != forget)
		return resolve_refusal(row->state);
	return row->state == RECORD_IN_PROGRESS
	    ? "it cannot be forgotten while it runs"
	    : NULL;
}

/* The store refused the change: another process has changed the key first, or a
 * lease holds it.  Reads the key again to say which. */
static int
change_lost(
    struct oncectl *ctl, const struct resolve_act *act, struct record *row)
{
	const char *name = oncectl_row_name(row);
	const int64_t id = row->id;
	const char *why;
	int status = ONCECTL_REFUSED;
	enum rc rc;

	record_free(row);
	rc = store_browse_key(ctl->store, id, row, NULL);
	if (rc == RC_OK) {
		why = why_not(ctl, act, row);
		oncectl_row_refuse(row,
		    why != NULL ? why : "it changed meanwhile; say it again");
	} else if (rc == RC_NOTFOUND)
		warnx("%s is gone", name);
	else
		status = oncectl_fail(ctl, rc);
	return status;
}

static int
change_one(
    struct oncectl *ctl, const struct resolve_act *act, struct record *row)
{
	const bool completed = (ctl->given & ONCECTL_COMPLETED) != 0;
	const char *why = why_not(ctl, act, row);
	struct resolve_answer answer = { .route =
					     route_find(ctl->conf, row->path) };
	struct oncectl_input given = { NULL, 0, NULL };
	enum record_state to = completed ? RECORD_COMPLETED : act->to;
	enum rc rc;

	if (why != NULL)
		return oncectl_row_refuse(row, why);
	if (completed &&
	    !oncectl_input_read(
		&given, answer.route->max_response + LIMIT_HEAD)) {
		oncectl_input_free(&given);
		return ONCECTL_REFUSED;
	}
	answer.text = given.spool;
	answer.length = given.length;
	rc = resolve_key(ctl->store, act, row, completed ? &answer : NULL);
	spool_free(answer.text);
	if (answer.why[0] != '\0') {
		oncectl_input_bad(&given, answer.why);
		return ONCECTL_REFUSED;
	}
	change_log(ctl, row, completed ? "completed" : act->name, rc);
	if (rc == RC_LOST)
		return change_lost(ctl, act, row);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "show");
	change_print(ctl, row,
	    to != RECORD_NONE ? record_state_name(to) : act->done, to);
	if (completed && !answer.replayable)
		warnx("the answer cannot be kept for replay: a retry is told "
		      "response-not-kept");
	return ONCECTL_DONE;
}

static int
change_named(struct oncectl *ctl, const struct resolve_act *act)
{
	struct record row;
	int status = oncectl_row_find(ctl, &row);

	if (status != -1)
		return status;
	status = change_one(ctl, act, &row);
	record_free(&row);
	return status;
}

/* --- many keys ------------------------------------------------------------ */

struct many {
	struct oncectl *ctl;
	struct resolve_many all;
	int64_t n;
	int64_t runs; /* in progress: they stay */
};

/* Counts the keys that the filter finds. */
static enum rc
many_find(struct many *m, const struct store_filter *filter)
{
	struct store_cursor *cursor = NULL;
	struct record row;
	enum rc rc;

	rc = store_list(m->ctl->store, filter, &cursor);
	while (rc == RC_OK && (rc = store_list_next(cursor, &row)) == RC_OK) {
		if (row.state == RECORD_IN_PROGRESS)
			m->runs++;
		else
			m->n++;
		record_free(&row);
	}
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/* RC_INVALID: keys of the state that is chosen cannot be acted on. */
static enum rc
many_count(struct many *m)
{
	const struct resolve_act *act = m->all.act;
	struct store_filter filter;
	bool suits = false;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < act->nstates && rc == RC_OK; i++)
		if (resolve_filter(&m->all.filter, act->states[i], &filter)) {
			suits = true;
			rc = many_find(m, &filter);
		}
	return suits ? rc : RC_INVALID;
}

/* Whether the operator answers with a line that begins with y or Y. */
static bool
many_ask(const struct many *m)
{
	int first, next;

	fflush(stdout);
	fprintf(stderr, "%s %" PRId64 " %s", m->ctl->command, m->n,
	    PLURAL(m->n, "key", "keys"));
	if (m->all.act != forget)
		fputs(" as not executed", stderr);
	if (m->runs > 0)
		fprintf(stderr, " (%" PRId64 " in progress %s)", m->runs,
		    PLURAL(m->runs, "stays", "stay"));
	fputs("? [y/N] ", stderr);
	first = next = getchar();
	while (next != '\n' && next != EOF)
		next = getchar();
	/* An answer without a line's end is none: the input broke off. */
	if (next == EOF)
		fputc('\n', stderr);
	return next == '\n' && (first == 'y' || first == 'Y');
}

/* The act on a key is over. */
static void
many_tell(struct resolve_many *m, const struct record *row, enum rc rc)
{
	const struct oncectl *ctl = m->arg;

	change_log(ctl, row, m->act->name, rc);
	if (rc == RC_OK && ctl->json)
		change_print(ctl, row, m->act->done, m->act->to);
}

static int
many_do(struct many *m)
{
	struct oncectl *ctl = m->ctl;
	struct resolve_many *all = &m->all;
	int64_t changed;
	enum rc rc = resolve_many(all);

	if (!ctl->json)
		printf("%" PRId64 " %s %s\n", all->done,
		    PLURAL(all->done, "key", "keys"), all->act->done);
	if (rc != RC_OK && all->done > 0)
		return oncectl_fail(ctl, rc);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "ls");
	changed = m->n - all->done;
	if (changed > 0)
		warnx("%" PRId64 " changed meanwhile, and %s", changed,
		    PLURAL(changed, "stays", "stay"));
	if (m->runs > 0)
		warnx("%" PRId64 " in progress %s", m->runs,
		    PLURAL(m->runs, "stays", "stay"));
	return ONCECTL_DONE;
}

/*
 * Counts the keys first, and asks the operator.  What was counted is what is
 * acted on: a key that changed since then stays, and so does one that the store
 * finds changed.
 */
static int
change_many(struct oncectl *ctl, const struct resolve_act *act)
{
	const bool asks = (ctl->given & ONCECTL_YES) == 0;
	struct many m = { .ctl = ctl,
		.all = { .store = ctl->store,
		    .act = act,
		    .every = true,
		    .moment = INT64_MAX,
		    .until_mono = INT64_MAX,
		    .tell = many_tell,
		    .arg = ctl } };
	enum rc rc;

	if (!oncectl_filter(ctl, &m.all.filter))
		return ONCECTL_USAGE;
	if (asks)
		m.all.moment = store_wall(ctl->store, store_now(ctl->store));
	rc = many_count(&m);
	if (rc == RC_INVALID)
		return oncectl_refuse(ONCECTL_REFUSED,
		    "%s: a key that is %s cannot be %s", ctl->command,
		    ctl->state, act->done);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (m.n > 0 && asks && !many_ask(&m))
		return oncectl_refuse(ONCECTL_REFUSED, "%s: no key was %s",
		    ctl->command, act->done);
	return many_do(&m);
}

/* --- the commands --------------------------------------------------------- */

/* The keys that options choose. */
static int
change_chosen(struct oncectl *ctl, const struct resolve_act *act)
{
	if ((ctl->given & ONCECTL_MANY) != 0)
		return change_many(ctl, act);
	return oncectl_refuse(ONCECTL_USAGE,
	    "%s: name a KEY, --downstream or --instance, or which keys by "
	    "--state, --scope, --path, --older and --peer",
	    ctl->command);
}

int
oncectl_resolve(struct oncectl *ctl)
{
	const unsigned both = ONCECTL_COMPLETED | ONCECTL_NOT_EXECUTED;
	const struct resolve_act *release = &resolve_acts[RESOLVE_RELEASE];

	if ((ctl->given & both) == 0 || (ctl->given & both) == both)
		return oncectl_refuse(ONCECTL_USAGE,
		    "resolve: say --completed or --not-executed");
	if (oncectl_row_is_named(ctl))
		return change_named(ctl, release);
	if ((ctl->given & ONCECTL_COMPLETED) != 0)
		return oncectl_refuse(ONCECTL_USAGE,
		    "resolve: --completed is said of one key: name it by KEY, "
		    "--downstream or --instance");
	return change_chosen(ctl, release);
}

int
oncectl_forget(struct oncectl *ctl)
{
	if (oncectl_row_is_named(ctl))
		return change_named(ctl, forget);
	return change_chosen(ctl, forget);
}
