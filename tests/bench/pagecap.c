/*
 * Less memory: keeps the pages of a database in the page cache, and what a
 * process has allocated, below a number of megabytes.
 *
 *	pagecap MEGABYTES PID FILE...
 *
 * It stands in for a limit on a control group, which a container may not set.
 * Five times a second it counts, and drops pages at random places of the files
 * until they fit.  A kernel would drop those that were not used for longest
 * and keep what is read over and over, the upper pages of each index: so this
 * is the harder limit.  Pages that were not written to the disk yet stay.
 *
 * On SIGTERM it prints what it has seen as a line of JSON, in megabytes.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "keyname.h"

#define PERIOD   200 /* ms */
#define PIECE    (2 * 1024 * 1024)
#define MAX_FILE 8
#define PATIENCE 20 /* counts: what cannot be dropped is in use */

/* Linux 6.5 has it; the C library does not yet. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
struct range {
	uint64_t offset, length;
};
struct cache {
	uint64_t pages, dirty, writeback, evicted, recently_evicted;
};

static int files[MAX_FILE], nfiles;
static const char *paths[MAX_FILE];
static uint64_t page, draw;
static volatile sig_atomic_t ended;

static void
end(int number)
{
	(void)number;
	ended = 1;
}

/* A log is made anew, and a file that is not there yet has no pages. */
static void
open_files(void)
{
	struct stat now, then;
	int i;

	for (i = 0; i < nfiles; i++) {
		if (files[i] >= 0 && stat(paths[i], &now) == 0 &&
		    fstat(files[i], &then) == 0 && now.st_ino == then.st_ino)
			continue;
		if (files[i] >= 0)
			close(files[i]);
		files[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
	}
}

static uint64_t
cached(int fd)
{
	struct range all = { 0, 0 };
	struct cache cache = { 0 };

	if (syscall(SYS_cachestat, fd, &all, &cache, 0) != 0) {
		fprintf(stderr, "pagecap: cachestat: %s\n", strerror(errno));
		exit(1);
	}
	return cache.pages * page;
}

static uint64_t
all_cached(void)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < nfiles; i++)
		if (files[i] >= 0)
			sum += cached(files[i]);
	return sum;
}

/* Memory of its own; its pages of the files are counted as such. */
static uint64_t
allocated(const char *pid)
{
	char name[64], line[256];
	unsigned long kb = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%s/status", pid);
	f = fopen(name, "r");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "RssAnon:", 8) == 0)
			kb = strtoul(line + 8, NULL, 10);
	fclose(f);
	return (uint64_t)kb * 1024;
}

/* Drops a share of each file. */
static void
drop(double share)
{
	struct stat st;
	uint64_t pieces, n;
	int i;

	for (i = 0; i < nfiles; i++) {
		if (files[i] < 0 || fstat(files[i], &st) != 0 ||
		    st.st_size == 0)
			continue;
		pieces = ((uint64_t)st.st_size + PIECE - 1) / PIECE;
		for (n = (uint64_t)((double)pieces * share) + 1; n > 0; n--) {
			draw = keyname_mix(draw + 1);
			posix_fadvise(files[i], (off_t)(draw % pieces * PIECE),
			    PIECE, POSIX_FADV_DONTNEED);
		}
	}
}

static void
drop_all(void)
{
	int i;

	for (i = 0; i < nfiles; i++)
		if (files[i] >= 0)
			posix_fadvise(files[i], 0, 0, POSIX_FADV_DONTNEED);
}

int
main(int argc, char **argv)
{
	struct timespec wait = { 0, PERIOD * 1000000L };
	uint64_t limit, room, now, sum = 0, most = 0, left = 0;
	unsigned long counts = 0;
	int i, tries;

	nfiles = argc - 3;
	if (nfiles < 1 || nfiles > MAX_FILE) {
		fputs("usage: pagecap MEGABYTES PID FILE ...\n", stderr);
		return 2;
	}
	limit = strtoull(argv[1], NULL, 10) << 20;
	for (i = 0; i < nfiles; i++) {
		paths[i] = argv[i + 3];
		files[i] = -1;
	}
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	signal(SIGTERM, end);
	open_files();
	drop_all();
	while (!ended) {
		open_files();
		now = allocated(argv[2]);
		room = limit > now ? limit - now : 0;
		now = all_cached();
		counts++;
		sum += now >> 10;
		if (now > most)
			most = now;
		for (tries = 0; now > room && tries < PATIENCE; tries++) {
			drop((double)(now - room) / (double)now);
			now = all_cached();
		}
		if (now > left)
			left = now;
		nanosleep(&wait, NULL);
	}
	printf("{\"mean\": %.1f, \"most\": %.1f, \"left\": %.1f}\n",
	    (double)sum / 1024.0 / (double)counts, (double)most / 1048576.0,
	    (double)left / 1048576.0);
	return 0;
}
