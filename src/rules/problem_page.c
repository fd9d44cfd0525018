/*
 * A problem as a page for people: what happened, what to do now, and the facts
 * that support wants to know.  It needs no script and loads nothing.
 *
 * Every text is written by html_value(), the configuration's own included.  A
 * template of the operator is markup, and the values in it are not.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "html.h"

#include "problem.h"

static const char begin[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, "
    "initial-scale=1\">\n"
    "<meta name=\"robots\" content=\"noindex\">\n"
    "<style>\n"
    ":root { color-scheme: light dark }\n"
    "body { font: 1rem/1.5 sans-serif; max-width: 40rem; margin: 2rem auto; "
    "padding: 0 1rem }\n"
    "h1 { font-size: 1.4rem }\n"
    "dl { display: grid; grid-template-columns: auto 1fr; "
    "gap: 0 1rem; font-size: .85rem }\n"
    "dd { margin: 0; overflow-wrap: anywhere }\n"
    "</style>\n";

/* A page that is being written; the first failure stays. */
struct page {
	struct buf *out;
	enum rc rc;
};

/* Markup of this file. */
static void
page_put(struct page *p, const char *markup)
{
	if (p->rc == RC_OK)
		p->rc = buf_adds(p->out, markup);
}

static void
page_put_text(struct page *p, const char *text)
{
	if (p->rc == RC_OK)
		p->rc = html_value(p->out, text);
}

static void
put_element(
    struct page *p, const char *before, const char *text, const char *after)
{
	page_put(p, before);
	page_put_text(p, text);
	page_put(p, after);
}

static void
put_fact(struct page *p, const char *name, const char *value)
{
	put_element(p, "<dt>", name, "</dt>");
	put_element(p, "<dd>", value, "</dd>\n");
}

static void
put_facts(struct page *p, const struct problem_view *v)
{
	char number[16], time[DATE_RFC3339_LEN + 1];

	page_put(p, "<dl>\n");
	put_fact(p, "Code", v->name);
	snprintf(number, sizeof(number), "%d", v->status);
	put_fact(p, "Status", number);
	if (v->unknown)
		put_fact(p, "Outcome", "unknown");
	if (v->original_status != 0) {
		snprintf(number, sizeof(number), "%d", v->original_status);
		put_fact(p, "Original status", number);
		/* Milliseconds are for programs. */
		snprintf(time, sizeof(time), "%.19sZ", v->completed_at);
		put_fact(p, "Completed at", time);
	}
	put_fact(
	    p, "Send again with the same key", v->retryable ? "yes" : "no");
	put_fact(
	    p, "Safe to send with a new key", v->safe_new_key ? "yes" : "no");
	if (v->instance != NULL)
		put_fact(p, "Reference", v->instance);
	page_put(p, "</dl>\n");
}

enum rc
problem_page(const struct problem_view *v, struct buf *out)
{
	struct page p = { out, RC_OK };

	page_put(&p, begin);
	put_element(&p, "<title>", v->headline, "</title>\n</head>\n<body>\n");
	put_element(&p, "<main>\n<h1>", v->headline, "</h1>\n");
	put_element(&p, "<p><strong>", v->advice, "</strong></p>\n");
	put_facts(&p, v);
	page_put(&p, "<p>");
	if (p.rc == RC_OK)
		p.rc = html_link(p.out, v->link, "For programmers");
	page_put(&p, "</p>\n</main>\n</body>\n</html>\n");
	return p.rc;
}

/* --- a template --------------------------------------------------------- */

/* The value whose name, with both @, stands at s; NULL: none does. */
static const char *
find_value(const char *s, size_t len, const struct problem_view *v,
    const char *seconds, size_t *name_len)
{
	const struct {
		const char *name, *value;
	} values[] = {
		{ "@title@", v->headline },
		{ "@detail@", v->advice },
		{ "@instance@", v->instance },
		{ "@key@", v->key },
		{ "@retry_after@", seconds },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		*name_len = strlen(values[i].name);
		if (*name_len <= len &&
		    memcmp(s, values[i].name, *name_len) == 0)
			return values[i].value != NULL ? values[i].value : "";
	}
	return NULL;
}

enum rc
problem_page_fill(const struct problem_template *page,
    const struct problem_view *v, struct buf *out)
{
	const char *s = page->bytes, *const end = s + page->len, *at, *value;
	char seconds[16] = "";
	enum rc rc = RC_OK;
	size_t n;

	if (v->retry_after > 0)
		snprintf(seconds, sizeof(seconds), "%d", v->retry_after);
	for (; rc == RC_OK && s < end; s = at) {
		at = memchr(s, '@', (size_t)(end - s));
		if (at == NULL)
			at = end;
		if (at > s) {
			rc = buf_add(out, s, (size_t)(at - s));
			continue;
		}
		value = find_value(s, (size_t)(end - s), v, seconds, &n);
		at = s + (value != NULL ? n : 1);
		rc =
		    value != NULL ? html_value(out, value) : buf_addc(out, '@');
	}
	return rc;
}
