-- The key store in PostgreSQL 13 or later.  An ordinary role runs these
-- statements in one transaction, in its current schema, and owns all of it.
-- All names begin with once_, because the schema may have other tables.
--
-- A change of this file needs another version (see once_meta): a store of
-- another version is refused.
--
-- Differences from ../schema.sql, and why:
--
--   * What a client or a program chose is bytea: a path or a scope may be any
--     bytes, and the encoding of the database may be any.  bytea is also
--     ordered by its bytes, whatever the collation is.
--   * An index entry has at most 2700 bytes or so, and a path or a scope may
--     be longer.  So indexes hold numbers made from them.
--   * Times are the server's: milliseconds since 1970.  So a time for people
--     and a deadline have the same clock, except while time stands still (see
--     once_meta).
--   * Tables that requests write have no CHECK: each statement would parse it
--     anew, which was a third of the server's time.  Builds with
--     --enable-record-checks have those of checks.sql, and doctor reads all
--     rows.

-- The functions below have this search_path for ever.  Temporary tables come
-- last, or a caller could put one in the place of ours.
-- name: schema_path
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp',
    true);

-- One row.
--
--   version  of this file
--   secret   of the store: for scopes, digests and downstream keys
--   losses   when an operator last accepted that the store lacks commits, after
--            a standby without them was promoted, or after a restore (ms).  A
--            process that has noticed the loss waits until the number grows,
--            also beyond one that a restore has taken back
--
--   time_limit
--            store time is the server's clock, but no more than that (ms).
--            Processes move it along with the clock.  If the clock jumps ahead,
--            they do not, and store time stands still.  The default: no
--            process has used the store yet
--   held_at  the server's clock when a process found that it had jumped ahead;
--            0: time goes on
--
-- No transaction of a request writes this row.
-- name: schema_meta
CREATE TABLE once_meta(
	id bigint PRIMARY KEY CHECK(id = 1),
	version bigint NOT NULL,
	secret bytea NOT NULL,
	losses bigint NOT NULL DEFAULT 0,
	time_limit bigint NOT NULL DEFAULT 9223372036854775807,
	held_at bigint NOT NULL DEFAULT 0
);

-- Numbers are never used twice.
-- name: schema_key_id
CREATE SEQUENCE once_key_id MAXVALUE 70368744177664;

-- name: schema_effect_id
CREATE SEQUENCE once_effect_id;

-- name: schema_fingerprint_spec_id
CREATE SEQUENCE once_fingerprint_spec_id;

-- One row for each process that uses the store.
--
--   id       never used twice: the leases of a dead process stay dead.  The
--            process also holds the lock of that number in a file of its host,
--            and takes the lock before it inserts the row
--   host     the machine's id (see machine-id(5)) and the mark of the folder
--            (see postgres_host.c): there the lock tells whether the process
--            lives
--   boot     the host's boot (see postgres_host.h): of another boot the process
--            is gone, or on a host with a copy of the disk
--   pid      for people
--   beat     grows while the process has a connection.  A process of another
--            host is suspected if it has not grown for owner_timeout of the
--            observer's clock
--   beat_at  the time of that, for people, and to forget hosts that never come
--            back
--
-- While any transaction in the server is open, such as that of pg_dump, it
-- keeps all versions of a row that have been since, and a search by an index
-- steps over them.  So what changes all the time is part of the key, and grows:
-- the newest version is the last one of the index.  That is so in once_session
-- and once_kept, too.
-- name: schema_owner
CREATE TABLE once_owner(
	id bigint NOT NULL,
	host text NOT NULL,
	boot text NOT NULL,
	pid bigint NOT NULL,
	beat bigint NOT NULL DEFAULT 0,
	beat_at bigint NOT NULL,
	PRIMARY KEY(id, beat)
);

-- One row for each process that writes, and one for each of its connections.
--
--   owner   the process
--   slot    the connection's place in its pool; -1: the row of the process,
--           which never changes.  The transaction that made it (xmin) tells
--           whether the store is the one that the process knows: a restore
--           makes the row anew
--   seq     the number of the connection's last transaction.  After a lost
--           connection its process asks here whether the COMMIT was carried out
--
-- name: schema_session
CREATE TABLE once_session(
	owner bigint NOT NULL,
	slot bigint NOT NULL,
	seq bigint NOT NULL,
	PRIMARY KEY(owner, slot, seq)
);

-- The bytes of all stored requests are the sum of these rows.  A connection
-- adds to one of them and subtracts from it, by the number of its server
-- process, so that hardly two transactions wait for each other.  A row may be
-- negative.
--
--   seq      grows with each change
-- name: schema_kept
CREATE TABLE once_kept(
	stripe bigint NOT NULL,
	seq bigint NOT NULL DEFAULT 0,
	bytes bigint NOT NULL DEFAULT 0,
	PRIMARY KEY(stripe, seq)
);

-- name: schema_kept_stripes
INSERT INTO once_kept(stripe) SELECT generate_series(0, 31);

-- Specs are long, few, and the same for many keys.  Number 0 is empty.
--
--   digest   SHA-256 of the text, which may be too long for an index
-- name: schema_fingerprint_spec
CREATE TABLE once_fingerprint_spec(
	id bigint PRIMARY KEY DEFAULT nextval('once_fingerprint_spec_id'),
	digest bytea NOT NULL UNIQUE CHECK(octet_length(digest) = 32),
	text bytea NOT NULL
);

-- The empty one; the digest is that of no bytes.
-- name: schema_no_fingerprint
INSERT INTO once_fingerprint_spec(id, digest, text) VALUES (0,
    '\xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '');

-- One row for each key.  The columns of fixed length come first, so that no
-- bytes are lost between them.
--
--   id              never used twice.  It is drawn before the row is inserted,
--                   and tells the order of creation only roughly
--   caller          whom limits count the key for: see scope.h
--   owner           the process that holds the lease; while there is a token
--   locked_until    the deadline of the attempt; while there is a token
--   fingerprint_spec  the way the fingerprint was made; 0: the key was released
--                   because nothing happened, and takes the fingerprint of the
--                   request that runs next
--   retention       ms, from the end of an attempt; 0 once it is completed
--   created_at updated_at  for people
--   expires_at      past it the key counts as deleted
--   expired_retention  how long the key stays as 'expired' (ms), past its
--                   retention; 0: it does not
--   attempt_lock lock_file  name the processes of the attempt: the file that
--                   they hold open, and a number that the owner's host and its
--                   lock file have; only if the key may be resumed or
--                   reconciled, while in_progress, and while unknown until all
--                   processes of the attempt are known to have exited.  Only
--                   the host that made the number can tell that
--   reconcile_delay ms from becoming unknown to the first try to reconcile;
--                   NULL: the key has no reconciler
--   reconcile_after time of the next try; only while unknown
--   queued_at       no worker runs it before this time; only while pending or
--                   failed_retryable, and accepted
--   body_length     bytes of the response's body, wherever it is
--   downstream      UUID, the same for all attempts
--   cookie          HMAC of the Cookie field, for a key that came from a form
--                   or a query and has an empty scope
--   instance        the UUID of the instance of the last attempt's request
--   attempt         attempts begun
--   reconcile_attempts  tries to reconcile begun
--   status kind     of the stored response
--   response_version  how headers and body are encoded (see rows.h)
--   resume          a lost key is released; else it becomes unknown
--   accepted        the request is stored, and was answered with 202: oncewrap
--                   runs it without a retry
--   replayable      the response can be replayed
--   state           see record.c
--   digest          16 bytes: the first 4 of HMAC-SHA-256 of the key, and the
--                   first 12 of that of scope, path and key, each part with its
--                   length before it, under the secret.  So an operator's
--                   search for a key without its scope is a range of the index.
--                   A statement that finds a row by it compares the texts, too
--   fingerprint     of the request
--   key path scope  the identity
--   peer            the client's address, as the web server said it.  Like
--                   caller and cookie it is of the last attempt's request
--   method          of the same request; NULL: POST
--   token           of the lease, 32 hexadecimal digits; while in_progress, and
--                   while completed by the attempt itself but not confirmed
--   late_token      the token of an attempt whose process seemed to be gone,
--                   because another host had not seen it move.  While the key
--                   is unknown that attempt can still record its outcome
--   resource        32 hexadecimal digits that name the key's status resource;
--                   NULL: it has none
--   recovery_point  what the last attempt said that it had reached; NULL:
--                   'started'
--   last_error      why the last attempt did not complete; for people only
--   reason headers body  the stored response.  A body above 2048 bytes is in
--                   once_piece
-- name: schema_key
CREATE TABLE once_key(
	id bigint PRIMARY KEY,
	caller bigint NOT NULL DEFAULT 0,
	owner bigint,
	locked_until bigint,
	fingerprint_spec bigint NOT NULL,
	retention bigint NOT NULL,
	created_at bigint NOT NULL,
	updated_at bigint NOT NULL,
	expires_at bigint,
	expired_retention bigint NOT NULL DEFAULT 0,
	attempt_lock bigint,
	lock_file bigint,
	reconcile_delay bigint,
	reconcile_after bigint,
	queued_at bigint,
	body_length bigint,
	downstream uuid NOT NULL,
	cookie uuid,
	instance uuid,
	attempt integer NOT NULL,
	reconcile_attempts integer NOT NULL DEFAULT 0,
	status smallint,
	kind smallint,
	response_version smallint,
	resume boolean NOT NULL DEFAULT false,
	accepted boolean NOT NULL DEFAULT false,
	replayable boolean NOT NULL DEFAULT false,
	state text COLLATE "C" NOT NULL,
	digest bytea NOT NULL UNIQUE,
	fingerprint bytea NOT NULL,
	key bytea NOT NULL,
	path bytea NOT NULL,
	scope bytea NOT NULL,
	peer bytea,
	method text COLLATE "C",
	token text COLLATE "C",
	late_token text COLLATE "C",
	resource text COLLATE "C",
	recovery_point text COLLATE "C",
	last_error bytea,
	reason bytea,
	headers bytea,
	body bytea
);

-- The leases, which are few, by their deadlines: so a search leaves out those
-- that ended long ago, which a long transaction keeps in the index.
-- name: schema_key_running
CREATE INDEX once_key_running ON once_key(locked_until)
    WHERE owner IS NOT NULL;

-- Keys that end by age, oldest first.
-- name: schema_key_expiry
CREATE INDEX once_key_expiry ON once_key(expires_at)
    WHERE expires_at IS NOT NULL;

-- Keys that wait, or have an open outcome; a healthy store has few.  Without
-- updated_at, so that a handler's checkpoint needs no new index entries.
-- name: schema_key_open
CREATE INDEX once_key_open ON once_key(state)
    WHERE state IN ('pending', 'unknown', 'dead_letter');

-- Keys with an open outcome, by caller: to count them, and to reconcile those
-- of each caller in turn.
-- name: schema_key_caller
CREATE INDEX once_key_caller ON once_key(caller, reconcile_after)
    WHERE state IN ('unknown', 'dead_letter');

-- name: schema_key_reconcile
CREATE INDEX once_key_reconcile ON once_key(reconcile_after)
    WHERE reconcile_after IS NOT NULL;

-- name: schema_key_resource
CREATE UNIQUE INDEX once_key_resource ON once_key(resource)
    WHERE resource IS NOT NULL;

-- name: schema_key_queue
CREATE INDEX once_key_queue ON once_key(queued_at)
    WHERE queued_at IS NOT NULL;

-- The stored request of a key that may have to be reconciled: NAME=VALUE
-- strings, each with a NUL, and the body.  It has no credentials, and is erased
-- when the outcome is known.  A large body is in once_piece.
--
--   body_length     bytes of the whole body
--   pieces          the number of its pieces; 0: it is in this row
-- name: schema_request
CREATE TABLE once_request(
	key_id bigint PRIMARY KEY,
	environment bytea NOT NULL,
	body bytea NOT NULL,
	body_length bigint NOT NULL,
	pieces bigint NOT NULL
);

-- A large body is stored in pieces of 1048576 bytes, so that no statement is
-- large, and libpq has no copy of all of it.  The transaction that stores what
-- they belong to stores them.
--
--   number   that of the key, for its answer; its negative, for its request; or
--            2^46 + the number of an effect, for its payload
--   piece    from 1 on
-- name: schema_piece
CREATE TABLE once_piece(
	number bigint NOT NULL,
	piece integer NOT NULL,
	body bytea NOT NULL,
	PRIMARY KEY(number, piece)
);

-- The last attempt of a key, if its answer was not accepted, or if it wrote to
-- stderr: for people only.  It is there until a later attempt ends, or the key
-- is deleted.
--
--   exit_status signal  how the program ended by itself; -1 and 0: it did not
--   length   bytes of the whole output
--   output   its first bytes; NULL: the answer was accepted
--   errors   the last bytes that it wrote to stderr
-- name: schema_refused
CREATE TABLE once_refused(
	key_id bigint PRIMARY KEY,
	attempt integer NOT NULL,
	exit_status integer NOT NULL,
	signal integer NOT NULL,
	length bigint NOT NULL,
	output bytea,
	errors bytea NOT NULL
);

-- The outbox ---------------------------------------------------------------

-- The topics for which the configuration has an [effect] section.
-- name: schema_topic
CREATE TABLE once_topic(
	name bytea PRIMARY KEY
	    CHECK(octet_length(name) BETWEEN 1 AND 2000)
);

-- One row for each effect; scope, path and key are copies, because an effect
-- may outlive its key.
--
--   id              the order within a key; never used twice
--   next_at         it is not tried before this time
--   owner           the process that is trying it now
--   created_at updated_at  for people
--   effect_key      UUID, the same at each try
--   attempts        tries begun
--   reference       the output of the program that delivered it
--   payload         up to 2048 bytes; longer ones are in once_piece.  A
--                   delivered effect has NULL, and no pieces
--
-- One of the pending effects of a key has the turn: it has next_at, or owner.
-- The others have neither, so that a search for due effects does not step over
-- them.  The turn passes to the lowest number.
-- name: schema_effect
CREATE TABLE once_effect(
	id bigint PRIMARY KEY DEFAULT nextval('once_effect_id'),
	key_id bigint NOT NULL,
	next_at bigint,
	owner bigint,
	created_at bigint NOT NULL,
	updated_at bigint NOT NULL,
	effect_key uuid NOT NULL,
	attempts integer NOT NULL DEFAULT 0,
	state text COLLATE "C" NOT NULL DEFAULT 'pending',
	scope bytea NOT NULL,
	path bytea NOT NULL,
	key bytea NOT NULL,
	topic bytea NOT NULL,
	reference bytea,
	last_error bytea,
	payload bytea
);

-- The effects of one key, in order.
-- name: schema_effect_of_key
CREATE INDEX once_effect_of_key ON once_effect(key_id, state, id);

-- The effects that are not delivered, for each topic in the order of next_at.
-- name: schema_effect_open
CREATE INDEX once_effect_open ON once_effect(state, topic, next_at)
    WHERE state <> 'delivered';

-- name: schema_effect_owner
CREATE INDEX once_effect_owner ON once_effect(owner)
    WHERE owner IS NOT NULL;

-- What a handler writes ----------------------------------------------------

-- A handler that shares the store calls three functions, in a transaction of
-- its own in the same database.  They run with the rights of the store's role,
-- so that the handler's role needs no right to a table.  Its token is the
-- attempt's lease and the number of the row: 32 hexadecimal digits, "-", and
-- the number.  The response that it stores completes the key at once.  token
-- and owner stay until oncewrap confirms the key.  Until then expires_at is
-- counted from the latest time at which the attempt could have ended.
--
-- Each function locks the row of the key until the handler's transaction ends:
-- no other process ends the lease between the check and the COMMIT.  An error
-- ends the transaction, so that a handler which ignores the error has not
-- committed the rest.
--
-- The caller chooses many settings of the session.  So every name is found in
-- the path that is set above, every argument of a function or an operator has
-- exactly the type that pg_catalog has one for, text is compared by its bytes,
-- and no text has a backslash.

-- Store time (ms).
-- list: store_time
(SELECT least(floor(extract(epoch FROM clock_timestamp())::numeric
    * 1000::numeric)::bigint, m.time_limit)
FROM once_meta m WHERE m.id = 1::bigint)

-- The number of the key and its token; NULL: the argument is no token.
-- list: lease_of_token
lease bigint := CASE WHEN token COLLATE pg_catalog."C"
    ~ '^[0-9a-f]{32}-[1-9][0-9]{0,13}$'::text
    THEN substr(token, 34)::bigint END;
lease_token text := left(token, 32);

-- name: schema_checkpoint
CREATE FUNCTION once_checkpoint(token text, recovery_point text)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
	$lease_of_token
BEGIN
	SELECT k.id INTO lease FROM once_key k
	WHERE k.id = lease AND k.token = lease_token
	FOR NO KEY UPDATE;
	IF lease IS NULL THEN
		RAISE EXCEPTION 'lease lost';
	END IF;
	IF recovery_point IS NULL OR recovery_point COLLATE pg_catalog."C"
	    !~ '^[ -~]{1,63}$'::text THEN
		RAISE EXCEPTION
	    'once_checkpoint.recovery_point: not 1-63 printable ASCII bytes';
	END IF;
	UPDATE once_key k SET recovery_point = once_checkpoint.recovery_point,
	    updated_at = $store_time
	WHERE k.id = lease;
END $$;

-- Only the first pending effect of a key gets the turn.  The last one may just
-- be delivered by another transaction, which sees no effect that it could pass
-- the turn to.  So this waits for the end of that transaction, and looks again.
-- name: schema_outbox
CREATE FUNCTION once_outbox(token text, topic text, payload bytea)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
	$lease_of_token
	topic_name bytea := convert_to(topic, 'UTF8'::name);
	effect bigint;
BEGIN
	UPDATE once_key k SET updated_at = $store_time
	WHERE k.id = lease AND k.token = lease_token
	RETURNING k.id INTO lease;
	IF lease IS NULL THEN
		RAISE EXCEPTION 'lease lost';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM once_topic t
	    WHERE t.name = topic_name) THEN
		RAISE EXCEPTION
		    'once_outbox.topic: no effect of that name is configured';
	END IF;
	IF payload IS NULL THEN
		RAISE EXCEPTION 'once_outbox.payload: neither text nor a blob';
	END IF;
	IF octet_length(payload) > 16777216 THEN
		RAISE EXCEPTION
		    'once_outbox.payload: longer than 16777216 bytes';
	END IF;
	PERFORM e.id FROM once_effect e
	WHERE e.key_id = lease AND e.state = 'pending'
	ORDER BY e.id LIMIT 1 FOR UPDATE;
	INSERT INTO once_effect(key_id, effect_key, scope, path, key, topic,
	    next_at, created_at, updated_at, payload)
	SELECT k.id, gen_random_uuid(), k.scope, k.path, k.key, topic_name,
	    CASE WHEN NOT EXISTS (SELECT 1 FROM once_effect e
		WHERE e.key_id = k.id AND e.state = 'pending')
		THEN 0::bigint END,
	    k.updated_at, k.updated_at,
	    CASE WHEN octet_length(once_outbox.payload) <= 2048
		THEN once_outbox.payload END
	FROM once_key k WHERE k.id = lease
	RETURNING id INTO effect;
	IF octet_length(once_outbox.payload) > 2048 THEN
		INSERT INTO once_piece(number, piece, body)
		SELECT 70368744177664 + effect, p.i,
		    substr(once_outbox.payload, 1048576 * (p.i - 1) + 1,
			1048576)
		FROM generate_series(1,
		    (octet_length(once_outbox.payload) + 1048575) / 1048576)
		    AS p(i);
	END IF;
END $$;

-- The fields are lines as in a CGI response, each with LF or CRLF at its end;
-- the last line may lack it.  A line "a:b" is sent as "a: b" and CRLF: at most
-- three bytes more.
-- name: schema_response
CREATE FUNCTION once_response(token text, status integer, headers text,
    body bytea)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
	$lease_of_token
	lf text := chr(10);
	ends integer := length(headers)
	    - length(replace(headers, lf, ''::text));
	lines text := replace(headers, chr(13) || lf, lf);
	line text := '^[-!#$%&''*+.^_`|~0-9A-Za-z]+:[^'::text || chr(1)
	    || '-'::text || chr(8) || lf || '-'::text || chr(31) || chr(127)
	    || ']*$'::text;
	was text;
BEGIN
	SELECT k.id, k.state INTO lease, was FROM once_key k
	WHERE k.id = lease AND k.token = lease_token
	FOR NO KEY UPDATE;
	IF lease IS NULL THEN
		RAISE EXCEPTION 'lease lost';
	END IF;
	IF was = 'completed'::text THEN
		RAISE EXCEPTION
		    'once_response: this attempt has answered already';
	END IF;
	IF status IS NULL OR status < 200 OR status > 599 THEN
		RAISE EXCEPTION
		    'once_response.status: not an integer from 200 to 599';
	END IF;
	IF right(headers, 1) <> lf THEN
		ends := ends + 1;
	ELSE
		lines := left(lines, -1);
	END IF;
	IF ends > 256 THEN
		RAISE EXCEPTION 'once_response.headers: more than 256 lines';
	END IF;
	IF octet_length(convert_to(headers, 'UTF8'::name)) + 3 * (1
	    + length(headers) - length(replace(headers, lf, ''::text)))
	    > 65536 THEN
		RAISE EXCEPTION
		    'once_response.headers: longer than 65536 bytes';
	END IF;
	IF headers <> ''::text AND (lines = ''::text OR EXISTS (SELECT 1
	    FROM pg_catalog.unnest(string_to_array(lines, lf)) AS l(text)
	    WHERE l.text COLLATE pg_catalog."C" !~ line)) THEN
		RAISE EXCEPTION
		    'once_response.headers: a line is not "Name: value"';
	END IF;
	IF EXISTS (SELECT 1
	    FROM pg_catalog.unnest(ARRAY['status:', 'x-sendfile:',
	    'x-sendfile2:', 'x-lighttpd-send-file:', 'x-accel-redirect:',
	    'content-length:', 'transfer-encoding:', 'connection:',
	    'idempotent-replayed:', 'idempotency-expires:',
	    'idempotency-outcome:']::text[]) AS f(name)
	    WHERE strpos(lf || lower(headers COLLATE pg_catalog."C"),
		lf || f.name) > 0) THEN
		RAISE EXCEPTION
	    'once_response.headers: a field that a handler must not send';
	END IF;
	IF octet_length(body) > 16777216 THEN
		RAISE EXCEPTION
		    'once_response.body: longer than 16777216 bytes';
	END IF;
	UPDATE once_key k SET state = 'completed', replayable = true,
	    status = once_response.status::smallint, kind = 0::smallint,
	    response_version = 2::smallint, reason = NULL, last_error = NULL,
	    headers = convert_to(once_response.headers, 'UTF8'::name),
	    body_length = coalesce(octet_length(once_response.body), 0)::bigint,
	    body = CASE WHEN octet_length(once_response.body) > 0
		AND octet_length(once_response.body) <= 2048
		THEN once_response.body END,
	    expires_at = k.locked_until + k.retention,
	    updated_at = $store_time
	WHERE k.id = lease;
	IF octet_length(once_response.body) > 2048 THEN
		INSERT INTO once_piece(number, piece, body)
		SELECT lease, p.i,
		    substr(once_response.body, 1048576 * (p.i - 1) + 1, 1048576)
		FROM generate_series(1,
		    (octet_length(once_response.body) + 1048575) / 1048576)
		    AS p(i);
	END IF;
END $$;

-- No role may call them but those of the statement grant (queries.sql).
-- name: schema_functions_private
REVOKE ALL ON FUNCTION once_checkpoint(text, text),
    once_outbox(text, text, bytea), once_response(text, integer, text, bytea)
    FROM PUBLIC;

-- The tables hold secrets, whatever the default privileges of the role are.
-- name: schema_tables_private
REVOKE ALL ON once_meta, once_owner, once_session, once_kept,
    once_fingerprint_spec,
    once_key, once_request, once_piece, once_refused, once_topic, once_effect
    FROM PUBLIC;
