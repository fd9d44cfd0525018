/*
 * Keys as oncectl shows them, and the one key that a command line names.
 */
#include "config.h"

#include <err.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "oncectl.h"

/* A key as it is shown.  A deadline is shown as the wall time at which it will
 * be reached if the clock is right now. */
struct shown {
	struct record r;
	int64_t locked_until, expires_at, reconcile_after;
};

#define IN(member) offsetof(struct shown, r.member)
#define AT(member) offsetof(struct shown, member)
/* In a table the columns that may be long stand on the right. */
static const struct oncectl_column columns[] = {
	{ "scope", "SCOPE", 6, 12, IN(scope), ONCECTL_TEXT },
	{ "path", "PATH", 7, 16, IN(path), ONCECTL_TEXT },
	{ "key", "KEY", 8, 0, IN(key), ONCECTL_TEXT },
	{ "state", "STATE", 1, 16, IN(state), ONCECTL_KEY_STATE },
	{ "attempt", "ATTEMPT", 2, 7, IN(attempt), ONCECTL_INT },
	{ "status", "STATUS", 3, 6, IN(status), ONCECTL_INT_OR_NULL },
	{ "recovery_point", NULL, 0, 0, IN(recovery_point), ONCECTL_ARRAY },
	{ "downstream", NULL, 0, 0, IN(downstream), ONCECTL_ARRAY },
	{ "created_at", "CREATED", 4, 20, IN(created_at), ONCECTL_TIME },
	{ "updated_at", NULL, 0, 0, IN(updated_at), ONCECTL_TIME },
	{ "locked_until", NULL, 0, 0, AT(locked_until), ONCECTL_TIME },
	{ "expires_at", "EXPIRES", 5, 20, AT(expires_at), ONCECTL_TIME },
	{ "reconcile_after", NULL, 0, 0, AT(reconcile_after), ONCECTL_TIME },
	{ "last_error", NULL, 0, 0, IN(last_error), ONCECTL_TEXT },
	{ "method", NULL, 0, 0, IN(method), ONCECTL_ARRAY },
	{ "peer", NULL, 0, 0, IN(peer), ONCECTL_TEXT },
	{ "instance", NULL, 0, 0, IN(instance), ONCECTL_ARRAY },
};
#undef AT
#undef IN
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

static int64_t
wall_of(const struct oncectl *ctl, int64_t store_time)
{
	return store_time != 0 ? store_wall(ctl->store, store_time) : 0;
}

/* It borrows what the record owns. */
static struct shown
row_shown(const struct oncectl *ctl, const struct record *r)
{
	return (struct shown){ *r, wall_of(ctl, r->locked_until),
		wall_of(ctl, r->expires_at), wall_of(ctl, r->reconcile_after) };
}

struct json_write *
oncectl_row_identity(const struct record *r)
{
	struct json_write *o = oncectl_print_object();

	json_write_text(o, "scope", r->scope);
	json_write_text(o, "path", r->path);
	json_write_text(o, "key", r->key);
	return o;
}

/* What its program wrote to stderr last, in lines of their own. */
static void
errors_print(char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")) != NULL) {
		if (text == NULL && *line == '\0')
			break; /* the end of the last line */
		printf("stderr: %s\n", oncectl_print_escaped(line));
	}
}

void
oncectl_row_show(
    const struct oncectl *ctl, const struct record *r, char *errors)
{
	const struct shown s = row_shown(ctl, r);
	struct json_write *o;

	if (!ctl->json) {
		oncectl_print_lines(columns, NCOLUMNS, &s);
		errors_print(errors);
		return;
	}
	o = oncectl_print_object();
	oncectl_print_members(o, columns, NCOLUMNS, &s);
	json_write_text(o, "stderr", errors);
	oncectl_print_json(o);
}

struct oncectl_table
oncectl_row_table(FILE *file)
{
	return (struct oncectl_table){ file, columns, NCOLUMNS, false };
}

void
oncectl_row_print(const struct oncectl *ctl, struct oncectl_table *table,
    const struct record *r)
{
	const struct shown s = row_shown(ctl, r);

	oncectl_print_row(table, &s);
}

/* --- the one key -------------------------------------------------------- */

const char *
oncectl_row_name(const struct record *r)
{
	const bool none = r->scope[0] == '\0';
	char *name;

	if (asprintf(&name, "key %s of %s%s", oncectl_print_escaped(r->key),
		none ? "no scope" : "scope ",
		oncectl_print_escaped(r->scope)) == -1)
		name = NULL;
	return oncectl_print_keep(name);
}

int
oncectl_row_refuse(const struct record *r, const char *why)
{
	return oncectl_refuse(ONCECTL_REFUSED, "%s is %s: %s",
	    oncectl_row_name(r), record_state_name(r->state), why);
}

/* The most keys that are listed for the user to choose from. */
#define CHOICES 20

/* Reads the only row of a list; RC_INVALID: there are several, which were
 * listed for the user to choose from. */
static enum rc
only_row(const struct oncectl *ctl, const struct store_filter *filter,
    struct record *row)
{
	struct oncectl_table table = oncectl_row_table(stderr);
	struct store_cursor *cursor = NULL;
	struct record next;
	unsigned n = 0;
	enum rc rc;

	memset(row, 0, sizeof(*row));
	rc = store_list(ctl->store, filter, &cursor);
	while (rc == RC_OK && n <= CHOICES &&
	    (rc = store_list_next(cursor, &next)) == RC_OK) {
		if (++n == 1) {
			*row = next;
			continue;
		}
		if (n == 2) {
			warnx("%s: several keys are named so; --scope and "
			      "--path narrow it:",
			    ctl->database);
			oncectl_row_print(ctl, &table, row);
		}
		if (n <= CHOICES)
			oncectl_row_print(ctl, &table, &next);
		else
			warnx("there are more than these %d", CHOICES);
		record_free(&next);
	}
	store_list_free(cursor);
	if (n == 1 && rc == RC_NOTFOUND)
		return RC_OK;
	record_free(row);
	return n > 1 && (rc == RC_OK || rc == RC_NOTFOUND) ? RC_INVALID : rc;
}

/* Why no key has that Reference. */
static const char *
instance_text(enum store_instance kind)
{
	if (kind == STORE_INSTANCE_NONE)
		return "that is no Reference: urn:uuid: and a UUID";
	if (kind == STORE_INSTANCE_FOREIGN)
		return "of a request without a key, or of another store";
	return "of a request with a key that is not here: it was refused "
	       "before anything ran, or its key is past its retention, or "
	       "was forgotten";
}

/* bad: rows of that name that make no sense. */
static void
row_is_not_there(
    const struct oncectl *ctl, const struct store_filter *filter, unsigned bad)
{
	const char *name = oncectl_print_escaped(ctl->nargs == 1 ? ctl->arg[0]
		: ctl->downstream != NULL ? ctl->downstream
					  : ctl->instance);

	if (ctl->instance != NULL && bad == 0)
		warnx("%s: %s: %s", ctl->database, name,
		    instance_text(
			store_instance_kind(ctl->store, ctl->instance)));
	else if (bad > 0)
		warnx("%s: %s: the row of that key makes no sense, so nothing "
		      "can be said of it; \"oncectl doctor\" counts such rows",
		    ctl->database, name);
	else
		warnx("%s: %s: no such key%s%s%s%s", ctl->database, name,
		    filter->path != NULL ? " on path " : "",
		    filter->path != NULL ? filter->path : "",
		    filter->scope != NULL ? " of scope " : "",
		    filter->scope != NULL ? filter->scope : "");
}

bool
oncectl_row_is_named(const struct oncectl *ctl)
{
	return ctl->nargs > 0 || ctl->downstream != NULL ||
	    ctl->instance != NULL;
}

int
oncectl_row_find(struct oncectl *ctl, struct record *row)
{
	const unsigned bad = rows_bad_counted();
	const struct store_filter filter = { .scope = ctl->scope,
		.path = ctl->path,
		.key = ctl->nargs == 1 ? ctl->arg[0] : NULL,
		.downstream = ctl->downstream,
		.instance = ctl->instance };
	enum rc rc;

	if (ctl->nargs + (ctl->downstream != NULL) + (ctl->instance != NULL) !=
	    1)
		return oncectl_refuse(ONCECTL_USAGE,
		    "%s: name it by KEY, --downstream or --instance",
		    ctl->command);
	if ((ctl->given & (ONCECTL_STATE | ONCECTL_OLDER | ONCECTL_PEER)) != 0)
		return oncectl_refuse(ONCECTL_USAGE,
		    "%s: --state, --older and --peer choose many keys, not "
		    "one that is named",
		    ctl->command);
	rc = only_row(ctl, &filter, row);
	if (rc == RC_OK)
		return -1;
	if (rc == RC_NOTFOUND)
		row_is_not_there(ctl, &filter, rows_bad_counted() - bad);
	else if (rc != RC_INVALID)
		oncectl_fail(ctl, rc);
	return ONCECTL_REFUSED;
}
