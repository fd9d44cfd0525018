/*
 * RFC 3339, section 5.6, and RFC 9110, section 5.6.7, as their grammars have
 * it: no blanks, no other case of letters than they allow, no obsolete forms.
 *
 * This file reads no clock.
 */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

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

/* The days from 1970 to a date; false: there is no such day. */
static bool
count_days(int year, int month, int day, int64_t *days)
{
	const int y = year - (month <= 2), m = month + (month > 2 ? -3 : 9);
	struct parts t;

	*days = y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day -
	    1 - 719468;
	t = date_split(*days * DAY);
	return t.month == month && t.day == day;
}

/* --- reading ------------------------------------------------------------ */

/* Takes a number of n digits off the front of the text. */
static bool
take_number(const char **p, int n, int min, int max, int *out)
{
	int value = 0;

	for (; n > 0; n--, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		value = 10 * value + (**p - '0');
	}
	*out = value;
	return value >= min && value <= max;
}

static bool
take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* hh:mm:ss */
static bool
take_time(const char **p, int64_t *ms)
{
	int hour, minute, second;

	if (!take_number(p, 2, 0, 23, &hour) || !take_char(p, ':') ||
	    !take_number(p, 2, 0, 59, &minute) || !take_char(p, ':') ||
	    !take_number(p, 2, 0, 60, &second))
		return false;
	*ms = ((hour * 60 + minute) * 60 + second) * INT64_C(1000);
	return true;
}

/* [ "." 1*DIGIT ] */
static bool
take_fraction(const char **p, int64_t *ms)
{
	int scale = 100;

	if (!take_char(p, '.'))
		return true;
	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
		*ms += (**p - '0') * scale;
	return true;
}

static bool
take_offset(const char **p, int64_t *ms)
{
	int hour, minute, sign;

	*ms = 0;
	if (take_char(p, 'Z') || take_char(p, 'z'))
		return true;
	sign = **p == '-' ? -1 : 1;
	if ((!take_char(p, '+') && !take_char(p, '-')) ||
	    !take_number(p, 2, 0, 23, &hour) || !take_char(p, ':') ||
	    !take_number(p, 2, 0, 59, &minute))
		return false;
	*ms = sign * (hour * 60 + minute) * INT64_C(60000);
	return true;
}

bool
date_rfc3339(const char *text, int64_t *wall)
{
	int64_t days, time, offset;
	int year, month, day;

	if (!take_number(&text, 4, 1970, 9999, &year) ||
	    !take_char(&text, '-') || !take_number(&text, 2, 1, 12, &month) ||
	    !take_char(&text, '-') || !take_number(&text, 2, 1, 31, &day) ||
	    !count_days(year, month, day, &days) ||
	    (!take_char(&text, 'T') && !take_char(&text, 't')) ||
	    !take_time(&text, &time) || !take_fraction(&text, &time) ||
	    !take_offset(&text, &offset) || *text != '\0')
		return false;
	*wall = days * DAY + time - offset;
	return true;
}

/* Takes one of n names of three letters; *which is its index. */
static bool
take_name(const char **p, const char *names, int n, int *which)
{
	for (int i = 0; i < n; i++)
		if (strncmp(*p, names + (ptrdiff_t)3 * i, 3) == 0) {
			*p += 3;
			*which = i;
			return true;
		}
	return false;
}

bool
date_imf(const char *text, int64_t *wall)
{
	int64_t days, time;
	int weekday, day, month, year;

	if (!take_name(&text, WEEKDAYS, 7, &weekday) ||
	    !take_char(&text, ',') || !take_char(&text, ' ') ||
	    !take_number(&text, 2, 1, 31, &day) || !take_char(&text, ' ') ||
	    !take_name(&text, MONTHS, 12, &month) || !take_char(&text, ' ') ||
	    !take_number(&text, 4, 1970, 9999, &year) ||
	    !take_char(&text, ' ') || !take_time(&text, &time) ||
	    strcmp(text, " GMT") != 0 ||
	    !count_days(year, month + 1, day, &days) || days % 7 != weekday)
		return false;
	*wall = days * DAY + time;
	return true;
}

bool
date_parse(const char *text, int64_t *wall)
{
	return date_imf(text, wall) || date_rfc3339(text, wall);
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
