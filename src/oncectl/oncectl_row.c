/*
 * Keys as oncectl shows them, and the one key that a command line names.
 */
#include "config.h"

#include <ctype.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "oncectl_print.h"
#include "oncectl_row.h"

/* --- one record -------------------------------------------------------- */

static const char *
or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : NULL;
}

void
oncectl_row_json(const struct store_row *r)
{
	cJSON *o = oncectl_print_object();

	oncectl_print_json_text(o, "scope", r->scope);
	oncectl_print_json_text(o, "path", r->path);
	oncectl_print_json_text(o, "key", r->key);
	oncectl_print_json_text(o, "state", record_state_name(r->state));
	oncectl_print_json_number(o, "attempt", r->attempt);
	if (r->status != 0)
		oncectl_print_json_number(o, "status", r->status);
	else
		oncectl_print_json_null(o, "status");
	oncectl_print_json_text(
	    o, "recovery_point", or_null(r->recovery_point));
	oncectl_print_json_text(o, "downstream", or_null(r->downstream));
	oncectl_print_json_time(o, "created_at", r->created_at);
	oncectl_print_json_time(o, "updated_at", r->updated_at);
	oncectl_print_json_time(o, "locked_until", r->locked_until);
	oncectl_print_json_time(o, "expires_at", r->expires_at);
	oncectl_print_json_time(o, "reconcile_after", r->reconcile_after);
	oncectl_print_json_text(o, "last_error", or_null(r->last_error));
	oncectl_print_json(o);
}

static void
print_line(const char *name, const char *value)
{
	char *text = oncectl_print_escaped(value != NULL ? value : "-");

	printf("%s: %s\n", name, text);
	free(text);
}

static void
print_time_line(const char *name, int64_t wall)
{
	char text[ONCECTL_PRINT_TIME];

	print_line(name, oncectl_print_time(wall, text));
}

void
oncectl_row_lines(const struct store_row *r)
{
	print_line("scope", r->scope);
	print_line("path", r->path);
	print_line("key", r->key);
	print_line("state", record_state_name(r->state));
	printf("attempt: %d\n", r->attempt);
	if (r->status != 0)
		printf("status: %d\n", r->status);
	else
		print_line("status", NULL);
	print_line("recovery_point", or_null(r->recovery_point));
	print_line("downstream", or_null(r->downstream));
	print_time_line("created_at", r->created_at);
	print_time_line("updated_at", r->updated_at);
	print_time_line("locked_until", r->locked_until);
	print_time_line("expires_at", r->expires_at);
	print_time_line("reconcile_after", r->reconcile_after);
	print_line("last_error", or_null(r->last_error));
}

/* --- many -------------------------------------------------------------- */

static const char *const titles[] = { "STATE", "ATTEMPT", "STATUS", "CREATED",
	"EXPIRES", "SCOPE", "PATH", "KEY" };
#define NTITLES (sizeof(titles) / sizeof(titles[0]))

void
oncectl_row_add(struct oncectl_table *t, const struct store_row *r)
{
	char attempt[16], status[16];
	char created[ONCECTL_PRINT_TIME], expires[ONCECTL_PRINT_TIME];
	const char *cells[NTITLES];

	snprintf(attempt, sizeof(attempt), "%d", r->attempt);
	snprintf(status, sizeof(status), "%d", r->status);
	cells[0] = record_state_name(r->state);
	cells[1] = attempt;
	cells[2] = r->status != 0 ? status : NULL;
	cells[3] = oncectl_print_time(r->created_at, created);
	cells[4] = oncectl_print_time(r->expires_at, expires);
	cells[5] = or_null(r->scope);
	cells[6] = r->path;
	cells[7] = r->key;
	oncectl_print_row(t, cells);
}

struct oncectl_table *
oncectl_row_table(FILE *file)
{
	return oncectl_print_table(file, titles, NTITLES);
}

/* --- the one that is meant --------------------------------------------- */

char *
oncectl_row_name(const struct store_row *r)
{
	char *key = oncectl_print_escaped(r->key), *scope, *name;
	int n;

	if (r->scope[0] == '\0')
		n = asprintf(&name, "key %s of no scope", key);
	else {
		scope = oncectl_print_escaped(r->scope);
		n = asprintf(&name, "key %s of scope %s", key, scope);
		free(scope);
	}
	free(key);
	if (n == -1)
		errx(ONCECTL_REFUSED, "out of memory");
	return name;
}

/* What the command line says of the key that is meant. */
static enum rc
make_filter(const struct oncectl *ctl, struct store_filter *f)
{
	char uuid[RECORD_UUID_LEN + 1];
	size_t i;

	memset(f, 0, sizeof(*f));
	f->scope = ctl->scope;
	f->path = ctl->path;
	if (ctl->downstream == NULL) {
		f->key = ctl->arg[0];
		return RC_OK;
	}
	if (strlen(ctl->downstream) != RECORD_UUID_LEN)
		return RC_NOTFOUND;
	/* RFC 9562, section 4: written in lower case, read in either. */
	for (i = 0; i <= RECORD_UUID_LEN; i++)
		uuid[i] = (char)tolower((unsigned char)ctl->downstream[i]);
	return store_find_downstream(ctl->store, uuid, &f->id);
}

/* Lists first and what follows it, for the user to choose from. */
static enum rc
refuse_many(const struct oncectl *ctl, struct store_cursor *cursor,
    const struct store_row *first, struct store_row *second)
{
	struct oncectl_table *table;
	struct store_row *row = second;
	enum rc rc = RC_OK;

	warnx("%s: several keys are named so; --scope and --path narrow it:",
	    ctl->database);
	table = oncectl_row_table(stderr);
	oncectl_row_add(table, first);
	for (; rc == RC_OK; rc = store_list_next(cursor, row)) {
		oncectl_row_add(table, row);
		store_row_free(row);
	}
	oncectl_print_table_free(table);
	return rc;
}

/* The only row of a list; status says why there is none. */
static bool
only_row(const struct oncectl *ctl, const struct store_filter *filter,
    struct store_row *row, enum rc *status)
{
	struct store_cursor *cursor = NULL;
	struct store_row second;
	enum rc rc;
	bool only = false;

	rc = store_list(ctl->store, filter, &cursor);
	if (rc == RC_OK && (rc = store_list_next(cursor, row)) == RC_OK) {
		rc = store_list_next(cursor, &second);
		only = rc == RC_NOTFOUND;
		if (rc == RC_OK)
			rc = refuse_many(ctl, cursor, row, &second);
		if (!only)
			store_row_free(row);
		if (rc == RC_NOTFOUND)
			rc = RC_OK;
	}
	store_list_free(cursor);
	*status = rc;
	return only;
}

int
oncectl_row_find(struct oncectl *ctl, struct store_row *row)
{
	struct store_filter filter;
	char *name;
	enum rc rc;

	if ((ctl->nargs == 1) == (ctl->downstream != NULL)) {
		warnx("%s: name it by KEY or by --downstream", ctl->command);
		return ONCECTL_USAGE;
	}
	rc = make_filter(ctl, &filter);
	if (rc == RC_OK && only_row(ctl, &filter, row, &rc))
		return -1;
	if (rc == RC_NOTFOUND) {
		name = oncectl_print_escaped(
		    ctl->nargs == 1 ? ctl->arg[0] : ctl->downstream);
		warnx("%s: %s: no such key", ctl->database, name);
		free(name);
	} else if (rc != RC_OK)
		oncectl_fail(ctl, rc);
	return ONCECTL_REFUSED;
}

enum rc
oncectl_row_again(struct oncectl *ctl, struct store_row *row)
{
	struct store_filter filter;
	struct store_cursor *cursor = NULL;
	enum rc rc;

	memset(&filter, 0, sizeof(filter));
	filter.id = row->id;
	store_row_free(row);
	rc = store_list(ctl->store, &filter, &cursor);
	if (rc == RC_OK)
		rc = store_list_next(cursor, row);
	store_list_free(cursor);
	return rc;
}
