/*
 * Findings about the server, the schema and the rights in it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "postgres_doctor.h"

/* The host's clock and the server's may differ by that (ms). */
#define CLOCKS_APART 5000

/* --- the server ----------------------------------------------------------- */

/* Leases and retention go by the server's clock; logs and the signatures of
 * webhooks by this host's. */
static void
check_clock(const struct postgres_server *server, struct findings *f)
{
	const int64_t apart = clock_wall() - server->now;

	if (llabs(apart) <= CLOCKS_APART)
		findings_add(f, "clock", true,
		    "this host's and the server's agree within %d s",
		    CLOCKS_APART / 1000);
	else
		findings_add(f, "clock", false,
		    "this host's is %lld s %s the server's: set both by NTP",
		    llabs(apart) / 1000, apart < 0 ? "behind" : "ahead of");
}

/* Opening the store has looked at it. */
static void
check_time(const struct store *s, struct findings *f)
{
	char why[256] = "";

	postgres_clock_tell(s, why, sizeof(why));
	if (why[0] != '\0')
		findings_add(f, "time", false, "%s", why);
	else
		findings_add(
		    f, "time", true, "the store's follows the server's clock");
}

static void
check_server(struct store *s, struct findings *f)
{
	struct postgres_names careless = { .query =
					       PG_QUERY_CARELESS_SETTINGS };
	struct postgres_server server;
	enum rc rc = postgres_server_read(s, &server);
	const char *off;

	if (rc == RC_OK)
		rc = postgres_names_read(s, &careless);
	if (rc != RC_OK) {
		findings_add(
		    f, "server", false, "cannot be asked: %s", rc_text(rc));
		return;
	}
	findings_add(f, "server", true, "PostgreSQL %d.%d at %s",
	    (int)(server.version / 10000), (int)(server.version % 100),
	    server.place);
	check_clock(&server, f);
	off = postgres_server_off(&server);
	if (off != NULL)
		findings_add(f, "durability", false,
		    "the server's setting %s is off, so a commit may be lost: "
		    "turn it on",
		    off);
	else if (careless.n > 0)
		findings_add(f, "durability", false,
		    "the server passes over damage, so keys may be missing: "
		    "turn %s off",
		    careless.text);
	else
		findings_add(f, "durability", true,
		    "fsync and full_page_writes are on, synchronous_commit "
		    "is %s",
		    server.synchronous);
}

struct standbys {
	bool waits; /* a COMMIT waits for one */
	int64_t n;
};

static enum rc
standbys_run(struct pg *pg, void *arg)
{
	struct standbys *c = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_STANDBYS, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "?i", &c->waits, &c->n) : rc;
}

static void
check_standbys(struct store *s, struct findings *f)
{
	struct standbys c = { 0 };
	enum rc rc = postgres_read(s, standbys_run, &c);

	if (rc != RC_OK)
		findings_add(
		    f, "standby", false, "cannot be read: %s", rc_text(rc));
	else if (c.waits && c.n == 0)
		findings_add(f, "standby", false,
		    "none is connected, and a COMMIT waits for one: requests "
		    "get 503 until one is there, or synchronous_standby_names "
		    "is emptied");
	else if (c.waits)
		findings_add(f, "standby", true,
		    "an answer is given only when a standby has it; %" PRId64
		    " connected",
		    c.n);
	else if (c.n == 0)
		findings_add(f, "standby", true,
		    "none: the keys are lost with this server's disk");
	else
		findings_add(f, "standby", !s->full,
		    "asynchronous: after a failover the last keys may be "
		    "missing, although clients have had their answers, and "
		    "their programs could run again: set "
		    "synchronous_standby_names");
}

/* --- the schema ----------------------------------------------------------- */

/* schema_open() has seen the version. */
static void
check_schema(struct store *s, struct findings *f)
{
	struct postgres_names missing = { .query = PG_QUERY_MISSING_PARTS },
			      lost = { .query = PG_QUERY_LOST_FUNCTIONS },
			      others = { .query = PG_QUERY_OTHER_STORES };

	if (postgres_names_read(s, &missing) != RC_OK ||
	    postgres_names_read(s, &lost) != RC_OK ||
	    postgres_names_read(s, &others) != RC_OK)
		findings_add(f, "schema", false, "cannot be read");
	else if (missing.n != 0)
		findings_add(f, "schema", false, "version %d, without %s",
		    PG_QUERY_VERSION, missing.text);
	else if (lost.n != 0)
		findings_add(f, "schema", false,
		    "%s was renamed, or these functions were changed: ALTER"
		    " FUNCTION %s SECURITY DEFINER SET search_path = %s, "
		    "pg_temp",
		    s->schema, lost.text, s->schema);
	else
		findings_add(f, "schema", true, "%s, version %d, complete%s%s",
		    s->schema, PG_QUERY_VERSION,
		    others.n > 0 ? "; other stores are in " : "", others.text);
}

/* See session_set. */
static void
check_session(struct store *s, struct findings *f)
{
	struct postgres_names other = { .query = PG_QUERY_SESSION_OVERRIDDEN };

	if (postgres_names_read(s, &other) != RC_OK)
		findings_add(f, "session", false, "cannot be read");
	else
		findings_add(f, "session", true, "%s%s",
		    other.n == 0
			? "its settings are safe"
			: "oncewrap sets safe values in its own sessions in "
			  "the place of ",
		    other.text);
}

/* A crash of the server empties an unlogged table. */
static void
check_unlogged(struct store *s, struct findings *f)
{
	struct postgres_names unlogged = { .query = PG_QUERY_UNLOGGED };

	if (postgres_names_read(s, &unlogged) != RC_OK)
		findings_add(f, "tables", false, "cannot be read");
	else if (unlogged.n == 0)
		findings_add(f, "tables", true, "all survive a crash");
	else
		findings_add(f, "tables", false,
		    "a crash of the server empties %s: make them LOGGED",
		    unlogged.text);
}

static void
check_rights(struct store *s, struct findings *f)
{
	struct postgres_names missing = { .query = PG_QUERY_MISSING_RIGHTS };

	if (postgres_names_read(s, &missing) != RC_OK)
		findings_add(f, "rights", false, "cannot be read");
	else if (missing.n == 0)
		findings_add(f, "rights", true, "this role has all it needs");
	else
		findings_add(f, "rights", false,
		    "this role must be able to read and change %s: let it own "
		    "them",
		    missing.text);
}

/* Of two hosts with one name, each can only suspect the other's processes. */
static void
check_hosts(struct store *s, struct findings *f)
{
	struct postgres_names twins = { .query = PG_QUERY_TWIN_HOSTS },
			      silent = { .query = PG_QUERY_SILENT_BOOTS };

	if (postgres_names_read(s, &twins) != RC_OK ||
	    postgres_names_read(s, &silent) != RC_OK)
		findings_add(f, "hosts", false, "cannot be read");
	else if (twins.n > 0)
		findings_add(f, "hosts", false,
		    "the disk of one is a copy of another's, unless it has "
		    "just booted: %s: run systemd-machine-id-setup on the "
		    "copy, without its old /etc/machine-id, and restart its "
		    "oncewrap",
		    twins.text);
	else if (silent.n > 0)
		findings_add(f, "hosts", true,
		    "each has a disk of its own, unless a copy of that of %s "
		    "is cut off: a process of another boot did not end there, "
		    "and its keys become unknown, never free",
		    silent.text);
	else
		findings_add(f, "hosts", true, "each has a disk of its own");
}

static void
check_foreign(struct store *s, struct findings *f)
{
	struct postgres_names foreign = { .query = PG_QUERY_FOREIGN_PARTS };

	if (postgres_names_read(s, &foreign) != RC_OK)
		findings_add(f, "foreign", false, "the schema cannot be read");
	else if (foreign.n == 0)
		findings_add(
		    f, "foreign", true, "nothing of others is on our tables");
	else
		findings_add(
		    f, "foreign", false, "on our tables: %s", foreign.text);
}

static enum rc
doctor_open(struct pg *pg, void *arg)
{
	bool *open = arg;
	enum rc rc;

	pg_send(pg, PG_QUERY_SCHEMA_IS_OPEN, "");
	rc = pg_sync(pg);
	return rc == RC_OK ? pg_one(pg, "?", open) : rc;
}

static void
check_privileges(struct store *s, struct findings *f)
{
	bool open = false;
	enum rc rc = postgres_read(s, doctor_open, &open);

	if (rc != RC_OK)
		findings_add(
		    f, "privileges", false, "cannot be read: %s", rc_text(rc));
	else if (open)
		findings_add(f, "privileges", false,
		    "any role may create functions in the schema, which "
		    "could take the place of others: revoke that right from "
		    "PUBLIC");
	else
		findings_add(f, "privileges", true,
		    "only chosen roles may create things in the schema");
}

void
postgres_doctor_server(struct store *s, struct findings *f)
{
	check_server(s, f);
	check_time(s, f);
	check_session(s, f);
	check_standbys(s, f);
	check_hosts(s, f);
	check_schema(s, f);
	check_unlogged(s, f);
	check_rights(s, f);
	check_privileges(s, f);
	check_foreign(s, f);
}
