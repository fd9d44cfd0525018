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

/* The column after those of the record. */
struct digest_column {
	unsigned char digest[POSTGRES_DIGEST_LEN];
};

enum rc
postgres_row_check(const struct store *s, struct tx *tx, const struct record *r)
{
	static const struct row_member column[] = {
		ROW_MEMBER('x', digest_column, digest),
	};
	const struct store_identity texts = { r->scope, r->path, r->key };
	struct digest_column is, want;
	enum rc rc;

	if ((rc = tx_members(tx, column, 1, &is)) != RC_OK ||
	    (rc = postgres_identity_digest(s->secret, &texts, want.digest)) !=
		RC_OK)
		return rc;
	return memcmp(&is, &want, sizeof(is)) == 0 ? RC_OK : RC_CORRUPT;
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
	struct store_gone gone[GONE];
	struct held held = { 0 };
	size_t n = 1;
	enum rc rc = postgres_owner_look(s);

	while (rc == RC_OK && n > 0) {
		rc = postgres_lost_owners(s, held.owner, gone, GONE, &n);
		for (size_t i = 0; i < n && rc == RC_OK; i++) {
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

enum rc
postgres_examine(struct store *s, struct findings *f)
{
	postgres_doctor_server(s, f);
	check_owners(s, f);
	return RC_OK;
}
