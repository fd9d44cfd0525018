/*
 * What the committer knows of the disk: when it moves the write-ahead log into
 * the database, when the log is too long for new keys, and how long a sync
 * takes.
 */
#include "config.h"

#include "clock.h"
#include "fault.h"
#include "committer_impl.h"

/* The length of the log (bytes) at which it is moved into the database.  If
 * readers hold that back, the next try is after as many bytes more. */
#define CHECKPOINT       (4 * 1024 * 1024)
#define CHECKPOINT_AGAIN (1024 * 1024)

/* Pause (ms) between two tries to truncate a log that is too long. */
#define CUT_PAUSE 100

/* Whether there may be reservations.  There are none while the disk may soon
 * lack the room for an outcome, or for moving the log into the database. */
static enum rc
look_at_log(const struct committer *c)
{
	if (db_wal_bytes(c->db) > c->max_wal)
		return RC_LIMIT;
	return db_log_fits(c->db, WRITE_ROOM) ? RC_OK : RC_FULL;
}

enum rc
committer_move_log(struct committer *c, bool truncate)
{
	enum rc rc;

	/* What was copied over the file must not get the log's seal. */
	if ((rc = store_guard_file(c->guard, c->db)) != RC_OK)
		return rc;
	rc = db_checkpoint(c->db, truncate);
	if (truncate && rc == RC_OK)
		c->distrusted = false;
	else if (rc == RC_IO)
		c->distrusted = true;
	return rc;
}

enum rc
committer_watch_log(struct committer *c)
{
	enum rc closed = look_at_log(c);

	if (closed != RC_OK && clock_mono() >= c->cut_at) {
		c->cut_at = clock_mono() + CUT_PAUSE;
		(void)committer_move_log(c, true);
		closed = look_at_log(c);
	}
	return closed;
}

bool
committer_is_log_long(struct committer *c)
{
	const uint64_t bytes = db_wal_bytes(c->db);

	if (bytes < CHECKPOINT)
		c->checkpoint_at = CHECKPOINT;
	return bytes >= c->checkpoint_at;
}

void
committer_checkpoint(struct committer *c)
{
	if (!c->sealed)
		return;
	c->sealed = false;
	FAULT(CHECKPOINT_BEFORE);
	(void)committer_move_log(c, false);
	FAULT(CHECKPOINT_AFTER);
	c->checkpoint_at = db_wal_bytes(c->db) + CHECKPOINT_AGAIN;
}

/* --- gathering ------------------------------------------------------------ */

/*
 * When the committer begins a transaction.  A sync takes as long for one
 * write as for many.  A write that arrives just after a sync has begun
 * waits for the rest of that sync and then for its own.  So on a slow disk the
 * callers fall into two halves, each waiting during the other's sync, and a
 * request that needs two syncs waits for four.
 *
 * So the committer waits for the callers that it has just woken, because they
 * tend to come back, and for one more write at a time.  The wait costs each
 * of the n queued writes that time, and saves one write a sync.  It
 * pays for up to the length of a sync divided by n, and a wait in vain costs no
 * more than that.  If so many writes arrive during a sync that the next
 * group is full anyway, this pause is shorter than the time between two
 * arrivals, and the committer does not wait.
 *
 * No database lock is held meanwhile.
 */

/* The committer does not wait if a sync is faster than this (us). */
#define SLOW 2000

void
committer_took(struct committer *c, int64_t us)
{
	c->took[1] = c->took[0];
	c->took[0] = us;
}

/* The length of a sync (us): the shorter one of two, so that one slow sync does
 * not count. */
static int64_t
sync_length(const struct committer *c)
{
	return c->took[0] < c->took[1] ? c->took[0] : c->took[1];
}

/* Waits for one more write.  False: none arrived in time. */
static bool
one_more(struct committer *c, int64_t until_us)
{
	unsigned n = c->queue.n;

	while (c->queue.n <= n && !c->closing)
		if (!lock_wait_us(&c->lock, &c->work, until_us))
			break;
	return c->queue.n > n;
}

void
committer_gather(struct committer *c)
{
	int64_t end, now, sync = sync_length(c);

	if (sync < SLOW)
		return;
	now = clock_mono_us();
	for (end = now + sync; now < end; now = clock_mono_us()) {
		if (c->closing || c->queue.n >= c->expected ||
		    !one_more(c, now + sync / (c->queue.n + 1)))
			break;
	}
}
