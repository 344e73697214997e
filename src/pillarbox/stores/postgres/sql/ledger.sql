-- name: ledger_begin
-- Enter what is about to be sent, and return what was sent before, and which of these sends began and was never settled.
WITH asked AS MATERIALIZED (
  SELECT DISTINCT ON (event_id, destination) event_id, destination, send_number
  FROM unnest($1::text::text[], $2::text::text[], $3::text::bigint[]) AS a(event_id, destination, send_number)
  ORDER BY event_id, destination
), begun AS (
  INSERT INTO {ledger} AS p (event_id, destination, status, send_number)
  SELECT event_id, destination, 'PROCESSING', send_number FROM asked ORDER BY event_id, destination
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', send_number = excluded.send_number, updated_at = now()
    WHERE p.status = 'FAILED' OR (p.status = 'PROCESSING' AND p.send_number IS DISTINCT FROM excluded.send_number)
)
-- As it was before this statement.
SELECT p.event_id, p.destination, CASE p.status WHEN 'SUCCESS' THEN 'sent' ELSE 'unknown' END AS before
  FROM asked a JOIN {ledger} p ON p.event_id = ANY (ARRAY[a.event_id]) AND p.destination = a.destination
 WHERE p.status = 'SUCCESS' OR (p.status = 'PROCESSING' AND p.send_number = a.send_number)

-- name: ledger_history
-- Find which of these events were delivered, and where: by the index of each day, whatever the size of the history.
SELECT DISTINCT h.event_id, h.destination FROM {history} h WHERE h.event_id = ANY ($1::text[])

-- fragment: ledger_delivered
-- Enter what was delivered in the ledger.
, ledger AS (
  INSERT INTO {ledger} (event_id, destination, status, processed_at)
  SELECT DISTINCT event_id, resolved, 'SUCCESS', now() FROM deleted ORDER BY event_id, resolved
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'SUCCESS', updated_at = now(), processed_at = now()
)

-- fragment: ledger_failed
-- Enter what was dead-lettered in the ledger, unless an event with the same id was delivered.
, ledger AS (
  INSERT INTO {ledger} AS p (event_id, destination, status, processed_at)
  SELECT DISTINCT event_id, resolved, 'FAILED', now() FROM deleted ORDER BY event_id, resolved
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'FAILED', updated_at = now(), processed_at = now()
    WHERE p.status <> 'SUCCESS'
)
