/*
 * The key store, in the words of its users: what is kept, not how.  Another
 * kind of store must be able to stand behind this header.
 *
 * All functions may be called from any thread.  Writing ones return when the
 * change is durable (see durability), or has failed and will not appear.
 * Times are store time unless a name says wall.
 */
#ifndef STORE_H
#define STORE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "decide.h"
#include "limit.h"
#include "record.h"
#include "response.h"
#include "scope.h"
#include "spool.h"

struct store;

struct store_options {
	const char *database; /* file name */
	unsigned mode;        /* of a new file: 0600 */
	enum conf_durability durability;
	int64_t busy_timeout; /* ms */
	uint64_t max_wal;     /* bytes */
	unsigned workers;     /* threads that handle requests; 0: not known */
	bool create;          /* make and migrate it; else RC_NOTFOUND */
};

/*
 * Opens, creates or migrates; err (of errsize bytes) gets a sentence that
 * names the file.  RC_VERSION: written by a newer release.  RC_CORRUPT: not a
 * database, or not ours.
 */
enum rc store_open(
    struct store **, const struct store_options *, char *err, size_t errsize);

/* Waits for writes under way; operations given up by their callers are tried
 * once more. */
void store_close(struct store *);

/* The database's own secret, for scope_make(). */
const unsigned char *store_secret(const struct store *);

/* Store time now. */
int64_t store_now(const struct store *);

/*
 * The wall clock's reading, ms, at that store time, if the clock is right now.
 * Both clocks are read to the nanosecond, so that the same store time gives
 * the same second again unless the wall clock was changed.
 */
int64_t store_wall(const struct store *, int64_t store_time);

struct store_identity {
	const char *scope, *path, *key;
};

/*
 * The record of an identity, by one read without a lock.  RC_OK (free it with
 * record_free()), RC_NOTFOUND, or the store is not usable: RC_IO, RC_CORRUPT,
 * RC_NOMEM, RC_BUSY.
 */
enum rc
store_find(struct store *, const struct store_identity *, struct record *);

/* An answer that is kept with its key, as most are; otherwise .is is false,
 * and store_answer() reads it. */
struct store_small {
	bool is;
	struct response response; /* its body is that of .body */
	struct buf body;
};
void store_small_init(struct store_small *);
void store_small_free(struct store_small *); /* leaves it initialised */

/* store_find(), and, of a completed key and by the same read, the answer if it
 * is small.  *small is initialised; a failure leaves it so. */
enum rc store_look(struct store *, const struct store_identity *,
    struct record *, struct store_small *);

/*
 * The stored answer of that completed key, which has that number: response
 * (initialised) gets status, reason, kind and fields; *body a spool that holds
 * the body and that response->body points into (NULL for an empty body; the
 * caller frees it).  RC_NOTFOUND: no longer there, or not completed.
 */
enum rc store_answer(struct store *, const struct store_identity *, int64_t id,
    struct response *, struct spool **body);

/*
 * What finds the processes of an attempt: a lock that the handler inherits, and
 * what it starts in turn; the attempt's token in their environment; and their
 * session.  The handler can keep its own attempt alive by it, and no other.
 */
struct store_attempt {
	int fd;   /* for the handler to inherit; -1 for none */
	int note; /* the store's */
	int64_t lock, file;
};

enum rc store_attempt_lock(struct store *, struct store_attempt *);

/* Before the handler is started: writes down what the attempt is called. */
enum rc
store_attempt_begin(struct store_attempt *, const char *token, int64_t key_id);

/* After: writes down its session. */
void store_attempt_started(struct store_attempt *, pid_t);

/* Closes the descriptor: from now on only the processes hold it. */
void store_attempt_release(struct store_attempt *);
/* Whether no process of it is left; it was released. */
bool store_attempt_gone(struct store *, const struct store_attempt *);

/* Removes what was kept of a released attempt that no record names any more. */
void store_attempt_forget(struct store *, const struct store_attempt *);

struct store_reservation {
	struct store_identity identity;
	const char *recipe; /* how fingerprint was made */
	unsigned char fingerprint[FINGERPRINT_LEN];
	int64_t lease;     /* ms from now to the deadline */
	int64_t retention; /* ms */
	enum conf_on_crash on_crash;
	enum conf_on_expired on_expired;
	int64_t expired_retention; /* ms */
	/* what store_attempt_lock() gave, for CRASH_RESUME and where there is
	 * a reconcile_delay; else NULL */
	const struct store_attempt *attempt;
	/* ms from becoming unknown to the first try to find out; 0: nobody
	 * will, and the request is not kept */
	int64_t reconcile_delay;
	bool resource; /* the key is to have a status resource */
	/* of its scope: keys in progress; unknown keys and dead letters, for a
	 * new key; 0: any number */
	unsigned max_active, max_open;
	uint64_t max_kept;       /* bytes of all requests kept; 0: any number */
	const char *environment; /* NAME=VALUE strings, each with a NUL */
	size_t environment_len;
	const void *body;
	size_t body_len;
};

struct store_lease {
	int64_t id;
	int attempt;
	char token[RECORD_TOKEN_LEN + 1];
	char downstream[RECORD_UUID_LEN + 1];
	char recovery_point[LIMIT_RECOVERY_POINT + 1];
};

/*
 * In one write transaction: look again, decide(), and where the decision is
 * DECIDE_RUN take the lease.  *decision says what was found there; for
 * anything but DECIDE_RUN, found is that record (record_free()).
 *
 * A record made by another recipe than the reservation's and whose
 * fingerprint can therefore not be compared here comes back as DECIDE_BUSY
 * with found filled in: the caller compares, and tries again with that recipe.
 *
 * decide_is_limit(): it could run, but for max_active, max_open or max_kept;
 * there may be no record then, and found->id is 0.
 *
 * RC_OK: durable.  RC_BUSY: another process held the write lock for
 * busy_timeout.  RC_FULL, RC_IO, RC_LIMIT (max_wal), RC_CORRUPT, RC_CLOSED.
 */
enum rc store_reserve(struct store *, const struct store_reservation *,
    struct store_lease *, enum decision *decision, struct record *found);

/* Tells the tries to reconcile a key apart, over its attempts. */
struct store_tries {
	int attempt;
	int tries; /* begun when it was looked at; -1: an operator */
};

/*
 * What becomes of a key, with the answer to keep if it completed.
 *
 * Of a leased key, by its token: COMPLETED FAILED_RETRYABLE UNKNOWN.  If the
 * attempt has answered itself, in a transaction of its own, that stands, and
 * this is forgotten: answered says so.
 *
 * Of a pending key past its retention, by abandon: COMPLETED.
 *
 * Without a token, of a key whose outcome is open: COMPLETED FAILED_RETRYABLE
 * DEAD_LETTER.  tries says when the reconciler looked; an operator may settle
 * dead letters too.  The retention is that of the reservation.
 */
struct store_settlement {
	int64_t id;
	char token[RECORD_TOKEN_LEN + 1];
	struct store_tries tries;
	enum record_state state;
	char last_error[LIMIT_LAST_ERROR]; /* "" for none */
	int64_t retention;                 /* ms from now; not for UNKNOWN */
	/* FAILED_RETRYABLE, an accepted key: ms until a worker takes it up
	 * again; -1, as it is made: none does until somebody asks */
	int64_t requeue;
	bool abandon;
	bool answered;            /* out: see store_answer() */
	bool keep;                /* the answer can be replayed */
	struct response response; /* COMPLETED: at least its status */
	struct spool *body;       /* owned; response.body points into it */
};

struct store_settlement *store_settlement_new(void);
void store_settlement_free(struct store_settlement *);

/*
 * Commits the outcome.  RC_OK: durable, *expires_at is set (0 for UNKNOWN).
 * With answered, what store_answer() gives is the answer, and durable too.
 * RC_LOST: the lease is gone, or the outcome is no longer open; nothing
 * changed.
 *
 * It is tried again as long as the process lives.  After busy_timeout without
 * success the call returns RC_PENDING and the store keeps *settlement, which
 * becomes NULL; in all other cases it stays the caller's.
 */
enum rc store_settle(
    struct store *, struct store_settlement **settlement, int64_t *expires_at);

/*
 * Makes durable what other connections have committed by now, however little
 * they did for that: whoever answers from a record that is unsealed needs it
 * first.  Without durability = full there is nothing to do.
 */
enum rc store_harden(struct store *);

/*
 * Waits until some key has been settled since *generation was read (0 at
 * first), or until_mono.  False: time is up.  Other processes' settlements are
 * noticed within 100 ms.
 */
bool store_wait(struct store *, uint64_t *generation, int64_t until_mono);

/* Called for each key that a pass changed. */
struct store_change {
	int64_t id;
	const char *scope, *path, *key;
	enum record_state from, to;
};

/*
 * Settles the attempts of dead owners, by their on_crash: unknown, or, once
 * the whole process tree of the attempt is gone, released, and queued again if
 * the key was accepted; an attempt whose tree lives past its deadline becomes
 * unknown.  An attempt that has answered itself stays completed.  limit bounds
 * one call; *n says how many were changed.  Effects that they were trying are
 * due again.  RC_OK, or why not.
 */
enum rc
store_sweep(struct store *, int limit, struct store_change *changes, int *n);
void store_changes_free(struct store_change *, int n);

/* Whether the owner of a lease is gone; false if it cannot be told.  Cheap. */
bool store_owner_is_dead(struct store *, int64_t owner);

/* As store_sweep(), of one attempt of an owner that is gone.  *n is 0 where
 * its processes live, or its lease has ended meanwhile. */
enum rc store_recover(struct store *, int64_t id, int64_t owner,
    struct store_change *change, int *n);

/* Deletes at most limit keys past their retention, oldest first, or makes them
 * markers; fewer if they are large.  A change to NONE is a deletion. */
#define STORE_REAP_MAX 100
enum rc
store_reap(struct store *, int limit, struct store_change *changes, int *n);

/* --- accepted work ----------------------------------------------------- */

struct store_ticket {
	char resource[RECORD_RESOURCE_LEN + 1];
	bool full; /* as many wait as may: nothing was kept */
};

/*
 * As store_reserve(), but where the decision is DECIDE_RUN the request is kept
 * and queued, and nobody has a lease.  The reservation must have environment
 * and body.  A key that waits already is left as it is: accepted.
 */
enum rc store_accept(struct store *, const struct store_reservation *,
    unsigned max_queue, struct store_ticket *, enum decision *decision,
    struct record *found);

struct store_job {
	int64_t id;
	int attempt; /* made so far */
	char *scope, *path, *key;
	char resource[RECORD_RESOURCE_LEN + 1];
};
void store_job_free(struct store_job *);

/* The job that has been due longest; RC_NOTFOUND: none is. */
enum rc store_job_next(struct store *, struct store_job *);

/*
 * Takes the lease for the job's next attempt.  Of the reservation only what is
 * to become of the attempt counts: not identity, fingerprint and request.
 * RC_LOST: somebody was faster.
 */
enum rc store_job_start(struct store *, const struct store_job *,
    const struct store_reservation *, struct store_lease *);

/* A key that was accepted, and not taken up within its retention; RC_NOTFOUND.
 * See store_settlement.abandon. */
enum rc store_job_abandoned(struct store *, struct store_job *);

/* What a status resource tells. */
struct store_status {
	int64_t id;
	char *scope, *path, *key, *recovery_point;
	enum record_state state;
	int attempt;
	bool queued, kept, unsealed;                /* as in struct record */
	int64_t expires_store;                      /* store time; 0: none */
	int64_t created_at, updated_at, expires_at; /* wall; 0: none */
};
void store_status_free(struct store_status *);

/* RC_NOTFOUND: no key has that resource. */
enum rc
store_status(struct store *, const char *resource, struct store_status *);

/*
 * Waits until this process has made work since *generation was read (0 at
 * first): accepted a key or queued one again, ended an attempt whose handler
 * may have put effects into the outbox, freed or moved effects, or changed
 * topics; or until store_wake(), or until_mono.  False: time is up.  What
 * other processes do is not noticed.
 */
bool store_wait_work(struct store *, uint64_t *generation, int64_t until_mono);

/* Ends what is waited for in store_wait_work(), by everybody. */
void store_wake(struct store *);

/* Which topics a handler may name from now on, and which not any more. */
enum rc store_topics(struct store *, char *const *add, size_t nadd,
    char *const *drop, size_t ndrop);

/* The same for a process that starts: if no other uses the store, nobody is
 * left who would deliver any others. */
enum rc store_topics_first(struct store *, char *const *add, size_t nadd);

/* --- handlers that share the database ------------------------------------ */

/* The database's absolute file name. */
const char *store_database(const struct store *);

/* Lets the database's group write it and the files beside it.  What cannot be
 * given is logged. */
void store_share_files(struct store *);

/*
 * A handler that may write the database, while it runs: the store leaves it
 * gaps to do so, and names it in the log if it keeps everybody else out.  The
 * caller's, and what it points to, until store_share_end().
 */
struct store_sharer {
	pid_t pid; /* and process group */
	const char *path, *key, *instance;
	struct store_sharer *next; /* the store's */
};
void store_share_begin(struct store *, struct store_sharer *);
void store_share_end(struct store *, struct store_sharer *);

/* --- finding out what happened ----------------------------------------- */

struct store_due {
	int64_t id;
	struct store_tries tries;
	char *scope, *path, *key, *recovery_point;
	char downstream[RECORD_UUID_LEN + 1];
	/* of the attempt, whose processes may still be there; .lock is 0 once
	 * they are known not to be */
	struct store_attempt attempt;
};
void store_due_free(struct store_due *);

/*
 * A key whose turn it is to be tried: of the scope next after that one, the key
 * due longest.  Scopes with due keys stand in a circle, in the order of their
 * bytes: after the last one comes the first, and a scope that is alone comes
 * after itself.  NULL: starts at the first.  RC_NOTFOUND: none is due.
 */
enum rc store_due(struct store *, const char *after, struct store_due *);

/*
 * Puts the next try off to after ms from now; count: it begins now, and is
 * counted though whoever makes it should die; the attempt's processes are
 * known to be gone.  RC_LOST: somebody was faster.  On success *tries is up to
 * date.
 */
enum rc store_claim(struct store *, int64_t id, struct store_tries *tries,
    bool count, int64_t after);

/* The request kept with a key, to run, or to find out with: NAME=VALUE strings,
 * each with a NUL, and the body, NULL if it is empty; the caller frees both.
 * RC_NOTFOUND: none. */
enum rc store_request(struct store *, const struct store_identity *, int64_t id,
    struct buf *environment, struct spool **body);

/* --- for who watches it ------------------------------------------------ */

struct metrics_gauges;

/*
 * How many keys are in which state, as of now, or for states that end by age
 * (completed, failed_retryable, expired) as of the last whole tally; not known
 * before the first.  On failure nothing is known.
 */
enum rc store_gauges(struct store *, struct metrics_gauges *);

/*
 * Counts a part of the keys that end by age, by a read of a few milliseconds;
 * *done says that it was the last.  One thread at a time.
 */
enum rc store_tally(struct store *, bool *done);

/*
 * Whether the store can do its work, or a few words why not.  Writes only
 * where the last write failed; may then take busy_timeout.
 */
bool store_health(struct store *, char *why, size_t size);

#endif
