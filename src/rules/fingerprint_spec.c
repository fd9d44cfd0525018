/*
 * How a fingerprint is made: a fingerprint_spec.
 *
 *	2 value			or exact: how the body counts
 *	h content-language	a field that counts
 *	i /meta/time		a JSON Pointer to a value that does not count
 *	k form:once_key		a place whose member does not count if it is
 *				the key: an alternative of key_from
 *
 * Each line ends with a line feed.  The lines stand in the order of these
 * letters.  They are sorted, and none comes twice, so the order of the
 * configuration does not matter.  "3 none" has only lines with h: neither
 * query nor body counts.  "1 exact" has no lines with k.  A spec means the same
 * for ever, because living keys have been made by it.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "conf_value.h"
#include "limit.h"
#include "fingerprint.h"

/* --- the spec: written -------------------------------------------------- */

static int
order_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
order_name(const void *a, const void *b)
{
	return strcasecmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a line for each item, sorted, none twice.  No item of a configuration is
 * empty or has a line feed. */
static void
add_lines(struct buf *out, char kind, const struct conf_list *list, bool fold)
{
	int (*order)(const void *, const void *) =
	    fold ? order_name : order_text;
	char *item[LIMIT_CONF_LIST];
	size_t i;

	assert(list->n <= LIMIT_CONF_LIST);
	for (i = 0; i < list->n; i++)
		item[i] = list->item[i];
	qsort(item, list->n, sizeof(*item), order);
	for (i = 0; i < list->n; i++) {
		if (i > 0 && order(&item[i - 1], &item[i]) == 0)
			continue;
		assert(*item[i] != '\0' && strchr(item[i], '\n') == NULL);
		buf_addf(out, "%c ", kind);
		for (const char *s = item[i]; *s != '\0'; s++)
			buf_addc(out, fold ? ascii_lower(*s) : *s);
		buf_addc(out, '\n');
	}
}

/* Lists the alternatives of key_from that may be in query or body.  Fields and
 * cookies do not count anyway. */
static void
spec_list_keys(const struct conf_key_from *from, struct conf_list *out)
{
	const struct conf_alternative *a;
	bool counts;
	unsigned j;

	assert(from->n <= LIMIT_KEY_FROM);
	for (a = from->item; a < from->item + from->n; a++) {
		counts = false;
		for (j = 0; j < a->n; j++)
			if (a->part[j].kind != CONF_FROM_HEADER &&
			    a->part[j].kind != CONF_FROM_COOKIE)
				counts = true;
		/* add_lines() does not change the texts. */
		if (counts)
			memcpy(&out->item[out->n++], &a->text,
			    sizeof(out->item[0]));
	}
}

/* The first lines, without and with lines of keys. */
static const char *const first_lines[][2] = {
	[CONF_FINGERPRINT_VALUE] = { "2 value", "2 value" },
	[CONF_FINGERPRINT_EXACT] = { "1 exact", "2 exact" },
	[CONF_FINGERPRINT_NONE] = { "3 none", "3 none" },
};

enum rc
fingerprint_spec_write(const struct conf_route *route, struct buf *out)
{
	const enum conf_fingerprint how = route->fingerprint;
	char *item[LIMIT_KEY_FROM];
	struct conf_list keys = { item, 0 };
	enum rc rc;

	buf_clear(out);
	if (how != CONF_FINGERPRINT_NONE)
		spec_list_keys(&route->key_from, &keys);
	buf_addf(out, "%s\n", first_lines[how][keys.n > 0]);
	add_lines(out, 'h', &route->fingerprint_headers, true);
	/* Ignored values make no difference where JSON is not read. */
	if (how == CONF_FINGERPRINT_VALUE)
		add_lines(out, 'i', &route->fingerprint_ignore, false);
	add_lines(out, 'k', &keys, false);
	if ((rc = out->rc) != RC_OK)
		buf_clear(out);
	return rc;
}

/* --- the spec: read ----------------------------------------------------- */

void
fingerprint_spec_free(struct fingerprint_spec *spec)
{
	conf_value_free(&spec->arena);
}

/* Cuts the next line off *p; NULL if it has no end. */
static char *
spec_next_line(char **p)
{
	char *line = *p, *end = strchr(line, '\n');

	if (end == NULL)
		return NULL;
	*end = '\0';
	*p = end + 1;
	return line;
}

static bool
read_first(struct fingerprint_spec *spec, const char *line)
{
	for (unsigned how = 0; how <= CONF_FINGERPRINT_NONE; how++)
		for (unsigned keyed = 0; keyed < 2; keyed++) {
			if (strcmp(line, first_lines[how][keyed]) != 0)
				continue;
			spec->how = (enum conf_fingerprint)how;
			spec->version = *line - '0';
			return true;
		}
	return false;
}

static bool
spec_read_key(struct fingerprint_spec *spec, const char *text)
{
	struct conf_error why;

	return spec->version == 2 && spec->keys.n < LIMIT_KEY_FROM &&
	    conf_item_source(
		text, &spec->arena, &spec->key[spec->keys.n++], &why);
}

static bool
read_line(struct fingerprint_spec *spec, char *line)
{
	struct conf_list *list;

	if (strncmp(line, "k ", 2) == 0)
		return spec_read_key(spec, line + 2);
	if (strncmp(line, "h ", 2) == 0 && line[2] != '\0')
		list = &spec->headers;
	else if (strncmp(line, "i ", 2) == 0 && conf_value_is_pointer(line + 2))
		list = &spec->ignore;
	else
		return false;
	if (list->n == LIMIT_CONF_LIST)
		return false;
	list->item[list->n++] = line + 2;
	return true;
}

enum rc
fingerprint_spec_read(const char *text, struct fingerprint_spec *spec)
{
	char *p, *line;

	memset(spec, 0, sizeof(*spec));
	spec->headers.item = spec->header;
	spec->ignore.item = spec->ignored;
	spec->keys.item = spec->key;
	p = conf_value_copy(&spec->arena, text, strlen(text));
	if (p == NULL)
		return RC_NOMEM;
	line = spec_next_line(&p);
	if (line == NULL || !read_first(spec, line))
		return RC_VERSION;
	while (*p != '\0') {
		line = spec_next_line(&p);
		if (line == NULL || !read_line(spec, line))
			return RC_VERSION;
	}
	return RC_OK;
}
