/*
 * Dates as text <-> milliseconds since 1970.
 */
#ifndef DATE_H
#define DATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The years 1970 to 9999 are accepted.  *wall gets ms since 1970; it stays
 * unchanged if the text is no date (false).  Digits after the milliseconds are
 * cut off.  A leap second counts as the next second.
 */

/* date-time, RFC 3339, section 5.6. */
bool date_rfc3339(const char *text, int64_t *wall);

/* IMF-fixdate, RFC 9110, section 5.6.7.  The day of the week must be right. */
bool date_imf(const char *text, int64_t *wall);

/* Either format. */
bool date_parse(const char *text, int64_t *wall);

/* Write a date.  An earlier one becomes the first moment of 1970, a later one
 * the last of 9999, because both formats have four digits for the year. */
#define DATE_RFC3339_LEN 24
#define DATE_IMF_LEN     29

/* In UTC, with milliseconds. */
void date_put_rfc3339(int64_t wall, char out[DATE_RFC3339_LEN + 1]);
void date_put_imf(int64_t wall, char out[DATE_IMF_LEN + 1]);

#endif
