-- Fragment: what was given up on is noted in the ledger, unless a namesake of it arrived.
, ledger AS (
  INSERT INTO {processed_event} AS p (event_id, destination, status, processed_at)
  SELECT DISTINCT event_id, resolved, 'FAILED', now() FROM gone ORDER BY event_id, resolved
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'FAILED', updated_at = now(), processed_at = now()
    WHERE p.status <> 'SUCCESS'
)
