/*
 * oncectl ls and show: records as rows, as lines, as JSON.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "oncectl.h"
#include "oncectl_print.h"

static void
make_filter(const struct oncectl *ctl, struct store_filter *f)
{
	memset(f, 0, sizeof(*f));
	f->scope = ctl->scope;
	f->path = ctl->path;
	f->state = ctl->state;
	f->older_ms = ctl->older;
}

/* --- one record -------------------------------------------------------- */

static const char *
or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : NULL;
}

static void
print_json(const struct store_row *r)
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

static void
print_lines(const struct store_row *r)
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

static void
print_row(struct oncectl_table *t, const struct store_row *r)
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

int
oncectl_ls(struct oncectl *ctl)
{
	struct oncectl_table *table = NULL;
	struct store_cursor *cursor = NULL;
	struct store_filter filter;
	struct store_row row;
	enum rc rc;

	make_filter(ctl, &filter);
	rc = store_list(ctl->store, &filter, &cursor);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (!ctl->json)
		table = oncectl_print_table(stdout, titles, NTITLES);
	while ((rc = store_list_next(cursor, &row)) == RC_OK) {
		if (ctl->json)
			print_json(&row);
		else
			print_row(table, &row);
		store_row_free(&row);
	}
	oncectl_print_table_free(table);
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

/* --- the one that is meant --------------------------------------------- */

/* Takes the next row that is meant; RC_NOTFOUND when there is none. */
static enum rc
next_meant(const struct oncectl *ctl, struct store_cursor *cursor,
    struct store_row *row)
{
	enum rc rc;

	while ((rc = store_list_next(cursor, row)) == RC_OK) {
		if (ctl->downstream == NULL ||
		    strcasecmp(row->downstream, ctl->downstream) == 0)
			return RC_OK;
		store_row_free(row);
	}
	return rc;
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
	table = oncectl_print_table(stderr, titles, NTITLES);
	print_row(table, first);
	for (; rc == RC_OK; rc = next_meant(ctl, cursor, row)) {
		print_row(table, row);
		store_row_free(row);
	}
	oncectl_print_table_free(table);
	return rc;
}

int
oncectl_show(struct oncectl *ctl)
{
	struct store_cursor *cursor = NULL;
	struct store_filter filter;
	struct store_row first, second;
	enum rc rc;
	int status = ONCECTL_REFUSED;

	if ((ctl->nargs == 1) == (ctl->downstream != NULL)) {
		warnx("show: name it by KEY or by --downstream");
		return ONCECTL_USAGE;
	}
	make_filter(ctl, &filter);
	filter.key = ctl->nargs == 1 ? ctl->arg[0] : NULL;
	rc = store_list(ctl->store, &filter, &cursor);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);

	rc = next_meant(ctl, cursor, &first);
	if (rc == RC_NOTFOUND)
		warnx("%s: %s: no such key", ctl->database,
		    ctl->nargs == 1 ? ctl->arg[0] : ctl->downstream);
	else if (rc != RC_OK)
		oncectl_fail(ctl, rc);
	if (rc != RC_OK)
		goto out;

	rc = next_meant(ctl, cursor, &second);
	if (rc == RC_OK)
		rc = refuse_many(ctl, cursor, &first, &second);
	else if (rc == RC_NOTFOUND) {
		status = ONCECTL_DONE;
		if (ctl->json)
			print_json(&first);
		else
			print_lines(&first);
	}
	if (rc != RC_NOTFOUND)
		oncectl_fail(ctl, rc);
	store_row_free(&first);
out:
	store_list_free(cursor);
	return status;
}
