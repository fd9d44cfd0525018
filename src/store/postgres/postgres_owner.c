/*
 * Which processes live: those of this host by the kernel's locks, exactly;
 * those of other hosts by their rows in once_owner.
 *
 * A row that has not moved for owner_timeout, by this host's own boot clock and
 * since this process has looked, makes its owner suspected.  That is no proof:
 * the process may be cut off from the database, and its handler still runs.
 * So its keys become unknown and never free, and it may still record its
 * outcomes.
 *
 * A row of this host's name and of another boot is that of a process of the
 * past, or of a host with a copy of this one's disk.  The process is gone if
 * its lock is free, and was held in this very folder: the lock file names it,
 * or it was seen held.  Else it is only suspected.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "log.h"
#include "postgres_impl.h"

/* Every so many beats all leases and queued keys are looked at.  One may have
 * an earlier time than those that were there: its COMMIT waited for a standby
 * longer than that, or the server's clock was set. */
#define FIRSTS_LOOK 100

/* What a look has found. */
struct sight {
	int64_t id, beat; /* beat 0: it has no row in once_owner */
	bool here;        /* of this host's name */
	bool past;        /* of another boot */
	bool old;         /* it has not moved for days */
	bool busy;        /* it has leases, or tries effects */
	char host[POSTGRES_HOST_LEN + 1]; /* "": it had no row yet */
};

/* An owner, in the order of their numbers. */
struct postgres_watched {
	struct postgres_watched *next;
	struct sight last;
	int64_t since;    /* clock_boot() when that beat was seen first */
	bool named;       /* the lock file says that it held its lock here */
	bool held;        /* its lock was seen held */
	bool name_shared; /* it is not, and has moved */
	bool there;       /* it was in the last look */
	bool told;        /* its suspicion is logged */
};

void
postgres_watched_free(struct postgres_watched *w)
{
	struct postgres_watched *next;

	for (; w != NULL; w = next) {
		next = w->next;
		free(w);
	}
}

/* The place of that owner in the list. */
static struct postgres_watched **
owner_place(struct postgres_watched **list, int64_t id)
{
	while (*list != NULL && (*list)->last.id < id)
		list = &(*list)->next;
	return list;
}

/* Looks for the lock of a process with this host's name. */
static void
owner_test(const struct store *s, struct postgres_watched *w, bool moved)
{
	bool alive;

	if (s->liveness == NULL ||
	    liveness_alive(s->liveness, w->last.id, &alive) != RC_OK)
		return;
	w->held = w->held || alive;
	w->name_shared = !w->held && (w->name_shared || moved);
}

static enum rc
owner_see(struct store *s, struct sight *seen, int64_t now)
{
	struct postgres_watched **at = owner_place(&s->watched, seen->id);
	struct postgres_watched *w = *at;
	bool moved;

	if (w == NULL || w->last.id != seen->id) {
		if ((w = calloc(1, sizeof(*w))) == NULL)
			return RC_NOMEM;
		w->last = *seen;
		w->since = now;
		w->next = *at;
		*at = w;
		w->named = seen->here && s->liveness != NULL &&
		    postgres_host_held(s->liveness, seen->id);
	}
	moved = seen->beat != w->last.beat;
	if (seen->host[0] == '\0')
		memcpy(seen->host, w->last.host, sizeof(seen->host));
	w->last = *seen;
	w->there = true;
	if (seen->here)
		owner_test(s, w, moved);
	if (moved) {
		w->since = now;
		w->told = false;
	}
	if (w->name_shared && !atomic_exchange(&s->name_shared, true))
		log_event(LOG_ERROR, "host-not-unique", NULL,
		    LOG_S("host", s->host.name), LOG_I("owner", seen->id));
	return RC_OK;
}

/*
 * Begins a look.  If this process has not looked for long, neither the database
 * nor this host may have worked meanwhile, and the others may not have been
 * able to move.  So all of them get their time anew.
 */
static void
owner_begin(struct store *s, int64_t now)
{
	const bool late = now - s->looked > s->owner_timeout / 2;

	for (struct postgres_watched *w = s->watched; w != NULL; w = w->next) {
		w->there = false;
		if (late)
			w->since = now;
	}
	s->looked = now;
}

/* Forgets owners that are not there any more. */
static void
owner_sweep(struct store *s)
{
	struct postgres_watched **at = &s->watched, *w;

	while ((w = *at) != NULL) {
		if (w->there) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
}

/* Reads the result of the statement "owners". */
static enum rc
owner_read(struct store *s, struct pg *pg)
{
	char boot[POSTGRES_BOOT_LEN + 1];
	const int64_t now = clock_boot();
	struct sight seen;
	enum rc rc;

	if ((rc = pg_result(pg)) != RC_OK)
		return rc;
	lock_take(&s->lock);
	owner_begin(s, now);
	while ((rc = pg_row(pg, "iffi??", &seen.id, seen.host,
		    sizeof(seen.host), boot, sizeof(boot), &seen.beat,
		    &seen.old, &seen.busy)) == RC_OK) {
		seen.here = seen.host[0] != '\0' &&
		    strcmp(seen.host, s->host.name) == 0;
		seen.past = strcmp(boot, s->host.boot) != 0;
		if ((rc = owner_see(s, &seen, now)) != RC_OK)
			break;
	}
	if (rc == RC_NOTFOUND) {
		rc = RC_OK;
		owner_sweep(s);
	}
	lock_give(&s->lock);
	return rc;
}

static enum rc
run_look(struct pg *pg, void *arg)
{
	struct store *s = arg;

	pg_send(pg, PG_QUERY_OWNERS, "i", s->base.leases_from);
	return owner_read(s, pg);
}

enum rc
postgres_owner_look(struct store *s)
{
	return txn_run(s->pool, TXN_LOOK, run_look, s);
}

static void
owner_send(struct store *s, struct pg *pg, enum pg_query query)
{
	pg_send(pg, query, "issi", s->owner, s->host.name, s->host.boot,
	    (int64_t)getpid());
}

/* RC_LOST: the secret is another one, because a copy into the store ended since
 * the store was opened.  Local files are named by it.  No other thread uses it
 * before the first row is there. */
static enum rc
read_secret(struct store *s, struct pg *pg)
{
	const void *secret;
	int64_t version;
	enum rc rc;
	size_t n;

	if ((rc = pg_one(pg, "ib", &version, &secret, &n)) != RC_OK)
		return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
	if (version != PG_QUERY_VERSION || n != sizeof(s->secret))
		return RC_CORRUPT;
	if (memcmp(s->secret, secret, n) == 0)
		return RC_OK;
	if (s->has_thread)
		return RC_CORRUPT;
	memcpy(s->secret, secret, n);
	return RC_LOST;
}

static enum rc
run_new(struct pg *pg, void *arg)
{
	struct store *s = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_META_FOR_OWNER, "");
	owner_send(s, pg, PG_QUERY_OWNER_NEW);
	rc = read_secret(s, pg);
	return rc == RC_OK ? pg_update(pg, NULL) : rc;
}

enum rc
postgres_owner_new(struct store *s)
{
	enum rc rc = postgres_host_holds(s->liveness);

	if (rc != RC_OK)
		return rc;
	s->owner = liveness_self(s->liveness);
	return postgres_run(s, TXN_WRITE, run_new, s);
}

struct beat {
	struct store *s;
	int64_t losses;
	int64_t leases_from, queued_from;
	struct postgres_clock clock;
	bool waits; /* its COMMIT does, for a standby */
	struct postgres_confirmed confirmed; /* once it is */
};

static enum rc
run_beat(struct pg *pg, void *arg)
{
	struct beat *b = arg;
	struct store *s = b->s;
	const bool all = s->beats % FIRSTS_LOOK == 0;
	const char *snapshot;
	enum rc rc;

	postgres_clock_send(s, pg);
	owner_send(s, pg, PG_QUERY_OWNER_BEAT);
	pg_send(pg, PG_QUERY_OWNERS, "i", s->base.leases_from);
	pg_send(pg, PG_QUERY_META, "");
	pg_send(pg, PG_QUERY_FIRSTS, "ii",
	    all ? 0 : (int64_t)s->base.leases_from,
	    all ? 0 : (int64_t)s->base.queued_from);
	if ((rc = postgres_clock_read(pg, &b->clock)) != RC_OK ||
	    (rc = pg_one(pg, "?p", &b->waits, &snapshot)) != RC_OK)
		return rc;
	postgres_confirmed_read(snapshot, &b->confirmed);
	FAULT(OWNER_MOVED);
	if ((rc = owner_read(s, pg)) == RC_OK)
		rc = pg_one(pg, "--i", &b->losses);
	if (rc == RC_OK)
		rc = pg_one(pg, "ii", &b->leases_from, &b->queued_from);
	return rc == RC_OK ? postgres_clock_judge(s, pg, &b->clock) : rc;
}

/* The server's log has one order: with this COMMIT the standby has the changes
 * of all transactions that had ended before. */
static void
beat_confirmed(const struct beat *b)
{
	struct store *s = b->s;

	s->standby = b->waits;
	lock_take(&s->lock);
	s->confirmed = b->confirmed;
	s->confirmed.known = b->waits && b->confirmed.known;
	s->confirmed.timeline = txn_timeline(s->pool);
	lock_give(&s->lock);
}

/* What operators have accepted until now is not about a loss to come. */
enum rc
postgres_owner_beat(struct store *s)
{
	struct beat b = { .s = s };
	enum rc rc = postgres_run(s, TXN_WRITE, run_beat, &b);
	struct txn_health h;

	txn_health(s->pool, &h);
	if (rc == RC_OK && !h.went_back)
		s->losses = b.losses;
	if (rc == RC_OK) {
		s->base.leases_from = b.leases_from;
		s->base.queued_from = b.queued_from;
		s->beats++;
		beat_confirmed(&b);
		postgres_clock_judged(s, &b.clock);
	}
	return rc;
}

/* --- which are gone ------------------------------------------------------- */

/* Whether an owner is suspected.  The time of the last look counts: of what
 * came after it nothing is known. */
static bool
owner_is_suspected(const struct store *s, struct postgres_watched *w)
{
	const int64_t silent = s->looked - w->since;

	if (silent < s->owner_timeout)
		return false;
	if (!w->told)
		log_event(LOG_WARN, "owner-suspected", NULL,
		    LOG_S("host", w->last.host), LOG_I("owner", w->last.id),
		    LOG_I("silent_ms", silent));
	w->told = true;
	return true;
}

/* Whether that was this process, before an operator accepted a loss. */
static bool
owner_was_this(const struct store *s, int64_t id)
{
	const struct postgres_former *f;

	for (f = s->former; f != NULL; f = f->next)
		if (liveness_self(f->liveness) == id)
			return true;
	return false;
}

/* Whether an owner is gone, as far as is known from here: it is of this host,
 * and its lock is free; or it is suspected: of another host or boot, and it has
 * not moved for owner_timeout of this host's clock. */
static bool
owner_gone(
    const struct store *s, struct postgres_watched *w, struct store_gone *g)
{
	const struct sight *o = &w->last;

	*g = (struct store_gone){ .id = o->id, .beat = o->beat };
	if (owner_was_this(s, o->id) || !o->here || w->name_shared ||
	    (o->past && !w->held && !w->named)) {
		g->suspected =
		    owner_was_this(s, o->id) || owner_is_suspected(s, w);
		return g->suspected;
	}
	/* On a copy of this one's disk it would move. */
	if (o->past && !w->held && s->looked - w->since < s->owner_timeout)
		return false;
	return s->liveness != NULL && liveness_is_dead(s->liveness, o->id);
}

/* *known: the owner was in the last look. */
static bool
find_gone(struct store *s, int64_t owner, struct store_gone *g, bool *known)
{
	struct postgres_watched *w;
	bool gone = false;

	lock_take(&s->lock);
	w = *owner_place(&s->watched, owner);
	*known = w != NULL && w->last.id == owner;
	if (*known)
		gone = owner_gone(s, w, g);
	lock_give(&s->lock);
	return gone;
}

bool
postgres_owner_gone(struct store *s, int64_t owner, struct store_gone *g)
{
	struct liveness *liveness;
	bool known, gone;

	/* An operator may not have opened the locks of this host yet. */
	if (owner <= 0 || owner == s->owner ||
	    postgres_liveness(s, &liveness) != RC_OK)
		return false;
	gone = find_gone(s, owner, g, &known);
	if (!known && postgres_owner_look(s) == RC_OK)
		gone = find_gone(s, owner, g, &known);
	return gone;
}

bool
postgres_owner_may_be_gone(struct store *s, int64_t owner)
{
	struct store_gone g;
	bool known;

	return owner > 0 && owner != s->owner &&
	    (find_gone(s, owner, &g, &known) || !known);
}

enum rc
postgres_lost_owners(struct store *s, int64_t after, struct store_gone *gone,
    size_t max, size_t *n)
{
	struct postgres_watched *w;

	*n = 0;
	lock_take(&s->lock);
	for (w = *owner_place(&s->watched, after + 1); w != NULL && *n < max;
	     w = w->next)
		if (w->last.busy && owner_gone(s, w, &gone[*n]))
			++*n;
	lock_give(&s->lock);
	return RC_OK;
}

/* --- rows that are not needed any more ------------------------------------ */

/* The next one after that owner whose row is of no use: it is dead, or has not
 * moved for days; 0: none. */
static int64_t
next_useless(struct store *s, int64_t after)
{
	struct postgres_watched *w;
	struct store_gone g;
	int64_t id = 0;

	lock_take(&s->lock);
	for (w = *owner_place(&s->watched, after + 1); w != NULL && id == 0;
	     w = w->next)
		if (owner_gone(s, w, &g) && (!g.suspected || w->last.old))
			id = g.id;
	lock_give(&s->lock);
	return id;
}

enum rc
postgres_owners_remove(struct store *s)
{
	int64_t id = 0;
	enum rc rc = RC_OK;

	while (rc == RC_OK && (id = next_useless(s, id)) != 0)
		rc = postgres_owner_remove(s, id);
	return rc;
}

/* If it fails, the row is that of a dead process. */
void
postgres_owner_end(struct store *s)
{
	if (s->owner != 0)
		(void)postgres_owner_remove(s, s->owner);
}
