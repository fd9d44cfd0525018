/*
 * Every change that no request asked for is in the log, key by key.
 */
#include "config.h"

#include "pass.h"

void
pass_log(enum log_level level, const char *event,
    const struct store_change *changes, int n)
{
	int i;

	for (i = 0; i < n; i++)
		log_event(level, event, NULL, LOG_S("scope", changes[i].scope),
		    LOG_S("path", changes[i].path),
		    LOG_S("key", changes[i].key),
		    LOG_S("from", record_state_name(changes[i].from)),
		    LOG_S("to", record_state_name(changes[i].to)));
}
