-- Statements whose text is the same for each kind of store, but for the lists
-- that its queries.sql has before them.  They belong to the list of that file.
-- Parameters are written as SQLite has them, and the casts that PostgreSQL
-- needs as it has them: queries.awk leaves them out for SQLite.  Each table has
-- the alias that it has in the lists of columns.

-- name: answer
SELECT $row, $response, $answer_number AS pieces FROM once_key k
WHERE k.id = ?1 AND k.key = ?2 AND k.path = ?3 AND k.scope = ?4
    AND k.state = 'completed' AND k.replayable;

-- A longer body is in pieces, or planted, and is not read.
-- name: request_of_key
SELECT o.environment, CASE WHEN length(o.body) <= 131072 THEN o.body END,
    o.body_length, o.pieces
FROM once_request o JOIN once_key k ON k.id = o.key_id
WHERE o.key_id = ?1 AND k.key = ?2 AND k.path = ?3 AND k.scope = ?4;

-- A payload that is in the row, and its length.
-- name: effect_payload
SELECT f.payload, f.bytes
FROM (SELECT e.payload,
	coalesce(length(e.payload)::bigint, $payload_bytes) AS bytes
    FROM once_effect e WHERE e.id = ?1 AND e.effect_key::text = ?2::text) f
WHERE f.bytes IS NOT NULL;

-- name: status
SELECT $row FROM once_key k WHERE k.resource = ?1;

-- name: topic_add
INSERT INTO once_topic(name) VALUES (?1) ON CONFLICT (name) DO NOTHING;

-- name: topic_drop
DELETE FROM once_topic WHERE name = ?1;

-- name: topic_any
-- scan: there are a few topics
SELECT 1::bigint FROM once_topic LIMIT 1;

-- Whether the caller ?1 has at least ?2 keys in progress, also those of a lost
-- process that are not recovered yet.  No lease has a deadline before ?3.
-- name: active_beyond
SELECT 1::bigint FROM $running
WHERE locked_until >= ?3 AND caller = ?1::bigint
LIMIT 1 OFFSET ?2::bigint - 1;

-- Changes of a key -----------------------------------------------------------

-- A verb reads the row, a function of step.h changes the record, and one of the
-- next statements writes it, in one transaction: see store_change.h.  Each
-- names the state, the attempt and the token that were read.

-- name: record_read
SELECT $row FROM once_key k WHERE k.id = ?1 $lock_key;

-- Without a lock.
-- name: record_look
SELECT $row FROM once_key k WHERE k.id = ?1;

-- No row if another transaction has locked it.
-- name: record_read_free
SELECT $row FROM once_key k WHERE k.id = ?1 $lock_key $unless_locked;

-- list: record_set
($record_columns) = ($record_values),
fingerprint_spec = CASE WHEN ?5::bigint >= 0 THEN ?5::bigint
    ELSE fingerprint_spec END

-- name: record_write
UPDATE once_key SET $record_set WHERE $record_was $no_late_token;

-- The same with the response.
-- name: record_write_answer
UPDATE once_key SET $record_set, kind = ?6::bigint,
    response_version = ?7::bigint, reason = ?8, headers = ?9, body = ?10
WHERE $record_was $no_late_token;

-- name: record_delete
DELETE FROM once_key WHERE $record_was;

-- Answers that were not accepted.
-- name: refused_new
INSERT INTO once_refused(key_id, attempt, exit_status, signal, length, output,
    errors)
VALUES (?1, (?2::bigint)::integer, (?3::bigint)::integer,
    (?4::bigint)::integer, ?5, ?6, ?7)
ON CONFLICT (key_id) DO UPDATE SET attempt = excluded.attempt,
    exit_status = excluded.exit_status, signal = excluded.signal,
    length = excluded.length, output = excluded.output,
    errors = excluded.errors;

-- name: refused
SELECT attempt::bigint, exit_status::bigint, signal::bigint, length,
    output IS NOT NULL, output, errors
FROM once_refused WHERE key_id = ?1;

-- name: delete_refused
DELETE FROM once_refused WHERE key_id = ?1;

-- The outbox -----------------------------------------------------------------

-- A verb reads the rows, a function of effect.h changes them, and
-- effect_write writes each that has changed: see store_effects.c.  Each
-- statement sees what a handler has committed while the one before it waited:
-- so effect_first comes after effect_read.

-- name: effect_read
SELECT $effect FROM once_effect e WHERE e.id = ?1 $lock_effect;

-- No row: another process has taken the effect, or is just taking it.
-- name: effect_read_free
SELECT $effect FROM once_effect e WHERE e.id = ?1 $lock_effect $unless_locked;

-- Of the key of effect ?1 the first pending one, and one that has the turn,
-- but not that effect.
-- list: other_pending
SELECT $effect FROM once_effect e
WHERE e.key_id = (SELECT f.key_id FROM once_effect f WHERE f.id = ?1::bigint)
    AND e.state = 'pending' AND e.id <> ?1::bigint

-- name: effect_first
$other_pending ORDER BY e.id LIMIT 1 $lock_effect;

-- name: effect_holder
$other_pending AND (e.next_at IS NOT NULL OR e.owner IS NOT NULL)
ORDER BY e.id LIMIT 1 $lock_effect;

-- list: effect_was
id = ?1 AND state = ?2::text AND attempts = ?3::bigint AND owner $is ?4::bigint

-- name: effect_write
UPDATE once_effect SET state = ?5::text, attempts = ?6::bigint,
    next_at = CASE WHEN ?7::boolean THEN ?8::bigint END, owner = ?9::bigint,
    reference = ?10, last_error = ?11, updated_at = ?12::bigint,
    payload = CASE WHEN ?13::boolean THEN payload END
WHERE $effect_was;

-- Deletes a delivered effect if its key is deleted, or is a marker.
-- name: effect_gone
DELETE FROM once_effect AS e
WHERE e.id = ?1 AND e.state = 'delivered' AND NOT EXISTS (SELECT 1
    FROM once_key k WHERE k.id = e.key_id AND k.state <> 'expired');

-- The next one that this process tries, unless it is locked.
-- name: effect_of_owner
SELECT e.id FROM once_effect e WHERE e.owner = ?1 AND e.id > ?2
ORDER BY e.id LIMIT 1 $lock_effect $unless_locked;

-- name: effect_list
SELECT $effect FROM once_effect e
WHERE e.id > ?1 AND (?2::bytea IS NULL OR e.scope = ?2)
    AND (?3::bytea IS NULL OR e.path = ?3)
    AND (?4::text IS NULL OR e.state = ?4) AND e.updated_at >= ?5
ORDER BY e.id LIMIT ?6::bigint;

-- name: effect_delete
DELETE FROM once_effect WHERE $effect_was;

-- Whether the record of the key names that attempt of that host.
-- name: attempt_of_key
SELECT 1::bigint FROM once_key
WHERE id = ?1 AND attempt_lock = ?2 AND lock_file = ?3;

-- For operators --------------------------------------------------------------

-- The columns of struct store_listed.  Not by EXISTS, for which PostgreSQL may
-- read all of a table for each page.
-- name: list_all
SELECT $row, $response,
    (SELECT true FROM once_request o WHERE o.key_id = k.id) AS request,
    (SELECT true FROM once_refused f WHERE f.key_id = k.id) AS output
FROM once_key k
WHERE k.id > ?1
ORDER BY k.id LIMIT ?2::bigint;

-- name: scopes
-- scan: counts every key, when an operator asks
SELECT count(*) FILTER (WHERE state = 'pending') AS pending,
    count(*) FILTER (WHERE state = 'in_progress') AS in_progress,
    count(*) FILTER (WHERE state = 'completed') AS completed,
    count(*) FILTER (WHERE state = 'failed_retryable') AS failed_retryable,
    count(*) FILTER (WHERE state = 'unknown') AS unknown,
    count(*) FILTER (WHERE state = 'dead_letter') AS dead_letter,
    count(*) FILTER (WHERE state = 'expired') AS expired, scope
FROM once_key WHERE ?1::bytea IS NULL OR scope > ?1
GROUP BY scope ORDER BY scope LIMIT ?2::bigint;

-- Unknown keys that only an operator can resolve; and the other open keys.
-- name: count_open
SELECT count(*) FILTER (WHERE state = 'unknown' AND reconcile_after IS NULL),
    count(*) FILTER (WHERE state = 'unknown' AND reconcile_after IS NOT NULL),
    count(*) FILTER (WHERE state = 'dead_letter')
FROM once_key WHERE $is_open;

-- The next callers after ?1, at most ?2, that have keys which a limit counts:
-- their number, how many keys, and path, scope and peer of one.
-- list: caller_keys
SELECT g.last, g.n, k.path, k.scope, k.peer
FROM (SELECT max(caller) AS last, count(*) AS n, min(id) AS id FROM

-- list: of_one_key
ORDER BY last LIMIT ?2::bigint) g JOIN once_key k ON k.id = g.id ORDER BY g.last

-- name: crowds_open
-- scan: SQLite sorts the callers that were found
$caller_keys $unsettled AND caller > ?1 GROUP BY caller $of_one_key;

-- name: crowds_active
-- scan: SQLite sorts the keys in progress
$caller_keys $running WHERE caller > ?1 GROUP BY caller $of_one_key;

-- A caller's keys of all routes: see scope.h.
-- name: crowds_queued
-- scan: SQLite sorts the queue, which async_queue bounds
$caller_keys $queued AND queued_at <= ?3 AND caller > ?1
GROUP BY caller >> 22 $of_one_key;

-- list: orphan_requests
SELECT count(*) FROM once_request o
WHERE NOT EXISTS (SELECT 1 FROM once_key k WHERE k.id = o.key_id
    AND (k.state IN ('pending', 'in_progress', 'unknown', 'dead_letter')
	OR (k.state = 'failed_retryable' AND k.accepted)
	OR k.token IS NOT NULL))

-- Delivered effects of deleted keys; and pending effects of keys that have not
-- exactly one turn.
-- list: orphan_effects
SELECT count(*) FROM once_effect e
WHERE e.state = 'delivered'
    AND NOT EXISTS (SELECT 1 FROM once_key k WHERE k.id = e.key_id
	AND k.state <> 'expired')

-- list: stalled_effects
SELECT count(*) FROM once_effect e
WHERE e.state <> 'delivered' AND e.state = 'pending'
    AND 1 <> (SELECT count(*) FROM once_effect f
	WHERE f.key_id = e.key_id AND f.state = 'pending'
	AND (f.next_at IS NOT NULL OR f.owner IS NOT NULL))

-- Pieces of keys whose response is not kept; those that nothing names; and
-- those of effects that need none.
-- list: orphan_pieces
SELECT count(DISTINCT $piece_body) FROM once_piece p
WHERE $piece_body BETWEEN 1 AND 70368744177664
    AND NOT EXISTS (SELECT 1 FROM once_key k WHERE k.id = $piece_body
	AND k.replayable)

-- list: orphan_request_pieces
SELECT count(DISTINCT $piece_body) FROM once_piece p
WHERE $piece_body < 0 AND $piece_body NOT IN $named_pieces

-- list: orphan_payloads
SELECT count(DISTINCT $piece_body) FROM once_piece p
WHERE $piece_body > 70368744177664
    AND NOT EXISTS (SELECT 1 FROM once_effect e
	WHERE e.id = $piece_body - 70368744177664
	AND e.state <> 'delivered' AND e.payload IS NULL)

-- Keys, requests and effects without all of their body.
-- list: missing_bodies
SELECT count(*) FROM once_key k
WHERE k.replayable AND k.body_length > 0
    AND NOT k.body_length $is coalesce(length(k.body)::bigint, $answer_bytes)

-- list: missing_request_bodies
SELECT count(*) FROM once_request o
WHERE NOT o.body_length
    $is CASE o.pieces WHEN 0 THEN length(o.body)::bigint
	ELSE $request_bytes END

-- list: missing_payloads
SELECT count(*) FROM once_effect e
WHERE e.state <> 'delivered' AND e.state IN ('pending', 'dead_letter')
    AND e.payload IS NULL AND $payload_bytes IS NULL

-- What doctor counts: see store_doctor.c.
-- name: doctor_bodies
-- scan: looks at every key and body, when an operator asks
SELECT ($orphan_answers) + ($orphan_pieces), ($missing_bodies);

-- name: doctor_requests
-- scan: looks at every request that is kept, when an operator asks
SELECT ($orphan_requests), ($orphan_request_pieces), ($missing_request_bodies),
    ($missing_requests), ($kept_error);

-- name: doctor_effects
-- scan: looks at every effect, when an operator asks
SELECT ($orphan_effects), ($stalled_effects), ($missing_payloads),
    ($orphan_payloads);

-- No lease has a deadline before ?1.
-- name: gauge_running
-- scan: SQLite reads the keys in progress, which it has found
SELECT count(*) FROM $running WHERE locked_until >= ?1;

-- name: gauge_open
SELECT state, count(*), min(updated_at), 0::bigint FROM once_key
WHERE $is_open GROUP BY state;

-- name: gauge_outbox
SELECT count(*) FILTER (WHERE state = 'pending'),
    count(*) FILTER (WHERE state = 'dead_letter')
FROM once_effect
WHERE state <> 'delivered' AND state IN ('pending', 'dead_letter');

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

-- Pages ----------------------------------------------------------------------

-- Each of these reads at most as many rows, or entries of an index, as its last
-- parameter says, after the place of the part before (see store_browse.c);
-- PostgreSQL sorts the keys of browse_open.  The columns are the number of a
-- row, whether it is looked for, its place, and when it was made.

-- list: matches
coalesce((?1::bytea IS NULL OR key = ?1) AND (?2::bytea IS NULL OR scope = ?2)
    AND (?3::bytea IS NULL OR path = ?3 OR (?4::boolean AND $path_begins))
    AND (?5::text IS NULL OR state = ?5) AND (?6::bytea IS NULL OR peer = ?6)
    AND (?7::uuid IS NULL OR downstream = ?7)
    AND created_at >= ?8 AND created_at < ?9 AND updated_at >= ?10, false)
    AS matches

-- name: browse_range
SELECT id, $matches, $identity_place, created_at
FROM $identities LIMIT ?15::bigint;

-- name: browse_open
SELECT id, $matches, updated_at, id, created_at FROM once_key
WHERE $is_open AND state = ?5
    AND (updated_at, id) > (?11::bigint, ?12::bigint)
ORDER BY updated_at, id LIMIT ?13::bigint;

-- Not ordered by the index of the numbers, nor are the effects below.
-- name: browse_running
-- scan: SQLite sorts the keys in progress
SELECT id, $matches, 0::bigint, id, created_at FROM $running
WHERE id + 0 > ?11::bigint ORDER BY id + 0 LIMIT ?12::bigint;

-- name: browse_at
-- scan: SQLite walks the rows that it has found
SELECT coalesce(min(k.created_at), 0), coalesce(max(k.id), 0)
FROM (SELECT id, created_at FROM once_key WHERE id >= ?1 ORDER BY id
    LIMIT ?2::bigint) k;

-- name: browse_dead_effects
-- scan: SQLite sorts the effects that were given up
SELECT id, true, 0::bigint, id, created_at FROM $open_effects
WHERE state <> 'delivered' AND state = 'dead_letter' AND id + 0 > ?1::bigint
ORDER BY id + 0 LIMIT ?2::bigint;

-- name: browse_effects
-- scan: SQLite sorts the effects of a key
SELECT id, true, 0::bigint, id, created_at FROM $effects_of_key
WHERE key_id = ?1 AND id + 0 > ?2::bigint ORDER BY id + 0 LIMIT ?3::bigint;

-- The lowest and the highest number.
-- name: browse_ends
SELECT coalesce((SELECT min(id) FROM once_key), 0),
    coalesce((SELECT max(id) FROM once_key), 0);

-- name: browse_newest
SELECT id, $matches, 0::bigint, id, created_at
FROM once_key WHERE id < ?11 AND id >= ?12 ORDER BY id DESC LIMIT ?13;

-- name: browse_oldest
SELECT id, $matches, 0::bigint, id, created_at
FROM once_key WHERE id > ?11 AND id < ?12 ORDER BY id LIMIT ?13;

-- name: browse_rows
SELECT $row FROM once_key k WHERE k.id IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
    ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: browse_row
SELECT $row, $response FROM once_key k WHERE k.id = ?1;

-- name: browse_effect
SELECT $effect FROM once_effect e WHERE e.id = ?1;
