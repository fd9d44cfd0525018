-- What holds for every row of the tables that requests write.  Builds with
-- --enable-record-checks put it into the stores that they make; a store has
-- the same version with it and without.

-- name: check_kept
ALTER TABLE once_kept
    ADD CONSTRAINT once_kept_stripe CHECK(stripe BETWEEN 0 AND 31);

-- name: check_key
ALTER TABLE once_key
    ADD CONSTRAINT once_key_number CHECK(id BETWEEN 1 AND 70368744177664),
    ADD CONSTRAINT once_key_state CHECK(state IN ('pending', 'in_progress',
	'completed', 'failed_retryable', 'unknown', 'dead_letter', 'expired')),
    ADD CONSTRAINT once_key_attempt CHECK(attempt >= 0),
    ADD CONSTRAINT once_key_digest CHECK(octet_length(digest) = 16),
    ADD CONSTRAINT once_key_body CHECK(body_length >= 0),
    ADD CONSTRAINT once_key_times CHECK(expires_at >= 0
	AND retention BETWEEN 0 AND 1000000000000000
	AND expired_retention BETWEEN 0 AND 1000000000000000
	AND reconcile_delay BETWEEN 0 AND 1000000000000000),
    ADD CONSTRAINT once_key_lease CHECK(
	(token IS NOT NULL OR state <> 'in_progress')
	AND (token IS NULL OR state = 'in_progress'
	    OR (state = 'completed' AND replayable))
	AND (token IS NULL) = (owner IS NULL)
	AND (token IS NULL) = (locked_until IS NULL)
	AND (late_token IS NULL OR state IN ('unknown', 'completed'))),
    ADD CONSTRAINT once_key_attempt_lock CHECK(attempt_lock IS NULL
	OR token IS NOT NULL OR state = 'unknown'),
    ADD CONSTRAINT once_key_ends CHECK(expires_at IS NULL
	OR state NOT IN ('in_progress', 'unknown', 'dead_letter')),
    ADD CONSTRAINT once_key_queued CHECK(queued_at IS NULL
	OR (accepted AND state IN ('pending', 'failed_retryable'))),
    ADD CONSTRAINT once_key_fingerprint CHECK(fingerprint_spec <> 0
	OR state = 'expired'
	OR (state = 'failed_retryable' AND queued_at IS NULL)),
    ADD CONSTRAINT once_key_reconciled CHECK(reconcile_after IS NULL
	OR state = 'unknown'),
    ADD CONSTRAINT once_key_answered CHECK(
	(NOT replayable OR state = 'completed')
	AND (state <> 'completed'
	    OR coalesce(status BETWEEN 200 AND 599, false)));

-- name: check_effect
ALTER TABLE once_effect
    ADD CONSTRAINT once_effect_state
	CHECK(state IN ('pending', 'delivered', 'dead_letter')),
    ADD CONSTRAINT once_effect_turn CHECK(
	(next_at IS NULL OR owner IS NULL)
	AND (state = 'pending' OR (next_at IS NULL AND owner IS NULL))
	AND (owner IS NULL OR attempts > 0)),
    ADD CONSTRAINT once_effect_payload CHECK(
	(state <> 'delivered' OR payload IS NULL)
	AND (state = 'delivered' OR reference IS NULL));
