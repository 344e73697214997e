-- name: admit
-- Insert an inbox record unless there is one: a row comes back if the event is new to the consumer, and none otherwise.
-- A second transaction waits for the first to commit or roll back. RETURNING needs the right to read, even without a column. IGNORE
-- would also store a text with replaced characters, and then take another event for a duplicate: the texts are encoded.
INSERT IGNORE INTO {inbox} (consumer, event_id) VALUES ({encoded:1}, {encoded:2}) RETURNING 1;

-- name: count_results
-- Add the results of a consumer to its statistics of this hour.
INSERT INTO {inbox_statistics} (consumer, processed, duplicates, failures, dead_lettered, last_error, last_failed_at)
VALUES ({encoded:1}, $2, $3, $4, $5, {encoded:6}, utc_timestamp(6) - INTERVAL round($7 * 1000000) MICROSECOND)
ON DUPLICATE KEY UPDATE
  processed = processed + VALUES(processed),
  duplicates = duplicates + VALUES(duplicates),
  failures = failures + VALUES(failures),
  dead_lettered = dead_lettered + VALUES(dead_lettered),
  last_error = coalesce(VALUES(last_error), last_error),
  last_failed_at = coalesce(VALUES(last_failed_at), last_failed_at);
