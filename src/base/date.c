/*
 * RFC 3339, section 5.6, and RFC 9110, section 5.6.7, as their grammars have
 * it: no blanks, no other case of letters than they allow, no obsolete forms.
 *
 * This file reads no clock.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "date.h"

#define DAY INT64_C(86400000)

/* 1970-01-01 was a Thursday. */
#define WEEKDAYS "ThuFriSatSunMonTueWed"
#define MONTHS   "JanFebMarAprMayJunJulAugSepOctNovDec"

/* --- days ---------------------------------------------------------------- */

/* Every line of the log and every replay has a date, so this is fast.  The C
 * library's own functions would read TZ. */
struct parts {
	int64_t days; /* since 1970 */
	int year, month, day, hour, minute, second, ms;
};

static struct parts
date_split(int64_t wall)
{
	const int64_t last = INT64_C(253402300799999);
	const int64_t at = wall < 0 ? 0 : wall > last ? last : wall;
	const int left = (int)(at % DAY);
	struct parts t = { .days = at / DAY };
	int day, era, of_era;

	t.hour = left / 3600000;
	t.minute = left / 60000 % 60;
	t.second = left / 1000 % 60;
	t.ms = left % 1000;
	/* Years begin in March here, so that a leap day ends a year.  719468
	 * days lie between 0000-03-01 and 1970-01-01; 400 years have 146097
	 * days. */
	day = (int)t.days + 719468;
	era = day / 146097;
	day %= 146097;
	of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= of_era * 365 + of_era / 4 - of_era / 100;
	t.month = (5 * day + 2) / 153;
	t.day = day - (153 * t.month + 2) / 5 + 1;
	t.month += t.month < 10 ? 3 : -9;
	t.year = era * 400 + of_era + (t.month <= 2);
	return t;
}

static int64_t
date_join(const struct parts *t)
{
	const int y = t->year - (t->month <= 2);
	const int m = t->month + (t->month > 2 ? -3 : 9);
	const int days = y * 365 + y / 4 - y / 100 + y / 400 +
	    (153 * m + 2) / 5 + t->day - 1 - 719468;

	return days * DAY + (t->hour * 60 + t->minute) * INT64_C(60000) +
	    t->second * INT64_C(1000);
}

/* --- writing ------------------------------------------------------------ */

/* Writes a number of that many digits, and what separates it from the next. */
static char *
put_number(char *p, int n, int digits, const char *after)
{
	for (int i = digits; i-- > 0; n /= 10)
		p[i] = (char)('0' + n % 10);
	return stpcpy(p + digits, after);
}

static char *
put_time(char *p, const struct parts *t)
{
	p = put_number(p, t->hour, 2, ":");
	p = put_number(p, t->minute, 2, ":");
	return put_number(p, t->second, 2, "");
}

void
date_put_rfc3339(int64_t wall, char out[DATE_RFC3339_LEN + 1])
{
	const struct parts t = date_split(wall);
	char *p = out;

	p = put_number(p, t.year, 4, "-");
	p = put_number(p, t.month, 2, "-");
	p = put_number(p, t.day, 2, "T");
	p = put_time(p, &t);
	p = put_number(stpcpy(p, "."), t.ms, 3, "Z");
	assert(p == out + DATE_RFC3339_LEN);
}

void
date_put_imf(int64_t wall, char out[DATE_IMF_LEN + 1])
{
	const struct parts t = date_split(wall);
	char *p = out;

	memcpy(p, &WEEKDAYS[t.days % 7 * 3], 3);
	p = put_number(stpcpy(p + 3, ", "), t.day, 2, " ");
	memcpy(p, &MONTHS[(ptrdiff_t)(t.month - 1) * 3], 3);
	p = put_number(stpcpy(p + 3, " "), t.year, 4, " ");
	p = stpcpy(put_time(p, &t), " GMT");
	assert(p == out + DATE_IMF_LEN);
}

/* --- reading ------------------------------------------------------------ */

/*
 * What is read is written again, and compared with the text.  So whatever is no
 * date, such as a 31st of November, need not be found here: it is not what is
 * written for it.  A leap second is read as the second before it, and added.
 */

/* Takes [ "." 1*DIGIT ] off the front of the text. */
static bool
take_fraction(const char **p, int64_t *ms)
{
	int scale = 100;

	*ms = 0;
	if (**p != '.')
		return true;
	if (!ascii_is_digit(*++*p))
		return false;
	for (; ascii_is_digit(**p); (*p)++, scale /= 10)
		*ms += (**p - '0') * scale;
	return true;
}

/* Z, or +hh:mm */
static bool
read_offset(const char *text, int64_t *ms)
{
	unsigned hour, minute;
	char sign, written[16];

	*ms = 0;
	if (strcasecmp(text, "Z") == 0)
		return true;
	if (sscanf(text, "%c%2u:%2u", &sign, &hour, &minute) != 3 ||
	    (sign != '+' && sign != '-') || hour > 23 || minute > 59)
		return false;
	*ms = (sign == '-' ? -1 : 1) * (int64_t)(hour * 60 + minute) * 60000;
	snprintf(written, sizeof(written), "%c%02u:%02u", sign, hour, minute);
	return strcmp(text, written) == 0;
}

bool
date_rfc3339(const char *text, int64_t *wall)
{
	const size_t n = sizeof("yyyy-mm-ddThh:mm:ss") - 1;
	char written[DATE_RFC3339_LEN + 1];
	int64_t at, fraction, offset;
	struct parts t;
	int leap;

	if (sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d", &t.year, &t.month, &t.day,
		&t.hour, &t.minute, &t.second) != 6)
		return false;
	leap = t.second == 60;
	t.second -= leap;
	at = date_join(&t);
	date_put_rfc3339(at, written);
	if (leap)
		memcpy(written + n - 2, "60", 2);
	if (strncasecmp(text, written, n) != 0)
		return false;
	text += n;
	if (!take_fraction(&text, &fraction) || !read_offset(text, &offset))
		return false;
	*wall = at + leap * INT64_C(1000) + fraction - offset;
	return true;
}

bool
date_imf(const char *text, int64_t *wall)
{
	char written[DATE_IMF_LEN + 1], name[4];
	const char *month;
	struct parts t;
	int64_t at;
	int leap;

	if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d", &t.day, name, &t.year,
		&t.hour, &t.minute, &t.second) != 6 ||
	    (month = strstr(MONTHS, name)) == NULL)
		return false;
	t.month = (int)(month - MONTHS) / 3 + 1;
	leap = t.second == 60;
	t.second -= leap;
	at = date_join(&t);
	date_put_imf(at, written);
	if (leap)
		memcpy(written + strlen("www, dd mmm yyyy hh:mm:"), "60", 2);
	if (strcmp(text, written) != 0)
		return false;
	*wall = at + leap * INT64_C(1000);
	return true;
}

bool
date_parse(const char *text, int64_t *wall)
{
	return date_imf(text, wall) || date_rfc3339(text, wall);
}
