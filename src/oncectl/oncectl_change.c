/*
 * See oncectl_change.h.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>

#include "oncectl_print.h"
#include "oncectl_row.h"
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
