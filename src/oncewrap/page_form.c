/*
 * Fields of forms.  They are few and short but for one, so each is looked for
 * by itself.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "form.h"
#include "page_form.h"

/* Where a search is. */
struct search {
	const char *name;
	struct buf *out;
	bool inside, found;
};

/* Handles all events that there are bytes for. */
static enum rc
read_events(struct form *form, struct search *s)
{
	enum rc rc = RC_OK;

	while (rc == RC_OK) {
		switch (form_next(form)) {
		case FORM_FIELD:
			s->inside = !s->found && form->is_named &&
			    strcmp(form->name.data, s->name) == 0;
			s->found = s->found || s->inside;
			break;
		case FORM_DATA:
			if (s->inside)
				rc = buf_add(s->out, form->data, form->len);
			break;
		case FORM_FIELD_END:
			s->inside = false;
			break;
		case FORM_NEED:
		case FORM_END:
			return RC_OK;
		case FORM_BAD:
			return RC_INVALID;
		case FORM_NO_MEMORY:
			return RC_NOMEM;
		}
	}
	return rc;
}

static enum rc
decode_value(struct buf *out)
{
	buf_truncate(out, form_decode(out->data, out->len));
	return memchr(out->data, '\0', out->len) != NULL ? RC_INVALID : RC_OK;
}

enum rc
page_form_query(const struct request *rq, const char *name, struct buf *out)
{
	struct search s = { name, out, false, false };
	struct form form;
	enum rc rc;

	form_init(&form, FORM_URLENCODED, NULL);
	form_feed(&form, rq->query, strlen(rq->query));
	rc = read_events(&form, &s);
	form_finish(&form);
	if (rc == RC_OK)
		rc = read_events(&form, &s);
	form_free(&form);
	return rc == RC_OK && out->len > 0 ? decode_value(out) : rc;
}

enum rc
page_form_body(const struct request *rq, const char *name, struct buf *out)
{
	const char *type = request_param(rq, "CONTENT_TYPE");
	struct search s = { name, out, false, false };
	struct body body;
	struct form form;
	enum rc rc = RC_OK;

	if (form_kind_of(type) != FORM_URLENCODED)
		return RC_INVALID;
	form_init(&form, FORM_URLENCODED, NULL);
	body_open(&body, rq);
	while (rc == RC_OK && body_next(&body)) {
		form_feed(&form, body.bytes, body.n);
		rc = read_events(&form, &s);
	}
	if (rc == RC_OK)
		rc = body.rc;
	body_close(&body);
	form_finish(&form);
	if (rc == RC_OK)
		rc = read_events(&form, &s);
	form_free(&form);
	return rc == RC_OK && out->len > 0 ? decode_value(out) : rc;
}

int64_t
page_form_number(const char *text)
{
	long long n;
	char *end;

	errno = 0;
	n = strtoll(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0'
	    ? n
	    : 0;
}
