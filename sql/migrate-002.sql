-- Version 2: the state of a key after its retention, the processes of an
-- attempt, and reconciling.
--
--   on_expired expired_retention  'gone': past its retention the key stays as
--                   'expired' for expired_retention (ms)
--   attempt_lock lock_file  the name of the file that the attempt's processes
--                   hold open (see tree.h), and the inode of the lock file in
--                   which its owner has a lock; only if the key may be resumed
--                   or reconciled after the loss of its handler, while
--                   in_progress, and while unknown until all processes of the
--                   attempt are known to have exited
--   reconcile_delay ms from becoming unknown to the first try to reconcile;
--                   NULL: the key has no reconciler
--   reconcile_after store time of the next try; only while unknown
--   reconcile_attempts  tries begun

-- name: v2_on_expired
ALTER TABLE once_key ADD COLUMN on_expired TEXT NOT NULL DEFAULT 'run';

-- name: v2_expired_retention
ALTER TABLE once_key ADD COLUMN expired_retention INTEGER NOT NULL DEFAULT 0;

-- name: v2_attempt_lock
ALTER TABLE once_key ADD COLUMN attempt_lock INTEGER;

-- name: v2_lock_file
ALTER TABLE once_key ADD COLUMN lock_file INTEGER;

-- name: v2_reconcile_delay
ALTER TABLE once_key ADD COLUMN reconcile_delay INTEGER;

-- name: v2_reconcile_after
ALTER TABLE once_key ADD COLUMN reconcile_after INTEGER;

-- name: v2_reconcile_attempts
ALTER TABLE once_key ADD COLUMN reconcile_attempts INTEGER NOT NULL DEFAULT 0;

-- name: v2_reconcile_index
CREATE INDEX once_key_reconcile ON once_key(reconcile_after)
    WHERE state = 'unknown' AND reconcile_after IS NOT NULL;

-- The keys that an operator or a reconciler must still settle.  They are few.
-- name: v2_open_index
CREATE INDEX once_key_downstream ON once_key(downstream)
    WHERE state IN ('unknown', 'dead_letter');

-- The stored request of a key that may have to be reconciled: NAME=VALUE
-- strings, each with a NUL, and the body.  It has no credentials, and is erased
-- when the outcome is known.
-- name: v2_request
CREATE TABLE once_request(
	key_id INTEGER PRIMARY KEY,
	environment BLOB NOT NULL,
	body BLOB NOT NULL
) STRICT;
