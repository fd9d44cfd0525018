/*
 * Transactions that are done once, over connections that may be lost.
 *
 * A pool has some connections, and threads wait for one.  Each connection is a
 * slot of the pool, with a row (owner, slot, seq) in once_session.  A
 * transaction that writes increments seq.  If a connection is lost in COMMIT,
 * the pool connects again, moves seq to a number that no transaction has, and
 * reads it.  That waits for the end of the old transaction.  Either seq was the
 * old transaction's, which took place; or it was not, and the transaction can
 * not take place any more, even if its statements reach the server only now. It
 * is run again.
 *
 * The process has a row there, too, which it makes once.  Each transaction,
 * also one that reads, finds it as it was made; else the database was restored.
 * If seq is less than what a COMMIT has confirmed, the database was set back,
 * as by a standby that was promoted without the last commits.  All slots are
 * compared after each new connection.  From then on all transactions fail
 * (RC_WENT_BACK).
 */
#ifndef TXN_H
#define TXN_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pg.h"
#include "rc.h"
#include "scope.h"

struct txn_pool;

struct txn_options {
	const char *database; /* conninfo or URI */
	int64_t busy_timeout; /* ms; of connecting, and of a wait for a lock */
	unsigned connections; /* at most; 0: 1 */
	/* a server that may lose commits is unsafe: see txn_unsafe() */
	bool durable;
};

/* Parses the options, and does not connect.  RC_INVALID: err (of errsize bytes)
 * gets a sentence; RC_NOMEM. */
enum rc txn_open(struct txn_pool **out, const struct txn_options *o, char *err,
    size_t errsize);

/* No thread uses it any more. */
void txn_close(struct txn_pool *pool);

/* The URI without its passwords: for the log, and for handlers. */
const char *txn_database(const struct txn_pool *pool);

/* Copies the message of the last failure. */
void txn_message(struct txn_pool *pool, char *out, size_t size);

/* Makes that the message of the last failure; it is copied. */
void txn_set_message(struct txn_pool *pool, const char *message);

/*
 * Each new connection is asked for its settings before its first transaction.
 * If one is off, that is logged, and each transaction connects again, until a
 * new connection has them on.
 *
 * The setting that was off in the newest connection; NULL: none.  An open
 * connection may get other settings later: its user notes one that is off.
 */
const char *txn_unsafe(const struct txn_pool *pool);
void txn_note_setting(struct txn_pool *pool, const char *off);

/* A server, as a connection finds it. */
struct txn_server {
	int64_t timeline, cluster; /* timeline 0: a standby's */
	int64_t version;           /* major * 10000 + minor */
	const char *off; /* a setting, so that a commit may be lost; NULL: none
			  */
	char synchronous[16]; /* synchronous_commit */
	bool standby;         /* a COMMIT waits for one */
	int64_t now;
	char place[280]; /* see pg_server_place() */
};

/* Reads that; a txn_body. */
enum rc txn_server_read(struct pg *pg, void *server);

/* Tells that, and what to do. */
void txn_unsafe_text(
    const struct txn_pool *pool, const char *setting, char *out, size_t size);

/* Bytes of a name in the server, encoded as UTF-8, with the NUL. */
#define TXN_NAME_SIZE (63 * 4 + 1)

/*
 * Connections from now on find all names in that schema, and fail unless
 * once_meta has that secret there (SCOPE_SECRET_LEN bytes); NULL: a copy is
 * about to write it, and it is not compared.  Before the first call the role's
 * own path counts.  No other thread uses the pool.
 */
void txn_pin(struct txn_pool *pool, const char *schema, const void *secret);

/*
 * The owner whose sessions the pool's are: a new number, from the database; 0:
 * none yet.  Must be called before the first TXN_WRITE, and while no other
 * thread uses the pool.  All sessions begin anew, but for those from before the
 * first owner, and RC_WENT_BACK is over.
 */
void txn_set_owner(struct txn_pool *pool, int64_t owner);

/* The owner of the transaction that the calling thread runs. */
int64_t txn_owner(const struct txn_pool *pool);

/*
 * The same at any time, for a process that goes on after RC_WENT_BACK: waits
 * until no other thread runs a transaction.  RC_BUSY: one still did after
 * busy_timeout, and nothing has changed.
 */
enum rc txn_renew(struct txn_pool *pool, int64_t owner);

enum txn_kind {
	/* Each group of statements (pg_sync()) is on its own: for one lookup.
	 * Run again if the connection is lost. */
	TXN_LOOK,
	/* Sees one state of the database.  Run again if the connection is
	 * lost. */
	TXN_READ,
	/* Done once. */
	TXN_WRITE,
	/* Needs no owner.  If the connection is lost in COMMIT, it is run again
	 * although it may have taken place.  A failure of the server's is not
	 * logged, because the caller tells of it. */
	TXN_TWICE
};

/*
 * The statements of a transaction.  May be called several times, each time for
 * a transaction that begins anew, so it must initialise its results itself.  It
 * reads the results of all statements that it sends.  RC_OK: commit; anything
 * else: roll back.
 */
typedef enum rc txn_body(struct pg *, void *arg);

/*
 * Runs a transaction and returns when it is durable, or has failed and will not
 * appear; or RC_PENDING.
 *
 * RC_PENDING: the connection was lost in COMMIT, and the database did not
 * answer in time whether it took place.  It may appear later.
 * RC_BUSY: no connection or lock within busy_timeout, or other transactions
 * were faster again and again.  RC_WENT_BACK: see above.  RC_IO, RC_TIMEOUT: no
 * server can be reached; RC_IO at once if it refuses the user or the database.
 * RC_FULL, RC_CORRUPT, RC_INVALID: see pg_result().  Else what the body has
 * returned.
 */
enum rc
txn_run(struct txn_pool *pool, enum txn_kind kind, txn_body *body, void *arg);

/* What has become of an operation in a group. */
enum txn_shared {
	/* The transaction took place.  The result is that of read(). */
	TXN_SHARED_DONE,
	/* It took place, and the results were lost with the connection. */
	TXN_SHARED_UNREAD,
	/* It did not take place, perhaps because of another operation, and
	 * busy_timeout is not over.  txn_run() may succeed. */
	TXN_SHARED_ALONE,
	/* It failed, as txn_run() may: RC_PENDING, RC_BUSY, RC_WENT_BACK,
	 * RC_IO, RC_TIMEOUT. */
	TXN_SHARED_FAILED
};

/* What the operations of a group have in common after they have asked. */
struct txn_group {
	int64_t now, clock; /* store time, and the server's clock (ms) */
	/* bytes that they add to what is kept; each one adds its own */
	uint64_t kept;
};

/*
 * An operation that shares its round trips, and the commit, with those of other
 * threads.  Any thread of the pool's calls its functions.
 */
struct txn_op {
	/* Of a write: queues statements that read, before any operation of the
	 * group is sent; NULL: there are none.  They lock nothing, because a
	 * lock would be held over a round trip. */
	void (*ask)(struct pg *, void *arg);
	/* Reads the results of those, and queues the other statements, which do
	 * not depend on the results of one another.  group: of a write. */
	void (*send)(struct pg *, void *arg, struct txn_group *group);
	/* Reads the results of all of them.  Whatever it returns, the
	 * transaction is committed. */
	enum rc (*read)(struct pg *, void *arg);
	void *arg;
	/* Operations of its group that are committed, with the result RC_OK; 0
	 * for all of them but one. */
	int committed;

	/* private */
	struct txn_op *next;
	sem_t wake;
	int64_t until;
	bool ended, was_read;
	enum txn_shared how;
	enum rc rc;
};

/*
 * Runs the operation in a group of the kind TXN_WRITE, or TXN_LOOK, together
 * with what other threads ask for at the same time; once.  A group waits for a
 * lock only shortly.  *how tells what has become of the transaction.
 */
enum rc txn_share(struct txn_pool *pool, enum txn_kind kind, struct txn_op *op,
    enum txn_shared *how);

/* One group of statements on a connection of its own, whatever has become of
 * the pool: RC_WENT_BACK does not stop it.  Not run again. */
enum rc txn_apart(struct txn_pool *pool, txn_body *body, void *arg);

/* The newest timeline of a server that was connected; 0: none.  It grows when a
 * standby is promoted. */
int64_t txn_timeline(const struct txn_pool *pool);

/* Finds out what has become of each COMMIT whose outcome is not known. */
void txn_settle(struct txn_pool *pool);

/* What to do about another store. */
#define TXN_OTHER                                                              \
	"another store is there than the one that oncewrap was started with: " \
	"mend that, or restart oncewrap"

/* Why a store went back. */
#define TXN_BACK                                                               \
	"the database lacks what was written to it, or is in another cluster " \
	"than before"

/* The health of the pool. */
struct txn_health {
	bool connected; /* the last try to connect or to use a connection */
	bool went_back;
	bool other;           /* the newest connection led to another store */
	unsigned connections; /* open */
	unsigned pending;     /* commits whose outcome is not known */
};
void txn_health(struct txn_pool *pool, struct txn_health *h);

/* Pauses after that many failures in a row, as backoff.h has it.  False, at
 * once: the pause would not be over by then (ms, clock_mono()). */
bool txn_pause(int failures, int64_t until);

#endif
