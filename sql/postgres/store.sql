-- Opening the store, and the processes that use it.

-- name: server
SELECT current_setting('server_version_num')::bigint,
    current_setting('fsync'), current_setting('synchronous_commit'),
    current_setting('full_page_writes'),
    current_setting('synchronous_standby_names') <> ''
	AND current_setting('synchronous_commit') NOT IN ('off', 'local'),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: catalog
SELECT current_database()::text;

-- name: meta_exists
SELECT 1::bigint FROM pg_class
WHERE relname = 'once_meta' AND relnamespace = current_schema()::regnamespace;

-- name: meta_new
INSERT INTO once_meta(id, version, secret) VALUES (1, $1, $2);

-- name: meta
SELECT version, secret, losses FROM once_meta WHERE id = 1;

-- The same for a process that is about to insert its row in once_owner: it
-- waits for a copy into the store.
-- name: meta_for_owner
SELECT version, secret FROM once_meta WHERE id = 1 FOR SHARE;

-- Processes ----------------------------------------------------------------

-- name: owner_new
INSERT INTO once_owner(id, host, boot, pid, beat, beat_at)
VALUES ($1, $2, $3, $4, 1,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

-- A process moves its row; it comes back if another host removed it.
-- name: owner_beat
INSERT INTO once_owner(id, host, boot, pid, beat, beat_at)
VALUES ($1, $2, $3, $4, 1,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
ON CONFLICT (id) DO UPDATE SET beat = once_owner.beat + 1,
    beat_at = excluded.beat_at
RETURNING beat_at, current_setting('synchronous_standby_names') <> ''
	AND current_setting('synchronous_commit') NOT IN ('off', 'local'),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- All processes: whether one has not moved for a week, and whether it has
-- leases or tries effects.  A process that does is in the list even without a
-- row, which another host may have removed too early: beat 0.
-- name: owners
-- scan: there is a row for each process, and one for each lease
SELECT o.id, o.host, o.boot, o.beat,
    o.beat_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
	- 604800000 AS old,
    EXISTS (SELECT 1 FROM once_key k WHERE k.owner = o.id)
	OR EXISTS (SELECT 1 FROM once_effect e WHERE e.owner = o.id) AS busy
FROM once_owner o
UNION ALL
SELECT b.owner, '', '', 0::bigint, false, true
FROM (SELECT k.owner FROM once_key k WHERE k.owner IS NOT NULL
    UNION SELECT e.owner FROM once_effect e WHERE e.owner IS NOT NULL) b
WHERE NOT EXISTS (SELECT 1 FROM once_owner o WHERE o.id = b.owner);
