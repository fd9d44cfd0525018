/*
 * The record of a key: a state machine that outlives every process.  record.c
 * has the one table of allowed changes; checks.sql must agree with it.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "fingerprint.h"
#include "limit.h"
#include "words.h"

/* See words.h.  RECORD_NONE: there is no record. */
/* clang-format off */
#define RECORD_STATES(X) \
	X(RECORD_NONE, "none") \
	X(RECORD_PENDING, "pending") \
	X(RECORD_IN_PROGRESS, "in_progress") \
	X(RECORD_COMPLETED, "completed") \
	X(RECORD_FAILED_RETRYABLE, "failed_retryable") \
	X(RECORD_UNKNOWN, "unknown") \
	X(RECORD_DEAD_LETTER, "dead_letter") \
	X(RECORD_EXPIRED, "expired")
/* clang-format on */
enum record_state { RECORD_STATES(WORDS_ENUMERATOR) };
#define RECORD_NSTATES WORDS_COUNT(RECORD_STATES)

/* The largest number of a record: 65536 times that is a number too, and the
 * pieces of its response have such numbers. */
#define RECORD_ID_MAX (INT64_C(1) << 46)

#define RECORD_TOKEN_LEN    32 /* hexadecimal digits: 128 random bits */
#define RECORD_RESOURCE_LEN 32 /* the same */
#define RECORD_UUID_LEN     36

/*
 * The row of a key without its response: the one struct for requests, jobs,
 * reconcilers and operators.  Times are store time (ms), and 0 is none, unless
 * wall is said.
 */
struct record {
	int64_t id;
	/* the identity; owned; NULL if the record was found by it */
	char *scope, *path, *key;
	/* of the request that began the last attempt: whom limits count it for
	 * (see scope.h); the client's address (owned; NULL: none); and
	 * scope_caller_cookie(), written as a UUID is, or "" */
	int64_t caller;
	char *peer;
	char cookie[RECORD_UUID_LEN + 1];
	/* of the same request: its method, and the UUID of its instance, its
	 * Reference; "": not known */
	char method[LIMIT_METHOD + 1];
	char instance[RECORD_UUID_LEN + 1];
	enum record_state state;
	int attempt; /* 1, 2, ...; 0 if none has begun */
	/* "" without a lease: neither in_progress nor unconfirmed */
	char token[RECORD_TOKEN_LEN + 1];
	int64_t owner; /* the process that has the lease, 0: none */
	int64_t locked_until;
	/* the attempt itself has completed the key, in a transaction of its
	 * own, and the process that runs it has not confirmed that yet */
	bool unconfirmed;
	unsigned char fingerprint[FINGERPRINT_LEN];
	/* owned; see fingerprint.h.  "": the key was released because nothing
	 * happened, and has no fingerprint: it takes that of the request that
	 * runs next */
	char *fingerprint_spec;
	char downstream[RECORD_UUID_LEN + 1];
	char recovery_point[LIMIT_RECOVERY_POINT + 1];
	bool resume;                    /* on_crash = resume */
	int64_t created_at, updated_at; /* wall clock */
	int64_t expires_at;             /* 0: never by age */
	int64_t retention;              /* ms; 0 once it is completed */
	/* how long the record is a marker, past its retention (ms); 0: it is
	 * none */
	int64_t expired_retention;
	/* the processes of the attempt: see store_attempt_lock() */
	int64_t attempt_lock, lock_file;
	int64_t reconcile_delay; /* ms; 0: the key has no reconciler */
	int64_t reconcile_after;
	int reconcile_attempts;
	/* the name of its status resource, or "" */
	char resource[RECORD_RESOURCE_LEN + 1];
	bool accepted; /* the request is stored, and this store runs it: 202 */
	bool queued;   /* accepted, and waits for a worker */
	int64_t queued_at;
	bool replayable;     /* completed: the response can be replayed */
	int status;          /* of the stored response, 0: none */
	int64_t body_length; /* of its body (bytes) */
	char *last_error;    /* owned; NULL: none */
	/* PostgreSQL: of an attempt that was lost by all signs, but perhaps
	 * lives on another host: it can still end its own unknown; "": none */
	char late_token[RECORD_TOKEN_LEN + 1];
	/* PostgreSQL: the transaction (xid) that changed it last; 0: none */
	int64_t change;
};

/* Frees its members, which become NULL; not the struct. */
void record_free(struct record *r);

/* The name of a state: "in_progress", ...; RECORD_NONE is "none". */
const char *record_state_name(enum record_state state);

/* Finds the state of that name; false if there is none. */
bool record_state_parse(const char *name, enum record_state *state);

/* Whether the table allows that change.  by_operator: by `oncectl forget`. */
bool record_may_change(
    enum record_state from, enum record_state to, bool by_operator);

bool record_has_fingerprint(const struct record *r);

/* Whether the invariants numbered in record.c hold, for a record that was just
 * read.  record_check() asserts the same, for a record that was checked
 * before. */
bool record_is_sound(const struct record *r);
void record_check(const struct record *r);

#endif
