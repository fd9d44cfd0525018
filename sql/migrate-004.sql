-- Version 4: a large body that oncewrap stores is in pieces, so that each can
-- be written in a transaction of its own, and none is long.
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
