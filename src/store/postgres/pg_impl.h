/*
 * Private to the pg files.  The structs pg_conn, pg_result and
 * _PQconninfoOption are libpq's.
 */
#ifndef PG_IMPL_H
#define PG_IMPL_H

#include <stdatomic.h>

#include "pg.h"

struct pg_conn;
struct pg_result;
struct _PQconninfoOption;

#define PG_MESSAGE_MAX 1024

struct pg_target {
	/* as given; .val is NULL for the others */
	struct _PQconninfoOption *options;
	int64_t silence;
	int nhosts;       /* 0: libpq finds the host itself */
	atomic_int first; /* that worked last */
	/* clock_mono() (ms) when the failure of a COMMIT was logged; 0: one has
	 * succeeded since */
	_Atomic int64_t commit_failed;
	struct buf name;
};

/* What libpq is still to give, in order. */
enum pg_pending_kind {
	PG_PENDING_PREPARE, /* a statement is prepared */
	PG_PENDING_QUIET,   /* a result that no caller wants */
	PG_PENDING_RESULT,
	PG_PENDING_SYNC /* the end of a group */
};

struct pg_pending {
	enum pg_pending_kind kind;
	int query; /* -1: of pg_exec() */
};

struct pg {
	struct pg_conn *conn;
	struct pg_target *target;
	int64_t deadline;
	struct pg_result *result; /* that the caller reads */
	int row;                  /* the current one; -1 before the first */
	struct pg_pending *pending;
	size_t npending, room; /* used and allocated */
	size_t groups;         /* ends of groups among them */
	enum pg_failure failure;
	enum rc rc;    /* of the failure */
	enum rc group; /* of the first failure in the group that is read */
	bool quiet;    /* pg_set_quiet() */
	enum rc local; /* why the last statements were not even sent */
	bool committing, warned;
	bool prepared[PG_QUERY_COUNT];
	char sqlstate[6];
	char message[PG_MESSAGE_MAX];
};

/* The value of an option as given; NULL: none. */
const char *pg_target_option(const struct pg_target *t, const char *keyword);

/* Item i of a list with commas, which the caller frees; NULL without a list.  A
 * list of one item is the same for all. */
char *pg_target_item(const char *list, int i);

/* A connection to the first of the hosts that answers, in pipeline mode.
 * *refused: each of them has refused this user or database. */
enum rc pg_connect(struct pg_target *t, int64_t deadline, struct pg_conn **out,
    bool *refused, char *message, size_t size);

/* Copies a message as one line, without the target's passwords. */
void pg_target_scrub(
    const struct pg_target *t, const char *message, char *out, size_t size);

/* Waits until the socket is ready for the events of poll(2) or has failed.
 * False: the deadline is past. */
bool pg_wait(const struct pg_conn *conn, short events, int64_t deadline);

/* Records that the connection is of no use any more, and logs it. */
enum rc
pg_lost(struct pg *pg, enum rc rc, const char *doing, const char *message);

/* Records and logs a failure of the server's; returns its rc. */
enum rc
pg_refused(struct pg *pg, const struct pg_result *result, const char *doing);

/* Reports a mistake in the program.  Returns RC_INVALID. */
enum rc pg_misused(struct pg *pg, const char *message);

/* Ends a group that a caller has begun and not sent. */
enum rc pg_end_group(struct pg *pg);

#endif
