-- Opening the store, and the processes that use it.

-- name: server
SELECT current_setting('server_version_num')::bigint,
    current_setting('fsync'), $synchronous_commit,
    current_setting('full_page_writes'),
    current_setting('synchronous_standby_names') <> '',
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: catalog
SELECT current_database()::text;

-- The schema of the store that the role's path leads to, and whether the role
-- can read it.  A store of another role's on the path does not count before.
-- name: meta_schema
-- scan: reads the catalog, when a process starts
SELECT p.name::text, has_table_privilege(c.oid, 'SELECT') AS usable
FROM unnest(current_schemas(false)) WITH ORDINALITY AS p(name, place)
    JOIN pg_class c ON c.relnamespace = quote_ident(p.name)::regnamespace
	AND c.relname = 'once_meta'
ORDER BY usable DESC, p.place LIMIT 1;

-- Where a store is made.
-- name: meta_place
SELECT current_schema()::text;

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
RETURNING beat_at, current_setting('synchronous_standby_names') <> '',
    pg_current_snapshot()::text;

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
