/*
 * The search.  One field takes whatever a customer or a log names, and is
 * looked for as everything that it can be.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "date.h"
#include "page_form.h"
#include "page_impl.h"
#include "page_write.h"

/* --- what the text can be ------------------------------------------------- */

static bool
can_be_key(struct page *p, const char *text)
{
	(void)p;
	return text[0] != '\0';
}

static bool
can_be_uuid(struct page *p, const char *text)
{
	return store_instance_kind(p->store, text) != STORE_INSTANCE_NONE;
}

/* An address of IPv6 may have a zone. */
static bool
can_be_peer(struct page *p, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char bytes[16];

	(void)p;
	if (strlen(text) >= sizeof(address))
		return false;
	snprintf(
	    address, sizeof(address), "%.*s", (int)strcspn(text, "%"), text);
	return inet_pton(AF_INET, text, bytes) == 1 ||
	    inet_pton(AF_INET6, address, bytes) == 1;
}

static bool
can_be_path(struct page *p, const char *text)
{
	(void)p;
	return text[0] == '/';
}

static bool
can_be_any(struct page *p, const char *text)
{
	(void)p;
	return text[0] == '\0';
}

/* The ways to look for a text; .as names one in links and forms. */
static const struct kind {
	const char *as, *caption;
	bool (*can_be)(struct page *, const char *text);
} kinds[] = {
	{ "key", "Keys of that name", can_be_key },
	{ "downstream", "The key with that downstream key", can_be_uuid },
	{ "reference", "The key with that Reference", can_be_uuid },
	{ "peer", "Keys of requests from that address", can_be_peer },
	{ "path", "Keys whose path begins so", can_be_path },
	{ "all", "Keys that were found", can_be_any },
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Makes it a search for the text as that. */
static void
look_as(struct page_search *s, const struct kind *kind)
{
	const char *text = s->what.data;
	struct store_filter *f = &s->filter;

	f->key = f->downstream = f->instance = f->peer = f->path = NULL;
	s->as = kind->as;
	if (strcmp(kind->as, "key") == 0)
		f->key = text;
	else if (strcmp(kind->as, "downstream") == 0)
		f->downstream = text;
	else if (strcmp(kind->as, "reference") == 0)
		f->instance = text;
	else if (strcmp(kind->as, "peer") == 0)
		f->peer = text;
	else if (strcmp(kind->as, "path") == 0)
		f->path = text;
	f->below = f->path != NULL;
}

/* --- reading the form ----------------------------------------------------- */

void
page_search_init(struct page_search *s)
{
	memset(s, 0, sizeof(*s));
	s->as = s->state = "";
	buf_init(&s->what, LIMIT_PATH);
	buf_init(&s->from, 32);
	buf_init(&s->to, 32);
}

void
page_search_free(struct page_search *s)
{
	buf_free(&s->what);
	buf_free(&s->from);
	buf_free(&s->to);
}

/*
 * Reads a time of UTC: 2026-11-20T10:00, as browsers write it, or with seconds,
 * or a space for the T; or a day, to which minute is added.  Afterwards the
 * text is as browsers read it.  *length (ms) is that of the minute or second.
 */
static enum rc
find_read_time(
    struct buf *text, const char *minute, int64_t *wall, int64_t *length)
{
	char whole[] = "0000-00-00T00:00:00Z";
	enum rc rc;

	if (text->len == 10 && (rc = buf_adds(text, minute)) != RC_OK)
		return rc;
	if (text->len != 16 && text->len != 19)
		return RC_INVALID;
	text->data[10] = 'T';
	memcpy(whole, text->data, text->len);
	*length = text->len == 16 ? 60000 : 1000;
	return date_rfc3339(whole, wall) ? RC_OK : RC_INVALID;
}

static enum rc
read_from(struct page_search *s)
{
	int64_t length;
	enum rc rc = RC_OK;

	if (s->from.len > 0)
		rc = find_read_time(
		    &s->from, "T00:00", &s->filter.from, &length);
	if (rc == RC_INVALID)
		snprintf(s->why, sizeof(s->why),
		    "Made from: that is no time. Write it as 2026-11-20 "
		    "10:00, in UTC.");
	return rc;
}

static enum rc
read_to(struct page_search *s)
{
	struct store_filter *f = &s->filter;
	int64_t length = 0;
	enum rc rc = RC_OK;

	if (s->to.len > 0)
		rc = find_read_time(&s->to, "T23:59", &f->to, &length);
	if (rc == RC_INVALID)
		snprintf(s->why, sizeof(s->why),
		    "Made until: that is no time. Write it as 2026-11-20 "
		    "10:00, in UTC.");
	f->to += length;
	if (rc != RC_OK || f->to == 0 || f->to > f->from)
		return rc;
	snprintf(s->why, sizeof(s->why),
	    "Made until: it is before Made from. Give a later time.");
	return RC_INVALID;
}

static enum rc
read_state(struct page_search *s, const char *name)
{
	if (name[0] == '\0')
		return RC_OK;
	if (record_state_parse(name, &s->filter.state) &&
	    s->filter.state != RECORD_NONE) {
		s->state = record_state_name(s->filter.state);
		return RC_OK;
	}
	snprintf(s->why, sizeof(s->why),
	    "State: there is no such state. Choose one of the list.");
	return RC_INVALID;
}

static enum rc
read_as(struct page *p, struct page_search *s, const char *as)
{
	if (as[0] == '\0')
		return RC_OK;
	for (size_t i = 0; i < NKINDS; i++) {
		if (strcmp(kinds[i].as, as) == 0 &&
		    kinds[i].can_be(p, s->what.data)) {
			look_as(s, &kinds[i]);
			return RC_OK;
		}
	}
	snprintf(s->why, sizeof(s->why),
	    "That text cannot be looked for so. Search for it anew.");
	return RC_INVALID;
}

static enum rc
read_what(struct page_search *s, const struct request *rq, page_form_read *read)
{
	enum rc rc = read(rq, "what", &s->what);

	if (rc == RC_LIMIT || rc == RC_INVALID) {
		snprintf(s->why, sizeof(s->why),
		    "Look for: that is too long, or no text. Copy one name "
		    "alone.");
		rc = RC_INVALID;
	}
	return rc;
}

enum rc
page_search_read(struct page *p, struct page_search *s, page_form_read *read)
{
	struct buf as, state;
	enum rc rc;

	buf_init(&as, 16);
	buf_init(&state, 32);
	rc = read_what(s, p->rq, read);
	if (rc == RC_OK)
		rc = read(p->rq, "from", &s->from);
	if (rc == RC_OK)
		rc = read(p->rq, "to", &s->to);
	if (rc == RC_OK)
		rc = read(p->rq, "as", &as);
	if (rc == RC_OK)
		rc = read(p->rq, "state", &state);
	if (rc == RC_OK)
		rc = read_from(s);
	if (rc == RC_OK)
		rc = read_to(s);
	if (rc == RC_OK)
		rc = read_state(s, state.data);
	if (rc == RC_OK)
		rc = read_as(p, s, as.data);
	buf_free(&as);
	buf_free(&state);
	if (rc == RC_LIMIT)
		rc = RC_INVALID;
	if (rc == RC_INVALID && s->why[0] == '\0')
		snprintf(s->why, sizeof(s->why),
		    "A field is too long. Search anew.");
	return rc;
}

/* --- the page ----------------------------------------------------------- */

static void
write_form(struct page *p, struct page_search *s)
{
	struct html *html = &p->html;

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
	page_html_find_end(html, s->from.data, s->to.data);
}

/* Says what the key is to the request whose Reference was looked for. */
static enum rc
write_warning(struct page *p, struct page_search *s, int64_t id)
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

/* Writes what is found if the text is looked for as that. */
static enum rc
write_kind(struct page *p, struct page_search *s, const struct kind *kind,
    const char *after, struct store_found *found)
{
	struct store_browse b = { .after = after };
	enum rc rc;

	look_as(s, kind);
	b.filter = s->filter;
	rc = store_browse(p->store, &b, found);
	if (rc == RC_OK)
		rc = page_keys(p, kind->caption, s, found);
	if (rc == RC_OK && found->n > 0 && s->filter.instance != NULL)
		rc = write_warning(p, s, found->id[0]);
	if (rc == RC_OK && found->count > 0 && p->admin && after == NULL)
		rc = page_many_offer(p, s, found);
	return rc;
}

static const char *
why_none(struct page *p, const struct page_search *s)
{
	if (s->state[0] == '\0' && s->from.len == 0 && s->to.len == 0 &&
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

/* as: only so; "": as all that it can be. */
static enum rc
write_found(struct page *p, struct page_search *s, const char *after)
{
	const char *as = s->as;
	struct store_found found;
	bool none = true;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < NKINDS && rc == RC_OK; i++) {
		if (as[0] != '\0' ? strcmp(as, kinds[i].as) != 0
				  : !kinds[i].can_be(p, s->what.data))
			continue;
		rc = write_kind(p, s, &kinds[i], after, &found);
		none = none && found.n == 0 && found.next[0] == '\0';
	}
	if (rc == RC_OK && none)
		page_html_p(&p->html, why_none(p, s));
	return rc;
}

static bool
is_asked(const struct page_search *s)
{
	return s->what.len > 0 || s->state[0] != '\0' || s->from.len > 0 ||
	    s->to.len > 0 || s->as[0] != '\0';
}

/* The page of a form that cannot be answered. */
static void
refuse_form(struct page *p, struct page_search *s)
{
	page_begin(p, 400, "Find");
	page_html_h1(&p->html, "Find keys");
	page_html_bad(&p->html, s->why);
	write_form(p, s);
}

void
page_find(struct page *p)
{
	struct page_search s;
	struct buf next;
	enum rc rc;

	page_search_init(&s);
	buf_init(&next, STORE_PLACE);
	rc = page_search_read(p, &s, page_form_query);
	if (rc == RC_OK)
		rc = page_form_query(p->rq, "next", &next);
	if (rc == RC_OK) {
		page_begin(p, 200, "Find");
		page_html_h1(&p->html, "Find keys");
		write_form(p, &s);
		if (is_asked(&s))
			rc =
			    write_found(p, &s, next.len > 0 ? next.data : NULL);
	}
	if ((rc == RC_INVALID || rc == RC_LIMIT) && s.why[0] == '\0')
		snprintf(s.why, sizeof(s.why),
		    "This link leads nowhere. Search anew.");
	if (rc == RC_INVALID || rc == RC_LIMIT)
		refuse_form(p, &s);
	else if (rc != RC_OK)
		page_store_failed(p, rc);
	buf_free(&next);
	page_search_free(&s);
}
