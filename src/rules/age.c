/*
 * The age of a request, by a field that its client fills in.
 *
 * A retry that comes after its key was deleted would run again.  If requests
 * carry a date that does not change from try to try, such a retry is refused
 * instead, provided that keys are kept for longer than requests may be old.  A
 * date far ahead would make a request immortal, so it may be no further ahead
 * than behind.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>

#include "cginame.h"
#include "date.h"

#include "age.h"

enum age
age_judge(
    const struct conf_route *route, const struct request *request, int64_t wall)
{
	char variable[264];
	int64_t sent;
	enum rc rc;

	if (route->max_request_age == 0)
		return AGE_GOOD;
	assert(route->request_timestamp != NULL);
	rc = cginame_variable(
	    route->request_timestamp, variable, sizeof(variable));
	assert(rc == RC_OK);
	switch (request_count(request, variable)) {
	case 0:
		return AGE_UNTOLD;
	case 1:
		break;
	default:
		return AGE_UNREADABLE;
	}
	if (!date_parse(request_param(request, variable), &sent))
		return AGE_UNREADABLE;
	if (wall - sent > route->max_request_age)
		return AGE_OLD;
	if (sent - wall > route->max_request_age)
		return AGE_AHEAD;
	return AGE_GOOD;
}

const char *
age_text(enum age age)
{
	switch (age) {
	case AGE_GOOD:
		break;
	case AGE_UNTOLD:
		return "is missing: it has to say when the request was made";
	case AGE_UNREADABLE:
		return "is not one IMF-fixdate or RFC 3339 date";
	case AGE_OLD:
		return "is older than max_request_age allows";
	case AGE_AHEAD:
		return "is further ahead than max_request_age allows";
	}
	assert(!"no text for a good age");
	return NULL;
}
