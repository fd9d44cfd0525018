/*
 * The key store, where handlers write the same database.
 *
 * SQLite's lock has no queue.  A process that writes in a loop holds it nearly
 * always, because the others try it only now and then.  So while handlers share
 * the database, the committer leaves it free for as long as it has just held
 * it.
 *
 * If another process keeps the lock, the log names that process: nothing else
 * would tell why all requests are refused.  The kernel knows it (proc(5),
 * locks).
 */
#include "config.h"

#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "dbfile.h"
#include "share.h"

/* Shortest and longest gap (ms). */
#define GAP_MIN 1
#define GAP_MAX 50

/* A process that holds the lock for this long (ms) is logged. */
#define HELD_LONG 1000

/* SQLite's file format, section 4.1 of "WAL-mode File Format": a writer locks
 * this byte of the log's index. */
#define WRITE_LOCK 120

void
share_init(struct share *share, struct lock *lock)
{
	memset(share, 0, sizeof(*share));
	share->lock = lock;
}

/* --- sharers ------------------------------------------------------------- */

void
share_add(struct share *share, struct store_sharer *sharer)
{
	lock_take(share->lock);
	sharer->next = share->first;
	share->first = sharer;
	atomic_store(&share->used, true);
	atomic_fetch_add(&share->n, 1);
	lock_give(share->lock);
}

void
share_remove(struct share *share, struct store_sharer *sharer)
{
	struct store_sharer **p;

	lock_take(share->lock);
	for (p = &share->first; *p != sharer; p = &(*p)->next)
		continue;
	*p = sharer->next;
	atomic_fetch_sub(&share->n, 1);
	lock_give(share->lock);
}

/* --- gaps --------------------------------------------------------------- */

void
share_locked(struct share *share)
{
	share->since = 0;
	share->begun = atomic_load(&share->n) > 0 ? clock_mono() : 0;
}

void
share_unlocked(struct share *share)
{
	struct timespec gap = { 0, 0 };
	int64_t ms;

	if (share->begun == 0)
		return;
	ms = clock_mono() - share->begun;
	if (ms < GAP_MIN)
		ms = GAP_MIN;
	if (ms > GAP_MAX)
		ms = GAP_MAX;
	gap.tv_nsec = ms * 1000000;
	nanosleep(&gap, NULL);
}

/* --- the holder of the lock ---------------------------------------------- */

/* The process that holds the write lock, or 0 if the kernel does not say. */
static pid_t
find_holder(const char *file)
{
	struct dbfile_lock lock = { .write = true, .byte = WRITE_LOCK };
	char name[4096];
	struct stat st;

	if ((size_t)snprintf(name, sizeof(name), "%s-shm", file) >=
		sizeof(name) ||
	    lstat(name, &st) == -1)
		return 0;
	lock.ino = st.st_ino;
	return dbfile_lock_holder(&lock);
}

static void
share_find_command(pid_t pid, char *comm, int size)
{
	char name[64];
	FILE *file;

	comm[0] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/comm", (int)pid);
	if ((file = fopen(name, "re")) == NULL)
		return;
	if (fgets(comm, size, file) != NULL)
		comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
}

/* Logs the holder of the lock, with the handler's request if the holder is a
 * handler of ours or in its process group. */
static void
share_report(struct share *share, int64_t held)
{
	const pid_t group = share->holder > 0 ? getpgid(share->holder) : -1;
	const struct log_request *log = NULL;
	const struct store_sharer *s;
	char comm[32] = "";

	if (share->holder > 0)
		share_find_command(share->holder, comm, sizeof(comm));
	lock_take(share->lock);
	for (s = share->first; s != NULL && s->pid != group; s = s->next)
		continue;
	if (s != NULL)
		log = s->log;
	log_event(LOG_WARN, "write-lock-held", log, LOG_I("pid", share->holder),
	    LOG_S("comm", comm), LOG_I("ms", held));
	lock_give(share->lock);
}

void
share_blocked(struct share *share)
{
	const int64_t now = clock_mono();
	const pid_t holder = find_holder(share->file);

	if (share->since == 0 || holder != share->holder) {
		share->holder = holder;
		share->since = now;
		share->reported = false;
	} else if (!share->reported && now - share->since >= HELD_LONG) {
		share->reported = true;
		share_report(share, now - share->since);
	}
}
