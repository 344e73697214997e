-- name: create_history_days
-- Create the partitions of the history for the next days.
SELECT {history_create}($1::integer)

-- name: drop_history_days
-- Drop the partitions of the history past the retention period.
SELECT {history_drop}($1::interval)

-- name: prune_history
-- Delete, up to a limit, history past its retention period that is in no day's partition.
WITH deleted AS (
  DELETE FROM {history_default} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {history_default} WHERE published_at < now() - $1 * interval '1 second' LIMIT $2)) RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_dead
-- Delete, up to a limit, dead letters past their retention period.
WITH deleted AS (
  DELETE FROM {dead_letter} WHERE dead_letter_id = ANY (ARRAY(
    SELECT dead_letter_id FROM {dead_letter} WHERE dead_lettered_at < now() - $1 * interval '1 second' ORDER BY dead_lettered_at LIMIT $2)) RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_attempts
-- Delete, up to a limit, failed attempts past their retention period.
WITH deleted AS (
  DELETE FROM {attempt} WHERE attempt_id = ANY (ARRAY(
    SELECT attempt_id FROM {attempt} WHERE attempted_at < now() - $1 * interval '1 second' ORDER BY attempt_id LIMIT $2))
  RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_audit
-- Delete, up to a limit, entries of the audit log and finished requests past their retention period. Ids grow with time: the
-- first are the oldest.
WITH deleted AS (
  DELETE FROM {audit} WHERE audit_id = ANY (ARRAY(
    SELECT audit_id FROM (SELECT audit_id, at FROM {audit} ORDER BY audit_id LIMIT $2) AS first
    WHERE at < now() - $1 * interval '1 second')) RETURNING 1
), done AS (
  DELETE FROM {request} WHERE request_id = ANY (ARRAY(
    SELECT request_id FROM (SELECT request_id, done_at FROM {request} ORDER BY request_id LIMIT $2) AS first
    WHERE done_at < now() - $1 * interval '1 second')) RETURNING 1
) SELECT (SELECT count(*) FROM deleted) + (SELECT count(*) FROM done)

-- name: prune_inbox
-- Delete, up to a limit, inbox records past their retention period.
WITH deleted AS (
  DELETE FROM {inbox} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {inbox} WHERE received_at < now() - $1 * interval '1 second' LIMIT $2)) RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_consumer_statistics
-- Delete, up to a limit, consumer statistics as old as the inbox records: one hop along the index per consumer.
WITH RECURSIVE named AS (
  SELECT min(consumer) AS consumer FROM {inbox_statistics}
  UNION ALL
  SELECT (SELECT min(t.consumer) FROM {inbox_statistics} t WHERE t.consumer > n.consumer)
  FROM named n WHERE n.consumer IS NOT NULL
), deleted AS (
  DELETE FROM {inbox_statistics} WHERE ctid = ANY (ARRAY(
    SELECT old.ctid FROM named n CROSS JOIN LATERAL (
      SELECT t.ctid FROM {inbox_statistics} t
      WHERE t.consumer = n.consumer AND t.hour < now() - $1 * interval '1 second'
      ORDER BY t.hour LIMIT $2) AS old
    LIMIT $2)) RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_ledger
-- Delete, up to a limit, ledger entries past their retention period, except for sends that may be in flight. Ids grow with
-- time: the first are the oldest.
WITH deleted AS (
  DELETE FROM {ledger} WHERE id = ANY (ARRAY(
    SELECT id FROM (SELECT id, event_id, status, created_at FROM {ledger} ORDER BY id LIMIT $2) AS first
    WHERE created_at < now() - $1 * interval '1 second'
      AND (status <> 'PROCESSING' OR NOT EXISTS (SELECT FROM {message} m WHERE m.event_id = first.event_id)))) RETURNING 1
) SELECT count(*) FROM deleted

-- name: prune_statistics
-- Delete, up to a limit, samples past their retention period.
WITH deleted AS (
  DELETE FROM {sample} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {sample} WHERE at < now() - $1 * interval '1 second' ORDER BY at LIMIT $2)) RETURNING 1
) SELECT count(*) FROM deleted
