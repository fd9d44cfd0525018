/*
 * Canonical strings: strict UTF-8, the fewest escapes (RFC 8785, section
 * 3.2.2.2), and their order.
 *
 * This file does not know where in a text a string stands.
 */
#include "config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "json_string.h"

/* RFC 7493, section 2.1: surrogates and noncharacters. */
static bool
is_forbidden(uint32_t cp)
{
	return (cp >= 0xd800 && cp <= 0xdfff) ||
	    (cp >= 0xfdd0 && cp <= 0xfdef) || (cp & 0xfffe) == 0xfffe;
}

/* Returns the length of the UTF-8 sequence at p (RFC 3629) if it is more than
 * one byte and valid, or 0. */
static size_t
utf8_sequence(const unsigned char *p, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t cp;
	size_t i, n;

	if (p[0] >= 0xf8 || p[0] < 0xc0)
		return 0;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (n > left)
		return 0;
	cp = p[0] & (0x7fU >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3fU);
	}
	if (cp < least[n] || cp > 0x10ffff || is_forbidden(cp))
		return 0;
	return n;
}

static enum rc
put_char(struct buf *out, uint32_t cp)
{
	static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";
	static const char hex[] = "0123456789abcdef";
	char s[6] = "\\u00";
	const char *p;

	if (cp < 0x80) {
		p = cp != 0 ? strchr(from, (int)cp) : NULL;
		if (p != NULL) {
			s[1] = to[p - from];
			return buf_add(out, s, 2);
		}
		if (cp >= 0x20)
			return buf_addc(out, (char)cp);
		s[4] = hex[cp >> 4];
		s[5] = hex[cp & 15];
		return buf_add(out, s, 6);
	}
	if (cp < 0x800) {
		s[0] = (char)(0xc0 | cp >> 6);
		s[1] = (char)(0x80 | (cp & 0x3f));
		return buf_add(out, s, 2);
	}
	if (cp < 0x10000) {
		s[0] = (char)(0xe0 | cp >> 12);
		s[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		s[2] = (char)(0x80 | (cp & 0x3f));
		return buf_add(out, s, 3);
	}
	s[0] = (char)(0xf0 | cp >> 18);
	s[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	s[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	s[3] = (char)(0x80 | (cp & 0x3f));
	return buf_add(out, s, 4);
}

/* The four digits after "\u". */
static bool
take_hex4(struct json_input *in, uint32_t *out)
{
	static const char hex[] = "0123456789abcdef";
	const char *p;
	int i, c;

	if (in->end - in->p < 4)
		return false;
	*out = 0;
	for (i = 0; i < 4; i++) {
		c = *in->p++;
		if (c >= 'A' && c <= 'F')
			c += 'a' - 'A';
		p = c != 0 ? strchr(hex, c) : NULL;
		if (p == NULL)
			return false;
		*out = *out << 4 | (uint32_t)(p - hex);
	}
	return true;
}

/* RFC 8259, section 7; p is behind the backslash. */
static enum rc
escape(struct json_input *in, struct buf *out)
{
	static const char from[] = "\"\\/btnfr", to[] = "\"\\/\b\t\n\f\r";
	const char *p;
	uint32_t cp, low;

	if (in->p == in->end || *in->p == '\0')
		return RC_INVALID;
	p = strchr(from, *in->p);
	if (p != NULL) {
		in->p++;
		return put_char(out, (uint32_t)to[p - from]);
	}
	if (*in->p++ != 'u' || !take_hex4(in, &cp))
		return RC_INVALID;
	if (cp >= 0xd800 && cp <= 0xdbff) {
		if (in->end - in->p < 2 || in->p[0] != '\\' || in->p[1] != 'u')
			return RC_INVALID;
		in->p += 2;
		if (!take_hex4(in, &low) || low < 0xdc00 || low > 0xdfff)
			return RC_INVALID;
		cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
	}
	if (is_forbidden(cp))
		return RC_INVALID;
	return put_char(out, cp);
}

enum rc
json_string(struct json_input *in, struct buf *out)
{
	const unsigned char *run = in->p;
	enum rc rc;
	size_t n;

	assert(in->p < in->end && *in->p == '"');
	in->p++;
	while (in->p < in->end && *in->p >= 0x20) {
		if (*in->p == '"') {
			in->p++;
			return buf_add(out, run, (size_t)(in->p - run));
		}
		if (*in->p == '\\') {
			rc = buf_add(out, run, (size_t)(in->p - run));
			in->p++;
			if (rc == RC_OK)
				rc = escape(in, out);
			if (rc != RC_OK)
				return rc;
			run = in->p;
		} else if (*in->p < 0x80) {
			in->p++;
		} else {
			n = utf8_sequence(in->p, (size_t)(in->end - in->p));
			if (n == 0)
				return RC_INVALID;
			in->p += n;
		}
	}
	return RC_INVALID;
}

/* Returns the next byte that a canonical string stands for, or -1 at its end.
 * Only ASCII is escaped there. */
static int
next_byte(const char **p)
{
	static const char from[] = "\"\\btnfr", to[] = "\"\\\b\t\n\f\r";
	const char *q;
	unsigned char c;

	c = (unsigned char)*(*p)++;
	if (c == '"')
		return -1;
	if (c != '\\')
		return c;
	c = (unsigned char)*(*p)++;
	q = strchr(from, c);
	if (q != NULL)
		return to[q - from];
	/* \u00XX; the high digit is 0 or 1 */
	assert(c == 'u');
	*p += 4;
	c = (unsigned char)(*p)[-1];
	return ((*p)[-2] - '0') * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
}

const char *
json_string_end(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

int
json_string_rank(const char **p)
{
	const int c = next_byte(p);

	/* Bytes of UTF-8 are in the order of code points.  UTF-16 uses
	 * surrogates for code points from U+10000 on (0xf0 to 0xf4), and so
	 * puts them before U+E000 to U+FFFF (0xee, 0xef). */
	if (c >= 0xf0)
		return c - 1;
	return c >= 0xee ? c + 6 : c + 1;
}

int
json_string_order(const char *a, const char *b)
{
	int x, y;

	assert(*a == '"' && *b == '"');
	a++;
	b++;
	while (*a == *b && *a != '"' && *a != '\\') {
		a++;
		b++;
	}
	do {
		x = json_string_rank(&a);
		y = json_string_rank(&b);
		if (x != y)
			return x - y;
	} while (x != 0);
	return 0;
}

int
json_string_order_text(const char *a, const char *text)
{
	int x, y;

	assert(*a == '"');
	a++;
	do {
		x = next_byte(&a);
		y = *text != '\0' ? (unsigned char)*text++ : -1;
		if (x != y)
			return x - y;
	} while (x != -1);
	return 0;
}
