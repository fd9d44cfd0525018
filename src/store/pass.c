/*
 * Writes one line to the log for each outcome that a pass changed, because no
 * request logs it.
 */
#include "config.h"

#include "clock.h"
#include "pass.h"

void
pass_turn(struct pass *pass, int64_t until)
{
	if (!pass->more)
		pass->n = 0;
	pass->more = false;
	pass->until = until;
}

bool
pass_goes_on(struct pass *pass)
{
	if (pass->stop != NULL && atomic_load(pass->stop))
		return false;
	pass->more = clock_mono() >= pass->until;
	return !pass->more;
}

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
