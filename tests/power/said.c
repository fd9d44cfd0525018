/*
 * Of a life: what handlers commit themselves, through a plain connection of
 * their own, what is accepted and done later, and the outbox.
 *
 * A handler's transaction is a row in a table of its own, deed, that says what
 * else there must be: a recovery point, effects, the answer.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "life_impl.h"
#include "vfs.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define TOPIC "mail"
#define QUEUE 100

#define SAY(k, ...)                                     \
	{                                               \
		.verb = LIFE_SAY, .key = k, __VA_ARGS__ \
	}
#define DO(what, k)                           \
	{                                     \
		.verb = LIFE_##what, .key = k \
	}

const struct life_step life_said[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_TOPIC },
	DO(RESERVE, "phases"),
	SAY("phases", .point = "first"),
	SAY("phases", .point = "second", .effects = 2, .sync = LIFE_NORMAL),
	SAY("phases", .effects = 1, .answer = true, .size = 3000,
	    .sync = LIFE_OFF),
	DO(SEAL, "phases"),
	DO(RESERVE, "asked for"),
	SAY("asked for", .answer = true, .size = 10, .sync = LIFE_NORMAL),
	{ .verb = LIFE_HARDEN }, /* it is asked for */
	DO(SEAL, "asked for"),
	DO(TRY, "phases"),
	DO(DELIVERED, "phases"),
	DO(TRY, "phases"),
	DO(FAILED, "phases"),
	DO(TRY, "phases"),
	DO(UNDELIVERED, "phases"),
	DO(TRY, "phases"),
	DO(DELIVERED, "phases"),
	DO(ACCEPT, "later"),
	DO(START, "later"),
	SAY("later", .point = "half", .sync = LIFE_NORMAL),
	DO(REQUEUE, "later"),
	DO(START, "later"),
	SAY("later", .effects = 1, .answer = true, .size = 100),
	DO(SEAL, "later"),
	{ .verb = LIFE_ACCEPT, .key = "abandoned", .at_once = true },
	DO(ABANDON, "abandoned"),
	DO(ACCEPT, "waits"),
	DO(ACCEPT, "silent"),
	DO(START, "waits"), /* the first in the queue */
	{ .verb = LIFE_COMPLETE, .key = "waits", .size = 300 },
	DO(RESERVE, "large"),
	SAY("large", .answer = true, .size = 30000),
	DO(RESERVE, "lost"),
	SAY("lost", .point = "somewhere", .effects = 1),
	DO(TRY, "later"),
	{ .verb = LIFE_CHECKPOINT },
	DO(RESERVE, "lost too"),
	SAY("lost too", .answer = true, .size = 20, .sync = LIFE_NORMAL),
	{ .verb = LIFE_CLOSE },
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_SWEEP },
	DO(START, "silent"),
	SAY("silent", .answer = true, .size = 200, .sync = LIFE_OFF),
	DO(SEAL, "silent"),
	{ .verb = LIFE_CLOSE },
};
const size_t life_nsaid = COUNT(life_said);

const struct life_step life_said_short[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_TOPIC },
	DO(RESERVE, "phases"),
	SAY("phases", .point = "first", .sync = LIFE_NORMAL),
	SAY("phases", .effects = 2, .answer = true, .size = 3000),
	{ .verb = LIFE_HARDEN },
	DO(SEAL, "phases"),
	DO(TRY, "phases"),
	DO(FAILED, "phases"),
	DO(TRY, "phases"),
	DO(DELIVERED, "phases"),
	DO(ACCEPT, "later"),
	DO(START, "later"),
	DO(REQUEUE, "later"),
	DO(START, "later"),
	SAY("later", .answer = true, .size = 100, .sync = LIFE_NORMAL),
	DO(SEAL, "later"),
	{ .verb = LIFE_ACCEPT, .key = "abandoned", .at_once = true },
	DO(ABANDON, "abandoned"),
	DO(ACCEPT, "waits"),
	DO(RESERVE, "lost"),
	SAY("lost", .answer = true, .size = 20, .sync = LIFE_NORMAL),
	DO(TRY, "phases"),
	{ .verb = LIFE_CLOSE },
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_SWEEP },
	DO(TRY, "phases"),
	DO(UNDELIVERED, "phases"),
};
const size_t life_nsaid_short = COUNT(life_said_short);

const struct life_step life_careless[] = {
	{ .verb = LIFE_OPEN },
	{ .verb = LIFE_TOPIC },
	DO(RESERVE, "replayed"),
	SAY("replayed", .answer = true, .size = 3000, .sync = LIFE_OFF_MOVES),
	{ .verb = LIFE_HARDEN },
	DO(SEAL, "replayed"),
	DO(RESERVE, "sealed"),
	SAY("sealed", .answer = true, .size = 20, .sync = LIFE_OFF_MOVES),
	DO(SEAL, "sealed"),
	DO(RESERVE, "effect"),
	SAY("effect", .effects = 1, .answer = true, .size = 20,
	    .sync = LIFE_OFF_MOVES),
	DO(TRY, "effect"),
	DO(SEAL, "effect"),
	DO(DELIVERED, "effect"),
	DO(RESERVE, "other"),
	{ .verb = LIFE_COMPLETE, .key = "other", .size = 100 },
	{ .verb = LIFE_CLOSE },
};
const size_t life_ncareless = COUNT(life_careless);

bool
life_is_firm(const struct life_step *s)
{
	return s->verb != LIFE_SAY || s->sync == LIFE_FULL;
}

bool
life_is_careless(const struct life_step *s)
{
	return s->verb == LIFE_SAY && s->sync == LIFE_OFF_MOVES;
}

/* --- a handler's transaction ---------------------------------------------- */

/* fmt: as of sqlite3_mprintf(). */
static int
execute(sqlite3 *db, const char *fmt, ...)
{
	va_list ap;
	char *sql;
	int code;

	va_start(ap, fmt);
	sql = sqlite3_vmprintf(fmt, ap);
	va_end(ap);
	if (sql == NULL)
		return SQLITE_NOMEM;
	code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	return code;
}

static int
respond(sqlite3 *db, const struct life_key *k, size_t size)
{
	unsigned char *body = malloc(size + 1);
	sqlite3_stmt *s = NULL;
	size_t i;
	int code;

	if (body == NULL)
		abort();
	for (i = 0; i < size; i++)
		body[i] = life_byte(k, i);
	code = sqlite3_prepare_v2(db,
	    "INSERT INTO once_response(token, status, headers, body)"
	    " VALUES (?1 || '-' || ?2, 201, 'X-Key: 1' || char(10) ||"
	    " 'X-Key: 2', ?3)",
	    -1, &s, NULL);
	if (code == SQLITE_OK) {
		sqlite3_bind_text(s, 1, k->lease.token, -1, SQLITE_STATIC);
		sqlite3_bind_int64(s, 2, k->lease.id);
		sqlite3_bind_blob(s, 3, body, (int)size, SQLITE_STATIC);
		code = sqlite3_step(s);
	}
	sqlite3_finalize(s);
	free(body);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int
transact(sqlite3 *db, const struct life_key *k, const struct life_step *what)
{
	long long id = (long long)k->lease.id;
	int code, i;

	code = execute(db,
	    "BEGIN IMMEDIATE;"
	    "CREATE TABLE IF NOT EXISTS deed(n INTEGER PRIMARY KEY, key TEXT,"
	    " point TEXT, effects INTEGER, answer INTEGER);"
	    "INSERT INTO deed(key, point, effects, answer)"
	    " VALUES (%Q, %Q, %d, %d)",
	    k->name, what->point, what->effects, what->answer);
	if (code == SQLITE_OK && what->point != NULL)
		code = execute(db,
		    "INSERT INTO once_checkpoint(token, recovery_point)"
		    " VALUES ('%s-%lld', %Q)",
		    k->lease.token, id, what->point);
	for (i = 0; i < what->effects && code == SQLITE_OK; i++)
		code = execute(db,
		    "INSERT INTO once_outbox(token, topic, payload)"
		    " VALUES ('%s-%lld', '" TOPIC "', %s)",
		    k->lease.token, id,
		    i % 2 == 0 ? "'short'" : "hex(zeroblob(1500))");
	if (code == SQLITE_OK && what->answer)
		code = respond(db, k, what->size);
	if (code == SQLITE_OK)
		code = execute(db, "COMMIT");
	return code;
}

static int
say(const struct life *l, const struct life_key *k,
    const struct life_step *what)
{
	static const char *const sync[] = { [LIFE_FULL] = "FULL",
		[LIFE_NORMAL] = "NORMAL",
		[LIFE_OFF] = "OFF",
		[LIFE_OFF_MOVES] = "OFF" };
	sqlite3 *db = NULL;
	int code;

	code = sqlite3_open_v2(l->file, &db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, (int)l->busy_timeout);
	if (code == SQLITE_OK)
		code = execute(db, "PRAGMA synchronous = %s", sync[what->sync]);
	if (code == SQLITE_OK)
		code = transact(db, k, what);
	if (code == SQLITE_OK && what->sync == LIFE_OFF_MOVES)
		(void)sqlite3_wal_checkpoint_v2(
		    db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_close(db);
	return code;
}

static enum rc
act_say(struct life *l, struct life_key *k, const struct life_step *what)
{
	unsigned before = k->may;
	int code;

	if (!k->leased)
		return RC_INVALID;
	if (what->answer) {
		k->size = what->size;
		k->kept = true;
	}
	code = say(l, k, what);
	if (code != SQLITE_OK) {
		k->deed_ghosts = 1;
		if (what->answer)
			k->said_ghost |= LIFE_IS(RECORD_COMPLETED);
		return RC_IO;
	}
	if (what->sync == LIFE_FULL)
		life_committed(l);
	else
		k->soft++;
	k->deeds++;
	if (what->answer) {
		k->may = LIFE_IS(RECORD_COMPLETED);
		if (what->sync != LIFE_FULL)
			k->said_ghost |= before;
	}
	return RC_OK;
}

/* However it ended. */
static enum rc
act_seal(struct life *l, struct life_key *k, const struct life_step *what)
{
	struct store_outcome *s;
	bool answered;
	enum rc rc;

	if (!k->leased)
		return RC_INVALID;
	s = life_outcome(l, k, what, RECORD_UNKNOWN);
	rc = life_finish(l, k, what, &s, &answered);
	if (rc != RC_OK && rc != RC_PENDING)
		life_wrong(l, "seal %s: %s", k->name, rc_text(rc));
	if (rc == RC_OK && !answered)
		life_wrong(l, "%s: its own answer was not seen", k->name);
	store_outcome_free(s);
	if (rc == RC_OK)
		life_committed(l);
	k->leased = false;
	return rc;
}

static enum rc
act_harden(struct life *l)
{
	const struct record unconfirmed = { .unconfirmed = true };
	enum rc rc;

	vfs_within(true);
	rc = store_make_durable(l->store, &unconfirmed);
	vfs_within(false);
	if (rc == RC_OK)
		life_committed(l);
	return rc;
}

static enum rc
act_topic(struct life *l)
{
	char topic[] = TOPIC, *const topics[] = { topic };
	enum rc rc;

	vfs_within(true);
	rc = store_topics(l->store, topics, 1, topics, 0);
	vfs_within(false);
	if (rc == RC_OK)
		life_committed(l);
	return rc;
}

/* --- accepted work -------------------------------------------------------- */

static enum rc
act_accept(struct life *l, struct life_key *k, const struct life_step *what)
{
	struct store_reservation r = life_reservation(k);
	struct store_ticket ticket;
	enum decision d = DECIDE_GONE;
	struct record found;
	enum rc rc;

	if (what->at_once)
		r.retention = 0;
	r.resource = true;
	vfs_within(true);
	rc = store_accept(l->store, &r, QUEUE, &ticket, &d, &found);
	vfs_within(false);
	record_free(&found);
	if (rc != RC_OK) {
		k->ghost |= LIFE_IS(RECORD_PENDING);
		return rc;
	}
	if (d != DECIDE_RUN || ticket.full || ticket.resource[0] == '\0')
		life_wrong(l, "accept %s: decision %d", k->name, (int)d);
	life_committed(l);
	k->may = LIFE_IS(RECORD_PENDING);
	return RC_OK;
}

static enum rc
act_start(struct life *l, struct life_key *k)
{
	struct store_reservation r = life_reservation(k);
	struct store_lease lease;
	struct record job;
	enum rc rc;

	vfs_within(true);
	rc = store_job_next(l->store, &job);
	vfs_within(false);
	if (rc != RC_OK)
		return rc;
	if (strcmp(job.key, k->name) != 0)
		life_wrong(l, "%s is due, and not %s", job.key, k->name);
	vfs_within(true);
	rc = store_job_start(l->store, &job, &r, &lease);
	vfs_within(false);
	record_free(&job);
	if (rc != RC_OK) {
		k->ghost |= LIFE_IS(RECORD_IN_PROGRESS);
		return rc;
	}
	life_committed(l);
	k->leased = true;
	k->dead = false;
	k->lease = lease;
	k->tries.attempt = lease.attempt;
	k->may = LIFE_IS(RECORD_IN_PROGRESS);
	return RC_OK;
}

static enum rc
act_requeue(struct life *l, struct life_key *k, const struct life_step *what)
{
	struct store_outcome *s;
	bool answered;
	enum rc rc;

	if (!k->leased)
		return RC_INVALID;
	s = life_outcome(l, k, what, RECORD_FAILED_RETRYABLE);
	s->requeue = 0;
	rc = life_finish(l, k, what, &s, &answered);
	store_outcome_free(s);
	return life_settled(l, k, RECORD_FAILED_RETRYABLE, rc);
}

static enum rc
act_abandon(struct life *l, struct life_key *k, const struct life_step *what)
{
	struct store_outcome *s;
	struct record job;
	enum rc rc;

	vfs_within(true);
	rc = store_job_abandoned(l->store, &job);
	vfs_within(false);
	if (rc != RC_OK)
		return rc;
	if (strcmp(job.key, k->name) != 0)
		life_wrong(l, "%s is past, and not %s", job.key, k->name);
	s = life_outcome(l, k, what, RECORD_COMPLETED);
	vfs_within(true);
	rc = store_abandon(l->store, job.id, &s);
	vfs_within(false);
	store_outcome_free(s);
	record_free(&job);
	k->past = true;
	return life_settled(l, k, RECORD_COMPLETED, rc);
}

/* --- the outbox ----------------------------------------------------------- */

static void
check_payload(struct life *l, const struct effect *e)
{
	struct spool *payload = NULL;
	size_t n;
	enum rc rc;

	rc = store_effect_payload(l->store, e, &payload);
	n = rc == RC_OK && payload != NULL ? spool_length(payload) : 0;
	if (rc == RC_OK && n != 5 && n != 3000)
		life_wrong(l, "%s: a payload of %zu bytes", e->key, n);
	spool_free(payload);
}

static enum rc
act_try(struct life *l, struct life_key *k)
{
	struct effect e;
	int64_t at;
	enum rc rc;

	vfs_within(true);
	rc = store_effect_next(l->store, TOPIC, &e, &at);
	vfs_within(false);
	if (rc != RC_OK)
		return rc;
	if (strcmp(e.key, k->name) != 0)
		life_wrong(l, "%s is due, and not %s", e.key, k->name);
	if (k->trying)
		life_wrong(l, "%s: two at once", k->name);
	vfs_within(true);
	rc = store_effect_begin(l->store, &e);
	vfs_within(false);
	if (rc == RC_OK) {
		life_committed(l);
		check_payload(l, &e);
		k->effect = e;
		k->effect.topic = k->effect.scope = NULL;
		k->effect.path = k->effect.key = NULL;
		k->trying = true;
		k->tried++;
	}
	effect_free(&e);
	return rc;
}

static enum rc
act_tried(struct life *l, struct life_key *k, enum effect_state state)
{
	struct effect_end end;
	enum rc rc;

	if (!k->trying)
		return RC_INVALID;
	memset(&end, 0, sizeof(end));
	end.state = state;
	if (state == EFFECT_DELIVERED) {
		end.reference = "a reference";
		end.reference_len = strlen("a reference");
	} else
		snprintf(end.last_error, sizeof(end.last_error), "no");
	vfs_within(true);
	rc = store_effect_end(l->store, &k->effect, &end);
	vfs_within(false);
	if (rc == RC_LOST)
		life_wrong(l, "%s: the try has no owner", k->name);
	if (rc != RC_OK)
		return rc;
	life_committed(l);
	k->trying = false;
	k->delivered += state == EFFECT_DELIVERED;
	k->undelivered += state == EFFECT_DEAD_LETTER;
	return RC_OK;
}

enum rc
life_said_step(struct life *l, struct life_key *k, const struct life_step *s)
{
	switch (s->verb) {
	case LIFE_SAY:
		return act_say(l, k, s);
	case LIFE_SEAL:
		return act_seal(l, k, s);
	case LIFE_HARDEN:
		return act_harden(l);
	case LIFE_TOPIC:
		return act_topic(l);
	case LIFE_ACCEPT:
		return act_accept(l, k, s);
	case LIFE_START:
		return act_start(l, k);
	case LIFE_REQUEUE:
		return act_requeue(l, k, s);
	case LIFE_ABANDON:
		return act_abandon(l, k, s);
	case LIFE_TRY:
		return act_try(l, k);
	case LIFE_DELIVERED:
		return act_tried(l, k, EFFECT_DELIVERED);
	case LIFE_FAILED:
		return act_tried(l, k, EFFECT_PENDING);
	case LIFE_UNDELIVERED:
		return act_tried(l, k, EFFECT_DEAD_LETTER);
	default:
		return RC_INVALID;
	}
}

/* --- looking -------------------------------------------------------------- */

static const char deeds[] =
    "SELECT k.key, count(d.n), coalesce(sum(d.effects), 0),"
    " coalesce(max(d.answer), 0),"
    " coalesce((SELECT point FROM deed p WHERE p.key = k.key"
    " AND p.point IS NOT NULL ORDER BY p.n DESC LIMIT 1), 'started'),"
    " coalesce(k.recovery_point, 'started'), (SELECT count(*) FROM once_effect "
    "e"
    " WHERE e.key_id = k.id),"
    " k.state = 'completed' AND k.response_version = 2,"
    " (SELECT coalesce(sum(attempts), 0) FROM once_effect e"
    " WHERE e.key_id = k.id),"
    " (SELECT count(*) FROM once_effect e WHERE e.key_id = k.id"
    " AND e.state = 'delivered'),"
    " (SELECT count(*) FROM once_effect e WHERE e.key_id = k.id"
    " AND e.state = 'dead_letter')"
    " FROM once_key k LEFT JOIN deed d ON d.key = k.key GROUP BY k.id";

static void
look_at_deed(struct life *l, sqlite3_stmt *s, bool crashed)
{
	const char *name = (const char *)sqlite3_column_text(s, 0);
	int n = sqlite3_column_int(s, 1);
	struct life_key *k;

	for (k = l->key; k < l->key + l->nkeys; k++)
		if (strcmp(k->name, name) == 0)
			break;
	if (k == l->key + l->nkeys)
		return;
	if (n < k->deeds - (crashed ? k->soft : 0) ||
	    n > k->deeds + (crashed ? k->deed_ghosts : 0))
		life_wrong(l, "%s: %d of %d transactions", name, n, k->deeds);
	if (sqlite3_column_int(s, 2) != sqlite3_column_int(s, 6))
		life_wrong(l, "%s: %d effects of %d", name,
		    sqlite3_column_int(s, 6), sqlite3_column_int(s, 2));
	if (sqlite3_column_int(s, 3) != sqlite3_column_int(s, 7))
		life_wrong(l, "%s: its answer is there, or not", name);
	if (strcmp((const char *)sqlite3_column_text(s, 4),
		(const char *)sqlite3_column_text(s, 5)) != 0)
		life_wrong(l, "%s: it is at %s", name,
		    (const char *)sqlite3_column_text(s, 5));
	if (sqlite3_column_int(s, 8) < k->tried ||
	    sqlite3_column_int(s, 9) < k->delivered ||
	    sqlite3_column_int(s, 10) < k->undelivered)
		life_wrong(l, "%s: a try of an effect is forgotten", name);
}

void
life_look_at_deeds(struct life *l, bool crashed)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	size_t i;
	int code, needed = 0;

	for (i = 0; i < l->nkeys; i++)
		if (l->key[i].deeds > (crashed ? l->key[i].soft : 0))
			needed = 1;
	code = sqlite3_open_v2(l->file, &db, SQLITE_OPEN_READWRITE, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, 5000);
	if (code == SQLITE_OK &&
	    sqlite3_table_column_metadata(db, NULL, "deed", NULL, NULL, NULL,
		NULL, NULL, NULL) != SQLITE_OK) {
		if (needed)
			life_wrong(l, "no transaction of a handler is there");
		sqlite3_close(db);
		return;
	}
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db, deeds, -1, &s, NULL);
	while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
		look_at_deed(l, s, crashed);
		code = SQLITE_OK;
	}
	if (code != SQLITE_DONE)
		life_wrong(l, "deeds: %s", sqlite3_errmsg(db));
	sqlite3_finalize(s);
	sqlite3_close(db);
}
