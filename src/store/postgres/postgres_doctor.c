/*
 * Findings about the key store, for an operator.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "postgres_identity.h"
#include "postgres_row.h"
#include "postgres_doctor.h"

/* Rows that a look at all rows reads at a time. */
#define PAGE INT64_C(500)

/* --- numbers -------------------------------------------------------------- */

/* The one number that each of some statements returns. */
struct numbers {
	const enum pg_query *query;
	size_t n;
	int64_t *value;
};

static enum rc
numbers_run(struct pg *pg, void *arg)
{
	const struct numbers *c = arg;
	enum rc rc;

	for (size_t i = 0; i < c->n; i++)
		pg_send(pg, c->query[i], "");
	rc = pg_sync(pg);
	for (size_t i = 0; i < c->n && rc == RC_OK; i++)
		rc = pg_one(pg, "i", &c->value[i]);
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum rc
count_numbers(
    struct store *s, const enum pg_query *query, size_t n, int64_t *value)
{
	struct numbers c = { query, n, value };

	memset(value, 0, n * sizeof(value[0]));
	return postgres_read(s, numbers_run, &c);
}

static void
check_bodies(struct store *s, struct findings *f)
{
	static const enum pg_query query[] = { PG_QUERY_ORPHAN_PIECES,
		PG_QUERY_MISSING_BODIES };
	int64_t n[COUNT(query)];
	enum rc rc = count_numbers(s, query, COUNT(query), n);

	findings_bodies(f, rc,
	    &(struct findings_bodies){ .orphans = n[0], .missing = n[1] });
}

static void
check_requests(struct store *s, struct findings *f)
{
	static const enum pg_query query[] = { PG_QUERY_ORPHAN_REQUESTS,
		PG_QUERY_MISSING_REQUESTS, PG_QUERY_KEPT_ERROR };
	int64_t n[COUNT(query)];
	enum rc rc = count_numbers(s, query, COUNT(query), n);

	findings_requests(f, rc,
	    &(struct findings_requests){
		.orphans = n[0], .missing = n[1], .wrong = n[2] });
}

static void
check_effects(struct store *s, struct findings *f)
{
	static const enum pg_query query[] = { PG_QUERY_ORPHAN_EFFECTS,
		PG_QUERY_STALLED_EFFECTS };
	int64_t n[COUNT(query)];
	enum rc rc = count_numbers(s, query, COUNT(query), n);

	findings_effects(f, rc,
	    &(struct findings_effects){ .orphans = n[0], .stalled = n[1] });
}

/* --- all rows ------------------------------------------------------------- */

struct rows {
	struct store *store;
	int64_t at; /* the last row that was read */
	bool end;
	struct findings_rows found;
};

/* The column after those of the record. */
struct digest_column {
	unsigned char digest[POSTGRES_DIGEST_LEN];
};

/* RC_CORRUPT: the row has the digest of another identity, so that no request
 * finds it. */
static enum rc
check_digest(struct store *s, struct pg *pg, const struct record *r)
{
	static const struct row_member column[] = {
		ROW_MEMBER('x', digest_column, digest),
	};
	const struct store_identity texts = { r->scope, r->path, r->key };
	struct digest_column is, want;
	enum rc rc;

	if ((rc = pg_members(pg, column, 1, &is)) != RC_OK ||
	    (rc = postgres_identity_digest(s->secret, &texts, want.digest)) !=
		RC_OK)
		return rc;
	return memcmp(&is, &want, sizeof(is)) == 0 ? RC_OK : RC_CORRUPT;
}

static enum rc
rows_keys(struct pg *pg, void *arg)
{
	struct rows *w = arg, next = *w;
	struct record r;
	enum rc rc;

	pg_send(pg, PG_QUERY_ROWS, "ii", next.at, PAGE);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_result(pg);
	next.end = rc == RC_OK && pg_rows(pg) < PAGE;
	while (rc == RC_OK && (rc = pg_next(pg)) == RC_OK) {
		rc = postgres_row_read(pg, &r);
		next.at = r.id;
		if (rc == RC_OK)
			rc = check_digest(w->store, pg, &r);
		if (rc == RC_CORRUPT) {
			findings_row(&next.found, "once_key", r.id);
			rc = RC_OK;
		}
		record_free(&r);
	}
	if (rc != RC_NOTFOUND)
		return rc;
	*w = next;
	return RC_OK;
}

static enum rc
rows_effects(struct pg *pg, void *arg)
{
	struct rows *w = arg, next = *w;
	struct store_effect e;
	enum rc rc;

	pg_send(pg, PG_QUERY_EFFECT_ROWS, "ii", next.at, PAGE);
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_result(pg);
	next.end = rc == RC_OK && pg_rows(pg) < PAGE;
	while (rc == RC_OK && (rc = pg_next(pg)) == RC_OK) {
		rc = postgres_row_read_effect(pg, &e);
		next.at = e.id;
		if (rc == RC_CORRUPT) {
			findings_row(&next.found, "once_effect", e.id);
			rc = RC_OK;
		}
		store_effect_free(&e);
	}
	if (rc != RC_NOTFOUND)
		return rc;
	*w = next;
	return RC_OK;
}

static void
check_rows(struct store *s, struct findings *f)
{
	struct rows w = { .store = s };
	enum rc rc = RC_OK;

	while (rc == RC_OK && !w.end)
		rc = postgres_look(s, rows_keys, &w);
	w.at = 0;
	w.end = false;
	while (rc == RC_OK && !w.end)
		rc = postgres_look(s, rows_effects, &w);
	findings_rows(f, rc, &w.found);
}

/* --- processes ------------------------------------------------------------ */

/* Processes that are looked at together. */
#define GONE 16

struct held {
	int64_t owner, n;
};

static enum rc
held_run(struct pg *pg, void *arg)
{
	struct held *h = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_OWNER_COUNT, "i", h->owner);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "i", &h->n) : rc;
}

/* Leases whose owners cannot be looked at from here. */
struct elsewhere {
	const char *host, *boot;
	char machine[33];
	int64_t all, machines; /* of all machines; of this one */
};

static enum rc
elsewhere_run(struct pg *pg, void *arg)
{
	struct elsewhere *e = arg;
	enum rc rc;

	pg_send(
	    pg, PG_QUERY_LEASES_ELSEWHERE, "sss", e->host, e->machine, e->boot);
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "ii", &e->all, &e->machines) : rc;
}

static enum rc
count_dead(struct store *s, int64_t *dead)
{
	struct postgres_gone gone[GONE];
	struct held held = { 0 };
	int n = 1;
	enum rc rc = postgres_owner_look(s);

	while (rc == RC_OK && n > 0) {
		n = postgres_owners_gone(s, held.owner, gone, GONE);
		for (int i = 0; i < n && rc == RC_OK; i++) {
			held.owner = gone[i].id;
			rc = postgres_look(s, held_run, &held);
			*dead += held.n;
		}
	}
	return rc;
}

static void
check_owners(struct store *s, struct findings *f)
{
	struct elsewhere e = { .host = s->host.name, .boot = s->host.boot };
	struct liveness *liveness;
	char why[512] = "";
	int64_t dead = 0;
	enum rc rc;

	rc = postgres_liveness_why(s, &liveness, why, sizeof(why));
	if (rc == RC_OK || rc == RC_NOTFOUND)
		rc = count_dead(s, &dead);
	postgres_host_machine(e.machine);
	if (rc == RC_OK)
		rc = postgres_read(s, elsewhere_run, &e);
	if (rc != RC_OK && liveness == NULL && why[0] != '\0')
		findings_add(f, "leases", false,
		    "cannot tell which processes live: %s", why);
	else if (rc != RC_OK || dead > 0 || e.all == 0)
		findings_leases(f, rc, dead);
	else if (liveness == NULL && e.machines > 0)
		findings_add(f, "leases", false,
		    "%" PRId64 " held by processes of this host, and it "
		    "cannot tell whether they live: %s: name the daemon's "
		    "folder in STATE_DIRECTORY",
		    e.machines, why);
	else
		findings_add(f, "leases", true,
		    "%" PRId64 " held by processes of other hosts or of other "
		    "folders of this one, where oncectl can tell whether they "
		    "live, or of another boot, which are suspected",
		    e.all);
}

/* --- keys and effects ----------------------------------------------------- */

static enum rc
states_run(struct pg *pg, void *arg)
{
	struct findings_open *n = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_COUNT_OPEN, "");
	if ((rc = pg_sync(pg)) == RC_OK)
		rc = pg_one(pg, "iii", &n->unattended, &n->waiting, &n->dead);
	return rc;
}

struct topics {
	const struct conf *conf;
	struct findings_topics found;
};

static enum rc
doctor_topics(struct pg *pg, void *arg)
{
	struct topics *t = arg;
	const char *name;
	bool configured;
	int64_t n;
	enum rc rc;

	memset(&t->found, 0, sizeof(t->found));
	pg_send(pg, PG_QUERY_PENDING_TOPICS, "");
	rc = pg_sync(pg);
	if (rc == RC_OK)
		rc = pg_result(pg);
	while (rc == RC_OK &&
	    (rc = pg_row(pg, "pi?", &name, &n, &configured)) == RC_OK)
		if (name != NULL)
			findings_topic(&t->found, t->conf, name, n, configured);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

enum rc
postgres_doctor(struct store *s, const struct conf *conf,
    struct store_finding *items, size_t max, size_t *n)
{
	int64_t effects[STORE_EFFECT_NSTATES];
	struct findings_open open = { 0 };
	struct topics topics = { .conf = conf };
	struct findings f = { items, max, 0 };
	enum rc rc;

	postgres_doctor_server(s, &f);
	check_rows(s, &f);
	check_bodies(s, &f);
	check_requests(s, &f);
	check_owners(s, &f);
	rc = postgres_read(s, states_run, &open);
	findings_open(&f, rc, &open);
	rc = store_count_effects(s, effects);
	findings_outbox(&f, rc, effects[STORE_EFFECT_PENDING],
	    effects[STORE_EFFECT_DEAD_LETTER]);
	check_effects(s, &f);
	rc = postgres_read(s, doctor_topics, &topics);
	findings_topics(&f, rc, &topics.found);
	*n = f.n;
	return RC_OK;
}
