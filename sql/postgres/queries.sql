-- Every statement of the store in PostgreSQL.  States are literals, so that
-- PostgreSQL can use the partial indexes.  A change of state names the state
-- that it expects.
--
-- Every number in a parameter or a result is a bigint, every yes or no a
-- boolean, every downstream key a uuid, an effect's key a uuid in a parameter;
-- the rest is bytea, or text if it can only be ASCII.  So a parameter has the
-- same format wherever it stands.
--
-- A statement that changes several tables does so in one round trip, by WITH.
-- All its parts read the store as it was before the statement.  Therefore:
--
--   * the change of the key's row comes first, and the other parts do nothing
--     unless it was made;
--   * a row that one part deletes is not inserted by another one.
--
-- Locks: a transaction changes one key, then what belongs to the key, then the
-- count of bytes (see once_kept).  Where it changes several keys, it locks them
-- by SKIP LOCKED, or its caller has sorted them by number.

-- A key ends by the server's clock, also while store time stands still
-- (once_meta.time_limit): it may end later than its retention says, and never
-- earlier, whatever becomes of the clock.

-- The row of once_kept that this connection changes: the last one of its
-- stripe, or a later one, if another connection has just changed it.
-- list: stripe
(SELECT (pg_backend_pid() & 31)::bigint)

-- list: kept_here
s.stripe = $stripe AND s.seq >= (SELECT n.seq FROM once_kept n
    WHERE n.stripe = $stripe ORDER BY n.seq DESC LIMIT 1)

-- What stands in the statements of ../common.sql ------------------------------

-- A comparison for which NULL is a value.
-- list: is
IS NOT DISTINCT FROM

-- list: lock_key
FOR UPDATE OF k

-- list: lock_effect
FOR UPDATE OF e

-- list: unless_locked
SKIP LOCKED

-- list: late_column
late_token,

-- list: late_value
?+1::text,

-- list: no_late_token

-- list: late_token
k.late_token

-- list: change
k.xmin::text::bigint

-- list: is_open
state IN ('pending', 'unknown', 'dead_letter')

-- list: running
(SELECT * FROM once_key WHERE owner IS NOT NULL AND state = 'in_progress') k

-- list: unsettled
once_key WHERE state IN ('unknown', 'dead_letter')

-- list: queued
once_key WHERE queued_at IS NOT NULL

-- list: open_effects
once_effect

-- list: effects_of_key
once_effect

-- list: path_begins
substr(path, 1, octet_length($3)) = $3

-- The number of a piece's body; and the numbers that keys name.
-- list: piece_body
p.number

-- list: named_pieces
(SELECT pieces FROM once_request)

-- The number of the pieces of a key's answer; the bytes of all pieces of an
-- answer, of a request and of a payload.
-- list: answer_number
k.id

-- list: answer_bytes
(SELECT sum(length(p.body)) FROM once_piece p WHERE p.number = k.id)

-- list: request_bytes
(SELECT sum(length(p.body)) FROM once_piece p WHERE p.number = o.pieces)

-- list: payload_bytes
(SELECT sum(length(p.body)) FROM once_piece p
    WHERE p.number = 70368744177664 + e.id)

-- The place is the digest.
-- list: identity_place
('x' || encode(substr(digest, 1, 8), 'hex'))::bit(64)::bigint,
('x' || encode(substr(digest, 9, 8), 'hex'))::bit(64)::bigint

-- list: identities
once_key WHERE digest BETWEEN $13 AND $14
    AND digest <> int8send($11::bigint) || int8send($12::bigint)
ORDER BY digest

-- The key with that downstream key, which tells the beginning of its digest:
-- see sealed.h.
-- name: find_told
SELECT id FROM once_key WHERE digest BETWEEN $1 AND $2 AND downstream = $3;

-- The store -----------------------------------------------------------------

-- The schema of the store.  Without the quotes its name would be folded.
-- list: our_schema
quote_ident(current_schema())::regnamespace

-- An operator accepts that commits are lost.
-- name: loss_accept
UPDATE once_meta SET losses = greatest(losses + 1, $now) WHERE id = 1;

-- An operator says that the server's clock is right.
-- name: clock_accept
UPDATE once_meta SET time_limit = $server_clock + $1::bigint, held_at = 0
WHERE id = 1;

-- Whether any role may create functions and operators in the schema, which
-- could take the place of PostgreSQL's own.
-- name: schema_is_open
SELECT (has_schema_privilege('public', current_schema(), 'CREATE')
    ::integer)::bigint, current_schema()::text;

-- The statement that lets the role $1 call the functions for handlers.
-- name: grant
SELECT format('DO %L', format('BEGIN
	GRANT USAGE ON SCHEMA %1$I TO %2$I;
	GRANT EXECUTE ON FUNCTION %1$I.once_checkpoint, %1$I.once_outbox,
	    %1$I.once_response TO %2$I; END', current_schema(), $1::text));

-- Processes and their transactions -------------------------------------------

-- Whether a process that is suspected has not moved.  It may move right after
-- that: see store_recover.c.
-- name: owner_still
SELECT 1::bigint FROM once_owner WHERE id = $1 AND beat = $2;

-- Waits for the transactions of a process that is gone, which may go on in the
-- server.
-- name: session_lock
SELECT slot FROM once_session WHERE owner = $1 ORDER BY slot FOR UPDATE;

-- A process that is gone, and has nothing any more but its sessions.
-- name: owner_delete
DELETE FROM once_owner o
WHERE o.id = $1
    AND NOT EXISTS (SELECT 1 FROM once_key k WHERE k.owner = o.id)
    AND NOT EXISTS (SELECT 1 FROM once_effect e WHERE e.owner = o.id);

-- Then its sessions; those of an operator have no such process.
-- name: session_delete
DELETE FROM once_session
WHERE owner = $1::bigint
    AND NOT EXISTS (SELECT 1 FROM once_owner o WHERE o.id = $1::bigint);

-- Reading ---------------------------------------------------------------------

-- The identity is not copied, because the caller has it.
-- name: find
SELECT k.id, NULL::bytea AS key, NULL::bytea AS path, NULL::bytea AS scope,
    $record, $response
FROM once_key k
WHERE k.digest = $1 AND k.key = $2 AND k.path = $3 AND k.scope = $4;

-- Whether what a client is to be told of a key is still true: that it is
-- accepted, or, if $4, that its attempt $3 is completed.
-- name: still
SELECT 1::bigint FROM once_key k
WHERE k.id = $1 AND k.downstream = $2
    AND (NOT $4 OR k.state = 'completed' AND k.attempt = $3::bigint);

-- A piece of a body, and whether there is one more.
-- name: piece
SELECT body, EXISTS (SELECT 1 FROM once_piece
    WHERE number = $1 AND piece = ($2::bigint)::integer + 1)
FROM once_piece WHERE number = $1 AND piece = ($2::bigint)::integer;

-- Reserving -------------------------------------------------------------------

-- $1 is the digest, $2 the text.
-- name: fingerprint_spec_find
SELECT id FROM once_fingerprint_spec WHERE digest = $1 AND text = $2;

-- No row: another process has inserted it meanwhile.
-- name: fingerprint_spec_new
INSERT INTO once_fingerprint_spec(digest, text) VALUES ($1, $2)
ON CONFLICT (digest) DO NOTHING RETURNING id;

-- The reservations of a caller with max_active go one after the other, so that
-- the limit is exact.
-- name: caller_lock
SELECT 1::bigint FROM once_kept WHERE stripe = ($1::bigint & 31)
ORDER BY seq DESC LIMIT 1 FOR UPDATE;

-- What a key with the identity $1 to $4 needs, of the caller $5: the number of
-- the key, if there is one; a number for a new one; whether the caller has at
-- least $6 keys with an open outcome (0: no limit).
-- name: admit
SELECT k.id, nextval('once_key_id'), 0::bigint,
    CASE WHEN $6::bigint > 0 THEN (SELECT 1::bigint FROM once_key a
	WHERE a.state IN ('unknown', 'dead_letter') AND a.caller = $5::bigint
	LIMIT 1 OFFSET $6::bigint - 1) END
FROM (SELECT 1) one LEFT JOIN once_key k
    ON k.digest = $1 AND k.key = $2 AND k.path = $3 AND k.scope = $4;

-- The bytes of all stored requests, and of one.
-- list: kept_sum
(SELECT coalesce(sum(l.bytes), 0)::bigint FROM generate_series(0, 31) g(stripe),
    LATERAL (SELECT n.bytes FROM once_kept n WHERE n.stripe = g.stripe
	ORDER BY n.seq DESC LIMIT 1) l)

-- list: request_size
octet_length(o.environment) + o.body_length

-- The keys of a caller on all routes, whose numbers begin at $5: see scope.h.
-- list: of_caller
a.caller BETWEEN $5::bigint AND $5::bigint + 4194303

-- The bytes of all stored requests, without that of the key with the identity
-- $1 to $4; and, if these and $6 bytes are more than $7, of its caller's.
-- name: kept_room
SELECT t.others, CASE WHEN t.others + $6::bigint > $7::bigint THEN
    (SELECT coalesce(sum($request_size), 0)::bigint
	FROM (SELECT a.id FROM once_key a
		WHERE a.state IN ('unknown', 'dead_letter') AND $of_caller
	    UNION SELECT a.id FROM once_key a
		WHERE a.queued_at IS NOT NULL AND $of_caller
	    UNION SELECT a.id FROM once_key a WHERE a.owner IS NOT NULL
		AND a.state = 'in_progress' AND $of_caller) c
	JOIN once_request o ON o.key_id = c.id
	WHERE c.id IS DISTINCT FROM t.own) END
FROM (SELECT k.id AS own, $kept_sum
	- coalesce((SELECT $request_size FROM once_request o
	    WHERE o.key_id = k.id), 0) AS others
    FROM (SELECT 1) one LEFT JOIN once_key k
	ON k.digest = $1 AND k.key = $2 AND k.path = $3 AND k.scope = $4
    OFFSET 0) t;

-- Stores the request of the key $1, if that is there.  It may have another one.
-- Pieces of a large body come after this.
-- name: request_new
WITH taken AS (SELECT id FROM once_key WHERE id = $1::bigint),
old AS (SELECT $request_size AS bytes
    FROM once_request o, taken WHERE o.key_id = taken.id),
pieces AS (DELETE FROM once_piece WHERE number = - $1::bigint),
request AS (INSERT INTO once_request AS o (key_id, environment, body,
	body_length, pieces)
    SELECT taken.id, $2::bytea, $3::bytea, $4::bigint, $5::bigint FROM taken
    ON CONFLICT (key_id) DO UPDATE SET environment = EXCLUDED.environment,
	body = EXCLUDED.body, body_length = EXCLUDED.body_length,
	pieces = EXCLUDED.pieces),
kept AS (UPDATE once_kept s
    SET seq = s.seq + 1, bytes = s.bytes + d.bytes
    FROM (SELECT octet_length($2::bytea) + $4::bigint
	- coalesce((SELECT bytes FROM old), 0) AS bytes FROM taken) d
    WHERE $kept_here AND d.bytes <> 0)
SELECT count(*) FROM taken;

-- A key with a request, for a transaction that is rolled back.
-- name: trial
WITH made AS (INSERT INTO once_key(id, fingerprint_spec, retention, created_at,
	updated_at, downstream, attempt, state, digest, fingerprint, key, path,
	scope)
    VALUES (nextval('once_key_id'), 0, 0, 0, 0, gen_random_uuid(), 0, 'expired',
	substr(sha256(random()::text::bytea), 1, 16), '', '', '', '')
    RETURNING id)
INSERT INTO once_request(key_id, environment, body, body_length, pieces)
SELECT id, '', '', 0, 0 FROM made;

-- Changes of a key ------------------------------------------------------------

-- A verb reads the row, a function of step.h changes the record, and one of the
-- next statements writes it, in one transaction: see store_change.h.  Each
-- names the state, the attempt and the token that were read.

-- Store time, and the server's clock, by which ages are reckoned.
-- name: time
SELECT $now, $server_clock;

-- list: record_was
id = $1 AND state = $2::text AND attempt = $3::bigint
    AND token IS NOT DISTINCT FROM $4::text

-- No row is changed: there is a key with that digest.
-- name: record_new
INSERT INTO once_key(id, key, path, scope, $record_columns, fingerprint_spec,
    digest, downstream, created_at)
VALUES ($1, $2, $3, $4, $record_values, $5, $6, $7, $+9)
ON CONFLICT (digest) DO NOTHING;

-- Deleting --------------------------------------------------------------------

-- Deletes what belongs to the keys of "ended".  An effect may just be delivered
-- by another transaction, which sees the key: this waits for its end, and takes
-- the effect as it is then.
-- list: without_rest
tried AS (SELECT e.id, e.state FROM once_effect e
    WHERE e.key_id = ANY (ARRAY(SELECT id FROM ended))
	AND (e.attempts > 0 OR e.state = 'delivered')
    FOR UPDATE),
effects AS (DELETE FROM once_effect e
    WHERE e.id = ANY (ARRAY(SELECT id FROM tried
	WHERE state = 'delivered'))),
refused AS (DELETE FROM once_refused f
    WHERE f.key_id = ANY (ARRAY(SELECT id FROM ended))),
request AS (DELETE FROM once_request o
    WHERE o.key_id = ANY (ARRAY(SELECT id FROM ended))
    RETURNING $request_size AS bytes, o.pieces),
pieces AS (DELETE FROM once_piece p
    WHERE p.number = ANY (ARRAY(SELECT id FROM ended
	UNION ALL SELECT r.pieces FROM request r))),
kept AS (UPDATE once_kept s SET seq = s.seq + 1,
	bytes = (s.bytes - d.bytes)::bigint
    FROM (SELECT sum(bytes) AS bytes FROM request) d
    WHERE $kept_here AND d.bytes <> 0)

-- Deletes what is stored with some keys: their numbers, with spaces.
-- name: erase
WITH ended AS (SELECT n.id
    FROM unnest(string_to_array($1::text, ' ')::bigint[]) AS n(id)),
$without_rest
SELECT count(*) FROM request;

-- A row: another transaction, perhaps a handler's, has locked the key.
-- name: key_held
WITH free AS (SELECT id FROM once_key WHERE id = $1
    FOR NO KEY UPDATE SKIP LOCKED)
SELECT 1::bigint FROM once_key
WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM free);

-- At most $4 keys that are past their retention, oldest first, after the place
-- ($1, $2, $3) of the part before.  The server knows the time: $5 is NULL.
-- list: due
FROM once_key k
WHERE k.state IN ('completed', 'failed_retryable', 'expired')
    AND k.expires_at <= coalesce($5::bigint, $now) AND k.token IS NULL
    AND (k.expires_at, k.state, k.id) > ($1::bigint, $2::text, $3::bigint)
ORDER BY k.expires_at, k.state, k.id LIMIT $4::bigint

-- Keys that another transaction has locked are skipped.
-- name: expire_rows
SELECT $row, k.expires_at AS last_at, k.state AS last_state,
    (SELECT count(*) FROM once_effect e
	WHERE e.key_id = k.id AND e.state = 'delivered') AS effects
$due FOR UPDATE OF k SKIP LOCKED;

-- Whether there are any.
-- name: expire_ahead
SELECT 1::bigint FROM (SELECT k.id $due) due LIMIT 1;

-- Accepting, and the queue ---------------------------------------------------

-- How many keys wait, and how many of them are that caller's, on any route: see
-- scope.h.  A key that is put off does not count: it could be put off for
-- ever.  The server knows the time: $1 is NULL.  No key is queued for a time
-- before $3 (see firsts).
-- name: queue_length
SELECT count(*),
    count(*) FILTER (WHERE q.caller >> 22 = $2::bigint >> 22)
FROM once_key q WHERE q.queued_at >= $3::bigint
    AND q.queued_at <= coalesce($1::bigint, $now);

-- The jobs that are due first, after $1 others; none may be due yet.  A process
-- that lost one to another process looks further, so that two of them do not
-- meet at each job.  No key is queued for a time before $2 (see firsts).  The
-- server knows the time: $3 is NULL.
-- name: job_next
SELECT $row, coalesce($3::bigint, $now) AS now FROM once_key k
WHERE k.queued_at IS NOT NULL AND k.queued_at >= $2
    AND k.expires_at > coalesce($3::bigint, $now)
ORDER BY k.queued_at LIMIT 8 OFFSET $1::bigint;

-- Accepted keys that no worker has claimed within their retention.  They are
-- found by age, because the queue may be long.
-- name: job_abandoned
SELECT $row FROM once_key k
WHERE k.state = 'pending' AND k.expires_at <= $1
ORDER BY k.expires_at LIMIT 8;

-- If no other process than $1 has a row in once_owner.
-- name: topic_clear
-- scan: there are a few topics, and a row for each process
DELETE FROM once_topic
WHERE NOT EXISTS (SELECT 1 FROM once_owner o WHERE o.id <> $1::bigint);

-- Finishing -------------------------------------------------------------------

-- Erases the request of a key that has been changed to the state $2.
-- name: request_erase
WITH request AS (DELETE FROM once_request o
    WHERE o.key_id = (SELECT id FROM once_key WHERE id = $1
	AND state = $2::text)
    RETURNING $request_size AS bytes, o.pieces),
pieces AS (DELETE FROM once_piece p
    WHERE p.number = ANY (ARRAY(SELECT r.pieces FROM request r))),
kept AS (UPDATE once_kept s SET seq = s.seq + 1, bytes = s.bytes - request.bytes
    FROM request WHERE $kept_here)
SELECT count(*) FROM request;

-- Whether the key has the answer that a group has perhaps stored, or had it and
-- is past already.
-- name: finished
SELECT state = 'expired' OR state = 'completed' AND replayable = $2
	AND status = $3::bigint AND reason IS NOT DISTINCT FROM $4
	AND headers IS NOT DISTINCT FROM $5 AND body IS NOT DISTINCT FROM $6,
    expires_at
FROM once_key WHERE id = $1;

-- A piece of a large body.
-- name: piece_new
INSERT INTO once_piece(number, piece, body)
VALUES ($1, ($2::bigint)::integer, $3);

-- name: delete_pieces
DELETE FROM once_piece WHERE number = $1;

-- Finding out what happened --------------------------------------------------

-- Processes of the attempt may still act.  Only one host can tell: lock_file is
-- its number.  Other hosts leave the key to that host, until reconcile_claim or
-- attempt_gone has set lock_file to NULL.

-- When a key is due first, for the host $1.
-- name: reconcile_first
SELECT reconcile_after, coalesce($1::bigint, $now) AS now FROM once_key
WHERE reconcile_after IS NOT NULL AND (lock_file IS NULL OR lock_file = $2)
ORDER BY reconcile_after LIMIT 1;

-- The longest due keys of the next callers after $2, for the host $3.
-- name: reconcile_due
SELECT $row FROM once_key k
WHERE k.state = 'unknown' AND k.caller > $2
    AND k.reconcile_after <= coalesce($1::bigint, $now)
    AND (k.lock_file IS NULL OR k.lock_file = $3)
ORDER BY k.caller, k.reconcile_after LIMIT 8;

-- What a handler says without SQL --------------------------------------------

-- name: handler_checkpoint
SELECT once_checkpoint($1, $2);

-- name: handler_emit
SELECT once_outbox($1, $2, $3);

-- name: handler_respond
SELECT once_response($1, ($2::bigint)::integer, $3, $4);

-- The outbox ------------------------------------------------------------------

-- One of a key's pending effects has the turn: it has next_at, or owner while
-- it is tried (see schema.sql).

-- The effects of that topic that are due first, after $2 others.
-- name: effect_next
SELECT $effect, $now AS now FROM once_effect e
WHERE e.state <> 'delivered' AND e.state = 'pending' AND e.topic = $1
    AND e.next_at IS NOT NULL
ORDER BY e.next_at LIMIT 8 OFFSET $2::bigint;

-- Recovering ------------------------------------------------------------------

-- The keys of an owner after that one: in progress, or not confirmed.  Those
-- that a transaction is just changing, perhaps a handler's, are left for the
-- next pass.  No lease has a deadline before $4 (see firsts).  The sums
-- keep the server from reading all keys in the order of id.
-- name: recover_rows
SELECT $row FROM once_key k
WHERE k.owner = $1 AND k.locked_until >= $4 AND k.id + 0 > $2
ORDER BY k.id + 0 LIMIT $3::bigint FOR UPDATE OF k SKIP LOCKED;

-- Whether any record of the owner may name an attempt.
-- name: attempt_of_owner
SELECT 1::bigint FROM once_key WHERE owner = $1 LIMIT 1;

-- Keys that another host has made unknown on a suspicion, and that the host $1
-- may release after all.
-- name: recover_late
SELECT $row FROM once_key k
WHERE k.state = 'unknown' AND k.late_token IS NOT NULL AND k.resume
    AND k.lock_file = $1 AND k.id > $2
ORDER BY k.id LIMIT $3::bigint;

-- For operators ---------------------------------------------------------------

-- name: counts
-- scan: counts every key, when an operator asks
SELECT state, count(*), min(updated_at),
    coalesce(sum(body_length), 0)::bigint
FROM once_key GROUP BY state;

-- The error of the sum in once_kept.
-- list: kept_error
SELECT $kept_sum
    - (SELECT coalesce(sum($request_size), 0) FROM once_request o)::bigint

-- list: orphan_answers
0::bigint

-- Accepted keys without a stored request.
-- A subquery, and not EXISTS, which the server may make a join of two tables.
-- list: missing_requests
SELECT count(*) FROM once_key k
WHERE k.queued_at IS NOT NULL
    AND (SELECT o.key_id FROM once_request o WHERE o.key_id = k.id) IS NULL

-- For doctor, which reads every row, a page after that number.
-- name: rows
SELECT $row, k.digest AS identity, false AS lost FROM once_key k
WHERE k.id > $1 ORDER BY k.id LIMIT $2::bigint;

-- Foreign triggers, rules, policies and indexes on our tables, which would
-- change the effect of our statements, and rights of others; with its kind.
-- name: foreign_parts
-- scan: reads the catalog, when an operator asks
SELECT count(*), string_agg(DISTINCT f.name, ', ')
FROM pg_class c, LATERAL (
    SELECT 'trigger ' || t.tgname AS name FROM pg_trigger t
    WHERE t.tgrelid = c.oid
    UNION ALL
    SELECT 'rule ' || r.rulename FROM pg_rewrite r WHERE r.ev_class = c.oid
    UNION ALL
    SELECT 'policy ' || p.polname FROM pg_policy p WHERE p.polrelid = c.oid
    UNION ALL
    SELECT 'row security' WHERE c.relrowsecurity
    UNION ALL
    SELECT 'index ' || i.indexrelid::regclass::text FROM pg_index i
    WHERE i.indrelid = c.oid
	AND left((SELECT x.relname::text FROM pg_class x
	    WHERE x.oid = i.indexrelid), 5) <> 'once_'
    UNION ALL
    SELECT 'rights of ' || CASE a.grantee WHEN 0 THEN 'all'
	ELSE 'role ' || pg_get_userbyid(a.grantee) END || ' on ' || c.relname
    FROM aclexplode(c.relacl) a
    WHERE a.grantee <> c.relowner) f
WHERE c.relnamespace = $our_schema
    AND left(c.relname::text, 5) = 'once_';

-- list: parts
ARRAY['once_meta', 'once_owner', 'once_session', 'once_kept',
    'once_fingerprint_spec', 'once_key', 'once_request', 'once_piece',
    'once_refused', 'once_topic', 'once_effect', 'once_key_id',
    'once_effect_id', 'once_fingerprint_spec_id',
    'once_key_running', 'once_key_expiry', 'once_key_open', 'once_key_caller',
    'once_key_reconcile', 'once_key_resource', 'once_key_queue',
    'once_effect_of_key', 'once_effect_open', 'once_effect_owner',
    'once_checkpoint', 'once_outbox', 'once_response',
    'once_meta_pkey', 'once_owner_pkey', 'once_session_pkey', 'once_kept_pkey',
    'once_fingerprint_spec_pkey', 'once_fingerprint_spec_digest_key',
    'once_key_pkey', 'once_key_digest_key', 'once_request_pkey',
    'once_piece_pkey', 'once_refused_pkey', 'once_topic_pkey',
    'once_effect_pkey']

-- Missing tables, indexes, sequences and functions; and indexes that the server
-- does not use.
-- name: missing_parts
-- scan: reads the catalog, when an operator asks
SELECT count(*), string_agg(n.name, ' ')
FROM unnest($parts) AS n(name)
WHERE NOT EXISTS (SELECT 1 FROM pg_class c
	WHERE c.relnamespace = $our_schema
	AND c.relname::text = n.name
	AND NOT EXISTS (SELECT 1 FROM pg_index i
	    WHERE i.indexrelid = c.oid AND NOT i.indisvalid))
    AND NOT EXISTS (SELECT 1 FROM pg_proc p
	WHERE p.pronamespace = $our_schema
	AND p.proname::text = n.name);

-- Functions for handlers that do not have the rights of their owner, or that
-- look into another schema: ALTER SCHEMA RENAME leaves their path as it is.
-- What cures them.
-- name: lost_functions
-- scan: reads the catalog, when an operator asks
SELECT count(*), string_agg(format('ALTER FUNCTION %I SECURITY DEFINER '
    || 'SET search_path = %I, pg_temp', p.proname, current_schema()), '; ')
FROM pg_proc p
WHERE p.pronamespace = $our_schema AND p.proname::text = ANY ($parts)
    AND NOT (p.prosecdef
	AND coalesce(replace(array_to_string(p.proconfig, ' '), '"', ''), '')
	= replace('search_path=' || current_setting('search_path'), '"', ''));

-- Whether a COMMIT waits for a standby, and whether there are standbys; an
-- ordinary role sees no more of them than that.
-- name: standbys
-- scan: reads the server's state, when an operator asks
SELECT current_setting('synchronous_standby_names') <> '',
    (SELECT count(*) FROM pg_stat_replication);

-- Tables that a crash of the server empties.
-- name: unlogged
-- scan: reads the catalog, when an operator asks
SELECT count(*), string_agg(c.relname::text, ' ')
FROM pg_class c
WHERE c.relnamespace = $our_schema AND c.relkind = 'r'
    AND left(c.relname::text, 5) = 'once_' AND c.relpersistence <> 'p';

-- Tables and sequences that this role may not use.
-- name: missing_rights
-- scan: reads the catalog, when a process starts
SELECT count(*), string_agg(c.relname::text, ' ')
FROM pg_class c
WHERE c.relnamespace = $our_schema
    AND c.relname::text = ANY ($parts)
    AND CASE c.relkind
	WHEN 'r' THEN NOT (has_table_privilege(c.oid, 'SELECT')
	    AND has_table_privilege(c.oid, 'INSERT')
	    AND has_table_privilege(c.oid, 'UPDATE')
	    AND has_table_privilege(c.oid, 'DELETE'))
	WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE')
	ELSE false END;

-- The role that owns the tables.
-- name: owning_role
-- scan: reads the catalog, when a process starts
SELECT 1::bigint, pg_get_userbyid(c.relowner)::text
FROM pg_class c
WHERE c.relnamespace = $our_schema
    AND c.relname::text = 'once_meta';

-- Hosts with one name: processes that moved in the last minute, of one host and
-- two boots.
-- name: same_hosts
-- scan: there is a row for each process
SELECT count(*), string_agg(t.host, ' ')
FROM (SELECT o.host FROM once_owner o WHERE o.beat_at > $now - 60000
    GROUP BY o.host HAVING count(DISTINCT o.boot) > 1) t;

-- The number of leases of an owner, and of the effects that it is trying.
-- name: owner_count
SELECT (SELECT count(*) FROM once_key WHERE owner = $1)
    + (SELECT count(*) FROM once_effect WHERE owner = $1);

-- Leases of owners that are not of the host $1 and its boot $3; and those of
-- the machine $2 among them.
-- name: leases_elsewhere
-- scan: there is a row for each lease
SELECT count(*), count(*) FILTER (WHERE left(o.host, 32) = $2::text)
FROM (SELECT k.owner FROM once_key k WHERE k.owner IS NOT NULL
    UNION ALL SELECT e.owner FROM once_effect e WHERE e.owner IS NOT NULL) b
LEFT JOIN once_owner o ON o.id = b.owner
WHERE o.host IS DISTINCT FROM $1::text OR o.boot <> $3::text;

-- Metrics and health ---------------------------------------------------------

-- name: kept_bytes
SELECT $kept_sum;

-- The bytes of the tables, with their indexes.
-- name: store_bytes
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relkind = 'r' AND relname LIKE 'once\_%'
    AND relnamespace = $our_schema;

-- Counts the next $4 rows after the number $3, by their states; $1 and $2 are
-- for a walk along an index.
-- name: tally
SELECT $1::bigint, state, max(id), count(*)
FROM (SELECT id, state FROM once_key WHERE id > $3 AND $2::text IS NOT NULL
    ORDER BY id LIMIT $4::bigint) k
GROUP BY state ORDER BY max(id);

-- name: tally_effects
SELECT $1::bigint, state, max(id), count(*)
FROM (SELECT id, state FROM once_effect WHERE id > $3 AND $2::text IS NOT NULL
    ORDER BY id LIMIT $4::bigint) e
GROUP BY state ORDER BY max(id);

-- Copying a store of another kind --------------------------------------------

-- Whether the store is empty, and no process uses it.
-- name: copy_target
SELECT NOT EXISTS (SELECT 1 FROM once_key)
    AND NOT EXISTS (SELECT 1 FROM once_effect),
    NOT EXISTS (SELECT 1 FROM once_owner);

-- Some of the statements read all rows, and so does the source meanwhile.
-- name: copy_patience
SELECT set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '1h', true);

-- The secret comes along: scopes and downstream keys were made under it.
-- name: copy_secret
UPDATE once_meta SET secret = $1, time_limit = DEFAULT, held_at = DEFAULT
WHERE id = 1;

-- Numbers go on after those that were copied; 0: there were none.
-- name: copy_numbers
SELECT setval('once_key_id', greatest($1::bigint, 1), $1::bigint > 0),
    setval('once_effect_id', greatest($2::bigint, 1), $2::bigint > 0);

-- A key without a lease.
-- name: copy_key
INSERT INTO once_key(id, key, path, scope, $record_columns, fingerprint_spec,
    digest, downstream, created_at, recovery_point, kind, response_version,
    reason, headers, body)
VALUES ($1, $2, $3, $4, $record_values, $5, $6, $7, $8, $9, $10::bigint,
    $11::bigint, $12, $13, $14);

-- name: copy_effect
INSERT INTO once_effect(id, key_id, effect_key, scope, path, key, topic, state,
    attempts, next_at, reference, last_error, created_at, updated_at, payload)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ($9::bigint)::integer, $10, $11, $12,
    $13, $14, $15);
