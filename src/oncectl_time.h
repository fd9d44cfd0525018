/*
 * A time that somebody wrote.
 */
#ifndef ONCECTL_TIME_H
#define ONCECTL_TIME_H

#include <stdbool.h>
#include <stdint.h>

/*
 * An RFC 3339 date-time, of the years 1970 to 9999; *wall gets ms since 1970,
 * digits beyond those of a millisecond are cut off.  False: it is none.
 */
bool oncectl_time_parse(const char *, int64_t *wall);

#endif
