/*
 * Canonical JSON bytes, or "not I-JSON".
 *
 * One pass of recursive descent writes the canonical text straight into the
 * output.  An object's members are noted on a stack as they are written, and
 * sorted when the object ends.  So the memory is the output, one copy of the
 * object being sorted, and two notes of 4 bytes for each member of the open
 * objects.  Output and stack are allocated once, for the most that the input
 * can need: unused parts cost no page, and nothing is moved.
 *
 * Invariants:
 *  1. The output is never longer than the input that was read for it.
 *  2. At the end of a value the stack of members is as high as at its start.
 *  3. Time is O(n log n) for n bytes, plus n for each level of nesting at
 *     which members were out of order or left out; levels are bounded.
 *
 * This file does not know the meaning of the values.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "json_number.h"
#include "json_pointer.h"
#include "json_string.h"
#include "json.h"

/*
 * A member of an object: the offset of its name in the output.  The rest of
 * the member is read from the output again when members are sorted, because
 * the notes are the main cost of many small members.
 */
typedef uint32_t member;
_Static_assert(LIMIT_JSON < UINT32_MAX / 2, "offsets have 32 bits");

/* The length of the shortest member with its separator: ,"":0 */
#define MEMBER_MIN 5

struct parser {
	struct json_input in;
	struct buf *out;
	member *members;
	size_t nmembers, cap;
	const struct json_pointers *ignore;
};

static enum rc parse_value(struct parser *, int depth, struct json_span);

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

/* Reads a value that is left out: it must still be well formed. */
static enum rc
parse_ignored(struct parser *ps, int depth)
{
	struct json_span none = { 0, 0, 0 };
	size_t before = ps->out->len;
	enum rc rc = parse_value(ps, depth, none);

	if (rc == RC_OK)
		buf_truncate(ps->out, before);
	return rc;
}

/* --- canonical text, read again ---------------------------------------- */

/* Returns the end of the member that begins at p; no further than end. */
static const char *
member_end(const char *p, const char *end)
{
	size_t depth = 0;

	for (p = json_string_end(p); p < end;) {
		if (*p == '"') {
			p = json_string_end(p);
			continue;
		}
		if (depth == 0 && (*p == ',' || *p == '}'))
			break;
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		p++;
	}
	return p;
}

/* Whether a member is left out.  Only its name is there, to find
 * duplicates. */
static bool
is_ignored(const char *p, const char *end)
{
	p = json_string_end(p);
	return p == end || *p != ':';
}

/* --- members in order -------------------------------------------------- */

static int
member_order(const struct parser *ps, member a, member b)
{
	return json_string_order(ps->out->data + a, ps->out->data + b);
}

/* Merges the runs [0, mid) and [mid, n) of from into to. */
static void
merge(const struct parser *ps, const member *from, size_t mid, size_t n,
    member *to)
{
	size_t i = 0, j = mid, k;

	for (k = 0; k < n; k++) {
		if (j == n ||
		    (i < mid && member_order(ps, from[i], from[j]) <= 0))
			to[k] = from[i++];
		else
			to[k] = from[j++];
	}
}

/*
 * Merge sort, from runs of one member up.  qsort(3) promises no bound on its
 * steps, and the members come from strangers.  Heapsort needs no second array,
 * but four times as long.
 */
static enum rc
sort(const struct parser *ps, member *m, size_t n)
{
	member *from = m, *to, *spare, *t;
	size_t run, i, left;

	spare = reallocarray(NULL, n, sizeof(*spare));
	if (spare == NULL)
		return RC_NOMEM;
	to = spare;
	for (run = 1; run < n; run *= 2) {
		for (i = 0; i < n; i += left) {
			left = n - i < 2 * run ? n - i : 2 * run;
			merge(ps, from + i, left < run ? left : run, left,
			    to + i);
		}
		t = from;
		from = to;
		to = t;
	}
	if (from != m)
		memcpy(m, from, n * sizeof(*m));
	free(spare);
	return RC_OK;
}

/* Writes the object that begins at start again, with its members in order and
 * without the ignored ones. */
static enum rc
rewrite(struct parser *ps, size_t start, const member *m, size_t n)
{
	size_t i, len = ps->out->len - start;
	const char *p, *end;
	enum rc rc = RC_OK;
	bool first = true;
	char *copy = malloc(len + 1);

	if (copy == NULL)
		return RC_NOMEM;
	memcpy(copy, ps->out->data + start, len + 1);
	end = copy + len;
	buf_truncate(ps->out, start + 1);
	for (i = 0; i < n && rc == RC_OK; i++) {
		p = copy + (m[i] - start);
		if (is_ignored(p, end))
			continue;
		if (!first)
			rc = buf_addc(ps->out, ',');
		first = false;
		if (rc == RC_OK)
			rc = buf_add(
			    ps->out, p, (size_t)(member_end(p, end) - p));
	}
	free(copy);
	return rc;
}

/* Sorts the members on the stack from first on, and takes them off. */
static enum rc
finish_object(struct parser *ps, size_t start, size_t first)
{
	const char *text = ps->out->data, *end = text + ps->out->len;
	member *m = ps->members + first;
	size_t i, n = ps->nmembers - first;
	bool sorted = true, whole = true;
	enum rc rc = RC_OK;

	for (i = 0; i < n; i++) {
		if (i > 0 && member_order(ps, m[i - 1], m[i]) >= 0)
			sorted = false;
		if (ps->ignore->n > 0 && is_ignored(text + m[i], end))
			whole = false;
	}
	if (!sorted) {
		rc = sort(ps, m, n);
		if (rc != RC_OK)
			return rc;
		for (i = 1; i < n; i++)
			if (member_order(ps, m[i - 1], m[i]) == 0)
				return RC_INVALID;
	}
	if (!sorted || !whole)
		rc = rewrite(ps, start, m, n);
	ps->nmembers = first;
	return rc == RC_OK ? buf_addc(ps->out, '}') : rc;
}

/* --- values ----------------------------------------------------------- */

static enum rc
parse_member(struct parser *ps, int depth, struct json_span span)
{
	const size_t start = ps->out->len;
	enum rc rc;

	if (json_peek(ps) != '"')
		return RC_INVALID;
	rc = json_string(&ps->in, ps->out);
	if (rc != RC_OK)
		return rc;
	if (!json_take(ps, ':'))
		return RC_INVALID;
	span = json_pointer_descend(ps->ignore, span, ps->out->data + start);
	if (json_pointer_ends(ps->ignore, span)) {
		rc = parse_ignored(ps, depth);
	} else {
		rc = buf_addc(ps->out, ':');
		if (rc == RC_OK)
			rc = parse_value(ps, depth, span);
	}
	if (rc != RC_OK)
		return rc;
	assert(ps->nmembers < ps->cap);
	ps->members[ps->nmembers++] = (member)start;
	return RC_OK;
}

static enum rc
parse_object(struct parser *ps, int depth, struct json_span span)
{
	size_t start = ps->out->len, first = ps->nmembers;
	enum rc rc;

	ps->in.p++;
	rc = buf_addc(ps->out, '{');
	if (json_take(ps, '}'))
		return rc == RC_OK ? buf_addc(ps->out, '}') : rc;
	while (rc == RC_OK) {
		rc = parse_member(ps, depth, span);
		if (rc != RC_OK)
			break;
		if (json_take(ps, '}'))
			return finish_object(ps, start, first);
		if (!json_take(ps, ','))
			return RC_INVALID;
		rc = buf_addc(ps->out, ',');
	}
	return rc;
}

static enum rc
parse_element(struct parser *ps, int depth, struct json_span span, bool first)
{
	enum rc rc = RC_OK;

	if (json_pointer_ends(ps->ignore, span))
		return parse_ignored(ps, depth);
	if (!first)
		rc = buf_addc(ps->out, ',');
	return rc == RC_OK ? parse_value(ps, depth, span) : rc;
}

static enum rc
parse_array(struct parser *ps, int depth, struct json_span span)
{
	size_t start = ps->out->len;
	enum rc rc;
	size_t i;

	ps->in.p++;
	rc = buf_addc(ps->out, '[');
	if (json_take(ps, ']'))
		return rc == RC_OK ? buf_addc(ps->out, ']') : rc;
	for (i = 0; rc == RC_OK; i++) {
		rc = parse_element(ps, depth,
		    json_pointer_descend_index(ps->ignore, span, i),
		    ps->out->len == start + 1);
		if (rc != RC_OK)
			break;
		if (json_take(ps, ']'))
			return buf_addc(ps->out, ']');
		if (!json_take(ps, ','))
			return RC_INVALID;
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
parse_value(struct parser *ps, int depth, struct json_span span)
{
	int c = json_peek(ps);

	if ((c == '{' || c == '[') && depth == LIMIT_JSON_DEPTH)
		return RC_INVALID;
	if (c == '{')
		return parse_object(ps, depth + 1, span);
	if (c == '[')
		return parse_array(ps, depth + 1, span);
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

/* Output and stack, and the larger one of a copy and of a second stack. */
size_t
json_cost(size_t len)
{
	return len > LIMIT_JSON
	    ? 0
	    : 2 * len + (len / MEMBER_MIN + 1) * sizeof(member);
}

enum json_verdict
json_canonical(const void *text, size_t len, const struct conf_list *ignore,
    struct buf *out)
{
	struct parser ps = { .out = out };
	struct json_pointers pointers;
	size_t before = out->len;
	enum rc rc;

	if (len == 0 || len > LIMIT_JSON)
		return JSON_NOT_IJSON;
	assert(before <= LIMIT_JSON);
	ps.cap = len / MEMBER_MIN + 1;
	ps.members = reallocarray(NULL, ps.cap, sizeof(*ps.members));
	ps.in.p = text;
	ps.in.end = ps.in.p + len;
	ps.ignore = &pointers;
	rc = json_pointer_init(&pointers, ignore);
	if (rc == RC_OK &&
	    (ps.members == NULL || buf_reserve(out, len) != RC_OK))
		rc = RC_NOMEM;
	if (rc == RC_OK)
		rc = parse_value(&ps, 0, json_pointer_all(&pointers));
	if (rc == RC_OK && json_peek(&ps) != -1)
		rc = RC_INVALID;
	if (rc == RC_OK)
		assert(out->len - before <= len && ps.nmembers == 0);
	else
		buf_truncate(out, before);
	json_pointer_free(&pointers);
	free(ps.members);
	if (rc == RC_INVALID)
		return JSON_NOT_IJSON;
	return rc == RC_OK ? JSON_OK : JSON_NO_MEMORY;
}
