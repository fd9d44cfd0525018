/*
 * The spawner: what run does with processes that stay, and store with their
 * locks.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "log.h"
#include "thread.h"
#include "workers.h"
#include "spawner.h"

struct spawner {
	struct store *store;
	pthread_t thread;
};

/* The file names the process before it is ready for requests. */
static void
start_process(struct spawner *k, const struct workers_job *job)
{
	struct workers_mark mark = { .held = -1, .token = "" };
	struct store_attempt lock = { .fd = -1, .note = -1 };
	char token[RECORD_TOKEN_LEN + 1] = "";
	bool marked = true;
	pid_t pid;

	if (job->tracked) {
		marked = store_process_lock(k->store, &lock, token) == RC_OK;
		mark.held = lock.fd;
		mark.lock = lock.lock;
		mark.token = token;
	}
	FAULT(PROCESS_MARKED);
	pid = workers_start(job->process, marked ? &mark : NULL);
	if (pid != -1) {
		store_attempt_started(&lock, pid);
		workers_ready(job->process);
	}
	store_attempt_release(&lock);
}

static void *
spawn_processes(void *arg)
{
	struct spawner *k = arg;
	struct workers_job job;
	enum workers_task task;

	while ((task = workers_wait(&job)) != WORKERS_END) {
		if (task == WORKERS_START)
			start_process(k, &job);
		else if (job.lock != 0)
			store_process_forget(k->store, job.lock);
	}
	return NULL;
}

static bool
is_needed(const struct conf *conf)
{
	if (conf->defaults.handler.protocol == CONF_PROTOCOL_FASTCGI)
		return true;
	for (size_t i = 0; i < conf->nroutes; i++)
		if (conf->routes[i].handler.protocol == CONF_PROTOCOL_FASTCGI)
			return true;
	return false;
}

enum rc
spawner_start(struct spawner **out, struct store *store, struct conf *conf)
{
	struct spawner *k;
	enum rc rc;
	int error;

	*out = NULL;
	if (!is_needed(conf))
		return RC_OK;
	if ((k = calloc(1, sizeof(*k))) == NULL)
		return RC_NOMEM;
	k->store = store;
	if ((rc = workers_open()) != RC_OK) {
		free(k);
		return rc;
	}
	rc = workers_set(conf);
	error = rc == RC_OK ? thread_start(&k->thread, "spawner", THREAD_STACK,
				  spawn_processes, k)
			    : 0;
	if (error != 0) {
		log_event(LOG_ERROR, "worker-not-started", NULL,
		    LOG_S("why", strerror(error)));
		rc = RC_NOMEM;
	}
	if (rc != RC_OK) {
		workers_abort();
		free(k);
		return rc;
	}
	*out = k;
	return RC_OK;
}

enum rc
spawner_reload(struct spawner **k, struct store *store, struct conf *conf)
{
	return *k != NULL ? workers_set(conf) : spawner_start(k, store, conf);
}

void
spawner_stop(struct spawner *k)
{
	if (k == NULL)
		return;
	workers_stop();
	(void)pthread_join(k->thread, NULL);
	workers_close();
	free(k);
}
