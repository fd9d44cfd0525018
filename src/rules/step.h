/*
 * Every change that can happen to the record of a key, as a pure function.  A
 * store reads the record, calls one of these, and writes the record and what
 * struct step says, all in one transaction.
 *
 * RC_OK: the record is changed, and sound.  RC_LOST: the record is no longer
 * what the caller has read or expects.  RC_INVALID: the table of record.c has
 * no such change.  RC_NOMEM.  After a failure the record is not to be written.
 */
#ifndef STEP_H
#define STEP_H

#include "rc.h"
#include "record.h"

/* The time of a change (ms): store time; the clock's for people; and the clock
 * from which the end of a key's age is reckoned, which is later than store time
 * while that is held. */
struct step_time {
	int64_t now, wall, age;
};

/* What is stored beside the row, and how the change affects it. */
enum step_part { STEP_STAYS, STEP_SET, STEP_DELETED };

/* What a change means beyond the row.  The caller zeroes it. */
struct step {
	enum step_part request;
	enum step_part answer; /* the response's head and body */
	/* the row is deleted, with all that is stored with it */
	bool gone;
	/* an attempt has ended, or an outcome is known: waiting requests look
	 * again */
	bool ended;
	bool work; /* there may be work for the scheduler */
	/* The change confirms what the attempt has committed itself: that
	 * commit must be durable before this one. */
	bool confirmed;
};

/* The terms of an attempt, from the configuration of its route. */
struct step_terms {
	/* of the request, for a key that has none.  A worker, which runs the
	 * stored request, has these and the next three members unset. */
	const char *fingerprint_spec;
	const unsigned char *fingerprint; /* FINGERPRINT_LEN bytes */
	/* the request's client: see record.h */
	int64_t caller;
	const char *peer, *cookie, *method, *instance;
	const char *token;
	int64_t owner;
	int64_t lease; /* ms from now to the deadline */
	int64_t retention;
	int64_t expired_retention; /* 0: never a marker */
	int64_t reconcile_delay;
	/* the processes of the attempt; 0: they need not be found */
	int64_t attempt_lock, lock_file;
	const char *resource; /* of its status; NULL: none */
	bool resume;
	bool keep_request;
};

/* The answer of a key that completes. */
struct step_answer {
	bool keep; /* it can be replayed */
	int status;
	int64_t length; /* of its body (bytes) */
};

/* What released a key, or made it unknown. */
struct step_reason {
	const char *error; /* for people */
	/* The key loses its fingerprint, so that any request may take it;
	 * unless a worker runs the stored request again, or the handler has
	 * reached a recovery point. */
	bool nothing_happened;
	/* an accepted key: ms until a worker runs it again; -1: none does until
	 * a client retries */
	int64_t requeue;
};

/* A request takes the lease.  A record of RECORD_NONE is new: only its number
 * and what identifies it and its request are set. */
enum rc step_reserve(struct record *r, const struct step_terms *terms,
    struct step_time at, struct step *s);

/* A request is accepted: a worker will run it.  A key that waits for a worker
 * already stays as it is. */
enum rc step_accept(struct record *r, const struct step_terms *terms,
    struct step_time at, struct step *s);

/* A worker takes the lease of an accepted key that had that many attempts. */
enum rc step_start(struct record *r, int attempt,
    const struct step_terms *terms, struct step_time at, struct step *s);

/* An attempt ends.  token: of that attempt; RC_LOST: it has no lease, nor is it
 * one that is unknown on suspicion.  An
 * answer that the attempt has committed itself stands, whatever its end is:
 * the key is confirmed. */
enum rc step_complete(struct record *r, const char *token, int64_t retention,
    const struct step_answer *answer, struct step_time at, struct step *s);
enum rc step_release(struct record *r, const char *token, int64_t retention,
    const struct step_reason *why, struct step_time at, struct step *s);
enum rc step_unknown(struct record *r, const char *token,
    const struct step_reason *why, struct step_time at, struct step *s);

/*
 * The owner of the lease is lost: the process has exited, and with it the
 * attempt, unless processes of the attempt live.  requeue as in struct
 * step_reason.  RC_BUSY: the key may be resumed once those processes have
 * exited, and their deadline has not passed.
 *
 * An attempt that had lost its lease on a suspicion is released in the same
 * way; RC_LOST: its processes live, or the key may not be resumed.
 */
enum rc step_recover(struct record *r, bool lives, int64_t requeue,
    struct step_time at, struct step *s);

/*
 * The same for an owner that gives no sign of life, and of which no more is
 * known.  The key becomes unknown, or is confirmed, and the attempt keeps its
 * token as the late one: it can still end its own unknown.
 */
enum rc step_suspect(struct record *r, struct step_time at, struct step *s);

/* A reconciler tries, or will: the next try is in `after` ms.  count: a try
 * begins now, and the attempt's processes have exited. */
enum rc step_claim(struct record *r, int attempt, int tries, bool count,
    int64_t after, struct step_time at);

/* Whether the outcome of that attempt is open, after that many tries to
 * reconcile it.  by_operator: after any number of tries, and of a dead letter
 * too. */
bool step_may_resolve(
    const struct record *r, int attempt, int tries, bool by_operator);

/* The outcome of a key that step_may_resolve() is known: to COMPLETED with that
 * answer, FAILED_RETRYABLE or DEAD_LETTER with that reason. */
enum rc step_resolve(struct record *r, enum record_state to,
    const struct step_answer *answer, const struct step_reason *why,
    struct step_time at, struct step *s);

/* An accepted key was not run within its retention: that is its answer. */
enum rc step_abandon(struct record *r, const struct step_answer *answer,
    struct step_time at, struct step *s);

/*
 * An outcome, and the verb that records it.  FINISH: of an attempt, which has
 * the lease.  RESOLVE: a reconciler, or an operator, has found out what a lost
 * attempt did.  ABANDON: of a key that no worker ran.
 */
enum step_verb {
	STEP_FINISH,
	STEP_RESOLVE,
	STEP_RESOLVE_BY_OPERATOR,
	STEP_ABANDON
};

struct step_outcome {
	enum step_verb verb;
	enum record_state state; /* that the key gets */
	const char *token;       /* FINISH */
	int64_t retention;       /* FINISH */
	int attempt, tries;      /* RESOLVE: see step_may_resolve() */
	struct step_answer answer;
	struct step_reason why;
};

/* Makes the change above that such an outcome is. */
enum rc step_outcome(struct record *r, const struct step_outcome *o,
    struct step_time at, struct step *s);

/* A record past its retention becomes a marker, or is deleted. */
enum rc step_expire(struct record *r, struct step_time at, struct step *s);

/* An operator deletes the key; from: only in that state; RECORD_NONE: in any
 * state that allows it. */
enum rc
step_forget(const struct record *r, enum record_state from, struct step *s);

#endif
