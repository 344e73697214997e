-- Note what is about to be sent: [[event id, destination], …]. What was given up on is begun anew.
INSERT INTO {processed_event} (event_id, destination, status)
SELECT DISTINCT json_extract(value, '$[0]'), json_extract(value, '$[1]'), 'PROCESSING' FROM json_each(:messages) WHERE true
ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', updated_at = {now} WHERE status = 'FAILED';
