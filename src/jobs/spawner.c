/*
 * The spawner: what run does with processes that stay, and store with their
 * locks.
 */
#include "config.h"

#include "fault.h"
#include "workers.h"
#include "spawner.h"

/* The file names the process before it is ready for requests. */
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

enum rc
spawner_open(struct store *store, struct runs *runs, struct conf *conf)
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
