/*
 * The tables of keys and of effects.  A table has a page's rows and a link to
 * what follows, so every list goes on.
 */
#include "config.h"

#include <stdio.h>

#include "page_impl.h"

/* What stands in a row of either table, cut. */
struct row {
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT];
};

static void
row_make(struct row *row, int64_t age, const char *key, const char *path,
    const char *scope)
{
	page_write_age(age, row->age);
	page_write_cut(key, row->key, sizeof(row->key));
	page_write_cut(path, row->path, sizeof(row->path));
	page_write_cut(page_caller(scope), row->scope, sizeof(row->scope));
}

static enum rc
write_key_row(struct page *p, int64_t id)
{
	struct record r;
	struct row row;
	char status[12] = "none";
	enum rc rc = store_browse_key(p->store, id, &r, NULL);

	if (rc != RC_OK)
		return rc;
	row_make(&row, p->wall - r.updated_at, r.key, r.path, r.scope);
	if (r.status != 0)
		snprintf(status, sizeof(status), "%d", r.status);
	page_html_key(&p->html, record_state_name(r.state), status, row.age,
	    r.id, row.key, row.path, row.scope, r.attempt, r.last_error);
	record_free(&r);
	return RC_OK;
}

static enum rc
write_effect_row(struct page *p, int64_t id)
{
	struct effect e;
	struct row row;
	char topic[PAGE_CUT];
	enum rc rc = store_browse_effect(p->store, id, &e);

	if (rc != RC_OK)
		return rc;
	row_make(&row, p->wall - e.updated_at, e.key, e.path, e.scope);
	page_write_cut(e.topic, topic, sizeof(topic));
	page_html_effect(&p->html, effect_state_name(e.state), row.age, e.id,
	    topic, row.key, row.path, row.scope, e.attempts, e.last_error);
	effect_free(&e);
	return RC_OK;
}

/* Writes the rows of a table that has begun, its end, how many there are
 * besides, and how far back the search went. */
static enum rc
write_rows(struct page *p, const struct store_found *found,
    enum rc (*write)(struct page *, int64_t id))
{
	const int64_t more = found->count - (int64_t)found->n;
	char date[PAGE_UTC_SIZE];
	enum rc rc = RC_OK;

	for (size_t i = 0; i < found->n && rc == RC_OK; i++) {
		rc = write(p, found->id[i]);
		if (rc == RC_NOTFOUND) /* deleted since, or a bad row */
			rc = RC_OK;
	}
	if (found->n > 0)
		page_html_table_end(&p->html);
	if (more > 0 && found->all)
		page_html_more(&p->html, more);
	else if (more > 0)
		page_html_more_at_least(&p->html, more);
	if (found->back_to != 0) {
		page_write_utc(found->back_to, date);
		page_html_back_to(&p->html, date);
	}
	return rc;
}

enum rc
page_keys(struct page *p, const char *caption, const struct page_search *s,
    const struct store_found *found)
{
	enum rc rc;

	if (found->n > 0)
		page_html_keys(&p->html, caption);
	else if (found->next[0] != '\0')
		page_html_none_yet(&p->html, caption);
	rc = write_rows(p, found, write_key_row);
	if (found->next[0] != '\0')
		page_html_next_keys(&p->html, s->what.data, s->as, s->state,
		    s->from, s->to, found->next);
	return rc;
}

enum rc
page_effects(struct page *p, int64_t key_id, const char *after, bool *any)
{
	struct store_found found;
	enum rc rc = store_browse_effects(p->store, key_id, after, &found);

	*any = rc == RC_OK && found.n > 0;
	if (rc != RC_OK)
		return rc;
	if (found.n > 0)
		page_html_effects(&p->html,
		    key_id != 0 ? "Effects of this key"
				: "Effects that could not be delivered");
	rc = write_rows(p, &found, write_effect_row);
	if (found.next[0] != '\0')
		page_html_next_effects(&p->html, key_id, found.next);
	return rc;
}

void
page_more_effects(struct page *p)
{
	char after[STORE_PLACE], why[512];
	bool any = false;
	enum rc rc;

	rc = page_form_text(p->rq, "next", after, sizeof(after));
	page_begin(p, 200, "Effects");
	page_html_h1(&p->html, "Effects");
	if (rc == RC_OK)
		rc = page_effects(p, page_form_number(p->rq, "id"),
		    after[0] != '\0' ? after : NULL, &any);
	if (rc == RC_OK && !any)
		page_html_p(&p->html, "There are no more.");
	else if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
}
