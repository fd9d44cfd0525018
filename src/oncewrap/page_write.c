/*
 * Ages, counts and cut texts.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "date.h"
#include "utf8.h"
#include "page_write.h"

void
page_write_age(int64_t ms, char out[PAGE_AGE_SIZE])
{
	const int64_t s = ms > 0 ? ms / 1000 : 0;

	if (s < 60)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " s", s);
	else if (s < 3600)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " min", s / 60);
	else if (s < 86400)
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " h %" PRId64 " min",
		    s / 3600, s / 60 % 60);
	else
		snprintf(out, PAGE_AGE_SIZE, "%" PRId64 " d %" PRId64 " h",
		    s / 86400, s / 3600 % 24);
}

void
page_write_utc(int64_t wall, char out[PAGE_UTC_SIZE])
{
	char date[DATE_RFC3339_LEN + 1];

	date_put_rfc3339(wall, date);
	snprintf(out, PAGE_UTC_SIZE, "%.10s %.8s UTC", date, date + 11);
}

void
page_write_count(int64_t n, int more, char out[PAGE_COUNT_SIZE])
{
	if (n < 0)
		snprintf(out, PAGE_COUNT_SIZE, "not counted yet");
	else
		snprintf(out, PAGE_COUNT_SIZE, "%s%" PRId64,
		    more ? "more than " : "", n);
}

void
page_write_cut(const char *text, char *out, size_t size)
{
	size_t n = 0, next;

	if (text == NULL)
		text = "";
	if (strlen(text) < size) {
		memcpy(out, text, strlen(text) + 1);
		return;
	}
	for (;;) {
		next = utf8_length(text + n);
		next = n + (next > 0 ? next : 1);
		if (next > size - 4)
			break;
		n = next;
	}
	memcpy(out, text, n);
	memcpy(out + n, "...", 4);
}
