/*
 * One line of the log, with the cure if there is one.
 */
#include "config.h"

#include "log.h"

#include "notstarted.h"

void
notstarted_say(const char *error)
{
	log_event(LOG_ERROR, "not-started", NULL, LOG_S("error", error));
}

void
notstarted_explain(const char *error,
    bool (*check)(const char *, char *, size_t), const char *name)
{
	char cure[2048];

	if (name == NULL || check(name, cure, sizeof(cure)))
		notstarted_say(error);
	else
		log_event(LOG_ERROR, "not-started", NULL, LOG_S("error", error),
		    LOG_S("cure", cure));
}
