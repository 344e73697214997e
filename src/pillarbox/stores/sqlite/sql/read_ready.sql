-- Messages that wait for nothing, in order of their place.
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM {message} AS m
 WHERE m.held IS NULL AND m.available_at IS NULL AND {not_in_hand} {in_range}
 ORDER BY m.id
 LIMIT :limit;
