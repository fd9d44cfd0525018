/*
 * Looks for the key of a request in the places that key_from names.
 *
 * Each source has one value: absent, a text, or what is wrong with it.  A
 * source that is there twice is wrong, whichever of the two the program would
 * take.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "limit.h"
#include "media.h"
#include "sealed.h"
#include "key_search.h"

/* --- forms ------------------------------------------------------------- */

static bool
is_wanted(const struct key_value *v, enum conf_source_kind kind,
    const struct form *form)
{
	return v->source->kind == kind && form_has_name(form, v->source->name);
}

/* Whether a key from there must be one that was given: the form field or query
 * parameter once_key. */
static bool
must_be_given(const struct conf_source *source)
{
	return (source->kind == CONF_FROM_FORM ||
		   source->kind == CONF_FROM_QUERY) &&
	    strcmp(source->name, "once_key") == 0;
}

/* Refuses a value that ONCE_FORM_KEY never had, where it must be one. */
static void
check_form_key(const struct key_search *s, struct key_value *v)
{
	if (v->verdict == KEY_OK && s->secret != NULL &&
	    must_be_given(v->source) &&
	    !sealed_is_form_key(s->secret, v->text.data))
		key_value_refuse(v, KEY_NOT_GIVEN);
}

/* Gives the value of the current field to its sources. */
static enum rc
end_field(struct key_search *s, enum conf_source_kind kind, bool decode)
{
	enum rc rc = RC_OK;
	size_t i;

	if (decode)
		buf_truncate(
		    &s->field, form_decode(s->field.data, s->field.len));
	for (i = 0; i < s->n && rc == RC_OK; i++) {
		if (!is_wanted(&s->value[i], kind, &s->form))
			continue;
		rc = key_value_take(&s->value[i], s->field.data,
		    s->too_long ? LIMIT_KEY + 1 : s->field.len);
		if (rc == RC_OK)
			check_form_key(s, &s->value[i]);
	}
	return rc;
}

/* Reads all fields that are there by now. */
static enum rc
read_fields(
    struct key_search *s, enum conf_source_kind kind, enum form_event *last)
{
	const bool decode = s->form.kind == FORM_URLENCODED;
	enum rc rc = RC_OK;

	while (rc == RC_OK) {
		*last = form_next(&s->form);
		switch (*last) {
		case FORM_FIELD:
			buf_clear(&s->field);
			s->too_long = false;
			break;
		case FORM_DATA:
			if (!s->too_long)
				rc = buf_add(
				    &s->field, s->form.data, s->form.len);
			if (rc == RC_LIMIT) {
				s->too_long = true;
				rc = RC_OK;
			}
			break;
		case FORM_FIELD_END:
			rc = end_field(s, kind, decode);
			break;
		case FORM_NO_MEMORY:
			return RC_NOMEM;
		case FORM_NEED:
		case FORM_END:
		case FORM_BAD:
			return RC_OK;
		}
	}
	return rc;
}

static enum rc
read_query(struct key_search *s, const char *query)
{
	enum form_event event;
	enum rc rc;

	form_init(&s->form, FORM_URLENCODED, NULL);
	form_feed(&s->form, query, strlen(query));
	rc = read_fields(s, CONF_FROM_QUERY, &event);
	if (rc == RC_OK) {
		form_finish(&s->form);
		rc = read_fields(s, CONF_FROM_QUERY, &event);
	}
	form_free(&s->form);
	return rc;
}

/* --- the head ---------------------------------------------------------- */

/* A form is no JSON.  Some senders call their JSON text/plain, or nothing. */
static bool
may_be_json(const struct request *rq)
{
	const char *type = request_param(rq, "CONTENT_TYPE");

	if (rq->body_len == 0 || form_kind_of(type) != FORM_NONE)
		return false;
	if (type == NULL || *type == '\0')
		return true;
	type += strspn(type, " \t");
	return strncasecmp(type, "text/", 5) == 0 || media_is_json(type);
}

bool
key_search_suits(const struct conf_source *source, const struct request *rq)
{
	switch (source->kind) {
	case CONF_FROM_FORM:
		return form_kind_of(request_param(rq, "CONTENT_TYPE")) !=
		    FORM_NONE;
	case CONF_FROM_JSON:
		return may_be_json(rq);
	case CONF_FROM_HEADER:
	case CONF_FROM_QUERY:
	case CONF_FROM_COOKIE:
		break;
	}
	return true;
}

static enum rc
search_read_head(
    struct key_search *s, enum conf_key_syntax syntax, const struct request *rq)
{
	bool query = false;
	enum rc rc = RC_OK;
	size_t i;

	for (i = 0; i < s->n && rc == RC_OK; i++) {
		assert(s->value[i].source != NULL);
		switch (s->value[i].source->kind) {
		case CONF_FROM_HEADER:
			rc = key_value_header(&s->value[i], syntax, rq);
			break;
		case CONF_FROM_COOKIE:
			rc = key_value_cookie(&s->value[i], rq);
			break;
		case CONF_FROM_QUERY:
			query = true;
			break;
		case CONF_FROM_JSON:
			s->may_be_json = may_be_json(rq);
			break;
		case CONF_FROM_FORM:
			break;
		}
	}
	return rc == RC_OK && query ? read_query(s, rq->query) : rc;
}

enum rc
key_search_init(struct key_search *s, const struct conf_key_from *from,
    enum conf_key_syntax syntax, const struct request *rq,
    const unsigned char *secret)
{
	const char *type = request_param(rq, "CONTENT_TYPE");
	size_t i, j;
	enum rc rc;

	assert(from->n <= LIMIT_KEY_FROM);
	memset(s, 0, sizeof(*s));
	s->from = from;
	s->secret = secret;
	/* An encoded byte takes three. */
	buf_init(&s->field, (size_t)3 * LIMIT_KEY);
	form_init(&s->form, FORM_NONE, NULL);
	for (i = 0; i < from->n; i++) {
		for (j = 0; j < from->item[i].n; j++, s->n++) {
			s->value[s->n].source = &from->item[i].part[j];
			s->value[s->n].verdict = KEY_ABSENT;
			buf_init(&s->value[s->n].text, LIMIT_KEY);
		}
	}
	if ((rc = search_read_head(s, syntax, rq)) != RC_OK)
		return rc;
	s->kind = rq->body_len > 0 ? form_kind_of(type) : FORM_NONE;
	form_init(&s->form, s->kind, type);
	return RC_OK;
}

void
key_search_free(struct key_search *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		buf_free(&s->value[i].text);
	form_free(&s->form);
	buf_free(&s->field);
}

/* --- the body ---------------------------------------------------------- */

/* What a part of an alternative needs, if anything. */
static enum key_needs
part_needs(const struct key_search *s, const struct conf_source *source)
{
	if (source->kind == CONF_FROM_FORM && s->kind != FORM_NONE)
		return KEY_NEEDS_FORM;
	if (source->kind == CONF_FROM_JSON && s->may_be_json)
		return KEY_NEEDS_JSON;
	return KEY_NEEDS_NOTHING;
}

enum key_needs
key_search_needs(const struct key_search *s, bool all)
{
	const struct conf_alternative *item = s->from->item;
	const struct key_value *v = s->value;
	enum key_needs needs, part;
	bool absent;
	unsigned j;

	for (; item < s->from->item + s->from->n; item++) {
		needs = KEY_NEEDS_NOTHING;
		absent = false;
		for (j = 0; j < item->n; j++, v++) {
			part = part_needs(s, v->source);
			if (part != KEY_NEEDS_NOTHING)
				needs = part;
			else if (v->verdict == KEY_ABSENT)
				absent = true;
		}
		if (absent)
			continue;
		if (needs != KEY_NEEDS_NOTHING)
			return needs;
		if (!all)
			return KEY_NEEDS_NOTHING;
	}
	return KEY_NEEDS_NOTHING;
}

static void
refuse_all(
    struct key_search *s, enum conf_source_kind kind, enum key_verdict verdict)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->value[i].source->kind == kind)
			key_value_refuse(&s->value[i], verdict);
}

static enum rc
search_body(void *arg, const void *bytes, size_t n)
{
	struct key_search *s = arg;
	enum form_event event;

	form_feed(&s->form, bytes, n);
	return read_fields(s, CONF_FROM_FORM, &event);
}

enum rc
key_search_form(
    struct key_search *s, const struct request *rq, request_read_fn *read)
{
	enum form_event event = FORM_NEED;
	enum rc rc = read(rq, search_body, s);

	if (rc == RC_OK) {
		form_finish(&s->form);
		rc = read_fields(s, CONF_FROM_FORM, &event);
	}
	if (rc == RC_OK && event == FORM_BAD)
		refuse_all(s, CONF_FROM_FORM, KEY_BAD_FORM);
	return rc;
}

enum rc
key_search_json(struct key_search *s, const struct json *json)
{
	enum rc rc = RC_OK;
	size_t i;

	if (json == NULL) {
		refuse_all(s, CONF_FROM_JSON, KEY_BAD_JSON);
		return RC_OK;
	}
	for (i = 0; i < s->n && rc == RC_OK; i++)
		if (s->value[i].source->kind == CONF_FROM_JSON)
			rc = key_value_member(&s->value[i], json);
	return rc;
}

/* --- the result -------------------------------------------------------- */

enum key_verdict
key_search_find(const struct key_search *s, const struct conf_route *route,
    struct key *out, const struct conf_source **source)
{
	const struct conf_alternative *item = s->from->item;
	const struct key_value *v = s->value;
	enum key_verdict verdict = KEY_ABSENT;

	*source = NULL;
	out->len = 0;
	for (; item < s->from->item + s->from->n; v += item->n, item++) {
		verdict = key_value_make(v, item->n, out, source);
		if (verdict != KEY_ABSENT)
			break;
	}
	if (verdict == KEY_OK)
		verdict = key_check_length(route, out->len);
	if (verdict != KEY_OK)
		out->len = 0;
	out->text[out->len] = '\0';
	return verdict;
}

bool
key_search_has(const struct key_search *s, size_t index, const char *key)
{
	const struct key_value *v = s->value;
	const struct conf_source *source;
	struct key made;
	size_t i;

	assert(index < s->from->n);
	for (i = 0; i < index; i++)
		v += s->from->item[i].n;
	return key_value_make(v, s->from->item[index].n, &made, &source) ==
	    KEY_OK &&
	    made.len == strlen(key) && memcmp(made.text, key, made.len) == 0;
}

bool
key_search_may_have(const struct conf_source *source, const struct request *rq)
{
	switch (source->kind) {
	case CONF_FROM_HEADER:
		return request_count(rq, source->variable) > 0;
	case CONF_FROM_QUERY:
		return rq->query[0] != '\0';
	case CONF_FROM_COOKIE:
		return request_count(rq, "HTTP_COOKIE") > 0;
	case CONF_FROM_FORM:
		return form_kind_of(request_param(rq, "CONTENT_TYPE")) !=
		    FORM_NONE;
	case CONF_FROM_JSON:
		return form_kind_of(request_param(rq, "CONTENT_TYPE")) ==
		    FORM_NONE;
	}
	assert(!"a kind");
	return false;
}

const char *
key_search_kind(enum conf_source_kind kind)
{
	static const char *const names[] = {
		[CONF_FROM_HEADER] = "header field",
		[CONF_FROM_QUERY] = "query parameter",
		[CONF_FROM_FORM] = "form field",
		[CONF_FROM_JSON] = "JSON member",
		[CONF_FROM_COOKIE] = "cookie",
	};

	return names[kind];
}
