/*
 * Metrics and health, in one table of names; the rest is the operator's page.
 * Nothing here runs a program, and no program answers.
 *
 * The web server decides which clients may ask.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "limit.h"
#include "log.h"
#include "metrics.h"
#include "page.h"
#include "respond.h"
#include "route.h"
#include "spool.h"
#include "admin.h"

#define TEXT "text/plain; charset=utf-8"

/* Makes a response without a body; text is the body for a GET. */
static void
admin_begin(struct answer *answer, int status, const char *type)
{
	buf_free(&answer->text);
	buf_init(&answer->text, LIMIT_METRICS);
	answer->response.status = status;
	(void)response_add(&answer->response, "Content-Type", type);
	(void)response_add(&answer->response, "Cache-Control", "no-store");
}

static void
say(struct answer *answer, int status, const char *text)
{
	admin_begin(answer, status, TEXT);
	(void)buf_addf(&answer->text, "%s\n", text);
}

/* If the store cannot be read, the counters of this process are still shown. */
static void
metrics(struct store *store, const struct conf *conf, struct answer *answer)
{
	struct metrics_gauges gauges;

	(void)conf;
	(void)store_gauges(store, &gauges);
	admin_begin(answer, 200, "text/plain; version=0.0.4; charset=utf-8");
	if (metrics_text(&gauges, false, &answer->text) == RC_OK)
		return;
	response_free(&answer->response);
	response_init(&answer->response);
	say(answer, 503, "no memory");
}

static void
add_line(void *answer, const char *line)
{
	(void)buf_addf(&((struct answer *)answer)->text, "%s\n", line);
}

static void
health(struct store *store, const struct conf *conf, struct answer *answer)
{
	char why[512] = "";

	if (store_health(store, why, sizeof(why)) &&
	    spool_is_usable(why, sizeof(why))) {
		say(answer, 200, "ok");
		if (why[0] != '\0')
			add_line(answer, why);
		page_refusals(store, conf, add_line, answer);
		return;
	}
	log_event(LOG_WARN, "unhealthy", NULL, LOG_S("why", why));
	say(answer, 503, why);
}

static const struct resource {
	const char *name;
	void (*get)(struct store *, const struct conf *, struct answer *);
} resources[] = {
	{ "/metrics", metrics },
	{ "/health", health },
};

void
admin_handle(struct store *store, const struct conf *conf,
    const struct request *rq, struct answer *answer)
{
	const struct resource *resource = NULL;
	bool head = strcmp(rq->method, "HEAD") == 0;
	const char *name;
	size_t i;

	assert(route_is_admin(conf, rq->path));
	name = rq->path + strlen(conf->admin_path);
	for (i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		if (strcmp(resources[i].name, name) == 0)
			resource = &resources[i];
	if (resource == NULL)
		page_handle(store, conf, rq, name, answer);
	else if (!head && strcmp(rq->method, "GET") != 0) {
		say(answer, 405, "only GET and HEAD");
		(void)response_add(&answer->response, "Allow", "GET, HEAD");
		respond_count(
		    rq, NULL, PROBLEM_METHOD_NOT_ALLOWED, false, rq->method);
	} else
		resource->get(store, conf, answer);
	if (!head && answer->text.len > 0) {
		answer->response.body = answer->text.data;
		answer->response.body_len = answer->text.len;
	}
}
