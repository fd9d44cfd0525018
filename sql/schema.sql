-- The key store.  All names begin with once_, because a handler may keep tables
-- of its own in the same file.
--
-- A change of this file needs another QUERIES_VERSION (queries.h): a database
-- of another version is refused.

-- One row for each key.  No two rows have the same key, path and scope, because
-- a row is inserted in the transaction that has found none.  The row's number
-- tells the order of creation and is never used twice, unless a number above
-- 2^45 was planted: from then on numbers are random (see new_id in
-- queries.sql).
--
--   identity        the number of key, path and scope: see identity.h
--   key path scope  the identity
--   caller          whom limits count the key for: see scope.h
--   peer            the client's address, as the web server said it
--   cookie          HMAC of the Cookie field, 16 bytes, for a key that came
--                   from a form or a query and has an empty scope
--   method          the method; NULL: POST
--   instance        the 16 bytes of the UUID of the instance.  These five are
--                   of the request that began the last attempt
--   state           see record.c
--   attempt         attempts begun
--   token owner     the lease: 32 hexadecimal digits, and the process that
--                   holds it (see liveness.h); while in_progress, and while
--                   completed by the attempt itself but not confirmed
--   listed          1: the key is in the indexes of owners and of age, if it
--                   belongs there; NULL: it is in neither, because it is recent
--                   (see once_meta)
--   locked_until    store time, ms: the deadline of the attempt
--   fingerprint fingerprint_spec  of the request, and the way it was made; 0:
--                   the key was released because nothing happened, and takes
--                   the fingerprint of the request that runs next
--   downstream      the 16 bytes of a UUID, the same for all attempts
--   recovery_point  what the last attempt said that it had reached; NULL:
--                   'started'
--   resume          on_crash = resume
--   retention       ms, from the end of an attempt; 0 once it is completed
--   created_at updated_at  wall clock, ms: for people only
--   expires_at      store time, ms: past it the key counts as deleted
--   expired_retention  how long the key stays as 'expired' (ms), past its
--                   retention; 0: it does not
--   attempt_lock lock_file  the name of the file that the attempt's processes
--                   hold open (see attempt_lock.h), and the inode of the lock
--                   file in which its owner has a lock; only if the key may be
--                   resumed or reconciled after the loss of its handler, while
--                   in_progress, and while unknown until all processes of the
--                   attempt are known to have exited
--   reconcile_delay ms from becoming unknown to the first try to reconcile;
--                   NULL: the key has no reconciler
--   reconcile_after store time of the next try; only while unknown
--   reconcile_attempts  tries begun
--   resource        32 hexadecimal digits that name the key's status resource;
--                   NULL: it has none
--   accepted        the request is stored, and was answered with 202: oncewrap
--                   runs it without a retry
--   queued_at       store time: no worker runs it before this time; only while
--                   pending or failed_retryable, and accepted
--   replayable      the response can be replayed
--   status kind     of the stored response
--   response_version  how headers and body are encoded (see store_ops.h)
--   body_length     bytes of the body, wherever it is
--   last_error      why the last attempt did not complete; for people only
--   reason headers body  the stored response.  They come last: a read of the
--                   columns before them does not read the pages that a large
--                   row overflows to

-- name: schema_key
CREATE TABLE once_key(
	id INTEGER PRIMARY KEY,
	identity INTEGER NOT NULL,
	key TEXT NOT NULL,
	path TEXT NOT NULL,
	scope TEXT NOT NULL,
	caller INTEGER NOT NULL DEFAULT 0,
	peer TEXT,
	cookie BLOB,
	method TEXT,
	instance BLOB,
	state TEXT NOT NULL CHECK(state IN ('pending', 'in_progress',
	    'completed', 'failed_retryable', 'unknown', 'dead_letter',
	    'expired')),
	attempt INTEGER NOT NULL,
	token TEXT,
	owner INTEGER,
	listed INTEGER,
	locked_until INTEGER,
	fingerprint BLOB NOT NULL,
	fingerprint_spec INTEGER NOT NULL,
	downstream BLOB NOT NULL,
	recovery_point TEXT,
	resume INTEGER NOT NULL DEFAULT 0,
	retention INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	expires_at INTEGER,
	expired_retention INTEGER NOT NULL DEFAULT 0,
	attempt_lock INTEGER,
	lock_file INTEGER,
	reconcile_delay INTEGER,
	reconcile_after INTEGER,
	reconcile_attempts INTEGER NOT NULL DEFAULT 0,
	resource TEXT,
	accepted INTEGER NOT NULL DEFAULT 0,
	queued_at INTEGER,
	replayable INTEGER NOT NULL DEFAULT 0,
	status INTEGER,
	kind INTEGER,
	response_version INTEGER,
	body_length INTEGER,
	last_error TEXT,
	reason TEXT,
	headers BLOB,
	body BLOB
) STRICT;

-- Two identities may have one number, so this index is not unique.  A unique
-- one, of number and texts, makes a first request write a quarter more with
-- 100,000 keys.  Instead each insert looks whether the identity has a row
-- (record_new), and doctor finds a second one.
-- name: schema_key_identity
CREATE INDEX once_key_identity ON once_key(identity);

-- The owners of leases of keys that are not recent (see once_meta).  A dead
-- owner leaves keys in progress, and responses that are not confirmed.  The
-- index has listed because SQLite would read the row for it.
-- name: schema_key_running
CREATE INDEX once_key_running ON once_key(listed, owner)
    WHERE listed = 1 AND owner IS NOT NULL;

-- Keys that end by age and are not recent, oldest first.  The state is in the
-- index for tallies.
-- name: schema_key_expiry
CREATE INDEX once_key_expiry ON once_key(listed, expires_at, state)
    WHERE listed = 1 AND expires_at IS NOT NULL;

-- Keys that wait, or have an open outcome, oldest first; a healthy store has
-- few.  SQLite tests whether a row belongs to an index at each change of the
-- row, and builds a table from a list of more than two constants for each test;
-- so the conditions here have no such list.
-- name: schema_key_open
CREATE INDEX once_key_open ON once_key(state, updated_at)
    WHERE state = 'pending' OR state = 'unknown' OR state = 'dead_letter';

-- Keys with an open outcome, by caller: to count them, and to reconcile those
-- of each caller in turn.
-- name: schema_key_caller
CREATE INDEX once_key_caller ON once_key(caller, reconcile_after, state)
    WHERE state = 'unknown' OR state = 'dead_letter';

-- name: schema_key_reconcile
CREATE INDEX once_key_reconcile ON once_key(reconcile_after)
    WHERE state = 'unknown' AND reconcile_after IS NOT NULL;

-- name: schema_key_resource
CREATE UNIQUE INDEX once_key_resource ON once_key(resource)
    WHERE resource IS NOT NULL;

-- name: schema_key_queue
CREATE INDEX once_key_queue ON once_key(queued_at, caller)
    WHERE queued_at IS NOT NULL;

-- The stored request of a key that may have to be reconciled: NAME=VALUE
-- strings, each with a NUL, and the body.  It has no credentials, and is erased
-- when the outcome is known.  A large body is in once_piece.
--
--   body_length     bytes of the whole body
--   pieces          the number of its pieces; 0: it is in this row
-- name: schema_request
CREATE TABLE once_request(
	key_id INTEGER PRIMARY KEY,
	environment BLOB NOT NULL,
	body BLOB NOT NULL,
	body_length INTEGER NOT NULL DEFAULT 0,
	pieces INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The pieces that no key names yet, of a request or an answer: their number,
-- the process that writes them, and the bytes of the whole request (0: of an
-- answer).
-- name: schema_unnamed
CREATE TABLE once_unnamed(
	id INTEGER PRIMARY KEY,
	owner INTEGER NOT NULL,
	bytes INTEGER NOT NULL
) STRICT;

-- name: schema_unnamed_owner
CREATE INDEX once_unnamed_owner ON once_unnamed(owner);

-- A large body is stored in pieces, so that each can be written in a
-- transaction of its own, and none is long.
--
--   id              65536 * N + the number of the piece, from 1 on: pieces of
--                   one body are neighbours.  N is negative, and once_request
--                   or once_answer names it; or it is the number of a key, for
--                   a response that once_answer does not name; or it is 2^46 +
--                   the number of an effect, for its payload
--   body            STORE_PIECE bytes, the last one fewer
-- name: schema_piece
CREATE TABLE once_piece(
	id INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;

-- The large answers.  Two processes may store answers for one key at the same
-- time; so their pieces have numbers of their own, which are negative.
-- name: schema_answer
CREATE TABLE once_answer(
	key_id INTEGER PRIMARY KEY,
	pieces INTEGER NOT NULL
) STRICT;

-- The last attempt of a key, if its answer was not accepted, or if it wrote to
-- stderr: for people only.  It is there until a later attempt ends, or the key
-- is deleted.
--
--   exit_status signal  how the program ended by itself; -1 and 0: it did not
--   length          bytes of the whole output
--   output          its first bytes; NULL: the answer was accepted
--   errors          the last bytes that it wrote to stderr
-- name: schema_refused
CREATE TABLE once_refused(
	key_id INTEGER PRIMARY KEY,
	attempt INTEGER NOT NULL,
	exit_status INTEGER NOT NULL,
	signal INTEGER NOT NULL,
	length INTEGER NOT NULL,
	output BLOB,
	errors BLOB NOT NULL
) STRICT;

-- Specs are long, few, and the same for many keys.  Number 0 is empty.
-- name: schema_fingerprint_spec
CREATE TABLE once_fingerprint_spec(
	id INTEGER PRIMARY KEY,
	text TEXT NOT NULL UNIQUE
) STRICT;

-- One row.
--
--   secret          for scopes
--   seal            a number that grows each time before the log is moved into
--                   the file, its complement, and the seal that the file had
--                   when the log began: see store_guard_file.c.  It stands
--                   behind the secret
--   last_id         the highest row number of a key that was deleted
--   recent          keys with a higher number are recent: about the last
--                   hundred.  A search for leases, or for keys that end by
--                   age, reads these rows, and an index for all others.  So a
--                   request writes no page of an index of owners, where most
--                   leases would be entered and soon deleted.  And the index
--                   of age gets many keys with one commit (see sqlite_write.c)
--   kept_bytes      the bytes of all requests.  A sum of these would be a scan
--                   for each stored request, and several processes share the
--                   database, so the count is a column
-- name: schema_meta
CREATE TABLE once_meta(
	id INTEGER PRIMARY KEY CHECK(id = 1),
	secret BLOB NOT NULL,
	seal BLOB NOT NULL,
	last_id INTEGER NOT NULL DEFAULT 0,
	recent INTEGER NOT NULL DEFAULT 0,
	kept_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Row numbers are never used twice, and the highest one never goes down, even
-- if an operator deletes rows with sqlite3(1): see store_guard.h.
-- name: schema_key_deleted
CREATE TRIGGER once_key_deleted AFTER DELETE ON once_key
WHEN OLD.id > (SELECT last_id FROM once_meta WHERE id = 1)
BEGIN
	UPDATE once_meta SET last_id = OLD.id WHERE id = 1;
END;

-- One row.  Store time is the time since boot plus shift, during the boot named
-- boot_id; last is the store time that was written last.  See clock.h.
-- name: schema_clock
CREATE TABLE once_clock(
	id INTEGER PRIMARY KEY CHECK(id = 1),
	boot_id TEXT NOT NULL,
	shift INTEGER NOT NULL,
	last INTEGER NOT NULL
) STRICT;

-- The outbox ---------------------------------------------------------------

-- The topics for which the configuration has an [effect] section.
-- name: schema_topic
CREATE TABLE once_topic(
	name TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each effect; scope, path and key are copies, because an effect
-- may outlive its key.
--
--   id              the order within a key; never used twice
--   effect_key      UUID, the same at each try
--   next_at         store time: it is not tried before this time
--   owner           the process that is trying it now
--   attempts        tries begun
--   reference       the output of the program that delivered it
--   created_at updated_at  wall clock, ms: for people only
--   payload         up to 2048 bytes; longer ones are in once_piece, because a
--                   change of any column of a row writes the whole row again.
--                   A delivered effect has NULL, and no pieces
--
-- One of the pending effects of a key has the turn: it has next_at, or owner.
-- The others have neither, so that a search for due effects does not step over
-- them.  The turn passes to the lowest number.
-- name: schema_effect
CREATE TABLE once_effect(
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	key_id INTEGER NOT NULL,
	effect_key TEXT NOT NULL,
	scope TEXT NOT NULL,
	path TEXT NOT NULL,
	key TEXT NOT NULL,
	topic TEXT NOT NULL,
	state TEXT NOT NULL DEFAULT 'pending'
	    CHECK(state IN ('pending', 'delivered', 'dead_letter')),
	attempts INTEGER NOT NULL DEFAULT 0,
	next_at INTEGER,
	owner INTEGER,
	reference BLOB,
	last_error TEXT,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	payload BLOB
) STRICT;

-- The effects of one key, in order.
-- name: schema_effect_of_key
CREATE INDEX once_effect_of_key ON once_effect(key_id, state);

-- The effects that are not delivered, for each topic in the order of next_at.
-- name: schema_effect_open
CREATE INDEX once_effect_open ON once_effect(state, topic, next_at)
    WHERE state <> 'delivered';

-- name: schema_effect_owner
CREATE INDEX once_effect_owner ON once_effect(owner)
    WHERE owner IS NOT NULL;

-- What a handler writes ----------------------------------------------------

-- A handler that shares the database writes through three views.  Its token is
-- the attempt's lease and the number of the row: 32 hexadecimal digits, "-",
-- and the number, so that no index on tokens has to be written.  The response
-- that it stores completes the key at once.  token and owner stay until
-- oncewrap has made that durable and confirms the key.  Until then expires_at
-- is counted from the latest time at which the attempt could have ended.
--
-- The triggers run in the handler's connection, with its settings.  So they use
-- no function but SQLite's own, and no LIKE.  Many languages bind a number as
-- text, so a status may be either.  RAISE(ROLLBACK) ends the whole transaction,
-- so that a handler which ignores the error has not committed the rest.

-- The number in the handler's token.
-- list: lease_id
CAST(substr(NEW.token, 34) AS INTEGER)

-- The key must have a lease with that token.
-- list: lease
SELECT RAISE(ROLLBACK, 'lease lost')
WHERE NOT EXISTS (SELECT 1 FROM once_key
    WHERE id = $lease_id AND NEW.token = token || '-' || id);

-- The time now (ms).
-- list: wall_clock
CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)

-- name: schema_checkpoint
CREATE VIEW once_checkpoint(token, recovery_point) AS
SELECT NULL, NULL WHERE 0;

-- name: schema_outbox
CREATE VIEW once_outbox(token, topic, payload) AS
SELECT NULL, NULL, NULL WHERE 0;

-- name: schema_response
CREATE VIEW once_response(token, status, headers, body) AS
SELECT NULL, NULL, NULL, NULL WHERE 0;

-- name: schema_checkpoint_insert
CREATE TRIGGER once_checkpoint_insert INSTEAD OF INSERT ON once_checkpoint
BEGIN
	$lease
	SELECT RAISE(ROLLBACK,
	    'once_checkpoint.recovery_point: not 1-63 printable ASCII bytes')
	WHERE typeof(NEW.recovery_point) <> 'text'
	    OR length(CAST(NEW.recovery_point AS BLOB)) NOT BETWEEN 1 AND 63
	    OR length(CAST(NEW.recovery_point AS BLOB))
		<> length(NEW.recovery_point)
	    OR NEW.recovery_point GLOB '*[^ -~]*';
	UPDATE once_key SET recovery_point = NEW.recovery_point,
	    updated_at = $wall_clock
	WHERE id = $lease_id;
END;

-- name: schema_outbox_insert
CREATE TRIGGER once_outbox_insert INSTEAD OF INSERT ON once_outbox
BEGIN
	$lease
	SELECT RAISE(ROLLBACK,
	    'once_outbox.topic: no effect of that name is configured')
	WHERE NOT EXISTS (SELECT 1 FROM once_topic WHERE name = NEW.topic);
	SELECT RAISE(ROLLBACK, 'once_outbox.payload: neither text nor a blob')
	WHERE typeof(NEW.payload) NOT IN ('text', 'blob');
	SELECT RAISE(ROLLBACK,
	    'once_outbox.payload: longer than 16777216 bytes')
	WHERE length(CAST(NEW.payload AS BLOB)) > 16777216;
	INSERT INTO once_effect(key_id, effect_key, scope, path, key, topic,
	    next_at, created_at, updated_at, payload)
	SELECT k.id,
	    lower(substr(r.hex, 1, 8) || '-' || substr(r.hex, 9, 4) || '-4'
		|| substr(r.hex, 14, 3) || '-'
		|| substr('89ab', 1 + (random() & 3), 1)
		|| substr(r.hex, 18, 3) || '-' || substr(r.hex, 21, 12)),
	    k.scope, k.path, k.key, NEW.topic,
	    CASE WHEN NOT EXISTS (SELECT 1 FROM once_effect e
		WHERE e.key_id = k.id AND e.state = 'pending') THEN 0 END,
	    r.now, r.now,
	    CASE WHEN length(CAST(NEW.payload AS BLOB)) <= 2048
		THEN CAST(NEW.payload AS BLOB) END
	FROM once_key k, (SELECT hex(randomblob(16)) AS hex,
	    $wall_clock AS now LIMIT 1) r
	WHERE k.id = $lease_id;
	INSERT INTO once_piece(id, body)
	SELECT 65536 * (70368744177664 + e.id) + p.i,
	    substr(CAST(NEW.payload AS BLOB), 131072 * (p.i - 1) + 1, 131072)
	FROM (SELECT max(id) AS id FROM once_effect) e, (
	    WITH RECURSIVE part(i) AS (
		SELECT 1 WHERE length(CAST(NEW.payload AS BLOB)) > 2048
		UNION ALL SELECT i + 1 FROM part
		WHERE 131072 * i < length(CAST(NEW.payload AS BLOB)))
	    SELECT i FROM part) p;
END;

-- The fields are lines as in a CGI response, each with LF or CRLF at its end;
-- the last line may lack it.  A line "a:b" is sent as "a: b" and CRLF: at most
-- three bytes more.
-- name: schema_response_insert
CREATE TRIGGER once_response_insert INSTEAD OF INSERT ON once_response
BEGIN
	$lease
	SELECT RAISE(ROLLBACK,
	    'once_response: this attempt has answered already')
	WHERE EXISTS (SELECT 1 FROM once_key
	    WHERE id = $lease_id
	    AND state = 'completed');
	SELECT RAISE(ROLLBACK,
	    'once_response.status: not an integer from 200 to 599')
	WHERE typeof(NEW.status) NOT IN ('integer', 'text')
	    OR CAST(CAST(NEW.status AS INTEGER) AS TEXT)
		<> CAST(NEW.status AS TEXT)
	    OR CAST(NEW.status AS INTEGER) NOT BETWEEN 200 AND 599;
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: neither text nor NULL')
	WHERE typeof(NEW.headers) NOT IN ('text', 'null');
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: a line is not "Name: value"')
	WHERE instr(CAST(NEW.headers AS BLOB), x'00') > 0;
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: more than 256 lines')
	WHERE length(NEW.headers)
	    - length(replace(NEW.headers, char(10), ''))
	    + (substr(NEW.headers, -1) <> char(10)) > 256;
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: longer than 65536 bytes')
	WHERE length(CAST(NEW.headers AS BLOB)) + 3 * (1 + length(NEW.headers)
	    - length(replace(NEW.headers, char(10), ''))) > 65536;
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: a line is not "Name: value"')
	WHERE EXISTS (SELECT 1 FROM (
		WITH RECURSIVE line(text, rest) AS (
		    SELECT NULL, CASE
			WHEN substr(h.text, -1) = char(10) THEN h.text
			ELSE h.text || char(10) END
		    FROM (SELECT replace(NEW.headers, char(13) || char(10),
			char(10)) AS text) h
		    WHERE h.text <> ''
		    UNION ALL
		    SELECT substr(rest, 1, instr(rest, char(10)) - 1),
			substr(rest, instr(rest, char(10)) + 1)
		    FROM line WHERE rest <> '')
		SELECT text FROM line WHERE text IS NOT NULL)
	    WHERE instr(text, ':') < 2
		OR substr(text, 1, instr(text, ':') - 1)
		    GLOB '*[^-!#$%&''*+.^_`|~0-9A-Za-z]*'
		OR substr(text, instr(text, ':'))
		    GLOB '*[' || char(1) || '-' || char(8) || char(10) || '-'
			|| char(31) || char(127) || ']*');
	SELECT RAISE(ROLLBACK,
	    'once_response.headers: a field that a handler must not send')
	WHERE EXISTS (SELECT 1 FROM (VALUES ('status:'), ('x-sendfile:'),
	    ('x-sendfile2:'), ('x-lighttpd-send-file:'), ('x-accel-redirect:'),
	    ('content-length:'), ('transfer-encoding:'), ('connection:'),
	    ('idempotent-replayed:'), ('idempotency-expires:'),
	    ('idempotency-outcome:'))
	    WHERE instr(char(10) || lower(NEW.headers),
		char(10) || column1) > 0);
	SELECT RAISE(ROLLBACK,
	    'once_response.body: neither text nor a blob nor NULL')
	WHERE typeof(NEW.body) NOT IN ('text', 'blob', 'null');
	SELECT RAISE(ROLLBACK, 'once_response.body: longer than 16777216 bytes')
	WHERE length(CAST(NEW.body AS BLOB)) > 16777216;
	UPDATE once_key SET state = 'completed', replayable = 1,
	    status = CAST(NEW.status AS INTEGER), kind = 0,
	    response_version = 2, reason = NULL, last_error = NULL,
	    headers = CAST(NEW.headers AS BLOB),
	    body_length = coalesce(length(CAST(NEW.body AS BLOB)), 0),
	    body = CASE WHEN length(CAST(NEW.body AS BLOB)) BETWEEN 1 AND 2048
		THEN CAST(NEW.body AS BLOB) END,
	    expires_at = locked_until + retention,
	    updated_at = $wall_clock
	WHERE id = $lease_id;
	INSERT INTO once_piece(id, body)
	SELECT 65536 * $lease_id + p.i,
	    substr(CAST(NEW.body AS BLOB), 131072 * (p.i - 1) + 1, 131072)
	FROM (
	    WITH RECURSIVE part(i) AS (
		SELECT 1 WHERE length(CAST(NEW.body AS BLOB)) > 2048
		UNION ALL SELECT i + 1 FROM part
		WHERE 131072 * i < length(CAST(NEW.body AS BLOB)))
	    SELECT i FROM part) p;
END;
