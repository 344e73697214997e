-- Note in the ledger what was delivered and what was given up on; what arrived stays so.
INSERT INTO {processed_event} (event_id, destination, status, processed_at)
SELECT DISTINCT m.event_id, d.destination, CASE d.outcome WHEN 'delivered' THEN 'SUCCESS' ELSE 'FAILED' END, {now}
  FROM {settled} AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome IN ('delivered', 'dead')
 ORDER BY 3
ON CONFLICT (event_id, destination) DO UPDATE
   SET status = excluded.status, updated_at = {now}, processed_at = {now}
 WHERE excluded.status = 'SUCCESS' OR status <> 'SUCCESS';
