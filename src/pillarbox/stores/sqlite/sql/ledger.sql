-- name: ledger_before
-- Find which of these were sent before, and which of these sends began and was never settled.
SELECT p.event_id, p.destination, CASE p.status WHEN 'SUCCESS' THEN 'sent' ELSE 'unknown' END
  FROM json_each(:messages) AS asked
 CROSS JOIN {ledger} AS p
 WHERE p.event_id = json_extract(asked.value, '$[0]') AND p.destination = json_extract(asked.value, '$[1]')
   AND (p.status = 'SUCCESS' OR (p.status = 'PROCESSING' AND p.send_number = json_extract(asked.value, '$[2]')))

-- name: ledger_begin
-- Enter what is about to be sent: [[event id, destination, which send], …]. What was dead-lettered begins anew.
INSERT INTO {ledger} (event_id, destination, status, send_number)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), 'PROCESSING', json_extract(value, '$[2]')
  FROM json_each(:messages) WHERE true
ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', send_number = excluded.send_number, updated_at = {now}
 WHERE status = 'FAILED' OR (status = 'PROCESSING' AND send_number IS NOT excluded.send_number)

-- name: ledger_history
-- Find which of these events were delivered, and where.
SELECT DISTINCT h.event_id, h.destination
  FROM json_each(:ids) AS asked
 CROSS JOIN {history} AS h
 WHERE h.event_id = asked.value

-- name: ledger_settle
-- Enter what was delivered and what was dead-lettered; what was delivered stays so.
-- with: settled=temp.settlement
-- variant at_once: settled=delivered_at_once
INSERT INTO {ledger} (event_id, destination, status, processed_at)
SELECT DISTINCT m.event_id, d.destination, CASE d.outcome WHEN 'delivered' THEN 'SUCCESS' ELSE 'FAILED' END, {now}
  FROM {settled} AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome IN ('delivered', 'dead')
 ORDER BY 3
ON CONFLICT (event_id, destination) DO UPDATE
   SET status = excluded.status, updated_at = {now}, processed_at = {now}
 WHERE excluded.status = 'SUCCESS' OR status <> 'SUCCESS'
