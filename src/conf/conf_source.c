/*
 * Configuration values: the places where a key can be.
 *
 * A source that would never be there is refused, with what to write instead.
 * This file knows no option and no line.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "cginame.h"
#include "conf_item.h"
#include "limit.h"

#include "conf_source.h"

static const char *const kinds[] = { CONF_SOURCES(WORDS_WORD) };
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char all_kinds[] =
    "header:NAME, query:NAME, form:NAME, json:/pointer or cookie:NAME";

static bool
source_no_memory(struct conf_error *why)
{
	return conf_value_fail(why, "no memory");
}

/* Copies n bytes, with %20, %25, %2B and %2C decoded. */
static char *
decoded(struct conf_arena *arena, const char *s, size_t n)
{
	static const struct {
		const char *code;
		char c;
	} codes[] = { { "%20", ' ' }, { "%25", '%' }, { "%2B", '+' },
		{ "%2C", ',' } };
	char *out = conf_value_alloc(arena, n + 1), *to = out;
	const char *end = s + n;
	size_t i;

	if (out == NULL)
		return NULL;
	while (s < end) {
		for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
			if (end - s >= 3 &&
			    strncasecmp(s, codes[i].code, 3) == 0)
				break;
		if (i < sizeof(codes) / sizeof(codes[0])) {
			*to++ = codes[i].c;
			s += 3;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
	return out;
}

static bool
source_read_header(struct conf_source *source, struct conf_arena *arena,
    struct conf_error *why)
{
	char variable[264];

	if (!conf_item_check(source->name, CONF_ITEM_FIELD, why))
		return false;
	if (cginame_variable(source->name, variable, sizeof(variable)) != RC_OK)
		assert(!"conf_item_check() bounds the name");
	source->variable = conf_value_copy(arena, variable, strlen(variable));
	return source->variable != NULL || source_no_memory(why);
}

static bool
check_name(struct conf_source *source, struct conf_arena *arena,
    struct conf_error *why)
{
	const char *kind = kinds[source->kind];

	if (*source->name == '\0')
		return conf_value_fail(
		    why, "\"%s:\" needs a name after the colon", kind);
	switch (source->kind) {
	case CONF_FROM_HEADER:
		return source_read_header(source, arena, why);
	case CONF_FROM_JSON:
		return conf_value_is_pointer(source->name) ||
		    conf_value_fail(why,
			"\"%.200s\" is not a JSON Pointer, such as json:/id",
			source->name);
	case CONF_FROM_COOKIE:
		return conf_item_check(source->name, CONF_ITEM_COOKIE, why);
	case CONF_FROM_QUERY:
	case CONF_FROM_FORM:
		return true;
	}
	assert(!"a kind");
	return false;
}

static bool
read_source(const char *text, size_t n, struct conf_arena *arena,
    struct conf_source *out, struct conf_error *why)
{
	const char *colon = memchr(text, ':', n);
	const int shown = n < 200 ? (int)n : 200;
	size_t kind = NKINDS, len;

	if (colon == NULL)
		return conf_value_fail(why,
		    "\"%.*s\" does not say where the key is: write %s", shown,
		    text, all_kinds);
	len = (size_t)(colon - text);
	for (size_t i = 0; i < NKINDS; i++)
		if (len == strlen(kinds[i]) &&
		    strncmp(text, kinds[i], len) == 0)
			kind = i;
	if (kind == NKINDS)
		return conf_value_fail(why,
		    "\"%.*s\" is no place for a key: there are %s", shown, text,
		    all_kinds);
	out->kind = (enum conf_source_kind)kind;
	out->variable = NULL;
	out->name = decoded(arena, colon + 1, n - len - 1);
	if (out->name == NULL)
		return source_no_memory(why);
	return check_name(out, arena, why);
}

bool
conf_source_read(const char *text, struct conf_arena *arena,
    struct conf_alternative *out, struct conf_error *why)
{
	const size_t max = sizeof(out->part) / sizeof(out->part[0]);
	const char *part = text;
	size_t n;

	out->n = 0;
	for (;;) {
		if (out->n == max)
			return conf_value_fail(why,
			    "\"%.200s\" has more than two parts; a plus "
			    "within a name is written as %%2B",
			    text);
		n = strcspn(part, "+");
		if (n == 0)
			return conf_value_fail(why,
			    "\"%.200s\" has an empty part; a plus within a "
			    "name is written as %%2B",
			    text);
		if (!read_source(part, n, arena, &out->part[out->n++], why))
			return false;
		if (part[n] == '\0')
			break;
		part += n + 1;
	}
	out->text = conf_value_copy(arena, text, strlen(text));
	return out->text != NULL || source_no_memory(why);
}

bool
conf_source_list(const char *text, struct conf_arena *arena,
    struct conf_key_from *out, struct conf_error *why)
{
	struct conf_alternative *list;
	char item[LIMIT_CONF_LINE + 1];
	size_t n = 0;
	int more;

	list = conf_value_alloc(arena, LIMIT_KEY_FROM * sizeof(*list));
	if (list == NULL)
		return source_no_memory(why);
	while ((more = conf_value_item(&text, item, sizeof(item))) != 0) {
		if (more < 0)
			return conf_value_fail(why, "an item is too long");
		if (n == LIMIT_KEY_FROM)
			return conf_value_fail(
			    why, "more than %d items", LIMIT_KEY_FROM);
		if (!conf_source_read(item, arena, &list[n++], why))
			return false;
	}
	if (n == 0)
		return conf_value_fail(why, CONF_VALUE_EMPTY);
	out->item = list;
	out->n = n;
	return true;
}
