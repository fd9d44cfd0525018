/*
 * The record of a key: a state machine that outlives every process.  The one
 * table of allowed changes is in record.c; checks.sql must agree with it.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "fingerprint.h"

enum record_state {
	RECORD_NONE, /* there is no record */
	RECORD_PENDING,
	RECORD_IN_PROGRESS,
	RECORD_COMPLETED,
	RECORD_FAILED_RETRYABLE,
	RECORD_UNKNOWN,
	RECORD_DEAD_LETTER,
	RECORD_EXPIRED
};
#define RECORD_NSTATES 8

/* The largest number of a record: 65536 times that is a number too, and the
 * pieces of its response have such numbers. */
#define RECORD_ID_MAX (INT64_C(1) << 46)

#define RECORD_TOKEN_LEN    32 /* hexadecimal digits: 128 random bits */
#define RECORD_RESOURCE_LEN 32 /* the same */
#define RECORD_UUID_LEN     36

/* What a request needs to know of it; plain data. */
struct record {
	int64_t id;
	enum record_state state;
	int attempt; /* 1, 2, ...; 0 if never begun */
	unsigned char fingerprint[FINGERPRINT_LEN];
	char *recipe; /* owned; see fingerprint.h */
	char downstream[RECORD_UUID_LEN + 1];
	/* "" without a lease: neither in_progress nor unsealed */
	char token[RECORD_TOKEN_LEN + 1];
	int64_t owner; /* the process that has the lease, 0: none */
	/* completed by the attempt itself, in a transaction of its own, and
	 * the process that runs it has not confirmed that yet */
	bool unsealed;
	bool accepted; /* the request is kept, and ours to run: 202 */
	bool queued;   /* accepted, and waits for a worker */
	/* the name of its status resource, or "" */
	char resource[RECORD_RESOURCE_LEN + 1];
	int64_t expires_at; /* store time, ms; 0: never by age */
	int64_t updated_at; /* wall clock, ms since 1970 */
	int status;         /* of the stored answer, 0: none */
	bool kept;          /* completed: the answer can be replayed */
	/* on_expired = gone: past its retention it is a marker, that long */
	bool gone;
	int64_t expired_retention; /* ms */
};

void record_free(struct record *); /* what it owns, not itself */

/* "in_progress", ...; RECORD_NONE is "none". */
const char *record_state_name(enum record_state);

/* False if no state has that name. */
bool record_state_parse(const char *, enum record_state *);

/* Whether the table allows that change.  operator: by `oncectl forget`. */
bool record_may_change(
    enum record_state from, enum record_state to, bool by_operator);

/* Whether a record can be as it is without ever having been attempted. */
bool record_may_be_unattempted(const struct record *);

/* Whether the invariants numbered in record.c hold: asked of what is read.  And
 * the same as an assertion, for what has been. */
bool record_is_sound(const struct record *);
void record_check(const struct record *);

#endif
