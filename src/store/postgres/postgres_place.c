/*
 * See postgres_place.h.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "postgres_outcome.h"
#include "postgres_row.h"
#include "postgres_place.h"

/* Failed outcomes that their callers still try to record, at most. */
#define FAILING_MAX 8

/* Outcomes of one path that are kept while handlers lock their keys, at most.
 * Each lock needs a session of the server, which bounds those of all paths, and
 * spool_total bounds their bodies. */
#define HELD_MAX 64

/* The store is locked. */
static bool
held_too_many(const struct store *s, const char *path)
{
	unsigned n = 0;

	if (path == NULL || s->nheld <= HELD_MAX)
		return false;
	for (const struct postgres_outcome *o = s->late; o != NULL; o = o->next)
		n += o->held && o->change.outcome.log.path != NULL &&
		    strcmp(o->change.outcome.log.path, path) == 0;
	return n > HELD_MAX;
}

enum rc
postgres_place_may_begin(struct store *s, const char *path)
{
	bool stuck;

	lock_take(&s->lock);
	stuck = s->nlate > s->nheld || s->failing > FAILING_MAX ||
	    held_too_many(s, path);
	lock_give(&s->lock);
	if (stuck)
		return RC_UNRECORDED;
	return s->unsafe || txn_unsafe(s->pool) != NULL ? RC_UNSAFE : RC_OK;
}

enum rc
postgres_place_may_begin_by(const struct pg *pg)
{
	return pg_is_unsafe(pg) ? RC_UNSAFE : RC_OK;
}

/* RC_EXISTS, RC_LOST: no place was needed, or another process has it. */
void
postgres_place_remember_result(struct store *s, enum rc rc)
{
	if (rc == RC_EXISTS || rc == RC_LOST)
		return;
	lock_take(&s->lock);
	s->reserving = rc;
	lock_give(&s->lock);
}

/* --- numbers drawn in advance --------------------------------------------- */

/* The lowest one, so that a later key has a higher number; 0: there is none. */
static int64_t
place_take_number(struct store *s)
{
	int64_t id = 0;
	int lowest = 0;

	lock_take(&s->lock);
	for (int i = 1; i < s->nids; i++)
		if (s->ids[i] < s->ids[lowest])
			lowest = i;
	if (s->nids > 0) {
		id = s->ids[lowest];
		s->ids[lowest] = s->ids[--s->nids];
	}
	lock_give(&s->lock);
	return id;
}

static void
place_give_number(struct store *s, int64_t id)
{
	lock_take(&s->lock);
	if (s->nids < POSTGRES_IDS_MAX)
		s->ids[s->nids++] = id;
	lock_give(&s->lock);
}

/*
 * A server that crashed may give the numbers away again that were drawn shortly
 * before.  This process notices that its connection is lost, and forgets them.
 */
static void
place_forget_numbers(struct store *s)
{
	lock_take(&s->lock);
	s->nids = 0;
	lock_give(&s->lock);
}

static enum rc
place_read_numbers(struct postgres_place *p, struct pg *pg)
{
	int64_t id;
	enum rc rc = pg_result(pg);

	while (rc == RC_OK && (rc = pg_row(pg, "i", &id)) == RC_OK) {
		if (p->id == 0)
			p->id = id;
		else
			place_give_number(p->store, id);
	}
	if (rc == RC_NOTFOUND)
		rc = p->id != 0 ? RC_OK : RC_CORRUPT;
	return rc;
}

bool
postgres_place_guess(struct postgres_place *p)
{
	struct store *s = p->store;

	lock_take(&s->lock);
	p->forgotten = s->forgotten;
	for (int i = 0; i < s->nfingerprint_specs && p->fingerprint_spec == 0;
	     i++)
		if (memcmp(s->fingerprint_specs[i].digest,
			p->fingerprint_spec_digest, DIGEST_LEN) == 0)
			p->fingerprint_spec = s->fingerprint_specs[i].id;
	lock_give(&s->lock);
	if (p->fingerprint_spec == 0)
		return false;
	p->id = place_take_number(s);
	/* As many are drawn as are used; numbers read without the lock are good
	 * enough for that. */
	p->draws = p->id % POSTGRES_IDS == 0;
	return p->id != 0;
}

void
postgres_place_draw(struct pg *pg)
{
	pg_send(pg, PG_QUERY_NEW_IDS, "i", (int64_t)POSTGRES_IDS);
}

enum rc
postgres_place_drawn(struct postgres_place *p, struct pg *pg)
{
	return place_read_numbers(p, pg);
}

void
postgres_place_remember(struct postgres_place *p)
{
	struct store *s = p->store;
	struct postgres_fingerprint_spec *r;
	int i = 0;

	lock_take(&s->lock);
	while (i < s->nfingerprint_specs &&
	    s->fingerprint_specs[i].id != p->fingerprint_spec)
		i++;
	/* A configuration has few fingerprint specs. */
	if (i == s->nfingerprint_specs && i < POSTGRES_FINGERPRINT_SPECS) {
		r = &s->fingerprint_specs[s->nfingerprint_specs++];
		memcpy(r->digest, p->fingerprint_spec_digest, DIGEST_LEN);
		r->id = p->fingerprint_spec;
	}
	lock_give(&s->lock);
}

void
postgres_place_forget(struct store *s)
{
	lock_take(&s->lock);
	s->nids = s->nfingerprint_specs = 0;
	s->forgotten++;
	lock_give(&s->lock);
}

bool
postgres_place_is_full(const struct postgres_place *p)
{
	const uint64_t max = p->what->max_store;

	return max != 0 && (uint64_t)atomic_load(&p->store->bytes) > max;
}

/* --- looking -------------------------------------------------------------- */

enum rc
postgres_place_init(struct postgres_place *p, struct store *s,
    const struct store_reservation *what, bool keep)
{
	const struct store_identity *identity = &what->identity;
	EVP_MD_CTX *md = NULL;
	enum rc rc;

	memset(p, 0, sizeof(*p));
	p->store = s;
	p->what = what;
	p->keep = keep;
	rc = postgres_identity_digest(s->secret, identity, p->digest);
	if (rc == RC_OK && (rc = digest_begin(&md)) == RC_OK &&
	    (rc = digest_bytes(md, what->fingerprint_spec,
		 strlen(what->fingerprint_spec))) == RC_OK)
		rc = digest_end(md, p->fingerprint_spec_digest);
	EVP_MD_CTX_free(md);
	return rc;
}

static enum decision
place_decide(const struct postgres_place *p)
{
	const struct store_reservation *what = p->what;
	const struct record *found = &p->found;
	enum decide_match match;

	if (found->id == 0)
		return DECIDE_RUN;
	record_check(found);
	/* The caller must compare the fingerprints by that fingerprint_spec. */
	match = decide_match(found, what->fingerprint_spec, what->fingerprint);
	if (match == DECIDE_OTHER_SPEC && !p->is_new)
		return DECIDE_BUSY;
	return decide(found, decide_is_mine(found, what->peer, what->cookie),
	    match == DECIDE_SAME, p->now);
}

/* The record; found->id is 0 if there is none. */
static enum rc
place_read(struct postgres_place *p, struct pg *pg)
{
	static const struct row_member now[] = {
		ROW_MEMBER('m', postgres_place, now),
	};
	enum rc rc;

	rc = postgres_row_find(p->store, pg, &p->found);
	if (rc == RC_OK)
		rc = pg_members(pg, now, 1, p);
	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static enum rc
place_read_fingerprint_spec(struct postgres_place *p, struct pg *pg)
{
	enum rc rc = pg_one(pg, "i", &p->fingerprint_spec);

	return rc == RC_NOTFOUND ? RC_OK : rc;
}

static void
place_send_fingerprint_spec(
    const struct postgres_place *p, struct pg *pg, enum pg_query query)
{
	pg_send(pg, query, "bs", p->fingerprint_spec_digest,
	    sizeof(p->fingerprint_spec_digest), p->what->fingerprint_spec);
}

enum rc
postgres_place_look(struct postgres_place *p, struct pg *pg)
{
	const struct store_identity *identity = &p->what->identity;
	bool draw;
	enum rc rc;

	/* The transaction is run again: its connection may have been lost. */
	if ((rc = postgres_place_may_begin_by(pg)) != RC_OK)
		return rc;
	if (p->looked) {
		place_forget_numbers(p->store);
		p->id = 0;
	}
	p->looked = true;
	record_free(&p->found);
	memset(&p->found, 0, sizeof(p->found));
	p->fingerprint_spec = 0;
	if (p->id == 0)
		p->id = place_take_number(p->store);
	draw = p->id == 0;
	pg_send(pg, PG_QUERY_FIND, "bsss", p->digest, sizeof(p->digest),
	    identity->key, identity->path, identity->scope);
	place_send_fingerprint_spec(p, pg, PG_QUERY_FINGERPRINT_SPEC_FIND);
	if (draw)
		postgres_place_draw(pg);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = place_read(p, pg)) != RC_OK ||
	    (rc = place_read_fingerprint_spec(p, pg)) != RC_OK ||
	    (draw && (rc = place_read_numbers(p, pg)) != RC_OK))
		return rc;
	p->is_new = p->found.id == 0 || decide_is_past(&p->found, p->now);
	p->decision = place_decide(p);
	if (p->decision == DECIDE_RUN && p->is_new && postgres_place_is_full(p))
		p->decision = DECIDE_FULL;
	return RC_OK;
}

/* --- taking --------------------------------------------------------------- */

enum rc
postgres_place_spec(struct postgres_place *p, struct pg *pg)
{
	enum rc rc;

	if (p->fingerprint_spec != 0)
		return RC_OK;
	place_send_fingerprint_spec(p, pg, PG_QUERY_FINGERPRINT_SPEC_NEW);
	place_send_fingerprint_spec(p, pg, PG_QUERY_FINGERPRINT_SPEC_FIND);
	if ((rc = pg_sync(pg)) != RC_OK || (rc = pg_result(pg)) != RC_OK ||
	    (rc = place_read_fingerprint_spec(p, pg)) != RC_OK)
		return rc;
	/* Another text with that digest? */
	return p->fingerprint_spec != 0 ? RC_OK : RC_CORRUPT;
}

enum rc
postgres_place_make(struct postgres_place *p, struct pg *pg)
{
	enum rc rc = postgres_place_spec(p, pg);

	if (rc != RC_OK || p->found.id == 0)
		return rc;
	if (!record_may_change(p->found.state, RECORD_NONE, false))
		return RC_INVALID;
	pg_send(pg, PG_QUERY_DELETE_PAST, "i", p->found.id);
	if ((rc = pg_sync(pg)) != RC_OK)
		return rc;
	/* If another process has deleted it, there is none now. */
	return pg_result(pg);
}

int64_t
postgres_place_id(struct postgres_place *p)
{
	const int64_t id = p->id;

	assert(id != 0);
	p->id = 0;
	return id;
}

enum decision
postgres_place_limit(const struct postgres_limits *l)
{
	if (l->crowded)
		return DECIDE_CROWDED;
	if (l->open)
		return DECIDE_OPEN;
	return l->no_room ? DECIDE_NO_ROOM : DECIDE_RUN;
}

void
postgres_place_end(struct postgres_place *p, enum rc rc, struct record *found)
{
	if (rc == RC_OK && p->decision != DECIDE_RUN) {
		*found = p->found;
		memset(&p->found, 0, sizeof(p->found));
	}
	record_free(&p->found);
	if (rc == RC_OK && p->id != 0)
		place_give_number(p->store, p->id);
}

/* --- the columns ---------------------------------------------------------- */

int64_t
postgres_place_max_kept(const struct store_reservation *what)
{
	return what->max_kept < INT64_MAX ? (int64_t)what->max_kept : INT64_MAX;
}

size_t
postgres_place_environment(const struct postgres_place *p)
{
	return p->keep ? p->what->environment_len : 0;
}
