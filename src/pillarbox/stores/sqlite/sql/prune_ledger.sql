-- Drop what the ledger noted long ago, the oldest first; what may be under way stays. Ids go with time, so the first young
-- one tells where to stop.
DELETE FROM {processed_event}
 WHERE id IN (SELECT id FROM {processed_event}
               WHERE status <> 'PROCESSING'
                 AND id < coalesce((SELECT id FROM {processed_event}
                                     WHERE created_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                                     ORDER BY id LIMIT 1), 9223372036854775807)
               ORDER BY id
               LIMIT :most);
