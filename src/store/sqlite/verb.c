/*
 * What the verbs that write share.
 */
#include "config.h"

#include <assert.h>

#include "verb.h"

enum rc
verb_change_one(struct db_stmt *s, enum rc lost)
{
	enum rc rc;
	int changed;

	rc = db_update(s, &changed);
	if (rc != RC_OK)
		return rc;
	if (changed > 1) /* the table is not ours */
		return RC_CORRUPT;
	return changed == 1 ? RC_OK : lost;
}

enum rc
verb_change_state(struct db_stmt *s, enum record_state from,
    enum record_state to, enum rc lost)
{
	if (!record_may_change(from, to, false))
		return RC_INVALID;
	return verb_change_one(s, lost);
}

const char *
verb_on_crash(enum conf_on_crash on_crash)
{
	switch (on_crash) {
	case CONF_CRASH_UNKNOWN:
		return NULL;
	case CONF_CRASH_RESUME:
		return "resume";
	}
	assert(!"no such on_crash");
	return NULL;
}

const char *
verb_on_expired(enum conf_on_expired on_expired)
{
	switch (on_expired) {
	case CONF_EXPIRED_RUN:
		return NULL;
	case CONF_EXPIRED_GONE:
		return "gone";
	}
	assert(!"no such on_expired");
	return NULL;
}
