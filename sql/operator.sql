-- Tells the checks of sql/checks.sql that an operator begins to work, or has
-- finished.

-- name: operator_begins
INSERT INTO temp.once_check_operator VALUES (1);

-- name: operator_ends
DELETE FROM temp.once_check_operator;
