-- Every statement of the store.  States are literals, so that SQLite can use
-- the partial indexes.  A change of state names the state it expects.

-- A new database, and store time ------------------------------------------

-- name: meta_new
INSERT INTO once_meta(id, secret, seal) VALUES (1, ?1, zeroblob(16));

-- name: meta_seal
UPDATE once_meta SET seal = ?1 WHERE id = 1;

-- name: meta_page
-- scan: reads the schema, at the start
SELECT rootpage FROM sqlite_schema WHERE name = 'once_meta';

-- name: no_fingerprint
INSERT INTO once_fingerprint_spec(id, text) VALUES (0, '');

-- name: meta_base
SELECT secret, seal FROM once_meta WHERE id = 1;

-- name: clock_new
INSERT INTO once_clock(id, boot_id, shift, last) VALUES (1, ?1, ?2, ?3);

-- name: clock_get
SELECT boot_id, shift, last FROM once_clock WHERE id = 1;

-- name: clock_shift
UPDATE once_clock SET boot_id = ?1, shift = ?2 WHERE id = 1;

-- The time never goes back.  It is written if the last one is over ?2 ms old.
-- name: clock_last
UPDATE once_clock SET last = ?1 WHERE id = 1 AND last < ?1 - ?2;

-- For a commit that writes over the frames of a failed one: see
-- committer_thread.c.  It must change something, or no page is written.
-- name: clock_touch
UPDATE once_clock SET last = max(last + 1, ?1) WHERE id = 1;

-- The values that distinguish a store from any other, and from an earlier copy
-- of itself: its secret, the store time written last, and the highest number
-- that a key has had.  The latter two never go down.
-- name: past
SELECT m.secret, m.seal, c.last,
    max(m.last_id, (SELECT coalesce(max(id), 0) FROM once_key))
FROM once_meta m, once_clock c
WHERE m.id = 1 AND c.id = 1;

-- The oldest keys: whether their numbers were made with the secret.
-- name: oldest
SELECT key, path, scope, identity FROM once_key WHERE id > 0
ORDER BY id LIMIT 8;

-- Reading -----------------------------------------------------------------

-- The keys in the index of owners, those in the index of age, and those that
-- are in neither because they are recent: see once_meta in schema.sql.  A
-- statement goes on with AND.  The indexes are named, because a handler may run
-- ANALYZE while there are few keys, and by its figures SQLite would read all
-- keys later.  For the same reason a statement has +id where another condition
-- for the number than that of $recent would begin at the first key.
-- list: by_owner
once_key k INDEXED BY once_key_running WHERE listed = 1

-- list: by_age
once_key k INDEXED BY once_key_expiry WHERE listed = 1

-- list: recent
once_key k NOT INDEXED WHERE listed IS NOT 1
    AND id > (SELECT recent FROM once_meta WHERE id = 1)

-- What stands in the statements of ../common.sql --------------------------

-- A comparison for which NULL is a value.
-- list: is
IS

-- No other transaction can have locked a row.
-- list: lock_key

-- list: lock_effect

-- list: unless_locked

-- The late token is for a store that several hosts use, and so is the number of
-- the last change of a row.
-- list: late_column
-- list: late_value
-- list: no_late_token
AND ?+1 IS NULL

-- list: late_token
NULL

-- list: change
0

-- list: is_open
(state = 'pending' OR state = 'unknown' OR state = 'dead_letter')

-- list: running
(SELECT * FROM $by_owner AND owner > 0 AND state = 'in_progress'
    UNION ALL SELECT * FROM $recent AND owner > 0 AND state = 'in_progress')

-- Keys with an open outcome, and those that wait for a worker, by callers.
-- list: unsettled
once_key INDEXED BY once_key_caller
    WHERE (state = 'unknown' OR state = 'dead_letter')

-- list: queued
once_key INDEXED BY once_key_queue WHERE queued_at >= 0

-- list: open_effects
once_effect INDEXED BY once_effect_open

-- list: effects_of_key
once_effect INDEXED BY once_effect_of_key

-- list: path_begins
substr(CAST(path AS BLOB), 1, length(CAST(?3 AS BLOB))) = CAST(?3 AS BLOB)

-- The number of a piece's body; and the numbers that keys name, or a process
-- that writes the pieces.
-- list: piece_body
(p.id - CASE WHEN p.id < 0 THEN 65535 ELSE 0 END) / 65536

-- list: named_pieces
(SELECT pieces FROM once_request UNION ALL SELECT pieces FROM once_answer
    UNION ALL SELECT id FROM once_unnamed)

-- The number of the pieces of a key's answer; the bytes of all pieces of an
-- answer, of a request and of a payload.
-- list: answer_number
coalesce((SELECT a.pieces FROM once_answer a WHERE a.key_id = k.id), k.id)

-- list: answer_bytes
(SELECT sum(length(p.body)) FROM once_piece p
    WHERE p.id BETWEEN 65536 * $answer_number
	AND 65536 * $answer_number + 65535)

-- list: request_bytes
(SELECT sum(length(p.body)) FROM once_piece p
    WHERE p.id BETWEEN 65536 * o.pieces AND 65536 * o.pieces + 65535)

-- list: payload_bytes
(SELECT sum(length(p.body)) FROM once_piece p
    WHERE p.id BETWEEN 65536 * (70368744177664 + e.id)
	AND 65536 * (70368744177664 + e.id) + 65535)

-- The place is the number of the identity, and that of the row.
-- list: identity_place
identity, id

-- list: identities
once_key INDEXED BY once_key_identity
WHERE identity BETWEEN ?13 AND ?14 AND (identity, id) > (?11, ?12)
ORDER BY identity, id

-- The key with that downstream key, which tells the number of its identity: see
-- sealed.h.
-- name: find_told
SELECT id FROM once_key INDEXED BY once_key_identity
WHERE identity BETWEEN ?1 AND ?2 AND downstream = ?3;

-- A small response is read with its key.  The identity is not: it is copied for
-- nothing, because the caller has it.
-- name: find
SELECT k.id, NULL AS key, NULL AS path, NULL AS scope, $record, $response
FROM once_key k
WHERE identity = ?4 AND key = ?1 AND path = ?2 AND scope = ?3;

-- A piece of a body, and whether there is one more.  A handler may have planted
-- pieces: those that would take much memory, or are without end, are not read.
-- name: piece
SELECT body, EXISTS (SELECT 1 FROM once_piece WHERE id = 65536 * ?1 + ?2 + 1)
FROM once_piece
WHERE id = 65536 * ?1 + ?2 AND ?2 < 65536 AND length(body) BETWEEN 1 AND 131072;

-- The number of the pieces of a key's answer, if it is not the key's.
-- name: answer_pieces
SELECT pieces FROM once_answer WHERE key_id = ?1;

-- Reserving ---------------------------------------------------------------

-- name: fingerprint_spec_find
SELECT id FROM once_fingerprint_spec WHERE text = ?1;

-- name: fingerprint_spec_new
INSERT INTO once_fingerprint_spec(text) VALUES (?1) RETURNING id;

-- What a key with the identity ?1 to ?4 needs, of the caller ?5: the number of
-- the key, if there is one; a number for a new one, and which keys are recent;
-- whether the caller has at least ?6 keys with an open outcome (0: no limit).
--
-- The number is one that no key has had: a response is read by the number of
-- its row, which must not become another caller's row in between.  Numbers end
-- at RECORD_ID_MAX, 2^46.  Only a planted number exceeds half of that.  From
-- there on new numbers are random, because otherwise one planted row would
-- leave no number for new keys.
-- name: admit
SELECT (SELECT id FROM once_key
	WHERE identity = ?1 AND key = ?2 AND path = ?3 AND scope = ?4),
    CASE WHEN m < 35184372088832 THEN m + 1
	ELSE 35184372088832 + (random() & 35184372088831) END, recent,
    CASE WHEN ?6 > 0 THEN (SELECT 1 FROM once_key
	WHERE (state = 'unknown' OR state = 'dead_letter') AND caller = ?5
	LIMIT 1 OFFSET ?6 - 1) END
FROM (SELECT recent, max(last_id,
	(SELECT coalesce(max(id), 0) FROM once_key NOT INDEXED)) AS m
    FROM once_meta WHERE id = 1);

-- name: kept_bytes
SELECT kept_bytes FROM once_meta WHERE id = 1;

-- Bytes of the pages in use.
-- name: store_bytes
SELECT (pages.page_count - free.freelist_count) * size.page_size
FROM pragma_page_count AS pages, pragma_freelist_count AS free,
    pragma_page_size AS size;

-- The keys of a caller on all routes, whose numbers begin at ?5: see scope.h.
-- list: of_caller
caller BETWEEN ?5 AND ?5 + 4194303

-- The bytes of all stored requests, without that of the key with the identity
-- ?1 to ?4; and, if these and ?6 bytes are more than ?7, of its caller's.
-- name: kept_room
-- scan: adds up the keys of a caller that may have a request
SELECT others, CASE WHEN others + ?6 > ?7 THEN
    (SELECT coalesce(sum(length(r.environment)
	    + max(0, min(r.body_length, 1000000000000))), 0)
	FROM (SELECT id FROM once_key INDEXED BY once_key_caller
		WHERE (state = 'unknown' OR state = 'dead_letter')
		    AND $of_caller
	    UNION SELECT id FROM once_key INDEXED BY once_key_queue
		WHERE queued_at >= 0 AND $of_caller
	    UNION SELECT id FROM $by_owner
		AND owner >= 0 AND state = 'in_progress' AND $of_caller
	    UNION SELECT id FROM $recent
		AND owner >= 0 AND state = 'in_progress' AND $of_caller) c
	CROSS JOIN once_request r ON r.key_id = c.id
	WHERE c.id IS NOT own) END
FROM (SELECT k.id AS own, m.kept_bytes
	- coalesce((SELECT length(r.environment) + r.body_length
	    FROM once_request r WHERE r.key_id = k.id), 0) AS others
    FROM once_meta m LEFT JOIN once_key k ON k.identity = ?1
	AND k.key = ?2 AND k.path = ?3 AND k.scope = ?4
    WHERE m.id = 1);

-- The count may have been planted: a sum that overflowed would keep an outcome
-- from being recorded.
-- name: kept_add
UPDATE once_meta
SET kept_bytes = max(0, max(0, min(kept_bytes, 1000000000000000)) + ?1)
WHERE id = 1;

-- Once at each start.
-- name: kept_mend
-- scan: counts the requests that are kept, of which max_kept bounds the bytes
UPDATE once_meta SET kept_bytes = r.bytes
FROM (SELECT (SELECT coalesce(sum(length(environment)
	+ max(0, min(body_length, 1000000000000))), 0) FROM once_request)
    + (SELECT coalesce(sum(max(0, min(bytes, 1000000000000))), 0)
	FROM once_unnamed) AS bytes) AS r
WHERE id = 1 AND kept_bytes <> r.bytes;

-- The highest number of a key, and which keys are recent.  A negative number
-- was planted.
-- name: recent_now
SELECT max(0, (SELECT coalesce(max(id), 0) FROM once_key)), recent
FROM once_meta WHERE id = 1;

-- ?1, or a lower number, so that at most ?2 keys up to it are recent.
-- name: recent_part
SELECT coalesce((SELECT id FROM once_key NOT INDEXED
	WHERE id > recent AND id <= ?1 ORDER BY id LIMIT 1 OFFSET ?2 - 1), ?1)
FROM once_meta WHERE id = 1;

-- The recent keys up to ?1 are in the indexes from now on.
-- name: recent_list
UPDATE once_key NOT INDEXED SET listed = 1
WHERE listed IS NOT 1 AND id > (SELECT recent FROM once_meta WHERE id = 1)
    AND id <= ?1;

-- name: recent_end
UPDATE once_meta SET recent = ?1 WHERE id = 1;

-- name: delete_answer
DELETE FROM once_answer WHERE key_id = ?1;

-- name: request_new
INSERT OR REPLACE INTO once_request(key_id, environment, body, body_length,
    pieces)
VALUES (?1, ?2, ?3, ?4, ?5);

-- name: request_size
SELECT length(environment) + body_length, pieces FROM once_request
WHERE key_id = ?1;

-- name: delete_request
DELETE FROM once_request WHERE key_id = ?1;

-- name: unnamed_new
INSERT OR REPLACE INTO once_unnamed(id, owner, bytes) VALUES (?1, ?2, ?3);

-- name: unnamed_find
SELECT bytes FROM once_unnamed WHERE id = ?1;

-- name: unnamed_owner
SELECT owner, id FROM once_unnamed WHERE (owner, id) > (?1, ?2)
    ORDER BY owner, id LIMIT 1;

-- name: unnamed_delete
DELETE FROM once_unnamed WHERE id = ?1;

-- Accepting, and the queue -------------------------------------------------

-- How many keys wait, and how many of them are that caller's, on any route: see
-- scope.h.  A key that is put off, because it was lost or could not be
-- started, does not count: it could be put off for ever.  ?3 is 0.
-- name: queue_length
SELECT count(*), sum(caller >> 22 = ?2 >> 22) FROM once_key
WHERE queued_at >= 0 AND queued_at >= ?3 AND queued_at <= ?1;

-- The jobs that are due first, after ?1 others; none may be due yet.  ?2 is 0,
-- and ?3 store time.
-- name: job_next
SELECT $row, ?3 AS now FROM once_key k
WHERE queued_at >= 0 AND ?2 = 0 AND expires_at > ?3
ORDER BY queued_at LIMIT -1 OFFSET ?1;

-- An accepted key that no worker claimed within its retention.  It is found by
-- age, because the queue may be long; other keys of that age have been reaped.
-- An accepted key is listed from the beginning.
-- name: job_abandoned
SELECT $row FROM $by_age AND state = 'pending' AND expires_at <= ?1
ORDER BY expires_at;

-- ?1: this process, which is the only one.
-- name: topic_clear
-- scan: there are a few topics
DELETE FROM once_topic WHERE ?1;

-- Changes of a key -----------------------------------------------------------

-- A verb reads the row, a function of step.h changes the record, and one of the
-- next statements writes it, in one transaction: see store_change.h.  Each
-- names the state, the attempt and the token that were read.

-- list: record_was
id = ?1 AND state = ?2 AND attempt = ?3 AND token IS ?4

-- A key that is queued is listed from the beginning.  A
-- second row of an identity fails as one without a number: see schema.sql.
-- name: record_new
INSERT INTO once_key(id, key, path, scope, $record_columns, fingerprint_spec,
    identity, downstream, created_at, listed)
VALUES (?1, ?2, ?3, ?4, $record_values, ?5,
    CASE WHEN ?+1 IS NULL AND NOT EXISTS (SELECT 1 FROM once_key
	WHERE identity = ?6 AND key = ?2 AND path = ?3 AND scope = ?4)
	THEN ?6 END,
    ?7, ?+9, CASE WHEN ?+19 IS NOT NULL
	OR ?1 <= (SELECT recent FROM once_meta WHERE id = 1) THEN 1 END);

-- Finishing ---------------------------------------------------------------

-- Pieces of a large body: see schema.sql.
-- name: piece_new
INSERT OR REPLACE INTO once_piece(id, body) VALUES (65536 * ?1 + ?2, ?3);

-- name: piece_sum
SELECT count(*), sum(length(body)) FROM once_piece
WHERE id BETWEEN 65536 * ?1 AND 65536 * ?1 + 65535;

-- name: delete_pieces
DELETE FROM once_piece
WHERE id BETWEEN 65536 * ?1 AND 65536 * ?1 + 65535;

-- Finding out what happened ------------------------------------------------

-- name: answer_new
INSERT INTO once_answer(key_id, pieces) VALUES (?1, ?2);

-- When a key is due first.
-- name: reconcile_first
SELECT reconcile_after, ?1 AS now FROM once_key INDEXED BY once_key_reconcile
WHERE state = 'unknown' AND reconcile_after >= 0 AND ?2 = ?2
ORDER BY reconcile_after LIMIT 1;

-- The longest due key of the next caller.
-- name: reconcile_due
SELECT $row FROM once_key k INDEXED BY once_key_caller
WHERE state = 'unknown' AND reconcile_after <= ?1 AND caller > ?2
    AND ?3 = ?3
ORDER BY caller, reconcile_after;

-- What a handler says without SQL -------------------------------------------

-- name: handler_checkpoint
INSERT INTO once_checkpoint(token, recovery_point) VALUES (?1, ?2);

-- name: handler_emit
INSERT INTO once_outbox(token, topic, payload) VALUES (?1, ?2, ?3);

-- name: handler_respond
INSERT INTO once_response(token, status, headers, body)
VALUES (?1, ?2, ?3, ?4);

-- The outbox ---------------------------------------------------------------

-- One of a key's pending effects has the turn: it has next_at, or owner while
-- it is tried (see schema.sql).

-- After ?2 others.  now: store time, which SQL does not know.
-- name: effect_next
SELECT $effect, 0 AS now FROM once_effect e
WHERE state <> 'delivered' AND state = 'pending' AND topic = ?1
    AND next_at >= 0
ORDER BY next_at LIMIT -1 OFFSET ?2;

-- name: delete_delivered
DELETE FROM once_effect WHERE key_id = ?1 AND state = 'delivered';

-- Passes ------------------------------------------------------------------

-- The next owner of leases, or of effects that are being tried.
-- name: recover_owner
-- scan: sorts the recent keys
SELECT owner FROM $by_owner AND owner > ?1
UNION ALL SELECT owner FROM $recent AND owner > ?1
UNION ALL SELECT owner FROM once_effect WHERE owner > ?1
ORDER BY owner LIMIT 1;

-- The keys of an owner after that one: in progress, or not confirmed.  ?4 is 0.
-- name: recover_rows
SELECT $row FROM $by_owner AND owner = ?1 AND id > ?2 AND ?4 = 0
UNION ALL SELECT $row FROM $recent AND owner = ?1 AND +id > ?2 AND ?4 = 0
ORDER BY id LIMIT ?3;

-- Whether any record of the owner may name an attempt.
-- name: attempt_of_owner
SELECT 1 FROM $by_owner AND owner = ?1
UNION ALL SELECT 1 FROM $recent AND owner = ?1 LIMIT 1;

-- At most ?4 keys that are due at ?5, after the place (?1, ?2, ?3) of the part
-- before, oldest first.
-- list: due
(SELECT expires_at AS last_at, state AS last_state, id AS last_id
    FROM $by_age AND expires_at <= ?5
	AND (expires_at, state, id) > (?1, ?2, ?3)
	AND state IN ('completed', 'failed_retryable', 'expired')
	AND token IS NULL
    UNION ALL SELECT expires_at, state, id
    FROM $recent AND expires_at <= ?5
	AND (expires_at, state, id) > (?1, ?2, ?3)
	AND state IN ('completed', 'failed_retryable', 'expired')
	AND token IS NULL
    ORDER BY last_at, last_state, last_id LIMIT ?4)

-- The rows come in the order of the list, because CROSS JOIN keeps it.
-- name: expire_rows
-- scan: sorts the recent keys
SELECT $row, last_at, last_state,
    (SELECT count(*) FROM once_effect e
	WHERE e.key_id = k.id AND e.state = 'delivered') AS effects
FROM $due CROSS JOIN once_key k NOT INDEXED ON id = last_id;

-- Reads the pages that deleting those rows will read.  Their entries in the
-- index of identities are scattered.
-- name: expire_ahead
-- scan: sorts the recent keys
SELECT (SELECT i.id FROM once_key i WHERE i.identity = k.identity),
    (SELECT count(*) FROM once_piece p
	WHERE p.id BETWEEN 65536 * n AND 65536 * n + 65535)
FROM (SELECT id, identity, coalesce((SELECT a.pieces FROM once_answer a
	WHERE a.key_id = once_key.id), once_key.id) AS n
    FROM $due CROSS JOIN once_key NOT INDEXED ON id = last_id) k;

-- name: mark_last_id
UPDATE once_meta SET last_id = (SELECT max(id) FROM once_key)
WHERE id = 1 AND last_id < (SELECT max(id) FROM once_key);

-- For operators -----------------------------------------------------------

-- name: counts
-- scan: counts every key, when an operator asks
SELECT state, count(*), min(updated_at), total(body_length)
FROM once_key GROUP BY state;

-- name: integrity
SELECT integrity_check FROM pragma_integrity_check(1);

-- Names of pieces without a key that is answered.
-- list: orphan_answers
SELECT count(*) FROM once_answer a
WHERE NOT EXISTS (SELECT 1 FROM once_key k
    WHERE k.id = a.key_id AND k.replayable)

-- The error of kept_bytes.
-- list: kept_error
SELECT kept_bytes - (SELECT coalesce(sum(length(environment) + body_length), 0)
    FROM once_request) - (SELECT coalesce(sum(bytes), 0) FROM once_unnamed)
FROM once_meta WHERE id = 1

-- Accepted keys without a stored request.
-- list: missing_requests
SELECT count(*) FROM once_key k
WHERE k.queued_at >= 0
    AND NOT EXISTS (SELECT 1 FROM once_request r WHERE r.key_id = k.id)

-- For doctor, which reads every row, a page after that number.
-- name: rows
SELECT $row, identity,
    EXISTS (SELECT 1 FROM once_key i WHERE i.identity = k.identity
	AND i.id < k.id AND i.key = k.key AND i.path = k.path
	AND i.scope = k.scope)
    OR (listed IS NOT 1
	AND id <= (SELECT recent FROM once_meta WHERE id = 1)) AS lost
FROM once_key k WHERE id > ?1 ORDER BY id LIMIT ?2;

-- list: parts
(VALUES ('once_key'), ('once_key_identity'), ('once_key_running'),
    ('once_key_expiry'), ('once_key_open'), ('once_key_reconcile'),
    ('once_piece'), ('once_fingerprint_spec'), ('once_meta'), ('once_clock'),
    ('once_request'), ('once_key_resource'), ('once_key_queue'),
    ('once_key_caller'), ('once_topic'), ('once_effect'), ('once_refused'),
    ('once_unnamed'), ('once_unnamed_owner'), ('once_answer'),
    ('once_effect_of_key'), ('once_effect_open'), ('once_effect_owner'),
    ('once_key_deleted'), ('once_checkpoint'), ('once_outbox'),
    ('once_response'), ('once_checkpoint_insert'), ('once_outbox_insert'),
    ('once_response_insert'))

-- Foreign parts of the schema with our names, or on our tables and views: these
-- would change the effect of our statements.
-- name: foreign_parts
-- scan: reads the schema, when an operator asks
SELECT count(*), group_concat(name, ' ') FROM sqlite_schema
WHERE tbl_name GLOB 'once_*' AND name NOT GLOB 'sqlite_autoindex_*'
    AND name NOT IN $parts;

-- Missing tables, indexes, views and triggers.
-- name: missing_parts
-- scan: reads the schema, when an operator asks
SELECT count(*), group_concat(column1, ' ') FROM $parts
WHERE column1 NOT IN (SELECT name FROM sqlite_schema);

-- The leases of an owner, and the effects that it is trying.
-- name: owner_count
SELECT (SELECT count(*) FROM $by_owner AND owner = ?1)
    + (SELECT count(*) FROM $recent AND owner = ?1)
    + (SELECT count(*) FROM once_effect WHERE owner = ?1);

-- Metrics -------------------------------------------------------------------

-- Walks an index, and the recent keys, from the last row of the part before.
-- name: tally
-- scan: sorts the recent keys
SELECT expires_at, state, id, 1 FROM $by_age AND expires_at IS NOT NULL
    AND (expires_at, state, id) > (?1, ?2, ?3)
    AND state IN ('pending', 'completed', 'failed_retryable', 'expired')
UNION ALL SELECT expires_at, state, id, 1 FROM $recent
    AND (expires_at, state, id) > (?1, ?2, ?3)
    AND state IN ('pending', 'completed', 'failed_retryable', 'expired')
ORDER BY expires_at, state, id LIMIT ?4;

-- name: tally_effects
SELECT key_id, state, id, 1 FROM once_effect
WHERE (key_id, state, id) > (?1, ?2, ?3)
    AND state IN ('pending', 'delivered', 'dead_letter')
ORDER BY key_id, state, id LIMIT ?4;
