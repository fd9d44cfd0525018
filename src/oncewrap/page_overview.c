/*
 * The first page: what needs attention, health, counts, the last hour.  And the
 * tables of keys and effects, which other pages have too.
 */
#include "config.h"

#include "clock.h"
#include "spool.h"

#include "page_impl.h"
#include "page_write.h"
#include "refusals.h"

/* --- tables ------------------------------------------------------------- */

static const char *
caller(const char *scope)
{
	return scope[0] != '\0' ? scope : "(none)";
}

static void
write_more(struct page *p, const struct store_found *found)
{
	const int64_t more = found->count - (int64_t)found->n;

	if (more > 0 && found->all)
		page_html_more(&p->html, more);
	else if (more > 0)
		page_html_more_at_least(&p->html, more);
}

static void
write_key_row(struct page *p, const struct record *r)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT];

	page_write_age(p->wall - r->updated_at, age);
	page_write_cut(r->key, key, sizeof(key));
	page_write_cut(r->path, path, sizeof(path));
	page_write_cut(caller(r->scope), scope, sizeof(scope));
	page_html_key(&p->html, record_state_name(r->state), age, r->id, key,
	    path, scope, r->attempt, r->last_error);
}

enum rc
page_keys(struct page *p, const char *caption, const struct store_found *found)
{
	struct record r;
	enum rc rc;

	if (found->n == 0)
		return RC_OK;
	page_html_keys(&p->html, caption);
	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_key(p->store, found->id[i], &r, NULL);
		if (rc == RC_NOTFOUND) /* deleted since, or a bad row */
			continue;
		if (rc != RC_OK)
			return rc;
		write_key_row(p, &r);
		record_free(&r);
	}
	page_html_table_end(&p->html);
	write_more(p, found);
	return RC_OK;
}

static void
write_effect_row(struct page *p, const struct store_effect *e)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], path[PAGE_CUT], scope[PAGE_CUT],
	    topic[PAGE_CUT];

	page_write_age(p->wall - e->updated_at, age);
	page_write_cut(e->key, key, sizeof(key));
	page_write_cut(e->path, path, sizeof(path));
	page_write_cut(caller(e->scope), scope, sizeof(scope));
	page_write_cut(e->topic, topic, sizeof(topic));
	page_html_effect(&p->html, store_effect_state_name(e->state), age,
	    e->id, topic, key, path, scope, e->attempts, e->last_error);
}

enum rc
page_effects(
    struct page *p, const char *caption, const struct store_found *found)
{
	struct store_effect e;
	enum rc rc;

	if (found->n == 0)
		return RC_OK;
	page_html_effects(&p->html, caption);
	for (size_t i = 0; i < found->n; i++) {
		rc = store_browse_effect(p->store, found->id[i], &e);
		if (rc == RC_NOTFOUND)
			continue;
		if (rc != RC_OK)
			return rc;
		write_effect_row(p, &e);
		store_effect_free(&e);
	}
	page_html_table_end(&p->html);
	write_more(p, found);
	return RC_OK;
}

/* --- the page ----------------------------------------------------------- */

struct attention {
	struct page *page;
	bool none;
};

static void
attend_refusal(void *arg, const char *line)
{
	struct attention *a = arg;

	page_html_bad(&a->page->html, line);
	a->none = false;
}

static enum rc
write_attention(struct page *p)
{
	static const struct {
		enum record_state state;
		const char *caption;
	} open[] = {
		{ RECORD_UNKNOWN, "Keys whose outcome is unknown" },
		{ RECORD_DEAD_LETTER, "Keys that reconciliation gave up" },
	};
	struct store_browse b = { 0 };
	struct attention a = { p, true };
	struct store_found found;
	enum rc rc = RC_OK;

	page_html_h2(&p->html, "Needs attention");
	refusals(p->store, p->conf, attend_refusal, &a);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		b.state = open[i].state;
		if ((rc = store_browse(p->store, &b, &found)) == RC_OK)
			rc = page_keys(p, open[i].caption, &found);
		if (rc != RC_OK)
			return rc;
		a.none = a.none && found.n == 0;
	}
	rc = store_browse_effects(p->store, 0, &found);
	if (rc == RC_OK)
		rc = page_effects(
		    p, "Effects that could not be delivered", &found);
	if (rc == RC_OK && a.none && found.n == 0)
		page_html_p(&p->html, "Nothing does.");
	return rc;
}

static void
write_health(struct page *p)
{
	char why[512] = "";
	const bool works = store_health(p->store, why, sizeof(why)) &&
	    spool_is_usable(why, sizeof(why));

	page_html_h2(&p->html, "Health");
	if (works)
		page_html_p(&p->html, "The store works.");
	if (!works || why[0] != '\0')
		page_html_bad(&p->html, why);
}

static enum rc
write_counts(struct page *p)
{
	struct store_browse_counts counts;
	char n[PAGE_COUNT_SIZE];
	enum rc rc;

	page_html_h2(&p->html, "Keys by state");
	rc = store_browse_count(p->store, &counts);
	if (rc != RC_OK)
		return rc;
	page_html_states(&p->html);
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		const char *name = record_state_name((enum record_state)i);

		page_write_count(counts.keys[i], counts.more[i], n);
		page_html_state(&p->html, name, name, n);
	}
	page_html_states_end(&p->html);
	return RC_OK;
}

/* A store that cannot be read does not take health and counters along. */
void
page_overview(struct page *p)
{
	char why[512];
	enum rc rc;

	page_begin(p, 200, "Overview");
	page_html_h1(&p->html, "Overview");
	rc = write_attention(p);
	if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
	write_health(p);
	rc = write_counts(p);
	if (rc != RC_OK)
		page_html_bad(
		    &p->html, store_why(p->store, rc, why, sizeof(why)));
	page_html_h2(&p->html, "The last hour");
	page_hour(p);
}
