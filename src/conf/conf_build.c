/*
 * Configuration: how a struct conf is made, changed until it is shared,
 * counted and freed.  It never changes once two threads can see it.
 *
 * conf_parse.c reads files; conf_option.c defines the options and their
 * values.
 */
#include "config.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_value.h"
#include "conf_option.h"

/* Of the program on_attention (ms, ms, bytes). */
#define ATTENTION_TIMEOUT    60000
#define ATTENTION_KILL_AFTER 5000
#define ATTENTION_OUTPUT     (1024 * 1024)

/* The allocated struct; struct conf is its first member. */
struct owner {
	struct conf conf;
	atomic_uint references;
	atomic_bool retired;
	struct conf_arena arena;
};

static struct owner *
owner_of(struct conf *conf)
{
	return (struct owner *)(void *)conf;
}

struct conf_arena *
conf_arena(struct conf *conf)
{
	return &owner_of(conf)->arena;
}

bool
conf_error_at(
    const char *file, conf_line line, const char *text, struct conf_error *err)
{
	struct conf_error why;

	/* text may be err's own. */
	(void)snprintf(why.text, sizeof(why.text), "%s", text);
	if (file == NULL)
		return conf_value_fail(err, "%s", why.text);
	if (line == 0)
		return conf_value_fail(err, "%.160s: %s", file, why.text);
	return conf_value_fail(err, "%.160s:%u: %s", file, line, why.text);
}

/* Whether key_from has a source of that kind. */
static bool
key_is_from(const struct conf_route *route, enum conf_source_kind kind)
{
	const struct conf_key_from *from = &route->key_from;

	for (size_t i = 0; i < from->n; i++)
		for (unsigned j = 0; j < from->item[i].n; j++)
			if (from->item[i].part[j].kind == kind)
				return true;
	return false;
}

/* The reconciler runs as the handler does. */
static void
derive_programs(struct conf_route *route)
{
	const struct conf_list argv = route->reconcile.argv;

	route->handler.php_cgi = conf_has_preset(route, CONF_PRESET_PHP_CGI);
	route->reconcile = route->handler;
	route->reconcile.argv = argv;
	route->reconcile.protocol = CONF_PROTOCOL_CGI;
	route->handler.route = route->path;
	route->handler.tracked =
	    route->on_crash == CONF_CRASH_RESUME || argv.n > 0;
	route->handler.php_prepend =
	    conf_has_preset(route, CONF_PRESET_PHP_FPM);
	route->handler.form_key = key_is_from(route, CONF_FROM_FORM) ||
	    key_is_from(route, CONF_FROM_QUERY) ||
	    key_is_from(route, CONF_FROM_COOKIE);
}

/* As that of an effect, but its output is shorter. */
static void
derive_attention(struct conf_program *program)
{
	program->timeout = ATTENTION_TIMEOUT;
	program->kill_after = ATTENTION_KILL_AFTER;
	program->max_output = ATTENTION_OUTPUT;
	program->umask = -1;
}

void
conf_derive(struct conf *conf)
{
	derive_attention(&conf->on_attention);
	derive_programs(&conf->defaults);
	for (size_t i = 0; i < conf->nroutes; i++)
		derive_programs(&conf->routes[i]);
}

struct conf *
conf_new(const char *name, struct conf_error *err)
{
	struct owner *owner = calloc(1, sizeof(*owner));
	struct conf *conf;

	if (owner == NULL) {
		(void)conf_value_no_memory(err);
		return NULL;
	}
	conf = &owner->conf;
	atomic_init(&owner->references, 1);
	conf->defaults.path = "";
	if (name != NULL &&
	    (conf->file = conf_value_copy(&owner->arena, name, strlen(name))) ==
		NULL) {
		(void)conf_value_no_memory(err);
		goto out;
	}
	if (!conf_option_defaults(CONF_SERVER, conf, &owner->arena, err) ||
	    !conf_option_defaults(
		CONF_ROUTE, &conf->defaults, &owner->arena, err))
		goto out;
	conf_derive(conf);
	return conf;
out:
	conf_unref(conf);
	return NULL;
}

struct conf *
conf_default(struct conf_error *err)
{
	return conf_new(NULL, err);
}

bool
conf_set(struct conf *conf, const char *name, const char *value,
    struct conf_error *err)
{
	const struct conf_option *option = conf_option_find(CONF_SERVER, name);

	if (option == NULL)
		return conf_value_fail(err, "%s: unknown option", name);
	if (strlen(value) > LIMIT_CONF_LINE)
		return conf_value_fail(
		    err, "%s: longer than %d bytes", name, LIMIT_CONF_LINE);
	for (const char *s = value; *s != '\0'; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return conf_value_fail(err,
			    "%s: byte 0x%02x is not allowed", name,
			    (unsigned char)*s);
	if (!conf_option_set(option, conf, value, conf_arena(conf), err))
		return false;
	conf->origin.line[conf_option_index(option)] = 0;
	return true;
}

bool
conf_set_handler(struct conf *conf, char *const *argv, struct conf_error *err)
{
	const size_t option =
	    conf_option_index(conf_option_find(CONF_ROUTE, "handler"));
	struct conf_list handler;
	struct conf_error why;

	if (!conf_text_words(argv, conf_arena(conf), &handler, &why))
		return conf_value_fail(err, "handler: %s", why.text);
	conf->defaults.handler.argv = handler;
	conf->defaults.origin.line[option] = 0;
	for (size_t i = 0; i < conf->nroutes; i++) {
		conf->routes[i].handler.argv = handler;
		conf->routes[i].origin.line[option] = 0;
	}
	return true;
}

static bool
check_handler(const struct conf *conf, const struct conf_route *route,
    struct conf_error *err)
{
	if (conf_has_preset(route, CONF_PRESET_PHP_FPM) &&
	    conf_program_address(&route->handler) == NULL)
		return conf_error_at(conf->file,
		    conf_line_of_route(conf, route, "preset"),
		    "preset = php-fpm needs a handler: the address of php-fpm, "
		    "such as unix:/run/php/php8.2-fpm.sock",
		    err);
	if (route->handler.protocol != CONF_PROTOCOL_FASTCGI ||
	    route->handler.argv.n > 0)
		return true;
	/* Processes that stay need a program that the configuration names. */
	return conf_error_at(conf->file,
	    conf_line_of_route(conf, route, "protocol"),
	    "protocol = fastcgi needs a handler: the program whose processes "
	    "stay",
	    err);
}

bool
conf_check(const struct conf *conf, struct conf_error *err)
{
	const conf_line peers = conf_line_of_server(conf, "allow_peers");

	for (size_t i = 0; i < conf->nroutes; i++)
		if (!check_handler(conf, &conf->routes[i], err))
			return false;
	/* Routes may bring the handlers. */
	if (conf->nroutes == 0 && !check_handler(conf, &conf->defaults, err))
		return false;
	/* SO_PEERCRED is for unix sockets only. */
	if (conf->allow_peers.n > 0 && conf->socket != NULL &&
	    strncmp(conf->socket, "tcp:", 4) == 0)
		return conf_error_at(peers > 0 ? conf->file : NULL, peers,
		    "allow_peers: needs a unix socket: a tcp peer has no user",
		    err);
	return true;
}

conf_line
conf_line_of_server(const struct conf *conf, const char *option)
{
	return conf_option_line(&conf->origin, CONF_SERVER, option);
}

conf_line
conf_line_of_own(const struct conf_route *route, const char *option)
{
	return conf_option_line(&route->origin, CONF_ROUTE, option);
}

conf_line
conf_line_of_route(
    const struct conf *conf, const struct conf_route *route, const char *option)
{
	const struct conf_origin *defaults = &conf->defaults.origin;
	const conf_line line = conf_line_of_own(route, option);

	if (line != 0)
		return line;
	/* To a route with a preset that of [defaults] means nothing. */
	if (conf_option_line(&route->origin, CONF_ROUTE, "preset") != 0 &&
	    conf_preset_set(defaults, option))
		return 0;
	return conf_option_line(defaults, CONF_ROUTE, option);
}

conf_line
conf_line_of_effect(const struct conf_effect *effect, const char *option)
{
	return conf_option_line(&effect->origin, CONF_EFFECT, option);
}

struct conf *
conf_ref(struct conf *conf)
{
	unsigned before = atomic_fetch_add(&owner_of(conf)->references, 1);

	assert(before > 0);
	return conf;
}

void
conf_unref(struct conf *conf)
{
	unsigned before;

	if (conf == NULL)
		return;
	before = atomic_fetch_sub(&owner_of(conf)->references, 1);
	assert(before > 0);
	if (before > 1)
		return;
	free(conf->routes);
	free(conf->effects);
	conf_value_free(conf_arena(conf));
	free(owner_of(conf));
}

const struct conf_effect *
conf_effect_find(const struct conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->neffects; i++)
		if (strcmp(conf->effects[i].name, name) == 0)
			return &conf->effects[i];
	return NULL;
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
is_same_list(const struct conf_list *a, const struct conf_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->item[i], b->item[i]) != 0)
			return false;
	return true;
}

const char *
conf_program_address(const struct conf_program *program)
{
	const char *name = program->argv.n > 0 ? program->argv.item[0] : "/";

	return name[0] == '/' ? NULL : name;
}

bool
conf_program_same(const struct conf_program *a, const struct conf_program *b)
{
	return a == b ||
	    (is_same_list(&a->argv, &b->argv) && a->timeout == b->timeout &&
		a->kill_after == b->kill_after &&
		a->max_output == b->max_output &&
		is_same_text(a->directory, b->directory) &&
		a->umask == b->umask && a->no_new_privs == b->no_new_privs &&
		is_same_text(a->user, b->user) &&
		is_same_text(a->group, b->group) &&
		is_same_list(&a->environment, &b->environment) &&
		a->protocol == b->protocol && a->processes == b->processes &&
		a->max_requests == b->max_requests &&
		a->form_key == b->form_key &&
		a->php_prepend == b->php_prepend && a->tracked == b->tracked &&
		is_same_text(a->route, b->route));
}

bool
conf_shares_database(const struct conf *conf)
{
	if (conf->defaults.share_database)
		return true;
	for (size_t i = 0; i < conf->nroutes; i++)
		if (conf->routes[i].share_database)
			return true;
	return false;
}

bool
conf_has_preset(const struct conf_route *route, enum conf_preset preset)
{
	return (route->preset & 1U << preset) != 0;
}

bool
conf_list_has(const struct conf_list *list, const char *item)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->item[i], item) == 0)
			return true;
	return false;
}

bool
conf_status_in(const struct conf_statuses *set, int status)
{
	unsigned i;

	if (status < 100 || status > 599)
		return false;
	i = (unsigned)(status - 100);
	return (set->bits[i / 64] >> i % 64 & 1) != 0;
}

void
conf_retire(struct conf *conf)
{
	atomic_store(&owner_of(conf)->retired, true);
}

bool
conf_is_retired(const struct conf *conf)
{
	const struct owner *owner = (const void *)conf;

	return atomic_load(&owner->retired);
}
