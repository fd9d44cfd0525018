/*
 * The tables of keys and of effects.  A table has a page's rows and a link to
 * what follows, so every list goes on.
 */
#include "config.h"

#include <stdio.h>

#include "page_form.h"
#include "page_impl.h"
#include "page_write.h"

static const char *
caller(const char *scope)
{
	return scope[0] != '\0' ? scope : "(none)";
}

/* Says how many there are besides, and how far back the search went. */
static void
write_more(struct page *p, const struct store_found *found)
{
	const int64_t more = found->count - (int64_t)found->n;
	char date[PAGE_UTC_SIZE];

	if (more > 0 && found->all)
		page_html_more(&p->html, more);
	else if (more > 0)
		page_html_more_at_least(&p->html, more);
	if (found->back_to == 0)
		return;
	page_write_utc(found->back_to, date);
	page_html_back_to(&p->html, date);
}

static void
write_key_row(struct page *p, const struct record *r)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT];
	char status[12] = "none";

	page_write_age(p->wall - r->updated_at, age);
	page_write_cut(r->key, key, sizeof(key));
	page_write_cut(r->path, path, sizeof(path));
	page_write_cut(caller(r->scope), scope, sizeof(scope));
	if (r->status != 0)
		snprintf(status, sizeof(status), "%d", r->status);
	page_html_key(&p->html, record_state_name(r->state), status, age, r->id,
	    key, path, scope, r->attempt, r->last_error);
}

static enum rc
write_key_rows(struct page *p, const struct store_found *found)
{
	struct record r;
	enum rc rc;

	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_key(p->store, found->id[i], &r, NULL);
		if (rc == RC_NOTFOUND) /* deleted since, or a bad row */
			continue;
		if (rc != RC_OK)
			return rc;
		write_key_row(p, &r);
		record_free(&r);
	}
	return RC_OK;
}

enum rc
page_keys(struct page *p, const char *caption, const struct page_search *s,
    const struct store_found *found)
{
	enum rc rc = RC_OK;

	if (found->n > 0) {
		page_html_keys(&p->html, caption);
		rc = write_key_rows(p, found);
		page_html_table_end(&p->html);
	} else if (found->next[0] != '\0')
		page_html_none_yet(&p->html, caption);
	write_more(p, found);
	if (found->next[0] != '\0')
		page_html_next_keys(&p->html, s->what.data, s->as, s->state,
		    s->from.data, s->to.data, found->next);
	return rc;
}

/* --- effects ------------------------------------------------------------ */

static void
write_effect_row(struct page *p, const struct effect *e)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT],
	    topic[PAGE_CUT];

	page_write_age(p->wall - e->updated_at, age);
	page_write_cut(e->key, key, sizeof(key));
	page_write_cut(e->path, path, sizeof(path));
	page_write_cut(caller(e->scope), scope, sizeof(scope));
	page_write_cut(e->topic, topic, sizeof(topic));
	page_html_effect(&p->html, effect_state_name(e->state), age, e->id,
	    topic, key, path, scope, e->attempts, e->last_error);
}

static enum rc
write_effect_rows(struct page *p, const struct store_found *found)
{
	struct effect e;
	enum rc rc;

	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_effect(p->store, found->id[i], &e);
		if (rc == RC_NOTFOUND)
			continue;
		if (rc != RC_OK)
			return rc;
		write_effect_row(p, &e);
		effect_free(&e);
	}
	return RC_OK;
}

static enum rc
effects(struct page *p, int64_t key_id, const char *after,
    struct store_found *found)
{
	enum rc rc = store_browse_effects(p->store, key_id, after, found);

	if (rc != RC_OK)
		return rc;
	if (found->n > 0) {
		page_html_effects(&p->html,
		    key_id != 0 ? "Effects of this key"
				: "Effects that could not be delivered");
		rc = write_effect_rows(p, found);
		page_html_table_end(&p->html);
	}
	write_more(p, found);
	if (found->next[0] != '\0')
		page_html_next_effects(&p->html, key_id, found->next);
	return rc;
}

enum rc
page_effects(struct page *p, int64_t key_id, bool *any)
{
	struct store_found found;
	enum rc rc = effects(p, key_id, NULL, &found);

	*any = rc == RC_OK && found.n > 0;
	return rc;
}

void
page_more_effects(struct page *p)
{
	struct store_found found;
	struct buf after;
	char why[512];
	enum rc rc;

	buf_init(&after, STORE_PLACE);
	rc = page_form_query(p->rq, "next", &after);
	page_begin(p, 200, "Effects");
	page_html_h1(&p->html, "Effects");
	if (rc == RC_OK)
		rc = effects(p, page_id(p->rq),
		    after.len > 0 ? after.data : NULL, &found);
	if (rc == RC_OK && found.n == 0)
		page_html_p(&p->html, "There are no more.");
	else if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
	buf_free(&after);
}
