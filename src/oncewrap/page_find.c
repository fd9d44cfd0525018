/*
 * The search, and the tables of keys and of effects.
 *
 * One field takes whatever a customer or a log names, and is looked for as
 * everything that it can be.  A table has a page's rows and a link to what
 * follows, so every list goes on.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "date.h"
#include "page_impl.h"

/* --- what the text can be ------------------------------------------------- */

static bool
can_be_uuid(struct page *p, const char *text)
{
	return store_instance_kind(p->store, text) != STORE_INSTANCE_NONE;
}

/* An address of IPv6 may have a zone. */
static bool
is_address(const char *text)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char bytes[16];

	if (strlen(text) >= sizeof(address))
		return false;
	snprintf(
	    address, sizeof(address), "%.*s", (int)strcspn(text, "%"), text);
	return inet_pton(AF_INET, text, bytes) == 1 ||
	    inet_pton(AF_INET6, address, bytes) == 1;
}

/* The ways to look for a text. */
enum kind { AS_KEY, AS_DOWNSTREAM, AS_REFERENCE, AS_PEER, AS_PATH, AS_ALL };

/* .as names one in links and forms. */
static const struct {
	const char *as, *caption;
} kinds[] = {
	[AS_KEY] = { "key", "Keys of that name" },
	[AS_DOWNSTREAM] = { "downstream", "The key with that downstream key" },
	[AS_REFERENCE] = { "reference", "The key with that Reference" },
	[AS_PEER] = { "peer", "Keys of requests from that address" },
	[AS_PATH] = { "path", "Keys whose path begins so" },
	[AS_ALL] = { "all", "Keys that were found" },
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Makes it a search for the text as that; false: it cannot be that. */
static bool
look_as(struct page *p, struct page_search *s, enum kind kind)
{
	const char *text = s->what.data;
	struct store_filter *f = &s->filter;

	f->key = f->downstream = f->instance = f->peer = f->path = NULL;
	f->below = kind == AS_PATH;
	s->as = kinds[kind].as;
	switch (kind) {
	case AS_KEY:
		f->key = text;
		return text[0] != '\0';
	case AS_DOWNSTREAM:
		f->downstream = text;
		return can_be_uuid(p, text);
	case AS_REFERENCE:
		f->instance = text;
		return can_be_uuid(p, text);
	case AS_PEER:
		f->peer = text;
		return is_address(text);
	case AS_PATH:
		f->path = text;
		return text[0] == '/';
	case AS_ALL:
		break;
	}
	return text[0] == '\0';
}

/* --- reading the form ----------------------------------------------------- */

void
page_search_init(struct page_search *s)
{
	memset(s, 0, sizeof(*s));
	s->as = s->state = s->why = "";
	buf_init(&s->what, LIMIT_PATH);
}

void
page_search_free(struct page_search *s)
{
	buf_free(&s->what);
}

/*
 * Reads a time of UTC, if there is one: 2026-11-20T10:00, as browsers write it,
 * or with seconds, or a space for the T; or a day.  fill is the rest of a day
 * that completes it.  Afterwards the text is as browsers read it.
 */
static bool
find_read_time(char text[PAGE_FIELD], const char *fill, int64_t *wall)
{
	char whole[PAGE_FIELD + 16];
	const size_t len = strlen(text);

	if (len == 0)
		return true;
	if (len != 10 && len != 16 && len != 19)
		return false;
	if (len == 10)
		snprintf(text + len, PAGE_FIELD - len, "%.6s", fill);
	text[10] = 'T';
	snprintf(whole, sizeof(whole), "%s%s", text, fill + strlen(text) - 10);
	return date_rfc3339(whole, wall);
}

static enum rc
read_refused(struct page_search *s, const char *why)
{
	s->why = why;
	return RC_INVALID;
}

static enum rc
read_times(struct page_search *s)
{
	struct store_filter *f = &s->filter;

	if (!find_read_time(s->from, "T00:00:00Z", &f->from))
		return read_refused(s,
		    "Made from: that is no time. Write it as 2026-11-20 "
		    "10:00, in UTC.");
	if (!find_read_time(s->to, "T23:59:59.999Z", &f->to))
		return read_refused(s,
		    "Made until: that is no time. Write it as 2026-11-20 "
		    "10:00, in UTC.");
	if (f->to != 0)
		f->to++;
	return f->to == 0 || f->to > f->from
	    ? RC_OK
	    : read_refused(
		  s, "Made until: it is before Made from. Give a later time.");
}

static enum rc
read_state(struct page_search *s, const char *name)
{
	if (name[0] == '\0')
		return RC_OK;
	if (!record_state_parse(name, &s->filter.state) ||
	    s->filter.state == RECORD_NONE)
		return read_refused(s,
		    "State: there is no such state. Choose one of the list.");
	s->state = record_state_name(s->filter.state);
	return RC_OK;
}

static enum rc
read_as(struct page *p, struct page_search *s, const char *as)
{
	if (as[0] == '\0')
		return RC_OK;
	for (size_t i = 0; i < NKINDS; i++)
		if (strcmp(kinds[i].as, as) == 0 && look_as(p, s, (enum kind)i))
			return RC_OK;
	return read_refused(
	    s, "That text cannot be looked for so. Search for it anew.");
}

enum rc
page_search_read(struct page *p, struct page_search *s)
{
	char as[PAGE_FIELD], state[PAGE_FIELD];
	const struct {
		const char *name;
		char *out;
	} fields[] = { { "from", s->from }, { "to", s->to }, { "as", as },
		{ "state", state } };
	enum rc rc = page_form_value(p->rq, "what", &s->what);

	if (rc == RC_LIMIT || rc == RC_INVALID)
		return read_refused(s,
		    "Look for: that is too long, or no text. Copy one name "
		    "alone.");
	for (size_t i = 0; i < 4 && rc == RC_OK; i++)
		rc = page_form_text(
		    p->rq, fields[i].name, fields[i].out, PAGE_FIELD);
	if (rc == RC_LIMIT || rc == RC_INVALID)
		return read_refused(s, "A field is too long. Search anew.");
	if (rc == RC_OK)
		rc = read_times(s);
	if (rc == RC_OK)
		rc = read_state(s, state);
	return rc == RC_OK ? read_as(p, s, as) : rc;
}

/* --- tables ------------------------------------------------------------- */

/* Writes what ends a row of either table. */
static void
end_row(struct page *p, const char *path, const char *scope, int64_t attempts,
    const char *error)
{
	char path_cut[PAGE_CUT], scope_cut[PAGE_CUT];

	page_write_cut(path, path_cut, sizeof(path_cut));
	page_write_cut(page_caller(scope), scope_cut, sizeof(scope_cut));
	page_html_row_end(&p->html, path_cut, scope_cut, attempts, error);
}

static enum rc
write_key_row(struct page *p, int64_t id)
{
	char status[12] = "none", age[PAGE_AGE_SIZE], key[PAGE_CUT];
	struct record r;
	enum rc rc = store_browse_key(p->store, id, &r, NULL);

	if (rc != RC_OK)
		return rc;
	page_write_age(p->wall - r.updated_at, age);
	page_write_cut(r.key, key, sizeof(key));
	if (r.status != 0)
		snprintf(status, sizeof(status), "%d", r.status);
	page_html_key(
	    &p->html, record_state_name(r.state), status, age, r.id, key);
	end_row(p, r.path, r.scope, r.attempt, r.last_error);
	record_free(&r);
	return RC_OK;
}

static enum rc
write_effect_row(struct page *p, int64_t id)
{
	char age[PAGE_AGE_SIZE], key[PAGE_CUT], topic[PAGE_CUT];
	struct effect e;
	enum rc rc = store_browse_effect(p->store, id, &e);

	if (rc != RC_OK)
		return rc;
	page_write_age(p->wall - e.updated_at, age);
	page_write_cut(e.key, key, sizeof(key));
	page_write_cut(e.topic, topic, sizeof(topic));
	page_html_effect(
	    &p->html, effect_state_name(e.state), key, age, e.id, topic);
	end_row(p, e.path, e.scope, e.attempts, e.last_error);
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
	if (more > 0)
		page_html_more(&p->html, found->all ? "" : "at least ", more);
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
		page_html_rows(&p->html, caption, "Answer", "Key");
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
		page_html_rows(&p->html,
		    key_id != 0 ? "Effects of this key"
				: "Effects that could not be delivered",
		    "Key", "Effect");
	rc = write_rows(p, &found, write_effect_row);
	if (found.next[0] != '\0')
		page_html_next_effects(&p->html, key_id, found.next);
	return rc;
}

void
page_more_effects(struct page *p)
{
	char after[STORE_POSITION], why[512];
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

/* --- the page ----------------------------------------------------------- */

static void
begin_find(struct page *p, int status, const struct page_search *s)
{
	struct html *html = &p->html;

	page_begin(p, status, "Find");
	page_html_h1(html, "Find keys");
	if (s->why[0] != '\0')
		page_html_bad(html, s->why);
	page_html_find(html, s->what.data);
	page_html_option(html, "", "any");
	for (int i = RECORD_PENDING; i < RECORD_NSTATES; i++) {
		const enum record_state state = (enum record_state)i;
		const char *name = record_state_name(state);

		if (state == s->filter.state)
			page_html_option_chosen(html, name, name);
		else
			page_html_option(html, name, name);
	}
	page_html_find_end(html, s->from, s->to);
}

/* Says what the key is to the request whose Reference was looked for. */
static enum rc
warn_of_reference(struct page *p, struct page_search *s, int64_t id)
{
	const char *warning;
	struct record r;
	enum rc rc = store_browse_key(p->store, id, &r, NULL);

	if (rc != RC_OK) /* deleted since, or a bad row */
		return rc == RC_NOTFOUND ? RC_OK : rc;
	warning = store_instance_warning(&r, s->what.data);
	if (warning != NULL)
		page_html_p(&p->html, warning);
	record_free(&r);
	return RC_OK;
}

/* Writes what is found, as the search looks for it. */
static enum rc
write_kind(struct page *p, struct page_search *s, const char *caption,
    const char *after, struct store_found *found)
{
	struct store_browse b = { .filter = s->filter, .after = after };
	enum rc rc = store_browse(p->store, &b, found);

	if (rc == RC_OK)
		rc = page_keys(p, caption, s, found);
	if (rc == RC_OK && found->n > 0 && s->filter.instance != NULL)
		rc = warn_of_reference(p, s, found->id[0]);
	if (rc == RC_OK && found->count > 0 && p->admin && after == NULL)
		rc = page_many_offer(p, s);
	return rc;
}

static const char *
why_none(struct page *p, const struct page_search *s)
{
	if (s->state[0] == '\0' && s->from[0] == '\0' && s->to[0] == '\0' &&
	    store_instance_kind(p->store, s->what.data) == STORE_INSTANCE_OURS)
		return "That Reference is of a request to this store, but its "
		       "key is not here: the request was refused before "
		       "anything ran, or its key is past its retention, or "
		       "was forgotten.";
	if (can_be_uuid(p, s->what.data))
		return "There is no such key. A Reference may also be of a "
		       "request without a key, or of another store.";
	return "There is no such key.";
}

/* s->as: only so; "": as all that it can be. */
static enum rc
write_found(struct page *p, struct page_search *s, const char *after)
{
	const char *as = s->as;
	struct store_found found;
	bool none = true;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < NKINDS && rc == RC_OK; i++) {
		if ((as[0] != '\0' && strcmp(as, kinds[i].as) != 0) ||
		    !look_as(p, s, (enum kind)i))
			continue;
		rc = write_kind(p, s, kinds[i].caption, after, &found);
		none = none && found.n == 0 && found.next[0] == '\0';
	}
	if (rc == RC_OK && none)
		page_html_p(&p->html, why_none(p, s));
	return rc;
}

static bool
is_asked(const struct page_search *s)
{
	return s->what.len > 0 || s->state[0] != '\0' || s->from[0] != '\0' ||
	    s->to[0] != '\0' || s->as[0] != '\0';
}

void
page_find(struct page *p)
{
	struct page_search s;
	char next[STORE_POSITION];
	enum rc rc;

	page_search_init(&s);
	rc = page_search_read(p, &s);
	if (rc == RC_OK)
		rc = page_form_text(p->rq, "next", next, sizeof(next));
	if (rc == RC_OK) {
		begin_find(p, 200, &s);
		if (is_asked(&s))
			rc = write_found(p, &s, next[0] != '\0' ? next : NULL);
	}
	if ((rc == RC_INVALID || rc == RC_LIMIT) && s.why[0] == '\0')
		s.why = "This link leads nowhere. Search anew.";
	if (rc == RC_INVALID || rc == RC_LIMIT)
		begin_find(p, 400, &s);
	else if (rc != RC_OK)
		page_store_failed(p, rc);
	page_search_free(&s);
}
