-- Version 4: oncewrap stores a large body in pieces, so that it can write each
-- in a transaction of its own, and none is long.  The keys of one caller, and
-- the bytes of all stored requests, are counted for their limits.
--
--   id              65536 * the number of the key + the number of the piece,
--                   from 1 on: pieces of one key are neighbours
--   body            STORE_PIECE bytes, the last one fewer
--
-- A key that is not completed has pieces only while it has a lease.  A
-- statement that ends the lease without completing the key also deletes the
-- pieces.
--
-- once_body has the bodies that handlers wrote into once_response, in one
-- piece.

-- name: v4_piece
CREATE TABLE once_piece(
	id INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;

-- name: v4_piece_fill
INSERT INTO once_piece(id, body)
SELECT 65536 * b.key_id + 1, b.body
FROM once_body b JOIN once_key k ON k.id = b.key_id
WHERE k.response_version = 1;

-- name: v4_body_cut
DELETE FROM once_body
WHERE key_id NOT IN (SELECT id FROM once_key WHERE response_version = 2);

-- Keys with an open outcome, by scope: to count them, and to reconcile the
-- scopes in turn.
-- name: v4_scope_index
CREATE INDEX once_key_scope ON once_key(scope, reconcile_after, state)
    WHERE state = 'unknown' OR state = 'dead_letter';

-- name: v4_queue_drop
DROP INDEX once_key_queue;

-- name: v4_queue_index
CREATE INDEX once_key_queue ON once_key(queued_at, scope)
    WHERE queued_at IS NOT NULL;

-- The bytes in once_request.  A sum would be a scan for each stored request,
-- and several processes share the database, so the count is a column.
-- name: v4_kept_bytes
ALTER TABLE once_meta ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;

-- name: v4_kept_count
UPDATE once_meta SET kept_bytes = (SELECT
    coalesce(sum(length(environment) + length(body)), 0) FROM once_request);
