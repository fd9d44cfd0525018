/*
 * Lines of oncectl in the daemon's log.  The file is opened for each of them:
 * logrotate(8) may have moved it meanwhile.
 */
#include "config.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scope.h"
#include "user.h"

#include "oncectl_log.h"

#define SYSLOG "syslog"

/* The most values of a line. */
#define VALUES 5

/* The words of the operator's page. */
static const char *
result_name(enum rc rc)
{
	if (rc == RC_OK)
		return "done";
	if (rc == RC_LOST)
		return "lost";
	return rc == RC_PENDING ? "pending" : rc_text(rc);
}

static void
hand_over(const struct oncectl *ctl, const struct log_request *about,
    const struct log_value *values, size_t n)
{
	const bool known =
	    ctl->config != NULL && strcmp(ctl->conf->log, "stderr") != 0;
	const char *target = known ? ctl->conf->log : SYSLOG;
	static bool said;
	int error = log_hand(target, "operator", about, values, n);

	if (error == 0 || log_hand(SYSLOG, "operator", about, values, n) == 0)
		return;
	if (!said)
		warnx("the log has no line of this: %s: %s", target,
		    strerror(error));
	said = true;
}

void
oncectl_log(const struct oncectl *ctl, const struct oncectl_act *act)
{
	const char *sudo = getenv("SUDO_USER");
	struct log_request about = { .path = act->path, .key = act->key };
	struct log_value values[VALUES];
	char user[USER_NAME];
	size_t n = 0;

	user_name(getuid(), user);
	values[n++] = LOG_S("user", user);
	if (sudo != NULL && getuid() == 0)
		values[n++] = LOG_S("sudo_user", sudo);
	values[n++] = LOG_S("act", act->act);
	values[n++] = LOG_S("result", result_name(act->rc));
	if (act->more.name != NULL)
		values[n++] = act->more;
	if (act->key != NULL)
		scope_tag(act->scope, about.scope);
	hand_over(ctl, act->key != NULL ? &about : NULL, values, n);
}
