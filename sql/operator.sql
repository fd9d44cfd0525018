-- Tells the checks of sql/checks.sql that an operator is at work, and that he
-- is done.

-- name: operator_begins
INSERT INTO temp.once_check_operator VALUES (1);

-- name: operator_ends
DELETE FROM temp.once_check_operator;
