/*
 * Findings about the keys and effects of a store, for an operator.  Each store
 * adds those about its files, or its server.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "route.h"
#include "words.h"
#include "store_ops.h"
#include "store_doctor.h"

/* Rows that a look at all rows reads at a time. */
#define PAGE INT64_C(500)

void
store_doctor_add(
    struct findings *f, const char *name, bool ok, const char *format, ...)
{
	struct store_finding *item;
	va_list ap;

	if (f->n == f->max)
		return;
	item = &f->item[f->n++];
	item->ok = ok;
	snprintf(item->name, sizeof(item->name), "%s", name);
	va_start(ap, format);
	vsnprintf(item->text, sizeof(item->text), format, ap);
	va_end(ap);
}

void
store_doctor_name(char *names, size_t size, const char *format, ...)
{
	const size_t len = strlen(names);
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(names + len, size - len, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size - len)
		names[len] = '\0';
}

struct leases {
	int64_t owner, n;
};

static enum rc
leases_run(struct tx *tx, void *arg)
{
	struct leases *l = arg;

	tx_send(tx, TX_OWNER_COUNT, "i", l->owner);
	return tx_one(tx, "i", &l->n);
}

enum rc
store_doctor_dead(struct store *s, int64_t *dead)
{
	struct store_gone gone = { 0 };
	struct leases leases;
	size_t n = 1;
	enum rc rc;

	*dead = 0;
	while ((rc = store_lost_owners(s, gone.id, &gone, 1, &n)) == RC_OK &&
	    n > 0) {
		leases.owner = gone.id;
		if ((rc = store_tx(s, TX_LOOK, leases_run, &leases)) != RC_OK)
			break;
		*dead += leases.n;
	}
	return rc;
}

void
store_doctor_leases(struct findings *f, enum rc rc, int64_t dead)
{
	if (rc != RC_OK)
		store_doctor_add(f, "leases", false,
		    "cannot tell which processes live: %s", rc_text(rc));
	else if (dead > 0)
		store_doctor_add(f, "leases", false,
		    "%" PRId64 " held by processes that are gone: "
		    "\"oncectl sweep\" settles %s, or says what is waited for",
		    dead, PLURAL(dead, "it", "them"));
	else
		store_doctor_add(
		    f, "leases", true, "all held by living processes");
}

/* --- numbers -------------------------------------------------------------- */

/* Each of these adds a finding about numbers that one statement counts, in that
 * order. */

/* Bodies of answers without a key, and keys without all of their body. */
static void
find_bodies(struct findings *f, const int64_t *n)
{
	const int64_t orphans = n[0], missing = n[1];

	if (orphans != 0 || missing != 0)
		store_doctor_add(f, "bodies", false,
		    "%" PRId64 " without a key, %" PRId64
		    " keys without their body",
		    orphans, missing);
	else
		store_doctor_add(f, "bodies", true, "each belongs to its key");
}

/* Stored requests, which must be erased once the outcome is known: for keys
 * that are settled or gone; bodies without a request; requests without all of
 * their body; accepted keys without their request; and the error of the count
 * of their bytes. */
static void
find_requests(struct findings *f, const int64_t *n)
{
	const int64_t orphans = n[0], pieces = n[1], cut = n[2], missing = n[3],
		      wrong = n[4];

	if (missing != 0)
		store_doctor_add(f, "requests", false,
		    "%" PRId64 " of accepted keys are not there", missing);
	else if (orphans != 0)
		store_doctor_add(f, "requests", false,
		    "%" PRId64 " kept for keys that are settled or gone",
		    orphans);
	else if (pieces != 0 || cut != 0)
		store_doctor_add(f, "requests", false,
		    "bodies without a request: %" PRId64
		    ", requests without all of their body: %" PRId64,
		    pieces, cut);
	else if (wrong != 0)
		store_doctor_add(f, "requests", false,
		    "their bytes are counted wrong, by %" PRId64, wrong);
	else
		store_doctor_add(f, "requests", true,
		    "none is kept for longer than it is needed");
}

/* Keys with an open outcome: without a reconciler, with one, and given up. */
static void
find_open(struct findings *f, const int64_t *n)
{
	const int64_t unattended = n[0], waiting = n[1], dead = n[2];

	if (unattended > 0)
		store_doctor_add(f, "unknown", false,
		    "%" PRId64 " %s that no program reconciles: \"oncectl ls "
		    "--state unknown\" lists, \"oncectl resolve\" settles %s",
		    unattended, PLURAL(unattended, "key", "keys"),
		    PLURAL(unattended, "it", "them"));
	else
		store_doctor_add(
		    f, "unknown", true, "none without a reconciler");
	store_doctor_add(f, "reconcile", true, "%" PRId64 " %s for a next try",
	    waiting, PLURAL(waiting, "key waits", "keys wait"));
	if (dead > 0)
		store_doctor_add(f, "dead_letter", false,
		    "%" PRId64 " %s that reconciliation gave up: \"oncectl "
		    "resolve\" settles %s",
		    dead, PLURAL(dead, "key", "keys"),
		    PLURAL(dead, "it", "them"));
	else
		store_doctor_add(f, "dead_letter", true, "none");
}

/* Effects without a key; whose key has no turn, or two; without a payload; and
 * payloads too many. */
static void
find_effects(struct findings *f, const int64_t *n)
{
	const int64_t orphans = n[0], stalled = n[1], missing = n[2],
		      payloads = n[3];

	if (orphans != 0 || stalled != 0 || payloads != 0 || missing != 0)
		store_doctor_add(f, "effects", false,
		    "%" PRId64 " without a key, %" PRId64
		    " whose key has no turn, or two, %" PRId64
		    " without a payload; payloads too many: %" PRId64,
		    orphans, stalled, missing, payloads);
	else
		store_doctor_add(f, "effects", true,
		    "each has what belongs to it, and its turn");
}

static void
find_outbox(struct store *s, struct findings *f)
{
	int64_t effects[EFFECT_NSTATES] = { 0 };
	const enum rc rc = store_count_effects(s, effects);
	const int64_t pending = effects[EFFECT_PENDING];
	const int64_t dead = effects[EFFECT_DEAD_LETTER];

	if (rc != RC_OK)
		store_doctor_add(f, "outbox", false, "cannot be counted");
	else if (dead > 0)
		store_doctor_add(f, "outbox", false,
		    "%" PRId64 " %s given up: \"oncectl outbox ls --state "
		    "dead_letter\" lists, \"outbox retry\" or \"outbox "
		    "drop\" settles %s",
		    dead, PLURAL(dead, "effect that was", "effects that were"),
		    PLURAL(dead, "it", "them"));
	else
		store_doctor_add(f, "outbox", true,
		    "%" PRId64 " %s to be delivered, none given up", pending,
		    PLURAL(pending, "effect", "effects"));
}

static const struct counted {
	enum tx_query query;
	const char *columns, *name;
	void (*find)(struct findings *, const int64_t *);
} counted[] = {
	{ TX_DOCTOR_BODIES, "ii", "bodies", find_bodies },
	{ TX_DOCTOR_REQUESTS, "iiiii", "requests", find_requests },
	{ TX_COUNT_OPEN, "iii", "unknown", find_open },
	{ TX_DOCTOR_EFFECTS, "iiii", "effects", find_effects },
};

struct numbers {
	const struct counted *what;
	int64_t n[5];
};

static enum rc
numbers_run(struct tx *tx, void *arg)
{
	struct numbers *c = arg;
	int64_t *n = c->n;
	enum rc rc;

	memset(n, 0, sizeof(c->n));
	tx_send(tx, c->what->query, "");
	rc = tx_one(tx, c->what->columns, &n[0], &n[1], &n[2], &n[3], &n[4]);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* left: keys that wait for a reconciler which their route has no more. */
static void
find_numbers(struct store *s, struct findings *f, const struct counted *what,
    int64_t left)
{
	struct numbers c = { .what = what };

	if (store_tx(s, TX_READ, numbers_run, &c) != RC_OK) {
		store_doctor_add(f, what->name, false, "cannot be counted");
		return;
	}
	if (what->query == TX_COUNT_OPEN) {
		left = left < c.n[1] ? left : c.n[1];
		c.n[0] += left;
		c.n[1] -= left;
	}
	what->find(f, c.n);
}

/* --- all rows ------------------------------------------------------------- */

struct all_rows {
	struct store *store;
	const struct conf *conf; /* NULL: it is not known */
	bool effects;
	int64_t at; /* the last row that was read */
	bool end;
	/* rows that make no sense, and the first ones */
	int64_t bad;
	char names[160];
	int64_t left; /* keys that wait for a reconciler their route has not */
};

static void
find_rows(struct findings *f, enum rc rc, const struct all_rows *rows)
{
	if (rc != RC_OK)
		store_doctor_add(
		    f, "rows", false, "cannot be read: %s", rc_text(rc));
	else if (rows->bad > 0)
		store_doctor_add(f, "rows", false, "%" PRId64 " %s: %s",
		    rows->bad,
		    PLURAL(rows->bad, "makes no sense, and is skipped",
			"make no sense, and are skipped"),
		    rows->names);
	else
		store_doctor_add(f, "rows", true, "all make sense");
}

/* The columns of a row of ROWS after those of its record. */
struct row_index {
	struct row_value identity;
	bool lost; /* no sweep finds it, or an older one has its identity */
};

/* RC_CORRUPT: no request, or no sweep, finds the current row. */
static enum rc
row_check(struct store *s, struct tx *tx, const struct record *r)
{
	static const struct row_member columns[] = {
		ROW_MEMBER('w', row_index, identity),
		ROW_MEMBER('?', row_index, lost),
	};
	const struct store_identity texts = { r->scope, r->path, r->key };
	const struct row_value want = store_number(s, &texts).first;
	struct row_index got = { 0 };
	enum rc rc = tx_members(tx, columns, 2, &got);

	if (rc == RC_OK &&
	    (got.lost || got.identity.n != want.n ||
		got.identity.number != want.number ||
		memcmp(got.identity.bytes, want.bytes, want.n) != 0))
		rc = RC_CORRUPT;
	return rc;
}

/* It waits for a try that no program of its route will make. */
static bool
row_is_left(const struct conf *conf, const struct record *r)
{
	return conf != NULL && r->state == RECORD_UNKNOWN &&
	    r->reconcile_after > 0 && r->path[0] == '/' &&
	    route_find(conf, r->path)->reconcile.argv.n == 0;
}

/* Reads the current row. */
static enum rc
doctor_row(struct all_rows *w, struct tx *tx)
{
	struct effect e;
	struct record r;
	enum rc rc;

	if (w->effects) {
		rc = tx_this_effect(tx, &e);
		w->at = e.id;
		effect_free(&e);
		return rc;
	}
	rc = tx_this_record(tx, &r);
	w->at = r.id;
	if (rc == RC_OK)
		rc = row_check(w->store, tx, &r);
	if (rc == RC_OK && row_is_left(w->conf, &r))
		w->left++;
	record_free(&r);
	return rc;
}

/* Works on a copy, since it may run several times. */
static enum rc
all_rows_run(struct tx *tx, void *arg)
{
	struct all_rows *w = arg, next = *w;
	int64_t rows = 0;
	enum rc rc;

	tx_send(tx, w->effects ? TX_EFFECT_ROWS : TX_ROWS, "ii", next.at, PAGE);
	rc = tx_result(tx);
	while (rc == RC_OK && (rc = tx_next(tx)) == RC_OK) {
		rows++;
		rc = doctor_row(&next, tx);
		if (rc == RC_CORRUPT) {
			store_doctor_name(next.names, sizeof(next.names),
			    "%s%s %" PRId64, next.bad > 0 ? ", " : "",
			    w->effects ? "once_effect" : "once_key", next.at);
			next.bad++;
			rc = RC_OK;
		}
	}
	if (rc != RC_NOTFOUND)
		return rc;
	next.end = rows < PAGE;
	*w = next;
	return RC_OK;
}

/* Returns the keys that wait for a reconciler which their route has no more. */
static int64_t
doctor_rows(struct store *s, const struct conf *conf, struct findings *f)
{
	struct all_rows w = { .store = s, .conf = conf, .at = INT64_MIN };
	enum rc rc = RC_OK;

	while (rc == RC_OK && !w.end)
		rc = store_tx(s, TX_LOOK, all_rows_run, &w);
	w.effects = true;
	w.at = INT64_MIN;
	w.end = false;
	while (rc == RC_OK && !w.end)
		rc = store_tx(s, TX_LOOK, all_rows_run, &w);
	find_rows(f, rc, &w);
	return w.left;
}

/* --- topics --------------------------------------------------------------- */

/* Pending effects whose topic has no section. */
struct topics {
	const struct conf *conf; /* NULL: the store has the topics */
	int64_t effects;
	char names[128];
};

/* Effects of a topic without a section are not delivered. */
static void
add_topic(struct topics *t, const char *name, int64_t effects, bool configured)
{
	if (t->conf != NULL)
		configured = conf_effect_find(t->conf, name) != NULL;
	if (configured)
		return;
	store_doctor_name(t->names, sizeof(t->names), "%s%s",
	    t->effects > 0 ? " " : "", name);
	t->effects += effects;
}

static void
find_topics(struct findings *f, enum rc rc, const struct topics *t)
{
	if (rc != RC_OK)
		store_doctor_add(f, "topics", false, "cannot be counted");
	else if (t->effects > 0)
		store_doctor_add(f, "topics", false,
		    "%" PRId64 " %s for an [effect] section that there is "
		    "not: %s",
		    t->effects,
		    PLURAL(t->effects, "effect waits", "effects wait"),
		    t->names);
	else
		store_doctor_add(
		    f, "topics", true, "whatever is pending has a section");
}

static enum rc
doctor_topics(struct tx *tx, void *arg)
{
	struct topics *t = arg;
	const char *name;
	bool configured;
	int64_t n;
	enum rc rc;

	t->effects = 0;
	t->names[0] = '\0';
	tx_send(tx, TX_PENDING_TOPICS, "");
	rc = tx_result(tx);
	while (rc == RC_OK &&
	    (rc = tx_row(tx, "pi?", &name, &n, &configured)) == RC_OK)
		if (name != NULL)
			add_topic(t, name, n, configured);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
store_doctor(struct store *s, const struct conf *conf,
    struct store_finding *items, size_t max, size_t *n)
{
	struct topics topics = { .conf = conf };
	struct findings f = { items, max, 0 };
	int64_t left;
	enum rc rc;

	*n = 0;
	if ((rc = store_examine(s, &f)) != RC_OK)
		return rc;
	left = doctor_rows(s, conf, &f);
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		find_numbers(s, &f, &counted[i], left);
	find_outbox(s, &f);
	rc = store_tx(s, TX_READ, doctor_topics, &topics);
	find_topics(&f, rc, &topics);
	*n = f.n;
	return RC_OK;
}
