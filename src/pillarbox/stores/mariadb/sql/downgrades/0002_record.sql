-- Drop the procedure with which any program records events in SQL, and the limit of payloads. Later events of its callers fail.

ALTER TABLE IF EXISTS {message} DROP CONSTRAINT IF EXISTS message_payload_ck;
DROP PROCEDURE IF EXISTS {record};
