/*
 * PostgreSQL's interface.  Only the pg files know libpq-fe.h.
 *
 * One thread at a time uses a connection.  Statements are named by enum
 * pg_query and prepared at their first use in a connection, in the same round
 * trip.  Statements are queued by pg_send().  pg_result() sends what is queued,
 * and waits for the result of each statement, in their order.  So a group of
 * statements costs one round trip:
 *
 *	pg_send(pg, PG_QUERY_FIND, "b", digest, sizeof(digest));
 *	pg_send(pg, PG_QUERY_TOUCH, "i", id);
 *	rc = pg_one(pg, "iu", &id, uuid, sizeof(uuid));
 *	if (rc == RC_OK)
 *		rc = pg_update(pg, &changed);
 *
 * If a statement fails, the server skips those after it up to the end of the
 * group; their results are the first failure once more.  Each wait ends at
 * the connection's deadline; the connection is lost then.
 *
 * A failure is logged here, once, with SQLSTATE and the server's message.
 * Messages hold neither passwords nor the values of parameters.  A failure
 * that a second try may cure (PG_AGAIN) is not logged, nor is PG_WENT_BACK,
 * which txn.h tells of.
 */
#ifndef PG_H
#define PG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "pg_table.h"
#include "rc.h"
#include "row_member.h"

/* The version of sql/postgres/schema.sql. */
#define PG_QUERY_VERSION 12

enum pg_query {
#define X(name, text, reason) PG_QUERY_##name,
	PG_SESSION(X) PG_STORE(X) PG_QUERIES(X)
#undef X
	    PG_QUERY_COUNT
};

/* The name, such as "FIND", and the text. */
const char *pg_query_name(enum pg_query q);
const char *pg_query_text(enum pg_query q);

struct pg;

/*
 * Where to connect: a conninfo string or URI, parsed once.  Any thread may use
 * it.  err (of errsize bytes) gets a sentence if it cannot be understood
 * (RC_INVALID); RC_NOMEM.
 *
 * Several hosts are tried in turn, the one that worked last first.
 * target_session_attrs=primary is added unless the string has one, and so
 * are keepalives and tcp_user_timeout, of silence (ms).
 */
struct pg_target;
enum rc pg_target_parse(struct pg_target **out, const char *conninfo,
    int64_t silence, char *err, size_t errsize);
void pg_target_free(struct pg_target *t);

/* The URI as it was given, without its passwords: for the log, and for
 * handlers. */
const char *pg_target_name(const struct pg_target *t);

/* The next connection tries the host after the last one first. */
void pg_target_pass(struct pg_target *t);

/* What is known of a failure beyond its enum rc. */
enum pg_failure {
	PG_NONE,  /* nothing has failed */
	PG_AGAIN, /* the transaction is over; it may succeed at a second try:
		     * it met another one, or the server's limit of time */
	PG_LOST,  /* the connection is of no use any more.  Whether a COMMIT
		     * that was sent took place is not known. */
	PG_WENT_BACK, /* the store is not the one that this process knows */
	PG_REFUSED,   /* pg_open() failed, and will until an operator has mended
		     * the user, the password or the database's name */
	PG_OTHER
};

/*
 * Connects until deadline, a reading of clock_mono() (ms).  The names of hosts
 * are looked up by getaddrinfo(3), which knows no deadline.  Logs nothing: on
 * failure *out is not connected, but holds pg_message() and pg_failure(), which
 * is PG_LOST or PG_REFUSED; the caller closes it.  *out is NULL after
 * RC_NOMEM.  RC_TIMEOUT; RC_IO, also if the server refuses, because it has no
 * room for a connection, or is starting or stopping, or is a standby.
 */
enum rc pg_open(struct pg **out, struct pg_target *target, int64_t deadline);

/* Without a wait; the server ends an open transaction by a rollback. */
void pg_close(struct pg *pg);

/* A quiet connection logs no failure: its user tells of it. */
void pg_set_quiet(struct pg *pg, bool quiet);

/* The deadline of all waits to come, a reading of clock_mono() (ms). */
void pg_set_deadline(struct pg *pg, int64_t deadline);

/* The first failure since pg_open() or pg_clear(), and the last message. */
enum pg_failure pg_failure(const struct pg *pg);
const char *pg_message(const struct pg *pg);
const char *pg_sqlstate(const struct pg *pg); /* "" if the server gave none */

/* Which of the URI's servers it is: host, or the folder of its socket, and port
 * (libpq's PQhost() and PQport()). */
void pg_server_place(const struct pg *pg, char *out, size_t size);

/*
 * Makes the settings of the session what statements and commits rely on,
 * whatever the role and the database say.  patience: the longest wait for a
 * lock, grace: what a statement gets on top of it (ms).  schema: where all
 * names are found; NULL: in the role's own path.
 */
enum rc pg_set_session(
    struct pg *pg, int64_t patience, int64_t grace, const char *schema);

/*
 * Queues a statement with its parameters: one letter each, in their order.  The
 * values are copied.  No failure: an error is returned by pg_result().  The
 * letters are those of row_parameter(); s is for text, or the same bytes for
 * bytea.
 */
void pg_send(struct pg *pg, enum pg_query q, const char *format, ...);
void pg_vsend(struct pg *pg, enum pg_query q, const char *format, va_list *ap);

/* The same for a statement whose result is of no interest: pg_result() does not
 * give it.  If it fails, the statements after it fail. */
void pg_send_quietly(struct pg *pg, enum pg_query q, const char *format, ...);

/* Ends the group of statements that stop at one failure, and sends it, before
 * the first pg_result().  RC_OK, or the connection is lost. */
enum rc pg_sync(struct pg *pg);

/*
 * Waits for the result of the next statement; ends its group first, if
 * pg_sync() has not.  Statements of a later group may be queued meanwhile.
 * Rows of the result before it are gone.  RC_OK; or why the statement failed:
 * RC_BUSY (PG_AGAIN), RC_FULL, RC_CORRUPT (it violates a constraint, or does
 * not fit the schema), RC_INVALID (an exception raised by a function of the
 * schema), RC_WENT_BACK (PG_WENT_BACK), RC_LIMIT, RC_TIMEOUT, RC_IO.
 */
enum rc pg_result(struct pg *pg);

/* Rows of the result, and rows that the statement changed. */
int pg_rows(const struct pg *pg);
int pg_changed(const struct pg *pg);

/*
 * Reads the next row: one letter for each column, in their order, those of
 * row_put_next(), with its failures.  RC_NOTFOUND: there is no further row.  On
 * failure the columns before that one are set, the others are not.  Pointers
 * into the row live until the next pg_result().  A letter that does not fit the
 * type of its column is a mistake in the program, as is a number of letters
 * that is not the number of columns: RC_INVALID, and a build with checks
 * aborts.  i, m and d read bigint, integer and smallint, ? those and boolean;
 * s, f and p read text, and bytea without a NUL byte.
 */
enum rc pg_row(struct pg *pg, const char *format, ...);

/* The same for a statement of at most one row: pg_result() and pg_row().
 * RC_NOTFOUND: there is no row.  RC_CORRUPT: there are several. */
enum rc pg_one(struct pg *pg, const char *format, ...);
enum rc pg_vone(struct pg *pg, const char *format, va_list *ap);

/* pg_result() of a statement without rows; a row is RC_CORRUPT.  changed: NULL,
 * or gets the number of rows that it has changed. */
enum rc pg_update(struct pg *pg, int *changed);

/* Goes to the next row, which pg_vrow() and pg_members() read.  RC_NOTFOUND:
 * there is none. */
enum rc pg_next(struct pg *pg);
enum rc pg_vrow(struct pg *pg, const char *format, va_list *ap);

/*
 * Reads the columns with the members' names from the row of the last pg_next()
 * or pg_row() into *out.  A statement without them, in that order, is a mistake
 * as for pg_row().  The letters and failures are those of row_put(); x and w
 * read a bytea.
 */
enum rc pg_members(
    struct pg *pg, const struct row_member *members, size_t n, void *out);

/*
 * Transactions.  BEGIN is queued, and goes with the first statements.  The
 * commit is queued, sent and waited for.  A WARNING makes it a failure
 * (PG_LOST): only the primary has it then, and whether a standby gets it is not
 * known.  The rollback is sent, and pg_clear() waits for it.
 */
void pg_begin(struct pg *pg);
void pg_begin_read(struct pg *pg); /* sees one state of the database */
enum rc pg_commit(struct pg *pg);
/* The same in two steps, for a group of statements that ends with COMMIT: the
 * first is not sent before pg_sync(), the second waits. */
void pg_commit_send(struct pg *pg);
enum rc pg_commit_result(struct pg *pg);
void pg_rollback(struct pg *pg);

/* Discards results that are still to come, and forgets the failure.  RC_OK, or
 * the connection is lost. */
enum rc pg_clear(struct pg *pg);

/* Sends one statement without parameters, such as one of the schema, and waits
 * for its result.  The caller has read all results before. */
enum rc pg_exec(struct pg *pg, const char *sql);

#endif
