-- The columns of a key and of an effect, as each store reads and writes them.
-- They come in the order of rows.c and store_change.h.  late_token and change
-- are lists of each store.

-- All columns of a key but its identity and its response; and all but its
-- response.
-- list: record
k.caller, k.peer, k.cookie, coalesce(k.method, 'POST') AS method, k.instance,
k.state, k.attempt::bigint, k.token, k.owner, k.locked_until, k.fingerprint,
(SELECT r.text FROM once_fingerprint_spec r WHERE r.id = k.fingerprint_spec)
    AS fingerprint_spec,
k.downstream, coalesce(k.recovery_point, 'started') AS recovery_point,
k.resume, k.retention, k.created_at, k.updated_at, k.expires_at,
k.expired_retention, k.attempt_lock, k.lock_file, k.reconcile_delay,
k.reconcile_after, k.reconcile_attempts::bigint, k.resource, k.accepted,
k.queued_at IS NOT NULL AS queued, k.queued_at, k.replayable, k.status::bigint,
k.body_length, k.last_error, $late_token AS late_token, $change AS change

-- list: row
k.id, k.key, k.path, k.scope, $record

-- The response of a key: see store_read.c.
-- list: response
k.reason, k.kind::bigint, k.headers, k.body, k.response_version::bigint

-- All columns of an effect but its payload.
-- list: effect
e.id, e.key_id, e.effect_key::text AS effect_key, e.scope, e.path, e.key,
e.topic, e.state, e.attempts::bigint, e.next_at IS NOT NULL AS has_turn,
e.next_at, e.owner, e.reference, e.last_error, e.created_at, e.updated_at

-- All columns of the record that may change, but the spec of the fingerprint,
-- and the recovery point, which only the handler changes; and their values, the
-- last parameters of a statement.
-- list: record_columns
$late_column state, attempt, token, owner, locked_until, resume, retention,
updated_at, expires_at, expired_retention, attempt_lock, lock_file,
reconcile_delay, reconcile_after, reconcile_attempts, resource, accepted,
queued_at, replayable, status, body_length, last_error, fingerprint, caller,
peer, cookie, method, instance

-- list: record_values
$late_value ?+2::text, ?+3::bigint, ?+4::text, ?+5::bigint, ?+6::bigint,
?+7::boolean, ?+8::bigint, ?+9::bigint, ?+10::bigint, ?+11::bigint,
?+12::bigint, ?+13::bigint, ?+14::bigint, ?+15::bigint, ?+16::bigint,
?+17::text, ?+18::boolean, ?+19::bigint, ?+20::boolean, ?+21::bigint,
?+22::bigint, ?+23::bytea, ?+24::bytea, ?+25::bigint, ?+26::bytea, ?+27::uuid,
nullif(?+28::text, 'POST'), ?+29::uuid
