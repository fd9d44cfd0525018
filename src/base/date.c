/*
 * RFC 3339, section 5.6, and RFC 9110, section 5.6.7, as their grammars have
 * it: no blanks, no other case of letters than they allow, no obsolete forms.
 *
 * This file reads no clock.
 */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "date.h"

#define DAY INT64_C(86400000)

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

static bool
is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The days from 1970 to a date; false: there is no such day. */
static bool
count_days(int year, int month, int day, int64_t *days)
{
	static const int length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31,
		30, 31 };
	int i;

	if (day > length[month - 1] + (month == 2 && is_leap(year)))
		return false;
	*days = day - 1;
	for (i = 1970; i < year; i++)
		*days += 365 + is_leap(i);
	for (i = 1; i < month; i++)
		*days += length[i - 1] + (i == 2 && is_leap(year));
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

	/* 1970-01-01 was a Thursday. */
	if (!take_name(&text, "ThuFriSatSunMonTueWed", 7, &weekday) ||
	    !take_char(&text, ',') || !take_char(&text, ' ') ||
	    !take_number(&text, 2, 1, 31, &day) || !take_char(&text, ' ') ||
	    !take_name(
		&text, "JanFebMarAprMayJunJulAugSepOctNovDec", 12, &month) ||
	    !take_char(&text, ' ') ||
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
