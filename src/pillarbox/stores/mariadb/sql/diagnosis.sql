-- name: diagnosis_server
-- Which server answers, under which user, and does it accept writes?
SELECT version() AS version, database(), current_user(), @@global.read_only,
       (SELECT max(variable_value) FROM information_schema.session_variables
         WHERE variable_name IN ('TX_ISOLATION', 'TRANSACTION_ISOLATION'))

-- name: diagnosis_encryption
-- Is this connection encrypted?
SELECT variable_value <> '' FROM information_schema.session_status WHERE variable_name = 'SSL_CIPHER'

-- name: diagnosis_settings
-- The server's settings that decide what a commit means and how large an event may be.
SELECT @@global.innodb_flush_log_at_trx_commit, @@global.log_bin, @@global.sync_binlog, @@global.binlog_format,
       @@global.innodb_doublewrite, @@global.max_allowed_packet

-- name: diagnosis_indexes
-- List the indexes of the message table and of the history.
SELECT DISTINCT table_name, index_name FROM information_schema.statistics
 WHERE table_schema = database() AND table_name IN ('{prefix}message', '{prefix}history')

-- name: diagnosis_transactions
-- List transactions that have been open for longer than :seconds, the oldest first: InnoDB keeps all rows that they could see.
SELECT t.trx_mysql_thread_id, coalesce(p.user, ''), coalesce(p.command, ''),
       CAST(timestampdiff(MICROSECOND, t.trx_started, now(6)) / 1000000 AS DOUBLE) AS seconds, left(coalesce(p.info, ''), 500)
  FROM information_schema.innodb_trx AS t
  LEFT JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
 WHERE t.trx_mysql_thread_id <> connection_id() AND timestampdiff(MICROSECOND, t.trx_started, now(6)) / 1000000 > :seconds
 ORDER BY t.trx_started LIMIT 5

-- name: diagnosis_purge
-- How many transactions wait for their old rows to be purged.
SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status WHERE variable_name = 'INNODB_HISTORY_LIST_LENGTH'

-- name: diagnosis_table_sizes
-- List the tables and the days of history, the largest first: rows as the server estimates them, bytes with indexes.
SELECT p.table_name, p.partition_name, p.table_rows, p.data_length + p.index_length AS bytes
  FROM information_schema.partitions AS p
 WHERE p.table_schema = database() AND p.table_name LIKE concat(replace('{prefix}', '_', '|_'), '%') ESCAPE '|'
   AND p.table_rows IS NOT NULL
 ORDER BY bytes DESC, p.table_name, p.partition_name

-- name: diagnosis_retried
-- Of the first pending messages, list those that were sent more often than a number of times.
SELECT left(coalesce(m.last_error, ''), 500), m.event_id
  FROM (SELECT event_id, last_error, attempts + deferrals AS failures FROM {message} ORDER BY recorded_at, id LIMIT :first) AS m
 WHERE m.failures > :more_than
