-- Retries and delayed events whose time has come, the longest due first.
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM {message} AS m
 WHERE m.held IS NULL AND m.available_at IS NOT NULL AND m.available_at <= {now}
   AND {not_in_hand} {in_range}
 ORDER BY m.available_at, m.id
 LIMIT :limit;
