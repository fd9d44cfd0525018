/*
 * oncectl forget: deletes one key, or all that the options choose.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>

#include "oncectl_change.h"
#include "oncectl_log.h"
#include "oncectl_many.h"
#include "oncectl_row.h"
#include "oncectl.h"

static int
refuse_forget(const struct record *row, enum record_state before)
{
	char *name = oncectl_row_name(row);

	if (row->state == RECORD_IN_PROGRESS || row->state == before)
		warnx("%s is %s: it cannot be forgotten while it runs", name,
		    record_state_name(row->state));
	else
		warnx("%s has become %s: say it again if it shall be forgotten",
		    name, record_state_name(row->state));
	free(name);
	return ONCECTL_REFUSED;
}

static void
log_forget(const struct oncectl *ctl, const struct record *row, enum rc rc)
{
	oncectl_log(ctl,
	    &(struct oncectl_act){
		ONCECTL_ACT_OF(row), .act = "forget", .rc = rc });
}

static int
forget_one(struct oncectl *ctl, struct record *row)
{
	char *name;
	enum rc rc;

	if (row->state == RECORD_IN_PROGRESS) {
		if (!store_owner_is_dead(ctl->store, row->owner))
			return refuse_forget(row, row->state);
		name = oncectl_row_name(row);
		warnx("%s is in_progress, by a process that is gone: "
		      "\"oncectl sweep\" settles it, or says what it waits "
		      "for; then it can be forgotten",
		    name);
		free(name);
		return ONCECTL_REFUSED;
	}
	rc = store_forget(ctl->store, row->id, row->state);
	log_forget(ctl, row, rc);
	if (rc == RC_LOST)
		return oncectl_change_lost(ctl, row, refuse_forget);
	if (rc != RC_OK)
		return oncectl_change_failed(ctl, rc, "show");
	oncectl_change_print(ctl, row, "forgotten", RECORD_NONE);
	return ONCECTL_DONE;
}

int
oncectl_forget(struct oncectl *ctl)
{
	static const struct oncectl_many many = { "forget", "forgotten",
		RECORD_NONE, { RECORD_NONE }, 1, store_forget_some };
	struct record row;
	int status;

	if (!oncectl_row_is_named(ctl)) {
		if ((ctl->given & ONCECTL_MANY) != 0)
			return oncectl_many(ctl, &many);
		warnx("forget: name a KEY, --downstream or --instance, or "
		      "which keys by --state, --scope, --path, --older and "
		      "--peer");
		return ONCECTL_USAGE;
	}
	status = oncectl_row_find(ctl, &row);
	if (status != -1)
		return status;
	status = forget_one(ctl, &row);
	record_free(&row);
	return status;
}
