/*
 * Finding keys by key, downstream key, path and state.
 */
#include "config.h"

#include <stdio.h>

#include "page_form.h"
#include "page_impl.h"

/* The fields of the form, as the query has them. */
struct fields {
	struct buf key, downstream, path, state, before;
};

static void
fields_init(struct fields *f)
{
	buf_init(&f->key, LIMIT_KEY);
	buf_init(&f->downstream, LIMIT_KEY);
	buf_init(&f->path, LIMIT_PATH);
	buf_init(&f->state, LIMIT_KEY);
	buf_init(&f->before, LIMIT_KEY);
}

static void
fields_free(struct fields *f)
{
	buf_free(&f->key);
	buf_free(&f->downstream);
	buf_free(&f->path);
	buf_free(&f->state);
	buf_free(&f->before);
}

static enum rc
read_find_form(const struct request *rq, struct fields *f)
{
	enum rc rc = page_form_query(rq, "key", &f->key);

	if (rc == RC_OK)
		rc = page_form_query(rq, "downstream", &f->downstream);
	if (rc == RC_OK)
		rc = page_form_query(rq, "path", &f->path);
	if (rc == RC_OK)
		rc = page_form_query(rq, "state", &f->state);
	return rc == RC_OK ? page_form_query(rq, "before", &f->before) : rc;
}

static void
write_form(struct page *p, const struct fields *f, enum record_state chosen)
{
	struct html *html = &p->html;

	page_html_find(html, f->key.data, f->downstream.data, f->path.data);
	page_html_option(html, "", "any");
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		const enum record_state state = (enum record_state)i;
		const char *name = record_state_name(state);

		if (state == chosen)
			page_html_option_chosen(html, name, name);
		else
			page_html_option(html, name, name);
	}
	page_html_find_end(html);
}

static const char *
given(const struct buf *field)
{
	return field->len > 0 ? field->data : NULL;
}

static void
write_found(
    struct page *p, const struct fields *f, const struct store_browse *b)
{
	struct store_found found;
	enum rc rc;

	rc = store_browse(p->store, b, &found);
	if (rc == RC_OK)
		rc = page_keys(p, "Keys that were found", &found);
	if (rc != RC_OK) {
		page_store_failed(p, rc);
		return;
	}
	if (found.n == 0)
		page_html_p(&p->html,
		    found.all ? "There is no such key."
			      : "None of the keys looked at is such a key.");
	if (found.next > 0)
		page_html_further(&p->html, f->key.data, f->downstream.data,
		    f->path.data, f->state.data, found.next);
}

void
page_find(struct page *p)
{
	struct store_browse b = { 0 };
	struct fields f;
	enum rc rc;

	fields_init(&f);
	rc = read_find_form(p->rq, &f);
	if (rc == RC_OK && f.state.len > 0 &&
	    (!record_state_parse(f.state.data, &b.state) ||
		b.state == RECORD_NONE))
		rc = RC_INVALID;
	if (rc != RC_OK) {
		page_say(p, 400, "Find",
		    rc == RC_NOMEM ? rc_text(rc)
				   : "That is no key, path or state.");
		goto out;
	}
	b.key = given(&f.key);
	b.downstream = given(&f.downstream);
	b.path = given(&f.path);
	b.before = page_form_number(f.before.data);
	page_begin(p, 200, "Find");
	page_html_h1(&p->html, "Find keys");
	write_form(p, &f, b.state);
	if (b.key != NULL || b.downstream != NULL || b.path != NULL ||
	    b.state != RECORD_NONE || b.before > 0)
		write_found(p, &f, &b);
out:
	fields_free(&f);
}
