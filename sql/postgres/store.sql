-- Opening the store, and the processes that use it.

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

-- What bounds store time, and whether process $1 is the only one.
-- name: clock
SELECT $server_clock, time_limit, held_at,
    NOT EXISTS (SELECT 1 FROM once_owner o WHERE o.id > $1::bigint
	ORDER BY o.id DESC, o.beat DESC LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM once_owner o WHERE o.id < $1::bigint
	ORDER BY o.id DESC, o.beat DESC LIMIT 1)
FROM once_meta WHERE id = 1;

-- Unless another process changes that row, or has changed time_limit ($1).  A
-- beat does not wait for its lock.
-- name: clock_set
UPDATE once_meta SET time_limit = $2, held_at = $3
WHERE id = (SELECT m.id FROM once_meta m
    WHERE m.id = 1 AND m.time_limit = $1 FOR NO KEY UPDATE SKIP LOCKED);

-- Processes ----------------------------------------------------------------

-- name: owner_new
INSERT INTO once_owner(id, host, boot, pid, beat, beat_at)
VALUES ($1, $2, $3, $4, 1, $now);

-- A process moves its row; it comes back if another host removed it.
-- name: owner_beat
WITH moved AS (UPDATE once_owner SET beat = beat + 1, beat_at = $now
    WHERE id = $1 AND beat = (SELECT o.beat FROM once_owner o WHERE o.id = $1
	ORDER BY o.beat DESC LIMIT 1)
    RETURNING id),
anew AS (INSERT INTO once_owner(id, host, boot, pid, beat, beat_at)
    SELECT $1, $2, $3, $4, 1, $now
    WHERE NOT EXISTS (SELECT 1 FROM moved))
SELECT current_setting('synchronous_standby_names') <> '',
    pg_current_snapshot()::text;

-- All processes: whether one has not moved for a week, and whether it has
-- leases or tries effects.  A process that does is in the list even without a
-- row, which another host may have removed too early: beat 0.  No lease has a
-- deadline before $1 (see firsts).
-- name: owners
WITH RECURSIVE o AS (
    (SELECT n.id, n.host, n.boot, n.beat, n.beat_at FROM once_owner n
    ORDER BY n.id DESC, n.beat DESC LIMIT 1)
    UNION ALL
    SELECT l.* FROM o, LATERAL (SELECT n.id, n.host, n.boot, n.beat, n.beat_at
	FROM once_owner n WHERE n.id < o.id
	ORDER BY n.id DESC, n.beat DESC LIMIT 1) l),
b AS (SELECT k.owner FROM once_key k
    WHERE k.owner IS NOT NULL AND k.locked_until >= $1
    UNION SELECT e.owner FROM once_effect e WHERE e.owner IS NOT NULL)
SELECT o.id, o.host, o.boot, o.beat, o.beat_at < $now - 604800000 AS old,
    EXISTS (SELECT 1 FROM b WHERE b.owner = o.id) AS busy
FROM o
UNION ALL
SELECT b.owner, '', '', 0::bigint, false, true
FROM b WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.id = b.owner);

-- No lease has an earlier deadline, and no key is queued for an earlier time:
-- neither one that is there, nor one of a transaction that began in the last
-- minute.  $1 and $2 are an earlier result; 0: all rows are looked at.
-- name: firsts
SELECT (SELECT least(min(locked_until), $now - 60000) FROM once_key
	WHERE owner IS NOT NULL AND locked_until
	    >= CASE WHEN $1::bigint <= $now THEN $1::bigint ELSE 0 END),
    (SELECT least(min(queued_at), $now - 60000) FROM once_key
	WHERE queued_at IS NOT NULL AND queued_at
	    >= CASE WHEN $2::bigint <= $now THEN $2::bigint ELSE 0 END);
