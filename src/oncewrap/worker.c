/*
 * Workers: each takes a request and sends its answer.
 *
 * A handler dies with the thread that started it (PR_SET_PDEATHSIG), so a
 * worker ends only when there are no more requests.  The main thread takes all
 * signals; workers have them blocked.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgistream.h"
#include "exchange.h"
#include "fault.h"
#include "log.h"
#include "metrics.h"
#include "respond.h"
#include "run.h"
#include "thread.h"
#include "worker.h"

/* Stack (bytes): enough for the buffers of output and the calls below, for up
 * to 1024 workers. */
#define STACK_SIZE  (256 * 1024)
#define OUTPUT_SIZE (32 * 1024)

struct worker_pool {
	struct mux *mux;
	struct engine *engine;
	unsigned n;
	atomic_uint running; /* workers that have not ended */
	pthread_t thread[];
};

/* Sends a piece of the output, in which the head may end. */
static enum rc
send_piece(
    struct exchange *x, struct cgistream *head, const char *piece, size_t len)
{
	char out[2 * OUTPUT_SIZE];

	if (cgistream_is_body(head))
		return exchange_write(x, piece, len);
	len = cgistream_pass(head, piece, len, out);
	return len > 0 ? exchange_write(x, out, len) : RC_OK;
}

/* Logs the end of a program whose output was streamed. */
static void
log_end(const struct request *rq, const struct run_facts *facts)
{
	log_event(LOG_INFO, "unguarded", rq->log,
	    LOG_S("end", run_end_name(facts->end)),
	    LOG_I("exit", facts->exit_status), LOG_I("signal", facts->signal),
	    LOG_I("ms", facts->milliseconds));
}

/*
 * Sends the handler's output to the client.  The handler runs to its end even
 * if the client has gone.
 */
static void
stream(struct exchange *x, struct run *run, struct answer *answer)
{
	const struct request *rq = exchange_request(x);
	struct cgistream head = { 0 };
	struct run_facts facts;
	char output[OUTPUT_SIZE];
	bool any = false, gone = false;
	size_t n;

	while ((n = run_read(run, output, sizeof(output))) > 0) {
		if (!any)
			rq->log->status = cgistream_status(output, n);
		any = true;
		if (gone ||
		    (send_piece(x, &head, output, n) == RC_OK &&
			head.state != CGISTREAM_REFUSED))
			continue;
		gone = true;
		run_discard(run);
	}
	run_finish(run, &facts);
	if (any && head.state != CGISTREAM_REFUSED) {
		log_end(rq, &facts);
		exchange_end(x, facts.exit_status, facts.end != RUN_EXITED);
		return;
	}
	if (facts.end == RUN_NOT_STARTED)
		respond_not_started(answer, &facts, rq);
	else
		respond_no_answer(answer, &facts, rq);
	log_end(rq, &facts);
	exchange_answer(x, answer);
}

static void *
work(void *arg)
{
	struct worker_pool *pool = arg;
	struct exchange *x;
	struct answer answer;
	struct run *run;

	answer_init(&answer);
	while ((x = mux_next(pool->mux)) != NULL) {
		FAULT(REQUEST_TAKEN);
		metrics_add(METRICS_WORKERS_BUSY, 1);
		run = engine_handle(pool->engine, exchange_conf(x),
		    exchange_request(x), &answer);
		if (run != NULL)
			stream(x, run, &answer);
		else
			exchange_answer(x, &answer);
		answer_free(&answer);
		metrics_add(METRICS_WORKERS_BUSY, -1);
	}
	/* The main thread waits for signals only. */
	if (atomic_fetch_sub(&pool->running, 1) == 1)
		(void)kill(getpid(), SIGUSR1);
	return NULL;
}

/* Returns 0, or the error of the first thread that could not be started. */
static int
start_threads(struct worker_pool *pool, unsigned n)
{
	int error = 0;

	while (error == 0 && pool->n < n) {
		atomic_fetch_add(&pool->running, 1);
		error = thread_start(
		    &pool->thread[pool->n], "worker", STACK_SIZE, work, pool);
		if (error == 0)
			pool->n++;
		else
			atomic_fetch_sub(&pool->running, 1);
	}
	return error;
}

enum rc
worker_start(struct worker_pool **out, struct mux *mux, struct engine *engine,
    unsigned n)
{
	struct worker_pool *pool;
	int error;

	*out = NULL;
	pool = calloc(1, sizeof(*pool) + n * sizeof(pool->thread[0]));
	if (pool == NULL)
		return RC_NOMEM;
	pool->mux = mux;
	pool->engine = engine;
	error = start_threads(pool, n);
	if (error != 0) {
		log_event(LOG_ERROR, "worker-not-started", NULL,
		    LOG_S("why", strerror(error)), LOG_I("started", pool->n));
		mux_stop(mux, 0);
		worker_join(pool);
		return RC_NOMEM;
	}
	*out = pool;
	return RC_OK;
}

bool
worker_ended(const struct worker_pool *pool)
{
	return atomic_load(&pool->running) == 0;
}

void
worker_join(struct worker_pool *pool)
{
	unsigned i;

	if (pool == NULL)
		return;
	for (i = 0; i < pool->n; i++)
		(void)pthread_join(pool->thread[i], NULL);
	free(pool);
}
