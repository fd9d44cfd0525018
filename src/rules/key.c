/*
 * Idempotency-Key field value -> key, or the error in it.
 *
 * The String and its parameters are parsed by the algorithms of RFC 9651,
 * section 4.2, which fail on the first character that does not fit: a field
 * that two programs could read differently must not become a key.  This file
 * does not know where the value came from.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "ascii.h"
#include "conf_value.h"
#include "utf8.h"

#include "key.h"

#define DIGIT   CONF_DIGITS
#define LCALPHA CONF_LOWER
#define ALPHA   CONF_LETTERS
#define LCHEX   DIGIT "abcdef"

/* The rest of the input. */
struct input {
	const char *p, *end;
};

static int
key_peek(const struct input *in)
{
	return in->p < in->end ? (unsigned char)*in->p : -1;
}

static bool
key_take(struct input *in, char c)
{
	if (in->p == in->end || *in->p != c)
		return false;
	in->p++;
	return true;
}

static bool
key_is_one_of(int c, const char *set)
{
	return c > 0 && strchr(set, c) != NULL;
}

/* Takes the characters of set that come next; returns their number. */
static size_t
take_all(struct input *in, const char *set)
{
	const char *start = in->p;

	while (key_is_one_of(key_peek(in), set))
		in->p++;
	return (size_t)(in->p - start);
}

void
key_add(struct key *key, char c)
{
	if (key->len < LIMIT_KEY)
		key->text[key->len] = c;
	key->len++;
}

/* Section 4.2.5.  out may be NULL. */
static bool
parse_string(struct input *in, struct key *out)
{
	char c;

	if (!key_take(in, '"'))
		return false;
	while (in->p < in->end) {
		c = *in->p++;
		if (c == '"')
			return true;
		if (c == '\\') {
			if (key_peek(in) != '"' && key_peek(in) != '\\')
				return false;
			c = *in->p++;
		} else if (c < 0x20 || c > 0x7e) {
			return false;
		}
		if (out != NULL)
			key_add(out, c);
	}
	return false;
}

/* Section 4.2.4; *integer: it is an Integer, not a Decimal. */
static bool
parse_number(struct input *in, bool *integer)
{
	size_t n;

	key_take(in, '-');
	n = take_all(in, DIGIT);
	*integer = !key_take(in, '.');
	if (*integer)
		return n >= 1 && n <= 15;
	if (n < 1 || n > 12)
		return false;
	n = take_all(in, DIGIT);
	return n >= 1 && n <= 3;
}

/* Section 4.2.7.  Padding may be missing, but must not be wrong. */
static bool
parse_bytes(struct input *in)
{
	size_t n, pad;

	if (!key_take(in, ':'))
		return false;
	n = take_all(in, ALPHA DIGIT "+/");
	pad = take_all(in, "=");
	if (n % 4 == 1 || (pad > 0 && (n + pad) % 4 != 0) || pad > 2)
		return false;
	return key_take(in, ':');
}

static int
key_hex_value(int c)
{
	const char *p = key_is_one_of(c, LCHEX) ? strchr(LCHEX, c) : NULL;

	return p != NULL ? (int)(p - LCHEX) : -1;
}

/* Section 4.2.10: a Display String. */
static bool
parse_display(struct input *in)
{
	unsigned char text[4]; /* the begin of a character */
	int c, high, low;
	uint32_t code;
	size_t n = 0;

	if (!key_take(in, '%') || !key_take(in, '"'))
		return false;
	while (in->p < in->end) {
		c = (unsigned char)*in->p++;
		if (c == '"')
			return n == 0;
		if (c < 0x20 || c > 0x7e)
			return false;
		if (c == '%') {
			if (in->end - in->p < 2)
				return false;
			high = key_hex_value((unsigned char)*in->p++);
			low = key_hex_value((unsigned char)*in->p++);
			if (high < 0 || low < 0)
				return false;
			c = high << 4 | low;
		}
		if (n == sizeof(text))
			return false;
		text[n++] = (unsigned char)c;
		if (utf8_read(text, n, &code) == n)
			n = 0;
	}
	return false;
}

/* Section 4.2.3.1. */
static bool
parse_bare_item(struct input *in)
{
	bool integer;
	int c = key_peek(in);

	if (c == '-' || key_is_one_of(c, DIGIT))
		return parse_number(in, &integer);
	if (c == '"')
		return parse_string(in, NULL);
	if (c == '*' || key_is_one_of(c, ALPHA))
		return take_all(in, CONF_TOKEN ":/") > 0;
	if (c == ':')
		return parse_bytes(in);
	if (c == '?') {
		key_take(in, '?');
		return key_take(in, '0') || key_take(in, '1');
	}
	if (c == '@') {
		key_take(in, '@');
		return parse_number(in, &integer) && integer;
	}
	if (c == '%')
		return parse_display(in);
	return false;
}

/* Section 4.2.3.2. */
static bool
parse_parameters(struct input *in)
{
	while (key_take(in, ';')) {
		take_all(in, " ");
		if (take_all(in, LCALPHA "*") == 0)
			return false;
		take_all(in, LCALPHA DIGIT "_-.*");
		if (key_take(in, '=') && !parse_bare_item(in))
			return false;
	}
	return true;
}

/* Checks the end after the item: a comma makes it a list. */
static enum key_verdict
parse_end(struct input *in)
{
	while (in->p < in->end && ascii_is_blank(*in->p))
		in->p++;
	if (in->p == in->end)
		return KEY_OK;
	return *in->p == ',' ? KEY_LIST : KEY_MALFORMED;
}

static enum key_verdict
parse_item(struct input *in, struct key *out)
{
	if (!parse_string(in, out) || !parse_parameters(in))
		return KEY_MALFORMED;
	return parse_end(in);
}

static enum key_verdict
parse_bare(struct input *in, struct key *out)
{
	int c;

	while ((c = key_peek(in)) > 0x20 && c < 0x7f &&
	    !key_is_one_of(c, "\",;\\")) {
		key_add(out, (char)c);
		in->p++;
	}
	return parse_end(in);
}

static enum key_verdict
key_parse_as(const char *value, enum conf_key_syntax syntax, struct key *out)
{
	struct input in = { value, value + strlen(value) };
	enum key_verdict verdict;

	while (in.p < in.end && ascii_is_blank(*in.p))
		in.p++;
	while (in.p < in.end && ascii_is_blank(in.end[-1]))
		in.end--;
	if (in.p == in.end)
		return KEY_EMPTY;
	if (*in.p == '"') {
		verdict = parse_item(&in, out);
	} else {
		verdict = parse_bare(&in, out);
		if (verdict != KEY_LIST && syntax == CONF_SYNTAX_STRING)
			verdict = KEY_NOT_STRING;
	}
	if (verdict != KEY_OK)
		return verdict;
	return out->len == 0       ? KEY_EMPTY
	    : out->len > LIMIT_KEY ? KEY_TOO_LONG
				   : KEY_OK;
}

enum key_verdict
key_read(const char *value, enum conf_key_syntax syntax, struct key *out)
{
	enum key_verdict verdict;

	out->len = 0;
	verdict = key_parse_as(value, syntax, out);
	if (verdict != KEY_OK)
		out->len = 0;
	out->text[out->len] = '\0';
	return verdict;
}

enum key_verdict
key_check_length(const struct conf_route *route, size_t len)
{
	if (len == 0)
		return KEY_EMPTY;
	if (len > route->key_max_length || len > LIMIT_KEY)
		return KEY_TOO_LONG;
	if (len < route->key_min_length)
		return KEY_TOO_SHORT;
	return KEY_OK;
}

enum key_verdict
key_check_text(const char *s, size_t len)
{
	uint32_t code;
	size_t n;

	if (len == 0)
		return KEY_EMPTY;
	for (; len > 0; s += n, len -= n) {
		n = utf8_read(s, len, &code);
		/* C0, DEL and C1 */
		if (n == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0))
			return KEY_NOT_TEXT;
	}
	return KEY_OK;
}

const char *
key_verdict_text(enum key_verdict verdict)
{
	static const char *const texts[] = { KEY_VERDICTS(WORDS_WORD) };

	return texts[verdict];
}
