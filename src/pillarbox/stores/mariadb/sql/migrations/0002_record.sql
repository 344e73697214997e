-- A procedure with which any program records events in SQL, and a limit of payloads. (additive)

-- ---------------------------------------------------------------------------------------------------------------------
-- Reject payloads above the largest max_payload that the settings allow, 64 MiB. The same for every outbox: a CHECK also
-- holds for updates, and a relay could not settle larger events after max_payload was lowered. On existing tables this
-- copies the pending events; meanwhile producers and relays wait.

ALTER TABLE {message} ADD CONSTRAINT IF NOT EXISTS message_payload_ck CHECK (octet_length(payload) <= 67108864);

-- ---------------------------------------------------------------------------------------------------------------------
-- Record an event like `Outbox.record`, with the privileges of the caller. A procedure, because with a binary log a server
-- creates functions only for administrators. Procedures have no defaults: what is optional is in the JSON object `options`,
-- with the names of the columns, and `key` for the ordering key. Times are in UTC.

CREATE OR REPLACE PROCEDURE {record}(
  IN event_type VARCHAR(255) CHARACTER SET utf8mb4,
  IN payload LONGTEXT CHARACTER SET utf8mb4,
  IN options LONGTEXT CHARACTER SET utf8mb4,
  OUT event_id VARCHAR(200) CHARACTER SET utf8mb4)
MODIFIES SQL DATA
SQL SECURITY INVOKER
BEGIN
  DECLARE given LONGTEXT CHARACTER SET utf8mb4 DEFAULT coalesce(options, '{}');
  DECLARE kind VARCHAR(255) CHARACTER SET utf8mb4;
  DECLARE problem VARCHAR(128) CHARACTER SET utf8mb4;
  DECLARE occurs, due DATETIME(6);
  IF NOT json_valid(given) OR json_type(given) <> 'OBJECT' THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the options are not a JSON object: pass NULL or an object';
  END IF;
  SET problem = left(json_keys(json_remove(given, '$.key', '$.aggregate_type', '$.aggregate_id', '$.headers', '$.event_id',
    '$.available_at', '$.destination', '$.content_type', '$.schema_version', '$.correlation_id', '$.causation_id',
    '$.trace_id', '$.occurred_at')), 64);
  IF problem <> '[]' THEN
    SET problem = concat('unknown options: ', problem);
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = problem;
  END IF;
  -- An ISO 8601 time in UTC, or one as MariaDB writes it. In strict mode the assignment rejects what is not a time.
  SET occurs = CAST(replace(replace(json_value(given, '$.occurred_at'), 'T', ' '), 'Z', '') AS DATETIME(6));
  SET due = CAST(replace(replace(json_value(given, '$.available_at'), 'T', ' '), 'Z', '') AS DATETIME(6));
  IF (occurs IS NULL AND json_value(given, '$.occurred_at') IS NOT NULL)
      OR (due IS NULL AND json_value(given, '$.available_at') IS NOT NULL) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'occurred_at or available_at is not a time in UTC: use YYYY-MM-DDThh:mm:ssZ';
  END IF;
  SET kind = coalesce(json_value(given, '$.content_type'), 'application/json');
  -- The same rule as `is_json` in pillarbox/core/text.py.
  IF kind REGEXP '(?i)^\\s*((application|text)/json|[^;]*\\+json)\\s*(;|$)' THEN
    IF payload IS NULL OR NOT json_valid(payload) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the payload is not JSON';
    ELSEIF json_type(payload) NOT IN ('OBJECT', 'ARRAY') THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the payload is JSON, but not an object or an array: was it encoded twice?';
    END IF;
  END IF;
  SET event_id = coalesce(json_value(given, '$.event_id'), CAST(uuid() AS CHAR));
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
    headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at)
  VALUES (event_id, coalesce(json_value(given, '$.destination'), ''), event_type, json_value(given, '$.aggregate_type'),
    json_value(given, '$.aggregate_id'), json_value(given, '$.key'), payload, kind,
    coalesce(nullif(json_compact(json_extract(given, '$.headers')), 'null'), '{}'), coalesce(json_value(given, '$.schema_version'), 1),
    json_value(given, '$.correlation_id'), json_value(given, '$.causation_id'), json_value(given, '$.trace_id'),
    coalesce(occurs, utc_timestamp(6)), due);
END;
