-- The key store, version 1.  All names begin with once_, because a handler may
-- keep tables of its own in the same file.

-- One row for each key.  The unique index is its identity.  The row's number
-- tells the order of creation and is never used twice, unless a number above
-- 2^45 was planted: from then on numbers are random (see new_id in
-- queries.sql).
--
--   key path scope  identity
--   state           see record.c; all names are here from the start, so that
--                   no later release has to rebuild the table
--   token owner     the lease: 32 hexadecimal digits, and the process that
--                   holds it (see liveness.h); only while in_progress
--   locked_until    store time, ms: the deadline of the attempt
--   fingerprint recipe  of the request, and the way it was made
--   downstream      UUID, the same for all attempts
--   created_at updated_at  wall clock, ms: for people only
--   expires_at      store time, ms: past it the key counts as deleted
--   retention       ms, from the end of an attempt
--   status ... body_length  the stored answer; see store_ops.h for where the
--                   body is
--   kept            the answer can be replayed
--   response_version  how headers and body are encoded

-- name: schema_key
CREATE TABLE once_key(
	id INTEGER PRIMARY KEY,
	key TEXT NOT NULL,
	path TEXT NOT NULL,
	scope TEXT NOT NULL,
	state TEXT NOT NULL CHECK(state IN ('pending', 'in_progress',
	    'completed', 'failed_retryable', 'unknown', 'dead_letter',
	    'expired')),
	attempt INTEGER NOT NULL,
	token TEXT,
	owner INTEGER,
	locked_until INTEGER,
	fingerprint BLOB NOT NULL,
	recipe INTEGER NOT NULL,
	downstream TEXT NOT NULL,
	recovery_point TEXT NOT NULL DEFAULT 'started',
	on_crash TEXT NOT NULL,
	retention INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	expires_at INTEGER,
	kept INTEGER NOT NULL DEFAULT 0,
	status INTEGER,
	kind INTEGER,
	response_version INTEGER,
	body_length INTEGER,
	last_error TEXT,
	reason TEXT,
	headers BLOB,
	body BLOB
) STRICT;

-- name: schema_key_identity
CREATE UNIQUE INDEX once_key_identity ON once_key(key, path, scope);

-- The owners of leases.  Each sweep reads this index; it is small.
-- name: schema_key_running
CREATE INDEX once_key_running ON once_key(owner) WHERE state = 'in_progress';

-- Keys that end by age, oldest first.  The state is in the index for tallies.
-- name: schema_key_expiry
CREATE INDEX once_key_expiry ON once_key(expires_at, state)
    WHERE expires_at IS NOT NULL;

-- Keys that wait, or have an open outcome, oldest first; a healthy store has
-- few.
-- name: schema_key_open
CREATE INDEX once_key_open ON once_key(state, updated_at)
    WHERE state IN ('pending', 'unknown', 'dead_letter');

-- Large bodies have rows of their own, because a change of any column of a row
-- writes the whole row again.
-- name: schema_body
CREATE TABLE once_body(
	key_id INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;

-- Recipes are long, few, and the same for many keys.
-- name: schema_recipe
CREATE TABLE once_recipe(
	id INTEGER PRIMARY KEY,
	text TEXT NOT NULL UNIQUE
) STRICT;

-- One row: the secret for scopes, and the highest row number of a key that was
-- deleted.
-- name: schema_meta
CREATE TABLE once_meta(
	id INTEGER PRIMARY KEY CHECK(id = 1),
	secret BLOB NOT NULL,
	last_id INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row.  Store time is the time since boot plus shift, during the boot named
-- boot_id; last is the store time that was written last.  See clock.h.
-- name: schema_clock
CREATE TABLE once_clock(
	id INTEGER PRIMARY KEY CHECK(id = 1),
	boot_id TEXT NOT NULL,
	shift INTEGER NOT NULL,
	last INTEGER NOT NULL
) STRICT;
