/*
 * The age that a request claims, and whether it is too old.
 */
#ifndef AGE_H
#define AGE_H

#include <stdint.h>

#include "conf.h"
#include "request.h"

enum age {
	AGE_GOOD, /* or the route has no limit */
	AGE_UNTOLD,
	AGE_UNREADABLE, /* no date, or more than one */
	AGE_OLD,
	AGE_AHEAD /* further ahead than the oldest may be behind */
};

/* Judges by the route's request_timestamp and max_request_age.  wall is the
 * clock's reading (ms). */
enum age age_judge(const struct conf_route *route,
    const struct request *request, int64_t wall);

/* What is wrong with the field, for the client: the end of a sentence that
 * begins with the name of the field.  Not for AGE_GOOD. */
const char *age_text(enum age age);

#endif
