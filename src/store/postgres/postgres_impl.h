/*
 * Private to the files of the store on PostgreSQL.
 */
#ifndef POSTGRES_IMPL_H
#define POSTGRES_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "ahead.h"
#include "store_doctor.h"
#include "handler_api.h"
#include "rows.h"
#include "lock.h"
#include "store_module.h"
#include "store_ops.h"
#include "store_outbox.h"
#include "store_outcome.h"
#include "postgres_host.h"
#include "txn.h"

/* --- the functions of a store, by their names in store_ops.h ------------- */

extern const struct store_ops postgres_ops;

enum rc postgres_open(struct store **out, const struct store_options *o,
    char *err, size_t errsize);

/* handler_api_say() */
enum rc postgres_handler_api_say(const char *database, int64_t patience,
    const struct handler_api_write *w, char *why, size_t size);

#define X(type, name, parameters, arguments) type postgres_##name parameters;
STORE_OPS(X)
#undef X
void postgres_close(struct store *s);

/* --- a store -------------------------------------------------------------- */

/* Connections of a process at most: a server has room for 100 unless it is set
 * up for more. */
#define POSTGRES_CONNECTIONS 32

struct postgres_outcome;
struct postgres_spec;
struct postgres_watched;

/* Open transactions of a server that are told apart. */
#define POSTGRES_OPEN_MAX 64

/* Transactions whose changes a standby has: all before that number, modulo 2^32
 * as rows have it, but those that were open. */
struct postgres_confirmed {
	bool known;
	int64_t timeline;
	uint32_t before, open[POSTGRES_OPEN_MAX];
	int nopen;
};

/* The server's clock and what bounds store time, as a look has found them. */
struct postgres_clock {
	int64_t clock, limit, held_at; /* see once_meta */
	int64_t boot;                  /* clock_boot() of the look */
	bool alone;                    /* no other process uses the store */
	enum ahead_verdict verdict;    /* of a beat */
};

/* Reads them from the text of a pg_snapshot. */
void postgres_confirmed_read(const char *text, struct postgres_confirmed *c);

struct store {
	struct store_base base;
	struct txn_pool *pool;
	struct postgres_host host;
	unsigned char secret[SCOPE_SECRET_LEN];
	char catalog[TXN_NAME_SIZE]; /* what the server calls the database */
	char schema[TXN_NAME_SIZE];
	int64_t busy_timeout, owner_timeout; /* ms */
	bool daemon;                         /* not an operator */
	bool full;                           /* durability */
	struct pg *copying;                  /* of a copy into this store: its
					      * transaction, which reads are
					      * part of; else NULL */
	_Atomic int64_t owner;               /* this process in once_session;
					      * of a daemon in once_owner too */
	atomic_bool standby;                 /* a COMMIT waits for one */
	atomic_bool name_shared; /* another host has this one's name: logged */
	_Atomic int64_t held_at; /* once_meta.held_at while time stands still */
	_Atomic int64_t bytes;   /* of the tables, as of the last sweep */

	struct lock lock;                    /* guards what follows */
	struct postgres_confirmed confirmed; /* by the last beat */
	struct postgres_former *former;
	struct liveness *liveness;             /* NULL until it is needed */
	struct postgres_outcome *late;         /* outcomes to be recorded */
	_Atomic(struct postgres_spec *) specs; /* see postgres_spec_note() */
	atomic_uint nspecs;
	struct postgres_watched *watched; /* owners */
	int64_t looked;        /* clock_boot() of the last look at them */
	unsigned beats;        /* of the keeper, which alone uses it */
	unsigned nlate, nheld; /* all of late; those that are held */
	int failing;    /* outcomes that their callers have failed to record */
	enum rc failed; /* see postgres_note() */
	/* What follows is the keeper's. */
	int64_t losses; /* once_meta.losses, as of the last sign that all
			 * commits are there */
	struct postgres_clock believed; /* the last; boot is 0: none */
	int64_t began;                  /* clock_boot() of the first beat */
	int64_t held_by_wall;           /* see struct ahead, own */
	bool told_held;      /* it is logged that the clock has jumped */
	pthread_cond_t beat; /* the keeper has work, or ends */
	bool stop;

	pthread_t thread;
	bool has_thread;
};

/*
 * Runs a transaction, see txn_run(), and counts its failure, unless its kind is
 * TXN_TWICE.  Of a write that is noted for health.  While a copy into this
 * store is compared, it is a part of the transaction of the copy.
 */
enum rc
postgres_run(struct store *s, enum txn_kind kind, txn_body *body, void *arg);

/* The same for TXN_WRITE, which counts as a change that a commit made durable:
 * it is not about this process alone. */
enum rc postgres_write(struct store *s, txn_body *body, void *arg);

/* Notes for health that a write has failed, or a lookup, without which no key
 * is reserved; RC_OK: a key was reserved since. */
void postgres_note(struct store *s, enum rc rc);

/* A transaction that writes (see tx.h), in the body of one of the kind
 * TXN_WRITE; *did: what it did. */
enum rc postgres_tx_run(const struct store *s, struct pg *pg, tx_body *body,
    void *arg, unsigned *did);

/* Runs one statement by postgres_run(): its parameters, and the columns of its
 * only row; "": it gives none.  Failures are those of pg_one() or
 * pg_update(). */
enum rc postgres_ask(struct store *s, enum txn_kind kind, enum pg_query query,
    const char *parameters, const char *columns, ...);

/* err gets a sentence that names the database, with the last message. */
void postgres_explain(const struct store *s, char *err, size_t errsize);

/* The same for an operation that may share a transaction of the kind TXN_WRITE
 * or TXN_LOOK, see txn_share(). */
enum rc postgres_share(struct store *s, enum txn_kind kind, struct txn_op *op,
    enum txn_shared *how);

/* Bytes of a piece of a large body; see once_piece in schema.sql. */
#define POSTGRES_PIECE (1024 * 1024)

/* Sends the piece of that body which begins there; returns its bytes. */
size_t postgres_piece_send(struct pg *pg, int64_t number, const void *body,
    size_t length, size_t from);

/* Stores all pieces of a large body, each in a round trip of its own: libpq
 * keeps what it has not sent. */
enum rc postgres_body_write(
    struct pg *pg, int64_t number, const void *body, size_t length);

/* --- identities and specs, see postgres_read.c ---------------------------- */

/* Finds the number of a spec, which gets one. */
enum rc postgres_spec_number(struct pg *pg, const char *text, int64_t *number);

/*
 * Notes the number, after a transaction of that owner that has found it is
 * committed.  So its row is lost only together with that transaction: the loss
 * is noticed, and the process goes on as another owner.
 */
void postgres_spec_note(
    struct store *s, int64_t owner, const char *text, int64_t number);

/* A number that was noted; 0: none was. */
int64_t
postgres_spec_noted(const struct store *s, int64_t owner, const char *text);

void postgres_spec_free(struct store *s);

/* --- store time, see postgres_clock.c ------------------------------------ */

/* Sends the statement that looks at the clock, and reads its result. */
void postgres_clock_send(const struct store *s, struct pg *pg);
enum rc postgres_clock_read(struct pg *pg, struct postgres_clock *c);
/* Sets store time by that look. */
void postgres_clock_set(struct store *s, const struct postgres_clock *c);
/* For a beat, in the transaction of the look: moves the limit of store time, or
 * not, and sets c->verdict. */
enum rc postgres_clock_judge(
    const struct store *s, struct pg *pg, struct postgres_clock *c);
/* After that transaction: sets store time, and logs what has changed. */
void postgres_clock_judged(struct store *s, const struct postgres_clock *c);
/* While time stands still because the clock has jumped: why (of size bytes)
 * says so.  Else it stays as it is. */
void postgres_clock_tell(const struct store *s, char *why, size_t size);

/* The oldest version of the server that will do. */
#define POSTGRES_VERSION 130000

/*
 * Whether the server is of a version that will do, and its settings keep the
 * promise of durability; else err gets a sentence that names the setting.
 * Notes the result: nothing runs while a setting is off.  RC_VERSION,
 * RC_UNSAFE.
 */
enum rc postgres_check_server(struct store *s, char *err, size_t errsize);

/* Adds that a standby may be the cause, where a COMMIT waits for one: one that
 * is not confirmed in time looks like a lock, or like a lost server. */
void postgres_tell_standby(const struct store *s, char *out, size_t size);

/* Whether a pooler between here and the server gives each transaction another
 * session.  False if that cannot be determined. */
bool postgres_is_pooled(struct store *s);

/* What a statement finds: how many, and their names. */
struct postgres_names {
	enum pg_query query;
	int64_t n;
	char text[256];
};
enum rc postgres_names_read(struct store *s, struct postgres_names *names);

/* Finds the schema by the role's path, or makes it, and pins it.  Whoever makes
 * it, and a daemon, must have all rights that a daemon needs. */
enum rc
postgres_schema_open(struct store *s, bool make, char *err, size_t errsize);

/* --- a store that went back, see postgres_health.c ----------------------- */

/* A number of a former life of this process, before a loss was accepted.  Its
 * lock is held as long as the process lives. */
struct postgres_former {
	struct postgres_former *next;
	struct liveness *liveness;
};

/* If the store went back, and an operator has accepted the loss since: goes on
 * as a new owner.  The keeper's. */
void postgres_loss_look(struct store *s);
void postgres_former_free(struct postgres_former *f);

/* --- for operators ------------------------------------------------------- */

/* See store_module.h. */
enum rc postgres_init(
    const struct store_options *o, const char *role, char *err, size_t errsize);
enum rc postgres_copy(struct store *to, struct store *from,
    struct store_transfer *n, char *err, size_t errsize);
/* Before a group of statements of a copy, which may take long. */
void postgres_copy_patience(const struct store *to, struct pg *pg);
enum rc postgres_accept_loss(struct store *s, char *err, size_t errsize);
/* How such a transaction ended: returns rc, and tells of a failure. */
enum rc postgres_accepted(
    struct store *s, enum rc rc, const char *what, char *err, size_t errsize);
enum rc postgres_accept_clock(struct store *s, char *err, size_t errsize);
enum rc
postgres_grant(struct store *s, const char *role, char *err, size_t errsize);

/* Looks how large the tables are, for max_store. */
enum rc postgres_measure(struct store *s);

/* --- liveness, see postgres_owner.c -------------------------------------- */

/* store_liveness(); err (of errsize bytes) gets a sentence.  RC_NOTFOUND: an
 * operator found no file of this host's processes, so that it cannot tell which
 * of them live. */
enum rc postgres_liveness_why(
    struct store *s, struct liveness **out, char *err, size_t errsize);

/* Makes this process's row in once_owner; the pool has its number already. */
enum rc postgres_owner_new(struct store *s);
/* Moves it, and looks at the others; once for each beat. */
enum rc postgres_owner_beat(struct store *s);
/* Looks at all of them. */
enum rc postgres_owner_look(struct store *s);
/* Deletes the rows of owners that are dead, or have not moved for days, if
 * nothing is theirs any more. */
enum rc postgres_owners_remove(struct store *s);
/* The same for one that is gone. */
enum rc postgres_owner_remove(struct store *s, int64_t owner);
/* Deletes the row. */
void postgres_owner_end(struct store *s);
void postgres_watched_free(struct postgres_watched *w);

/* --- the keeper, see postgres_keeper.c ------------------------------------ */

/* The thread that moves this process's row, and records late outcomes. */
enum rc postgres_keeper_start(struct store *s);
void postgres_keeper_stop(struct store *s);

/* --- outcomes, see postgres_outcome.c ------------------------------------- */

/* An outcome is tried in its caller's thread until busy_timeout has passed.
 * Then the keeper takes it, and tries for as long as the process lives. */
struct postgres_outcome {
	struct outcome_change change; /* first: see store_outcome_new() */
	struct postgres_outcome *next;
	/* a transaction of the handler's has locked the key.  That says nothing
	 * of other keys */
	bool held;
	bool shares; /* the first try is in a group */
	/* the group took place, but its results were lost */
	bool unread;
	unsigned did; /* see struct tx */
};

/* Runs the transaction once. */
enum rc postgres_outcome_try(struct store *s, struct postgres_outcome *o);

/* Whether another transaction has locked the key, so that a try would wait. */
bool
postgres_outcome_is_held(struct store *s, const struct postgres_outcome *o);

/* Whether the result of a try is the last one: a further try gives no other. */
bool postgres_outcome_is_final(enum rc rc);

/* Takes an outcome to record. */
void postgres_keeper_take(struct store *s, struct postgres_outcome *o);

/* --- admitting, see postgres_admit.c -------------------------------------- */

/* RC_UNRECORDED: outcomes cannot be recorded, so that nothing may begin; or
 * those of that path (NULL: any) because of locks in the database.  RC_UNSAFE:
 * nor may it while the server may lose commits. */
enum rc postgres_may_begin(struct store *s, const char *path);

/* The same in a transaction, whose connection may be a new one: RC_UNSAFE. */
enum rc postgres_may_begin_now(const struct store *s);

struct postgres_tx {
	struct tx tx;
	struct pg *pg;
	bool writes, asked, timed; /* asked: for the time, which is .timed */
	/* The rows that are changed were read without a lock: RC_LOST if one is
	 * no longer as it was. */
	bool unlocked;
	int unread; /* results of one row each, or of one changed row */
	/* Numbers of keys that ERASE is to be told, with spaces: it takes as
	 * long for many as for one. */
	char erased[2000];
	size_t nerased;
};

void
postgres_tx_begin(struct postgres_tx *t, const struct store *s, struct pg *pg);

/* The time, which the transaction has not asked for itself. */
void postgres_tx_time(struct postgres_tx *t, int64_t now, int64_t clock);

/* Sends and reads what is left. */
enum rc postgres_tx_end(struct postgres_tx *t);

#endif
