-- Drop what people asked for and was done long ago, the oldest first. Ids go with time, so the first young one tells where
-- to stop.
DELETE FROM {request}
 WHERE request_id IN (SELECT request_id FROM {request}
                       WHERE done_at IS NOT NULL
                         AND request_id < coalesce((SELECT request_id FROM {request}
                                                     WHERE asked_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                                                     ORDER BY request_id LIMIT 1), 9223372036854775807)
                       ORDER BY request_id
                       LIMIT :most);
