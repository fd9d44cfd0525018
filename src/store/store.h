/*
 * The key store's interface.  It says what is stored, not how, so that another
 * kind of store can implement it.
 *
 * Any thread may call these functions.  A function that writes returns when the
 * change is durable (see durability), or when the change has failed and will
 * not appear.  Times are store time unless a name says wall.
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
	/* a file name; or the URI of a PostgreSQL database, which may have a
	 * password */
	const char *database;
	unsigned mode; /* of a new file: 0600 */
	enum conf_durability durability;
	int64_t busy_timeout; /* ms */
	/* ms without a sign of life after which a process of another host is
	 * suspected; PostgreSQL */
	int64_t owner_timeout;
	uint64_t max_wal; /* bytes */
	unsigned workers; /* programs at once; 0: not known.  PostgreSQL */
	bool create;      /* a daemon: it creates a missing file */
};

/*
 * Opens or creates the database; err (of errsize bytes) gets a
 * sentence that names the file.  RC_VERSION: another release wrote it.
 * RC_CORRUPT: not a database, or the database of another program.
 */
enum rc store_open(struct store **store, const struct store_options *options,
    char *err, size_t errsize);

/* Waits for the writes under way.  Operations that their callers have given up
 * are tried once more. */
void store_close(struct store *store);

/* The secret of this database. */
const unsigned char *store_secret(const struct store *s);

/* Store time now. */
int64_t store_now(const struct store *s);

/*
 * The reading of the wall clock (ms) at that store time, if the clock is right
 * now.  Both clocks are read to the nanosecond, so that the same store time
 * gives the same second again unless the wall clock was changed.
 */
int64_t store_wall(const struct store *s, int64_t store_time);

struct store_identity {
	const char *scope, *path, *key;
};

/*
 * Reads the record of an identity, without a lock and without a copy of the
 * identity.  RC_OK (the caller frees it with record_free()), RC_NOTFOUND, or
 * the store is not usable: RC_IO, RC_CORRUPT, RC_NOMEM, RC_BUSY.
 */
enum rc store_find(
    struct store *s, const struct store_identity *identity, struct record *key);

/* A body up to this size (bytes) is stored in the row of its key: some two
 * pages of a database, so that one commit writes no more pages than it would
 * for a separate row. */
#define STORE_INLINE 2048

/* A small response, which is stored in the row of its key.  If .is is false the
 * response is elsewhere, and store_answer() reads it. */
struct store_inline_answer {
	bool is;
	struct response response; /* response.body points into .body */
	struct buf body;
};
void store_inline_answer_init(struct store_inline_answer *small);
void store_inline_answer_free(
    struct store_inline_answer *small); /* leaves it initialised */

/*
 * Like store_find(), but the same read also gets the response of a completed
 * key, if it is small.  The caller initialises *small; on failure it stays so.
 */
enum rc store_lookup(struct store *s, const struct store_identity *identity,
    struct record *key, struct store_inline_answer *small);

/*
 * Reads the stored response of a completed key; the row must have that identity
 * and that number.  response (initialised by the caller) gets status, reason,
 * kind and fields.  *body gets a spool with the body, into which response->body
 * points (NULL for an empty body; the caller frees it).  RC_NOTFOUND: the key
 * was deleted, or is not completed.
 */
enum rc store_answer(struct store *s, const struct store_identity *identity,
    int64_t id, struct response *response, struct spool **body);

/*
 * What identifies the processes of an attempt: a lock, which the handler and
 * its children inherit; the attempt's token in their environment; and their
 * session.  A handler can keep its own attempt alive with the lock, but no
 * other.
 */
struct store_attempt {
	int fd;   /* for the handler to inherit; -1 for none */
	int note; /* the store's */
	int64_t lock, file;
};

enum rc store_attempt_lock(struct store *store, struct store_attempt *at);

/* Before the handler is started: records the attempt's token and key. */
enum rc store_attempt_begin(
    struct store_attempt *at, const char *token, int64_t key_id);

/* After the handler was started: records its session. */
void store_attempt_started(struct store_attempt *at, pid_t pid);

/*
 * The same for a process that stays and handles one attempt after another.
 * store_process_lock() makes a lock of its own, for it to inherit, and a token
 * for its environment; store_attempt_started() and store_attempt_release()
 * follow as for an attempt.  store_process_forget() comes when the process has
 * ended.  store_attempt_by() comes before the attempt's request is sent to the
 * process: from then on its processes count as the attempt's, until
 * store_attempt_by_none().
 */
enum rc store_process_lock(struct store *store, struct store_attempt *at,
    char token[RECORD_TOKEN_LEN + 1]);
void store_process_forget(struct store *store, int64_t lock);
enum rc
store_attempt_by(struct store *store, struct store_attempt *at, int64_t lock);
void store_attempt_by_none(struct store *store, const struct store_attempt *at);

/* Closes the descriptor, so that only the attempt's processes still hold it. */
void store_attempt_release(struct store_attempt *at);
/* Whether every process of a released attempt has exited. */
bool store_attempt_gone(struct store *store, const struct store_attempt *at);

/* A process of the attempt that still lives, for messages; 0: none is known. */
pid_t
store_attempt_process(struct store *store, const struct store_attempt *at);

/* Removes the file of a released attempt that no record names any more. */
void store_attempt_forget(struct store *store, const struct store_attempt *at);

struct store_reservation {
	struct store_identity identity;
	/* see struct record; NULL: none */
	int64_t caller;
	const char *peer, *cookie, *method, *instance;
	const char *fingerprint_spec; /* how fingerprint was made */
	unsigned char fingerprint[FINGERPRINT_LEN];
	int64_t lease;     /* ms from now to the deadline of the attempt */
	int64_t retention; /* ms */
	enum conf_on_crash on_crash;
	enum conf_on_expired on_expired;
	int64_t expired_retention; /* ms */
	/* the result of store_attempt_lock(), for CRASH_RESUME or where there
	 * is a reconcile_delay; else NULL */
	const struct store_attempt *attempt;
	/* ms from becoming unknown to the first try to reconcile; 0: the key
	 * has no reconciler, and the request is not stored */
	int64_t reconcile_delay;
	bool resource; /* the key gets a status resource */
	/* of one caller's keys: in progress; open, for a new key; 0: none */
	unsigned max_active, max_open;
	uint64_t max_kept;  /* of stored requests (bytes); 0: no limit */
	uint64_t max_store; /* of the store (bytes), for a new key; 0: none */
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
	bool no_request; /* none is stored, and so none must be erased */
};

/* Identifies one try to reconcile a key, over all attempts of the key. */
struct store_tries {
	int attempt;
	int tries; /* tries begun when the key was read */
};

/* A run with an answer that was not accepted: for people only. */
struct store_refused {
	bool is;
	int exit_status;   /* -1: the program did not exit by itself */
	int signal;        /* that ended it; 0: none */
	const void *bytes; /* the output, of which LIMIT_REFUSED are stored */
	uint64_t length;
};

/* The outcome of a key, with the response to store if the key completed.  It is
 * allocated before it is known, so that recording it needs no memory. */
struct store_outcome {
	struct store *store; /* that made it */
	enum record_state state;
	char last_error[LIMIT_LAST_ERROR]; /* "" for none */
	/* FAILED_RETRYABLE, an accepted key: ms until a worker runs it again;
	 * -1, the initial value: no worker does until a client retries */
	int64_t requeue;
	bool nothing_happened;    /* store_finish(): see struct outcome */
	bool keep;                /* the response can be replayed */
	struct response response; /* COMPLETED: at least the status is set */
	struct spool *body;       /* owned; response.body points into it */
	struct store_refused refused; /* its bytes are in .body too */
	struct buf errors;            /* owned: the end of its stderr */
	struct log_request log;       /* owned: log_request_copy() */
};
struct store_outcome *store_outcome_new(struct store *s);
void store_outcome_free(struct store_outcome *outcome);
/*
 * The next functions record an outcome.  RC_OK: it is durable.  RC_LOST:
 * nothing changed.
 *
 * The store repeats the commit as long as the process lives.  After
 * busy_timeout without success the call returns RC_PENDING, and the store takes
 * *outcome, which becomes NULL.  In all other cases *outcome still belongs to
 * the caller.
 */

struct store_finished {
	int64_t expires_at; /* 0: it does not expire */
	/* the handler has stored its response in a transaction of its own: that
	 * response stands (see store_answer()), and *outcome was dropped */
	bool answered;
};

/*
 * Finishes the attempt that holds the lease: COMPLETED FAILED_RETRYABLE
 * UNKNOWN.  The key expires in `retention` ms, unless it is unknown.  RC_LOST:
 * the lease is gone.
 */
enum rc store_finish(struct store *s, const struct store_lease *lease,
    int64_t retention, struct store_outcome **outcome,
    struct store_finished *done);

/*
 * Resolves a key whose outcome is open: COMPLETED FAILED_RETRYABLE DEAD_LETTER.
 * tries says at which try the reconciler read the key.  The retention is that
 * of the reservation.  RC_LOST: another try has begun, or the outcome is no
 * longer open.
 */
enum rc store_resolve(struct store *s, int64_t id,
    const struct store_tries *tries, struct store_outcome **outcome);

/* The same for an operator, after any number of tries to reconcile that
 * attempt, and for a dead letter too: COMPLETED FAILED_RETRYABLE. */
enum rc store_resolve_by_operator(
    struct store *s, int64_t id, int attempt, struct store_outcome **outcome);

/* Completes an accepted key that no worker has run within its retention.
 * RC_LOST: a worker has claimed it, or it is not past its retention. */
enum rc
store_abandon(struct store *s, int64_t id, struct store_outcome **outcome);

/*
 * Makes durable what the record says, which others may have committed with
 * synchronous = OFF or synchronous_commit = off, or without the standby that
 * their COMMIT waited for in vain.  Must return RC_OK before a client gets the
 * answer of a completed key, or hears that a key is accepted.
 */
enum rc store_make_durable(struct store *s, const struct record *record);

/* Whether store_make_durable() has nothing to do, as far as can be told without
 * waiting. */
bool store_is_durable(struct store *s, const struct record *record);

/* Called for each key that a pass changed. */
struct store_change {
	int64_t id;
	const char *scope, *path, *key;
	enum record_state from, to;
};

/*
 * Recovers the attempts of dead owners.  By its on_crash a key becomes unknown;
 * or it is released once every process of the attempt has exited, and queued
 * again if it was accepted.  If processes of the attempt live past its
 * deadline, the key becomes unknown.  If the attempt has stored its own
 * response, the key stays completed.  One call changes at most limit keys; *n
 * is their number.  Effects that a dead owner was trying are due again.  RC_OK,
 * or the reason of the failure.
 */
enum rc
store_recover(struct store *s, int limit, struct store_change *changes, int *n);
void store_changes_free(struct store_change *changes, int n);

/* Whether the owner of a lease is dead; false if that cannot be determined.
 * With PostgreSQL it may wait. */
bool store_owner_is_dead(struct store *s, int64_t owner);

/* Whether store_owner_is_dead() may be true, as far as can be told without
 * waiting. */
bool store_owner_may_be_gone(struct store *s, int64_t owner);

/* Like store_recover(), for one attempt of a dead owner.  *n is 0 if the
 * attempt's processes live, or if its lease has ended meanwhile. */
enum rc store_recover_key(struct store *s, int64_t id, int64_t owner,
    struct store_change *change, int *n);

/* Deletes at most limit keys past their retention, oldest first, or makes them
 * markers; fewer keys if they are large.  A change to NONE is a deletion. */
#define STORE_EXPIRE_MAX 100
enum rc
store_expire(struct store *s, int limit, struct store_change *changes, int *n);

/* --- accepted work ----------------------------------------------------- */

struct store_ticket {
	char resource[RECORD_RESOURCE_LEN + 1];
	bool full; /* the queue is full: nothing was stored */
};

/* What reserve, or accept, is asked, and where its results go. */
struct store_asked {
	const struct store_reservation *what;
	struct store_lease *lease;   /* reserve; or NULL: */
	struct store_ticket *ticket; /* accept */
	unsigned max_queue;          /* accept */
	enum decision *decision;
	struct record *found;
};

/* The job that has been due longest, which the caller frees.  RC_NOTFOUND: no
 * job is due, and job->queued_at is the time of the next one; 0: none is
 * queued. */
enum rc store_job_next(struct store *s, struct record *job);

/*
 * Takes the lease for the job's next attempt.  The reservation needs only the
 * terms of the attempt: identity, fingerprint and request are not read.
 * RC_LOST: another worker or process has taken the job.
 */
enum rc store_job_start(struct store *s, const struct record *job,
    const struct store_reservation *terms, struct store_lease *lease);

/* An accepted key that no worker has run within its retention; RC_NOTFOUND:
 * there is none.  See store_abandon(). */
enum rc store_job_abandoned(struct store *s, struct record *job);

/* The key with that status resource; RC_NOTFOUND. */
enum rc store_status(struct store *s, const char *resource, struct record *key);

/*
 * The store's eventfd(2), which does not block: is written when this process
 * has made work, and by store_wake().  Work is: a key is accepted or queued
 * again; an attempt ends, and its handler may have put effects into the outbox;
 * effects are freed or moved; topics change.  Changes by other processes are
 * not noticed.  -1: the store got no descriptor for it.
 */
int store_news(const struct store *s);
void store_wake(struct store *s);

/*
 * Opens a descriptor that is readable once any process has written the
 * database, perhaps before its commit is visible.  The caller closes it.  -1:
 * the system cannot tell.  store_watch_read() makes it unreadable again: RC_OK,
 * the database was written; RC_NOTFOUND, it was not; RC_LOST, the descriptor
 * tells nothing any more.
 */
int store_watch(const struct store *store);
enum rc store_watch_read(int fd);

/*
 * Adds and removes topics that a handler may name.  drop is NULL at the start
 * of a process: if no other process uses the store, all other topics are
 * removed, because no process is left to deliver them.
 */
enum rc store_topics(struct store *s, char *const *add, size_t nadd,
    char *const *drop, size_t ndrop);

/* --- handlers that share the database ------------------------------------ */

/* The database's absolute file name, or its URI without a password. */
const char *store_database(const struct store *s);

/* Lets the database's group write the database and the files beside it.  The
 * store logs a file if it cannot change the group or the mode. */
void store_share_files(struct store *s);

/* A handler may write the database itself, until it ends: the store leaves gaps
 * between its commits for it. */
void store_share_begin(struct store *s);
void store_share_end(struct store *s);

/* --- finding out what happened ----------------------------------------- */

/*
 * The next key to reconcile: the longest due key of the next caller, after that
 * one in a circle.  RC_NOTFOUND: no key is due, and due->reconcile_after is the
 * time of the next one; 0: there is none.
 */
enum rc store_due(struct store *s, int64_t after, struct record *key);

/*
 * Sets the next try to `after` ms from now.  count: a try begins now; it is
 * counted even if this process dies during it, and the attempt's processes are
 * known to have exited.  RC_LOST: another process was faster, or the key is
 * resolved.  On success *tries is up to date.
 */
enum rc store_claim(struct store *s, int64_t id, struct store_tries *tries,
    bool count, int64_t after);

/*
 * The stored request of a key, to run it or to reconcile it: NAME=VALUE
 * strings, each with a NUL, and the body (NULL if it is empty).  The caller
 * frees both.  RC_NOTFOUND: the key has no stored request.
 */
enum rc store_request(struct store *s, const struct store_identity *identity,
    int64_t id, struct buf *environment, struct spool **body);

/* --- metrics and health ------------------------------------------------ */

struct metrics_gauges;

/*
 * The number of keys in each state.  States that end by age (completed,
 * failed_retryable, expired) are as of the last complete tally, and unknown
 * before the first one; all others are current.  On failure no number is known.
 */
enum rc store_gauges(struct store *s, struct metrics_gauges *gauges);

/* The gauge of the keys in that state. */
#define STORE_GAUGE_OF(state) (METRICS_KEYS_PENDING + (state)-RECORD_PENDING)

/* If few keys end by age, sets their gauges to what they are now. */
enum rc store_gauges_of_few(struct store *s, struct metrics_gauges *gauges);

/* Counts some of the keys in states that end by age, in one read of a few
 * milliseconds; *done: the tally is complete.  One thread at a time calls it.
 */
enum rc store_tally(struct store *s, bool *done);

/* Whether the store works; if not, why gets a few words.  If so, why stays as
 * it is, or says what waits for an operator.  It writes only if the last write
 * failed; the call may then take busy_timeout. */
bool store_health(struct store *s, char *why, size_t size);

/* The folder with files of this host's processes; NULL: the database's. */
const char *store_folder(const struct store *s);

/* What the database said of the failure rc, or rc_text(rc).  Returns out. */
const char *store_why(struct store *s, enum rc rc, char *out, size_t size);

#endif
