/*
 * A key: what identifies it, and reads of its record, its response and its
 * stored request.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "fault.h"
#include "log.h"
#include "postgres_impl.h"
#include "rows.h"

/* --- its identity --------------------------------------------------------- */

/* Each value is the beginning of HMAC-SHA-256 of its purpose and of the SHA-256
 * of the texts. */

/* Bytes of a digest that depend on the key alone. */
#define KEY_BYTES 4

/* No other HMAC under the store's secret begins so: see scope.c. */
static const char of_key[] = "oncewrap: digest of a key\n";
static const char of_identity[] = "oncewrap: digest of an identity\n";

/* Puts the first bytes, of size, into out. */
static void
identity_hmac(const unsigned char *secret, const char *purpose,
    const char *const *texts, size_t n, unsigned char *out, size_t size)
{
	unsigned char mac[DIGEST_LEN], digest[DIGEST_LEN];
	struct digest d;

	digest_begin(&d);
	for (size_t i = 0; i < n; i++)
		digest_text(&d, texts[i]);
	digest_end(&d, digest);
	digest_mac_for(secret, purpose, digest, sizeof(digest), mac);
	memcpy(out, mac, size);
}

/* What the index of identities holds instead of texts (see once_key in
 * schema.sql).  It is made under the store's secret, so that no client can
 * choose texts with the same values. */
struct row_range
postgres_number(const struct store *s, const struct store_identity *identity)
{
	const char *const texts[] = { identity->key, identity->path,
		identity->scope };
	struct row_range range = { .first.n = sizeof(range.first.bytes) };
	const size_t rest = sizeof(range.first.bytes) - KEY_BYTES;

	identity_hmac(
	    s->secret, of_key, texts, 1, range.first.bytes, KEY_BYTES);
	if (identity->path != NULL)
		identity_hmac(s->secret, of_identity, texts, 3,
		    range.first.bytes + KEY_BYTES, rest);
	range.last = range.first;
	if (identity->path == NULL)
		memset(range.last.bytes + KEY_BYTES, 0xff, rest);
	return range;
}

/* --- specs of fingerprints ------------------------------------------------ */

/* Numbers that are noted, at most. */
#define SPECS_MAX 256

enum rc
postgres_spec_number(struct pg *pg, const char *text, int64_t *number)
{
	unsigned char digest[DIGEST_LEN];
	enum rc rc;

	digest_of(text, strlen(text), digest);
	pg_send_quietly(pg, PG_QUERY_FINGERPRINT_SPEC_NEW, "bs", digest,
	    sizeof(digest), text);
	pg_send(pg, PG_QUERY_FINGERPRINT_SPEC_FIND, "bs", digest,
	    sizeof(digest), text);
	rc = pg_one(pg, "i", number);
	/* Another text with that digest? */
	return rc == RC_NOTFOUND ? RC_CORRUPT : rc;
}

/* A list without a lock, to which is only added.  A configuration has few. */
struct postgres_spec {
	struct postgres_spec *next;
	int64_t owner, number;
	char text[];
};

int64_t
postgres_spec_noted(const struct store *s, int64_t owner, const char *text)
{
	const struct postgres_spec *spec = atomic_load(&s->specs);

	while (spec != NULL &&
	    (spec->owner != owner || strcmp(spec->text, text) != 0))
		spec = spec->next;
	return spec != NULL ? spec->number : 0;
}

void
postgres_spec_note(
    struct store *s, int64_t owner, const char *text, int64_t number)
{
	const size_t n = strlen(text) + 1;
	struct postgres_spec *spec;

	if (postgres_spec_noted(s, owner, text) != 0 ||
	    atomic_fetch_add(&s->nspecs, 1) >= SPECS_MAX ||
	    (spec = malloc(sizeof(*spec) + n)) == NULL)
		return;
	spec->owner = owner;
	spec->number = number;
	memcpy(spec->text, text, n);
	spec->next = atomic_load(&s->specs);
	while (!atomic_compare_exchange_weak(&s->specs, &spec->next, spec))
		;
}

void
postgres_spec_free(struct store *s)
{
	struct postgres_spec *spec = atomic_load(&s->specs), *next;

	for (; spec != NULL; spec = next) {
		next = spec->next;
		free(spec);
	}
}

/* --- the record ----------------------------------------------------------- */

struct lookup {
	struct store *store;
	const struct store_identity *identity;
	struct row_value number;
	struct record *record;
	struct store_inline_answer *small; /* NULL: it is not read */
};

static void
lookup_send(struct pg *pg, void *arg, struct txn_group *group)
{
	const struct lookup *l = arg;
	const struct store_identity *identity = l->identity;

	(void)group;
	pg_send(pg, PG_QUERY_FIND, "wsss", &l->number, identity->key,
	    identity->path, identity->scope);
}

/* The record has no copy of the identity. */
static enum rc
lookup_read(struct pg *pg, void *arg)
{
	const struct lookup *l = arg;
	struct record *record = l->record;
	struct rows_head h;
	enum rc rc;

	record_free(record);
	memset(record, 0, sizeof(*record));
	if (l->small != NULL)
		store_inline_answer_free(l->small);
	if ((rc = pg_result(pg)) != RC_OK || (rc = pg_next(pg)) != RC_OK)
		return rc;
	rc = rows_record_end(
	    record, false, pg_members(pg, rows_record, rows_nrecord, record));
	if (rc == RC_CORRUPT)
		rows_bad(txn_database(l->store->pool), "once_key", record->id);
	if (rc == RC_OK && l->small != NULL && record->replayable &&
	    pg_members(pg, rows_head, rows_nhead, &h) == RC_OK)
		rows_head_small(&h, record, l->small);
	return rc;
}

static enum rc
lookup_run(struct pg *pg, void *arg)
{
	lookup_send(pg, arg, NULL);
	return lookup_read(pg, arg);
}

enum rc
postgres_lookup(struct store *s, const struct store_identity *identity,
    struct record *record, struct store_inline_answer *small)
{
	struct lookup l = { .store = s,
		.identity = identity,
		.record = record,
		.small = small };
	struct txn_op op = {
		.send = lookup_send, .read = lookup_read, .arg = &l
	};
	enum txn_shared how;
	enum rc rc;

	memset(record, 0, sizeof(*record));
	l.number = postgres_number(s, identity).first;
	rc = postgres_share(s, TXN_LOOK, &op, &how);
	if (how == TXN_SHARED_ALONE)
		rc = postgres_run(s, TXN_LOOK, lookup_run, &l);
	if (rc == RC_OK)
		record_check(record);
	else
		record_free(record);
	if (rc != RC_OK && rc != RC_NOTFOUND)
		postgres_note(s, rc);
	return rc;
}

/* --- bodies --------------------------------------------------------------- */

size_t
postgres_piece_send(
    struct pg *pg, int64_t number, const void *body, size_t length, size_t from)
{
	const size_t left = length - from;
	const size_t n = left < POSTGRES_PIECE ? left : POSTGRES_PIECE;

	pg_send(pg, PG_QUERY_PIECE_NEW, "iib", number,
	    1 + (int64_t)(from / POSTGRES_PIECE), (const char *)body + from, n);
	return n;
}

enum rc
postgres_body_write(
    struct pg *pg, int64_t number, const void *body, size_t length)
{
	enum rc rc = RC_OK;

	for (size_t done = 0; done < length && rc == RC_OK;) {
		done += postgres_piece_send(pg, number, body, length, done);
		rc = pg_update(pg, NULL);
		FAULT(PIECE_WRITTEN);
	}
	return rc;
}

/* --- what a client may be told -------------------------------------------- */

/* Reads "xmin:xmax:xip,xip" (pg_snapshot), in which xip are the transactions
 * before xmax that have not ended, in order.  If there are too many, those from
 * the first one on that has no room count as not ended. */
void
postgres_confirmed_read(const char *text, struct postgres_confirmed *c)
{
	const char *at = strchr(text, ':');
	uint32_t open;
	char *end;

	c->known = at != NULL;
	c->nopen = 0;
	if (!c->known)
		return;
	c->before = (uint32_t)strtoull(at + 1, &end, 10);
	while (end[0] != '\0' && end[1] != '\0') {
		open = (uint32_t)strtoull(end + 1, &end, 10);
		if (c->nopen == POSTGRES_OPEN_MAX) {
			c->before = open;
			return;
		}
		c->open[c->nopen++] = open;
	}
}

/*
 * Whether the standby may lack what the record says.  If a COMMIT's wait for it
 * is cancelled, other processes read the change none the less.  Numbers of
 * transactions are compared modulo 2^32, as the rows have them: a change of
 * long ago may look new, and no new one looks old.  A transaction that is open
 * for long, in any database, is one number, and says nothing of those after it.
 */
static bool
standby_may_lack(struct store *s, const struct record *r)
{
	const struct postgres_confirmed *c = &s->confirmed;
	const uint32_t change = (uint32_t)r->change;
	bool lacks;

	if (!s->standby || (r->state != RECORD_COMPLETED && !r->accepted))
		return false;
	lock_take(&s->lock);
	lacks = !c->known || c->timeline != txn_timeline(s->pool) ||
	    (int32_t)(change - c->before) >= 0;
	for (int i = 0; i < c->nopen && !lacks; i++)
		lacks = change == c->open[i];
	lock_give(&s->lock);
	return lacks;
}

bool
postgres_is_durable(struct store *s, const struct record *record)
{
	return !record->unconfirmed && !standby_may_lack(s, record);
}

/* A COMMIT of this process's own makes durable what was seen before it, if the
 * row is still there that the record was read from.  After a promotion it may
 * not be: the COMMIT is that of a server that has the row. */
enum rc
postgres_make_durable(struct store *s, const struct record *r)
{
	enum rc rc;

	if (postgres_is_durable(s, r))
		return RC_OK;
	rc = postgres_ask(s, TXN_WRITE, PG_QUERY_STILL, "iud?", "-", r->id,
	    r->downstream, r->attempt, r->state == RECORD_COMPLETED);
	return rc == RC_PENDING || rc == RC_NOTFOUND ? RC_IO : rc;
}
