/*
 * Which resource below admin_path, and what all pages have: the fields of the
 * answer, and the head.  The web server decides which clients may ask; no
 * program runs.
 *
 * Addresses in the pages are relative, so that they hold behind a proxy that
 * adds a prefix.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "respond.h"
#include "route.h"
#include "spool.h"
#include "page_impl.h"

#include "page.h"

/* The longest page: a key's, with all that belongs to it. */
#define PAGE_BYTES ((size_t)8 * 1024 * 1024)

/* nonce: of the style sheet in the page, the only one that the browser may use
 * (CSP, level 3, section 8.2). */
static void
add_fields(struct response *r, const char *nonce)
{
	char policy[256];

	snprintf(policy, sizeof(policy),
	    "default-src 'none'; style-src 'nonce-%s'; form-action 'self'; "
	    "frame-ancestors 'none'; base-uri 'none'",
	    nonce);
	(void)response_add(r, "Content-Type", "text/html; charset=utf-8");
	(void)response_add(r, "Content-Security-Policy", policy);
	(void)response_add(r, "X-Frame-Options", "DENY");
	(void)response_add(r, "X-Content-Type-Options", "nosniff");
	(void)response_add(r, "Referrer-Policy", "no-referrer");
	(void)response_add(r, "Cache-Control", "no-store");
}

/* Begins an answer.  What was written before is dropped. */
static void
answer_begin(struct page *p, int status, size_t max)
{
	struct response *r = &p->answer->response;

	buf_free(&p->answer->text);
	buf_init(&p->answer->text, max);
	response_free(r);
	response_init(r);
	r->status = status;
}

void
page_begin(struct page *p, int status, const char *title)
{
	/* The random part of the request's name, which no other request has. */
	const char *nonce = p->rq->instance + strlen("urn:uuid:");
	struct html *html = &p->html;

	answer_begin(p, status, PAGE_BYTES);
	if (p->rq->log != NULL)
		p->rq->log->status = status;
	add_fields(&p->answer->response, nonce);
	html->out = &p->answer->text;
	html->rc = RC_OK;
	page_html_begin(html, title, nonce);
	page_html_style(html);
	page_html_style_end(html);
	page_html_head(html);
	if (p->user[0] != '\0')
		page_html_user(
		    html, p->user, p->admin ? "may change keys" : "may read");
	page_html_main(html);
}

void
page_sentence(struct page *p, int status, const char *title, const char *text)
{
	page_begin(p, status, title);
	page_html_h1(&p->html, title);
	page_html_p(&p->html, text);
	page_html_back(&p->html);
}

void
page_not_found(struct page *p, const char *text)
{
	page_sentence(p, 404, "Not found", text);
	respond_count(p->rq, NULL, PROBLEM_NOT_FOUND, false, text);
}

void
page_store_failed(struct page *p, enum rc rc)
{
	char why[512];

	(void)store_why(p->store, rc, why, sizeof(why));
	page_sentence(p, 503, "The key store cannot be read", why);
	(void)response_add(&p->answer->response, "Retry-After", "5");
	respond_count(p->rq, NULL, PROBLEM_STORE_UNAVAILABLE, false, why);
}

static void
not_allowed(struct page *p, const char *allowed)
{
	page_sentence(p, 405, "Not allowed", "This page has no such method.");
	(void)response_add(&p->answer->response, "Allow", allowed);
	respond_count(
	    p->rq, NULL, PROBLEM_METHOD_NOT_ALLOWED, false, p->rq->method);
}

bool
page_has_read(struct page *p, enum rc rc, const char *text)
{
	if (rc == RC_NOTFOUND)
		page_not_found(p, text);
	else if (rc != RC_OK)
		page_store_failed(p, rc);
	return rc == RC_OK;
}

/* Of two values it is not known which one the web server has verified. */
static void
find_operator(struct page *p)
{
	const char *user = request_param(p->rq, "REMOTE_USER");
	const struct conf_list *admins = &p->conf->admin_users;

	p->user = "";
	if (user == NULL || request_count(p->rq, "REMOTE_USER") != 1)
		return;
	p->user = user;
	for (size_t i = 0; i < admins->n; i++)
		if (user[0] != '\0' && strcmp(admins->item[i], user) == 0)
			p->admin = true;
}

void
page_fact(struct html *html, const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		page_html_fact(html, name, value);
}

const char *
page_caller(const char *scope)
{
	return scope[0] != '\0' ? scope : "(none)";
}

const char *
page_host(const struct page *p)
{
	const char *host = request_param(p->rq, "HTTP_HOST");

	return host != NULL ? host : "";
}

/* admin_path itself: its addresses are relative to the folder. */
static void
to_folder(struct page *p)
{
	struct buf to;

	buf_init(&to, 3 * LIMIT_PATH);
	page_sentence(p, 301, "Moved", "The page is one level below.");
	if (html_query(&to, p->conf->admin_path) == RC_OK &&
	    buf_adds(&to, "/") == RC_OK)
		(void)response_add(&p->answer->response, "Location", to.data);
	buf_free(&to);
}

/* --- for programs --------------------------------------------------------- */

static void
begin_text(struct page *p, int status, const char *type)
{
	answer_begin(p, status, LIMIT_METRICS);
	(void)response_add(&p->answer->response, "Content-Type", type);
	(void)response_add(&p->answer->response, "Cache-Control", "no-store");
}

static void
add_line(struct page *p, const char *line)
{
	(void)buf_addf(&p->answer->text, "%s\n", line);
}

/* A text of one line. */
static void
text_line(struct page *p, int status, const char *line)
{
	begin_text(p, status, "text/plain; charset=utf-8");
	add_line(p, line);
}

/* If the store cannot be read, the counters of this process are still shown. */
static void
page_metrics(struct page *p)
{
	struct metrics_gauges gauges;

	(void)store_gauges(p->store, &gauges);
	begin_text(p, 200, "text/plain; version=0.0.4; charset=utf-8");
	if (metrics_text(&gauges, false, &p->answer->text) != RC_OK)
		text_line(p, 503, "no memory");
}

bool
page_is_healthy(struct store *store, char *why, size_t size)
{
	return store_health(store, why, size) && spool_is_usable(why, size);
}

static void
page_health(struct page *p)
{
	char why[512] = "";

	if (page_is_healthy(p->store, why, sizeof(why))) {
		text_line(p, 200, "ok");
		if (why[0] != '\0')
			add_line(p, why);
		page_refusals(p, add_line);
		return;
	}
	log_event(LOG_WARN, "unhealthy", NULL, LOG_S("why", why));
	text_line(p, 503, why);
}

/* --- resources ------------------------------------------------------------ */

static const struct resource {
	const char *name;
	void (*get)(struct page *);
	/* an act, which GET asks for; NULL: it has none */
	void (*post)(struct page *);
} resources[] = {
	{ "/metrics", page_metrics, NULL },
	{ "/health", page_health, NULL },
	{ "", to_folder, NULL },
	{ "/", page_overview, NULL },
	{ "/find", page_find, NULL },
	{ "/key", page_key, NULL },
	{ "/effect", page_effect, NULL },
	{ "/effects", page_more_effects, NULL },
	{ "/act", page_confirm, page_do },
	{ "/many", page_many_confirm, page_many_do },
};

/* Whether this user may change anything, and whether a form arrived whole; else
 * the page that says so was made. */
static bool
may_act(struct page *p)
{
	if (!p->admin)
		page_refuse(
		    p, "Only the users in admin_users may change anything.");
	return p->admin;
}

static bool
has_form(struct page *p)
{
	if (p->rq->body_state == BODY_TOO_LARGE)
		page_sentence(p, 413, "Too large", "The answer is too large.");
	else if (p->rq->body_state != BODY_WHOLE)
		page_sentence(
		    p, 400, "Incomplete", "The form did not arrive whole.");
	return p->rq->body_state == BODY_WHOLE;
}

static void
dispatch_page(struct page *p, bool head)
{
	const char *name = p->rq->path + strlen(p->conf->admin_path);
	const char *method = p->rq->method;
	const struct resource *resource = NULL;

	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		if (strcmp(resources[i].name, name) == 0)
			resource = &resources[i];
	if (resource == NULL)
		page_not_found(p, "There is no such page.");
	else if (head || strcmp(method, "GET") == 0) {
		if (resource->post == NULL || may_act(p))
			resource->get(p);
	} else if (resource->post != NULL && strcmp(method, "POST") == 0) {
		if (may_act(p) && has_form(p))
			resource->post(p);
	} else
		not_allowed(p,
		    resource->post != NULL ? "GET, HEAD, POST" : "GET, HEAD");
	if (p->html.out != NULL) /* a page */
		page_html_end(&p->html);
}

void
page_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	const bool head = strcmp(rq->method, "HEAD") == 0;
	struct page p = { .store = store,
		.conf = conf,
		.rq = rq,
		.answer = answer,
		.wall = clock_wall() };

	assert(route_is_admin(conf, rq->path));
	find_operator(&p);
	dispatch_page(&p, head);
	if (p.html.rc != RC_OK) {
		page_sentence(&p, 503, "No page", rc_text(p.html.rc));
		page_html_end(&p.html);
	}
	if (!head && answer->text.len > 0) {
		answer->response.body = answer->text.data;
		answer->response.body_len = answer->text.len;
	}
}
