/*
 * A problem as a page for people: what happened, what to do now, and the facts
 * that support wants to know.  It needs no script and loads nothing.
 *
 * Every text is written by html_text(), the configuration's own included.
 */
#include "config.h"

#include <stdio.h>

#include "html.h"

#include "problem_page.h"

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
		p->rc = html_text(p->out, text);
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
	char number[16];

	page_put(p, "<dl>\n");
	put_fact(p, "Code", v->name);
	snprintf(number, sizeof(number), "%d", v->status);
	put_fact(p, "Status", number);
	if (v->unknown)
		put_fact(p, "Outcome", "unknown");
	if (v->original_status != 0) {
		snprintf(number, sizeof(number), "%d", v->original_status);
		put_fact(p, "Original status", number);
		put_fact(p, "Completed at", v->completed_at);
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
	put_element(&p, "<title>", v->title, "</title>\n</head>\n<body>\n");
	put_element(&p, "<main>\n<h1>", v->title, "</h1>\n");
	if (v->detail != NULL)
		put_element(&p, "<p>", v->detail, "</p>\n");
	if (v->advice != NULL)
		put_element(&p, "<p><strong>", v->advice, "</strong></p>\n");
	put_facts(&p, v);
	page_put(&p, "<p>");
	if (p.rc == RC_OK)
		p.rc = html_link(p.out, v->link, "About idempotency keys");
	page_put(&p, "</p>\n</main>\n</body>\n</html>\n");
	return p.rc;
}
