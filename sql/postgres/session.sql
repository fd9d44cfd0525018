-- What the PostgreSQL store's connections and transactions need (pg.h, txn.h).

-- The server's clock (ms).  It is a query of its own, so that it is read once
-- and can be compared with an index.  extract() would give a numeric, which
-- takes much longer to multiply.
-- list: server_clock
(SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint)

-- Store time (ms): the server's clock, up to once_meta.time_limit.
-- list: now
(SELECT least((date_part('epoch', clock_timestamp()) * 1000)::bigint,
    m.time_limit) FROM once_meta m WHERE m.id = 1)

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- Settings of a new connection, whatever the server, the database and the role
-- say.  Settings that the server does not know are left out, and so are those
-- with the value NULL.  $1, $2 and $3: the waits for a lock, for a statement,
-- and for the next one of a transaction (ms); $4: the schema of the store;
-- NULL: the role's path.
--
-- Safety rests on the first ones: COMMIT tells by a WARNING that no standby has
-- it, and waits for the standby; names stand for the tables of one schema; a
-- statement without BEGIN reads what is committed, and may write; and literals
-- have one meaning.
--
-- A process that is frozen in a transaction holds its locks for half of what
-- the others wait for them.  A server that a process is no longer connected to
-- notices that, in a statement and between two.  0 would be no limit.
--
-- Plans are made before a table has rows or statistics, and are kept.  A scan
-- is cheap at that time and costs more with each key.  So the indexes are used
-- whatever they seem to cost, and in their order: a bitmap has all rows of a
-- range, which then are sorted, before the first one is there.  That makes a
-- plan without an index look so dear that the server would compile it.  Plans
-- for the values of parameters, which the server makes five times in each
-- connection, take longer to make than to run.
-- name: session_set
SELECT set_config(s.name, v.value, false)
FROM pg_settings s JOIN (VALUES
    ('client_min_messages', 'notice'),
    ('synchronous_commit', CASE current_setting('synchronous_commit')
	WHEN 'remote_apply' THEN NULL ELSE 'on' END),
    ('search_path', quote_ident($4::text) || ', pg_temp'),
    ('default_transaction_isolation', 'read committed'),
    ('default_transaction_read_only', 'off'),
    ('default_transaction_deferrable', 'off'),
    ('standard_conforming_strings', 'on'),
    ('array_nulls', 'on'),
    ('transform_null_equals', 'off'),

    ('lock_timeout', $1::bigint::text),
    ('statement_timeout', $2::bigint::text),
    ('transaction_timeout', '0'),
    ('idle_in_transaction_session_timeout', $3::bigint::text),
    ('idle_session_timeout', '0'),
    ('client_connection_check_interval', '1000'),
    ('tcp_keepalives_idle', '5'),
    ('tcp_keepalives_interval', '2'),
    ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', least(greatest($1::bigint, 1000), 30000)::text),

    ('enable_seqscan', 'off'),
    ('enable_bitmapscan', 'off'),
    ('enable_indexscan', 'on'),
    ('max_parallel_workers_per_gather', '0'),
    ('jit', 'off'),
    ('plan_cache_mode', 'force_generic_plan')
) AS v(name, value) ON v.name = s.name
WHERE v.value IS NOT NULL;

-- The secret of the store whose schema the path names.
-- name: session_secret
SELECT secret FROM once_meta WHERE id = 1;

-- What the server, the database and the role say of that setting.
-- list: synchronous_commit
(SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')

-- The server: its timeline, which grows when a standby is promoted, of a
-- standby NULL; its cluster, which all standbys have in common, and a restored
-- dump has not; its version; which of the settings that a commit relies on is
-- off (see txn_slot.c); whether a COMMIT waits for a standby; and its clock.
-- name: session_server
SELECT CASE WHEN NOT pg_is_in_recovery() THEN
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)
    ::bigint END,
    (SELECT system_identifier FROM pg_control_system()),
    current_setting('server_version_num')::bigint,
    CASE WHEN current_setting('fsync') <> 'on' THEN 1::bigint
	WHEN current_setting('full_page_writes') <> 'on' THEN 2::bigint
	WHEN $synchronous_commit = 'off' THEN 3::bigint END,
    $synchronous_commit,
    current_setting('synchronous_standby_names') <> '',
    $server_clock;

-- The process of the server that has the session.
-- name: session_process
SELECT pg_backend_pid()::bigint;

-- The process's own row in once_session, and those of its connections, see
-- schema.sql.  $1 is the process, in all of them.
--
-- A restore makes the process's row anew, as another transaction: then the
-- store is not the one that this process knows, and nothing may run.  A
-- statement that finds it so fails with SQLSTATE 22P02; no other one does.

-- Whether transaction $2 made the process's row.
-- list: is_same
EXISTS (SELECT 1 FROM once_session o WHERE o.owner = $1::bigint
    AND o.slot = -1 AND o.seq = 0 AND o.xmin::text::bigint = $2::bigint)

-- name: session_new
INSERT INTO once_session(owner, slot, seq) VALUES ($1, $2, 0)
	ON CONFLICT (owner, slot, seq) DO NOTHING;

-- The lock is written to the log, so that the COMMIT waits for the standby: the
-- row may be there already, and only the primary may have it.
-- name: session_epoch
SELECT xmin::text::bigint, tableoid::bigint FROM once_session
WHERE owner = $1 AND slot = -1 AND seq = 0 FOR UPDATE;

-- name: session_check
SELECT coalesce((SELECT 'true' WHERE $is_same), 'the store went back')::boolean;

-- Before COMMIT: whether the table has still the number $1.  Each statement
-- looks names up anew, and a schema that is renamed meanwhile moves the later
-- ones to another store.
-- name: session_stays
SELECT (CASE to_regclass('once_session')::oid::bigint WHEN $1::bigint
    THEN 'true' ELSE 'the store went back' END)::boolean;

-- One more transaction of connection $3.  It fails unless the last one was
-- $4 - 1: so a COMMIT that was sent, and comes to the server late, commits
-- nothing.
-- list: moved
WITH moved AS (
	UPDATE once_session SET seq = $4
	WHERE owner = $1 AND slot = $3 AND seq = $4::bigint - 1 AND $is_same
	RETURNING 1
) SELECT coalesce((SELECT 'true' FROM moved), 'the store went back')::boolean

-- name: session_next
$moved;

-- For the rest of the transaction: a lock is waited for only shortly.
-- list: shortly
set_config('lock_timeout', '100', true)

-- name: session_shortly
SELECT $shortly;

-- session_next for a group, which others share: a lock that one of them needs
-- is waited for only shortly.  With the time of all of them.
-- name: session_share
$moved, $shortly, $now, $server_clock;

-- Takes the number of the transaction after $3 away, unless it took place.
-- Waits for it.
-- name: session_void
UPDATE once_session SET seq = $3 + 2
WHERE owner = $1 AND slot = $2 AND seq = $3;

-- The number of the last transaction; no row: it is less than $3.
-- name: session_seq
SELECT seq FROM once_session
WHERE owner = $1 AND slot = $2 AND seq >= $3 FOR UPDATE;

-- Whether connection $2 has the row of transaction $3, or of a later one; or
-- has made none yet.
-- name: session_there
SELECT $3::bigint < 0 OR EXISTS (SELECT 1 FROM once_session
    WHERE owner = $1 AND slot = $2 AND seq >= $3::bigint);
