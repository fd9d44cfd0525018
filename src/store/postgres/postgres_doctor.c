/*
 * Findings about the key store, for an operator.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "postgres_impl.h"

/* The host's clock and the server's may differ by that (ms). */
#define CLOCKS_APART 5000

/* --- the server ----------------------------------------------------------- */

/* Leases and retention go by the server's clock; logs and the signatures of
 * webhooks by this host's. */
static void
check_clock(const struct txn_server *server, struct findings *f)
{
	const int64_t apart = clock_wall() - server->now;

	if (llabs(apart) <= CLOCKS_APART)
		store_doctor_add(f, "clock", true,
		    "this host's and the server's agree within %d s",
		    CLOCKS_APART / 1000);
	else
		store_doctor_add(f, "clock", false,
		    "this host's is %lld s %s the server's: set both by NTP",
		    llabs(apart) / 1000, apart < 0 ? "behind" : "ahead of");
}

/* Opening the store has looked at it. */
static void
check_time(const struct store *s, struct findings *f)
{
	char why[256] = "the store's follows the server's clock";

	postgres_clock_tell(s, why, sizeof(why));
	store_doctor_add(f, "time", s->held_at == 0, "%s", why);
}

static void
check_server(struct store *s, struct findings *f)
{
	struct txn_server server;
	enum rc rc = postgres_run(s, TXN_LOOK, txn_server_read, &server);

	if (rc != RC_OK) {
		store_doctor_add(
		    f, "server", false, "cannot be asked: %s", rc_text(rc));
		return;
	}
	store_doctor_add(f, "server", true, "PostgreSQL %d.%d at %s",
	    (int)(server.version / 10000), (int)(server.version % 100),
	    server.place);
	check_clock(&server, f);
	if (server.off != NULL)
		store_doctor_add(f, "durability", false,
		    "the server's setting %s is off, so a commit may be lost: "
		    "turn it on",
		    server.off);
	else
		store_doctor_add(f, "durability", true,
		    "fsync and full_page_writes are on, synchronous_commit "
		    "is %s",
		    server.synchronous);
}

static void
check_standbys(struct store *s, struct findings *f)
{
	bool waits = false; /* a COMMIT does, for one */
	int64_t n = 0;
	enum rc rc =
	    postgres_ask(s, TXN_READ, PG_QUERY_STANDBYS, "", "?i", &waits, &n);

	if (rc != RC_OK)
		store_doctor_add(
		    f, "standby", false, "cannot be read: %s", rc_text(rc));
	else if (waits && n == 0)
		store_doctor_add(f, "standby", false,
		    "none is connected, and a COMMIT waits for one: requests "
		    "get 503 until one is there, or synchronous_standby_names "
		    "is emptied");
	else if (waits)
		store_doctor_add(f, "standby", true,
		    "an answer is given only when a standby has it; %" PRId64
		    " connected",
		    n);
	else if (n == 0)
		store_doctor_add(f, "standby", true,
		    "none: the keys are lost with this server's disk");
	else
		store_doctor_add(f, "standby", !s->full,
		    "asynchronous: after a failover the last keys may be "
		    "missing, although clients have had their answers, and "
		    "their programs could run again: set "
		    "synchronous_standby_names");
}

/* --- names that a statement finds ----------------------------------------- */

/* Rows of one name are one finding: the first that finds names, else the last
 * one's text.  What the schema lacks follows its name and version. */
static const struct named {
	const char *name;
	enum pg_query query;
	bool good;
	const char *before, *after, *none;
} named[] = {
	{ "hosts", PG_QUERY_SAME_HOSTS, false,
	    "the disk of one is a copy of another's, unless it has just "
	    "booted: ",
	    ": run systemd-machine-id-setup on the copy, without its old "
	    "/etc/machine-id, and restart its oncewrap",
	    "each has a disk of its own" },
	{ "schema", PG_QUERY_MISSING_PARTS, false, "without ", "", NULL },
	{ "schema", PG_QUERY_LOST_FUNCTIONS, false,
	    "was renamed, or these functions were changed: ", "", "complete" },
	/* A crash of the server empties an unlogged table. */
	{ "tables", PG_QUERY_UNLOGGED, false, "a crash of the server empties ",
	    ": make them LOGGED", "all survive a crash" },
	{ "rights", PG_QUERY_MISSING_RIGHTS, false,
	    "this role must be able to read and change ", ": let it own them",
	    "this role has all it needs" },
	{ "privileges", PG_QUERY_SCHEMA_IS_OPEN, false,
	    "any role may create functions in the schema ",
	    ", which could take the place of others: revoke that right from "
	    "PUBLIC",
	    "only chosen roles may create things in the schema" },
	{ "foreign", PG_QUERY_FOREIGN_PARTS, false, "on our tables: ", "",
	    "nothing of others is on our tables" },
};

static void
check_named(struct store *s, struct findings *f)
{
	const char *done = "";
	char version[sizeof(s->schema) + 32];

	snprintf(version, sizeof(version), "%s, version %d, ", s->schema,
	    PG_QUERY_VERSION);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		const struct named *n = &named[i];
		const char *of = strcmp(n->name, "schema") == 0 ? version : "";
		struct postgres_names found = { .query = n->query };

		if (strcmp(done, n->name) == 0)
			continue;
		if (postgres_names_read(s, &found) != RC_OK)
			store_doctor_add(f, n->name, false, "cannot be read");
		else if (found.n > 0)
			store_doctor_add(f, n->name, n->good, "%s%s%s%s", of,
			    n->before, found.text, n->after);
		else if (n->none != NULL)
			store_doctor_add(f, n->name, true, "%s%s", of, n->none);
		else
			continue;
		done = n->name;
	}
}

/* --- processes ------------------------------------------------------------ */

static void
check_owners(struct store *s, struct findings *f)
{
	struct liveness *liveness;
	char why[512] = "", machine[33];
	/* leases whose owners cannot be looked at from here: of all machines,
	 * and of this one */
	int64_t elsewhere = 0, here = 0, dead = 0;
	enum rc rc;

	rc = postgres_liveness_why(s, &liveness, why, sizeof(why));
	if (rc == RC_OK || rc == RC_NOTFOUND)
		rc = postgres_owner_look(s);
	if (rc == RC_OK)
		rc = store_doctor_dead(s, &dead);
	postgres_host_machine(machine);
	if (rc == RC_OK)
		rc = postgres_ask(s, TXN_READ, PG_QUERY_LEASES_ELSEWHERE, "sss",
		    "ii", s->host.name, machine, s->host.boot, &elsewhere,
		    &here);
	if (rc != RC_OK && liveness == NULL && why[0] != '\0')
		store_doctor_add(f, "leases", false,
		    "cannot tell which processes live: %s", why);
	else if (rc != RC_OK || dead > 0 || elsewhere == 0)
		store_doctor_leases(f, rc, dead);
	else if (liveness == NULL && here > 0)
		store_doctor_add(f, "leases", false,
		    "%" PRId64 " held by processes of this host, and it "
		    "cannot tell whether they live: %s: name the daemon's "
		    "folder in STATE_DIRECTORY",
		    here, why);
	else
		store_doctor_add(f, "leases", true,
		    "%" PRId64 " held by processes of other hosts or of other "
		    "folders of this one, where oncectl can tell whether they "
		    "live, or of another boot, which are suspected",
		    elsewhere);
}

enum rc
postgres_examine(struct store *s, struct findings *f)
{
	check_server(s, f);
	check_time(s, f);
	check_standbys(s, f);
	check_named(s, f);
	check_owners(s, f);
	return RC_OK;
}
