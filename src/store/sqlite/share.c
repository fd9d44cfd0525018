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
#include "store_ops.h"
#include "share.h"

/* Shortest and longest gap (ms). */
#define GAP_MIN 1
#define GAP_MAX 50

/* A process that holds the lock for this long (ms) is logged. */
#define HELD_LONG 1000

/* SQLite's file format, section 4.1 of "WAL-mode File Format": a writer locks
 * this byte of the log's index. */
#define WRITE_LOCK 120

/* --- gaps --------------------------------------------------------------- */

void
share_locked(struct share *share)
{
	share->since = 0;
	share->begun =
	    atomic_load(&share->base->sharing) > 0 ? clock_mono() : 0;
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

/*
 * The process of a line of proc(5), locks, such as "1: POSIX  ADVISORY  WRITE
 * 4711 fe:01:42 120 120", if that locks the byte of the file with that inode;
 * else 0.
 */
static pid_t
holder_of_line(char *line, ino_t ino)
{
	enum { NUMBER, KIND, HOW, MODE, PID, FILE_ID, START, END, NWORDS };
	char *word[NWORDS], *rest = line, *inode;
	pid_t pid;

	for (int i = 0; i < NWORDS; i++)
		if ((word[i] = strtok_r(NULL, " \n", &rest)) == NULL)
			return 0;
	if (strcmp(word[KIND], "POSIX") != 0 ||
	    strcmp(word[MODE], "WRITE") != 0 ||
	    (inode = strrchr(word[FILE_ID], ':')) == NULL ||
	    strtoull(inode + 1, NULL, 10) != ino ||
	    strtoull(word[START], NULL, 10) > WRITE_LOCK ||
	    (strcmp(word[END], "EOF") != 0 &&
		strtoull(word[END], NULL, 10) < WRITE_LOCK))
		return 0;
	pid = (pid_t)strtol(word[PID], NULL, 10);
	return pid > 0 && pid != getpid() ? pid : 0;
}

/* The process that holds the write lock, or 0 if the kernel does not say: it
 * gives the list a page at a time, and may leave out a lock if others vanish
 * meanwhile. */
static pid_t
find_holder(const char *file)
{
	char name[4096], line[256];
	struct stat st;
	FILE *locks;
	pid_t pid = 0;

	if ((size_t)snprintf(name, sizeof(name), "%s-shm", file) >=
		sizeof(name) ||
	    lstat(name, &st) == -1 ||
	    (locks = fopen("/proc/locks", "re")) == NULL)
		return 0;
	while (pid == 0 && fgets(line, sizeof(line), locks) != NULL)
		pid = holder_of_line(line, st.st_ino);
	fclose(locks);
	return pid;
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

static void
share_report(const struct share *share, int64_t held)
{
	char comm[32] = "";

	if (share->holder > 0)
		share_find_command(share->holder, comm, sizeof(comm));
	log_event(LOG_WARN, "write-lock-held", NULL,
	    LOG_I("pid", share->holder), LOG_S("comm", comm),
	    LOG_I("ms", held));
}

void
share_blocked(struct share *share)
{
	const int64_t now = clock_mono();
	const pid_t holder = find_holder(share->base->file);

	if (share->since == 0 || (holder != 0 && holder != share->holder)) {
		share->holder = holder;
		share->since = now;
		share->reported = false;
	} else if (!share->reported && now - share->since >= HELD_LONG) {
		share->reported = true;
		share_report(share, now - share->since);
	}
}
