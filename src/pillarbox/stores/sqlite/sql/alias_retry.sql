-- Fragment of a trigger: the dead letters of the old row go to the end of their key; what is blocked or waits for a retry is requested.
INSERT OR IGNORE INTO {message} (
    place, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, tries)
  SELECT -dead_id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
         headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, 1
    FROM {dead}
   WHERE event_id = OLD.id AND destination = OLD.destination
   ORDER BY dead_id;
  INSERT INTO {audit} (what, subject, detail)
  SELECT 'retry', event_id, json_object('destination', destination, 'dead_id', dead_id)
    FROM {dead}
   WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
  UPDATE {processed_event} SET status = 'PROCESSING', begun = NULL, updated_at = {now}
   WHERE event_id = OLD.id AND destination = OLD.destination AND EXISTS (SELECT 1 FROM {message} WHERE place < 0);
  DELETE FROM {dead} WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
  UPDATE {message} SET place = NULL WHERE place < 0;
  INSERT INTO {request} (action, event_id, destination)
  SELECT 'retry', event_id, destination
    FROM {message}
   WHERE event_id = OLD.id AND destination = OLD.destination AND (held = 'blocked' OR available_at IS NOT NULL)
