-- Refuse payloads above the configured limit; copies and dead letters sent again were let in once and stay so.

DROP TRIGGER IF EXISTS "{prefix}message_guard";
CREATE TRIGGER "{prefix}message_guard" BEFORE INSERT ON {message}
WHEN NEW.place IS NULL AND length(CAST(NEW.payload AS BLOB)) > {max_payload}
BEGIN
  SELECT RAISE(ABORT, 'the payload is larger than max_payload, {max_payload} bytes');
END;
