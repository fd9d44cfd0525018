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

/* --- numbers -------------------------------------------------------------- */

/*
 * A finding about numbers that a statement counts; it is fine if each is 0.
 * bad: what stands behind each of them.  A number may be counted by mistake in
 * what an operator has planted, and then be negative.
 */
#define NUMBERS 5
static const struct counted {
	const char *name;
	enum tx_query query;
	const char *columns, *fine;
	const char *bad[NUMBERS];
} counted[] = {
	{ "bodies", TX_DOCTOR_BODIES, "ii", "each belongs to its key",
	    { "without a key", "missing" } },
	/* Stored requests are erased once the outcome is known. */
	{ "requests", TX_DOCTOR_REQUESTS, "iiiii",
	    "none is kept for longer than it is needed",
	    { "kept for keys that are settled or gone",
		"bodies without a request", "without all of their body",
		"missing, of accepted keys", "bytes counted wrong" } },
	{ "unknown", TX_COUNT_OPEN, "i--", "none without a reconciler",
	    { "that no program reconciles: \"oncectl ls --state unknown\" "
	      "lists, \"oncectl resolve\" settles" } },
	{ "dead_letter", TX_COUNT_OPEN, "--i", "none",
	    { "given up by reconciliation: \"oncectl resolve\" settles" } },
	{ "effects", TX_DOCTOR_EFFECTS, "iiii",
	    "each has what belongs to it, and its turn",
	    { "without a key", "whose key has no turn, or two",
		"without a payload", "payloads too many" } },
	{ "outbox", TX_GAUGE_OUTBOX, "-i", "none was given up",
	    { "given up: \"oncectl outbox ls --state dead_letter\" lists, "
	      "\"outbox retry\" or \"outbox drop\" settles" } },
};

struct numbers {
	enum tx_query query;
	const char *columns;
	int64_t owner, n[NUMBERS];
};

static enum rc
numbers_run(struct tx *tx, void *arg)
{
	struct numbers *c = arg;
	int64_t *n = c->n;
	enum rc rc;

	memset(n, 0, sizeof(c->n));
	if (c->query == TX_OWNER_COUNT)
		tx_send(tx, c->query, "i", c->owner);
	else
		tx_send(tx, c->query, "");
	rc = tx_one(tx, c->columns, &n[0], &n[1], &n[2], &n[3], &n[4]);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* left: keys that wait for a reconciler which their route has no more. */
static void
find_numbers(struct store *s, struct findings *f, const struct counted *what,
    int64_t left)
{
	struct numbers c = { .query = what->query, .columns = what->columns };
	char text[256] = "";

	if (store_tx(s, TX_READ, numbers_run, &c) != RC_OK) {
		store_doctor_add(f, what->name, false, "cannot be counted");
		return;
	}
	if (strcmp(what->name, "unknown") == 0)
		c.n[0] += left;
	for (int i = 0; i < NUMBERS; i++)
		if (c.n[i] != 0)
			store_doctor_name(text, sizeof(text),
			    "%s%" PRId64 " %s", text[0] != '\0' ? ", " : "",
			    c.n[i], what->bad[i]);
	store_doctor_add(f, what->name, text[0] == '\0', "%s",
	    text[0] != '\0' ? text : what->fine);
}

enum rc
store_doctor_dead(struct store *s, int64_t *dead)
{
	struct numbers c = { .query = TX_OWNER_COUNT, .columns = "i" };
	struct store_gone gone = { 0 };
	size_t n = 1;
	enum rc rc;

	*dead = 0;
	while ((rc = store_lost_owners(s, gone.id, &gone, 1, &n)) == RC_OK &&
	    n > 0) {
		c.owner = gone.id;
		if ((rc = store_tx(s, TX_LOOK, numbers_run, &c)) != RC_OK)
			break;
		*dead += c.n[0];
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
		    "\"oncectl sweep\" settles, or says what is waited for",
		    dead);
	else
		store_doctor_add(
		    f, "leases", true, "all held by living processes");
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
		store_doctor_add(f, "rows", false,
		    "%" PRId64 " without sense, and skipped: %s", rows->bad,
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
	struct all_rows w = { .store = s, .conf = conf };
	enum rc rc = RC_OK;

	for (int effects = 0; effects < 2; effects++) {
		w.effects = effects != 0;
		w.at = INT64_MIN;
		w.end = false;
		while (rc == RC_OK && !w.end)
			rc = store_tx(s, TX_LOOK, all_rows_run, &w);
	}
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
		    "%" PRId64 " pending for an [effect] section that there "
		    "is not: %s",
		    t->effects, t->names);
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
	rc = store_tx(s, TX_READ, doctor_topics, &topics);
	find_topics(&f, rc, &topics);
	*n = f.n;
	return RC_OK;
}
