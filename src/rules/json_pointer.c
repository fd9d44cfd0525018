/*
 * What is made of a JSON text that was read: its canonical form, without what
 * pointers name, and the key that a pointer names.
 *
 * Each value is written once, at its place in the output.  A member's value can
 * be written only after the members before it, so the writer goes to and fro
 * in the text; where an object ends is known when all its members are written.
 *
 * All pointers are followed at once.  A pointer is kept as its reference
 * tokens, each followed by NUL.  A token cannot hold NUL (a name in a text
 * can).  So the order of the bytes is the order of the tokens, and pointers
 * that begin alike stand side by side.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "conf_value.h"
#include "json.h"
#include "json_text.h"

struct pointer {
	const char *tokens; /* unescaped, each followed by NUL */
	size_t len;
};

/* The pointers that begin with the path of the current value: [lo, hi).  off is
 * the number of bytes of each that are used up. */
struct span {
	size_t lo, hi, off;
};

struct writer {
	const struct json *json;
	struct pointer *ignore; /* sorted */
	char *tokens;           /* those of all pointers */
	char *out;
	const char *p;       /* the rest of the text */
	uint32_t member;     /* the next member in it */
	const char *ignored; /* the last value that was left out */
};

/* --- pointers ------------------------------------------------------------- */

static int
order_pointers(const void *a, const void *b)
{
	const struct pointer *x = a, *y = b;
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
		if (*s == '~')
			*w++ = *++s == '0' ? '~' : '/';
		else
			*w++ = *s == '/' ? '\0' : *s;
	}
	*w++ = '\0';
	return w;
}

static enum rc
read_pointers(struct writer *w, const struct conf_list *list)
{
	size_t i, size = 1;
	char *to;

	for (i = 0; i < list->n; i++)
		size += strlen(list->item[i]);
	w->ignore = calloc(list->n + 1, sizeof(*w->ignore));
	w->tokens = to = malloc(size);
	if (w->ignore == NULL || w->tokens == NULL)
		return RC_NOMEM;
	for (i = 0; i < list->n; i++) {
		w->ignore[i].tokens = to;
		to = unescape(list->item[i], to);
		w->ignore[i].len = (size_t)(to - w->ignore[i].tokens);
	}
	qsort(w->ignore, list->n, sizeof(*w->ignore), order_pointers);
	return RC_OK;
}

/* Compares a canonical string and plain text, by bytes. */
static int
compare_text(const char *a, const char *text)
{
	int x, y;

	a++;
	do {
		x = json_text_byte(&a);
		y = *text != '\0' ? (unsigned char)*text++ : -1;
	} while (x == y && x != -1);
	return x - y;
}

/* The pointers of the span with name, a canonical string, as the next token.
 * No pointer of the span may end at the current value. */
static struct span
descend_pointers(const struct writer *w, struct span s, const char *name)
{
	const struct pointer *p = w->ignore;
	size_t mid, hi = s.hi;

	while (s.lo < hi) {
		mid = s.lo + (hi - s.lo) / 2;
		if (compare_text(name, p[mid].tokens + s.off) > 0)
			s.lo = mid + 1;
		else
			hi = mid;
	}
	for (; hi < s.hi; hi++)
		if (compare_text(name, p[hi].tokens + s.off) != 0)
			break;
	s.hi = hi;
	if (s.lo < s.hi)
		s.off += strlen(p[s.lo].tokens + s.off) + 1;
	return s;
}

/* --- values --------------------------------------------------------------- */

static void write_value(struct writer *, struct span);

static void
write_bytes(struct writer *w, const char *bytes, size_t n)
{
	memcpy(w->out, bytes, n);
	w->out += n;
}

static void
write_until(struct writer *w, const char *end)
{
	write_bytes(w, w->p, (size_t)(end - w->p));
	w->p = end;
}

/* Writes the value whose path is that of span, unless a pointer names it:
 * what was written from before on is then taken back. */
static void
write_unless_ignored(struct writer *w, struct span span, char *before)
{
	static const struct span none;
	const bool ignored =
	    span.lo < span.hi && w->ignore[span.lo].len == span.off;

	if (ignored)
		w->ignored = w->p;
	write_value(w, ignored ? none : span);
	if (ignored)
		w->out = before;
}

static void
write_member(struct writer *w, struct span span, bool first)
{
	char *const before = w->out;

	write_bytes(w, ",", !first);
	span = descend_pointers(w, span, w->p);
	write_until(w, json_text_end(w->p) + 1); /* the colon */
	write_unless_ignored(w, span, before);
}

static void
write_object(struct writer *w, struct span span)
{
	const struct json_member *member = w->json->member;
	uint32_t m = w->member, end_member = m;
	const char *end = w->p + 1, *start;

	write_until(w, end);
	start = w->out;
	if (*w->p != '}') {
		while ((member[m].next & JSON_LAST) == 0)
			m = member[m].next;
		do {
			m = member[m].next & ~JSON_LAST;
			w->p = w->json->text + member[m].name;
			w->member = m + 1;
			write_member(w, span, w->out == start);
			if (w->p > end) {
				end = w->p;
				end_member = w->member;
			}
		} while ((member[m].next & JSON_LAST) == 0);
		w->p = end;
		w->member = end_member;
	}
	write_until(w, w->p + 1);
}

static void
write_array(struct writer *w, struct span span)
{
	struct span element = span;
	char index[32], *before;
	const char *start;

	write_until(w, w->p + 1);
	start = w->out;
	for (size_t i = 0; *w->p != ']'; i++) {
		if (*w->p == ',')
			w->p++;
		before = w->out;
		write_bytes(w, ",", before != start);
		if (span.lo < span.hi) {
			snprintf(index, sizeof(index), "\"%zu\"", i);
			element = descend_pointers(w, span, index);
		}
		write_unless_ignored(w, element, before);
	}
	write_until(w, w->p + 1);
}

static void
write_value(struct writer *w, struct span span)
{
	const char *end = w->p;

	switch (*w->p) {
	case '{':
		write_object(w, span);
		break;
	case '[':
		write_array(w, span);
		break;
	case '"':
		write_until(w, json_text_end(w->p));
		break;
	default:
		/* strchr() finds the end of the text, too. */
		while (strchr(",]}", *end) == NULL)
			end++;
		write_until(w, end);
	}
}

/* As json_canonical(); *ignored: the last value that was left out, or NULL. */
static enum rc
write_without(const struct json *json, const struct conf_list *ignore,
    struct buf *out, const char **ignored)
{
	struct writer w = { .json = json, .p = json->text };
	enum rc rc = read_pointers(&w, ignore);

	/* No value is longer than in the text. */
	if (rc == RC_OK)
		rc = buf_reserve(out, json->len);
	if (rc == RC_OK) {
		w.out = out->data + out->len;
		write_value(&w, (struct span){ 0, ignore->n, 0 });
		buf_commit(out, (size_t)(w.out - out->data) - out->len);
	}
	*ignored = w.ignored;
	free(w.ignore);
	free(w.tokens);
	return rc;
}

enum rc
json_canonical(
    const struct json *json, const struct conf_list *ignore, struct buf *out)
{
	const char *ignored;

	return write_without(json, ignore, out, &ignored);
}

/* --- a key ---------------------------------------------------------------- */

#define DIGITS "0123456789"

static enum rc
add_string(const char *p, struct buf *out)
{
	int c;

	for (p++; out->rc == RC_OK && (c = json_text_byte(&p)) != -1;)
		buf_addc(out, (char)c);
	return out->rc;
}

/* A canonical number: 15, 1.5, or 15e1. */
static enum rc
add_integer(const char *p, struct buf *out)
{
	const size_t n = strspn(p, "-" DIGITS);
	const char *e = p + n + 1;
	unsigned long zeros = 0;

	if (p[n] == '.' || (p[n] == 'e' && *e == '-'))
		return RC_INVALID;
	if (p[n] == 'e')
		zeros = strspn(e, DIGITS) > 6 ? 1000000 : strtoul(e, NULL, 10);
	for (buf_add(out, p, n); zeros > 0 && out->rc == RC_OK; zeros--)
		buf_addc(out, '0');
	return out->rc;
}

enum rc
json_find(const struct json *json, const char *pointer, struct buf *out)
{
	char *item[] = { strdup(pointer) };
	const struct conf_list list = { item, 1 };
	const char *p = NULL;
	struct buf rest;
	enum rc rc;

	if (item[0] == NULL)
		return RC_NOMEM;
	buf_init(&rest, json->len);
	rc = write_without(json, &list, &rest, &p);
	buf_free(&rest);
	free(item[0]);
	if (rc != RC_OK)
		return rc;
	if (p == NULL)
		return RC_NOTFOUND;
	if (*p == '"')
		return add_string(p, out);
	return *p == '-' || (*p >= '0' && *p <= '9') ? add_integer(p, out)
						     : RC_INVALID;
}
