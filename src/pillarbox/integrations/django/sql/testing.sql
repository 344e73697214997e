-- name: clear
-- Delete all rows of a table.
DELETE FROM {table}
