/*
 * Reads a JSON text: its canonical strings and numbers, and the order of its
 * members.
 *
 * One pass of recursive descent writes the text without blanks, and notes where
 * each member begins.  When an object ends, its notes are sorted, and no byte
 * of the text is moved.  Text and notes are allocated once, for the most that
 * the input can need: unused parts cost no page, and nothing is moved.
 *
 * Invariants:
 *  1. The text that was written is never longer than the input that was read.
 *  2. Time is O(n) for n bytes.
 *
 * This file does not know the meaning of the values.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json_number.h"
#include "json_string.h"
#include "json_impl.h"
#include "json_order.h"

/* The length of the shortest member with its separator: ,"":0 */
#define MEMBER_MIN 5

struct parser {
	struct json_input in;
	struct buf *out;
	struct json_member *member;
	uint32_t n, cap;
};

static enum rc parse_value(struct parser *, int depth);

/* Skips blanks; returns the next byte, or -1 at the end. */
static int
json_peek(struct parser *ps)
{
	struct json_input *in = &ps->in;

	while (in->p < in->end &&
	    (*in->p == ' ' || *in->p == '\t' || *in->p == '\n' ||
		*in->p == '\r'))
		in->p++;
	return in->p < in->end ? *in->p : -1;
}

static bool
json_take(struct parser *ps, char c)
{
	if (json_peek(ps) != c)
		return false;
	ps->in.p++;
	return true;
}

/* --- members in order -------------------------------------------------- */

static bool
is_sorted(const struct parser *ps, const struct json_members *list)
{
	const char *text = ps->out->data;
	uint32_t m, next;

	for (m = list->first; m != list->last; m = next) {
		next = ps->member[m].next;
		if (json_string_order(text + ps->member[m].name,
			text + ps->member[next].name) >= 0)
			return false;
	}
	return true;
}

/* Makes a ring of the members, in the order of their names. */
static enum rc
members_finish(struct parser *ps, struct json_members *list)
{
	if (!is_sorted(ps, list) &&
	    !json_order(ps->out->data, ps->member, list))
		return RC_INVALID;
	ps->member[list->last].next = list->first | JSON_LAST;
	return RC_OK;
}

/* --- values ----------------------------------------------------------- */

static enum rc
parse_member(struct parser *ps, int depth, uint32_t *member)
{
	enum rc rc;

	if (json_peek(ps) != '"')
		return RC_INVALID;
	assert(ps->n < ps->cap);
	*member = ps->n++;
	ps->member[*member].name = (uint32_t)ps->out->len;
	rc = json_string(&ps->in, ps->out);
	if (rc != RC_OK)
		return rc;
	if (!json_take(ps, ':'))
		return RC_INVALID;
	rc = buf_addc(ps->out, ':');
	return rc == RC_OK ? parse_value(ps, depth) : rc;
}

static enum rc
parse_object(struct parser *ps, int depth)
{
	struct json_members list = { 0, 0, 0 };
	uint32_t m;
	enum rc rc;

	ps->in.p++;
	rc = buf_addc(ps->out, '{');
	if (json_take(ps, '}'))
		return rc == RC_OK ? buf_addc(ps->out, '}') : rc;
	for (list.n = 1; rc == RC_OK; list.n++) {
		rc = parse_member(ps, depth, &m);
		if (rc != RC_OK)
			break;
		if (list.n == 1)
			list.first = m;
		else
			ps->member[list.last].next = m;
		list.last = m;
		if (json_take(ps, '}')) {
			rc = members_finish(ps, &list);
			return rc == RC_OK ? buf_addc(ps->out, '}') : rc;
		}
		if (!json_take(ps, ','))
			return RC_INVALID;
		rc = buf_addc(ps->out, ',');
	}
	return rc;
}

static enum rc
parse_array(struct parser *ps, int depth)
{
	enum rc rc;

	ps->in.p++;
	rc = buf_addc(ps->out, '[');
	if (json_take(ps, ']'))
		return rc == RC_OK ? buf_addc(ps->out, ']') : rc;
	while (rc == RC_OK) {
		rc = parse_value(ps, depth);
		if (rc != RC_OK)
			break;
		if (json_take(ps, ']'))
			return buf_addc(ps->out, ']');
		if (!json_take(ps, ','))
			return RC_INVALID;
		rc = buf_addc(ps->out, ',');
	}
	return rc;
}

static enum rc
parse_literal(struct parser *ps, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(ps->in.end - ps->in.p) < n ||
	    memcmp(ps->in.p, word, n) != 0)
		return RC_INVALID;
	ps->in.p += n;
	return buf_add(ps->out, word, n);
}

static enum rc
parse_value(struct parser *ps, int depth)
{
	int c = json_peek(ps);

	if ((c == '{' || c == '[') && depth == LIMIT_JSON_DEPTH)
		return RC_INVALID;
	if (c == '{')
		return parse_object(ps, depth + 1);
	if (c == '[')
		return parse_array(ps, depth + 1);
	if (c == '"')
		return json_string(&ps->in, ps->out);
	if (c == '-' || (c >= '0' && c <= '9'))
		return json_number(&ps->in, ps->out);
	if (c == 't')
		return parse_literal(ps, "true");
	if (c == 'f')
		return parse_literal(ps, "false");
	if (c == 'n')
		return parse_literal(ps, "null");
	return RC_INVALID;
}

/* --- texts ------------------------------------------------------------- */

/* Those that are read whole, and those whose value is being read. */
static size_t
most_members(size_t len)
{
	return len / MEMBER_MIN + LIMIT_JSON_DEPTH;
}

/* The text, its members, and the canonical form. */
size_t
json_cost(size_t len)
{
	return len > LIMIT_JSON
	    ? 0
	    : 2 * len + most_members(len) * sizeof(struct json_member);
}

void
json_free(struct json *json)
{
	if (json == NULL)
		return;
	buf_free(&json->text);
	free(json->member);
	free(json);
}

static enum rc
json_parse(struct json *json, const void *text, size_t len)
{
	struct parser ps = { .out = &json->text };
	enum rc rc;

	ps.cap = (uint32_t)most_members(len);
	json->member = reallocarray(NULL, ps.cap, sizeof(*json->member));
	if (json->member == NULL || buf_reserve(&json->text, len) != RC_OK)
		return RC_NOMEM;
	ps.member = json->member;
	ps.in.p = text;
	ps.in.end = ps.in.p + len;
	rc = parse_value(&ps, 0);
	if (rc == RC_OK && json_peek(&ps) != -1)
		rc = RC_INVALID;
	return rc;
}

enum json_verdict
json_read(struct json **out, const void *text, size_t len)
{
	struct json *json;
	enum rc rc;

	*out = NULL;
	if (len == 0 || len > LIMIT_JSON)
		return JSON_NOT_IJSON;
	if ((json = calloc(1, sizeof(*json))) == NULL)
		return JSON_NO_MEMORY;
	buf_init(&json->text, len);
	rc = json_parse(json, text, len);
	if (rc == RC_OK) {
		*out = json;
		return JSON_OK;
	}
	assert(rc == RC_INVALID || rc == RC_NOMEM);
	json_free(json);
	return rc == RC_INVALID ? JSON_NOT_IJSON : JSON_NO_MEMORY;
}
