/*
 * A problem as a page for people: what happened, what to do now, and the facts
 * that support wants to know.  It needs no script and loads nothing.
 *
 * Every value is written by html_value().  A template is markup, and the values
 * in it are not.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "html.h"

#include "problem.h"

/* The beginning of our own page, a template as those of operators are. */
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
    "</style>\n"
    "<title>@title@</title>\n"
    "</head>\n"
    "<body>\n"
    "<main>\n"
    "<h1>@title@</h1>\n"
    "<p><strong>@detail@</strong></p>\n"
    "<dl>\n";

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
	size_t n;

	if (v->retry_after > 0)
		snprintf(seconds, sizeof(seconds), "%d", v->retry_after);
	for (; s < end; s = at) {
		at = memchr(s, '@', (size_t)(end - s));
		if (at == NULL)
			at = end;
		if (at > s) {
			buf_add(out, s, (size_t)(at - s));
			continue;
		}
		value = find_value(s, (size_t)(end - s), v, seconds, &n);
		at = s + (value != NULL ? n : 1);
		(void)(value != NULL ? html_value(out, value)
				     : buf_addc(out, '@'));
	}
	return out->rc;
}

/* --- our own ------------------------------------------------------------ */

static void
put_facts(const struct problem_view *v, struct buf *out)
{
	char status[16], original[16], time[DATE_RFC3339_LEN + 1];
	const bool completed = v->original_status != 0;
	const struct {
		const char *name, *value; /* NULL: it is left out */
	} facts[] = {
		{ "Code", v->name },
		{ "Status", status },
		{ "Outcome", v->unknown ? "unknown" : NULL },
		{ "Original status", completed ? original : NULL },
		{ "Completed at", completed ? time : NULL },
		{ "Send again with the same key", v->retryable ? "yes" : "no" },
		{ "Safe to send with a new key",
		    v->safe_new_key ? "yes" : "no" },
		{ "Reference", v->instance },
	};

	snprintf(status, sizeof(status), "%d", v->status);
	snprintf(original, sizeof(original), "%d", v->original_status);
	/* Milliseconds are for programs. */
	snprintf(time, sizeof(time), "%.19sZ", v->completed_at);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (facts[i].value == NULL)
			continue;
		buf_addf(out, "<dt>%s</dt><dd>", facts[i].name);
		html_value(out, facts[i].value);
		buf_adds(out, "</dd>\n");
	}
}

enum rc
problem_page(const struct problem_view *v, struct buf *out)
{
	const struct problem_template page = { begin, sizeof(begin) - 1, "" };

	problem_page_fill(&page, v, out);
	put_facts(v, out);
	buf_adds(out, "</dl>\n<p>");
	html_link(out, v->link, "For programmers");
	return buf_adds(out, "</p>\n</main>\n</body>\n</html>\n");
}
