-- Copy delivered messages, each to the end of its key: [[event id, id, destination, published at, copy's id], …].
INSERT OR IGNORE INTO {message} (
  event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
  schema_version, correlation_id, causation_id, trace_id, occurred_at)
SELECT json_extract(i.value, '$[4]'), coalesce(:to, m.destination), m.event_type, m.aggregate_type, m.aggregate_id,
       -- The history has the key and not where it came from.
       CASE WHEN m.key IS NOT coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN m.key END,
       m.payload, m.content_type,
       json_set(m.headers, '$.replayof', coalesce(json_extract(m.headers, '$.replayof'), m.event_id)),
       m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at
  FROM json_each(:rows) AS i
 CROSS JOIN {history} AS m
 WHERE m.event_id = json_extract(i.value, '$[0]') AND m.id = json_extract(i.value, '$[1]')
   AND m.destination = json_extract(i.value, '$[2]') AND m.published_at = json_extract(i.value, '$[3]')
 ORDER BY i.key;
