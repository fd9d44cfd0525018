/*
 * Power that fails at every write of a store's life: what is left on the disk
 * must be a store in the state after one of its transactions, whole.
 *
 * A life is recorded once (vfs.h).  A cut is a place in that record; of each
 * cut every survivor is made that disk.h can make by
 *
 *   a prefix of what was not synced, torn at any sector,
 *   leaving out one write, or one sector of one,
 *   a random subset of the sectors, or of groups of eight (seeded),
 *
 * and opened as a new process would.  All its rows must be those after one
 * transaction of the life:
 *
 *   full     the last one that the store said was done, or the one under way
 *   normal   any one up to that: power that fails may lose the end of the log
 *            (only crashes of software do not), but never a part of a
 *            transaction or one without those before it
 *
 * A handler's own transaction may be lost, whole, until the store commits
 * something or hardens, if the handler does not sync.  If it syncs nothing and
 * moves the log into the database too, SQLite promises nothing: cuts from there
 * to the store's hardening are left out.
 *
 * The keys must answer as that state says (life_autopsy).  Of some
 * survivors the new process is cut again, in its recovery and first steps.
 *
 *	power [all|more|some|few [N]]
 *		all survivors of the first cut, not a sample (half an hour or
 *		so), or a larger sample, or a smaller one; of the Nth promise
 *		only.  POWER=all and so on say the same.  POWER_SEED=TEXT draws
 *		the sample.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life.h"
#include "log.h"
#include "vfs.h"

#define STEPS_MAX   64
#define RANDOM      12  /* subsets tried at each cut */
#define SHOWN       5   /* failures told in full */
#define DEPTH       2   /* how often power fails */
#define COUNTED     16  /* of so many survivors one is counted */
#define NESTED      4   /* new processes cut again, at most */
#define NESTED_EACH 20  /* survivors of each */
#define NESTED_RARE 150 /* of so many survivors one */
#define NESTED_PART 30  /* the same where a body is there in part */

/* Sanitizers take their time. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 3
#else
#define SLOWER 1
#endif
#define FEWER 6 /* a small sample is so much smaller, */
#define FEW   3 /* and the smallest again */

struct seen {
	uint64_t *slot;
	size_t n, mask;
};

/* A life, and the state after each of its steps; state 0 is before. */
struct past {
	const struct life_step *steps;
	size_t nsteps;
	struct life ledger[STEPS_MAX + 1];
	uint64_t rows[STEPS_MAX + 1];
	bool nothing; /* there was no store before */
	size_t began[STEPS_MAX + 1], ended[STEPS_MAX + 1];
	size_t first; /* event: what comes before was there */
	/* what was there in part at the start: of that step of that life */
	const struct life_step *left;
	const struct life *left_by;
	struct disk_trace *trace;
};

struct run {
	const char *name;
	enum conf_durability durability;
	struct past *past;
	unsigned depth;
	uint64_t share; /* of 2^32: survivors that are looked at */
	size_t each;    /* cuts; one of so many where all survived, too */
	bool quiet;
	bool careless;   /* handlers may be, and nothing is promised then */
	bool unpromised; /* those cuts alone are made, or those alone are not */
	bool counting;   /* about how many there are */
	struct seen seen;
	size_t nested;
	/* the cut */
	struct disk *disk;
	size_t cut, lowest, highest; /* states allowed */
	bool anything;               /* may be left */
	/* counted */
	size_t cuts, possible, tried, failed;
	size_t parts; /* with a body that is there in part */
};

static char base[200];
static bool everything, more;
static unsigned fewer = 1; /* FEW: the smallest sample */
static uint64_t drawn;     /* by POWER_SEED */

static uint64_t
mix(uint64_t x)
{
	/* splitmix64 */
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static bool
seen_before(struct seen *s, uint64_t hash)
{
	uint64_t *old = s->slot;
	size_t i, n = s->mask + 1;

	if (hash == 0)
		hash = 1;
	if (old == NULL || s->n * 2 > n) {
		n = old == NULL ? 4096 : n * 2;
		s->slot = calloc(n, sizeof(*s->slot));
		if (s->slot == NULL)
			abort();
		s->n = 0;
		for (i = 0; old != NULL && i <= s->mask; i++)
			if (old[i] != 0) {
				struct seen new = { s->slot, s->n, n - 1 };

				(void)seen_before(&new, old[i]);
				s->n = new.n;
			}
		free(old);
		s->mask = n - 1;
	}
	for (i = hash & s->mask; s->slot[i] != 0; i = (i + 1) & s->mask)
		if (s->slot[i] == hash)
			return true;
	s->slot[i] = hash;
	s->n++;
	return false;
}

/* --- recording ---------------------------------------------------------- */

/* The state after the first sweep, which leaves nothing in part. */
static size_t
swept(const struct past *p)
{
	size_t i;

	for (i = 0; i < p->nsteps; i++)
		if (p->steps[i].verb == LIFE_SWEEP)
			return i + 1;
	return STEPS_MAX + 1;
}

/* Lives on in dir, from what is there; false if a step failed. */
static bool
live(struct past *p, const struct life *start, uint64_t rows, const char *dir)
{
	struct life l = *start;
	bool ok = true, no_keys;
	char text[64];
	enum rc rc;
	size_t i;

	snprintf(l.dir, sizeof(l.dir), "%s", dir);
	snprintf(l.file, sizeof(l.file), "%s/db", dir);
	vfs_record(dir);
	p->first = vfs_position();
	p->rows[0] = rows;
	p->ledger[0] = l;
	for (i = 0; i < p->nsteps && ok; i++) {
		p->began[i + 1] = vfs_position();
		rc = life_step(&l, &p->steps[i]);
		if (rc != RC_OK || l.wrong[0] != '\0') {
			printf("# step %zu, %s, failed: %s, %s\n", i,
			    life_step_text(&p->steps[i], text, sizeof(text)),
			    rc_text(rc), l.wrong);
			ok = false;
		}
		p->ended[i + 1] = vfs_position();
		/* To open the database while nothing has it open would change
		 * it. */
		p->rows[i + 1] = p->rows[i];
		if (l.store != NULL &&
		    (!life_snapshot(l.file, &p->rows[i + 1], &no_keys) ||
			(life_has_part(l.file) &&
			    (p->left == NULL || i + 1 >= swept(p)))))
			ok = false;
		p->ledger[i + 1] = l;
		p->ledger[i + 1].store = NULL;
	}
	if (l.store != NULL)
		(void)life_step(
		    &l, &(const struct life_step){ .verb = LIFE_CLOSE });
	p->trace = vfs_record_end();
	return ok;
}

/* --- one survivor ------------------------------------------------------- */

static struct past *past_new(const struct life_step *, size_t);
static void past_free(struct past *);
static void explore(struct run *, size_t budget);

static void
failed(struct run *r, const char *how, uint64_t choice, const char *why)
{
	if (r->failed++ < SHOWN && !r->quiet)
		printf("# %s: cut at %zu (states %zu to %zu), %s %" PRIu64
		       ": %s\n",
		    r->name, r->cut, r->lowest, r->highest, how, choice, why);
}

/* Whether in that state there may be the part of a body that there is: of the
 * step under way, or what was there at the start and is not swept. */
static bool
may_have_part(const struct run *r, size_t state, const char *file)
{
	const struct past *p = r->past;
	const size_t sweep = swept(p);

	if (state < r->highest &&
	    life_part_fits(file, &p->ledger[state], &p->steps[state]))
		return true;
	return p->left != NULL && state <= sweep && r->lowest < sweep &&
	    life_part_fits(file, p->left_by, p->left);
}

/* The state that these rows are, or -1. */
static int
state_of(const struct run *r, uint64_t rows, bool no_keys, const char *file)
{
	const bool part = life_has_part(file);
	size_t i;

	for (i = r->highest + 1; i-- > r->lowest;)
		if (r->past->rows[i] == rows &&
		    (!part || may_have_part(r, i, file)))
			return (int)i;
	if (r->lowest == 0 && r->past->nothing && no_keys && !part)
		return 0;
	return -1;
}

/* The new process's own life, cut again. */
static void
nest(struct run *r, const unsigned char *keep, bool grow, int state,
    uint64_t rows, bool part, const char *dir)
{
	struct life start;
	struct run n;
	char name[128];

	if (!disk_empty(dir) || !disk_make(r->disk, keep, grow, dir))
		abort();
	memset(&n, 0, sizeof(n));
	snprintf(
	    name, sizeof(name), "%s, cut at %zu and again", r->name, r->cut);
	n.name = name;
	n.durability = r->durability;
	n.depth = r->depth + 1;
	n.quiet = r->quiet;
	n.each = r->each;
	n.past = past_new(life_after, life_nafter);
	n.past->nothing = r->past->nothing && state == 0;
	if (part) {
		n.past->left = &r->past->steps[state];
		n.past->left_by = &r->past->ledger[state];
	}
	start = r->past->ledger[state];
	life_crashed(&start);
	if (live(n.past, &start, rows, dir))
		explore(&n, NESTED_EACH / fewer);
	else
		n.failed++;
	r->cuts += n.cuts;
	r->tried += n.tried;
	r->possible += n.possible;
	r->failed += n.failed;
	r->parts += n.parts;
	past_free(n.past);
}

static void
try(struct run *r, const unsigned char *keep, bool grow, const char *how,
    uint64_t choice)
{
	char dir[256];
	struct store *store;
	struct life l;
	uint64_t rows;
	bool no_keys, part = false;
	int state = -1;

	snprintf(dir, sizeof(dir), "%s/%u", base, r->depth);
	if (!disk_empty(dir) || !disk_make(r->disk, keep, grow, dir))
		abort();
	r->tried++;
	life_init(&l, dir, r->durability);
	l.max_wal = r->past->ledger[0].max_wal;
	if (life_step(&l, &(const struct life_step){ .verb = LIFE_OPEN }) !=
	    RC_OK)
		failed(r, how, choice, "cannot be opened");
	else if (!life_snapshot(l.file, &rows, &no_keys))
		failed(r, how, choice, "cannot be read");
	else if ((state = state_of(r, rows, no_keys, l.file)) == -1)
		failed(r, how, choice,
		    life_has_part(l.file)
			? "the rows, or a body in part, are of no state"
			: "the rows are of no state");
	else {
		part = life_has_part(l.file);
		r->parts += part;
		store = l.store;
		l = r->past->ledger[state];
		snprintf(l.dir, sizeof(l.dir), "%s", dir);
		snprintf(l.file, sizeof(l.file), "%s/db", dir);
		l.store = store;
		life_autopsy(&l);
		if (l.wrong[0] != '\0')
			failed(r, how, choice, l.wrong);
	}
	store_close(l.store);
	if (state >= 0 && r->depth + 1 < DEPTH && !r->quiet &&
	    r->nested < (everything ? 20 * NESTED : NESTED) &&
	    mix(r->tried ^ drawn) %
		    ((part ? NESTED_PART : NESTED_RARE) / fewer) ==
		0) {
		r->nested++;
		nest(r, keep, grow, state, rows, part, dir);
	}
}

/* --- all survivors of a cut --------------------------------------------- */

/* Whether to look at that one: not twice, and the sample only. */
static bool
wanted(struct run *r, uint64_t set, bool always)
{
	uint64_t hash = mix(set ^ mix(disk_epoch(r->disk)) ^
	    mix(r->lowest * STEPS_MAX + r->highest + 1));

	if (r->counting) {
		if (mix(hash) % COUNTED == 0 && !seen_before(&r->seen, hash))
			r->possible += COUNTED;
		return false;
	}
	return ((always && !r->quiet && (r->cut + drawn) % r->each == 0) ||
		   (mix(hash ^ drawn) & 0xffffffff) < r->share) &&
	    !seen_before(&r->seen, hash);
}

static uint64_t
unit_hash(const struct disk_unit *u)
{
	return mix(mix(u->event) + (uint64_t)u->offset);
}

static void
random_set(struct run *r, const struct disk_unit *u, size_t n, uint64_t seed,
    unsigned char *keep)
{
	/* of eight: how many survive; and the size of a sector */
	uint64_t likely = 1 + mix(seed) % 7;
	int64_t sector = mix(seed + 1) % 2 == 0 ? DISK_SECTOR : 8 * DISK_SECTOR;
	uint64_t set = mix(seed);
	size_t i;

	for (i = 0; i < n; i++) {
		keep[i] = mix(seed ^ mix(u[i].event) ^
			      mix((uint64_t)(u[i].offset / sector))) %
			8 <
		    likely;
		if (keep[i])
			set ^= unit_hash(&u[i]);
	}
	if (wanted(r, set, false))
		try(r, keep, mix(seed + 2) % 2 == 0, "random set", seed);
}

static void
survivors(struct run *r)
{
	const struct disk_unit *u;
	unsigned char *keep;
	uint64_t set, all = 0;
	size_t n, i, j;

	u = disk_units(r->disk, &n);
	keep = calloc(n + 1, 1);
	if (keep == NULL)
		abort();
	set = 0;
	for (i = 0; i <= n; i++) {
		if (wanted(r, set, i == n))
			try(r, keep, false, "prefix", i);
		if (i < n) {
			keep[i] = 1;
			set ^= unit_hash(&u[i]);
		}
	}
	all = set;
	for (i = 0; i < n; i++) {
		keep[i] = 0;
		if (wanted(r, all ^ unit_hash(&u[i]), false))
			try(r, keep, i % 2 == 0, "all but sector", i);
		keep[i] = 1;
	}
	for (i = 0; i < n; i = j) {
		set = all;
		for (j = i; j < n && u[j].event == u[i].event; j++) {
			keep[j] = 0;
			set ^= unit_hash(&u[j]);
		}
		if (j > i + 1 && wanted(r, set, false))
			try(r, keep, i % 2 == 0, "all but write", i);
		memset(keep + i, 1, j - i);
	}
	for (i = 0; n > 1 && i < RANDOM; i++)
		random_set(r, u, n, mix((r->cut * RANDOM + i) ^ drawn), keep);
	free(keep);
}

/* Which states a survivor of this cut may be in. */
static void
bounds(struct run *r)
{
	const struct past *p = r->past;
	size_t i;

	r->lowest = r->highest = 0;
	r->anything = false;
	for (i = 1; i <= p->nsteps; i++) {
		if (p->ended[i] <= r->cut && life_is_firm(&p->steps[i - 1])) {
			if (r->durability == CONF_DURABILITY_FULL)
				r->lowest = i;
			r->anything = false;
		}
		if (p->began[i] <= r->cut && r->careless &&
		    life_is_careless(&p->steps[i - 1]))
			r->anything = true;
		if (p->began[i] <= r->cut)
			r->highest = i;
	}
}

/* What does not hold is looked at until it shows. */
static bool
has_shown(const struct run *r)
{
	return r->quiet && r->failed > 0;
}

static void
cut_everywhere(struct run *r)
{
	free(r->seen.slot);
	memset(&r->seen, 0, sizeof(r->seen));
	r->cuts = 0;
	r->disk = disk_new(r->past->trace);
	for (r->cut = 0; r->cut <= r->past->trace->n && !has_shown(r);
	     r->cut++) {
		if (r->cut >= r->past->first) {
			r->cuts++;
			bounds(r);
			if (r->anything == r->unpromised)
				survivors(r);
		}
		(void)disk_advance(r->disk);
	}
	disk_free(r->disk);
	r->disk = NULL;
}

/* Looks at about as many survivors as budget says, and at some of those
 * where all survived; or at all of them. */
static void
explore(struct run *r, size_t budget)
{
	r->counting = true;
	cut_everywhere(r);
	r->counting = false;
	r->share =
	    (everything && r->depth == 0 && !r->quiet) || r->possible <= budget
	    ? 1ULL << 32
	    : ((uint64_t)budget << 32) / r->possible;
	cut_everywhere(r);
	free(r->seen.slot);
	r->seen.slot = NULL;
}

static struct past *
past_new(const struct life_step *steps, size_t n)
{
	struct past *p = calloc(1, sizeof(*p));

	if (p == NULL || n > STEPS_MAX)
		abort();
	p->steps = steps;
	p->nsteps = n;
	return p;
}

static void
past_free(struct past *p)
{
	disk_trace_free(p->trace);
	free(p);
}

/* --- cases -------------------------------------------------------------- */

struct promise {
	const char *text;
	enum conf_durability durability, promised;
	enum { WHOLE, SAID, CARELESS, CARELESS_ALL, PIECES, LIES } life;
	bool holds;
	size_t budget;
};

static struct past *
past_of(const struct promise *p)
{
	switch (p->life) {
	case WHOLE:
		break;
	case SAID:
		return past_new(life_said, life_nsaid);
	case CARELESS:
	case CARELESS_ALL: /* what the other one leaves out */
		return past_new(life_careless, life_ncareless);
	case PIECES:
		return past_new(life_pieces, life_npieces);
	case LIES: /* the first half, with syncs that do nothing */
		return past_new(life_pieces, life_npieces / 2);
	}
	return past_new(life_whole, life_nwhole);
}

static unsigned
part_of(const struct promise *p)
{
	return SLOWER * (more || !p->holds ? 1 : FEWER) *
	    (p->holds && p->life != PIECES ? fewer : 1);
}

/* Half of what was to be looked at is a sample; nothing is none. */
static bool
is_sample(const struct run *r, const struct promise *p)
{
	const size_t budget = p->budget / part_of(p);
	const size_t want = r->possible < budget ? r->possible : budget;

	return r->cuts > 0 && r->tried > 0 && r->tried >= want / 2;
}

static bool
cut_a_life(const struct promise *p)
{
	char dir[256];
	struct life l;
	struct run r;
	bool ok;

	snprintf(dir, sizeof(dir), "%s/life", base);
	if (!disk_empty(dir))
		abort();
	memset(&r, 0, sizeof(r));
	r.name = p->durability == CONF_DURABILITY_FULL ? "full" : "normal";
	r.durability = p->promised;
	r.quiet = !p->holds;
	life_init(&l, dir, p->durability);
	if (p->life == PIECES || p->life == LIES)
		l.max_wal = 1024 * 1024; /* its steps follow at once */
	r.careless = p->life == CARELESS || p->life == CARELESS_ALL;
	r.unpromised = p->life == CARELESS_ALL;
	r.each = (p->life == PIECES ? 12 : 3) * part_of(p);
	r.past = past_of(p);
	r.past->nothing = true;
	vfs_set_lies(p->life == LIES);
	ok = live(r.past, &l, 0, dir);
	vfs_set_lies(false);
	if (ok)
		explore(&r, p->budget / part_of(p));
	printf("# %s: %zu cuts; %zu of %zu survivors were looked at, %zu were "
	       "cut again; %zu had a body in part; %zu were wrong\n",
	    r.name, r.cuts, r.tried, r.possible, r.nested, r.parts, r.failed);
	ok = ok &&
	    (p->holds ? r.failed == 0 && is_sample(&r, p) : r.failed > 0) &&
	    (p->life != PIECES || r.parts > 0);
	past_free(r.past);
	return ok;
}

static void
remove_all(void)
{
	static const char *const names[] = { "life", "0", "1" };
	char dir[256];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(dir, sizeof(dir), "%s/%s", base, names[i]);
		if (disk_empty(dir))
			(void)rmdir(dir);
	}
	(void)rmdir(base);
}

int
main(int argc, char **argv)
{
	/* Those that do not hold show that the others can fail. */
	static const struct promise promises[] = {
		{ "full: after any cut there is all that was said to be done",
		    CONF_DURABILITY_FULL, CONF_DURABILITY_FULL, WHOLE, true,
		    800 },
		{ "normal: after any cut there is a state that was",
		    CONF_DURABILITY_NORMAL, CONF_DURABILITY_NORMAL, WHOLE, true,
		    400 },
		{ "normal: it does not keep what full promises",
		    CONF_DURABILITY_NORMAL, CONF_DURABILITY_FULL, WHOLE, false,
		    100 },
		{ "full: what handlers said is there whole, and if hardened",
		    CONF_DURABILITY_FULL, CONF_DURABILITY_FULL, SAID, true,
		    500 },
		{ "normal: what handlers said is there whole, or not at all",
		    CONF_DURABILITY_NORMAL, CONF_DURABILITY_NORMAL, SAID, true,
		    250 },
		{ "full: what a careless handler said is there once hardened",
		    CONF_DURABILITY_FULL, CONF_DURABILITY_FULL, CARELESS, true,
		    300 },
		{ "full: and was not to be relied on before",
		    CONF_DURABILITY_FULL, CONF_DURABILITY_FULL, CARELESS_ALL,
		    false, 300 },
		{ "full: a body in pieces is there whole, or has no key",
		    CONF_DURABILITY_FULL, CONF_DURABILITY_FULL, PIECES, true,
		    250 },
		{ "normal: the same", CONF_DURABILITY_NORMAL,
		    CONF_DURABILITY_NORMAL, PIECES, true, 150 },
		{ "normal: and not if syncs do nothing", CONF_DURABILITY_NORMAL,
		    CONF_DURABILITY_NORMAL, LIES, false, 200 },
	};
	const char *how = argc > 1 ? argv[1] : getenv("POWER");
	const char *seed = getenv("POWER_SEED");
	size_t i, n = sizeof(promises) / sizeof(promises[0]);
	bool ok, every = true;

	everything = how != NULL && strcmp(how, "all") == 0;
	more = everything || (how != NULL && strcmp(how, "more") == 0);
	if (how != NULL && strcmp(how, "few") == 0)
		fewer = FEW;
	for (i = 0; seed != NULL && seed[i] != '\0'; i++)
		drawn = mix(drawn + (unsigned char)seed[i]);
	log_set_level(LOG_ERROR + 1);
	vfs_install();
	vfs_base(base, sizeof(base));
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# POWER_SEED=%s\n1..%zu\n", seed != NULL ? seed : "", n);
	for (i = 0; i < n; i++) {
		if (argc > 2 && (size_t)atoi(argv[2]) != i + 1)
			continue;
		ok = cut_a_life(&promises[i]);
		printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1,
		    promises[i].text);
		every = every && ok;
	}
	remove_all();
	return every ? 0 : 1;
}
