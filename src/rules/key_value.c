/*
 * The value of one source of a key.
 */
#include "config.h"

#include <string.h>

#include "buf.h"
#include "limit.h"
#include "key_search.h"

void
key_value_refuse(struct key_value *v, enum key_verdict verdict)
{
	v->verdict = verdict;
	buf_free(&v->text);
}

/* Takes a text as the value of a source. */
enum rc
key_value_take(struct key_value *v, const char *text, size_t len)
{
	enum key_verdict verdict;
	enum rc rc;

	if (v->verdict != KEY_ABSENT) {
		key_value_refuse(v, KEY_TWICE);
		return RC_OK;
	}
	if (len > LIMIT_KEY) {
		key_value_refuse(v, KEY_TOO_LONG);
		return RC_OK;
	}
	if ((verdict = key_check_text(text, len)) != KEY_OK) {
		key_value_refuse(v, verdict);
		return RC_OK;
	}
	if ((rc = buf_add(&v->text, text, len)) == RC_OK)
		v->verdict = KEY_OK;
	return rc;
}

enum rc
key_value_header(
    struct key_value *v, enum conf_key_syntax syntax, const struct request *rq)
{
	enum key_verdict verdict;
	struct key key;

	switch (request_count(rq, v->source->variable)) {
	case 0:
		return RC_OK;
	case 1:
		break;
	default:
		key_value_refuse(v, KEY_LIST);
		return RC_OK;
	}
	verdict =
	    key_read(request_param(rq, v->source->variable), syntax, &key);
	if (verdict == KEY_OK)
		return key_value_take(v, key.text, key.len);
	key_value_refuse(v, verdict);
	return RC_OK;
}

enum rc
key_value_cookie(struct key_value *v, const struct request *rq)
{
	const char *text = NULL;
	size_t len = 0;

	switch (request_cookie(rq, v->source->name, &text, &len)) {
	case 0:
		return RC_OK;
	case 1:
		return key_value_take(v, text, len);
	default:
		key_value_refuse(v, KEY_TWICE);
		return RC_OK;
	}
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

static void
add_char(struct key *out, char c)
{
	if (out->len < LIMIT_KEY)
		out->text[out->len] = c;
	out->len++;
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
			add_char(out, '%');
			add_char(out, hex[c >> 4]);
			add_char(out, hex[c & 15]);
		} else {
			add_char(out, c);
		}
	}
}

/* Makes the key of n values, those of one alternative. */
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
		add_char(out, '+');
		add_part(out, &v[1].text);
	}
	return out->len > LIMIT_KEY ? KEY_TOO_LONG : KEY_OK;
}
