-- Statements whose text is the same for each kind of store; their parameters
-- are written as SQLite has them.  They belong to the list of queries.sql, and
-- use its lists of columns: so each table has the alias that it has there.

-- name: status
SELECT $row FROM once_key k WHERE k.resource = ?1;

-- name: repeat_forget
DELETE FROM once_repeat WHERE counted_at < ?1;

-- name: topic_drop
DELETE FROM once_topic WHERE name = ?1;

-- name: topic_any
-- scan: there are a few topics
SELECT CAST(1 AS bigint) FROM once_topic LIMIT 1;

-- name: record_delete
DELETE FROM once_key WHERE $record_was;

-- name: delete_refused
DELETE FROM once_refused WHERE key_id = ?1;

-- name: effect_delete
DELETE FROM once_effect WHERE $effect_was;

-- The key with that downstream key, which tells its number: see sealed.h.
-- name: find_told
SELECT id FROM once_key WHERE id = ?1 AND downstream = ?2;

-- For downstream keys that were made elsewhere.  find_open uses an index,
-- because the callback of a provider asks for a key with an open outcome.
-- name: find_open
SELECT id FROM once_key
WHERE downstream = ?1 AND state IN ('unknown', 'dead_letter');

-- Whether the record of the key names that attempt of that host.
-- name: attempt_of_key
SELECT CAST(1 AS bigint) FROM once_key
WHERE id = ?1 AND attempt_lock = ?2 AND lock_file = ?3;

-- name: all_rows
-- scan: counts every key and effect, when an operator asks
SELECT (SELECT count(*) FROM once_key), (SELECT count(*) FROM once_effect);

-- The pending effects of each topic, and whether the topic is configured.
-- name: pending_topics
SELECT e.topic, count(*),
    EXISTS (SELECT 1 FROM once_topic t WHERE t.name = e.topic)
FROM once_effect e
WHERE e.state <> 'delivered' AND e.state = 'pending'
GROUP BY e.topic;

-- name: effect_rows
SELECT $effect FROM once_effect e
WHERE e.id > ?1 ORDER BY e.id LIMIT ?2;

-- The lowest and the highest number.
-- name: browse_ends
SELECT coalesce((SELECT min(id) FROM once_key), 0),
    coalesce((SELECT max(id) FROM once_key), 0);

-- name: browse_newest
SELECT id, $matches, CAST(0 AS bigint), id, created_at
FROM once_key WHERE id < ?11 AND id >= ?12 ORDER BY id DESC LIMIT ?13;

-- name: browse_oldest
SELECT id, $matches, CAST(0 AS bigint), id, created_at
FROM once_key WHERE id > ?11 AND id < ?12 ORDER BY id LIMIT ?13;

-- name: browse_one
SELECT id, $matches, CAST(0 AS bigint), id, created_at
FROM once_key WHERE id = ?11;

-- name: browse_rows
SELECT $row FROM once_key k WHERE k.id IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: browse_row
SELECT $row, $response FROM once_key k WHERE k.id = ?1;

-- name: browse_effect
SELECT $effect FROM once_effect e WHERE e.id = ?1;
