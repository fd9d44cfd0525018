/*
 * Calls that fail, each in turn: the store must fail closed, and go on by
 * itself once they do not.
 *
 * A life (life.h) is lived again and again; in each one call of the system, or
 * one allocation, fails, once or from then on until it is repaired.  At any
 * time: a key runs once unless it was released, what was said to be done is
 * there, what was said to have failed is not.  Where it struck, the process is
 * killed - on a copy of its files, with all that was written, synced or not -
 * and after a failed sync the power fails too, which may lose what that sync
 * was for, for ever.  A reservation that failed may then come back as a dead
 * owner's, whose outcome is unknown; never as one that may run, and not at all
 * where the store could write over it before it told.
 *
 * Once repaired, each step is tried again, on the same store object, and must
 * succeed; a settlement that was left behind is made without being asked for.
 *
 *	faults [all|more|some|few [ROW]]
 *		each call, not a sample, or a larger sample, or a smaller one;
 *		one row of the table alone, in this process.  POWER=all and so
 *		on say the same.
 *
 * The smallest sample is drawn by POWER_SEED=TEXT: not evenly of all calls, but
 * of the steps, and each row others, so that all rows together strike in every
 * step.
 */
#include "config.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "clock.h"
#include "life.h"
#include "log.h"
#include "vfs.h"

#define ONCE    40 /* calls of a kind that fail once, and */
#define LASTING 12 /* from then on (memory: as once): so many of all */
#define JOBS    4  /* they mostly wait */
#define SHOWN   3
#define STEPS   32 /* of a life, at most */
#define COUNTS  3  /* lives in which nothing fails */
#define CUTS    4  /* survivors of power that fails after a failed sync */

/* ms: what a caller waits; what it takes to go on after a repair, at most. */
#define PATIENCE 40
#define RECOVERY 20000

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 3
#else
#define SLOWER 1
#endif
#define FEWER 2 /* a small sample is so much smaller, */
#define FEW   3 /* and the smallest again */

static const struct row {
	const char *text;
	enum vfs_call call;
	int code;
	bool partly, lasting;
} rows[] = {
#define BOTH(text, call, code, partly)                                        \
	{ text ", once", VFS_##call, SQLITE_##code, partly, false },          \
	{                                                                     \
		text ", and goes on", VFS_##call, SQLITE_##code, partly, true \
	}
	BOTH("a file cannot be opened", OPEN, CANTOPEN, false),
	BOTH("a file cannot be removed", DELETE, IOERR_DELETE, false),
	BOTH("a file cannot be looked for", ACCESS, IOERR_ACCESS, false),
	BOTH("a read fails", READ, IOERR_READ, false),
	BOTH("a write fails", WRITE, IOERR_WRITE, false),
	BOTH("a write fails halfway", WRITE, IOERR_WRITE, true),
	BOTH("the disk is full", WRITE, FULL, false),
	BOTH("the disk is full halfway", WRITE, FULL, true),
	BOTH("a sync fails", SYNC, IOERR_FSYNC, false),
	BOTH("a truncation fails", TRUNCATE, IOERR_TRUNCATE, false),
	BOTH("a size cannot be told", SIZE, IOERR_FSTAT, false),
	BOTH("a lock fails", LOCK, IOERR_LOCK, false),
	BOTH("a lock is another process's", LOCK, BUSY, false),
	BOTH("an unlock fails", UNLOCK, IOERR_UNLOCK, false),
	BOTH("the log's index cannot be mapped", SHM_MAP, IOERR_SHMMAP, false),
	BOTH("a lock of the log fails", SHM_LOCK, IOERR_SHMLOCK, false),
	/* from then on: SQLite itself tries for 10 s */
	{ "a lock of the log is another process's, once", VFS_SHM_LOCK,
	    SQLITE_BUSY, false, false },
	BOTH("SQLite has no memory", MEMORY, NOMEM, false),
	BOTH("there is no memory", OUR_MEMORY, NOMEM, false),
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* Each row strikes in each of these. */
static const struct {
	const struct life_step *steps;
	const size_t *n;
} lives[] = { { life_short, &life_nshort },
	{ life_said_short, &life_nsaid_short } };
#define LIVES (sizeof(lives) / sizeof(lives[0]))

struct trial {
	const struct row *row;
	size_t which; /* of lives */
	unsigned nth; /* 0: nothing fails */
	struct life life;
	bool seen; /* that it struck */
	bool ok;
};

static char base[200];
static bool everything, more;
static const char *drawn; /* few: by POWER_SEED; else NULL */

/* What each life calls up to the end of each step, if nothing fails: shared by
 * all processes. */
static unsigned (*calls)[STEPS][VFS_NCALLS];

/* --- memory of the program, see Makefile.am ----------------------------- */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
char *__real_strdup(const char *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
char *__wrap_strdup(const char *);

static bool
none_left(void)
{
	if (!vfs_no_memory(VFS_OUR_MEMORY))
		return false;
	errno = ENOMEM;
	return true;
}

void *
__wrap_malloc(size_t n)
{
	return none_left() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return none_left() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	return none_left() ? NULL : __real_realloc(p, n);
}

char *
__wrap_strdup(const char *s)
{
	return none_left() ? NULL : __real_strdup(s);
}

/* --- one trial ---------------------------------------------------------- */

static void
bad(struct trial *t, const char *step, const char *when, const char *what)
{
	if (t->ok)
		printf("# %s, %s %u, at %s, %s: %s\n", t->row->text,
		    vfs_call_name(t->row->call), t->nth, step, when, what);
	t->ok = false;
}

/* What a new process would find in those files. */
static void
look_inside(struct trial *t, struct disk *d, const unsigned char *keep,
    const char *step, const char *when)
{
	struct life l = t->life;

	snprintf(l.dir, sizeof(l.dir), "%s/after", base);
	snprintf(l.file, sizeof(l.file), "%s/db", l.dir);
	if (!disk_empty(l.dir) || !disk_make(d, keep, false, l.dir))
		abort();
	l.store = NULL;
	l.busy_timeout = 5000;
	l.max_wal = 1024 * 1024; /* the log may have a large body in it */
	vfs_spare_memory(true);
	life_autopsy(&l);
	vfs_spare_memory(false);
	/* A first start whose syncs fail may leave a file that a later one
	 * refuses: SQLite drops the journal of an empty file.  It has no key.
	 */
	if (t->row->call == VFS_SYNC && l.nkeys == 0 &&
	    strstr(l.wrong, "file is not a database") != NULL)
		return;
	if (l.wrong[0] != '\0')
		bad(t, step, when, l.wrong);
}

/* Killed now; and, where a sync failed, without power. */
static void
kill_it(struct trial *t, const char *step)
{
	struct disk_trace *trace = vfs_trace();
	struct disk *d = disk_new(trace);
	unsigned char *keep;
	unsigned seed = t->nth;
	size_t n, i, j;

	while (disk_advance(d))
		continue;
	look_inside(t, d, NULL, step, "killed");
	(void)disk_units(d, &n);
	if (t->row->call == VFS_SYNC && n > 0) {
		keep = calloc(n, 1);
		if (keep == NULL)
			abort();
		for (i = 0; i < CUTS; i++) {
			for (j = 0; j < n; j++) {
				seed = seed * 1103515245 + 12345;
				keep[j] = (seed >> 16) % CUTS < i;
			}
			look_inside(t, d, keep, step, "without power");
		}
		free(keep);
	}
	disk_free(d);
	disk_trace_free(trace);
}

/* It struck in that step, which ended so. */
static enum rc
struck(struct trial *t, const struct life_step *s, enum rc rc, const char *step)
{
	size_t i;

	t->seen = true;
	if (!t->row->lasting)
		for (i = 0; i < t->life.nkeys; i++)
			t->life.key[i].ghost = 0;
	kill_it(t, step);
	if (!t->row->lasting)
		return rc;
	if (rc != RC_OK && rc != RC_PENDING) {
		rc = life_step(&t->life, s);
		kill_it(t, step);
	}
	vfs_repair();
	return rc;
}

/* A settlement that was left behind is made by the store alone. */
static bool
settle_by_itself(struct trial *t, const struct life_step *s)
{
	int64_t until = clock_mono() + RECOVERY;
	struct life *l = &t->life;
	struct life_key *k;
	struct life look;

	for (k = l->key; strcmp(k->name, s->key) != 0; k++)
		continue;
	do {
		look = *l;
		for (k = look.key; strcmp(k->name, s->key) != 0; k++)
			continue;
		k->may &= ~k->before;
		life_look(&look, false);
		if (look.wrong[0] == '\0') {
			*l = look;
			return true;
		}
		if (vfs_struck() && !t->seen)
			(void)struck(t, s, RC_OK, s->key);
		usleep(10000);
	} while (clock_mono() < until);
	bad(t, s->key, "repaired", look.wrong);
	return false;
}

/* Again, until it is done. */
static bool
go_on(struct trial *t, const struct life_step *s, enum rc rc, const char *step)
{
	int64_t until = clock_mono() + RECOVERY;

	while (rc != RC_OK && rc != RC_PENDING && t->life.wrong[0] == '\0' &&
	    clock_mono() < until) {
		rc = life_step(&t->life, s);
		/* the log was too long before */
		if (vfs_struck() && !t->seen)
			rc = struck(t, s, rc, step);
		usleep(1000);
	}
	if (rc == RC_PENDING)
		return settle_by_itself(t, s);
	if (rc != RC_OK)
		bad(t, step, "repaired",
		    t->life.wrong[0] != '\0' ? t->life.wrong : rc_text(rc));
	return rc == RC_OK;
}

/* The least numbers, as some calls are made again while the store waits. */
static void
count(size_t which, size_t step)
{
	unsigned *n = calls[which][step], now;
	size_t i;

	for (i = 0; i < VFS_NCALLS; i++) {
		now = vfs_calls((enum vfs_call)i);
		if (n[i] == 0 || now < n[i])
			n[i] = now;
	}
}

static bool
live(struct trial *t)
{
	struct life *l = &t->life;
	const struct life_step *s;
	char dir[256], step[64];
	bool seen;
	enum rc rc;
	size_t i;

	snprintf(dir, sizeof(dir), "%s/life", base);
	if (!disk_empty(dir))
		abort();
	life_init(l, dir, CONF_DURABILITY_FULL);
	l->busy_timeout = PATIENCE;
	l->max_wal = 64 * 1024;
	l->full = t->row->lasting && t->row->code == SQLITE_FULL;
	t->ok = true;
	vfs_record(dir);
	if (t->nth > 0)
		vfs_break(&(struct vfs_fault){ t->row->call, t->nth,
		    t->row->code, t->row->partly, t->row->lasting });
	for (i = 0; i < *lives[t->which].n && t->ok; i++) {
		s = &lives[t->which].steps[i];
		(void)life_step_text(s, step, sizeof(step));
		seen = t->seen;
		rc = life_step(l, s);
		if (!t->seen && t->nth > 0 && vfs_struck())
			rc = struck(t, s, rc, step);
		if (l->wrong[0] == '\0' && !go_on(t, s, rc, step))
			break;
		/* What is promised after a sync of ours that failed.  Of one of
		 * a handler's the kernel tells each open file, and this VFS
		 * does not. */
		if (t->seen && !seen && t->row->call == VFS_SYNC &&
		    s->verb != LIFE_SAY)
			kill_it(t, step);
		if (l->wrong[0] != '\0')
			bad(t, step, "alive", l->wrong);
		if (t->nth == 0)
			count(t->which, i);
	}
	vfs_repair();
	if (t->ok) {
		life_look(l, false);
		(void)life_step(
		    l, &(const struct life_step){ .verb = LIFE_CLOSE });
		disk_trace_free(vfs_record_end());
		l->busy_timeout = 5000;
		life_autopsy(l);
		if (l->wrong[0] != '\0')
			bad(t, "the end", "opened again", l->wrong);
	} else {
		store_close(l->store);
		disk_trace_free(vfs_record_end());
	}
	return t->ok;
}

/* --- rows --------------------------------------------------------------- */

static bool
nothing_fails(void)
{
	static const struct row none = { "nothing", VFS_READ, SQLITE_OK, false,
		false };
	struct trial t;
	bool ok = true;
	size_t i;

	for (i = 0; i < LIVES * COUNTS; i++) {
		memset(&t, 0, sizeof(t));
		t.row = &none;
		t.which = i % LIVES;
		ok = live(&t) && ok;
	}
	return ok;
}

static bool
try_short_calls(void)
{
	bool ok;

	vfs_set_short(true);
	ok = nothing_fails();
	vfs_set_short(false);
	return ok;
}

/* Of n drawn calls that row makes, the number of the one at i. */
static unsigned
draw(const struct row *row, size_t which, unsigned i, unsigned n)
{
	unsigned from[STEPS + 1] = { 0 }, m = 0, now;
	uint32_t hash = 2166136261U; /* FNV-1a */
	uint64_t at;
	const char *s;
	size_t j;

	for (s = drawn; *s != '\0'; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619U;
	/* the steps with such calls */
	for (j = 0; j < *lives[which].n; j++) {
		now = calls[which][j][row->call];
		if (now > from[m])
			from[++m] = now;
	}
	/* in units of 2^-32 step; after 7 rows there again */
	hash += (uint32_t)(row - rows) * (UINT32_MAX / 7);
	at = (((uint64_t)i << 32) + hash) * m / n;
	m = (unsigned)(at >> 32);
	return 1 + from[m] +
	    (unsigned)((at & UINT32_MAX) * (from[m + 1] - from[m]) >> 32);
}

static bool
try_life(const struct row *row, size_t which)
{
	unsigned all = calls[which][*lives[which].n - 1][row->call];
	unsigned i, n, want, nth, struck_in = 0, wrong = 0;
	struct trial t;

	want = row->lasting && row->call != VFS_MEMORY ? LASTING : ONCE;
	want /= SLOWER * LIVES * (more ? 1 : FEWER);
	/* A sync that fails has the most to lose. */
	n = everything || all < want ||
		(row->call == VFS_SYNC && lives[which].n == &life_nsaid_short)
	    ? all
	    : want;
	if (drawn != NULL)
		n = (n + FEW - 1) / FEW;
	for (i = 0; i < n && wrong < SHOWN; i++) {
		/* spread; the first is always one of them */
		nth = drawn != NULL ? draw(row, which, i, n)
				    : 1 + (unsigned)((uint64_t)i * all / n);
		/* a life on a busy machine may have made more calls: an earlier
		 * one is made each time */
		do {
			t = (struct trial){
				.row = row, .which = which, .nth = nth
			};
			if (!live(&t))
				wrong++;
			nth -= (nth + 7) / 8;
		} while (drawn != NULL && t.ok && !t.seen && nth > 0);
		if (t.seen)
			struck_in++;
	}
	printf("# %s: %u of %u calls failed\n", row->text, struck_in, all);
	return wrong == 0 && struck_in > 0;
}

/* One row, in a process of its own; false if a trial of it failed. */
static bool
try_row(const struct row *row)
{
	bool ok = true;
	size_t i;

	for (i = 0; i < LIVES; i++)
		ok = try_life(row, i) && ok;
	return ok;
}

/* The first case; then each row; then the last. */
#define CASES (NROWS + 2)

static const char *
case_text(size_t i)
{
	return i == 0    ? "nothing fails"
	    : i <= NROWS ? rows[i - 1].text
			 : "short reads and writes";
}

static int
child(size_t i)
{
	char dir[256];
	bool ok;

	log_set_level(LOG_ERROR + 1);
	vfs_install();
	vfs_base(base, sizeof(base));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (i > NROWS)
		ok = try_short_calls();
	else
		ok = (i > 0 && calls[0][0][VFS_OPEN] > 0) || nothing_fails();
	if (i > 0 && i <= NROWS)
		ok = try_row(&rows[i - 1]) && ok;
	snprintf(dir, sizeof(dir), "%s/life", base);
	if (disk_empty(dir))
		(void)rmdir(dir);
	snprintf(dir, sizeof(dir), "%s/after", base);
	if (disk_empty(dir))
		(void)rmdir(dir);
	(void)rmdir(base);
	return ok ? 0 : 1;
}

int
main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : getenv("POWER");
	const char *seed = getenv("POWER_SEED");
	size_t i, begun = 0, ended = 0, failed = 0;
	pid_t pids[CASES], pid;
	bool ok;
	int status;

	everything = how != NULL && strcmp(how, "all") == 0;
	more = everything || (how != NULL && strcmp(how, "more") == 0);
	if (how != NULL && strcmp(how, "few") == 0)
		drawn = seed != NULL ? seed : "";
	calls = mmap(NULL, LIVES * sizeof(*calls), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		return 2;
	if (argc > 2)
		return child((size_t)atoi(argv[2]));
	printf("# POWER_SEED=%s\n1..%zu\n", drawn != NULL ? drawn : "", CASES);
	while (ended < CASES) {
		/* the rows need what the first case has counted */
		while (
		    begun < CASES && begun - ended < (ended == 0 ? 1 : JOBS)) {
			fflush(stdout);
			pids[begun] = fork();
			if (pids[begun] == -1)
				return 2;
			if (pids[begun] == 0) {
				status = child(begun);
				fflush(stdout);
				_exit(status);
			}
			begun++;
		}
		pid = wait(&status);
		for (i = 0; pids[i] != pid; i++)
			continue;
		ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (WIFSIGNALED(status))
			printf("# %s: signal %d\n", case_text(i),
			    WTERMSIG(status));
		ended++;
		if (!ok)
			failed++;
		printf(
		    "%sok %zu - %s\n", ok ? "" : "not ", ended, case_text(i));
	}
	return failed == 0 ? 0 : 1;
}
