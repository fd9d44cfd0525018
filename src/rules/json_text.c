/*
 * Canonical strings and numbers of a JSON text.
 *
 * A string is strict UTF-8 with the fewest escapes (RFC 8785, section 3.2.2.2).
 *
 * A number is a sign, digits D that neither begin nor end with 0, and an
 * exponent E: the value is D * 10^E.  These three are the same for every
 * spelling of a value, and the text is made of them alone, without binary
 * floating point.  E may have more digits than any integer type holds, up to
 * the length of the text.
 *
 * A string is no longer than what was read.  A number is no longer than any
 * spelling of it but d.ddde-X, which is shorter by a byte or two from some 96
 * bytes on: see json_most().
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "ascii.h"
#include "utf8.h"

#include "json_text.h"

/* --- strings ----------------------------------------------------------- */

static const char escapes[] = "\"\\btnfr", escaped[] = "\"\\\b\t\n\f\r";
static const char hex[] = "0123456789abcdef";

/* RFC 7493, section 2.1: surrogates, which utf8_read() refuses, and
 * noncharacters. */
static bool
is_noncharacter(uint32_t cp)
{
	return (cp >= 0xfdd0 && cp <= 0xfdef) || (cp & 0xfffe) == 0xfffe;
}

static void
put_ascii(struct json_text *t, char c)
{
	const char *p = c != '\0' ? strchr(escaped, c) : NULL;

	if (p != NULL)
		json_put(t, (char[]){ '\\', escapes[p - escaped] }, 2);
	else if (c >= ' ')
		json_put(t, &c, 1);
	else
		json_put(t,
		    (char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] },
		    6);
}

static void
put_char(struct json_text *t, uint32_t cp)
{
	const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	unsigned char s[4];

	if (cp < 0x80) {
		put_ascii(t, (char)cp);
		return;
	}
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		s[i] = (unsigned char)(0x80 | (cp & 0x3f));
	s[0] = (unsigned char)((0xf00U >> n & 0xff) | cp);
	json_put(t, s, n);
}

/* The four digits after "\u". */
static bool
string_hex4(struct json_text *t, uint32_t *out)
{
	int digit;

	*out = 0;
	for (int i = 0; i < 4; i++) {
		if (t->p == t->end || (digit = ascii_hex((char)*t->p++)) == -1)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}

/* RFC 8259, section 7; p is behind the backslash. */
static bool
read_escape(struct json_text *t)
{
	const char *p;
	uint32_t cp, low;

	if (t->p == t->end || *t->p == '\0')
		return false;
	if ((p = strchr(escapes, *t->p)) != NULL || *t->p == '/') {
		put_ascii(t, p != NULL ? escaped[p - escapes] : '/');
		t->p++;
		return true;
	}
	if (*t->p++ != 'u' || !string_hex4(t, &cp))
		return false;
	if (cp >= 0xd800 && cp <= 0xdbff) {
		if (t->end - t->p < 2 || t->p[0] != '\\' || t->p[1] != 'u')
			return false;
		t->p += 2;
		if (!string_hex4(t, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
	}
	if ((cp >= 0xdc00 && cp <= 0xdfff) || is_noncharacter(cp))
		return false;
	put_char(t, cp);
	return true;
}

bool
json_text_string(struct json_text *t)
{
	const unsigned char *run = t->p;
	uint32_t cp;
	size_t n;

	assert(t->p < t->end && *t->p == '"');
	for (t->p++; t->p < t->end && *t->p >= 0x20;) {
		if (*t->p == '"') {
			t->p++;
			json_put(t, run, (size_t)(t->p - run));
			return true;
		}
		if (*t->p == '\\') {
			json_put(t, run, (size_t)(t->p - run));
			t->p++;
			if (!read_escape(t))
				return false;
			run = t->p;
		} else if (*t->p < 0x80) {
			t->p++;
		} else {
			n = utf8_read(t->p, (size_t)(t->end - t->p), &cp);
			if (n == 0 || is_noncharacter(cp))
				return false;
			t->p += n;
		}
	}
	return false;
}

const char *
json_text_end(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

int
json_text_byte(const char **p)
{
	unsigned char c = (unsigned char)*(*p)++;
	const char *q;

	if (c == '"')
		return -1;
	if (c != '\\')
		return c;
	c = (unsigned char)*(*p)++;
	if ((q = strchr(escapes, c)) != NULL)
		return escaped[q - escapes];
	/* \u00XX; the high digit is 0 or 1 */
	assert(c == 'u');
	*p += 4;
	c = (unsigned char)(*p)[-1];
	return ((*p)[-2] - '0') * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The rank of the next byte in the order of UTF-16 code units; 0: the string
 * ends there. */
static int
utf16_rank(const char **p)
{
	const int c = json_text_byte(p);

	/* Bytes of UTF-8 are in the order of code points.  UTF-16 uses
	 * surrogates for code points from U+10000 on (0xf0 to 0xf4), and so
	 * puts them before U+E000 to U+FFFF (0xee, 0xef). */
	if (c >= 0xf0)
		return c - 1;
	return c >= 0xee ? c + 6 : c + 1;
}

int
json_text_order(const char *a, const char *b)
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
		x = utf16_rank(&a);
		y = utf16_rank(&b);
	} while (x == y && x != 0);
	return x - y;
}

/* --- numbers ----------------------------------------------------------- */

/* An exponent of more digits is kept as text, and always written out. */
#define EXPONENT_DIGITS 18

struct number {
	bool negative;
	/* D, without the point: n digits in all, na of them from a */
	const unsigned char *a, *b;
	size_t na, n;
	/* exponent as written */
	bool exp_negative;
	const unsigned char *exp;
	size_t nexp;
	int64_t shift; /* the exponent that the point and the zeros of D add */
};

static const unsigned char *
number_digits(struct json_text *t, size_t *n)
{
	const unsigned char *start = t->p;

	while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
		t->p++;
	*n = (size_t)(t->p - start);
	return start;
}

static bool
number_take(struct json_text *t, char c)
{
	if (t->p == t->end || *t->p != (unsigned char)c)
		return false;
	t->p++;
	return true;
}

/* RFC 8259, section 6.  nb: the number of digits after the point. */
static bool
read_number(struct json_text *t, struct number *num, size_t *nb)
{
	*nb = 0;
	*num = (struct number){ .negative = number_take(t, '-') };
	num->a = number_digits(t, &num->na);
	if (num->na == 0 || (num->na > 1 && num->a[0] == '0'))
		return false;
	num->b = num->a + num->na;
	if (number_take(t, '.')) {
		num->b = number_digits(t, nb);
		if (*nb == 0)
			return false;
	}
	if (number_take(t, 'e') || number_take(t, 'E')) {
		num->exp_negative = number_take(t, '-');
		if (!num->exp_negative)
			number_take(t, '+');
		num->exp = number_digits(t, &num->nexp);
		if (num->nexp == 0)
			return false;
	}
	return true;
}

/* Cuts the zeros off both ends of D and off the front of the exponent. */
static void
normalise(struct number *num, size_t nb)
{
	num->shift = -(int64_t)nb;
	if (num->a[0] == '0')
		for (num->na = 0; nb > 0 && *num->b == '0'; nb--)
			num->b++;
	for (; nb > 0 && num->b[nb - 1] == '0'; nb--)
		num->shift++;
	for (; nb == 0 && num->na > 0 && num->a[num->na - 1] == '0'; num->na--)
		num->shift++;
	num->n = num->na + nb;
	for (; num->nexp > 0 && *num->exp == '0'; num->nexp--)
		num->exp++;
}

/* Writes the digits from to to - 1 of D. */
static void
put_digits(
    struct json_text *t, const struct number *num, size_t from, size_t to)
{
	const size_t split = to < num->na ? to : num->na;

	if (from < split) {
		json_put(t, num->a + from, split - from);
		from = split;
	}
	if (from < to)
		json_put(t, num->b + (from - num->na), to - from);
}

/* 150, 1.5, 0.015 */
static void
put_plain(struct json_text *t, const struct number *num, int64_t e)
{
	static const char zeros[] = "000000000000000000000000";
	const int64_t point = (int64_t)num->n + e; /* digits before the point */

	/* With more zeros it would not be the shortest form. */
	assert(e < 3 && point > -(int64_t)sizeof(zeros));
	if (point <= 0) {
		json_put(t, "0.", 2);
		json_put(t, zeros, (size_t)-point);
		put_digits(t, num, 0, num->n);
	} else if (e < 0) {
		put_digits(t, num, 0, (size_t)point);
		json_put(t, ".", 1);
		put_digits(t, num, (size_t)point, num->n);
	} else {
		put_digits(t, num, 0, num->n);
		json_put(t, zeros, (size_t)e);
	}
}

static void
put_shortest(struct json_text *t, const struct number *num, int64_t e)
{
	const int64_t n = (int64_t)num->n;
	char text[24];
	int size;

	/* Most numbers; an exponent below 0 takes three bytes at least. */
	if (e < 3 && 2 - e <= n + 3) {
		put_plain(t, num, e);
		return;
	}
	size = snprintf(text, sizeof(text), "e%" PRId64, e);
	if (e < 0 && 2 - e <= n + size) {
		put_plain(t, num, e);
		return;
	}
	put_digits(t, num, 0, num->n);
	json_put(t, text, (size_t)size);
}

/* Of at most EXPONENT_DIGITS digits. */
static int64_t
exponent(const void *digits, size_t n, bool negative)
{
	int64_t e = 0;

	assert(n <= EXPONENT_DIGITS);
	for (const char *d = digits; n > 0; n--)
		e = e * 10 + (*d++ - '0');
	return negative ? -e : e;
}

/*
 * An exponent with more digits than an integer holds: shift is added to the
 * text that is written, with a digit more for the carry.  The shift is below
 * the length of the input, so the sign stays.  With so large an exponent
 * D * 10^E is the shortest form: the others save one digit at most, and cost
 * the point.
 */
static void
put_big(struct json_text *t, const struct number *num)
{
	int64_t carry = num->exp_negative ? -num->shift : num->shift, digit;
	char *const start = t->out, *first, *last;
	size_t n;

	put_digits(t, num, 0, num->n);
	json_put(t, "e-", num->exp_negative ? 2 : 1);
	first = t->out;
	json_put(t, "0", 1);
	json_put(t, num->exp, num->nexp);
	for (last = t->out - 1; carry != 0; last--) {
		assert(last >= first);
		carry += *last - '0';
		digit = (carry % 10 + 10) % 10;
		*last = (char)('0' + digit);
		carry = (carry - digit) / 10;
	}
	for (n = (size_t)(t->out - first); n > 0 && *(t->out - n) == '0';)
		n--;
	if (n <= EXPONENT_DIGITS) {
		carry = exponent(t->out - n, n, num->exp_negative);
		t->out = start;
		put_shortest(t, num, carry);
		return;
	}
	memmove(first, t->out - n, n);
	t->out = first + n;
}

bool
json_text_number(struct json_text *t)
{
	struct number num;
	size_t nb;

	if (!read_number(t, &num, &nb))
		return false;
	normalise(&num, nb);
	json_put(t, "-", num.n > 0 && num.negative);
	if (num.n == 0) /* -0 is 0, with any exponent */
		json_put(t, "0", 1);
	else if (num.nexp > EXPONENT_DIGITS)
		put_big(t, &num);
	else
		put_shortest(t, &num,
		    exponent(num.exp, num.nexp, num.exp_negative) + num.shift);
	return true;
}
