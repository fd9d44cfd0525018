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
 * query nor body counts.  A spec means the same for ever, because
 * living keys have been made by it: version 1 has "1 json", which knows no
 * multipart, "1 exact", and no lines with k.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "cginame.h"
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

static enum rc
spec_add_line(struct buf *out, char kind, const char *text, bool fold)
{
	enum rc rc = buf_addf(out, "%c ", kind);

	if (*text == '\0' || strchr(text, '\n') != NULL)
		return RC_INVALID;
	for (; rc == RC_OK && *text != '\0'; text++)
		rc = buf_addc(out, fold ? ascii_lower(*text) : *text);
	return rc == RC_OK ? buf_addc(out, '\n') : rc;
}

/* Adds a line for each item, sorted, none twice. */
static enum rc
add_lines(struct buf *out, char kind, const struct conf_list *list, bool fold)
{
	int (*order)(const void *, const void *) =
	    fold ? order_name : order_text;
	enum rc rc = RC_OK;
	char **item;
	size_t i;

	if (list->n == 0)
		return RC_OK;
	item = calloc(list->n, sizeof(*item));
	if (item == NULL)
		return RC_NOMEM;
	memcpy(item, list->item, list->n * sizeof(*item));
	qsort(item, list->n, sizeof(*item), order);
	for (i = 0; i < list->n && rc == RC_OK; i++)
		if (i == 0 || order(&item[i - 1], &item[i]) != 0)
			rc = spec_add_line(out, kind, item[i], fold);
	free(item);
	return rc;
}

/* Adds a line for each alternative of key_from that may be in query or body.
 * Fields and cookies do not count anyway. */
static enum rc
add_keys(struct buf *out, const struct conf_key_from *from)
{
	char *item[LIMIT_KEY_FROM];
	struct conf_list list = { item, 0 };
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
			memcpy(&item[list.n++], &a->text, sizeof(item[0]));
	}
	return add_lines(out, 'k', &list, false);
}

/* The first lines, without and with lines of keys. */
static const char *const first_lines[][2] = {
	[CONF_FINGERPRINT_VALUE] = { "2 value\n", "2 value\n" },
	[CONF_FINGERPRINT_EXACT] = { "1 exact\n", "2 exact\n" },
	[CONF_FINGERPRINT_NONE] = { "3 none\n", "3 none\n" },
};

enum rc
fingerprint_spec_write(const struct conf_route *route, struct buf *out)
{
	char variable[FINGERPRINT_VARIABLE];
	struct buf keys;
	enum rc rc;
	size_t i;

	buf_clear(out);
	buf_init(&keys, out->max);
	rc = route->fingerprint == CONF_FINGERPRINT_NONE
	    ? RC_OK
	    : add_keys(&keys, &route->key_from);
	for (i = 0; i < route->fingerprint_headers.n && rc == RC_OK; i++)
		rc = cginame_variable(route->fingerprint_headers.item[i],
		    variable, sizeof(variable));
	if (rc == RC_OK)
		rc = buf_adds(
		    out, first_lines[route->fingerprint][keys.len > 0]);
	if (rc == RC_OK)
		rc = add_lines(out, 'h', &route->fingerprint_headers, true);
	/* Ignored values make no difference where JSON is not read. */
	if (rc == RC_OK && route->fingerprint == CONF_FINGERPRINT_VALUE)
		rc = add_lines(out, 'i', &route->fingerprint_ignore, false);
	if (rc == RC_OK)
		rc = buf_add(out, keys.data, keys.len);
	if (rc != RC_OK)
		buf_clear(out);
	buf_free(&keys);
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
	static const struct {
		const char *line;
		int version;
		enum conf_fingerprint how;
	} known[] = {
		{ "1 json", 1, CONF_FINGERPRINT_VALUE },
		{ "1 exact", 1, CONF_FINGERPRINT_EXACT },
		{ "2 value", 2, CONF_FINGERPRINT_VALUE },
		{ "2 exact", 2, CONF_FINGERPRINT_EXACT },
		{ "3 none", 3, CONF_FINGERPRINT_NONE },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(line, known[i].line) != 0)
			continue;
		spec->how = known[i].how;
		spec->multipart = known[i].version == 2 &&
		    spec->how == CONF_FINGERPRINT_VALUE;
		spec->version = known[i].version;
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
	assert(list->item != NULL); /* there is room for each line */
	list->item[list->n++] = line + 2;
	return true;
}

enum rc
fingerprint_spec_read(const char *text, struct fingerprint_spec *spec)
{
	char *copy, *p, *line;
	size_t n = 0;

	memset(spec, 0, sizeof(*spec));
	copy = conf_value_copy(&spec->arena, text, strlen(text));
	if (copy == NULL)
		return RC_NOMEM;
	for (p = copy; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	if (n > 1) { /* the first line is no item */
		spec->headers.item =
		    conf_value_alloc(&spec->arena, n * sizeof(char *));
		spec->ignore.item =
		    conf_value_alloc(&spec->arena, n * sizeof(char *));
		spec->key = conf_value_alloc(
		    &spec->arena, LIMIT_KEY_FROM * sizeof(*spec->key));
		if (spec->headers.item == NULL || spec->ignore.item == NULL ||
		    spec->key == NULL)
			return RC_NOMEM;
	}
	spec->keys.item = spec->key;
	p = copy;
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
