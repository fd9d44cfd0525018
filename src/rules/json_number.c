/*
 * Canonical numbers, without binary floating point.
 *
 * A number is a sign, digits D that neither begin nor end with 0, and an
 * exponent E: the value is D * 10^E.  These three are the same for every
 * spelling of a value, and the text is made of them alone.  E may have more
 * digits than any integer type holds, up to the length of the text.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json_number.h"

/* An exponent from here on is kept as text, and always written out. */
#define EXPONENT_BIG    INT64_C(1000000000000000000)
#define EXPONENT_DIGITS 18

struct number {
	bool negative;
	/* D, without the point: n digits in all, na of them from a */
	const char *a, *b;
	size_t na, n;
	/* exponent as written */
	bool exp_negative;
	const char *exp;
	size_t nexp;
	int64_t shift; /* the exponent that the point and the zeros of D add */
};

static const char *
take_digits(struct json_input *in, size_t *n)
{
	const unsigned char *start = in->p;

	while (in->p < in->end && *in->p >= '0' && *in->p <= '9')
		in->p++;
	*n = (size_t)(in->p - start);
	return (const char *)start;
}

static bool
number_take(struct json_input *in, char c)
{
	if (in->p == in->end || *in->p != (unsigned char)c)
		return false;
	in->p++;
	return true;
}

/* RFC 8259, section 6.  nb: the number of digits after the point. */
static bool
number_read_number(struct json_input *in, struct number *num, size_t *nb)
{
	num->negative = number_take(in, '-');
	num->a = take_digits(in, &num->na);
	if (num->na == 0 || (num->na > 1 && num->a[0] == '0'))
		return false;
	num->b = num->a + num->na;
	*nb = 0;
	if (number_take(in, '.')) {
		num->b = take_digits(in, nb);
		if (*nb == 0)
			return false;
	}
	num->exp_negative = false;
	num->exp = "";
	num->nexp = 0;
	if (number_take(in, 'e') || number_take(in, 'E')) {
		num->exp_negative = number_take(in, '-');
		if (!num->exp_negative)
			number_take(in, '+');
		num->exp = take_digits(in, &num->nexp);
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
	if (num->a[0] == '0') {
		num->na = 0;
		while (nb > 0 && *num->b == '0') {
			num->b++;
			nb--;
		}
	}
	while (nb > 0 && num->b[nb - 1] == '0') {
		nb--;
		num->shift++;
	}
	while (nb == 0 && num->na > 0 && num->a[num->na - 1] == '0') {
		num->na--;
		num->shift++;
	}
	num->n = num->na + nb;
	while (num->nexp > 0 && *num->exp == '0') {
		num->exp++;
		num->nexp--;
	}
}

/* Appends the digits from to to - 1 of D. */
static enum rc
put_digits(struct buf *out, const struct number *num, size_t from, size_t to)
{
	enum rc rc = RC_OK;
	size_t end;

	if (from < num->na && from < to) {
		end = to < num->na ? to : num->na;
		rc = buf_add(out, num->a + from, end - from);
		from = end;
	}
	if (rc == RC_OK && from < to)
		rc = buf_add(out, num->b + (from - num->na), to - from);
	return rc;
}

static enum rc
put_exponent(struct buf *out, int64_t e)
{
	if (e != 0 && buf_addf(out, "e%" PRId64, e) != RC_OK)
		return RC_NOMEM;
	return RC_OK;
}

static int64_t
exponent_size(int64_t e)
{
	int64_t size = e < 0 ? 2 : 1;

	if (e == 0)
		return 0;
	for (; e != 0; e /= 10)
		size++;
	return size;
}

/* 150, 1.5, 0.015 */
static enum rc
put_plain(struct buf *out, const struct number *num, int64_t e)
{
	static const char zeros[] = "000000000000000000000000";
	int64_t point = (int64_t)num->n + e; /* digits before the point */
	enum rc rc;

	/* With more digits it would not be the shortest form. */
	assert(e < 3 && point > -(int64_t)sizeof(zeros));
	if (point <= 0) {
		rc = buf_add(out, "0.", 2);
		if (rc == RC_OK)
			rc = buf_add(out, zeros, (size_t)-point);
		if (rc == RC_OK)
			rc = put_digits(out, num, 0, num->n);
	} else if (e < 0) {
		rc = put_digits(out, num, 0, (size_t)point);
		if (rc == RC_OK)
			rc = buf_addc(out, '.');
		if (rc == RC_OK)
			rc = put_digits(out, num, (size_t)point, num->n);
	} else {
		rc = put_digits(out, num, 0, num->n);
		if (rc == RC_OK)
			rc = buf_add(out, zeros, (size_t)e);
	}
	return rc;
}

/* 1.5e-300 */
static enum rc
put_scientific(struct buf *out, const struct number *num, int64_t e)
{
	enum rc rc = put_digits(out, num, 0, 1);

	if (rc == RC_OK && num->n > 1)
		rc = buf_addc(out, '.');
	if (rc == RC_OK)
		rc = put_digits(out, num, 1, num->n);
	if (rc == RC_OK)
		rc = put_exponent(out, e);
	return rc;
}

static enum rc
number_put_number(struct buf *out, const struct number *num, int64_t e)
{
	int64_t n = (int64_t)num->n, top = e + n - 1;
	int64_t plain, integer, scientific;
	enum rc rc;

	plain = e >= 0 ? n + e : e > -n ? n + 1 : 2 - e;
	integer = n + exponent_size(e);
	scientific = n + (n > 1) + exponent_size(top);
	if (plain <= integer && plain <= scientific)
		return put_plain(out, num, e);
	if (scientific < integer)
		return put_scientific(out, num, top);
	rc = put_digits(out, num, 0, num->n);
	return rc == RC_OK ? put_exponent(out, e) : rc;
}

static int64_t
small_exponent(const char *digits, size_t n, bool negative)
{
	int64_t e = 0;
	size_t i;

	assert(n <= EXPONENT_DIGITS);
	for (i = 0; i < n; i++)
		e = e * 10 + (digits[i] - '0');
	return negative ? -e : e;
}

/*
 * An exponent with more digits than an integer holds: shift is added to the
 * text.  The shift is below the length of the input, so the sign stays.  With
 * so large an exponent D * 10^E is the shortest form: the others save one
 * digit at most, and cost the point.
 */
static enum rc
put_big(struct buf *out, const struct number *num)
{
	int64_t carry = num->exp_negative ? -num->shift : num->shift, digit;
	enum rc rc = RC_NOMEM;
	struct buf text;
	size_t i, zeros;

	assert(carry < EXPONENT_BIG && carry > -EXPONENT_BIG);
	buf_init(&text, num->nexp + 1);
	if (buf_addc(&text, '0') != RC_OK ||
	    buf_add(&text, num->exp, num->nexp) != RC_OK)
		goto out;
	for (i = text.len; carry != 0; i--) {
		assert(i > 0);
		carry += text.data[i - 1] - '0';
		digit = (carry % 10 + 10) % 10;
		text.data[i - 1] = (char)('0' + digit);
		carry = (carry - digit) / 10;
	}
	zeros = strspn(text.data, "0");
	buf_consume(&text, zeros);

	if (text.len <= EXPONENT_DIGITS) {
		rc = number_put_number(out, num,
		    small_exponent(text.data, text.len, num->exp_negative));
		goto out;
	}
	rc = put_digits(out, num, 0, num->n);
	if (rc == RC_OK)
		rc = buf_add(out, "e-", num->exp_negative ? 2 : 1);
	if (rc == RC_OK)
		rc = buf_add(out, text.data, text.len);
out:
	buf_free(&text);
	return rc;
}

enum rc
json_number(struct json_input *in, struct buf *out)
{
	struct number num;
	int64_t e;
	size_t nb;

	if (!number_read_number(in, &num, &nb))
		return RC_INVALID;
	normalise(&num, nb);
	if (num.n == 0) /* -0 is 0, with any exponent */
		return buf_addc(out, '0');
	if (num.negative && buf_addc(out, '-') != RC_OK)
		return RC_NOMEM;
	if (num.nexp > EXPONENT_DIGITS)
		return put_big(out, &num);
	e = small_exponent(num.exp, num.nexp, num.exp_negative) + num.shift;
	return number_put_number(out, &num, e);
}
