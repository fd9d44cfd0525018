/*
 * Idempotency-Key field value -> key, or the error in it; the value of one
 * source of a key.
 *
 * The String and the names of its parameters are parsed by the algorithms of
 * RFC 9651, section 4.2, which fail on the first character that does not fit: a
 * field that two programs could read differently must not become a key.
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
key_bytes(struct input *in, const char *set)
{
	const char *start = in->p;

	while (key_is_one_of(key_peek(in), set))
		in->p++;
	return (size_t)(in->p - start);
}

/* Counts every character, and stores those that fit. */
static void
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

/*
 * Takes the value of a parameter (section 4.2.3.1).  It is ignored, so only its
 * end is found: that of a String, of a Display String, or of an item of another
 * type, all of which have these characters alone.
 */
static bool
skip_item(struct input *in)
{
	int c;

	if (key_peek(in) == '"')
		return parse_string(in, NULL);
	if (!key_take(in, '%'))
		return key_bytes(in, CONF_TOKEN ":/?@=") > 0;
	if (!key_take(in, '"'))
		return false;
	while ((c = key_peek(in)) >= 0x20 && c < 0x7f && c != '"')
		in->p++;
	return key_take(in, '"');
}

/* Section 4.2.3.2. */
static bool
parse_parameters(struct input *in)
{
	while (key_take(in, ';')) {
		key_bytes(in, " ");
		if (key_bytes(in, LCALPHA "*") == 0)
			return false;
		key_bytes(in, LCALPHA DIGIT "_-.*");
		if (key_take(in, '=') && !skip_item(in))
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

const char *
key_verdict_text(enum key_verdict verdict)
{
	static const char *const texts[] = { KEY_VERDICTS(WORDS_WORD) };

	return texts[verdict];
}

/* --- the value of one source ------------------------------------------ */

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

enum rc
key_value_refuse(struct key_value *v, enum key_verdict verdict)
{
	v->verdict = verdict;
	buf_free(&v->text);
	return RC_OK;
}

enum rc
key_value_take(struct key_value *v, const char *text, size_t len)
{
	enum key_verdict verdict;
	enum rc rc;

	if (v->verdict != KEY_ABSENT)
		return key_value_refuse(v, KEY_TWICE);
	if (len > LIMIT_KEY)
		return key_value_refuse(v, KEY_TOO_LONG);
	if ((verdict = key_check_text(text, len)) != KEY_OK)
		return key_value_refuse(v, verdict);
	if ((rc = buf_add(&v->text, text, len)) == RC_OK)
		v->verdict = KEY_OK;
	return rc;
}

enum rc
key_value_header(
    struct key_value *v, enum conf_key_syntax syntax, const struct request *rq)
{
	const char *variable = v->source->variable;
	const size_t n = request_count(rq, variable);
	enum key_verdict verdict;
	struct key key;

	if (n != 1)
		return n == 0 ? RC_OK : key_value_refuse(v, KEY_LIST);
	verdict = key_read(request_param(rq, variable), syntax, &key);
	return verdict == KEY_OK ? key_value_take(v, key.text, key.len)
				 : key_value_refuse(v, verdict);
}

enum rc
key_value_cookie(struct key_value *v, const struct request *rq)
{
	const char *text = NULL;
	size_t len = 0, n = request_cookie(rq, v->source->name, &text, &len);

	if (n != 1)
		return n == 0 ? RC_OK : key_value_refuse(v, KEY_TWICE);
	return key_value_take(v, text, len);
}

enum rc
key_value_member(struct key_value *v, const struct json *json)
{
	struct buf text;
	enum rc rc;

	buf_init(&text, LIMIT_KEY);
	rc = json_find(json, v->source->name, &text);
	if (rc == RC_OK)
		rc = key_value_take(v, text.data, text.len);
	else if (rc == RC_INVALID || rc == RC_LIMIT)
		key_value_refuse(
		    v, rc == RC_LIMIT ? KEY_TOO_LONG : KEY_NOT_A_KEY);
	buf_free(&text);
	return rc == RC_NOMEM ? rc : RC_OK;
}

/* Adds a part of a pair: no part has a '+' of its own. */
static void
add_part(struct key *out, const struct buf *text)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t i;
	char c;

	for (i = 0; i < text->len; i++) {
		c = text->data[i];
		if (c == '%' || c == '+') {
			key_add(out, '%');
			key_add(out, hex[c >> 4]);
			key_add(out, hex[c & 15]);
		} else {
			key_add(out, c);
		}
	}
}

enum key_verdict
key_value_make(const struct key_value *v, unsigned n, struct key *out,
    const struct conf_source **source)
{
	unsigned j;

	out->len = 0;
	*source = n == 1 ? v->source : NULL;
	for (j = 0; j < n; j++)
		if (v[j].verdict == KEY_ABSENT)
			return KEY_ABSENT;
	for (j = 0; j < n; j++) {
		*source = v[j].source;
		if (v[j].verdict != KEY_OK)
			return v[j].verdict;
	}
	if (n == 1) {
		memcpy(out->text, v->text.data, v->text.len);
		out->len = v->text.len;
	} else {
		*source = NULL;
		add_part(out, &v[0].text);
		key_add(out, '+');
		add_part(out, &v[1].text);
	}
	return out->len > LIMIT_KEY ? KEY_TOO_LONG : KEY_OK;
}
