-- Refuses every change of state that record.c does not allow, and every row
-- that breaks its invariants.  Builds with --enable-record-checks load it into
-- writing connections; one test compares it with record.c pair by pair.

-- name: check_insert
CREATE TEMP TRIGGER once_check_insert BEFORE INSERT ON main.once_key
WHEN NEW.state NOT IN ('pending', 'in_progress')
BEGIN
	SELECT RAISE(ABORT, 'once_key: no key begins in this state');
END;

-- name: check_update
CREATE TEMP TRIGGER once_check_update BEFORE UPDATE OF state ON main.once_key
WHEN OLD.state <> NEW.state AND NOT (
    (OLD.state = 'pending' AND NEW.state IN ('in_progress', 'completed'))
    OR (OLD.state = 'in_progress'
	AND NEW.state IN ('completed', 'failed_retryable', 'unknown'))
    OR (OLD.state = 'completed' AND NEW.state = 'expired')
    OR (OLD.state = 'failed_retryable'
	AND NEW.state IN ('in_progress', 'expired'))
    OR (OLD.state = 'unknown'
	AND NEW.state IN ('completed', 'failed_retryable', 'dead_letter'))
    OR (OLD.state = 'dead_letter'
	AND NEW.state IN ('completed', 'failed_retryable')))
BEGIN
	SELECT RAISE(ABORT, 'once_key: no such change of state');
END;

-- name: check_delete
CREATE TEMP TRIGGER once_check_delete BEFORE DELETE ON main.once_key
WHEN OLD.state = 'in_progress' OR OLD.token IS NOT NULL
BEGIN
	SELECT RAISE(ABORT, 'once_key: a key in this state stays');
END;

-- name: check_row_insert
CREATE TEMP TRIGGER once_check_row_insert AFTER INSERT ON main.once_key
WHEN (NEW.state = 'in_progress') <> (NEW.token IS NOT NULL)
    OR (NEW.token IS NULL) <> (NEW.owner IS NULL)
    OR NEW.replayable <> 0
    OR (NEW.listed IS NOT 1
	AND NEW.id <= (SELECT recent FROM main.once_meta WHERE id = 1))
    OR (NEW.state <> 'pending' AND (NEW.expires_at IS NOT NULL
	OR NEW.queued_at IS NOT NULL OR NEW.accepted <> 0))
BEGIN
	SELECT RAISE(ABORT, 'once_key: a new row breaks an invariant');
END;

-- A statement that lists rows changes nothing else.  It also lists rows that
-- break an invariant, because a foreign program has written them.
-- name: check_listed
CREATE TEMP TRIGGER once_check_listed AFTER UPDATE OF listed ON main.once_key
WHEN NEW.listed IS NOT 1
BEGIN
	SELECT RAISE(ABORT, 'once_key: a row is no longer listed');
END;

-- name: check_row_update
CREATE TEMP TRIGGER once_check_row_update AFTER UPDATE ON main.once_key
WHEN NEW.listed IS OLD.listed
AND ((NEW.state = 'in_progress' AND NEW.token IS NULL)
    OR (NEW.token IS NOT NULL AND NEW.state <> 'in_progress'
	AND (NEW.state <> 'completed' OR NEW.token IS NOT OLD.token
	    OR NEW.replayable = 0))
    OR (NEW.token IS NULL) <> (NEW.owner IS NULL)
    OR (NEW.attempt_lock IS NOT NULL AND NEW.token IS NULL
	AND NEW.state <> 'unknown')
    OR (NEW.queued_at IS NOT NULL AND (NEW.accepted = 0
	OR NEW.state NOT IN ('pending', 'failed_retryable')))
    OR (OLD.resource IS NOT NULL AND NEW.resource IS NOT OLD.resource)
    OR (NEW.reconcile_after IS NOT NULL AND NEW.state <> 'unknown')
    OR (NEW.replayable <> 0 AND NEW.state <> 'completed')
    OR (NEW.state = 'completed'
	AND coalesce(NEW.status, 0) NOT BETWEEN 200 AND 599)
    OR (NEW.expires_at IS NOT NULL
	AND NEW.state IN ('in_progress', 'unknown', 'dead_letter'))
    OR NEW.id <> OLD.id OR NEW.identity <> OLD.identity
    OR NEW.key <> OLD.key OR NEW.path <> OLD.path
    OR NEW.scope <> OLD.scope
    OR (NEW.fingerprint <> OLD.fingerprint AND OLD.fingerprint_spec <> 0)
    OR (NEW.fingerprint_spec <> OLD.fingerprint_spec
	AND OLD.fingerprint_spec <> 0 AND NEW.fingerprint_spec <> 0)
    OR (NEW.fingerprint_spec = 0 AND NEW.state <> 'expired'
	AND (NEW.state <> 'failed_retryable' OR NEW.queued_at IS NOT NULL))
    OR NEW.downstream <> OLD.downstream
    OR NEW.attempt < OLD.attempt)
BEGIN
	SELECT RAISE(ABORT, 'once_key: a row breaks an invariant');
END;

-- name: check_recent
CREATE TEMP TRIGGER once_check_recent
AFTER UPDATE OF recent ON main.once_meta
WHEN NEW.recent < OLD.recent
BEGIN
	SELECT RAISE(ABORT, 'once_meta: no key becomes recent again');
END;

-- name: check_effect_state
CREATE TEMP TRIGGER once_check_effect_state
BEFORE UPDATE OF state ON main.once_effect
WHEN NOT (OLD.state = 'pending'
    OR (OLD.state = 'dead_letter' AND NEW.state = 'pending'))
BEGIN
	SELECT RAISE(ABORT, 'once_effect: no such change of state');
END;

-- name: check_effect_row
CREATE TEMP TRIGGER once_check_effect_row AFTER UPDATE ON main.once_effect
WHEN (NEW.next_at IS NOT NULL) + (NEW.owner IS NOT NULL)
	> (NEW.state = 'pending')
    OR (NEW.state = 'delivered' AND NEW.payload IS NOT NULL)
    OR (NEW.state <> 'delivered' AND NEW.reference IS NOT NULL)
    OR (NEW.owner IS NOT NULL AND NEW.attempts = 0)
    OR NEW.id <> OLD.id OR NEW.key_id <> OLD.key_id
    OR NEW.effect_key <> OLD.effect_key OR NEW.topic <> OLD.topic
    OR NEW.scope <> OLD.scope OR NEW.path <> OLD.path OR NEW.key <> OLD.key
BEGIN
	SELECT RAISE(ABORT, 'once_effect: a row breaks an invariant');
END;
