/*
 * Reads a JSON text: its canonical strings and numbers, and the order of its
 * members.
 *
 * One pass of recursive descent writes the text without blanks, and notes where
 * each member begins.  When an object ends, its notes are sorted, and no byte
 * of the text is moved.  Text and notes are allocated once, for the most that
 * the input can need: unused parts cost no page.
 *
 * Invariants:
 *  1. The text that was written is never longer than json_most() of the input.
 *  2. Time is O(n log n) for n bytes.
 *
 * This file does not know the meaning of the values.  It also writes objects as
 * text, for logs and lines of output.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "date.h"
#include "json_text.h"
#include "utf8.h"

#include "json.h"

/* The length of the shortest member with its separator: ,"":0 */
#define MEMBER_MIN 5

struct parser {
	struct json_text t;
	char *text; /* the beginning of what was written */
	struct json_member *member;
	uint32_t n, cap;
	bool duplicate; /* two members have one name */
};

/* --- members in order ----------------------------------------------------- */

/*
 * The members are merged.  qsort(3) promises no bound on its steps, and the
 * members come from strangers.  A comparison is no longer than the name that
 * moves on by it, so each of the log n passes takes O(bytes of all names).
 */

/* The end of a list. */
#define NONE UINT32_MAX

/* Merges two sorted lists.  Two members of one name are compared in one of the
 * merges, because both are in order. */
static uint32_t
merge_members(struct parser *ps, uint32_t a, uint32_t b)
{
	uint32_t head, *tail = &head, *from;
	int order;

	while (a != NONE && b != NONE) {
		order = json_text_order(ps->text + ps->member[a].name,
		    ps->text + ps->member[b].name);
		if (order == 0)
			ps->duplicate = true;
		from = order <= 0 ? &a : &b;
		*tail = *from;
		tail = &ps->member[*from].next;
		*from = *tail;
	}
	*tail = a != NONE ? a : b;
	return head;
}

/* Takes n members off the list, and returns them as a sorted list. */
static uint32_t
sort_members(struct parser *ps, uint32_t *list, uint32_t n)
{
	uint32_t a, b;

	if (n == 1) {
		a = *list;
		*list = ps->member[a].next;
		ps->member[a].next = NONE;
		return a;
	}
	a = sort_members(ps, list, n / 2);
	b = sort_members(ps, list, n - n / 2);
	return merge_members(ps, a, b);
}

/* Makes a ring of a list of n members, in the order of their names.  False: two
 * have one name. */
static bool
finish_members(struct parser *ps, uint32_t first, uint32_t n)
{
	uint32_t last;

	first = sort_members(ps, &first, n);
	for (last = first; ps->member[last].next != NONE;)
		last = ps->member[last].next;
	ps->member[last].next = first | JSON_LAST;
	return !ps->duplicate;
}

/* --- values --------------------------------------------------------------- */

static bool parse_value(struct parser *, int depth);

/* Skips blanks; returns the next byte, or -1 at the end. */
static int
json_peek(struct parser *ps)
{
	struct json_text *t = &ps->t;

	while (t->p < t->end &&
	    (*t->p == ' ' || *t->p == '\t' || *t->p == '\n' || *t->p == '\r'))
		t->p++;
	return t->p < t->end ? *t->p : -1;
}

/* Takes that byte, if it is the next one. */
static bool
json_take(struct parser *ps, char c)
{
	if (json_peek(ps) != c)
		return false;
	ps->t.p++;
	json_put(&ps->t, &c, 1);
	return true;
}

static bool
parse_object(struct parser *ps, int depth)
{
	const uint32_t first = ps->n;
	uint32_t m, n = 0, *link = NULL;

	if (json_take(ps, '}'))
		return true;
	do {
		if (json_peek(ps) != '"')
			return false;
		assert(ps->n < ps->cap);
		m = ps->n++;
		n++;
		if (link != NULL)
			*link = m;
		link = &ps->member[m].next;
		*link = NONE;
		ps->member[m].name = (uint32_t)(ps->t.out - ps->text);
		if (!json_text_string(&ps->t) || !json_take(ps, ':') ||
		    !parse_value(ps, depth))
			return false;
	} while (json_take(ps, ','));
	return json_take(ps, '}') && finish_members(ps, first, n);
}

static bool
parse_array(struct parser *ps, int depth)
{
	if (json_take(ps, ']'))
		return true;
	do {
		if (!parse_value(ps, depth))
			return false;
	} while (json_take(ps, ','));
	return json_take(ps, ']');
}

static bool
parse_literal(struct parser *ps, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(ps->t.end - ps->t.p) < n || memcmp(ps->t.p, word, n) != 0)
		return false;
	ps->t.p += n;
	json_put(&ps->t, word, n);
	return true;
}

static bool
parse_value(struct parser *ps, int depth)
{
	int c = json_peek(ps);

	if ((c == '{' || c == '[') && depth == LIMIT_JSON_DEPTH)
		return false;
	if (json_take(ps, '{'))
		return parse_object(ps, depth + 1);
	if (json_take(ps, '['))
		return parse_array(ps, depth + 1);
	if (c == '"')
		return json_text_string(&ps->t);
	if (c == '-' || (c >= '0' && c <= '9'))
		return json_text_number(&ps->t);
	return parse_literal(ps,
	    c == 't'       ? "true"
		: c == 'f' ? "false"
			   : "null");
}

/* --- texts ---------------------------------------------------------------- */

/* Those that are read whole, and those whose value is being read. */
static size_t
most_members(size_t len)
{
	return len / MEMBER_MIN + LIMIT_JSON_DEPTH;
}

/* The most that a text of that length can become. */
static size_t
json_most(size_t len)
{
	return len + len / 64;
}

/* The text, its members, and the canonical form. */
size_t
json_cost(size_t len)
{
	return len > LIMIT_JSON ? 0
				: 2 * json_most(len) +
		most_members(len) * sizeof(struct json_member);
}

void
json_free(struct json *json)
{
	if (json == NULL)
		return;
	free(json->text);
	free(json->member);
	free(json);
}

enum json_verdict
json_read(struct json **out, const void *text, size_t len)
{
	struct parser ps = { .t = { .p = text }, .cap = 0 };
	struct json *json;

	*out = NULL;
	if (len == 0 || len > LIMIT_JSON)
		return JSON_NOT_IJSON;
	if ((json = calloc(1, sizeof(*json))) == NULL)
		return JSON_NO_MEMORY;
	ps.cap = (uint32_t)most_members(len);
	ps.member = json->member =
	    reallocarray(NULL, ps.cap, sizeof(*json->member));
	ps.text = json->text = malloc(json_most(len) + 1);
	if (json->member == NULL || json->text == NULL) {
		json_free(json);
		return JSON_NO_MEMORY;
	}
	ps.t.end = ps.t.p + len;
	ps.t.out = ps.text;
	ps.t.limit = ps.text + json_most(len) + 1;
	if (!parse_value(&ps, 0) || json_peek(&ps) != -1) {
		json_free(json);
		return JSON_NOT_IJSON;
	}
	json->len = (size_t)(ps.t.out - ps.text);
	json->text[json->len] = '\0';
	*out = json;
	return JSON_OK;
}

/* --- an object as text ---------------------------------------------------- */

void
json_write_raw(struct json_write *o, const char *text)
{
	o->rc = buf_adds(o->out, text);
}

/* How many bytes at s a JSON string holds unchanged (RFC 8259, section 7). */
static size_t
json_write_plain(const char *s)
{
	size_t n = 0, more;

	for (;;) {
		if ((s[n] >= ' ' && s[n] < 0x7f) && s[n] != '"' && s[n] != '\\')
			n++;
		else if ((more = utf8_length(s + n)) != 0)
			n += more;
		else
			return n;
	}
}

static void
json_write_string(struct json_write *o, const char *s)
{
	char escape[8];
	unsigned code;
	size_t n;

	json_write_raw(o, "\"");
	while (*s != '\0') {
		n = json_write_plain(s);
		buf_add(o->out, s, n);
		s += n;
		if (*s == '\0')
			break;
		code = (unsigned char)*s;
		if (*s == '\xc2' && (s[1] & 0xe0) == 0x80) /* a C1 control */
			code = (unsigned char)*++s;
		else if (code >= 0x80)
			code = 0xfffd;
		s++;
		if (code == '"' || code == '\\')
			snprintf(escape, sizeof(escape), "\\%c", (int)code);
		else
			snprintf(escape, sizeof(escape), "\\u%04x", code);
		json_write_raw(o, escape);
	}
	json_write_raw(o, "\"");
}

void
json_write_name(struct json_write *o, const char *name)
{
	if (o->out->len > 0 && o->out->data[o->out->len - 1] != '{')
		json_write_raw(o, ",");
	json_write_string(o, name);
	json_write_raw(o, ":");
}

void
json_write_text(struct json_write *o, const char *name, const char *value)
{
	json_write_name(o, name);
	if (value != NULL)
		json_write_string(o, value);
	else
		json_write_raw(o, "null");
}

void
json_write_time(struct json_write *o, const char *name, int64_t wall)
{
	char text[DATE_RFC3339_LEN + 1];

	if (wall != 0)
		date_put_rfc3339(wall, text);
	json_write_text(o, name, wall != 0 ? text : NULL);
}

void
json_write_number(struct json_write *o, const char *name, int64_t value)
{
	json_write_name(o, name);
	o->rc = buf_addf(o->out, "%" PRId64, value);
}

void
json_write_bool(struct json_write *o, const char *name, bool value)
{
	json_write_name(o, name);
	json_write_raw(o, value ? "true" : "false");
}
