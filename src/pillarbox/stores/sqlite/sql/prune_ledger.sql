-- Drop what the ledger noted long ago; what may be under way stays. Ids go with time: the first are the oldest.
DELETE FROM {processed_event}
 WHERE id IN (SELECT id FROM (SELECT id, event_id, status, created_at FROM {processed_event} ORDER BY id LIMIT :most) AS first
               WHERE created_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                 AND (status <> 'PROCESSING'
                      OR NOT EXISTS (SELECT 1 FROM {message} AS m WHERE m.event_id = first.event_id)));
