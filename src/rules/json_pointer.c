/*
 * JSON Pointers, all followed at once.
 *
 * A pointer is kept as its reference tokens, each followed by NUL.  A token
 * cannot hold NUL (a name in a text can).  So the order of the bytes is the
 * order of the tokens, and pointers that begin alike stand side by side.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_value.h"
#include "json_string.h"
#include "json_pointer.h"

static int
order(const void *a, const void *b)
{
	const struct json_pointer *x = a, *y = b;
	int c = memcmp(x->tokens, y->tokens, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/* Writes the tokens of a pointer: "/a~1b/c" -> "a/b", "c".  Returns the end of
 * the written bytes, which are as many as the pointer has. */
static char *
unescape(const char *s, char *w)
{
	assert(conf_value_is_pointer(s));
	while (*++s != '\0') {
		if (*s == '/') {
			*w++ = '\0';
		} else if (*s == '~') {
			s++;
			*w++ = *s == '0' ? '~' : '/';
		} else {
			*w++ = *s;
		}
	}
	*w++ = '\0';
	return w;
}

enum rc
json_pointer_init(struct json_pointers *set, const struct conf_list *list)
{
	size_t i, size = 0;
	char *w;

	*set = (struct json_pointers){ NULL, 0, NULL };
	if (list->n == 0)
		return RC_OK;
	for (i = 0; i < list->n; i++)
		size += strlen(list->item[i]);
	set->item = calloc(list->n, sizeof(*set->item));
	set->tokens = malloc(size);
	if (set->item == NULL || set->tokens == NULL)
		return RC_NOMEM;
	w = set->tokens;
	for (i = 0; i < list->n; i++) {
		set->item[i].tokens = w;
		w = unescape(list->item[i], w);
		set->item[i].len = (size_t)(w - set->item[i].tokens);
	}
	set->n = list->n;
	qsort(set->item, set->n, sizeof(*set->item), order);
	return RC_OK;
}

void
json_pointer_free(struct json_pointers *set)
{
	free(set->item);
	free(set->tokens);
	*set = (struct json_pointers){ NULL, 0, NULL };
}

struct json_span
json_pointer_all(const struct json_pointers *set)
{
	return (struct json_span){ 0, set->n, 0 };
}

struct json_span
json_pointer_descend(
    const struct json_pointers *set, struct json_span s, const char *name)
{
	const struct json_pointer *p = set->item;
	size_t mid, hi = s.hi;

	while (s.lo < hi) {
		mid = s.lo + (hi - s.lo) / 2;
		if (json_string_order_text(name, p[mid].tokens + s.off) > 0)
			s.lo = mid + 1;
		else
			hi = mid;
	}
	for (; hi < s.hi; hi++)
		if (json_string_order_text(name, p[hi].tokens + s.off) != 0)
			break;
	s.hi = hi;
	if (s.lo < s.hi)
		s.off += strlen(p[s.lo].tokens + s.off) + 1;
	return s;
}

struct json_span
json_pointer_descend_index(
    const struct json_pointers *set, struct json_span s, size_t index)
{
	char name[32];

	if (s.lo == s.hi)
		return s;
	snprintf(name, sizeof(name), "\"%zu\"", index);
	return json_pointer_descend(set, s, name);
}

bool
json_pointer_ends(const struct json_pointers *set, struct json_span s)
{
	return s.lo < s.hi && set->item[s.lo].len == s.off;
}
