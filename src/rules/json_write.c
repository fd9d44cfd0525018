/*
 * A JSON object as text.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "utf8.h"

#include "json.h"

void
json_write_raw(struct json_write *o, const char *text)
{
	if (o->rc == RC_OK)
		o->rc = buf_adds(o->out, text);
}

/* How many bytes at s a JSON string holds unchanged (RFC 8259, section 7). */
static size_t
json_write_plain(const char *s)
{
	size_t n = 0, more;

	for (;;) {
		if ((s[n] >= ' ' && s[n] < 0x7f) && s[n] != '"' && s[n] != '\\')
			n++;
		else if ((more = utf8_length(s + n)) != 0)
			n += more;
		else
			return n;
	}
}

static void
json_write_string(struct json_write *o, const char *s)
{
	char escape[8];
	size_t n;

	json_write_raw(o, "\"");
	while (*s != '\0' && o->rc == RC_OK) {
		n = json_write_plain(s);
		o->rc = buf_add(o->out, s, n);
		s += n;
		if (*s == '\0')
			break;
		if (*s == '"' || *s == '\\')
			snprintf(escape, sizeof(escape), "\\%c", *s);
		else
			snprintf(escape, sizeof(escape), "\\u%04x",
			    (unsigned char)*s < 0x80 ? (unsigned char)*s
						     : 0xfffdU);
		s++;
		json_write_raw(o, escape);
	}
	json_write_raw(o, "\"");
}

void
json_write_name(struct json_write *o, const char *name)
{
	if (o->rc == RC_OK && o->out->len > 0 &&
	    o->out->data[o->out->len - 1] != '{')
		json_write_raw(o, ",");
	json_write_string(o, name);
	json_write_raw(o, ":");
}

void
json_write_text(struct json_write *o, const char *name, const char *value)
{
	json_write_name(o, name);
	json_write_string(o, value);
}

void
json_write_number(struct json_write *o, const char *name, int64_t value)
{
	json_write_name(o, name);
	if (o->rc == RC_OK)
		o->rc = buf_addf(o->out, "%" PRId64, value);
}

void
json_write_bool(struct json_write *o, const char *name, bool value)
{
	json_write_name(o, name);
	json_write_raw(o, value ? "true" : "false");
}
