/*
 * What an operator has done with oncectl, for the log.
 */
#ifndef ONCECTL_LOG_H
#define ONCECTL_LOG_H

#include "log.h"
#include "oncectl.h"

/* An act that the store was asked for; what is not named is left out. */
struct oncectl_act {
	const char *act;
	enum rc rc; /* what came of it */
	const char *scope, *path, *key;
	struct log_value more; /* a number besides */
};

#define ONCECTL_ACT_OF(row) \
	.scope = (row)->scope, .path = (row)->path, .key = (row)->key

/*
 * Hands the line "operator" to the daemon's log, if -f names a file and it can
 * be written; else to syslog.  Where that fails too, stderr says so once, and
 * the act stands.
 */
void oncectl_log(const struct oncectl *ctl, const struct oncectl_act *act);

#endif
