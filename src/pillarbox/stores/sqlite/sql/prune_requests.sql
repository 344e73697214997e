-- Drop what people asked for and was done long ago. Ids go with time: the first are the oldest.
DELETE FROM {request}
 WHERE request_id IN (SELECT request_id FROM (SELECT request_id, done_at FROM {request} ORDER BY request_id LIMIT :most)
                       WHERE done_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds)));
