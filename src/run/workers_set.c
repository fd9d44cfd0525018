/*
 * Which handlers have processes: a pool for each, by the configuration.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "workers.h"
#include "workers_impl.h"

static void
stamp_file(const char *path, struct workers_stamp *s)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	if (path[0] != '/' || stat(path, &st) == -1 || !S_ISREG(st.st_mode))
		return;
	s->device = st.st_dev;
	s->number = st.st_ino;
	s->size = st.st_size;
	s->changed = st.st_mtim;
}

static bool
same_stamp(const struct workers_stamp *a, const struct workers_stamp *b)
{
	return a->device == b->device && a->number == b->number &&
	    a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
	    a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Looks at the program and at its arguments that are files: it may be an
 * interpreter. */
static void
look_at_files(struct workers_pool *pool)
{
	const struct conf_list *argv = &pool->program->argv;

	for (size_t i = 0; i < argv->n; i++)
		stamp_file(argv->item[i], &pool->stamps[i]);
}

/* Takes the stamps of a later look at the same program.  Whether one of the
 * files has changed. */
static bool
has_changed(struct workers_pool *pool, const struct workers_pool *later)
{
	bool changed = false;

	for (size_t i = 0; i < pool->program->argv.n; i++) {
		changed =
		    changed || !same_stamp(&later->stamps[i], &pool->stamps[i]);
		pool->stamps[i] = later->stamps[i];
	}
	return changed;
}

static struct workers_pool *
new_pool(struct conf *conf, const struct conf_program *program)
{
	struct workers_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->stamps = calloc(program->argv.n, sizeof(*pool->stamps));
	if (pool->stamps == NULL) {
		free(pool);
		return NULL;
	}
	pool->conf = conf_ref(conf);
	pool->program = program;
	look_at_files(pool);
	return pool;
}

void
workers_free_pool(struct workers_pool *pool)
{
	conf_unref(pool->conf);
	free(pool->stamps);
	free(pool);
}

/* No free process gets a request any more, and no busy one a second. */
static void
pool_renew(struct workers_pool *pool)
{
	struct workers_process *p;

	pool->free = NULL;
	for (p = pool->all; p != NULL; p = p->next) {
		p->old = true;
		if (p->state == WORKERS_FREE)
			p->state = WORKERS_SPENT;
	}
}

/* No route has the pool any more.  Its waiters go to the new pool of their
 * route. */
static void
pool_retire(struct workers_pool *pool)
{
	struct workers_ask *waiters = pool->waiters;

	if (!pool->retired)
		pool_renew(pool);
	/* Requests that wait for a slot may ask for it later. */
	pool->dropped = pool->retired;
	pool->retired = true;
	pool->waiters = NULL;
	workers_add_waiters(workers_find(pool->program), waiters);
}

/* Goes on with the pool under the configuration of the fresh one. */
static void
adopt_pool(struct workers_pool *pool, const struct workers_pool *fresh)
{
	conf_unref(pool->conf);
	pool->conf = conf_ref(fresh->conf);
	pool->program = fresh->program;
	pool->retired = pool->dropped = false;
	pool->next_start = 0;
	if (has_changed(pool, fresh))
		pool_renew(pool);
}

static struct workers_pool *
find_same(const struct conf_program *program)
{
	struct workers_pool *pool;

	for (pool = workers_all.pools; pool != NULL; pool = pool->next)
		if (conf_program_same(pool->program, program))
			return pool;
	return NULL;
}

static bool
is_kept(const struct conf_program *program)
{
	return program->protocol == CONF_PROTOCOL_FASTCGI &&
	    program->argv.n > 0;
}

/* Adds to *fresh a pool for a handler. */
static bool
add_pool(struct workers_pool **fresh, struct conf *conf,
    const struct conf_program *program)
{
	struct workers_pool *pool;

	if (!is_kept(program))
		return true;
	if ((pool = new_pool(conf, program)) == NULL)
		return false;
	pool->next = *fresh;
	*fresh = pool;
	return true;
}

static void
free_pools(struct workers_pool *pool)
{
	struct workers_pool *next;

	for (; pool != NULL; pool = next) {
		next = pool->next;
		workers_free_pool(pool);
	}
}

/* Of the fresh pools, keeps those that are new.  Returns the
 * others. */
static struct workers_pool *
keep_pools(struct workers_pool *fresh)
{
	struct workers_pool *known = NULL, *pool, *next;

	for (; fresh != NULL; fresh = next) {
		next = fresh->next;
		if ((pool = find_same(fresh->program)) == NULL) {
			fresh->next = workers_all.pools;
			workers_all.pools = fresh;
			continue;
		}
		if (pool->conf != fresh->conf)
			adopt_pool(pool, fresh);
		fresh->next = known;
		known = fresh;
	}
	return known;
}

bool
workers_prepare(struct conf *conf, struct workers_pool **fresh)
{
	bool done;

	*fresh = NULL;
	done = add_pool(fresh, conf, &conf->defaults.handler);
	for (size_t i = 0; done && i < conf->nroutes; i++)
		done = add_pool(fresh, conf, &conf->routes[i].handler);
	if (!done)
		free_pools(*fresh);
	return done;
}

void
workers_set(struct conf *conf, struct workers_pool *fresh)
{
	struct workers_pool *pool;

	free_pools(keep_pools(fresh));
	for (pool = workers_all.pools; pool != NULL; pool = pool->next)
		if (pool->conf != conf)
			pool_retire(pool);
	workers_wake();
}

void
workers_stop(void (*ended)(void *arg), void *arg)
{
	struct workers_pool *pool;

	workers_all.ended = ended;
	workers_all.ended_arg = arg;
	for (pool = workers_all.pools; pool != NULL; pool = pool->next) {
		pool->retired = pool->dropped = true;
		pool_renew(pool);
		workers_refuse(pool, ESHUTDOWN);
	}
	workers_wake();
}

void
workers_close(void)
{
	struct workers_pool *pool;

	if (workers_all.loop == NULL)
		return;
	for (pool = workers_all.pools; pool != NULL; pool = pool->next)
		assert(pool->all == NULL);
	free_pools(workers_all.pools);
	helpers_close(workers_all.spawner);
	loop_clear(workers_all.loop, &workers_all.timer);
	memset(&workers_all, 0, sizeof(workers_all));
}
