/*
 * A point in time that somebody wrote.
 */
#ifndef DATE_H
#define DATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the years 1970 to 9999; *wall gets ms since 1970, and stays as it was
 * where the text is none (false).  Digits beyond those of a millisecond are cut
 * off; a leap second is the one after it.
 */

/* date-time, RFC 3339, section 5.6. */
bool date_rfc3339(const char *, int64_t *wall);

/* IMF-fixdate, RFC 9110, section 5.6.7, whose day of the week is right. */
bool date_imf(const char *, int64_t *wall);

/* Either of them. */
bool date_parse(const char *, int64_t *wall);

#endif
