-- name: append
-- Append events in the order given: the row is repeated for each. Without RETURNING and IGNORE: the right to INSERT is enough,
-- and no value is changed silently.
-- variant ignore_duplicates: on_conflict=skip_pending
INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at)
VALUES {appended_row}
{on_conflict}

-- name: appended_row
-- One event, in the order of an EventRow.
($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce($14, utc_timestamp(6)), $15)

-- name: appended_row_encoded
-- The same, with every text encoded: for texts with other characters than ASCII.
({encoded:1}, {encoded:2}, {encoded:3}, {encoded:4}, {encoded:5}, {encoded:6}, $7, {encoded:8}, {encoded:9}, $10,
  {encoded:11}, {encoded:12}, {encoded:13}, coalesce($14, utc_timestamp(6)), $15)

-- fragment: encoded
-- A text that is given as UTF-8 in Base64: with other characters than ASCII, a text as it stands would depend on the character set of
-- the session, which may replace characters without an error.
CONVERT(FROM_BASE64(${parameter}) USING utf8mb4)

-- fragment: skip_pending
-- Skip events that are already pending: nothing changes in their rows. INSERT IGNORE would also skip what a constraint rejects.
ON DUPLICATE KEY UPDATE id = {message}.id

-- name: lock_keys
-- Make writers of the same keys wait for each other until they commit; always in the same order, so none deadlock.
SELECT slot FROM {key_lock} WHERE slot IN ($1) ORDER BY slot FOR UPDATE

-- name: begin_parts
-- Begin an append of several INSERTs, of which the transaction keeps all or none.
SAVEPOINT pillarbox_record

-- name: undo_parts
-- Remove the parts of an append that failed. The caller's own rows stay.
ROLLBACK TO SAVEPOINT pillarbox_record

-- name: end_parts
-- End an append of several INSERTs.
RELEASE SAVEPOINT pillarbox_record
