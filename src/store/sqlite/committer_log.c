/*
 * The committer's care of the write-ahead log: when it moves the log into the
 * database, and when the log is too long for new keys.
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
committer_watch_log(struct committer *c)
{
	enum rc closed = look_at_log(c);

	if (closed != RC_OK && clock_mono() >= c->cut_at) {
		c->cut_at = clock_mono() + CUT_PAUSE;
		(void)db_checkpoint(c->db, true);
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
	/* What was copied over the file must not get the log's seal. */
	if (store_guard_file(c->guard, c->db) != RC_OK)
		return;
	FAULT(CHECKPOINT_BEFORE);
	(void)db_checkpoint(c->db, false);
	FAULT(CHECKPOINT_AFTER);
	c->checkpoint_at = db_wal_bytes(c->db) + CHECKPOINT_AGAIN;
}
