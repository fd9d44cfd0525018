/*
 * conf: no bytes end the process, an error names the file, and a
 * configuration that was taken keeps what conf.h promises.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "conf.h"
#include "route.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
check_list(const struct conf_list *list)
{
	assert(list->n <= LIMIT_CONF_LIST);
	for (size_t i = 0; i < list->n; i++)
		assert(list->item[i] != NULL);
	assert(list->item == NULL || list->item[list->n] == NULL);
}

static void
check_program(const struct conf_program *p)
{
	check_list(&p->argv);
	check_list(&p->environment);
	assert(p->argv.n == 0 || conf_program_address(p) != NULL ||
	    p->argv.item[0][0] == '/');
	assert(p->timeout > 0 && p->timeout <= INT32_MAX);
	assert(p->kill_after >= 0 && p->kill_after <= INT32_MAX);
	assert(p->max_output > 0);
	assert(p->umask >= -1 && p->umask <= 0777);
	assert(p->directory == NULL || p->directory[0] == '/');
}

static void
check_route(const struct conf_route *r)
{
	const struct conf_list *lists[] = { &r->methods, &r->scope,
		&r->fingerprint_headers, &r->fingerprint_ignore,
		&r->replay_drop };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		check_list(lists[i]);
	check_program(&r->handler);
	check_program(&r->reconcile);
	assert(r->methods.n > 0);
	assert(r->key <= CONF_KEY_IGNORE);
	assert(r->key_min_length >= 1);
	assert(r->key_min_length <= r->key_max_length);
	assert(r->key_max_length <= LIMIT_KEY);
	assert(!r->scope_required || r->scope.n > 0);
	assert(r->concurrent <= CONF_CONCURRENT_ACCEPT);
	assert(r->async <= CONF_ASYNC_ALWAYS);
	assert(r->max_request_age == 0 || r->request_timestamp != NULL);
	assert(r->wait_time > 0 && r->wait_time <= INT32_MAX);
	assert(r->retention > 0);
}

static void
check_effect(const struct conf *c, const struct conf_effect *e)
{
	check_program(&e->program);
	assert(e->line > 0);
	assert(e->program.argv.n > 0);
	assert(e->attempts > 0 && e->backoff > 0);
	assert(conf_effect_find(c, e->name) == e);
}

/* A route that answers 202 has somewhere to send the client. */
static void
check_accept(const struct conf *c, const struct conf_route *r)
{
	assert(c->status_path != NULL ||
	    (r->async == CONF_ASYNC_NEVER &&
		r->concurrent != CONF_CONCURRENT_ACCEPT));
}

static void
check_conf(const struct conf *c)
{
	assert(c->database[0] != '\0' && c->link[0] != '\0');
	assert(c->workers >= 1 && c->workers <= LIMIT_WORKERS);
	assert(c->io_timeout > 0 && c->io_timeout <= INT32_MAX);
	assert(c->busy_timeout >= 0 && c->busy_timeout <= INT32_MAX);
	assert((c->socket == NULL) == (conf_line_of_server(c, "socket") == 0));
	check_list(&c->allow_peers);
	check_route(&c->defaults);
	check_accept(c, &c->defaults);
	assert(c->async_workers >= 1);
	assert(c->async_workers <= LIMIT_ASYNC_WORKERS);
	assert(c->async_queue >= 1 && c->async_queue <= LIMIT_ASYNC_QUEUE);
	for (size_t i = 0; i < c->neffects; i++)
		check_effect(c, &c->effects[i]);
	assert(c->defaults.path[0] == '\0');
	for (size_t i = 0; i < c->nroutes; i++) {
		const struct conf_route *r = &c->routes[i];

		check_route(r);
		check_accept(c, r);
		assert(r->path[0] == '/' && r->line > 0);
		assert(route_find(c, r->path) == r);
		assert(i == 0 || strlen(r[-1].path) >= strlen(r->path));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_error err = { "" };
	struct conf *conf;

	conf = conf_parse("fuzz", (const char *)data, size, &err);
	if (conf == NULL) {
		assert(strncmp(err.text, "fuzz:", 5) == 0);
		return 0;
	}
	check_conf(conf);
	(void)conf_check(conf, &err);
	conf_unref(conf);
	return 0;
}
