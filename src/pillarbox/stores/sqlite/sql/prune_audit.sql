-- Drop what people did long ago, the oldest first. Ids go with time, so the first young one tells where to stop.
DELETE FROM {audit}
 WHERE audit_id IN (SELECT audit_id FROM {audit}
                     WHERE audit_id < coalesce((SELECT audit_id FROM {audit}
                                                 WHERE at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                                                 ORDER BY audit_id LIMIT 1), 9223372036854775807)
                     ORDER BY audit_id
                     LIMIT :most);
