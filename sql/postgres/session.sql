-- What the PostgreSQL store's connections and transactions need (pg.h, txn.h).

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- Settings of a new connection: name and value, $1 and $2.  A server that does
-- not know the name does nothing.
-- name: session_set
SELECT set_config(name, $2, false) FROM pg_settings WHERE name = $1;

-- The server of a new connection: its timeline, which grows when a standby is
-- promoted, of a standby NULL; and the settings that a commit relies on.
-- name: session_server
SELECT CASE WHEN NOT pg_is_in_recovery() THEN
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)
    ::bigint END,
    current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit');

-- The process of the server that has the session.
-- name: session_process
SELECT pg_backend_pid()::bigint;

-- A row that is there already may be one that only the primary has: it is
-- written again, so that the COMMIT waits for the standby.
-- name: session_new
INSERT INTO once_session(owner, slot, seq) VALUES ($1, $2, 0)
	ON CONFLICT (owner, slot) DO UPDATE SET seq = once_session.seq;

-- One more transaction of the slot.  The division fails unless seq was $3 - 1:
-- so a COMMIT that was sent, and comes to the server late, commits nothing.
-- name: session_next
WITH moved AS (
	UPDATE once_session SET seq = $3
	WHERE owner = $1 AND slot = $2 AND seq = $3::bigint - 1
	RETURNING 1
) SELECT 1 / count(*) FROM moved;

-- The same for a group, which others share: a lock that one of them needs is
-- waited for only shortly.
-- name: session_share
WITH moved AS (
	UPDATE once_session SET seq = $3
	WHERE owner = $1 AND slot = $2 AND seq = $3::bigint - 1
	RETURNING 1
) SELECT 1 / count(*), set_config('lock_timeout', '100', true) FROM moved;

-- Takes the number of the transaction after $3 away, unless it took place.
-- Waits for it.
-- name: session_void
UPDATE once_session SET seq = $3 + 2
WHERE owner = $1 AND slot = $2 AND seq = $3;

-- name: session_seq
SELECT seq FROM once_session WHERE owner = $1 AND slot = $2 FOR UPDATE;

-- name: session_all
SELECT slot, seq FROM once_session WHERE owner = $1 ORDER BY slot;
