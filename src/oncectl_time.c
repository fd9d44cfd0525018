/*
 * RFC 3339, section 5.6, as its grammar has it.
 *
 * It must not know: what time it is.
 */
#include "config.h"

#include "oncectl_time.h"

/* Takes n digits off the text. */
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

/* Days from 1970 to a date. */
static bool
take_date(const char **p, int64_t *days)
{
	static const int length[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31,
		30, 31 };
	int year, month, day, i;

	if (!take_number(p, 4, 1970, 9999, &year) || !take_char(p, '-') ||
	    !take_number(p, 2, 1, 12, &month) || !take_char(p, '-') ||
	    !take_number(p, 2, 1, 31, &day))
		return false;
	if (day > length[month - 1] + (month == 2 && is_leap(year)))
		return false;
	*days = day - 1;
	for (i = 1970; i < year; i++)
		*days += 365 + is_leap(i);
	for (i = 1; i < month; i++)
		*days += length[i - 1] + (i == 2 && is_leap(year));
	return true;
}

/* A leap second is the one after it. */
static bool
take_time(const char **p, int64_t *ms)
{
	int hour, minute, second, scale = 100;

	if (!take_number(p, 2, 0, 23, &hour) || !take_char(p, ':') ||
	    !take_number(p, 2, 0, 59, &minute) || !take_char(p, ':') ||
	    !take_number(p, 2, 0, 60, &second))
		return false;
	*ms = ((hour * 60 + minute) * 60 + second) * INT64_C(1000);
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
oncectl_time_parse(const char *text, int64_t *wall)
{
	int64_t days, time, offset;

	if (!take_date(&text, &days) ||
	    (!take_char(&text, 'T') && !take_char(&text, 't')) ||
	    !take_time(&text, &time) || !take_offset(&text, &offset) ||
	    *text != '\0')
		return false;
	*wall = days * INT64_C(86400000) + time - offset;
	return true;
}
