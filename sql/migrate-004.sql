-- Version 4: a large body that oncewrap stores is in pieces, so that each can
-- be written in a transaction of its own, and none is long; and what bounds the
-- share of one caller, and what is kept for all, is counted.
--
--   id              65536 * the number of the key + the number of the piece,
--                   from 1 on: pieces of one key are neighbours
--   body            STORE_PIECE bytes, the last one fewer
--
-- Pieces may be there before their key is completed: while it has a lease.
-- What ends the lease otherwise deletes them.
--
-- once_body has what a handler wrote itself, by once_response, in one piece.

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

-- Keys whose outcome is open, by caller: how many one has, and whose turn it is
-- to be reconciled.
-- name: v4_scope_index
CREATE INDEX once_key_scope ON once_key(scope, reconcile_after, state)
    WHERE state = 'unknown' OR state = 'dead_letter';

-- name: v4_queue_drop
DROP INDEX once_key_queue;

-- name: v4_queue_index
CREATE INDEX once_key_queue ON once_key(queued_at, scope)
    WHERE queued_at IS NOT NULL;

-- Bytes in once_request: counted here, for a sum over it would be a scan at
-- each request that is kept, and several processes share the database.
-- name: v4_kept_bytes
ALTER TABLE once_meta ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;

-- name: v4_kept_count
UPDATE once_meta SET kept_bytes = (SELECT
    coalesce(sum(length(environment) + length(body)), 0) FROM once_request);
