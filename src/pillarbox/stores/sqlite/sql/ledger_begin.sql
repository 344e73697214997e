-- Note what is about to be sent: [[event id, destination, which send], …]. What was given up on is begun anew.
INSERT INTO {processed_event} (event_id, destination, status, begun)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), 'PROCESSING', json_extract(value, '$[2]')
  FROM json_each(:messages) WHERE true
ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', begun = excluded.begun, updated_at = {now}
 WHERE status = 'FAILED' OR (status = 'PROCESSING' AND begun IS NOT excluded.begun);
