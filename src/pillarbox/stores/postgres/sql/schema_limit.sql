-- Limit the size of payloads; what is there already stays, whatever its size.
ALTER TABLE {message} DROP CONSTRAINT IF EXISTS "{prefix}message_payload_ck",
  ADD CONSTRAINT "{prefix}message_payload_ck" CHECK (octet_length(payload) <= {max_payload}) NOT VALID
