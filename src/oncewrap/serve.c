/*
 * The thread of the loop.  The main thread gives it orders, which are messages,
 * and waits until they are carried out.
 */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "fault.h"
#include "log.h"
#include "loop.h"
#include "mux.h"
#include "scheduler.h"
#include "thread.h"
#include "workers.h"
#include "serve.h"

struct serve {
	struct loop *loop;
	struct engine *engine;
	struct mux *mux;
	struct scheduler *scheduler;
	pthread_t thread;
	bool stopped;      /* no request begins any more */
	atomic_bool ended; /* ... and none is under way */
	sem_t done;        /* the order of the main thread */
};

enum order_kind { RELOAD, REFUSE, STOP, DRAIN, CLOSE, END };

struct order {
	enum order_kind kind;
	struct loop_message message;
	struct serve *serve;
	int64_t until;
	bool take_waiting;
	struct conf *conf;
	struct peers *peers;
	struct workers_pool *pools;
};

/* --- in the loop ---------------------------------------------------------- */

static void
serve_exchange(void *arg, struct exchange *x)
{
	struct serve *s = arg;

	engine_handle(s->engine, x);
}

static void
check_ended(void *arg)
{
	struct serve *s = arg;

	if (!s->stopped || !engine_is_idle(s->engine) ||
	    !scheduler_ended(s->scheduler) || atomic_exchange(&s->ended, true))
		return;
	/* The main thread waits for signals only. */
	(void)kill(getpid(), SIGUSR1);
}

static void
serve_event(void *arg, enum mux_event event)
{
	struct serve *s = arg;

	switch (event) {
	case MUX_REFUSED:
	case MUX_CLOSED:
		sem_post(&s->done);
		break;
	case MUX_STOPPED:
		s->stopped = true;
		check_ended(s);
		break;
	}
}

static void *
serve_main(void *arg)
{
	struct serve *s = arg;

	loop_run(s->loop);
	engine_close(s->engine);
	return NULL;
}

/* --- orders --------------------------------------------------------------- */

static void
processes_ended(void *arg)
{
	loop_end(arg);
}

static void
order_comes(struct loop_message *m)
{
	struct order *o = OWNER(m, struct order, message);
	struct serve *s = o->serve;
	const enum order_kind kind = o->kind;

	switch (kind) {
	case RELOAD:
		mux_reload(s->mux, o->conf, o->peers);
		engine_reload(s->engine);
		scheduler_reload(s->scheduler, o->conf);
		workers_set(o->conf, o->pools);
		break;
	case REFUSE:
		mux_refuse(s->mux, o->take_waiting);
		break;
	case STOP:
		mux_stop(s->mux, o->until);
		scheduler_halt(s->scheduler);
		break;
	case DRAIN:
		mux_stop_waiting(s->mux);
		engine_drain(s->engine);
		break;
	case CLOSE:
		mux_close(s->mux, o->until);
		break;
	case END:
		workers_stop(processes_ended, s->loop);
		break;
	}
	/* Of the others the mux tells when they are carried out. */
	if (kind != REFUSE && kind != CLOSE)
		sem_post(&s->done);
}

static void
carry_out(struct serve *s, struct order o)
{
	o.serve = s;
	o.message.come = order_comes;
	loop_send(s->loop, &o.message);
	while (sem_wait(&s->done) == -1)
		continue; /* EINTR */
}

void
serve_reload(struct serve *s, struct conf *conf, struct peers *peers,
    struct workers_pool *pools)
{
	carry_out(s,
	    (struct order){
		RELOAD, .conf = conf, .peers = peers, .pools = pools });
}

void
serve_refuse(struct serve *s, bool take_waiting)
{
	carry_out(s, (struct order){ REFUSE, .take_waiting = take_waiting });
}

void
serve_stop(struct serve *s, int64_t arrive_until_mono)
{
	carry_out(s, (struct order){ STOP, .until = arrive_until_mono });
}

bool
serve_ended(const struct serve *s)
{
	return atomic_load(&s->ended);
}

void
serve_drain(struct serve *s)
{
	carry_out(s, (struct order){ .kind = DRAIN });
}

void
serve_close(struct serve *s, int64_t until_mono)
{
	carry_out(s, (struct order){ CLOSE, .until = until_mono });
}

/* --- the spawner ---------------------------------------------------------- */

/*
 * What run does with processes that stay (workers.h), and store with their
 * locks.  The file names the process before it is ready for requests.
 */
static void
start_process(void *arg, struct workers_process *p)
{
	struct workers_mark mark = { .held = -1, .token = "" };
	struct store_attempt lock = { .fd = -1, .note = -1 };
	char token[RECORD_TOKEN_LEN + 1] = "";
	bool marked = true;
	pid_t pid;

	if (workers_is_tracked(p)) {
		marked = store_process_lock(arg, &lock, token) == RC_OK;
		mark.held = lock.fd;
		mark.lock = lock.lock;
		mark.token = token;
	}
	FAULT(PROCESS_MARKED);
	pid = workers_start(p, marked ? &mark : NULL);
	if (pid != -1)
		store_attempt_started(&lock, pid);
	store_attempt_release(&lock);
}

static void
forget_lock(void *arg, int64_t lock)
{
	store_process_forget(arg, lock);
}

/* workers_open(), and workers_set() with that configuration. */
static enum rc
open_spawner(struct store *store, struct runs *runs, struct conf *conf)
{
	const struct workers_owner owner = { .runs = runs,
		.start = start_process,
		.forget = forget_lock,
		.arg = store };
	struct workers_pool *fresh;
	enum rc rc;

	if ((rc = workers_open(&owner)) != RC_OK)
		return rc;
	if (!workers_prepare(conf, &fresh))
		return RC_NOMEM;
	workers_set(conf, fresh);
	return RC_OK;
}

/* --- the beginning and the end -------------------------------------------- */

static void
serve_free(struct serve *s)
{
	workers_close();
	scheduler_free(s->scheduler);
	mux_free(s->mux);
	engine_free(s->engine);
	loop_close(s->loop);
	sem_destroy(&s->done);
	free(s);
}

void
serve_end(struct serve *s)
{
	if (s == NULL)
		return;
	carry_out(s, (struct order){ .kind = END });
	(void)pthread_join(s->thread, NULL);
	serve_free(s);
}

enum rc
serve_start(
    struct serve **out, struct conf *conf, int listener, struct store *store)
{
	struct serve *s = calloc(1, sizeof(*s));
	struct mux_owner owner = {
		.take = serve_exchange, .told = serve_event, .arg = s
	};
	enum rc rc;
	int error;

	*out = NULL;
	if (s == NULL)
		return RC_NOMEM;
	sem_init(&s->done, 0, 0);
	rc = loop_open(&s->loop);
	if (rc == RC_OK)
		rc = engine_open(&s->engine, store, s->loop, conf->workers,
		    &(struct engine_owner){ check_ended, s });
	if (rc == RC_OK)
		rc = open_spawner(store, engine_runs(s->engine), conf);
	if (rc == RC_OK) {
		owner.loop = s->loop;
		owner.helpers = engine_helpers(s->engine);
		rc = mux_open(&s->mux, &owner, conf, listener);
	}
	if (rc == RC_OK)
		rc = scheduler_start(&s->scheduler, conf, store,
		    &(struct scheduler_owner){ s->loop, check_ended, s });
	if (rc == RC_OK &&
	    (error = thread_start(
		 &s->thread, "loop", THREAD_STACK, serve_main, s)) != 0) {
		log_event(LOG_ERROR, "thread-not-started", NULL,
		    LOG_S("why", strerror(error)));
		rc = RC_NOMEM;
	}
	if (rc != RC_OK)
		serve_free(s);
	else
		*out = s;
	return rc;
}
