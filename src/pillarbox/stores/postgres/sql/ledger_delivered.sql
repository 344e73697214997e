-- Fragment: what was delivered is noted in the ledger.
, ledger AS (
  INSERT INTO {processed_event} (event_id, destination, status, processed_at)
  SELECT DISTINCT event_id, resolved, 'SUCCESS', now() FROM gone ORDER BY event_id, resolved
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'SUCCESS', updated_at = now(), processed_at = now()
)
