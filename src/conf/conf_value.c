/*
 * Configuration values: text -> C.
 *
 * Strict: a doubtful value is refused, and the sentence says what is accepted.
 * ASCII only, in every locale.  This file knows no option, no section and no
 * line.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"

#include "conf_value.h"

#define SEPARATORS " \t,"
#define DIGITS     CONF_DIGITS

#define UNIT_MAX 5

/* Numbers of one kind.  Units ascend: messages about limits use the largest one
 * that divides them. */
struct scale {
	const char *what;
	struct unit {
		const char *name;
		int64_t factor;
	} units[UNIT_MAX];
};

static const struct scale numbers = { "a number", { { "", 1 } } };

static const struct scale durations = {
	"a duration: a number and ms, s, m, h or d",
	{ { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 },
	    { "h", 60 * 60 * 1000 }, { "d", 24 * 60 * 60 * 1000 } },
};

static const struct scale sizes = {
	"a size: a number, or one and K, M or G",
	{ { "", 1 }, { "K", 1024 }, { "M", 1024 * 1024 },
	    { "G", 1024 * 1024 * 1024 } },
};

struct conf_chunk {
	struct conf_chunk *older;
	max_align_t bytes[];
};

void *
conf_value_alloc(struct conf_arena *arena, size_t n)
{
	struct conf_chunk *chunk;

	if (n > SIZE_MAX - sizeof(*chunk))
		return NULL;
	if ((chunk = calloc(1, sizeof(*chunk) + n)) == NULL)
		return NULL;
	chunk->older = arena->newest;
	arena->newest = chunk;
	return chunk->bytes;
}

char *
conf_value_copy(struct conf_arena *arena, const char *s, size_t n)
{
	char *copy = conf_value_alloc(arena, n + 1);

	if (copy != NULL && n > 0)
		memcpy(copy, s, n);
	return copy;
}

void
conf_value_free(struct conf_arena *arena)
{
	struct conf_chunk *chunk;

	while ((chunk = arena->newest) != NULL) {
		arena->newest = chunk->older;
		free(chunk);
	}
}

bool
conf_value_fail(struct conf_error *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(why->text, sizeof(why->text), format, ap);
	va_end(ap);
	return false;
}

bool
conf_value_no_memory(struct conf_error *why)
{
	return conf_value_fail(why, "no memory");
}

bool
conf_value_made_of(const char *s, const char *bytes)
{
	return *s != '\0' && s[strspn(s, bytes)] == '\0';
}

static void
limit_text(int64_t value, const struct unit *units, char out[32])
{
	size_t best = 0;

	for (size_t i = 1; i < UNIT_MAX && units[i].name != NULL; i++)
		if (value != 0 && value % units[i].factor == 0)
			best = i;
	(void)snprintf(out, 32, "%lld%s",
	    (long long)(value / units[best].factor),
	    value == 0 ? "" : units[best].name);
}

/* A number with a unit; 0 needs none.  -1: it is none; INT64_MAX: it is too
 * large. */
static int64_t
scaled_number(const char *text, const struct unit *units)
{
	const size_t n = strspn(text, DIGITS);
	/* Above INT64_MAX it becomes that, which is above every limit. */
	const int64_t value = n > 0 ? strtoll(text, NULL, 10) : 0;

	if (n == 0)
		return -1;
	if (value == 0 && text[n] == '\0')
		return 0;
	for (size_t i = 0; i < UNIT_MAX && units[i].name != NULL; i++) {
		if (strcmp(text + n, units[i].name) != 0)
			continue;
		if (value > INT64_MAX / units[i].factor)
			return INT64_MAX;
		return value * units[i].factor;
	}
	return -1;
}

/* The number; -1: it is none, or out of range, which why says. */
static int64_t
value_read(const char *text, const struct scale *scale, int64_t min,
    int64_t max, struct conf_error *why)
{
	const int64_t value = scaled_number(text, scale->units);
	char lo[32], hi[32];

	assert(min >= 0);
	if (value >= min && value <= max)
		return value;
	limit_text(min, scale->units, lo);
	limit_text(max, scale->units, hi);
	if (value < 0)
		(void)conf_value_fail(
		    why, "\"%.200s\" is not %s", text, scale->what);
	else
		(void)conf_value_fail(
		    why, "\"%.200s\" is out of range (%s to %s)", text, lo, hi);
	return -1;
}

bool
conf_value_number(const char *text, int64_t min, int64_t max, unsigned *out,
    struct conf_error *why)
{
	const int64_t value = value_read(text, &numbers, min, max, why);

	assert(max <= UINT32_MAX);
	if (value >= 0)
		*out = (unsigned)value;
	return value >= 0;
}

bool
conf_value_duration(const char *text, int64_t min, int64_t max, int64_t *out,
    struct conf_error *why)
{
	int64_t value;

	if (conf_value_made_of(text, DIGITS) && !conf_value_made_of(text, "0"))
		return conf_value_fail(
		    why, "\"%.200s\" needs a unit: ms, s, m, h or d", text);
	value = value_read(text, &durations, min, max, why);
	if (value >= 0)
		*out = value;
	return value >= 0;
}

bool
conf_value_size(const char *text, int64_t min, int64_t max, uint64_t *out,
    struct conf_error *why)
{
	int64_t value;

	if ((uint64_t)max > LIMIT_SIZE)
		max = (int64_t)LIMIT_SIZE;
	value = value_read(text, &sizes, min, max, why);
	if (value >= 0)
		*out = (uint64_t)value;
	return value >= 0;
}

bool
conf_value_octal(const char *text, unsigned *out, struct conf_error *why)
{
	const unsigned long value = strtoul(text, NULL, 8);

	if (!conf_value_made_of(text, "01234567"))
		return conf_value_fail(
		    why, "\"%.200s\" is not a mode in octal, 0 to 0777", text);
	if (value > 0777)
		return conf_value_fail(
		    why, "\"%.200s\" is out of range (0 to 0777)", text);
	*out = (unsigned)value;
	return true;
}

bool
conf_value_word(const char *text, const char *const *words, unsigned *out,
    struct conf_error *why)
{
	char all[128] = "";
	size_t n = 0;

	for (unsigned i = 0; words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return true;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
		    i > 0 ? ", " : "", words[i]);
		assert(n < sizeof(all));
	}
	if (words[1] == NULL)
		return conf_value_fail(why, "\"%.200s\" is not %s", text, all);
	return conf_value_fail(why, "\"%.200s\" is not one of %s", text, all);
}

bool
conf_value_switch(const char *text, bool *out, struct conf_error *why)
{
	static const char *const words[] = { "no", "yes", NULL };
	unsigned which = 0;

	if (!conf_value_word(text, words, &which, why))
		return false;
	*out = which == 1;
	return true;
}

bool
conf_value_item(const char **text, char out[LIMIT_CONF_LINE + 1])
{
	size_t n;

	*text += strspn(*text, SEPARATORS);
	n = strcspn(*text, SEPARATORS);
	assert(n <= LIMIT_CONF_LINE);
	memcpy(out, *text, n);
	out[n] = '\0';
	*text += n;
	return n > 0;
}

bool
conf_value_words(const char *text, const char *const *words, unsigned *out,
    struct conf_error *why)
{
	unsigned which = 0, set = 0;
	char item[LIMIT_CONF_LINE + 1];

	while (conf_value_item(&text, item)) {
		if (!conf_value_word(item, words, &which, why))
			return false;
		set |= 1U << which;
	}
	if ((set & 1) != 0 && set != 1)
		return conf_value_fail(
		    why, "\"%s\" stands beside others", words[0]);
	*out = set;
	return true;
}

/* "409", "505-599" or "5xx" */
static bool
add_statuses(const char *item, struct conf_statuses *set)
{
	char first[] = "000", last[] = "000";
	const size_t n = strlen(item);

	if (n != 3 && (n != 7 || item[3] != '-'))
		return false;
	memcpy(first, item, 3);
	memcpy(last, item + n - 3, 3);
	if (n == 3 && strcmp(item + 1, "xx") == 0) {
		memcpy(first + 1, "00", 2);
		memcpy(last + 1, "99", 2);
	}
	if (!conf_value_made_of(first, DIGITS) ||
	    !conf_value_made_of(last, DIGITS) || *first < '1' || *last > '5' ||
	    strcmp(first, last) > 0)
		return false;
	for (long i = strtol(first, NULL, 10) - 100;
	     i <= strtol(last, NULL, 10) - 100; i++)
		set->bits[i / 64] |= UINT64_C(1) << i % 64;
	return true;
}

bool
conf_value_statuses(
    const char *text, struct conf_statuses *out, struct conf_error *why)
{
	struct conf_statuses set = { { 0 } };
	char item[LIMIT_CONF_LINE + 1];

	while (conf_value_item(&text, item)) {
		if (!add_statuses(item, &set))
			return conf_value_fail(why,
			    "\"%.200s\" is not a status, such as 409, 505-599 "
			    "or 5xx",
			    item);
	}
	*out = set;
	return true;
}

bool
conf_value_is_pointer(const char *s)
{
	if (*s != '/')
		return false;
	for (; *s != '\0'; s++)
		if (*s == '~' && s[1] != '0' && s[1] != '1')
			return false;
	return true;
}
