-- name: prune_history
-- Delete, up to a limit, history past its retention period, the oldest first.
DELETE FROM {history}
 WHERE rowid IN (SELECT rowid FROM {history}
                  WHERE published_at <= {past:seconds}
                  ORDER BY published_at
                  LIMIT :most)

-- name: prune_dead
-- Delete, up to a limit, dead letters past their retention period, the oldest first.
DELETE FROM {dead_letter}
 WHERE rowid IN (SELECT rowid FROM {dead_letter}
                  WHERE dead_lettered_at <= {past:seconds}
                  ORDER BY dead_lettered_at
                  LIMIT :most)

-- name: prune_attempts
-- Delete, up to a limit, failed attempts past their retention period, the oldest first.
DELETE FROM {attempt}
 WHERE rowid IN (SELECT rowid FROM {attempt}
                  WHERE attempted_at <= {past:seconds}
                  ORDER BY attempted_at
                  LIMIT :most)

-- name: prune_audit
-- Delete, up to a limit, entries of the audit log past their retention period. Ids grow with time: the first are the oldest.
DELETE FROM {audit}
 WHERE audit_id IN (SELECT audit_id FROM (SELECT audit_id, at FROM {audit} ORDER BY audit_id LIMIT :most)
                     WHERE at <= {past:seconds})

-- name: prune_requests
-- Delete, up to a limit, finished requests past their retention period. Ids grow with time: the first are the oldest.
DELETE FROM {request}
 WHERE request_id IN (SELECT request_id FROM (SELECT request_id, done_at FROM {request} ORDER BY request_id LIMIT :most)
                       WHERE done_at <= {past:seconds})

-- name: prune_inbox
-- Delete, up to a limit, inbox records past their retention period, the oldest first.
DELETE FROM {inbox}
 WHERE rowid IN (SELECT rowid FROM {inbox}
                  WHERE received_at <= {past:seconds}
                  ORDER BY received_at
                  LIMIT :most)

-- name: prune_consumer_statistics
-- Delete, up to a limit, consumer statistics as old as the inbox records: one hop along the index per consumer.
DELETE FROM {inbox_statistics}
 WHERE rowid IN (WITH RECURSIVE named AS (
                   SELECT min(consumer) AS consumer FROM {inbox_statistics}
                   UNION ALL
                   SELECT (SELECT min(t.consumer) FROM {inbox_statistics} t WHERE t.consumer > n.consumer)
                   FROM named n WHERE n.consumer IS NOT NULL
                 )
                 SELECT t.rowid FROM named n CROSS JOIN {inbox_statistics} t
                  WHERE t.consumer = n.consumer
                    AND t.hour <= {past:seconds}
                  LIMIT :most)

-- name: prune_ledger
-- Delete, up to a limit, ledger entries past their retention period, except for sends that may be in flight. Ids grow with
-- time: the first are the oldest.
DELETE FROM {ledger}
 WHERE id IN (SELECT id FROM (SELECT id, event_id, status, created_at FROM {ledger} ORDER BY id LIMIT :most) AS first
               WHERE created_at <= {past:seconds}
                 AND (status <> 'PROCESSING'
                      OR NOT EXISTS (SELECT 1 FROM {message} AS m WHERE m.event_id = first.event_id)))

-- name: prune_statistics
-- Delete, up to a limit, samples past their retention period, the oldest first.
DELETE FROM {sample}
 WHERE rowid IN (SELECT rowid FROM {sample}
                  WHERE at <= {past:seconds}
                  ORDER BY at
                  LIMIT :most)
