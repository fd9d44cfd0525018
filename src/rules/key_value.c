/*
 * The value of one source of a key.
 */
#include "config.h"

#include <string.h>

#include "buf.h"
#include "limit.h"
#include "key_search.h"

enum rc
key_value_refuse(struct key_value *v, enum key_verdict verdict)
{
	v->verdict = verdict;
	buf_free(&v->text);
	return RC_OK;
}

/* Takes a text as the value of a source. */
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
		key_add(out, '+');
		add_part(out, &v[1].text);
	}
	return out->len > LIMIT_KEY ? KEY_TOO_LONG : KEY_OK;
}
