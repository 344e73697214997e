-- name: find_writers
-- Read the last sequence that was drawn for a message, and after it the transactions that may write to the message table: an
-- INSERT locks the table before it draws a sequence, and keeps the lock until its transaction ends. Of a sequence that is drawn
-- in another order, or that this role must not read, the last one is 0.
WITH drawn AS MATERIALIZED (
  -- A standby does not show the locks of its primary.
  SELECT CASE WHEN NOT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_sequence
                           WHERE seqrelid = pg_get_serial_sequence('{message}', 'id')::regclass
                             AND seqcache = 1 AND seqincrement = 1 AND NOT seqcycle)
              THEN ({recorded_so_far}) ELSE 0 END AS last
)
-- The condition on d.last makes PostgreSQL read the locks once it has read the sequence.
SELECT d.last, {generation} AS generation,
       ARRAY(SELECT CASE WHEN l.pid IS NULL THEN 'prepared ' ELSE '' END || l.virtualtransaction FROM pg_locks l
             WHERE d.last > 0 AND l.locktype = 'relation' AND l.relation = '{message}'::regclass
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND l.mode = 'RowExclusiveLock' AND l.granted) AS writers
FROM drawn d

-- name: find_floors
-- Find the first ready message of each lane ($1) from one sequence ($2) up to another ($3); without one, the sequence after it.
SELECT l.lane, coalesce((
  SELECT y.id FROM {message} y
  WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at IS NULL AND y.id >= l.first AND y.id <= l.last
  ORDER BY y.id LIMIT 1), l.last + 1) AS floor
FROM unnest($1::text::smallint[], $2::text::bigint[], $3::text::bigint[]) AS l(lane, first, last)

-- fragment: generation
-- What changes when sequences may be drawn again: the server was restored or another one took over, the table was emptied or its
-- sequence restarted.
(SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), pg_relation_filenode('{message}'::regclass),
                  pg_relation_filenode(pg_get_serial_sequence('{message}', 'id')::regclass)))
