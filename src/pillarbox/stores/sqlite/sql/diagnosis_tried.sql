-- Of the first messages that wait, those that were tried more often than a number of times.
SELECT substr(coalesce(last_error, ''), 1, 500), event_id
  FROM (SELECT event_id, last_error, attempts + tries AS tries FROM {message} ORDER BY recorded_at, id LIMIT :first)
 WHERE tries > :more_than;
