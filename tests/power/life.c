/*
 * A life of a key store.  See life.h.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "clock.h"
#include "life_impl.h"
#include "vfs.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define HOUR 3600000

/* Bytes of requests. */
#define REQUEST  3000
#define KEPT     (150 * 1024)
#define ACCEPTED (300 * 1024)

const struct life_step life_whole[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_RESERVE, .key = "small" },
	{ .verb = LIFE_COMPLETE, .key = "small", .size = 12 },
	{ .verb = LIFE_RESERVE, .key = "released" },
	{ .verb = LIFE_RELEASE, .key = "released" },
	{ .verb = LIFE_RESERVE, .key = "released" },
	{ .verb = LIFE_RESERVE, .key = "large" },
	{ .verb = LIFE_COMPLETE, .key = "released", .size = 3000 },
	{ .verb = LIFE_COMPLETE, .key = "large", .size = 100 * 1024 },
	{ .verb = LIFE_RESERVE, .key = "unknown" }, /* empties the log first */
	{ .verb = LIFE_UNKNOWN, .key = "unknown" },
	{ .verb = LIFE_RESERVE, .key = "not kept" },
	{ .verb = LIFE_NOT_KEPT, .key = "not kept" },
	{ .verb = LIFE_RESERVE, .key = "asked", .asked = true },
	{ .verb = LIFE_UNKNOWN, .key = "asked" },
	{ .verb = LIFE_CLAIM, .key = "asked" },
	{ .verb = LIFE_RESOLVE, .key = "asked", .size = 6000 },
	{ .verb = LIFE_RESERVE, .key = "given up", .asked = true },
	{ .verb = LIFE_UNKNOWN, .key = "given up" },
	{ .verb = LIFE_CLAIM, .key = "given up" },
	{ .verb = LIFE_GIVE_UP, .key = "given up" },
	{ .verb = LIFE_RESERVE, .key = "lost" },
	{ .verb = LIFE_RESERVE, .key = "lost too" },
	{ .verb = LIFE_CHECKPOINT },
	{ .verb = LIFE_RESERVE, .key = "empty" }, /* the log begins again */
	{ .verb = LIFE_COMPLETE, .key = "empty" },
	{ .verb = LIFE_CLOSE }, /* removes the log */
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_RESERVE, .key = "old" },
	{ .verb = LIFE_COMPLETE, .key = "old", .size = 20000, .at_once = true },
	{ .verb = LIFE_RESERVE, .key = "old too" },
	{ .verb = LIFE_RELEASE, .key = "old too", .at_once = true },
	{ .verb = LIFE_RESERVE, .key = "old too" }, /* deleted and made again */
	{ .verb = LIFE_RESERVE, .key = "marker", .marker = true },
	{ .verb = LIFE_COMPLETE,
	    .key = "marker",
	    .size = 3000,
	    .at_once = true },
	{ .verb = LIFE_SWEEP },
	{ .verb = LIFE_NOT_EXECUTED, .key = "lost" },
	{ .verb = LIFE_RESOLVE, .key = "given up", .size = 10 },
	{ .verb = LIFE_CHECKPOINT },
	{ .verb = LIFE_REAP },
	{ .verb = LIFE_RESERVE, .key = "lost" },
	{ .verb = LIFE_COMPLETE, .key = "lost", .size = 1 },
	{ .verb = LIFE_FORGET, .key = "lost too" },
	{ .verb = LIFE_RESERVE, .key = "old" },
	{ .verb = LIFE_COMPLETE, .key = "old too", .size = 2049 },
	{ .verb = LIFE_COMPLETE, .key = "old", .size = 2048 },
	{ .verb = LIFE_TRUNCATE },
	{ .verb = LIFE_RESERVE, .key = "last" },
	{ .verb = LIFE_RELEASE, .key = "last" },
	{ .verb = LIFE_CLOSE },
};
const size_t life_nwhole = COUNT(life_whole);

const struct life_step life_short[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_RESERVE, .key = "small" },
	{ .verb = LIFE_COMPLETE, .key = "small", .size = 12 },
	{ .verb = LIFE_RESERVE, .key = "released" },
	{ .verb = LIFE_RELEASE, .key = "released" },
	{ .verb = LIFE_RESERVE, .key = "released" },
	{ .verb = LIFE_RESERVE, .key = "large" },
	{ .verb = LIFE_COMPLETE, .key = "large", .size = 70000 },
	{ .verb = LIFE_RESERVE, .key = "unknown" }, /* empties the log first */
	{ .verb = LIFE_UNKNOWN, .key = "unknown" },
	{ .verb = LIFE_RESERVE, .key = "old" },
	{ .verb = LIFE_COMPLETE, .key = "old", .size = 3000, .at_once = true },
	{ .verb = LIFE_RESERVE, .key = "lost" },
	{ .verb = LIFE_CLOSE },
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_SWEEP },
	{ .verb = LIFE_FORGET, .key = "unknown" },
	{ .verb = LIFE_RESERVE, .key = "marker", .marker = true },
	{ .verb = LIFE_RELEASE, .key = "marker", .at_once = true },
	{ .verb = LIFE_REAP },
	{ .verb = LIFE_RESERVE,
	    .key = "asked",
	    .asked = true,
	    .request = KEPT },
	{ .verb = LIFE_UNKNOWN, .key = "asked" },
	{ .verb = LIFE_CLAIM, .key = "asked" },
	{ .verb = LIFE_GIVE_UP, .key = "asked" },
	{ .verb = LIFE_RESOLVE, .key = "asked", .size = KEPT },
	{ .verb = LIFE_TRUNCATE },
	{ .verb = LIFE_RESERVE, .key = "last" },
	{ .verb = LIFE_COMPLETE, .key = "last", .size = 100 },
};
const size_t life_nshort = COUNT(life_short);

const struct life_step life_pieces[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_RESERVE, .key = "kept", .asked = true, .request = KEPT },
	{ .verb = LIFE_UNKNOWN, .key = "kept" },
	{ .verb = LIFE_ACCEPT, .key = "later", .request = ACCEPTED },
	{ .verb = LIFE_CHECKPOINT },
	{ .verb = LIFE_START, .key = "later" },
	{ .verb = LIFE_CLAIM, .key = "kept" },
	{ .verb = LIFE_RESOLVE, .key = "kept", .size = KEPT },
	{ .verb = LIFE_COMPLETE, .key = "later", .size = 140 * 1024 },
	{ .verb = LIFE_TRUNCATE },
	{ .verb = LIFE_RESERVE, .key = "lost", .asked = true, .request = KEPT },
	{ .verb = LIFE_CLOSE },
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_SWEEP },
	{ .verb = LIFE_CLOSE },
};
const size_t life_npieces = COUNT(life_pieces);

const struct life_step life_after[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_SWEEP },
	{ .verb = LIFE_RESERVE, .key = "after" },
	{ .verb = LIFE_COMPLETE, .key = "after", .size = 4000 },
	{ .verb = LIFE_CLOSE },
};
const size_t life_nafter = COUNT(life_after);

void
life_wrong(struct life *l, const char *fmt, ...)
{
	va_list ap;

	if (l->wrong[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(l->wrong, sizeof(l->wrong), fmt, ap);
	va_end(ap);
}

/* The stored request of keys that a reconciler asks about. */
static const char environment[] = "REQUEST_METHOD=POST\0PATH_INFO=/p";
const size_t life_environment_len = sizeof(environment);
static unsigned char request_body[ACCEPTED];

unsigned char
life_request_byte(size_t i)
{
	return (unsigned char)(i * 29 + i / 253);
}

void
life_init(struct life *l, const char *dir, enum conf_durability durability)
{
	size_t i;

	for (i = 0; i < sizeof(request_body); i++)
		request_body[i] = life_request_byte(i);
	memset(l, 0, sizeof(*l));
	snprintf(l->dir, sizeof(l->dir), "%s", dir);
	snprintf(l->file, sizeof(l->file), "%s/db", dir);
	l->durability = durability;
	l->busy_timeout = 5000;
	l->max_wal = 144 * 1024; /* less than with the largest answer */
}

const char *
life_step_text(const struct life_step *s, char *text, size_t size)
{
	static const char *const names[] = {
		[LIFE_OPEN] = "open",
		[LIFE_CLOSE] = "close",
		[LIFE_RESERVE] = "reserve",
		[LIFE_COMPLETE] = "complete",
		[LIFE_NOT_KEPT] = "complete without an answer",
		[LIFE_RELEASE] = "release",
		[LIFE_UNKNOWN] = "leave unknown",
		[LIFE_SWEEP] = "sweep",
		[LIFE_REAP] = "reap",
		[LIFE_CLAIM] = "claim",
		[LIFE_RESOLVE] = "resolve",
		[LIFE_NOT_EXECUTED] = "let run again",
		[LIFE_GIVE_UP] = "give up",
		[LIFE_FORGET] = "forget",
		[LIFE_CHECKPOINT] = "checkpoint",
		[LIFE_TRUNCATE] = "truncate",
		[LIFE_SAY] = "say",
		[LIFE_SEAL] = "seal",
		[LIFE_HARDEN] = "harden",
		[LIFE_TOPIC] = "name a topic",
		[LIFE_ACCEPT] = "accept",
		[LIFE_START] = "start",
		[LIFE_REQUEUE] = "requeue",
		[LIFE_ABANDON] = "abandon",
		[LIFE_TRY] = "try an effect of",
		[LIFE_DELIVERED] = "delivered",
		[LIFE_FAILED] = "failed",
		[LIFE_UNDELIVERED] = "undelivered",
	};

	snprintf(text, size, "%s%s%s", names[s->verb],
	    s->key != NULL ? " " : "", s->key != NULL ? s->key : "");
	return text;
}

static struct life_key *
key_of(struct life *l, const char *name)
{
	struct life_key *k;
	size_t i;

	for (i = 0; i < l->nkeys; i++)
		if (strcmp(l->key[i].name, name) == 0)
			return &l->key[i];
	assert(l->nkeys < LIFE_KEYS);
	k = &l->key[l->nkeys++];
	memset(k, 0, sizeof(*k));
	k->name = name;
	k->may = LIFE_IS(RECORD_NONE);
	return k;
}

void
life_committed(struct life *l)
{
	struct life_key *k;

	for (k = l->key; k < l->key + l->nkeys; k++) {
		k->ghost = k->said_ghost = 0;
		k->soft = k->deed_ghosts = 0;
	}
}

/* --- the store ---------------------------------------------------------- */

static enum rc
open_store(struct life *l, char *err, size_t errsize)
{
	struct store_options o;
	enum rc rc;

	memset(&o, 0, sizeof(o));
	o.database = l->file;
	o.mode = 0600;
	o.durability = l->durability;
	o.busy_timeout = l->busy_timeout;
	o.max_wal = l->max_wal;
	o.create = true;
	vfs_within(true);
	rc = store_open(&l->store, &o, err, errsize);
	vfs_within(false);
	return rc;
}

static void
close_store(struct life *l)
{
	vfs_within(true);
	store_close(l->store);
	vfs_within(false);
	l->store = NULL;
	life_crashed(l);
}

void
life_crashed(struct life *l)
{
	size_t i;

	for (i = 0; i < l->nkeys; i++) {
		l->key[i].leased = false;
		l->key[i].dead = true;
		l->key[i].trying = false;
	}
}

struct store_reservation
life_reservation(const struct life_key *k)
{
	struct store_reservation r;

	memset(&r, 0, sizeof(r));
	r.identity.scope = "alice";
	r.identity.path = "/payments";
	r.identity.key = k->name;
	r.fingerprint_spec = "1 json";
	memset(r.fingerprint, 0xa5, sizeof(r.fingerprint));
	r.lease = 60000;
	r.retention = HOUR;
	r.on_crash = CONF_CRASH_UNKNOWN;
	r.on_expired = k->marker ? CONF_EXPIRED_GONE : CONF_EXPIRED_RUN;
	r.expired_retention = k->marker ? HOUR : 0;
	if (k->asked || k->accepted) {
		r.reconcile_delay = k->asked ? 1 : 0;
		r.environment = environment;
		r.environment_len = sizeof(environment);
		r.body = request_body;
		r.body_len = k->request;
	}
	return r;
}

static enum rc
reserve(struct life *l, const struct life_key *k, struct store_lease *lease,
    enum decision *decision)
{
	struct store_reservation r = life_reservation(k);
	struct record found;
	enum rc rc;

	vfs_within(true);
	rc = store_reserve(l->store, &r, lease, decision, &found);
	vfs_within(false);
	record_free(&found);
	return rc;
}

static enum rc
find(struct life *l, const struct life_key *k, struct record *found)
{
	struct store_reservation r = life_reservation(k);
	enum rc rc;

	vfs_within(true);
	rc = store_find(l->store, &r.identity, found);
	vfs_within(false);
	return rc;
}

unsigned char
life_byte(const struct life_key *k, size_t i)
{
	return (unsigned char)(i * 31 + i / 251 +
	    (unsigned char)k->name[strlen(k->name) - 1]);
}

static void
give_body(struct store_outcome *s, const struct life_key *k, size_t size)
{
	unsigned char *data = malloc(size + 1);
	enum rc rc;
	size_t i;

	s->body = spool_new();
	if (data == NULL || s->body == NULL)
		abort();
	for (i = 0; i < size; i++)
		data[i] = life_byte(k, i);
	if (spool_write(s->body, data, size) != RC_OK)
		abort();
	free(data);
	s->response.body = spool_bytes(s->body, &rc);
	s->response.body_len = size;
}

/* Whether the answer of that key is the one that it was completed with. */
static enum rc
check_answer(struct life *l, const struct life_key *k, int64_t id)
{
	static const char fields[] = "X-Key: 1\r\nX-Key: 2\r\n";
	const struct store_identity who = { "alice", "/payments", k->name };
	const unsigned char *p;
	struct response r;
	struct spool *body;
	enum rc rc;
	size_t i;

	response_init(&r);
	vfs_within(true);
	rc = store_answer(l->store, &who, id, &r, &body);
	vfs_within(false);
	p = r.body;
	if (rc == RC_OK &&
	    (r.status != 201 || r.body_len != k->size ||
		r.fields.len != strlen(fields) ||
		memcmp(r.fields.data, fields, strlen(fields)) != 0))
		life_wrong(l, "%s: another answer: status %d, %zu of %zu bytes",
		    k->name, r.status, r.body_len, k->size);
	for (i = 0; rc == RC_OK && l->wrong[0] == '\0' && i < k->size; i++)
		if (p[i] != life_byte(k, i))
			life_wrong(l, "%s: byte %zu of the answer differs",
			    k->name, i);
	response_free(&r);
	spool_free(body);
	return rc;
}

/* --- steps -------------------------------------------------------------- */

static enum rc
act_open(struct life *l)
{
	char err[256];

	return l->store != NULL ? RC_INVALID : open_store(l, err, sizeof(err));
}

static enum rc
act_reserve(struct life *l, struct life_key *k)
{
	struct store_lease lease;
	enum decision d = DECIDE_GONE;
	enum rc rc;

	if (k->leased)
		return RC_INVALID;
	rc = reserve(l, k, &lease, &d);
	if (rc != RC_OK) {
		k->ghost |= LIFE_IS(RECORD_IN_PROGRESS);
		return rc;
	}
	if (d != DECIDE_RUN) {
		life_wrong(l, "reserve %s: decision %d, and it does not run",
		    k->name, (int)d);
		return RC_EXISTS;
	}
	if (!k->past &&
	    (k->may &
		(LIFE_IS(RECORD_NONE) | LIFE_IS(RECORD_FAILED_RETRYABLE))) == 0)
		life_wrong(l, "reserve %s: it runs twice", k->name);
	life_committed(l);
	k->leased = true;
	k->tries.attempt = lease.attempt;
	k->claimed = false;
	k->dead = false;
	k->lease = lease;
	k->past = false;
	k->may = LIFE_IS(RECORD_IN_PROGRESS);
	return RC_OK;
}

enum rc
life_finish(struct life *l, struct life_key *k, const struct life_step *what,
    struct store_outcome **outcome, bool *answered)
{
	struct store_finished done = { 0, false };
	enum rc rc;

	vfs_within(true);
	if (k->leased)
		rc = store_finish(l->store, &k->lease, what->at_once ? 0 : HOUR,
		    outcome, &done);
	else if (k->claimed)
		rc = store_resolve(l->store, k->lease.id, &k->tries, outcome);
	else
		rc = store_resolve_by_operator(
		    l->store, k->lease.id, k->tries.attempt, outcome);
	vfs_within(false);
	*answered = done.answered;
	return rc;
}

/* The lease's end, or without one what was found out. */
struct store_outcome *
life_outcome(struct life *l, struct life_key *k, const struct life_step *what,
    enum record_state state)
{
	struct store_outcome *s = store_outcome_new(l->store);

	if (s == NULL)
		abort();
	s->state = state;
	k->past = what->at_once;
	if (state == RECORD_COMPLETED) {
		k->size = what->size;
		k->kept = s->keep = what->verb != LIFE_NOT_KEPT;
		s->response.status = 201;
		if (response_add(&s->response, "X-Key", "1") != RC_OK ||
		    response_add(&s->response, "X-Key", "2") != RC_OK)
			abort();
		give_body(s, k, what->size);
	}
	return s;
}

enum rc
life_settled(
    struct life *l, struct life_key *k, enum record_state state, enum rc rc)
{
	if (rc == RC_OK) {
		life_committed(l);
		k->may = LIFE_IS(state);
	} else if (rc == RC_PENDING) {
		k->before = k->may & ~LIFE_IS(state);
		k->may |= LIFE_IS(state);
	} else
		life_wrong(l, "settle %s: %s", k->name, rc_text(rc));
	k->leased = false;
	return rc;
}

static enum rc
act_settle(struct life *l, struct life_key *k, const struct life_step *what,
    enum record_state state, bool leased)
{
	struct store_outcome *s;
	bool answered;
	enum rc rc;

	if (k->leased != leased)
		return RC_INVALID;
	s = life_outcome(l, k, what, state);
	rc = life_finish(l, k, what, &s, &answered);
	if ((s == NULL) != (rc == RC_PENDING))
		life_wrong(
		    l, "settle %s: %s, and its owner?", k->name, rc_text(rc));
	store_outcome_free(s);
	k->claimed = false; /* the next to settle it is an operator */
	return life_settled(l, k, state, rc);
}

static enum rc
act_sweep(struct life *l)
{
	struct store_change changes[LIFE_KEYS];
	unsigned in_progress = LIFE_IS(RECORD_IN_PROGRESS);
	struct life_key *k;
	enum rc rc;
	int n;

	vfs_within(true);
	rc = store_recover(l->store, LIFE_KEYS, changes, &n);
	store_changes_free(changes, n);
	vfs_within(false);
	if (rc == RC_OK && n > 0)
		life_committed(l);
	for (k = l->key; k < l->key + l->nkeys; k++) {
		if (!k->dead || (k->may & in_progress) == 0)
			continue;
		if (rc == RC_OK)
			k->may &= ~in_progress;
		/* a failed one may have been without its clock only */
		k->may |= LIFE_IS(RECORD_UNKNOWN);
	}
	return rc;
}

static enum rc
act_reap(struct life *l)
{
	struct store_change changes[STORE_EXPIRE_MAX];
	struct life_key *k;
	unsigned after;
	enum rc rc;
	int n;

	vfs_within(true);
	rc = store_expire(l->store, STORE_EXPIRE_MAX, changes, &n);
	store_changes_free(changes, n);
	vfs_within(false);
	if (rc == RC_OK && n > 0)
		life_committed(l);
	for (k = l->key; k < l->key + l->nkeys; k++) {
		if (!k->past)
			continue;
		after = LIFE_IS(k->marker ? RECORD_EXPIRED : RECORD_NONE);
		k->may = rc == RC_OK ? after : k->may | after;
	}
	return rc;
}

/* Its time comes a millisecond after it became unknown. */
static enum rc
act_claim(struct life *l, struct life_key *k)
{
	int64_t until = clock_mono() + 1000;
	struct record due;
	enum rc rc;

	do {
		vfs_within(true);
		rc = store_due(l->store, 0, &due);
		vfs_within(false);
	} while (rc == RC_NOTFOUND && clock_mono() < until);
	if (rc != RC_OK)
		return rc;
	if (due.id != k->lease.id)
		life_wrong(l, "%s is due, and not %s", due.key, k->name);
	k->tries.attempt = due.attempt;
	k->tries.tries = due.reconcile_attempts;
	k->claimed = true;
	record_free(&due);
	vfs_within(true);
	rc = store_claim(l->store, k->lease.id, &k->tries, true, HOUR);
	vfs_within(false);
	if (rc == RC_OK)
		life_committed(l);
	return rc;
}

static enum rc
act_forget(struct life *l, struct life_key *k)
{
	enum rc rc;

	vfs_within(true);
	rc = store_forget(l->store, k->lease.id, RECORD_NONE);
	vfs_within(false);
	if (rc == RC_OK) {
		life_committed(l);
		k->may = LIFE_IS(RECORD_NONE);
	} else
		k->ghost |= LIFE_IS(RECORD_NONE);
	return rc;
}

/* What the committer does by itself when there is more in the log. */
static enum rc
act_checkpoint(struct life *l, int mode)
{
	sqlite3 *db = NULL;
	int code;

	vfs_within(true);
	code = sqlite3_open(l->file, &db);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, 5000);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db,
		    l->durability == CONF_DURABILITY_FULL
			? "PRAGMA synchronous = FULL"
			: "PRAGMA synchronous = NORMAL",
		    NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
	sqlite3_close(db);
	vfs_within(false);
	return code == SQLITE_OK ? RC_OK : RC_IO;
}

enum rc
life_step(struct life *l, const struct life_step *s)
{
	struct life_key *k = s->key != NULL ? key_of(l, s->key) : NULL;

	if (s->verb == LIFE_RESERVE) {
		k->asked = s->asked;
		k->marker = s->marker;
	}
	if (s->verb == LIFE_ACCEPT)
		k->accepted = true;
	if (s->verb == LIFE_RESERVE || s->verb == LIFE_ACCEPT)
		k->request = s->request != 0 ? s->request : REQUEST;
	if (s->verb == LIFE_OPEN)
		return act_open(l);
	if (l->store == NULL)
		return RC_INVALID;
	switch (s->verb) {
	case LIFE_OPEN:
		break;
	case LIFE_CLOSE:
		close_store(l);
		return RC_OK;
	case LIFE_RESERVE:
		return act_reserve(l, k);
	case LIFE_COMPLETE:
	case LIFE_NOT_KEPT:
		return act_settle(l, k, s, RECORD_COMPLETED, true);
	case LIFE_RELEASE:
		return act_settle(l, k, s, RECORD_FAILED_RETRYABLE, true);
	case LIFE_UNKNOWN:
		return act_settle(l, k, s, RECORD_UNKNOWN, true);
	case LIFE_SWEEP:
		return act_sweep(l);
	case LIFE_REAP:
		return act_reap(l);
	case LIFE_CLAIM:
		return act_claim(l, k);
	case LIFE_RESOLVE:
		return act_settle(l, k, s, RECORD_COMPLETED, false);
	case LIFE_NOT_EXECUTED:
		return act_settle(l, k, s, RECORD_FAILED_RETRYABLE, false);
	case LIFE_GIVE_UP:
		return act_settle(l, k, s, RECORD_DEAD_LETTER, false);
	case LIFE_FORGET:
		return act_forget(l, k);
	case LIFE_CHECKPOINT:
		return act_checkpoint(l, SQLITE_CHECKPOINT_PASSIVE);
	case LIFE_TRUNCATE:
		return act_checkpoint(l, SQLITE_CHECKPOINT_TRUNCATE);
	case LIFE_SAY:
	case LIFE_SEAL:
	case LIFE_HARDEN:
	case LIFE_TOPIC:
	case LIFE_ACCEPT:
	case LIFE_START:
	case LIFE_REQUEUE:
	case LIFE_ABANDON:
	case LIFE_TRY:
	case LIFE_DELIVERED:
	case LIFE_FAILED:
	case LIFE_UNDELIVERED:
		return life_said_step(l, k, s);
	}
	return RC_INVALID;
}

/* The request that was kept to find out with. */
static void
check_request(struct life *l, const struct life_key *k, int64_t id)
{
	const struct store_identity who = { "alice", "/payments", k->name };
	struct spool *body = NULL;
	struct buf env;
	enum rc rc, bytes = RC_OK;

	buf_init(&env, sizeof(environment));
	vfs_within(true);
	rc = store_request(l->store, &who, id, &env, &body);
	vfs_within(false);
	if (rc != RC_OK)
		life_wrong(l, "%s: its request: %s", k->name, rc_text(rc));
	else if (env.len != sizeof(environment) ||
	    memcmp(env.data, environment, env.len) != 0 || body == NULL ||
	    (size_t)spool_length(body) != k->request ||
	    memcmp(spool_bytes(body, &bytes), request_body, k->request) != 0)
		life_wrong(l, "%s: another request", k->name);
	buf_free(&env);
	spool_free(body);
}

/* --- looking ------------------------------------------------------------ */

static void
look_at(struct life *l, struct life_key *k, bool crashed)
{
	unsigned may = k->may | (crashed ? k->ghost | k->said_ghost : 0);
	struct record r;
	enum record_state state;
	enum rc rc;

	rc = find(l, k, &r);
	if (rc != RC_OK && rc != RC_NOTFOUND) {
		life_wrong(l, "%s: cannot be read: %s", k->name, rc_text(rc));
		return;
	}
	state = rc == RC_OK ? r.state : RECORD_NONE;
	if ((may & LIFE_IS(state)) == 0)
		life_wrong(l, "%s is %s, and may be of the set 0x%x only",
		    k->name, record_state_name(state), may);
	if (state == RECORD_COMPLETED && l->full && !r.replayable)
		k->kept = false;
	if (state == RECORD_COMPLETED && r.replayable != k->kept)
		life_wrong(
		    l, "%s is kept, or not, and should be otherwise", k->name);
	if (state == RECORD_COMPLETED && r.replayable) {
		rc = check_answer(l, k, r.id);
		if (rc != RC_OK)
			life_wrong(
			    l, "%s: no answer: %s", k->name, rc_text(rc));
	}
	if ((k->asked || k->accepted) &&
	    (state == RECORD_IN_PROGRESS || state == RECORD_UNKNOWN ||
		state == RECORD_PENDING))
		check_request(l, k, r.id);
	record_free(&r);
}

void
life_look(struct life *l, bool crashed)
{
	size_t i;

	for (i = 0; i < l->nkeys; i++)
		look_at(l, &l->key[i], crashed);
	life_look_at_deeds(l, crashed);
}

static enum record_state
state_of(struct life *l, const struct life_key *k)
{
	enum record_state state;
	struct record r;

	if (find(l, k, &r) != RC_OK)
		return RECORD_NONE;
	state = r.state;
	record_free(&r);
	return state;
}

/* What a client gets that sends the request again after recovery. */
static void
send_again(struct life *l, struct life_key *k)
{
	enum record_state state = state_of(l, k);
	enum decision d = DECIDE_GONE, want = DECIDE_RUN;
	struct store_lease lease;
	enum rc rc;

	if (state == RECORD_IN_PROGRESS)
		life_wrong(
		    l, "%s: a dead owner's, and still in progress", k->name);
	if (state == RECORD_UNKNOWN || state == RECORD_DEAD_LETTER)
		want = DECIDE_UNKNOWN;
	else if (state == RECORD_PENDING)
		want = DECIDE_BUSY;
	else if (state == RECORD_EXPIRED ||
	    (k->past && k->marker && state != RECORD_NONE))
		want = DECIDE_GONE;
	else if (state == RECORD_COMPLETED && !k->past)
		want = k->kept ? DECIDE_REPLAY : DECIDE_NOT_KEPT;
	rc = reserve(l, k, &lease, &d);
	if (rc != RC_OK)
		life_wrong(l, "%s: sent again: %s", k->name, rc_text(rc));
	else if (d != want)
		life_wrong(l, "%s is %s: sent again, decision %d, not %d",
		    k->name, record_state_name(state), (int)d, (int)want);
}

/* What is kept apart belongs to a key that needs it. */
static void
look_for_orphans(struct life *l)
{
	static const char *const sql[] = {
		("SELECT count(*) FROM once_request r "
		 "LEFT JOIN once_key k ON k.id = r.key_id "
		 "WHERE k.id IS NULL OR k.state IN ('completed', 'expired')"),
		("SELECT count(*) FROM once_piece p "
		 "LEFT JOIN once_key k ON k.id = p.id / 65536 "
		 "WHERE p.id BETWEEN 0 AND 65536 * 70368744177664 + 65535 "
		 "AND (k.id IS NULL OR k.state <> 'completed')"),
		("SELECT count(*) FROM once_piece p WHERE p.id < 0 AND "
		 "(p.id - 65535) / 65536 NOT IN (SELECT pieces "
		 "FROM once_request) AND (p.id - 65535) / 65536 NOT IN "
		 "(SELECT pieces FROM once_answer)"),
		"SELECT count(*) FROM once_unnamed",
		("SELECT count(*) FROM once_key WHERE fingerprint_spec NOT IN "
		 "(SELECT id FROM once_fingerprint_spec)"),
		("SELECT count(*) FROM once_piece p LEFT JOIN once_effect e "
		 "ON e.id = p.id / 65536 - 70368744177664 "
		 "WHERE p.id > 65536 * 70368744177664 + 65535 "
		 "AND (e.id IS NULL OR e.state = 'delivered')"),
	};
	sqlite3_stmt *s;
	sqlite3 *db = NULL;
	size_t i;

	if (sqlite3_open(l->file, &db) != SQLITE_OK)
		life_wrong(l, "cannot be opened: %s", sqlite3_errmsg(db));
	for (i = 0; i < COUNT(sql) && l->wrong[0] == '\0'; i++) {
		if (sqlite3_prepare_v2(db, sql[i], -1, &s, NULL) != SQLITE_OK ||
		    sqlite3_step(s) != SQLITE_ROW)
			life_wrong(l, "%s: %s", sql[i], sqlite3_errmsg(db));
		else if (sqlite3_column_int(s, 0) != 0)
			life_wrong(
			    l, "%s: %d", sql[i], sqlite3_column_int(s, 0));
		sqlite3_finalize(s);
	}
	sqlite3_close(db);
}

/* The findings that are no operator's business, and must be there. */
static void
look_at_health(struct life *l)
{
	static const char *const must[] = { "integrity", "schema", "bodies",
		"requests", "leases" };
	struct store_finding f[32];
	size_t n, i, j;
	bool there;
	enum rc rc;

	rc = store_doctor(l->store, NULL, f, COUNT(f), &n);
	if (rc != RC_OK) {
		life_wrong(l, "doctor: %s", rc_text(rc));
		return;
	}
	for (i = 0; i < COUNT(must); i++) {
		there = false;
		for (j = 0; j < n; j++) {
			if (strcmp(f[j].name, must[i]) != 0)
				continue;
			there = true;
			if (!f[j].ok)
				life_wrong(
				    l, "doctor: %s: %s", f[j].name, f[j].text);
		}
		if (!there)
			life_wrong(l, "doctor says nothing of %s", must[i]);
	}
}

/* Every row can be read: what is wrong with one, its reader tells. */
static void
look_at_rows(struct life *l)
{
	struct store_identity who;
	struct store_filter all;
	struct store_cursor *c;
	struct record row;
	struct record r;
	enum rc rc;

	memset(&all, 0, sizeof(all));
	rc = store_list(l->store, &all, &c);
	while (rc == RC_OK && (rc = store_list_next(c, &row)) == RC_OK) {
		who.scope = row.scope;
		who.path = row.path;
		who.key = row.key;
		rc = store_find(l->store, &who, &r);
		if (rc == RC_OK)
			record_free(&r);
		else
			life_wrong(l, "%s: its row: %s", row.key, rc_text(rc));
		record_free(&row);
	}
	store_list_free(c);
	if (rc != RC_NOTFOUND)
		life_wrong(l, "list: %s", rc_text(rc));
}

void
life_autopsy(struct life *l)
{
	const struct life_step fresh[] = {
		{ .verb = LIFE_SWEEP },
		{ .verb = LIFE_RESERVE, .key = "fresh" },
		{ .verb = LIFE_COMPLETE, .key = "fresh", .size = 5000 },
	};
	char err[256];
	size_t i;

	life_crashed(l);
	if (l->store == NULL && open_store(l, err, sizeof(err)) != RC_OK) {
		life_wrong(l, "open: %s", err);
		return;
	}
	look_at_rows(l);
	life_look(l, true);
	for (i = 0; i < COUNT(fresh); i++)
		if (life_step(l, &fresh[i]) != RC_OK)
			life_wrong(l, "after the crash: step %zu failed", i);
	for (i = 0; i < l->nkeys; i++)
		send_again(l, &l->key[i]);
	look_at_health(l);
	look_for_orphans(l);
	close_store(l);
}

/* --- all rows ----------------------------------------------------------- */

static void
add(uint64_t *hash, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t i;

	/* FNV-1a */
	for (i = 0; i < n; i++)
		*hash = (*hash ^ p[i]) * 0x100000001b3ULL;
}

static int
add_table(sqlite3 *db, const char *table, uint64_t *hash)
{
	sqlite3_stmt *s = NULL;
	int64_t kept;
	int code, i, type;

	add(hash, table, strlen(table) + 1);
	code = life_part_select(db, table, &s);
	while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
		for (i = 0; i < sqlite3_column_count(s); i++) {
			type = sqlite3_column_type(s, i);
			add(hash, &type, sizeof(type));
			if (strcmp(sqlite3_column_name(s, i), "kept_bytes") ==
			    0) {
				kept = sqlite3_column_int64(s, i) -
				    life_part_kept(db);
				add(hash, &kept, sizeof(kept));
				continue;
			}
			add(hash, sqlite3_column_blob(s, i),
			    (size_t)sqlite3_column_bytes(s, i));
		}
		code = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

bool
life_snapshot(const char *file, uint64_t *hash, bool *no_keys)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	int code;

	*hash = 0xcbf29ce484222325ULL;
	*no_keys = true;
	code = sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, 5000);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db,
		    "SELECT name FROM sqlite_schema WHERE type = 'table' "
		    "AND name NOT LIKE 'sqlite%' AND name <> 'once_clock' "
		    "ORDER BY name",
		    -1, &s, NULL);
	while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
		code = add_table(
		    db, (const char *)sqlite3_column_text(s, 0), hash);
	sqlite3_finalize(s);
	s = NULL;
	if (code == SQLITE_DONE)
		code = sqlite3_prepare_v2(
		    db, "SELECT 1 FROM once_key LIMIT 1", -1, &s, NULL);
	if (code == SQLITE_OK)
		*no_keys = sqlite3_step(s) != SQLITE_ROW;
	sqlite3_finalize(s);
	sqlite3_close(db);
	return code == SQLITE_OK;
}
