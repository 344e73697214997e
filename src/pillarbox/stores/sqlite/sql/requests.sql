-- What people asked for and nobody did yet, in the order of asking, with the row and the place of
-- the message if it is pending.
SELECT r.request_id, r.action, r.event_id, r.destination, r.delay, r.asked_by, r.act, m.row_id, m.id
  FROM {request} AS r
  LEFT JOIN {message} AS m ON m.event_id = r.event_id AND m.destination = r.destination
 WHERE r.done_at IS NULL
 ORDER BY r.request_id
 LIMIT :limit;
