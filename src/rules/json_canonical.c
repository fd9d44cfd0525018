/*
 * The canonical form of a JSON text that was read.
 *
 * Each value is written once, at its place in the output.  A member's value can
 * be written only after the members before it, so the writer goes to and fro
 * in the text; where an object ends is known when all its members are written.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "json_pointer.h"
#include "json_string.h"
#include "json_impl.h"

struct writer {
	const struct json *json;
	const struct json_pointers *ignore;
	struct buf *out;
	const char *p;   /* the rest of the text */
	uint32_t member; /* the next member in it */
};

static enum rc write_value(struct writer *, struct json_span);

static enum rc
write_until(struct writer *w, const char *end)
{
	enum rc rc = buf_add(w->out, w->p, (size_t)(end - w->p));

	w->p = end;
	return rc;
}

/* Writes the value whose path is that of span, unless a pointer names it:
 * what was written from before on is then taken back. */
static enum rc
write_unless_ignored(struct writer *w, struct json_span span, size_t before)
{
	static const struct json_span none;
	enum rc rc;

	if (!json_pointer_ends(w->ignore, span))
		return write_value(w, span);
	rc = write_value(w, none);
	if (rc == RC_OK)
		buf_truncate(w->out, before);
	return rc;
}

static enum rc
write_member(struct writer *w, struct json_span span, bool first)
{
	const size_t before = w->out->len;
	enum rc rc = first ? RC_OK : buf_addc(w->out, ',');

	span = json_pointer_descend(w->ignore, span, w->p);
	if (rc == RC_OK)
		rc = write_until(w, json_string_end(w->p) + 1); /* the colon */
	return rc == RC_OK ? write_unless_ignored(w, span, before) : rc;
}

static enum rc
write_object(struct writer *w, struct json_span span)
{
	const struct json_member *member = w->json->member;
	uint32_t m = w->member, end_member = m;
	const char *end = w->p + 1;
	size_t start;
	enum rc rc;

	rc = write_until(w, end);
	start = w->out->len;
	if (*w->p == '}' || rc != RC_OK)
		return rc == RC_OK ? write_until(w, w->p + 1) : rc;
	while ((member[m].next & JSON_LAST) == 0)
		m = member[m].next;
	do {
		m = member[m].next & ~JSON_LAST;
		w->p = w->json->text.data + member[m].name;
		w->member = m + 1;
		rc = write_member(w, span, w->out->len == start);
		if (w->p > end) {
			end = w->p;
			end_member = w->member;
		}
	} while (rc == RC_OK && (member[m].next & JSON_LAST) == 0);
	w->p = end;
	w->member = end_member;
	return rc == RC_OK ? write_until(w, end + 1) : rc;
}

static enum rc
write_array(struct writer *w, struct json_span span)
{
	enum rc rc = write_until(w, w->p + 1);
	const size_t start = w->out->len;
	size_t i, before;

	for (i = 0; rc == RC_OK && *w->p != ']'; i++) {
		if (*w->p == ',')
			w->p++;
		before = w->out->len;
		if (before != start)
			rc = buf_addc(w->out, ',');
		if (rc == RC_OK)
			rc = write_unless_ignored(w,
			    json_pointer_descend_index(w->ignore, span, i),
			    before);
	}
	return rc == RC_OK ? write_until(w, w->p + 1) : rc;
}

static enum rc
write_value(struct writer *w, struct json_span span)
{
	switch (*w->p) {
	case '{':
		return write_object(w, span);
	case '[':
		return write_array(w, span);
	case '"':
		return write_until(w, json_string_end(w->p));
	default:
		return write_until(w, w->p + strcspn(w->p, ",]}"));
	}
}

enum rc
json_canonical(
    const struct json *json, const struct conf_list *ignore, struct buf *out)
{
	const size_t before = out->len;
	struct json_pointers pointers;
	struct writer w = { json, &pointers, out, json->text.data, 0 };
	enum rc rc = json_pointer_init(&pointers, ignore);

	if (rc == RC_OK)
		rc = buf_reserve(out, json->text.len);
	if (rc == RC_OK)
		rc = write_value(&w, json_pointer_all(&pointers));
	if (rc != RC_OK)
		buf_truncate(out, before);
	json_pointer_free(&pointers);
	return rc;
}
