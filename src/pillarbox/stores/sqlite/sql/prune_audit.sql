-- Drop what people did long ago. Ids go with time: the first are the oldest.
DELETE FROM {audit}
 WHERE audit_id IN (SELECT audit_id FROM (SELECT audit_id, at FROM {audit} ORDER BY audit_id LIMIT :most)
                     WHERE at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds)));
