/*
 * Any bytes as the values of every template of the operator's page.  The page
 *
 *  -	has the same markup as with harmless values, so no value is markup,
 *  -	is UTF-8 without control characters but line breaks and tabs.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "page_html.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define VALUES_MAX 16

/* What makes markup, in its order. */
static void
marks(const struct buf *page, struct buf *out)
{
	for (size_t i = 0; i < page->len; i++)
		if (strchr("<>\"'", page->data[i]) != NULL)
			assert(buf_addc(out, page->data[i]) == RC_OK);
}

static void
check_text(const struct buf *page)
{
	const char *s = page->data;
	size_t n;

	assert(memchr(page->data, '\0', page->len) == NULL);
	for (; *s != '\0'; s += n) {
		n = utf8_length(s);
		if (n == 0) {
			assert((*s >= ' ' && *s < 0x7f) || *s == '\n' ||
			    *s == '\t');
			n = 1;
		}
	}
}

static void
render(const struct html_template *template, const char *text, size_t len,
    struct buf *page)
{
	union html_value values[VALUES_MAX];
	struct html html = { page, RC_OK };
	const struct html_part *p;

	assert(template->nvalues <= VALUES_MAX);
	memset(values, 0, sizeof(values));
	for (p = template->parts; p->kind != HTML_NOTHING; p++) {
		if (p->kind == HTML_NUMBER) {
			values[p->value].number = (int64_t)len;
			continue;
		}
		values[p->value].text = text;
		values[p->value].len = len;
	}
	html_render(&html, template->parts, values);
	assert(html.rc == RC_OK);
}

static void
check(const struct html_template *template, const char *text, size_t len)
{
	struct buf hostile, plain, marks_hostile, marks_plain;

	buf_init(&hostile, SIZE_MAX / 2);
	buf_init(&plain, SIZE_MAX / 2);
	buf_init(&marks_hostile, SIZE_MAX / 2);
	buf_init(&marks_plain, SIZE_MAX / 2);
	render(template, text, len, &hostile);
	render(template, "x", 1, &plain);
	check_text(&hostile);
	marks(&hostile, &marks_hostile);
	marks(&plain, &marks_plain);
	assert(strcmp(marks_hostile.data, marks_plain.data) == 0);
	buf_free(&hostile);
	buf_free(&plain);
	buf_free(&marks_hostile);
	buf_free(&marks_plain);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	assert(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < page_html_count; i++)
		check(&page_html_templates[i], text, size);
	free(text);
	return 0;
}
