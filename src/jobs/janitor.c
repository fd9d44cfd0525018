/*
 * Reads the intervals from the current configuration each time, so that a
 * reload changes them.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "outbox.h"
#include "pending.h"
#include "reap.h"
#include "reconcile.h"
#include "sweep.h"
#include "janitor.h"

/* Shortest time (ms) between two tallies for the metrics.  A long tally makes
 * the next one later, so that tallies take a hundredth of the time. */
#define TALLY_INTERVAL 60000
#define TALLY_REST     100

/* Pause (ms) after a store error, or while no effect is configured. */
#define OUTBOX_PAUSE 500

/* Poll interval (ms) for keys that are due to be reconciled. */
#define RECONCILE_INTERVAL 500

struct janitor {
	struct confbox *confbox;
	struct store *store;
	struct pending *pending;
	struct outbox *outbox;
	struct reconciler reconciler;
	pthread_mutex_t lookout; /* held by the thread that takes effects */
	pthread_mutex_t mutex;
	pthread_cond_t stopping;
	atomic_bool stop;
	atomic_uint running; /* number of threads that have not ended */
	unsigned threads;    /* number of threads started */
	pthread_t thread[];
};

/* Waits until then (clock_mono()), or until the janitor is stopped. */
static void
sleep_until(struct janitor *janitor, int64_t until_mono)
{
	struct timespec ts;

	ts.tv_sec = (time_t)(until_mono / 1000);
	ts.tv_nsec = (long)(until_mono % 1000) * 1000000;
	pthread_mutex_lock(&janitor->mutex);
	while (!atomic_load(&janitor->stop) && clock_mono() < until_mono)
		(void)pthread_cond_timedwait(
		    &janitor->stopping, &janitor->mutex, &ts);
	pthread_mutex_unlock(&janitor->mutex);
}

static void
report(const char *pass, enum rc rc)
{
	if (rc != RC_OK)
		log_event(LOG_ERROR, "pass-failed", NULL, LOG_S("pass", pass),
		    LOG_S("why", rc_text(rc)));
}

/* The passes of the sweeper.  They take turns, so that a backlog of one does
 * not hold up the others. */
struct turns {
	struct pass sweep, reap, expire;
	int64_t swept, reaped; /* mono: when these passes last ended */
	int64_t tally_at, tally_took;
};

static void
take_turn_tally(struct janitor *janitor, struct turns *t)
{
	int64_t began = clock_mono(), rest;
	bool done = false;
	enum rc rc = RC_OK;

	while (rc == RC_OK && !done && !atomic_load(&janitor->stop) &&
	    clock_mono() - began < PASS_TURN)
		rc = store_tally(janitor->store, &done);
	report("tally", rc);
	t->tally_at = clock_mono();
	t->tally_took += t->tally_at - began;
	if (rc == RC_OK && !done)
		return;
	rest = t->tally_took * TALLY_REST;
	t->tally_at += rest > TALLY_INTERVAL ? rest : TALLY_INTERVAL;
	t->tally_took = 0;
}

static int64_t
earliest(int64_t a, int64_t b, int64_t c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

static bool
anybody_reconciles(const struct conf *conf)
{
	size_t i;

	for (i = 0; i < conf->nroutes; i++) {
		if (conf->routes[i].reconcile.n > 0)
			return true;
	}
	return conf->defaults.reconcile.n > 0;
}

/* The last thread to end sends a signal to the main thread, which waits for
 * signals only. */
static void *
leave(struct janitor *janitor)
{
	if (atomic_fetch_sub(&janitor->running, 1) == 1)
		(void)kill(getpid(), SIGUSR1);
	return NULL;
}

static void *
reconciler_main(void *arg)
{
	struct janitor *janitor = arg;
	struct conf *conf;
	enum rc rc;

	while (!atomic_load(&janitor->stop)) {
		conf = confbox_get(janitor->confbox);
		rc = RC_NOTFOUND;
		if (anybody_reconciles(conf))
			rc = reconcile_next(&janitor->reconciler, conf);
		conf_unref(conf);
		if (rc == RC_OK)
			continue;
		if (rc != RC_NOTFOUND)
			report("reconcile", rc);
		sleep_until(janitor, clock_mono() + RECONCILE_INTERVAL);
	}
	return leave(janitor);
}

static void
take_turn_sweep(struct janitor *janitor, struct turns *t)
{
	pass_turn(&t->sweep, clock_mono() + PASS_TURN);
	report("sweep", sweep_pass(janitor->store, &t->sweep));
	if (!t->sweep.more)
		t->swept = clock_mono();
}

/* Deletes keys past their retention, and completes accepted keys that no worker
 * ran within theirs. */
static void
take_turn_reap(struct janitor *janitor, struct turns *t)
{
	struct conf *conf = confbox_get(janitor->confbox);

	pass_turn(&t->reap, clock_mono() + PASS_TURN);
	report("reap", reap_pass(janitor->store, &t->reap));
	pass_turn(&t->expire, clock_mono() + PASS_TURN);
	report("pending", pending_expire(janitor->store, conf, &t->expire));
	if (!t->reap.more && !t->expire.more)
		t->reaped = clock_mono();
	conf_unref(conf);
}

static void *
runner_main(void *arg)
{
	struct janitor *janitor = arg;

	pending_run(janitor->pending);
	return leave(janitor);
}

static void *
sweeper_main(void *arg)
{
	struct janitor *janitor = arg;
	struct turns t;
	struct conf *conf;
	int64_t now, sweep_at, reap_at;

	/* The start has swept before the first request. */
	memset(&t, 0, sizeof(t));
	t.sweep.stop = t.reap.stop = t.expire.stop = &janitor->stop;
	t.swept = t.reaped = t.tally_at = clock_mono();
	while (!atomic_load(&janitor->stop)) {
		conf = confbox_get(janitor->confbox);
		sweep_at = t.swept + conf->sweep_interval;
		reap_at = t.reaped + conf->reap_interval;
		conf_unref(conf);

		sleep_until(janitor, earliest(sweep_at, reap_at, t.tally_at));
		now = clock_mono();
		if (now >= sweep_at && !atomic_load(&janitor->stop))
			take_turn_sweep(janitor, &t);
		if (now >= reap_at && !atomic_load(&janitor->stop))
			take_turn_reap(janitor, &t);
		if (now >= t.tally_at)
			take_turn_tally(janitor, &t);
	}
	return leave(janitor);
}

/* Runs in several threads.  The thread that holds the lookout waits for an
 * effect.  It releases the lookout before it tries the effect. */
static void *
deliverer_main(void *arg)
{
	struct janitor *janitor = arg;
	struct store_effect effect;
	struct conf *conf;
	enum rc rc;

	while (!atomic_load(&janitor->stop)) {
		pthread_mutex_lock(&janitor->lookout);
		conf = confbox_get(janitor->confbox);
		rc = RC_NOTFOUND;
		if (conf->neffects > 0)
			rc = outbox_take(janitor->outbox, conf, &effect);
		if (rc != RC_OK && rc != RC_NOTFOUND)
			report("outbox", rc);
		if (conf->neffects == 0 || (rc != RC_OK && rc != RC_NOTFOUND))
			sleep_until(janitor, clock_mono() + OUTBOX_PAUSE);
		pthread_mutex_unlock(&janitor->lookout);
		if (rc == RC_OK)
			outbox_try(janitor->outbox, conf, &effect);
		conf_unref(conf);
	}
	return leave(janitor);
}

/* --- beginning and end -------------------------------------------------- */

static bool
start(struct janitor *janitor, unsigned n, void *(*thread_main)(void *))
{
	for (; n > 0; n--) {
		atomic_fetch_add(&janitor->running, 1);
		if (pthread_create(&janitor->thread[janitor->threads], NULL,
			thread_main, janitor) != 0) {
			atomic_fetch_sub(&janitor->running, 1);
			return false;
		}
		janitor->threads++;
	}
	return true;
}

enum rc
janitor_start(
    struct janitor **out, struct confbox *confbox, struct store *store)
{
	struct conf *conf = confbox_get(confbox);
	const unsigned runners = conf->async_workers;
	const unsigned reconcilers = conf->reconcile_workers;
	struct janitor *janitor;
	pthread_condattr_t attr;

	conf_unref(conf);
	*out = NULL;
	janitor = calloc(1,
	    sizeof(*janitor) +
		(1 + reconcilers + runners + OUTBOX_THREADS) *
		    sizeof(janitor->thread[0]));
	if (janitor == NULL)
		return RC_NOMEM;
	janitor->confbox = confbox;
	janitor->store = store;
	reconcile_init(&janitor->reconciler, store);
	pthread_mutex_init(&janitor->lookout, NULL);
	pthread_mutex_init(&janitor->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&janitor->stopping, &attr);
	pthread_condattr_destroy(&attr);
	janitor->pending = pending_new(store, confbox);
	janitor->outbox = outbox_new(store, &janitor->stop);
	if (janitor->pending == NULL || janitor->outbox == NULL ||
	    !start(janitor, 1, sweeper_main) ||
	    !start(janitor, reconcilers, reconciler_main) ||
	    !start(janitor, runners, runner_main) ||
	    !start(janitor, OUTBOX_THREADS, deliverer_main)) {
		janitor_stop(janitor);
		return RC_NOMEM;
	}
	*out = janitor;
	return RC_OK;
}

void
janitor_halt(struct janitor *janitor)
{
	if (janitor == NULL)
		return;
	pthread_mutex_lock(&janitor->mutex);
	atomic_store(&janitor->stop, true);
	pthread_cond_broadcast(&janitor->stopping);
	pthread_mutex_unlock(&janitor->mutex);
	if (janitor->pending != NULL)
		pending_halt(janitor->pending);
	store_wake(janitor->store);
}

bool
janitor_ended(const struct janitor *janitor)
{
	return janitor == NULL || atomic_load(&janitor->running) == 0;
}

void
janitor_stop(struct janitor *janitor)
{
	if (janitor == NULL)
		return;
	janitor_halt(janitor);
	while (janitor->threads > 0)
		pthread_join(janitor->thread[--janitor->threads], NULL);
	pending_free(janitor->pending);
	outbox_free(janitor->outbox);
	reconcile_release(&janitor->reconciler);
	pthread_cond_destroy(&janitor->stopping);
	pthread_mutex_destroy(&janitor->mutex);
	pthread_mutex_destroy(&janitor->lookout);
	free(janitor);
}
