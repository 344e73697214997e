-- name: catch_up
-- Change nothing: the reply tells how far a pipeline has come, and so whether a transaction is open.
SELECT 1;
