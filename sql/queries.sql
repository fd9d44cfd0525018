-- Every statement that the store makes.  States stand as literals, so that
-- the partial indexes serve; a change of state names the state it expects.

-- A new database, and store time ------------------------------------------

-- name: meta_new
INSERT INTO once_meta(id, secret) VALUES (1, ?1);

-- name: meta_secret
SELECT secret FROM once_meta WHERE id = 1;

-- name: clock_new
INSERT INTO once_clock(id, boot_id, shift, last) VALUES (1, ?1, ?2, ?3);

-- name: clock_get
SELECT boot_id, shift, last FROM once_clock WHERE id = 1;

-- name: clock_shift
UPDATE once_clock SET boot_id = ?1, shift = ?2 WHERE id = 1;

-- Time never goes back, and a commit is made for it only now and then.
-- name: clock_last
UPDATE once_clock SET last = ?1 WHERE id = 1 AND last < ?1 - ?2;

-- A commit that is only there to have been made: see committer.c.  It must
-- change something, or no page is written.
-- name: clock_touch
UPDATE once_clock SET last = max(last + 1, ?1) WHERE id = 1;

-- Reading -----------------------------------------------------------------

-- name: find
SELECT k.id, k.state, k.attempt, k.token, k.fingerprint, r.text,
    k.downstream, k.expires_at, k.updated_at, k.status, k.kept,
    k.recovery_point
FROM once_key k JOIN once_recipe r ON r.id = k.recipe
WHERE k.key = ?1 AND k.path = ?2 AND k.scope = ?3;

-- name: answer
SELECT status, reason, kind, headers, body, body_length, response_version
FROM once_key WHERE id = ?1 AND state = 'completed' AND kept = 1;

-- Reserving ---------------------------------------------------------------

-- name: recipe_find
SELECT id FROM once_recipe WHERE text = ?1;

-- name: recipe_new
INSERT INTO once_recipe(text) VALUES (?1) RETURNING id;

-- A number that no key has had: the row that an answer is fetched by must not
-- become another caller's row in between.
-- name: new_id
SELECT 1 + max(last_id, (SELECT coalesce(max(id), 0) FROM once_key))
FROM once_meta WHERE id = 1;

-- name: reserve_new
INSERT INTO once_key(id, key, path, scope, state, attempt, token, owner,
    locked_until, fingerprint, recipe, downstream, on_crash, retention,
    created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, 'in_progress', 1, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
    ?13, ?13);

-- name: reserve_again
UPDATE once_key SET state = 'in_progress', attempt = attempt + 1, token = ?3,
    owner = ?4, locked_until = ?5, on_crash = ?6, retention = ?7,
    updated_at = ?8, expires_at = NULL
WHERE id = ?1 AND state = 'failed_retryable' AND attempt = ?2;

-- name: delete_past
DELETE FROM once_key
WHERE id = ?1 AND state IN ('completed', 'failed_retryable')
    AND expires_at <= ?2;

-- name: delete_body
DELETE FROM once_body WHERE key_id = ?1;

-- Settling ----------------------------------------------------------------

-- name: settle_completed
UPDATE once_key SET state = 'completed', token = NULL, owner = NULL,
    locked_until = NULL, updated_at = ?3, expires_at = ?4, kept = ?5,
    status = ?6, kind = ?7, response_version = ?8, body_length = ?9,
    last_error = ?10, reason = ?11, headers = ?12, body = ?13
WHERE id = ?1 AND state = 'in_progress' AND token = ?2;

-- name: settle_released
UPDATE once_key SET state = 'failed_retryable', token = NULL, owner = NULL,
    locked_until = NULL, updated_at = ?3, expires_at = ?4, last_error = ?5
WHERE id = ?1 AND state = 'in_progress' AND token = ?2;

-- name: settle_unknown
UPDATE once_key SET state = 'unknown', token = NULL, owner = NULL,
    locked_until = NULL, updated_at = ?3, expires_at = NULL, last_error = ?4
WHERE id = ?1 AND state = 'in_progress' AND token = ?2;

-- name: body_new
INSERT INTO once_body(key_id, body) VALUES (?1, zeroblob(?2));

-- Passes ------------------------------------------------------------------

-- name: sweep_owner
SELECT owner FROM once_key WHERE state = 'in_progress' AND owner > ?1
ORDER BY owner LIMIT 1;

-- name: sweep_row
SELECT id, token, scope, path, key FROM once_key
WHERE state = 'in_progress' AND owner = ?1 LIMIT 1;

-- name: reap_rows
SELECT id, body_length FROM once_key
WHERE state IN ('completed', 'failed_retryable') AND expires_at <= ?1
ORDER BY expires_at LIMIT ?2;

-- name: reap_mark
UPDATE once_meta SET last_id = (SELECT max(id) FROM once_key)
WHERE id = 1 AND last_id < (SELECT max(id) FROM once_key);

-- name: free_pages
PRAGMA freelist_count;

-- name: all_pages
PRAGMA page_count;

-- name: vacuum_step
PRAGMA incremental_vacuum(512);

-- For operators -----------------------------------------------------------

-- name: list
SELECT id, scope, path, key, state, attempt, status, recovery_point,
    downstream, created_at, updated_at, locked_until, expires_at, last_error
FROM once_key
WHERE id > ?1 AND (?2 IS NULL OR scope = ?2) AND (?3 IS NULL OR path = ?3)
    AND (?4 IS NULL OR state = ?4) AND created_at <= ?5
ORDER BY id LIMIT ?6;

-- name: list_key
SELECT id, scope, path, key, state, attempt, status, recovery_point,
    downstream, created_at, updated_at, locked_until, expires_at, last_error
FROM once_key
WHERE key = ?7 AND id > ?1 AND (?2 IS NULL OR scope = ?2)
    AND (?3 IS NULL OR path = ?3) AND (?4 IS NULL OR state = ?4)
    AND created_at <= ?5
ORDER BY id LIMIT ?6;

-- name: counts
-- scan: counts every key, when an operator asks
SELECT state, count(*), min(updated_at), sum(body_length)
FROM once_key GROUP BY state;

-- name: integrity
SELECT integrity_check FROM pragma_integrity_check(1);

-- name: orphan_bodies
-- scan: looks at every large body, when an operator asks
SELECT count(*) FROM once_body b
WHERE NOT EXISTS (SELECT 1 FROM once_key k WHERE k.id = b.key_id);

-- name: missing_bodies
-- scan: looks at every key, when an operator asks
SELECT count(*) FROM once_key k
WHERE k.kept = 1 AND k.body IS NULL AND k.body_length > 0
    AND NOT EXISTS (SELECT 1 FROM once_body b WHERE b.key_id = k.id);

-- name: owner_count
SELECT count(*) FROM once_key WHERE state = 'in_progress' AND owner = ?1;

-- For who watches it -------------------------------------------------------

-- name: gauge_running
SELECT count(*) FROM once_key WHERE state = 'in_progress' AND owner > 0;

-- name: gauge_open
SELECT state, count(*), min(updated_at) FROM once_key
WHERE state IN ('pending', 'unknown', 'dead_letter') GROUP BY state;

-- Walks an index, from one row that was seen to the next.
-- name: tally
SELECT expires_at, state, id FROM once_key
WHERE expires_at IS NOT NULL AND (expires_at, state, id) > (?1, ?2, ?3)
ORDER BY expires_at, state, id LIMIT ?4;
