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
#include <time.h>

#include "ascii.h"
#include "date.h"

/* Not strftime(): its names follow the locale. */
#define WEEKDAYS "SunMonTueWedThuFriSat"
#define MONTHS   "JanFebMarAprMayJunJulAugSepOctNovDec"

/* The parts of a date within the years that both formats can have. */
static struct tm
date_split(int64_t wall, int *ms)
{
	const int64_t last = INT64_C(253402300799999);
	const int64_t at = wall < 0 ? 0 : wall > last ? last : wall;
	const time_t t = (time_t)(at / 1000);
	struct tm parts;

	*ms = (int)(at % 1000);
	gmtime_r(&t, &parts);
	return parts;
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
put_time(char *p, const struct tm *t)
{
	p = put_number(p, t->tm_hour, 2, ":");
	p = put_number(p, t->tm_min, 2, ":");
	return put_number(p, t->tm_sec, 2, "");
}

void
date_put_rfc3339(int64_t wall, char out[DATE_RFC3339_LEN + 1])
{
	int ms;
	const struct tm t = date_split(wall, &ms);
	char *p = out;

	p = put_number(p, t.tm_year + 1900, 4, "-");
	p = put_number(p, t.tm_mon + 1, 2, "-");
	p = put_number(p, t.tm_mday, 2, "T");
	p = put_time(p, &t);
	p = put_number(stpcpy(p, "."), ms, 3, "Z");
	assert(p == out + DATE_RFC3339_LEN);
}

void
date_put_imf(int64_t wall, char out[DATE_IMF_LEN + 1])
{
	int ms;
	const struct tm t = date_split(wall, &ms);
	char *p = out;

	memcpy(p, &WEEKDAYS[(ptrdiff_t)t.tm_wday * 3], 3);
	p = put_number(stpcpy(p + 3, ", "), t.tm_mday, 2, " ");
	memcpy(p, &MONTHS[(ptrdiff_t)t.tm_mon * 3], 3);
	p = put_number(stpcpy(p + 3, " "), t.tm_year + 1900, 4, " ");
	p = stpcpy(put_time(p, &t), " GMT");
	assert(p == out + DATE_IMF_LEN);
}

/* --- reading ------------------------------------------------------------ */

/*
 * What is read is written again, and compared with the text.  So whatever is no
 * date, such as a 31st of November, need not be found here: it is not what is
 * written for it.  A leap second is read as the second before it, and added.
 */

/* The year is that of the text. */
static int64_t
date_join(struct tm *t, int *leap)
{
	*leap = t->tm_sec == 60;
	t->tm_sec -= *leap;
	t->tm_year -= 1900;
	return timegm(t) * INT64_C(1000);
}

/* Takes [ "." 1*DIGIT ] off the front of the text. */
static bool
date_fraction(const char **p, int64_t *ms)
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
	/* NOLINTNEXTLINE(cert-err34-c): two digits are no overflow */
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
	struct tm t = { 0 };
	int leap;

	/* NOLINTNEXTLINE(cert-err34-c): it is written again and compared */
	if (sscanf(text, "%4d-%2d-%2d%*c%2d:%2d:%2d", &t.tm_year, &t.tm_mon,
		&t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
		return false;
	t.tm_mon--;
	at = date_join(&t, &leap);
	date_put_rfc3339(at, written);
	if (leap)
		memcpy(written + n - 2, "60", 2);
	if (strncasecmp(text, written, n) != 0)
		return false;
	text += n;
	if (!date_fraction(&text, &fraction) || !read_offset(text, &offset))
		return false;
	*wall = at + leap * INT64_C(1000) + fraction - offset;
	return true;
}

bool
date_imf(const char *text, int64_t *wall)
{
	char written[DATE_IMF_LEN + 1], name[4];
	const char *month;
	struct tm t = { 0 };
	int64_t at;
	int leap;

	/* NOLINTNEXTLINE(cert-err34-c): it is written again and compared */
	if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d", &t.tm_mday, name,
		&t.tm_year, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6 ||
	    (month = strstr(MONTHS, name)) == NULL)
		return false;
	t.tm_mon = (int)(month - MONTHS) / 3;
	at = date_join(&t, &leap);
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
