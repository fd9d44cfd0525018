-- Version 3: the writes of a handler in a transaction of its own, requests that
-- are accepted and run later, and the outbox.
--
--   resource        32 hexadecimal digits that name the key's status resource;
--                   NULL: it has none
--   accepted        the request is stored, and was answered with 202: oncewrap
--                   runs it without a retry
--   queued_at       store time: no worker runs it before this time; only while
--                   pending or failed_retryable, and accepted
--
-- A handler that shares the database writes through three views.  Its token is
-- the attempt's lease and the number of the row: 32 hexadecimal digits, "-",
-- and the number, so that no index on tokens has to be written.  The response
-- that it stores completes the key at once.  token and owner stay until
-- oncewrap has made that durable and seals the key.  Until then expires_at is
-- counted from the latest time at which the attempt could have ended.
--
-- The triggers run in the handler's connection, with its settings.  So they use
-- no function but SQLite's own, and no LIKE.  Many languages bind a number as
-- text, so a status may be either.  RAISE(ROLLBACK) ends the whole transaction,
-- so that a handler which ignores the error has not committed the rest.

-- name: v3_resource
ALTER TABLE once_key ADD COLUMN resource TEXT;

-- name: v3_accepted
ALTER TABLE once_key ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;

-- name: v3_queued_at
ALTER TABLE once_key ADD COLUMN queued_at INTEGER;

-- name: v3_resource_index
CREATE UNIQUE INDEX once_key_resource ON once_key(resource)
    WHERE resource IS NOT NULL;

-- name: v3_queue_index
CREATE INDEX once_key_queue ON once_key(queued_at)
    WHERE queued_at IS NOT NULL;

-- A dead owner leaves keys in progress, and answers that are not sealed.
-- name: v3_running_drop
DROP INDEX once_key_running;

-- name: v3_running_index
CREATE INDEX once_key_running ON once_key(owner) WHERE owner IS NOT NULL;

-- SQLite tests whether a row belongs to an index at each change of the row, and
-- builds a table from a list of more than two constants for each test.
-- name: v3_open_drop
DROP INDEX once_key_open;

-- name: v3_open_index
CREATE INDEX once_key_open ON once_key(state, updated_at)
    WHERE state = 'pending' OR state = 'unknown' OR state = 'dead_letter';

-- The topics for which the configuration has an [effect] section.
-- name: v3_topic
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
--   payload         up to 2048 bytes; longer ones are in once_payload.  A
--                   delivered effect has NULL, and no row in once_payload
--
-- One of the pending effects of a key has the turn: it has next_at, or owner.
-- The others have neither, so that a search for due effects does not step over
-- them.  The turn passes to the lowest number.
-- name: v3_effect
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

-- Large payloads have rows of their own, because a change of any column of a
-- row writes the whole row again.
-- name: v3_payload
CREATE TABLE once_payload(
	effect_id INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;

-- The effects of one key, in order.
-- name: v3_effect_key
CREATE INDEX once_effect_of_key ON once_effect(key_id, state);

-- The effects that are not delivered, for each topic in the order of next_at.
-- name: v3_effect_open
CREATE INDEX once_effect_open ON once_effect(state, topic, next_at)
    WHERE state <> 'delivered';

-- name: v3_effect_owner
CREATE INDEX once_effect_owner ON once_effect(owner)
    WHERE owner IS NOT NULL;

-- name: v3_checkpoint
CREATE VIEW once_checkpoint(token, recovery_point) AS
SELECT NULL, NULL WHERE 0;

-- name: v3_outbox
CREATE VIEW once_outbox(token, topic, payload) AS
SELECT NULL, NULL, NULL WHERE 0;

-- name: v3_response
CREATE VIEW once_response(token, status, headers, body) AS
SELECT NULL, NULL, NULL, NULL WHERE 0;

-- name: v3_checkpoint_insert
CREATE TRIGGER once_checkpoint_insert INSTEAD OF INSERT ON once_checkpoint
BEGIN
	SELECT RAISE(ROLLBACK, 'lease lost')
	WHERE NOT EXISTS (SELECT 1 FROM once_key
	    WHERE id = CAST(substr(NEW.token, 34) AS INTEGER)
	    AND NEW.token = token || '-' || id);
	SELECT RAISE(ROLLBACK,
	    'once_checkpoint.recovery_point: not 1-63 printable ASCII bytes')
	WHERE typeof(NEW.recovery_point) <> 'text'
	    OR length(CAST(NEW.recovery_point AS BLOB)) NOT BETWEEN 1 AND 63
	    OR length(CAST(NEW.recovery_point AS BLOB))
		<> length(NEW.recovery_point)
	    OR NEW.recovery_point GLOB '*[^ -~]*';
	UPDATE once_key SET recovery_point = NEW.recovery_point,
	    updated_at = CAST((julianday('now') - 2440587.5) * 86400000
		AS INTEGER)
	WHERE id = CAST(substr(NEW.token, 34) AS INTEGER);
END;

-- name: v3_outbox_insert
CREATE TRIGGER once_outbox_insert INSTEAD OF INSERT ON once_outbox
BEGIN
	SELECT RAISE(ROLLBACK, 'lease lost')
	WHERE NOT EXISTS (SELECT 1 FROM once_key
	    WHERE id = CAST(substr(NEW.token, 34) AS INTEGER)
	    AND NEW.token = token || '-' || id);
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
	    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
		AS now LIMIT 1) r
	WHERE k.id = CAST(substr(NEW.token, 34) AS INTEGER);
	INSERT INTO once_payload(effect_id, body)
	SELECT last_insert_rowid(), CAST(NEW.payload AS BLOB)
	WHERE length(CAST(NEW.payload AS BLOB)) > 2048;
END;

-- The fields are lines as in a CGI response, each with LF or CRLF at its end;
-- the last line may lack it.  A line "a:b" is sent as "a: b" and CRLF: at most
-- three bytes more.
-- name: v3_response_insert
CREATE TRIGGER once_response_insert INSTEAD OF INSERT ON once_response
BEGIN
	SELECT RAISE(ROLLBACK, 'lease lost')
	WHERE NOT EXISTS (SELECT 1 FROM once_key
	    WHERE id = CAST(substr(NEW.token, 34) AS INTEGER)
	    AND NEW.token = token || '-' || id);
	SELECT RAISE(ROLLBACK,
	    'once_response: this attempt has answered already')
	WHERE EXISTS (SELECT 1 FROM once_key
	    WHERE id = CAST(substr(NEW.token, 34) AS INTEGER)
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
	UPDATE once_key SET state = 'completed', kept = 1,
	    status = CAST(NEW.status AS INTEGER), kind = 0,
	    response_version = 2, reason = NULL, last_error = NULL,
	    headers = CAST(NEW.headers AS BLOB),
	    body_length = coalesce(length(CAST(NEW.body AS BLOB)), 0),
	    body = CASE WHEN length(CAST(NEW.body AS BLOB)) BETWEEN 1 AND 2048
		THEN CAST(NEW.body AS BLOB) END,
	    expires_at = locked_until + retention,
	    updated_at = CAST((julianday('now') - 2440587.5) * 86400000
		AS INTEGER)
	WHERE id = CAST(substr(NEW.token, 34) AS INTEGER);
	INSERT INTO once_body(key_id, body)
	SELECT CAST(substr(NEW.token, 34) AS INTEGER), CAST(NEW.body AS BLOB)
	WHERE length(CAST(NEW.body AS BLOB)) > 2048;
END;
