/*
 * oncectl ls, show and export: the records of keys.  export also prints the
 * outbox.
 */
#include "config.h"

#include <err.h>
#include <string.h>

#include "oncectl.h"
#include "oncectl_output.h"
#include "oncectl_print.h"
#include "oncectl_response.h"
#include "oncectl_row.h"

/* Prints all keys that the filter lets through: JSON, or a table. */
static int
keys_print_all(
    struct oncectl *ctl, const struct store_filter *filter, bool as_json)
{
	struct oncectl_table *table = NULL;
	struct store_cursor *cursor = NULL;
	struct record row;
	enum rc rc;

	rc = store_list(ctl->store, filter, &cursor);
	if (rc != RC_OK)
		return oncectl_fail(ctl, rc);
	if (!as_json)
		table = oncectl_row_table(stdout);
	while ((rc = store_list_next(cursor, &row)) == RC_OK) {
		if (as_json)
			oncectl_row_json(ctl, &row);
		else
			oncectl_row_print(ctl, table, &row);
		record_free(&row);
	}
	oncectl_print_table_free(table);
	store_list_free(cursor);
	return rc == RC_NOTFOUND ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

bool
oncectl_filter(const struct oncectl *ctl, struct store_filter *filter)
{
	memset(filter, 0, sizeof(*filter));
	if (ctl->state != NULL &&
	    (!record_state_parse(ctl->state, &filter->state) ||
		filter->state == RECORD_NONE)) {
		warnx("--state: \"%s\" is not a state of a key: pending, "
		      "in_progress, completed, failed_retryable, unknown, "
		      "dead_letter or expired",
		    ctl->state);
		return false;
	}
	filter->scope = ctl->scope;
	filter->path = ctl->path;
	filter->older_ms = ctl->older;
	return true;
}

int
oncectl_ls(struct oncectl *ctl)
{
	struct store_filter filter;

	if (!oncectl_filter(ctl, &filter))
		return ONCECTL_USAGE;
	return keys_print_all(ctl, &filter, ctl->json);
}

int
oncectl_export(struct oncectl *ctl)
{
	struct store_filter filter;
	enum rc rc;
	int status;

	memset(&filter, 0, sizeof(filter));
	filter.since = ctl->since;
	status = keys_print_all(ctl, &filter, true);
	if (status != ONCECTL_DONE)
		return status;
	rc = oncectl_outbox_export(ctl);
	return rc == RC_OK ? ONCECTL_DONE : oncectl_fail(ctl, rc);
}

int
oncectl_show(struct oncectl *ctl)
{
	const unsigned both = ONCECTL_RESPONSE | ONCECTL_OUTPUT;
	struct record row;
	int status;

	if ((ctl->given & both) == both) {
		warnx("show: either --response or --output");
		return ONCECTL_USAGE;
	}
	if ((status = oncectl_row_find(ctl, &row)) != -1)
		return status;
	status = ONCECTL_DONE;
	if ((ctl->given & ONCECTL_RESPONSE) != 0)
		status = oncectl_response_print(ctl, &row);
	else if ((ctl->given & ONCECTL_OUTPUT) != 0)
		status = oncectl_output_print(ctl, &row);
	else if (ctl->json)
		oncectl_row_json(ctl, &row);
	else
		oncectl_row_lines(ctl, &row);
	record_free(&row);
	return status;
}
