/*
 * Lines, folds and the characters of a head.  This file knows no field.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "conf_value.h"

#include "cgihead_text.h"

bool
cgihead_text_is_token(struct cgihead_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.p[i] == '\0' || strchr(CONF_TOKEN, t.p[i]) == NULL)
			return false;
	return t.n > 0;
}

bool
cgihead_text_is_value(struct cgihead_text t)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool
cgihead_text_is(struct cgihead_text t, const char *word)
{
	return t.n == strlen(word) && strncasecmp(t.p, word, t.n) == 0;
}

struct cgihead_text
cgihead_text_trim_end(struct cgihead_text t)
{
	while (t.n > 0 && ascii_is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

struct cgihead_text
cgihead_text_trim(struct cgihead_text t)
{
	while (t.n > 0 && ascii_is_blank(t.p[0]))
		t.p++, t.n--;
	return cgihead_text_trim_end(t);
}

bool
cgihead_text_line(struct cgihead_text *rest, struct cgihead_text *line)
{
	const char *end = memchr(rest->p, '\n', rest->n);

	if (end == NULL)
		return false;
	line->p = rest->p;
	line->n = (size_t)(end - rest->p);
	rest->p = end + 1;
	rest->n -= line->n + 1;
	if (line->n > 0 && line->p[line->n - 1] == '\r')
		line->n--;
	return true;
}

bool
cgihead_text_split(struct cgihead_text line, struct cgihead_text *name,
    struct cgihead_text *value)
{
	const char *colon = memchr(line.p, ':', line.n);

	if (colon == NULL)
		return false;
	name->p = line.p;
	name->n = (size_t)(colon - line.p);
	value->p = colon + 1;
	value->n = line.n - name->n - 1;
	return true;
}

int
cgihead_text_status(struct cgihead_text t)
{
	int status = 0;

	if (t.n < 3)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		if (!ascii_is_digit(t.p[i]))
			return 0;
		status = status * 10 + (t.p[i] - '0');
	}
	return status;
}

static enum rc
join(struct buf *joined, struct cgihead_text more)
{
	enum rc rc = RC_OK;

	if (more.n > 0 && joined->len > 0)
		rc = buf_addc(joined, ' ');
	return rc == RC_OK ? buf_add(joined, more.p, more.n) : rc;
}

enum rc
cgihead_text_unfold(
    struct cgihead_text *rest, struct cgihead_text *line, struct buf *joined)
{
	struct cgihead_text more;
	enum rc rc;

	if (rest->n == 0 || !ascii_is_blank(rest->p[0]))
		return RC_OK;
	buf_clear(joined);
	rc = join(joined, cgihead_text_trim_end(*line));
	while (rc == RC_OK && rest->n > 0 && ascii_is_blank(rest->p[0]) &&
	    cgihead_text_line(rest, &more))
		rc = join(joined, cgihead_text_trim(more));
	line->p = joined->data;
	line->n = joined->len;
	return rc;
}

size_t
cgihead_text_find(const char *output, size_t len, size_t *start)
{
	struct cgihead_text rest = { output, len }, line;

	*start = 0;
	while (cgihead_text_line(&rest, &line)) {
		if (line.n > 0)
			break;
		*start = len - rest.n;
	}
	while (cgihead_text_line(&rest, &line))
		if (line.n == 0)
			return len - rest.n;
	return 0;
}
