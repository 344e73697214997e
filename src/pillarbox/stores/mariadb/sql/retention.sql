-- name: history_days
-- List the partitions of the history, in the order of their days.
SELECT partition_name FROM information_schema.partitions
 WHERE table_schema = database() AND table_name = '{prefix}history' AND partition_name IS NOT NULL
 ORDER BY partition_ordinal_position

-- name: today
-- The day by the clock of the database.
SELECT CAST(date_format({now}, '%Y%m%d') AS SIGNED)

-- name: newest_day_to_drop
-- The last day that ended longer ago than this.
SELECT CAST(date_format({now} - INTERVAL :older MICROSECOND - INTERVAL 1 DAY, '%Y%m%d') AS SIGNED)

-- name: rows_without_a_day
-- Count, up to a limit, the history that is in no day's partition.
SELECT count(*) FROM (SELECT 1 FROM {history} PARTITION (later) LIMIT :limit) AS l

-- name: create_history_days
-- Create partitions of the history, and move what is in no day's partition. It waits a second for readers of the table, and
-- may take {longest} seconds; 0: any time.
-- example: days=history_day longest=5
SET STATEMENT max_statement_time = {longest} FOR
ALTER TABLE {history} WAIT 1 REORGANIZE PARTITION later INTO ({days}, PARTITION later VALUES LESS THAN (MAXVALUE))

-- name: history_day
-- The partition of one day: a part of create_history_days.
-- example: name=d20261231 end=2027-01-01
PARTITION {name} VALUES LESS THAN ('{end}')

-- name: drop_history_days
-- Drop partitions of the history. It waits a second for readers of the table.
-- example: days=d20261231
ALTER TABLE {history} WAIT 1 DROP PARTITION {days}

-- name: prune_history
-- Delete, up to a limit, history past its retention period that is in no day's partition.
DELETE FROM {history} PARTITION (later) WHERE published_at < {ago:age} ORDER BY published_at LIMIT :limit

-- name: prune_dead
-- Delete, up to a limit, dead letters past their retention period.
DELETE FROM {dead_letter} WHERE dead_lettered_at < {ago:age} ORDER BY dead_lettered_at LIMIT :limit

-- name: prune_attempts
-- Delete, up to a limit, failed attempts past their retention period.
DELETE FROM {attempt} WHERE attempted_at < {ago:age} ORDER BY attempted_at LIMIT :limit

-- name: prune_audit
-- Delete, up to a limit, entries of the audit log past their retention period. Ids grow with time: the first are the oldest.
DELETE a FROM (SELECT audit_id, at FROM {audit} ORDER BY audit_id LIMIT :limit) AS f
  STRAIGHT_JOIN {audit} AS a ON a.audit_id = f.audit_id
 WHERE f.at < {ago:age}

-- name: prune_requests
-- Delete, up to a limit, finished requests past their retention period.
DELETE FROM {request} WHERE done_at < {ago:age} ORDER BY done_at LIMIT :limit

-- name: prune_inbox
-- Delete, up to a limit, inbox records past their retention period.
DELETE FROM {inbox} WHERE received_at < {ago:age} ORDER BY received_at LIMIT :limit

-- name: prune_consumer_statistics
-- Delete, up to a limit, consumer statistics as old as the inbox records.
DELETE FROM {inbox_statistics} WHERE hour < {ago:age} LIMIT :limit

-- name: prune_ledger
-- Delete, up to a limit, ledger entries past their retention period, except for sends that may be in flight. Ids grow with
-- time: the first are the oldest.
DELETE l FROM (SELECT id, event_id, status, created_at FROM {ledger} ORDER BY id LIMIT :limit) AS f
  STRAIGHT_JOIN {ledger} AS l ON l.id = f.id
 WHERE f.created_at < {ago:age}
   AND (f.status <> 'PROCESSING' OR NOT EXISTS (SELECT 1 FROM {message} AS m WHERE m.event_id = f.event_id))

-- name: prune_statistics
-- Delete, up to a limit, samples past their retention period.
DELETE FROM {sample} WHERE at < {ago:age} ORDER BY at LIMIT :limit
