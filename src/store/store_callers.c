/*
 * The callers that have keys which limits count, and what a limit that is
 * reached means for them.  The configuration tells the limit of the route of a
 * caller's key; the store does not know it.
 */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "scope.h"
#include "metrics.h"
#include "words.h"
#include "route.h"
#include "store_doctor.h"
#include "store_ops.h"

/* Callers whose keys doctor counts, of each kind. */
#define LOOKS 64 /* times STORE_CALLERS_MAX */

/* What is counted: keys with an open outcome, for max_open_keys; keys in
 * progress, for max_active_keys; keys that wait, for async_queue. */
enum callers_of { CALLERS_OPEN, CALLERS_ACTIVE, CALLERS_QUEUED, CALLERS_NOF };

struct caller_keys {
	int64_t caller;            /* its number: see scope.h */
	int64_t keys;              /* that are counted */
	char *path, *scope, *peer; /* of one of them; peer may be NULL */
};

struct callers {
	enum callers_of of;
	int64_t after; /* callers with a higher number */
	int64_t now;   /* store time */
	struct caller_keys item[STORE_CALLERS_MAX];
	size_t n; /* fewer than STORE_CALLERS_MAX: there are no more */
};

static void
callers_clear(struct callers *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->item[i].path);
		free(c->item[i].scope);
		free(c->item[i].peer);
	}
	c->n = 0;
}

static enum rc
callers_run(struct tx *tx, void *arg)
{
	struct callers *c = arg;
	struct caller_keys *one;
	enum rc rc;

	callers_clear(c); /* of a try before this one */
	if (c->of == CALLERS_QUEUED)
		tx_send(tx, TX_CROWDS_QUEUED, "iii", c->after,
		    (int64_t)STORE_CALLERS_MAX, c->now);
	else
		tx_send(tx,
		    c->of == CALLERS_OPEN ? TX_CROWDS_OPEN : TX_CROWDS_ACTIVE,
		    "ii", c->after, (int64_t)STORE_CALLERS_MAX);
	rc = tx_result(tx);
	while (rc == RC_OK && c->n < STORE_CALLERS_MAX) {
		one = &c->item[c->n];
		memset(one, 0, sizeof(*one));
		rc = tx_row(tx, "iisss", &one->caller, &one->keys, &one->path,
		    &one->scope, &one->peer);
		if (rc != RC_NOTFOUND)
			c->n++;
	}
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

/*
 * Finds the next callers, in the order of their numbers, and sets c->after to
 * the last one.  An index is read.  callers_clear() frees the items, before the
 * next call too.
 */
static enum rc
callers_next(struct store *s, struct callers *c)
{
	enum rc rc;

	c->now = store_now(s);
	rc = store_tx(s, TX_READ, callers_run, c);
	if (rc == RC_OK && c->n > 0)
		c->after = c->item[c->n - 1].caller;
	return rc;
}

/* How many keys the limit leaves to a caller on that route; 0: any number. */
static int64_t
limit_of(
    const struct conf *conf, const struct conf_route *route, enum callers_of of)
{
	switch (of) {
	case CALLERS_OPEN:
		return route->max_open_keys;
	case CALLERS_ACTIVE:
		return route->max_active_keys;
	case CALLERS_QUEUED: /* on whatever route */
		return decide_share(conf->async_queue);
	case CALLERS_NOF:
		break;
	}
	assert(!"one of the limits");
	return 0;
}

/* The route on which a limit keeps the caller from new keys; NULL: none does.
 * A row of others may have any path. */
static const struct conf_route *
full_route(
    const struct conf *conf, enum callers_of of, const struct caller_keys *one)
{
	const struct conf_route *route;
	int64_t limit;

	if (one->path == NULL || one->scope == NULL || one->path[0] != '/')
		return NULL;
	route = route_find(conf, one->path);
	limit = limit_of(conf, route, of);
	return limit > 0 && one->keys >= limit ? route : NULL;
}

size_t
store_callers_full(struct store *s, const struct conf *conf,
    char lines[STORE_CALLERS_MAX][RECENT_LINE])
{
	static _Atomic int64_t last = INT64_MIN;
	struct callers c = { .after = atomic_load(&last) };
	const struct conf_route *route;
	char caller[CALLER_NAME_LEN + 1];
	size_t n = 0;

	if (callers_next(s, &c) != RC_OK || c.n < STORE_CALLERS_MAX)
		c.after = INT64_MIN;
	atomic_store(&last, c.after);
	for (size_t i = 0; i < c.n; i++) {
		route = full_route(conf, c.of, &c.item[i]);
		if (route == NULL)
			continue;
		scope_caller_name(c.item[i].scope, c.item[i].peer, caller);
		recent_refused_too_many(route->path, caller, lines[n++]);
	}
	callers_clear(&c);
	return n;
}

/* --- doctor --------------------------------------------------------------- */

/* The first callers that are at a limit. */
struct full {
	int64_t callers, keys; /* keys: of all callers */
	char names[120];
};

static void
add_full(struct full *f, const struct conf_route *route, enum callers_of of,
    const struct caller_keys *one)
{
	char caller[CALLER_NAME_LEN + 1];

	scope_caller_name(one->scope, one->peer, caller);
	f->callers++;
	if (of == CALLERS_QUEUED)
		store_doctor_name(
		    f->names, sizeof(f->names), " caller=%s", caller);
	else
		store_doctor_name(f->names, sizeof(f->names),
		    " route=%.60s caller=%s",
		    *route->path != '\0' ? route->path : "-", caller);
}

static enum rc
find_full(struct store *s, const struct conf *conf, enum callers_of of,
    struct full *full)
{
	struct callers c = { .of = of, .after = INT64_MIN };
	const struct conf_route *route;
	size_t n = STORE_CALLERS_MAX;
	enum rc rc = RC_OK;

	memset(full, 0, sizeof(*full));
	for (int i = 0; i < LOOKS && n == STORE_CALLERS_MAX; i++) {
		rc = callers_next(s, &c);
		n = rc == RC_OK ? c.n : 0;
		for (size_t k = 0; k < n; k++) {
			full->keys += c.item[k].keys;
			route = full_route(conf, of, &c.item[k]);
			if (route != NULL)
				add_full(full, route, of, &c.item[k]);
		}
		callers_clear(&c);
	}
	return rc;
}

/* What is full by itself has room again soon: the operator need not act. */
static const struct {
	const char *name, *means;
	bool ok;
} limits[CALLERS_NOF] = {
	[CALLERS_OPEN] = { "max_open_keys",
	    "new keys get 429 until \"oncectl resolve\" settles old ones",
	    false },
	[CALLERS_ACTIVE] = { "max_active_keys",
	    "new keys get 429 until a handler ends", true },
	[CALLERS_QUEUED] = { "async_queue",
	    "what is to be accepted gets 503 until a handler begins", true },
};

static void
callers_find(struct store *s, const struct conf *conf, enum callers_of of,
    struct findings *f)
{
	const char *name = limits[of].name;
	struct full full;
	enum rc rc = find_full(s, conf, of, &full);

	if (rc != RC_OK)
		store_doctor_add(f, name, false, "callers cannot be counted");
	else if (of == CALLERS_QUEUED && full.keys >= conf->async_queue)
		store_doctor_add(f, name, true,
		    "%u keys wait: for all callers, %s", conf->async_queue,
		    limits[of].means);
	else if (full.callers == 0)
		store_doctor_add(f, name, true, "no caller is at it");
	else
		store_doctor_add(f, name, limits[of].ok,
		    "%" PRId64 " %s at it%s%s%s: %s", full.callers,
		    PLURAL(full.callers, "caller is", "callers are"),
		    full.names[0] != '\0' ? ":" : "", full.names,
		    full.callers > 1 ? " ..." : "", limits[of].means);
}

/* A limit of bytes for all callers; 0: none. */
static void
check_bytes(struct findings *f, const char *name, int64_t bytes, uint64_t limit,
    const char *means)
{
	if (bytes < 0)
		store_doctor_add(f, name, false, "bytes cannot be counted");
	else if (limit == 0)
		store_doctor_add(
		    f, name, true, "%" PRId64 " bytes, no limit", bytes);
	else
		store_doctor_add(f, name, (uint64_t)bytes <= limit,
		    "%" PRId64 " of %" PRIu64 " bytes%s%s", bytes, limit,
		    (uint64_t)bytes <= limit ? "" : ": for all callers, ",
		    (uint64_t)bytes <= limit ? "" : means);
}

void
store_callers_doctor(
    struct store *s, const struct conf *conf, struct findings *f)
{
	struct metrics_gauges g;

	if (conf == NULL) {
		store_doctor_add(f, "limits", true,
		    "not known without a configuration: name it with -f");
		return;
	}
	for (int of = 0; of < CALLERS_NOF; of++)
		callers_find(s, conf, (enum callers_of)of, f);
	(void)store_gauges(s, &g);
	check_bytes(f, "max_store", g.value[METRICS_STORE_BYTES],
	    conf->max_store,
	    "new keys get 503; replays and outcomes go on: make room, or "
	    "raise it");
	check_bytes(f, "max_kept", g.value[METRICS_KEPT_BYTES], conf->max_kept,
	    "what has to be kept gets 503 until kept requests are settled");
}
