-- name: in_transaction
-- Is a transaction open in this session?
SELECT @@in_transaction;
